"""Arrays out of a file that may lie about them: what it claims is checked before any memory is taken.

A few hundred bytes can claim terabytes (a zip entry, an array header), and an archive may hold members that nobody
asked for. Only the named arrays are read, and only when what they claim is there and fits.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from contone.exceptions import DataError
from contone.runtime.machine import available_bytes, shown


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The arrays of these names in a ``.npz`` file, as many as it has; nothing else in it is looked at.

    Raises
    ------
    DataError
        The file is not an archive of arrays, or an array claims more than the file holds or memory has room for.
    """
    found: dict[str, np.ndarray] = {}
    try:
        if path.exists() and not path.is_file():
            raise DataError("it is not a regular file")
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            for name in names:
                if name in members:
                    with archive.open(members[name]) as stream:
                        check_room(_claimed(stream, name, members[name].file_size), name)
                    with archive.open(members[name]) as stream:
                        found[name] = np.lib.format.read_array(stream, allow_pickle=False)
    except DataError:
        raise
    except MemoryError as error:
        raise DataError("it needs more memory than there is") from error
    except OSError as error:
        raise DataError(f"it cannot be read ({error.strerror or error})") from error
    except Exception as error:  # a damaged stream fails inside zlib, lzma and others, each with an error of its own
        raise DataError(f"it is damaged ({type(error).__name__}: {error})") from error
    return found


def list_arrays(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in a ``.npz`` file by name, from their headers; () for members that are not arrays."""
    found: dict[str, tuple[int, ...]] = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            try:
                with archive.open(info) as stream:
                    found[info.filename.removesuffix(".npy")] = _header(stream)[0]
            except Exception:  # whatever it is, nobody asked for it
                found[info.filename] = ()
    return found


def check_room(size: float, name: str) -> None:
    """Refuse an array of that many bytes that would take more than half of the memory that is available."""
    if size > available_bytes() / 2:
        raise DataError(f"{name!r} claims {shown(size)}, which does not fit into memory")


def _claimed(stream: IO[bytes], name: str, held: int) -> float:
    """The bytes of an array by its own header; DataError where the archive does not hold them."""
    shape, dtype = _header(stream)
    if dtype.hasobject:
        raise DataError(f"{name!r} holds Python objects, which are not read")
    size = math.prod(shape) * dtype.itemsize
    if size > held:
        raise DataError(f"{name!r} claims {shown(float(size))} ({shape}, {dtype}) and holds {shown(float(held))}")
    return float(size)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type that an array in NumPy's format claims."""
    version = np.lib.format.read_magic(stream)
    read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype

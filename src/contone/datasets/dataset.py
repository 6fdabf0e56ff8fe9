"""One data set in memory, and how a file becomes one.

A file holds features (n, d) and label distributions (n, q): ``.mat`` (MATLAB 4 to 7.2) with the variables ``features``
and ``labels``, or ``.npz`` with those names or ``X`` and ``D``. A file may lie about its arrays: a few hundred bytes
can claim terabytes (a zip entry, an array header), and an archive may hold members that nobody asked for. Only the
named arrays are read, and only when what they claim is there and fits.
"""

import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from contone.exceptions import DataError
from contone.runtime.machine import available_bytes, shown
from contone.typing import Record

ROUNDING_TOLERANCE = 1e-3
"""Row sums of a file may be off by this much: degrees printed with four decimals and twenty labels can be.

The known case is far below it (SCUT-FBP's zeros were replaced by 1e-6). Such rows are renormalised and the data set
says so in its notes; percentages, counts and logical labels are far above it and are refused.
"""

_NOISE = 1e-12  # below this a sum is 1 in floating point, and the published bytes are kept as they are
_FEATURES, _LABELS = ("features", "X"), ("labels", "D")
_WANTED = (*_FEATURES, *_LABELS, "feature_names", "label_names")
FORMATS = (".mat", ".npz")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and the true label distributions of n instances. Frozen, its arrays read-only.

    Attributes
    ----------
    X : (n, d) float64
        Features.
    D : (n, q) float64
        Label distributions, rows on the simplex.
    feature_names, label_names : tuple of str
        d and q names.
    citation, licence : str
        Whom to cite; under what terms.
    name, about : str
        The name it is loaded by; what it holds, in one line.
    source : str
        Where it came from: a path, or "generated".
    notes : tuple of str
        What was done to the data on the way in, e.g. rows renormalised.
    """

    X: np.ndarray
    D: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    citation: str = ""
    licence: str = ""
    name: str = ""
    about: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, names in (("X", self.feature_names), ("D", self.label_names)):
            array = np.array(getattr(self, field), dtype=np.float64, order="C")
            if array.ndim != 2 or array.shape[1] != len(names):
                raise DataError(f"{self.name}: {field} has shape {array.shape} but {len(names)} names.")
            array.flags.writeable = False
            object.__setattr__(self, field, array)
        if len(self.X) != len(self.D):
            raise DataError(f"{self.name}: X has {len(self.X)} rows but D has {len(self.D)}.")

    def __repr__(self) -> str:
        (n, d), q = self.X.shape, self.D.shape[1]
        return f"Dataset({self.name!r}, n={n}, d={d}, q={q})"


def read(path: str | Path, *, name: str = "", label_prefix: str = "label", **about: Any) -> Dataset:
    """The data set in a ``.mat`` or ``.npz`` file; DataError, naming what was found, where it holds none.

    Parameters
    ----------
    path : str or Path
        A file with features (n, d) and label distributions (n, q), rows summing to 1.
    name : str
        Its name; the file's stem where empty.
    label_prefix : str
        Labels without names of their own are called ``<prefix>_0``, ``<prefix>_1``, ...
    **about
        Further fields of `Dataset`: citation, licence, about.
    """
    path = Path(path)
    content = _content(path)
    X = _matrix(content, _FEATURES, path)
    D = _matrix(content, _LABELS, path)
    _check_shapes(X, D, path)
    X, D, notes = checked(X, D, path)
    features = _names(content, "feature_names", "x", X.shape[1], "")
    labels = _names(content, "label_names", label_prefix, D.shape[1], "_")
    return Dataset(X, D, features, labels, name=name or path.stem, source=str(path), notes=notes, **about)


def shapes(path: Path) -> tuple[int, int, int]:
    """n, d and q of a file, from its headers alone; DataError where it holds no features and labels."""
    try:
        listed = _listed(path)
    except Exception as error:  # damaged files make the readers fail in a dozen ways
        raise DataError(f"it cannot be read as {path.suffix} ({type(error).__name__}: {error}).") from error
    X, D = (next((listed[k] for k in keys if k in listed), ()) for keys in (_FEATURES, _LABELS))
    if len(X) != 2 or len(D) != 2:
        raise DataError("it holds no matrices 'features' and 'labels' (or 'X' and 'D').")
    return int(X[0]), int(X[1]), int(D[1])


def _content(path: Path) -> Mapping[str, Any]:
    """The variables of the file by name."""
    if path.suffix not in FORMATS:
        raise DataError(f"{path}: contone reads {' and '.join(FORMATS)} files, not {path.suffix or 'this'!r}.")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file.")
    try:
        return read_arrays(path, _WANTED) if path.suffix == ".npz" else _mat(path)
    except NotImplementedError as error:
        raise DataError(f"{path}: this is a MATLAB 7.3 file; save it with '-v7', or as .npz.") from error
    except MemoryError as error:
        raise DataError(f"{path}: it needs more memory than there is.") from error
    except Exception as error:  # damaged files make the readers fail in a dozen ways, none of them documented
        said = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path}: cannot be read as {path.suffix} ({path.stat().st_size} bytes; {said}). It is truncated, "
            "damaged, or not what it says: delete it and fetch it again."
        ) from error


def _listed(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of everything in the file by name, from its headers."""
    if path.suffix == ".npz":
        return list_arrays(path)
    from scipy.io import whosmat

    return {name: shape for name, shape, _ in whosmat(path)}


def _mat(path: Path) -> Record:
    from scipy.io import loadmat

    wanted = {name: shape for name, shape in _listed(path).items() if name in _WANTED}
    for name, shape in wanted.items():
        check_room(8.0 * math.prod(shape), name)
    return {name: value for name, value in loadmat(path, variable_names=list(wanted)).items() if name in wanted}


def _matrix(content: Mapping[str, Any], keys: tuple[str, ...], path: Path) -> np.ndarray:
    key = next((k for k in keys if k in content), None)
    if key is None:
        found = ", ".join(f"{k} {shape}" for k, shape in _listed(path).items()) or "nothing"
        raise DataError(f"{path}: no variable {' or '.join(map(repr, keys))}; the file holds: {found}.")
    value = content[key]
    array = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "buif":
        raise DataError(f"{path}: {key!r} must be a non-empty matrix of numbers; it is {array.shape} of {array.dtype}.")
    return array


def _check_shapes(X: np.ndarray, D: np.ndarray, path: Path) -> None:
    if len(X) == len(D):
        return
    (n, d), (m, q) = X.shape, D.shape
    cases = ((d == q, "Both look"), (d == m, "The features look"), (n == q, "The labels look"))
    hint = next((f" {what} transposed: save them as (n, d) and (n, q)." for is_so, what in cases if is_so), "")
    raise DataError(f"{path}: features {X.shape} and labels {D.shape} must have one row per instance.{hint}")


def checked(X: np.ndarray, D: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """X, D with rows on the simplex, and notes on what was repaired; refused where rounding does not explain it."""
    X, D = X.astype(np.float64), D.astype(np.float64)
    for name, values in (("features", X), ("labels", D)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise DataError(f"{path}: the {name} have a NaN or infinite entry in row {row}.")
    total = D.sum(axis=1)
    off = np.abs(total - 1.0)
    if D.min() < -ROUNDING_TOLERANCE or off.max() > ROUNDING_TOLERANCE:
        row = int(np.argmax(off)) if off.max() > ROUNDING_TOLERANCE else int(np.argmin(D.min(axis=1)))
        hint = ""
        if np.isin(D, (0.0, 1.0)).all():
            hint = " They are 0 and 1 only: logical labels, not distributions."
        elif np.allclose(D.sum(axis=0), 1.0, atol=ROUNDING_TOLERANCE):
            hint = " Their columns do: the file looks transposed."
        raise DataError(
            f"{path}: the labels are not distributions: rows must not be negative and must sum to 1 (within "
            f"{ROUNDING_TOLERANCE:g}, for rounding); row {row} sums to {total[row]:.6g} with a smallest entry of "
            f"{D[row].min():.6g}.{hint}"
        )
    negative = D < 0
    if off.max() <= _NOISE and not negative.any():
        return X, D, ()
    notes = []
    if negative.any():
        notes.append(f"{int(negative.sum())} degrees below 0 (by {-D.min():.1e} at most) set to 0")
        D = np.maximum(D, 0.0)
    if off.max() > _NOISE:
        rows = int((off > _NOISE).sum())
        notes.append(f"{rows} of {len(D)} rows renormalised: their sums were off 1 by {off.max():.1e} at most")
    return X, D / D.sum(axis=1, keepdims=True), tuple(notes)


def _names(content: Mapping[str, Any], key: str, prefix: str, count: int, joint: str) -> tuple[str, ...]:
    """Names stored in the file, where it has as many as needed; numbered ones otherwise."""
    stored = [_text(name) for name in np.ravel(content.get(key, ()))]
    if len(stored) == count and len(set(stored)) == count:
        return tuple(stored)
    return tuple(f"{prefix}{joint}{j}" for j in range(count))


def _text(name: Any) -> str:
    """A name as text; MATLAB's cell arrays wrap each one in an array of its own."""
    while isinstance(name, np.ndarray) and name.size == 1:
        name = name.item()
    return str(name).strip()


# ------------------------------------------------------------------------------------------------- arrays of a file


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

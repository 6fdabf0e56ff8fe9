"""The checked download: to a temporary file beside its place, held against the registry's hash, and moved only then.

So two processes may fetch at once, and nothing half-done is ever left behind.
"""

from __future__ import annotations

import errno
import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from contone.datasets.registry import Entry, mismatch
from contone.exceptions import DataError
from contone.runtime.files import expand_user

MAX_DOWNLOAD = 512 << 20
"""The largest file, in bytes, that is downloaded: several times the largest of the registry."""


def download(entry: Entry, target: Path, progress: Any) -> None:
    """The file of an entry at `target`: to a temporary file, held against the hash, moved."""
    import pooch
    import requests.exceptions

    def downloader(url: str, output: str, _: Any) -> None:
        with open(output, "wb") as file:
            pooch.core.choose_downloader(url, progressbar=progress)(url, _Bounded(file, url), None)
        # Checked here, before pooch lets the file out of its temporary name: pooch knows no git blob ids.
        differs = mismatch(Path(output), entry)
        if differs:
            raise DataError(
                f"{url}: {differs} Nothing was kept. Try again; if it stays so, the address, or a proxy on the way, "
                "serves something else."
            )

    # A name of its own: another process may be at it, and must not see its good file vanish or half a one appear.
    checked = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _quiet(pooch.get_logger()):
            pooch.retrieve(entry.url, known_hash=None, fname=checked.name, path=target.parent, downloader=downloader)
        os.replace(checked, target)
    except requests.exceptions.RequestException as error:
        raise DataError(
            f"{entry.file} cannot be downloaded from {entry.url} ({_reason(error)}). It is not in {_folder_said()} and "
            f"not in the cache ({target.parent}): put it into one of these folders by hand, or set CONTONE_MIRROR to "
            "an address that has it."
        ) from error
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else _short(error)
        raise DataError(
            f"{entry.file} cannot be stored in {target.parent}: {reason}. Nothing was kept. Make room there, or set "
            "CONTONE_CACHE to another folder."
        ) from error
    except ValueError as error:  # pooch, on an address with a protocol that it does not know
        raise DataError(f"{entry.url} is not an address to download from: {error}") from error
    finally:
        with suppress(OSError):
            checked.unlink(missing_ok=True)


class _Bounded:
    """A file that takes no more than `MAX_DOWNLOAD` bytes: a server must not be able to fill the disk."""

    def __init__(self, file: IO[bytes], url: str) -> None:
        self._file, self._url, self._size = file, url, 0

    def write(self, chunk: bytes) -> int:
        self._size += len(chunk)
        if self._size > MAX_DOWNLOAD:
            raise DataError(
                f"{self._url} sends more than {MAX_DOWNLOAD >> 20} MiB, which no data set of the registry has. Nothing "
                "was kept. The address, or a proxy on the way, serves something else."
            )
        return self._file.write(chunk)

    def flush(self) -> None:
        self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _folder_said() -> str:
    folder = os.environ.get("CONTONE_DATA")
    if not folder:
        return "CONTONE_DATA (not set)"
    missing = "" if expand_user(folder).is_dir() else ": no such folder"
    return f"CONTONE_DATA ({folder}{missing})"


def _reason(error: Exception) -> str:
    """Why the network did not deliver, without the chain of wrappers that the libraries report."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.Timeout):
        return "no answer in time"
    if isinstance(error, exceptions.ConnectionError):
        return "no connection; is there a network?"
    return _short(error)


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """pooch would ask for the hash that it was not given; ours is checked above."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)

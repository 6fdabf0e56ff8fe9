"""The checked download: to a temporary file beside its place, held against the registry's hash, and moved only then.

So two processes may fetch at once, and nothing half-done is ever left behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from contone.datasets.registry import Entry, mismatch
from contone.exceptions import DataError
from contone.runtime.files import expand_user, replacing

MAX_DOWNLOAD = 512 << 20
"""The largest file, in bytes, that is downloaded: several times the largest of the registry."""


def download(entry: Entry, target: Path, progress: Any) -> None:
    """The file of an entry at `target`, checked."""
    import pooch

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fetch = pooch.core.choose_downloader(entry.url, progressbar=progress)
        with replacing(target) as temporary:
            _receive(fetch, entry, temporary, target.parent)
    except OSError as error:
        raise DataError(
            f"{entry.file} cannot be stored in {target.parent}: {_short(error)} Nothing was kept. Make room there, or "
            "set CONTONE_CACHE to another folder."
        ) from error
    except ValueError as error:  # pooch, on an address with a protocol that it does not know
        raise DataError(f"{entry.url} is not an address to download from: {error}") from error


def _receive(fetch: Any, entry: Entry, temporary: Path, folder: Path) -> None:
    from requests.exceptions import RequestException

    try:
        with open(temporary, "wb") as file:
            fetch(entry.url, _Bounded(file, entry.url), None)
    except RequestException as error:
        raise DataError(
            f"{entry.file} cannot be downloaded from {entry.url} ({_reason(error)}). It is not in {_folder_said()} and "
            f"not in the cache ({folder}): put it into one of these folders by hand, or set CONTONE_MIRROR to an "
            "address that has it."
        ) from error
    if differs := mismatch(temporary, entry):
        raise DataError(
            f"{entry.url}: {differs} Nothing was kept. Try again; if it stays so, the address, or a proxy on the way, "
            "serves something else."
        )


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
    return "no connection; is there a network?" if isinstance(error, exceptions.ConnectionError) else _short(error)


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."

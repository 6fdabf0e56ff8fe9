"""From a name to a file: the places that are searched, and what is said of a file that is found there.

Search order: the folder in the environment variable CONTONE_DATA, the user's cache (CONTONE_CACHE moves it), then a
download from the registry's address (CONTONE_MIRROR names another one with the same files). A download goes to a
temporary file beside its place, is held against the registry's hash, and moved only then: two processes may fetch at
once, and nothing half-done is ever left behind. What is known of the published sets (names, files, shapes, sources,
hashes) is in registry.toml, beside this file.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from contone.datasets.artificial import artificial
from contone.datasets.dataset import FORMATS, Dataset, read, shapes
from contone.exceptions import DataError, InputTypeError
from contone.runtime.files import expand_user, packaged_toml, replacing

Where = Literal["generated", "folder", "cache", "missing"]

MAX_DOWNLOAD = 512 << 20
"""The largest file, in bytes, that is downloaded: several times the largest of the registry."""

_GENERATED = {"artificial": "recovery", "artificial-training": "training"}


@dataclass(frozen=True)
class Status:
    """Where a data set is found now."""

    name: str
    where: Where
    path: Path | None = None
    problem: str = ""
    """Why the file that was found cannot be used; empty where it can."""
    n: int = 0
    """Shapes as the registry has them; 0 where unknown."""
    d: int = 0
    q: int = 0
    about: str = ""
    in_paper: bool = False
    """Whether it is one of the twelve sets of the paper that contone implements first."""
    citation: str = ""
    licence: str = ""


def names() -> list[str]:
    """Every name that `load` knows: the generated sets, then the registry's.

    Examples
    --------
    >>> names()[:3]
    ['artificial', 'artificial-training', 'yeast-alpha']
    """
    return [*_GENERATED, *registry()]


def own_names() -> list[str]:
    """The names of your own files in the folder CONTONE_DATA: those that the registry does not know."""
    known = {_plain(name) for name in names()}
    return list(dict.fromkeys(path.stem for path in _own_files() if _plain(path.stem) not in known))


def load(name: str) -> Dataset:
    """The data set of that name; upper and lower case, ``-``, ``_`` and spaces make no difference.

    A file in the folder CONTONE_DATA comes first, then the user's cache, then a download. A ``.mat`` file under a
    registry name must be the published one (its hash is checked); a conversion of it to ``.npz`` is accepted, and any
    other ``.mat`` or ``.npz`` file in CONTONE_DATA is loaded by the name of the file.

    Parameters
    ----------
    name : str
        One of `contone data list`, or the name of a file in CONTONE_DATA.

    Raises
    ------
    DataError
        The name is unknown, or the file is missing and cannot be downloaded, damaged, or not what it should be.

    Examples
    --------
    >>> load("artificial")
    Dataset('artificial', n=2601, d=3, q=3)
    """
    key = _key(name)
    if key in _GENERATED:
        return artificial(_GENERATED[key])
    path = fetch(key)
    if key not in registry():
        return _with_note(read(path), "not in the registry: read as it is, with no hash to check")
    entry = registry()[key]
    about = {name: getattr(entry, name) for name in ("name", "label_prefix", "citation", "licence", "about")}
    return _compare(read(path, **about), entry, verified=path.suffix == Path(entry.file).suffix)


def fetch(name: str, *, progress: Any = False) -> Path:
    """The path of the data set's file, downloaded into the cache if it is not available locally.

    Parameters
    ----------
    name : str
        A name in the registry.
    progress : bool or object
        Passed to pooch: True for its own bar (needs tqdm), or an object with ``total``, ``update``, ``reset`` and
        ``close``.
    """
    found = status(name)
    if found.where == "generated":
        raise DataError(f"{found.name} is generated, there is no file to fetch: use contone.datasets.artificial().")
    if found.path is not None and (not found.problem or found.name not in registry()):
        return found.path
    if found.where == "folder":
        raise DataError(
            f"{found.path}: {found.problem} Delete it to have the published file downloaded; if you mean to use your "
            "own version, save it under another name, or as .npz."
        )
    entry = registry()[found.name]
    target = cache_folder() / entry.file
    _download(entry, target, progress)
    return target


def status(name: str) -> Status:
    """Where the data set is found now, and what the registry knows about it; nothing is downloaded."""
    key = _key(name)
    if key in _GENERATED:
        data = artificial(_GENERATED[key])
        (n, d), q = data.X.shape, data.D.shape[1]
        return Status(key, "generated", n=n, d=d, q=q, about=data.about, citation=data.citation, licence=data.licence)
    own = _in_folder(key)
    if key not in registry():
        if own is None:
            raise DataError(_unknown(name))
        try:
            n, d, q = shapes(own)
        except DataError as error:
            return Status(own.stem, "folder", own, str(error), about="a file of your own")
        return Status(own.stem, "folder", own, "", n, d, q, about="a file of your own")
    entry = registry()[key]
    cached = cache_folder() / entry.file
    path = own or (cached if _is_file(cached) else None)
    where: Where = "missing" if path is None else "cache" if own is None else "folder"
    # A conversion of the published file has no hash to be held against.
    problem = mismatch(path, entry) if path is not None and path.suffix == Path(entry.file).suffix else ""
    known = {name: getattr(entry, name) for name in ("n", "d", "q", "about", "in_paper", "citation", "licence")}
    return Status(entry.name, where, path, problem, **known)


def canonical(name: str) -> str:
    """The one spelling of a data set's name: the registry's, or that of the file; unknown names stay as they are.

    Examples
    --------
    >>> canonical("Yeast_Alpha"), canonical("artificial")
    ('yeast-alpha', 'artificial')
    """
    key = _key(name)
    if key in _GENERATED or key in registry():
        return key
    own = _in_folder(key)
    return own.stem if own is not None else name


def cache_folder() -> Path:
    """The folder that downloads go to: CONTONE_CACHE, or the operating system's place for caches."""
    chosen = os.environ.get("CONTONE_CACHE")
    if chosen:
        return expand_user(chosen)
    import pooch

    return Path(pooch.os_cache("contone"))


# ----------------------------------------------------------------------------------------------------------- names


def _plain(name: str) -> str:
    """A name without case and separators."""
    if not isinstance(name, str):
        raise InputTypeError(f"A data set is known by its name, a text; got {name!r}. 'contone data list' shows all.")
    return "".join(c for c in name.lower() if c not in "-_ .")


def _key(name: str) -> str:
    """The registry's spelling of a name, or the name itself where the registry does not know it."""
    return next((known for known in names() if _plain(known) == _plain(name)), name)


def _unknown(name: str) -> str:
    plain = _plain(name)
    by_part = [known for known in names() if plain and plain in _plain(known)]
    near = by_part or difflib.get_close_matches(name.lower().replace("_", "-"), names(), n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(map(repr, near[:3]))}?" if near else f"There are: {', '.join(names())}."
    return (
        f"There is no data set {name!r}. {advice} "
        "('contone data list' shows all; other .mat and .npz files are found by name in the folder CONTONE_DATA.)"
    )


# ----------------------------------------------------------------------------------------------------------- files


def _own_files() -> list[Path]:
    """The data files in CONTONE_DATA; looked up every time, so that a file put there works at once."""
    folder = os.environ.get("CONTONE_DATA")
    try:
        listed = sorted(expand_user(folder).iterdir()) if folder else []
    except OSError:  # no such folder: the search goes on, and the error at its end names the folder
        return []
    return [path for path in listed if path.suffix in FORMATS and _is_file(path)]


def _in_folder(name: str) -> Path | None:
    """The file of that name in CONTONE_DATA: the published file before a conversion of it."""
    found = [path for path in _own_files() if _plain(path.stem) == _plain(name)]
    return min(found, key=lambda path: FORMATS.index(path.suffix), default=None)


def _is_file(path: Path) -> bool:
    """Whether there is such a file; not, where the folder may not be looked into."""
    try:
        return path.is_file()
    except OSError:
        return False


def _compare(data: Dataset, entry: Entry, *, verified: bool) -> Dataset:
    """The shapes against the registry's: bytes that match the hash are right whatever the literature says."""
    found = (*data.X.shape, data.D.shape[1])
    expected = (entry.n, entry.d, entry.q)
    differs = any(e not in (0, f) for e, f in zip(expected, found, strict=True))
    said = f"n, d, q are {found}; the registry says {expected}"
    if verified:
        return _with_note(data, said) if differs else data
    if differs and entry.confirmed:
        raise DataError(f"{data.source}: {said}. This is not a conversion of {entry.file}: rename or delete it.")
    return _with_note(data, f"a conversion of {entry.file}, with no hash to check")


def _with_note(data: Dataset, note: str) -> Dataset:
    return replace(data, notes=(*data.notes, note))


# ----------------------------------------------------------------------------------------------------------- download


def _download(entry: Entry, target: Path, progress: Any) -> None:
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


# ------------------------------------------------------------------------------------------------------- the registry


@dataclass(frozen=True)
class Entry:
    """What the registry knows about one data set."""

    name: str
    file: str
    n: int
    d: int
    q: int
    about: str
    citation: str
    licence: str
    base: str
    sha256: str = ""
    blob: str = ""
    in_paper: bool = False
    confirmed: bool = True
    label_prefix: str = "label"

    @property
    def url(self) -> str:
        """The address it is downloaded from; CONTONE_MIRROR replaces the registry's."""
        return (os.environ.get("CONTONE_MIRROR") or self.base).rstrip("/") + "/" + self.file


@cache
def registry() -> dict[str, Entry]:
    """All entries, by the name of the set."""
    content = packaged_toml("contone.datasets", "registry.toml")
    entries = {}
    for name, fields in content["sets"].items():
        citation = " ".join(content["citations"][c] for c in fields.pop("citations"))
        entries[name] = Entry(name=name, citation=citation, licence=content["licence"], base=content["base"], **fields)
    return entries


def mismatch(path: Path, entry: Entry) -> str:
    """How the bytes of the file differ from the registry's hash, in one sentence; empty where they do not."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})."
    if entry.sha256:
        kind, expected, found = "sha256", entry.sha256, hashlib.sha256(content).hexdigest()
    else:
        header = f"blob {len(content)}\0".encode()
        kind, expected = "git blob id", entry.blob
        found = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
    if found == expected:
        return ""
    return (
        f"this is not the published {entry.file} ({len(content)} bytes, {kind} {found[:12]}..., expected "
        f"{expected[:12]}...): truncated, damaged or another version."
    )

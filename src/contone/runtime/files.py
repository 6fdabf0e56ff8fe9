"""Writing a file so that it is either there, whole, or not there at all.

The content goes to a temporary file in the same folder and is moved over the target in one step at the end. An error,
Ctrl-C or a full disk on the way leaves the target as it was and no temporary file behind. Only a process that is killed
leaves its temporary file; `remove_leftovers` finds it on the next run. Locks are the operating system's: they end with
the process that holds them, however it ends, so that a lock file without a living owner is ignored.
"""

import hashlib
import os
import re
import socket
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from contone.exceptions import DataError, OutputError

LONGEST_NAME = 255
"""Bytes of a file's name that every usual file system takes."""
RANDOM_PART = r"[a-z0-9_]{8}\.part"
"""What `tempfile` puts behind the prefix, and our suffix."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to; on a clean exit it becomes `path`, on an error it is removed.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "answer.txt") as temporary:
    ...     _ = temporary.write_text("42")
    >>> [p.name for p in folder.iterdir()]
    ['answer.txt']
    """
    target = Path(os.path.realpath(path))  # a link stays a link; what it points at is replaced
    check_target(target, overwrite=overwrite)
    with _in_words(target):
        handle, name = tempfile.mkstemp(prefix=_prefix(target.name), suffix=".part", dir=target.parent)
        temporary = Path(name)
        try:
            _try_lock(handle)  # shows other processes that this file has an owner
            yield temporary
            os.chmod(temporary, _mode(target))
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())  # a full disk or a failing one shows here, not after the move
            check_target(target, overwrite=overwrite)  # again: it may have appeared meanwhile
            os.replace(temporary, target)
        finally:
            os.close(handle)
            with suppress(OSError):
                temporary.unlink()


def remove_leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """Remove the temporary files that killed processes left when they wrote `path`; those removed.

    Only regular files of this user with the name that `replacing` gives, which no living process holds.
    """
    target = Path(os.path.realpath(path))
    ours = re.compile(re.escape(_prefix(target.name)) + RANDOM_PART)
    try:
        found = [entry for entry in os.scandir(target.parent) if ours.fullmatch(entry.name)]
    except OSError:
        return []
    removed = []
    for entry in found:
        with suppress(OSError):
            if not is_own_file(entry.path):
                continue
            handle = os.open(entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                abandoned = _try_lock(handle)
            finally:
                os.close(handle)
            if abandoned:
                os.unlink(entry.path)
                removed.append(Path(entry.path))
    return removed


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a target that cannot become a file, before any work is done for it."""
    target = Path(path)
    with _in_words(target):  # no permission to look, a name that is too long
        if not target.parent.is_dir():
            raise OutputError(f"The folder {target.parent} does not exist: create it first.")
        if target.is_dir():
            raise OutputError(f"{target} is a folder: name a file in it.")
        if target.exists() and not target.is_file():
            raise OutputError(f"{target} is not a regular file and is left alone.")
        if target.exists() and not overwrite:
            raise OutputError(f"{target} exists already and is left alone.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OutputError(f"Cannot write {target}: no permission to write in the folder {target.parent}.")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse to read what is not a regular file: a pipe or a device may never end, or never begin.

    What is not there at all is left to whoever opens it.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            what = "is a folder: name a file" if os.path.isdir(path) else "is not a regular file: copy it into one"
            raise DataError(f"{os.fspath(path)} {what}.")


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder in which nothing can be written, before any work is done for it; it may still be missing."""
    folder = Path(path)
    with _in_words(folder):
        there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
        if not there.is_dir():
            raise OutputError(f"{there} is not a folder: name one, or a new one, to keep results in.")
        if len(os.fsencode(folder.name)) > LONGEST_NAME:
            raise OutputError(f"The name of the folder {folder} is too long: at most {LONGEST_NAME} bytes.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"Cannot write to {folder}: no permission to write in the folder {there}.")


def expand_user(path: str | os.PathLike[str]) -> Path:
    """The path with ~ or ~name replaced by that user's home; the name of an unknown user stays as it is."""
    return Path(os.path.expanduser(path))


def is_own_file(path: str | os.PathLike[str]) -> bool:
    """Whether this is a regular file (not a link to one) that belongs to the user of this process."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and _is_own(status)


def open_private_folder(path: Path) -> Path:
    """A folder that only this user can read or write, made if it is not there; refused if it is somebody else's.

    A symbolic link is never followed: what it points at was not made by us.
    """
    with _in_words(path):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            raise OutputError(f"{path} is a symbolic link and is left alone: remove it, or choose another output.")
        if not stat.S_ISDIR(status.st_mode):
            raise OutputError(f"{path} is not a folder and is left alone: remove it, or choose another output.")
        if not _is_own(status):
            raise OutputError(f"{path} belongs to another user and is left alone: choose another output.")
        if os.name == "posix" and status.st_mode & 0o077:
            path.chmod(0o700)
    return path


@contextmanager
def locked(path: Path, purpose: str) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; an error that names the owner where another process holds it.

    The file holds host and process id of its owner for people to read. It is removed at the end.
    """
    handle = _open_lock(path, purpose)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def hidden_sibling(target: Path, ending: str) -> Path:
    """``.NAME.ending`` beside the target; a name that would be too long is shortened to its hash."""
    return target.with_name(_prefix(target.name) + ending)


def _open_lock(path: Path, purpose: str) -> int:
    while True:
        with _in_words(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        if not _try_lock(handle):
            owner = os.read(handle, 200).decode("utf-8", "replace")
            os.close(handle)
            raise OutputError(f"{purpose} by another run ({owner or 'its process is not known'}): wait until it ends.")
        try:
            if os.fstat(handle).st_ino == os.stat(path).st_ino:
                return handle
        except FileNotFoundError:  # its last owner has just removed it
            pass
        os.close(handle)


def _try_lock(handle: int) -> bool:
    """Lock an open file without waiting; False where another process has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # on a file system without locks, nothing can be known about other processes
        return not isinstance(error, BlockingIOError)
    return True


def _prefix(name: str) -> str:
    encoded = os.fsencode(name)
    if len(encoded) > LONGEST_NAME - 20:
        return f".{hashlib.sha256(encoded).hexdigest()[:16]}."
    return f".{name}."


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _in_words(target: Path) -> Iterator[None]:
    """An error of the operating system as one of ours, which names the target."""
    if "\0" in str(target):
        raise OutputError("Cannot write to a name with a zero byte in it.")
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"Cannot write {target}: {error.strerror or error}.") from error


def write_whole(path: str | os.PathLike[str], text: str, *, overwrite: bool = True) -> None:
    """Write a text file that is there whole, or not at all."""
    with replacing(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


def packaged_toml(package: str, name: str) -> dict[str, Any]:
    """A table that comes with the package, such as the registry of data sets."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))

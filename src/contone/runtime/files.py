"""Writing a file so that it is either there, whole, or not there at all.

The content goes to a temporary file in the same folder and is moved over the target in one step at the end. An error,
Ctrl-C or a full disk on the way leaves the target as it was and no temporary file behind.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from contone.exceptions import OutputError


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
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise _cannot_write(target, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, _mode(target))
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())  # a full disk or a failing one shows here, not after the move
        check_target(target, overwrite=overwrite)  # again: it may have appeared meanwhile
        os.replace(temporary, target)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise _cannot_write(target, error) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a target that cannot become a file, before any work is done for it."""
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target} is a folder: name a file in it.")
    if target.exists() and not target.is_file():
        raise OutputError(f"{target} is not a regular file and is left alone.")
    if target.exists() and not overwrite:
        raise OutputError(f"{target} exists already and is left alone.")
    if not target.parent.is_dir():
        raise OutputError(f"The folder {target.parent} does not exist: create it first.")


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return 0o666 & ~mask


def _cannot_write(target: Path, error: OSError) -> OutputError:
    return OutputError(f"Cannot write {target}: {error.strerror or error}. Nothing was left behind.")

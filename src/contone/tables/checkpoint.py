"""The folder ``.OUT.parts`` of an unfinished stream: a plan, the fitted model, and one file per piece that is done.

Nothing in it is trusted for its name alone. The plan is written last and removed last; without one, our files are
removed and the run starts afresh. Plan and model are bound to their content by a checksum, a part to its plan and to
its content by its name:

    part-NUMBER-PLAN-ROWS-SHA256.csv

where the hash is that of the rest of the name and the content, so that a part of another run, one in another's place,
one that was cut short or one that was edited is never used. The folder is private to the user, never a symbolic link,
and locked while a run works in it. Only files with names that we give are ever removed.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contone.exceptions import DataError
from contone.runtime import files

PLAN, MODEL, LOCK = "plan.json", "model.contone", "lock"
PART = re.compile(r"part-(\d{6,})-([0-9a-f]{16})-(\d+)-([0-9a-f]{64})(\.[a-z]+)")
OURS = re.compile(
    rf"({re.escape(PLAN)}|{re.escape(MODEL)}|{PART.pattern}|new-\d+\.[a-z]+|job\.joblib|part-\d{{6}}\.[a-z]+"
    rf"|\.(plan\.json|model\.contone|job\.joblib|part-[^/]*|new-[^/]*)\.{files.RANDOM_PART})"
)
"""Every name that a run gives, today or in version 0.1."""


@dataclass(frozen=True)
class Part:
    """A finished piece: its file, its number, its rows, and the checksum of its bytes."""

    path: Path
    number: int
    n_rows: int
    checksum: str

    def read(self) -> bytes:
        """The bytes, which must be those that were written."""
        content = self.path.read_bytes()
        if _checksum(self.path.name.rpartition("-")[0].encode() + content) != self.checksum:
            with suppress(OSError):
                self.path.unlink()
            raise DataError(f"{self.path} changed after it was written; it was removed: run the same command again.")
        return content


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """The folder of parts beside a target, files.locked; what is done stays in it if the run does not reach its end."""
    folder = files.open_private_folder(files.hidden_sibling(Path(os.path.realpath(target)), "parts"))
    try:
        with files.locked(folder / LOCK, f"{target} is being written"):
            yield folder
    finally:
        with suppress(OSError):  # something else lies in it, or the run goes on later
            folder.rmdir()


def read_plan(folder: Path) -> dict[str, Any] | None:
    """The plan of an unfinished run; None where there is none that is, with its model, as it was written."""
    if not files.is_own_file(folder / PLAN):
        return None
    try:
        checksum, _, text = (folder / PLAN).read_text(encoding="utf-8").partition("\n")
        plan = json.loads(text) if _checksum(text.encode()) == checksum else None
        if not isinstance(plan, dict) or plan.get("model") != _checksum((folder / MODEL).read_bytes()):
            return None
    except (OSError, ValueError):
        return None
    return plan


def write_plan(folder: Path, plan: dict[str, Any]) -> None:
    """Last of all before the first part: it vouches for the rest."""
    text = json.dumps({**plan, "model": _checksum((folder / MODEL).read_bytes())})
    files.write_whole(folder / PLAN, f"{_checksum(text.encode())}\n{text}")


def empty(folder: Path) -> None:
    """Remove our files, the plan last, so that a kill on the way leaves no parts without one."""
    found = [e for e in os.scandir(folder) if OURS.fullmatch(e.name) and not e.is_dir(follow_symlinks=False)]
    for entry in sorted(found, key=lambda entry: entry.name == PLAN):
        with suppress(FileNotFoundError):
            os.unlink(entry.path)


def finished(folder: Path, token: str, suffix: str) -> dict[int, Part]:
    """The parts that this plan has made, by number; those whose bytes are not what they were are removed."""
    found: dict[int, Part] = {}
    for entry in os.scandir(folder):
        match = PART.fullmatch(entry.name)
        if match is None or match[2] != token or match[5] != suffix or not files.is_own_file(entry.path):
            continue
        part = Part(Path(entry.path), int(match[1]), int(match[3]), match[4])
        with suppress(DataError):
            part.read()
            found[part.number] = part
    return found


def add_part(folder: Path, number: int, token: str, n_rows: int, suffix: str, write: Callable[[Path], None]) -> Part:
    """Write a part; it gets its name, with its checksum, when it is whole."""
    draft = folder / f"new-{number}{suffix}"
    with files.replacing(draft) as temporary:
        write(temporary)
    name = f"part-{number:06d}-{token}-{n_rows}"
    checksum = _checksum(name.encode() + draft.read_bytes())
    path = folder / f"{name}-{checksum}{suffix}"
    os.replace(draft, path)
    return Part(path, number, n_rows, checksum)


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

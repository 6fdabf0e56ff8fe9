"""The store: a folder with one file per finished cell, from which alone the report is made.

    results/<key>.json    a finished cell: its scores and everything worth knowing about them
    arrays/<key>.npz      arrays of a few cells, for pictures
    failures/<key>.json   a cell that raised, with its traceback; never mixed with results
    runs/<id>.json        what a run was asked for: its command, machine, versions, and its cells with their keys

Every file appears at once and complete (written beside its place, then moved there), so a reader never sees half a
file, a killed run leaves none, and several runs may use one store: they write the same content under the same key.

Every file holds a hash of its own content, and a result the hash of its arrays. A file that was edited or damaged, that
lies under another key, or that something else wrote is not used: the cell counts as not computed, and the report says
which file was left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from contone.datasets.archive import read_arrays
from contone.exceptions import DataError, OutputError
from contone.experiments.describe import canonical
from contone.experiments.sources import content_hash
from contone.runtime.files import check_folder, replacing
from contone.runtime.plain import plain
from contone.typing import Record

FORMAT = 2
"""The version of the layout and of the records."""

_NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


class Store:
    """A folder of results.

    Parameters
    ----------
    root : path
        The folder; it is made when something is first written.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._problems: dict[str, str] = {}
        self._read: dict[Path, tuple[tuple[int, int], Record | None]] = {}

    def checked(self) -> Store:
        """This store, refused before any work where nothing can be kept: a file in its place, no permission."""
        check_folder(self.root)
        return self

    def __contains__(self, key: object) -> bool:
        return self.result(str(key)) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self._files("results"))

    # ------------------------------------------------------------------------------------------------------- cells

    def add(self, record: Record) -> None:
        """Keep what `compute` returned: as a result, or among the failures."""
        key, arrays = record["key"], record.get("arrays")
        plain = {**record, "format": FORMAT, "arrays": {n: content_hash(a) for n, a in (arrays or {}).items()}}
        if record["status"] != "done":
            self._write(self.root / "failures" / f"{key}.json", plain)
            return
        # Arrays first: a result that names them must find them.
        if arrays:
            with _writing(self.root / "arrays" / f"{key}.npz") as path, open(path, "wb") as file:
                np.savez_compressed(file, **arrays)
        self._write(self.root / "results" / f"{key}.json", plain)
        with suppress(OSError):
            (self.root / "failures" / f"{key}.json").unlink(missing_ok=True)

    def result(self, key: str) -> Record | None:
        """The finished cell of that key, or None."""
        return self._cell(self.root / "results" / f"{key}.json")

    def failure(self, key: str) -> Record | None:
        """The failure of that key, or None."""
        return self._cell(self.root / "failures" / f"{key}.json")

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """The arrays kept beside a result; empty where there are none, or others than the result was kept with."""
        kept = (self.result(key) or {}).get("arrays")
        if not kept:
            return {}
        path = self.root / "arrays" / f"{key}.npz"
        try:
            found = read_arrays(path, tuple(kept))
            if {name: content_hash(array) for name, array in found.items()} == kept:
                return found
            self._problems[str(path)] = f"{path} holds other arrays than were stored: its picture is left out."
        except (OSError, DataError) as error:
            self._problems[str(path)] = f"{path} cannot be read ({_reason(error)}): its picture is left out."
        return {}

    def results(self) -> Iterator[Record]:
        """Every finished cell, also those that the latest plans no longer ask for."""
        yield from (record for path in self._files("results") if (record := self._cell(path)) is not None)

    def problems(self) -> list[str]:
        """A sentence per file that was met and not used."""
        return [self._problems[name] for name in sorted(self._problems)]

    def _cell(self, path: Path) -> Record | None:
        """A result or failure, checked; None where there is none, or where the file is not what was stored."""
        record = self._checked(path)
        if record is not None and (not {"key", "cell", "status"} <= set(record) or record["key"] != path.stem):
            self._problems[str(path)] = (
                f"{path} belongs to another cell: it is not used, and the cell is computed again."
            )
            return None
        return record

    def _checked(self, path: Path) -> Record | None:
        """The content of a file of the store; None where there is none or it is not as it was written."""
        try:
            state = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {_reason(error)}.") from error
        stamp = state.st_mtime_ns, state.st_size
        if path not in self._read or self._read[path][0] != stamp:
            record: Record | None = None
            try:
                record = _unsealed(read_json(path))
                self._problems.pop(str(path), None)
            except DataError as error:
                self._problems[str(path)] = f"{path} is not used: {error}. What it stood for is computed again."
            self._read[path] = stamp, record
        return self._read[path][1]

    def _write(self, path: Path, record: Record) -> None:
        write_json(path, {**record, "content": _digest(record)})

    # -------------------------------------------------------------------------------------------------------- runs

    def open_run(self, about: Record, cells: Iterable[Record]) -> str:
        """Record that a run begins, with its cells as plain values; gives the run's id."""
        # The name sorts by time; the process id keeps two runs of one moment apart.
        identity = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}-{os.getpid()}"
        record = {**about, "format": FORMAT, "id": identity, "started": time.time(), "finished": None, "state": "open"}
        self._write(self.root / "runs" / f"{identity}.json", {**record, "cells": list(cells)})
        return identity

    def close_run(self, identity: str, **outcome: Any) -> None:
        """Record how a run ended."""
        path = self.root / "runs" / f"{identity}.json"
        self._write(path, {**(self._checked(path) or {}), "finished": time.time(), **outcome})

    def runs(self) -> list[Record]:
        """All runs, the earliest first."""
        return [run for path in sorted(self._files("runs")) if (run := self._checked(path)) is not None]

    def exists(self) -> bool:
        """Whether a run has written here."""
        try:
            return (self.root / "runs").is_dir()
        except OSError as error:
            raise DataError(f"The folder {self.root} cannot be read: {_reason(error)}.") from error

    def kind(self) -> str:
        """What the latest run was: "benchmark", or empty for the experiments of the paper."""
        return str(next((run.get("report", {}).get("kind", "") for run in reversed(self.runs())), ""))

    def plan(self) -> list[Record]:
        """The cells that the runs asked for, one per place in a table.

        It is the latest run's cell. Where that one is not finished but an earlier one at the same place is (the code,
        the data or a parameter has changed since), it is the earlier one, marked ``"stale"``: a report made in the
        middle of a new run shows the old number and can say so.

        A run marked ``"whole"`` had all methods in its plan, so it also removes the rows of earlier runs that it does
        not name (a preset that was renamed, a method that is gone) from the tables that it filled.
        """
        asked: dict[tuple[Any, ...], list[Record]] = {}
        for run in self.runs():
            places = {(*place_of(cell), cell["seed"]): cell for cell in run["cells"]}
            if run.get("whole"):
                filled = {place[:2] for place in places}
                asked = {p: cells for p, cells in asked.items() if p in places or p[:2] not in filled}
            for place, cell in places.items():
                asked.setdefault(place, []).append(cell)
        return [self._newest_finished(cells) for cells in asked.values()]

    def _newest_finished(self, cells: list[Record]) -> Record:
        for cell in reversed(cells):
            if cell["key"] in self:
                return {**cell, "stale": cell["key"] != cells[-1]["key"]}
        return {**cells[-1], "stale": False}

    def _files(self, folder: str) -> Iterator[Path]:
        # Files being written start with a dot and do not match.
        try:
            yield from sorted((self.root / folder).glob("[!.]*.json"))
        except OSError as error:
            raise DataError(f"The folder {self.root / folder} cannot be read: {_reason(error)}.") from error


def place_of(cell: Record) -> tuple[str, str, str, str]:
    """Where a cell's number stands in the tables, its seed apart."""
    return cell["experiment"], cell["dataset"], cell["row"], canonical(cell["setting"])


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON, atomically. Infinity and NaN, which JSON lacks, become texts."""
    text = json.dumps(_encode(value), indent=1, allow_nan=False, ensure_ascii=False)
    with _writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _writing(path: Path) -> AbstractContextManager[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The folder {path.parent} cannot be made ({error.strerror or error}): choose another one with --store."
        ) from error
    return replacing(path)


def read_json(path: Path) -> Any:
    """What `write_json` wrote; DataError where the file does not hold JSON."""
    try:
        if not path.is_file():
            raise DataError("it is not a regular file")
        return _decode(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise DataError(f"it does not hold JSON ({error})") from error
    except OSError as error:
        raise DataError(f"it cannot be read ({_reason(error)})") from error


def _unsealed(found: Any) -> Record:
    """A record without its hash; DataError where it is not as it was written."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError("it is not a file of this version of contone's store")
    if found.pop("content", None) != _digest(found):
        raise DataError("its content was changed after it was written")
    return found


def _digest(record: Record) -> str:
    """The hash of a record, of the text that JSON gives back: the same before it is written and after it is read."""
    text = json.dumps(_encode(record), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _encode(value: Any) -> Any:
    return plain(value, lambda number: "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity")


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_decode(v) for v in value]
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value

"""The store: a folder with one file per finished cell, from which alone the report is made; and its results.

    results/<key>.json    a finished cell: its scores and everything worth knowing about them
    failures/<key>.json   a cell that raised, with its traceback; never mixed with results
    runs/<id>.json        what a run was asked for: its command, machine, versions, and its cells with their keys

Every file appears at once and complete (written beside its place, then moved there), so a reader never sees half a
file, a killed run leaves none, and several runs may use one store: they write the same content under the same key.

Every file holds a hash of its own content. A file that was edited or damaged, that lies under another key, or that
something else wrote is not used: the cell counts as not computed, and the report says which file was left out.

A result is one cell of a printed table: an experiment, a data set, a row and, in a curve, the value of a parameter. It
averages over seeds and gives their standard deviation.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from contone.exceptions import DataError, OutputError
from contone.experiments.describe import canonical, digest
from contone.pages.blocks import Kind
from contone.runtime.files import check_folder, write_whole
from contone.runtime.plain import plain
from contone.typing import Record

FORMAT = 3
"""The version of the layout and of the records."""


class Store:
    """A folder of results.

    Parameters
    ----------
    root : path
        The folder; it is made when something is first written.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._problems: dict[Path, str] = {}

    def checked(self) -> Store:
        """This store, refused before any work where nothing can be kept: a file in its place, no permission."""
        check_folder(self.root)
        return self

    def __contains__(self, key: object) -> bool:
        return self.result(str(key)) is not None

    def __len__(self) -> int:
        return len(self._files("results"))

    # ------------------------------------------------------------------------------------------------------- cells

    def add(self, record: Record) -> None:
        """Keep what `compute` returned: as a result, or among the failures."""
        key, is_done = record["key"], record["status"] == "done"
        self._write("results" if is_done else "failures", key, record)
        if is_done:
            (self.root / "failures" / f"{key}.json").unlink(missing_ok=True)

    def result(self, key: str) -> Record | None:
        """The finished cell of that key, or None."""
        return self._cell(self.root / "results" / f"{key}.json")

    def failure(self, key: str) -> Record | None:
        """The failure of that key, or None."""
        return self._cell(self.root / "failures" / f"{key}.json")

    def results(self) -> Iterator[Record]:
        """Every finished cell, also those that the latest plans no longer ask for."""
        yield from (record for path in self._files("results") if (record := self._cell(path)) is not None)

    def problems(self) -> list[str]:
        """A sentence per file that was met and not used."""
        return [self._problems[path] for path in sorted(self._problems)]

    def _cell(self, path: Path) -> Record | None:
        """A result or failure, checked; None where there is none, or where the file is not what was stored."""
        record = self._checked(path)
        if record is None or ({"key", "cell", "status"} <= set(record) and record["key"] == path.stem):
            return record
        self._problems[path] = f"{path} belongs to another cell: it is not used, and the cell is computed again."
        return None

    def _checked(self, path: Path) -> Record | None:
        """The content of a file of the store; None where there is none or it is not as it was written."""
        self._problems.pop(path, None)
        try:
            state = path.stat()
            return _read(path, state.st_mtime_ns, state.st_size)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        except DataError as error:
            self._problems[path] = f"{path} is not used: {error}. What it stood for is computed again."
            return None

    def _write(self, folder: str, name: str, record: Record) -> None:
        path = self.root / folder / f"{name}.json"
        whole = json.loads(json.dumps({**record, "format": FORMAT}, default=plain))
        text = json.dumps({**whole, "content": digest(whole)}, indent=1, ensure_ascii=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"Cannot make {path.parent} ({error.strerror or error}): use another --store.") from error
        write_whole(path, text)

    # -------------------------------------------------------------------------------------------------------- runs

    def open_run(self, about: Record, cells: Iterable[Record]) -> str:
        """Record that a run begins, with its cells as plain values; gives the run's id."""
        # The name sorts by time, read once; the process id keeps two runs of one moment apart.
        seconds, rest = divmod(time.time_ns(), 10**9)
        identity = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}-{rest:09d}-{os.getpid()}"
        record = {"id": identity, "started": time.time(), "finished": None, "state": "open", "cells": list(cells)}
        self._write("runs", identity, about | record)
        return identity

    def close_run(self, identity: str, **outcome: Any) -> None:
        """Record how a run ended."""
        opened = self._checked(self.root / "runs" / f"{identity}.json") or {}
        self._write("runs", identity, {**opened, "finished": time.time(), **outcome})

    def runs(self) -> list[Record]:
        """All runs, the earliest first."""
        return [run for path in self._files("runs") if (run := self._checked(path)) is not None]

    def exists(self) -> bool:
        """Whether a run has written here."""
        try:
            return (self.root / "runs").is_dir()
        except OSError as error:
            raise DataError(f"The folder {self.root} cannot be read: {error.strerror}.") from error

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
            places = {(*_place(cell), cell["seed"]): cell for cell in run["cells"]}
            if run.get("whole"):
                filled = {place[:2] for place in places}
                asked = {p: cells for p, cells in asked.items() if p in places or p[:2] not in filled}
            for place, cell in places.items():
                asked.setdefault(place, []).append(cell)
        found = []
        for cells in asked.values():
            newest = next((cell for cell in reversed(cells) if cell["key"] in self), cells[-1])
            found.append({**newest, "stale": newest["key"] != cells[-1]["key"]})
        return found

    def files(self) -> list[Path]:
        """Every file that is read from here."""
        return [path for folder in ("results", "failures", "runs") for path in self._files(folder)]

    def _files(self, folder: str) -> list[Path]:
        # Files being written start with a dot and do not match.
        try:
            return sorted((self.root / folder).glob("[!.]*.json"))
        except OSError as error:
            raise DataError(f"The folder {self.root / folder} cannot be read: {error.strerror}.") from error


@lru_cache(maxsize=10_000)
def _read(path: Path, *state: int) -> Record:
    """A record without its hash, read again when its `state` is another; DataError where it is not as written."""
    try:
        if not path.is_file():
            raise DataError("it is not a regular file")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"it does not hold JSON ({error})") from error
    except PermissionError as error:
        raise DataError(f"it cannot be read ({error.strerror})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError("it is not a file of this version of contone's store")
    if found.pop("content", None) != digest(found):
        raise DataError("its content was changed after it was written")
    return found


def _place(cell: Record) -> tuple[str, str, str, str]:
    """Where a cell's number stands in the tables, its seed apart."""
    return cell["experiment"], cell["dataset"], cell["row"], canonical(cell["setting"])


# ------------------------------------------------------------------------------------------------------------ results


@dataclass(frozen=True)
class Result:
    """The results at one place of a table.

    Attributes
    ----------
    experiment, dataset, row, setting
        The place.
    method, kind : str
        The class behind the row; "method", "baseline" or "oracle".
    status : str
        "done", "failed" (no seed came through), "left out" (its extra is not installed) or "pending" (not computed
        yet).
    scores, deviation : dict
        Mean over seeds by measure, and standard deviation where there are several.
    records : tuple of dict
        The stored records behind it, in the order of their seeds.
    failures : tuple of dict
        The records of the seeds that failed.
    stale : bool
        Whether a number comes from an earlier version of the code, the data or the parameters.
    """

    experiment: str
    dataset: str
    row: str
    method: str
    kind: Kind
    setting: Record = field(default_factory=dict)
    status: str = "pending"
    scores: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    failures: tuple[Record, ...] = ()
    stale: bool = False


class Results:
    """The results of a store, found by their place, with the runs that filled it and what it could not read."""

    def __init__(self, found: Iterable[Result], runs: Sequence[Record] = (), damaged: Sequence[str] = ()) -> None:
        self.all, self.runs, self.damaged = list(found), list(runs), tuple(damaged)
        self._found = {(r.experiment, r.dataset, r.row, canonical(r.setting)): r for r in self.all}

    def __iter__(self) -> Iterator[Result]:
        return iter(self.all)

    def get(self, experiment: str, dataset: str, row: str, setting: Record | None = None) -> Result | None:
        """The result at a place, or None where no run asked for it."""
        return self._found.get((experiment, dataset, row, canonical(setting or {})))

    def of(self, experiment: str, **place: str) -> list[Result]:
        """The results of an experiment, in the order of the plan; `place` may name their dataset or row."""
        found = (result for result in self.all if result.experiment == experiment)
        return [result for result in found if all(getattr(result, key) == value for key, value in place.items())]

    def kinds(self, experiment: str) -> dict[str, Kind]:
        """The rows of an experiment with their kind, in the order of the plan."""
        return {result.row: result.kind for result in self.of(experiment)}

    def datasets(self, experiment: str) -> list[str]:
        """The data sets of an experiment, in the order of the plan."""
        return list(dict.fromkeys(result.dataset for result in self.of(experiment)))

    def score(
        self, experiment: str, dataset: str, row: str, measure: str, setting: Record | None = None
    ) -> float | None:
        """A mean score, or None where there is none."""
        result = self.get(experiment, dataset, row, setting)
        return result.scores.get(measure) if result is not None and result.status == "done" else None


def load_results(store: Store) -> Results:
    """Everything that the store's runs asked for, in the order of the plan."""
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for cell in store.plan():
        groups.setdefault(_place(cell), []).append(cell)
    return Results([_result(cells, store) for cells in groups.values()], store.runs(), store.problems())


def _result(cells: list[Record], store: Store) -> Result:
    first = cells[0]
    records = tuple(r for cell in cells if (r := store.result(cell["key"])) is not None)
    failures = tuple(r for cell in cells if (r := store.failure(cell["key"])) is not None)
    names = records[0]["scores"] if records else {}
    values = {name: [record["scores"][name] for record in records] for name in names}
    return Result(
        **{name: first[name] for name in ("experiment", "dataset", "row", "method", "setting")},
        kind="oracle" if first["oracle"] else "baseline" if first["baseline"] else "method",
        status="done" if records else failures[0]["status"] if failures else "pending",
        scores={name: fmean(v) for name, v in values.items()},
        deviation={name: _deviation(v) for name, v in values.items()} if len(records) > 1 else {},
        records=records,
        failures=failures,
        stale=any(cell["stale"] for cell in cells),
    )


def _deviation(values: list[float]) -> float:
    return stdev(values) if all(map(math.isfinite, values)) else math.nan

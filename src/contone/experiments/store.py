"""The store: a folder with one file a finished cell, from which alone the report is made.

    results/<key>.json    a finished cell: its scores and everything worth knowing about them
    arrays/<key>.npz      arrays of a few cells, for pictures
    failures/<key>.json   a cell that raised, with its traceback; never mixed with results
    runs/<id>.json        what a run was asked for: its command, machine, versions, and its cells with their keys

Every file appears at once and complete (written beside its place, then moved there), so a reader never sees half a
file, a killed run leaves none, and several runs may use one store: they write the same content under the same key.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from contone.exceptions import DataError, OutputError
from contone.runtime.files import replacing

FORMAT = 1
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

    def __contains__(self, key: object) -> bool:
        return (self.root / "results" / f"{key}.json").exists()

    def __len__(self) -> int:
        return sum(1 for _ in self._files("results"))

    # ------------------------------------------------------------------------------------------------------- cells

    def add(self, record: dict[str, Any]) -> None:
        """Keep what `cells.compute` returned: as a result, or among the failures."""
        key, arrays = record["key"], record.get("arrays")
        plain = {**record, "format": FORMAT, "arrays": sorted(arrays) if arrays else []}
        if record["status"] != "done":
            write_json(self.root / "failures" / f"{key}.json", plain)
            return
        # Arrays first: a result that names them must find them.
        if arrays:
            with _writing(self.root / "arrays" / f"{key}.npz") as path, open(path, "wb") as file:
                np.savez_compressed(file, **arrays)
        write_json(self.root / "results" / f"{key}.json", plain)
        (self.root / "failures" / f"{key}.json").unlink(missing_ok=True)

    def result(self, key: str) -> dict[str, Any] | None:
        """The finished cell of that key, or None."""
        path = self.root / "results" / f"{key}.json"
        return read_json(path) if path.exists() else None

    def failure(self, key: str) -> dict[str, Any] | None:
        """The failure of that key, or None."""
        path = self.root / "failures" / f"{key}.json"
        return read_json(path) if path.exists() else None

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """The arrays kept beside a result; empty where there are none."""
        path = self.root / "arrays" / f"{key}.npz"
        if not path.exists():
            return {}
        with np.load(path) as content:
            return {name: content[name] for name in content.files}

    def results(self) -> Iterator[dict[str, Any]]:
        """Every finished cell, also those that the latest plans no longer ask for."""
        for path in self._files("results"):
            yield read_json(path)

    # -------------------------------------------------------------------------------------------------------- runs

    def open_run(self, about: dict[str, Any], cells: Iterable[dict[str, Any]]) -> str:
        """Record that a run begins, with its cells as plain values; gives the run's id."""
        # The name sorts by time; the process id keeps two runs of one moment apart.
        identity = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}-{os.getpid()}"
        record = {**about, "format": FORMAT, "id": identity, "started": time.time(), "finished": None, "state": "open"}
        write_json(self.root / "runs" / f"{identity}.json", {**record, "cells": list(cells)})
        return identity

    def close_run(self, identity: str, **outcome: Any) -> None:
        """Record how a run ended."""
        path = self.root / "runs" / f"{identity}.json"
        write_json(path, {**read_json(path), "finished": time.time(), **outcome})

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the earliest first."""
        return [read_json(path) for path in sorted(self._files("runs"))]

    def plan(self) -> list[dict[str, Any]]:
        """The cells that the runs asked for, one a place in a table.

        It is the latest run's cell. Where that one is not finished but an earlier one at the same place is (the code,
        the data or a parameter has changed since), it is the earlier one, marked ``"stale"``: a report made in the
        middle of a new run shows the old number and can say so.

        A run marked ``"whole"`` had all methods in its plan, so it also removes the rows of earlier runs that it does
        not name (a preset that was renamed, a method that is gone) from the tables that it filled.
        """
        asked: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for run in self.runs():
            places = {_place(cell): cell for cell in run["cells"]}
            if run.get("whole"):
                filled = {place[:2] for place in places}
                asked = {p: cells for p, cells in asked.items() if p in places or p[:2] not in filled}
            for place, cell in places.items():
                asked.setdefault(place, []).append(cell)
        return [self._newest_finished(cells) for cells in asked.values()]

    def _newest_finished(self, cells: list[dict[str, Any]]) -> dict[str, Any]:
        for cell in reversed(cells):
            if cell["key"] in self:
                return {**cell, "stale": cell["key"] != cells[-1]["key"]}
        return {**cells[-1], "stale": False}

    def _files(self, folder: str) -> Iterator[Path]:
        # Files being written start with a dot and do not match.
        yield from sorted((self.root / folder).glob("[!.]*.json"))


def _place(cell: dict[str, Any]) -> tuple[Any, ...]:
    setting = json.dumps(cell["setting"], sort_keys=True)
    return cell["experiment"], cell["dataset"], cell["row"], setting, cell["seed"]


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
    """What `write_json` wrote."""
    try:
        return _decode(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise DataError(f"{path} is not a result file ({error}). Delete it and run again.") from error


def _encode(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _decode(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_decode(v) for v in value]
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value

"""store -> entries: the results as the tables need them, seeds averaged.

An entry is one cell of a printed table: an experiment, a data set, a row and, in a curve, the value of a parameter. It
averages over seeds and gives their standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from contone.experiments.describe import canonical
from contone.experiments.store import Store


@dataclass(frozen=True)
class Entry:
    """The results at one place of a table.

    Attributes
    ----------
    experiment, dataset, row, setting
        The place.
    method, kind : str
        The class behind the row; "method", "baseline" or "oracle".
    status : str
        "done", "failed" (no seed came through) or "pending" (not computed yet).
    scores, deviation : dict
        Mean over seeds by measure, and standard deviation where there are several.
    seeds : int
        Seeds that came through.
    time : dict
        Mean CPU and wall seconds of a seed.
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
    kind: str
    setting: dict[str, Any] = field(default_factory=dict)
    status: str = "pending"
    scores: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    seeds: int = 0
    time: dict[str, float] = field(default_factory=dict)
    records: tuple[dict[str, Any], ...] = ()
    failures: tuple[dict[str, Any], ...] = ()
    stale: bool = False


class Results:
    """Entries, found by their place."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)
        self._found = {_place(e.experiment, e.dataset, e.row, e.setting): e for e in self.entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def get(self, experiment: str, dataset: str, row: str, setting: dict[str, Any] | None = None) -> Entry | None:
        """The entry at a place, or None where no run asked for it."""
        return self._found.get(_place(experiment, dataset, row, setting or {}))

    def of(self, experiment: str) -> list[Entry]:
        """The entries of an experiment, in the order of the plan."""
        return [entry for entry in self.entries if entry.experiment == experiment]

    def rows(self, experiment: str) -> list[str]:
        """The rows of an experiment, in the order of the plan."""
        return list(dict.fromkeys(entry.row for entry in self.of(experiment)))

    def kinds(self, experiment: str) -> dict[str, str]:
        """The kind of every row of an experiment: "method", "baseline" or "oracle"."""
        found: dict[str, str] = {}
        for entry in self.of(experiment):
            found.setdefault(entry.row, entry.kind)
        return found

    def datasets(self, experiment: str) -> list[str]:
        """The data sets of an experiment, in the order of the plan."""
        return list(dict.fromkeys(entry.dataset for entry in self.of(experiment)))

    def score(self, experiment: str, dataset: str, row: str, measure: str) -> float | None:
        """A mean score, or None where there is none."""
        entry = self.get(experiment, dataset, row)
        return entry.scores.get(measure) if entry is not None and entry.status == "done" else None


def load_results(store: Store) -> Results:
    """Everything that the store's runs asked for, as entries in the order of the plan."""
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for cell in store.plan():
        groups.setdefault(_place(cell["experiment"], cell["dataset"], cell["row"], cell["setting"]), []).append(cell)
    return Results(_entry(cells, store) for cells in groups.values())


def _entry(cells: list[dict[str, Any]], store: Store) -> Entry:
    first = cells[0]
    records = tuple(r for cell in cells if (r := store.result(cell["key"])) is not None)
    failures = tuple(r for cell in cells if (r := store.failure(cell["key"])) is not None)
    names = records[0]["scores"] if records else {}
    values = {name: [record["scores"][name] for record in records] for name in names}
    several = len(records) > 1
    return Entry(
        experiment=first["experiment"],
        dataset=first["dataset"],
        row=first["row"],
        method=first["method"],
        kind="oracle" if first["oracle"] else "baseline" if first["baseline"] else "method",
        setting=first["setting"],
        status="done" if records else "failed" if failures else "pending",
        scores={name: fmean(v) for name, v in values.items()},
        deviation={name: _deviation(v) for name, v in values.items()} if several else {},
        seeds=len(records),
        time={kind: fmean(r["time"][kind] for r in records) for kind in ("cpu", "wall")} if records else {},
        records=records,
        failures=failures,
        stale=any(cell["stale"] for cell in cells),
    )


def _deviation(values: list[float]) -> float:
    return stdev(values) if all(map(math.isfinite, values)) else math.nan


def _place(experiment: str, dataset: str, row: str, setting: dict[str, Any]) -> tuple[str, str, str, str]:
    return experiment, dataset, row, canonical(setting)

"""store -> results: as the tables need them, seeds averaged.

A result is one cell of a printed table: an experiment, a data set, a row and, in a curve, the value of a parameter. It
averages over seeds and gives their standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from contone.experiments.describe import canonical
from contone.experiments.store import Store, place_of
from contone.pages.blocks import Kind
from contone.typing import Record


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
    kind: Kind
    setting: Record = field(default_factory=dict)
    status: str = "pending"
    scores: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    seeds: int = 0
    time: dict[str, float] = field(default_factory=dict)
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

    def score(self, experiment: str, dataset: str, row: str, measure: str) -> float | None:
        """A mean score, or None where there is none."""
        result = self.get(experiment, dataset, row)
        return result.scores.get(measure) if result is not None and result.status == "done" else None


def load_results(store: Store) -> Results:
    """Everything that the store's runs asked for, in the order of the plan."""
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for cell in store.plan():
        groups.setdefault(place_of(cell), []).append(cell)
    found = [_result(cells, store) for cells in groups.values()]
    return Results(found, store.runs(), store.problems())


def _result(cells: list[Record], store: Store) -> Result:
    first = cells[0]
    records = tuple(r for cell in cells if (r := store.result(cell["key"])) is not None)
    failures = tuple(r for cell in cells if (r := store.failure(cell["key"])) is not None)
    names = records[0]["scores"] if records else {}
    values = {name: [record["scores"][name] for record in records] for name in names}
    several = len(records) > 1
    return Result(
        experiment=first["experiment"],
        dataset=first["dataset"],
        row=first["row"],
        method=first["method"],
        kind="oracle" if first["oracle"] else "baseline" if first["baseline"] else "method",
        setting=first["setting"],
        status="done" if records else failures[0]["status"] if failures else "pending",
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

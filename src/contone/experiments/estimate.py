"""What a run will cost, before it starts.

Every row is tried on a few rows of the smallest data set, at two sizes, which gives its time and how it grows with the
number of rows; other data sets are scaled from there, in proportion to the number of labels. What the store already
knows about a row on the same data set is taken instead. The figures are rough: they tell minutes from days.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from contone.experiments.cells import Cell, unique
from contone.experiments.compute import attempt
from contone.experiments.data import load
from contone.experiments.store import Store

PROBE_ROWS = (120, 480)
"""Rows of the two trials."""

LONG_TRIAL = 2.0
"""Seconds: after a first trial as long as this there is no second one, and the time is taken to grow with the rows."""

EXPONENTS = (1.0, 2.5)
"""The growth with the number of rows is kept within these powers: two short trials alone could say anything."""


@dataclass(frozen=True)
class Estimate:
    """Expected seconds: of every cell by its key, of the whole run, and of its longest cell.

    `unknown` are rows that failed in the trial, and whose time is taken to be the mean of the others.
    """

    cells: dict[str, float]
    seconds: float
    longest: Cell | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Growth:
    """The time of a row on some rows of a data set, and the power of n with which it grows."""

    seconds: float
    n: int
    q: int
    power: float

    def scaled(self, n: int, q: int) -> float:
        return float(self.seconds * (n / self.n) ** self.power * max(1.0, q / self.q))


def estimate(
    cells: Sequence[Cell], store: Store, *, jobs: int = 1, told: Callable[[str], None] = lambda row: None
) -> Estimate:
    """What the cells that the store does not hold yet will take with `jobs` processes; `told` hears of every trial."""
    todo = [cell for cell in unique(cells) if cell.key not in store]
    known = _known(store)
    trials: dict[tuple[str, str], _Growth | None] = {}
    costs: dict[str, float | None] = {}
    for cell in sorted(todo, key=lambda c: len(load(c.dataset, c.source).X)):
        seen = known.get((cell.experiment, cell.row, cell.data_hash))
        place = cell.experiment, cell.row
        if seen is None and place not in trials:
            told(cell.row)
            trials[place] = _try(cell)
        trial = trials.get(place)
        X, D, *_ = load(cell.dataset, cell.source)
        costs[cell.key] = seen if seen is not None else trial.scaled(len(X), D.shape[1]) if trial else None
    found = [cost for cost in costs.values() if cost is not None]
    typical = math.fsum(found) / len(found) if found else 0.0
    whole = {key: cost if cost is not None else typical for key, cost in costs.items()}
    longest = max(todo, key=lambda c: whole[c.key], default=None)
    # No run is shorter than its longest cell, however many processes it has.
    seconds = max(math.fsum(whole.values()) / max(1, jobs), max(whole.values(), default=0.0))
    return Estimate(whole, seconds, longest, tuple(row for (_, row), trial in trials.items() if trial is None))


def _known(store: Store) -> dict[tuple[str, str, str], float]:
    """Seconds that rows took on data sets, as the store has them."""
    return {
        (r["cell"]["experiment"], r["cell"]["row"], r["cell"]["data_hash"]): r["time"]["wall"] for r in store.results()
    }


def _try(cell: Cell) -> _Growth | None:
    """The row on a few rows of its data set; None where it fails."""
    X, D, *_ = load(cell.dataset, cell.source)
    sizes = sorted({min(n, len(X)) for n in PROBE_ROWS})
    seconds: list[float] = []
    for n in sizes:
        took = seconds_on(cell, n)
        if took is None:
            return None
        seconds.append(took)
        if took > LONG_TRIAL:
            break
    power = EXPONENTS[0]
    if len(seconds) == 2 and seconds[0] > 0:
        power = float(np.clip(math.log(seconds[1] / seconds[0]) / math.log(sizes[1] / sizes[0]), *EXPONENTS))
    return _Growth(seconds[-1], sizes[len(seconds) - 1], D.shape[1], power)


def seconds_on(cell: Cell, n_rows: int) -> float | None:
    """Time on the processor, as other work on the machine says nothing about this row; None where it fails."""
    done = attempt(cell, n_rows)  # the run itself will say what is wrong
    return None if done.answer is None else done.cpu

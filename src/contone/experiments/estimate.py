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
from contone.experiments.sources import load
from contone.experiments.store import Store

PROBE_ROWS = (120, 480)
"""Rows of the two trials."""

LONG_TRIAL = 2.0
"""Seconds: after a first trial as long as this there is no second one, and the time is taken to grow with the rows."""

EXPONENTS = (1.0, 2.5)
"""The growth with the number of rows is kept within these powers: two short trials alone could say anything."""


Growth = Callable[[int, int], float]
"""Seconds of a row, of the numbers of rows and labels."""


@dataclass(frozen=True)
class Estimate:
    """Expected seconds: of every cell by its key, of the whole run, and of its longest cell.

    `unknown` are rows that failed in the trial, and whose time is taken to be the mean of the others.
    """

    cells: dict[str, float]
    seconds: float
    longest: Cell | None
    unknown: tuple[str, ...] = ()


def estimate(cells: Sequence[Cell], store: Store, *, jobs: int = 1) -> Estimate:
    """What the cells that the store does not hold yet will take with `jobs` processes."""
    todo = [cell for cell in unique(cells) if cell.key not in store]
    kept = (record for record in store.results())
    known = {(r["cell"]["experiment"], r["cell"]["row"], r["cell"]["data_hash"]): r["time"]["wall"] for r in kept}
    grows: dict[tuple[str, str], Growth | None] = {}
    costs: dict[str, float | None] = {}
    for cell in sorted(todo, key=lambda c: len(load(c.dataset, c.source).X)):
        place = cell.experiment, cell.row
        seen = known.get((*place, cell.data_hash))
        if seen is None and place not in grows:
            grows[place] = _try(cell)
        grow = grows.get(place)
        costs[cell.key] = seen if seen is not None else grow(*_size(cell)) if grow else None
    found = [cost for cost in costs.values() if cost is not None]
    typical = math.fsum(found) / len(found) if found else 0.0
    whole = {key: cost if cost is not None else typical for key, cost in costs.items()}
    longest = max(todo, key=lambda c: whole[c.key], default=None)
    # No run is shorter than its longest cell, however many processes it has.
    seconds = max(math.fsum(whole.values()) / max(1, jobs), max(whole.values(), default=0.0))
    return Estimate(whole, seconds, longest, tuple(row for (_, row), grow in grows.items() if grow is None))


def _try(cell: Cell) -> Growth | None:
    """How a row's time grows, from a few rows of its data set; None where it fails."""
    n, q = _size(cell)
    tried: dict[int, float] = {}
    for size in sorted({min(size, n) for size in PROBE_ROWS}):
        took = seconds_on(cell, size)
        if took is None:
            return None
        tried[size] = took
        if took > LONG_TRIAL:
            break
    (first, least), (last, most) = min(tried.items()), max(tried.items())
    power = EXPONENTS[0]
    if last > first and least > 0:
        power = float(np.clip(math.log(most / least) / math.log(last / first), *EXPONENTS))
    return lambda rows, labels: float(most * (rows / last) ** power * max(1.0, labels / q))


def _size(cell: Cell) -> tuple[int, int]:
    return load(cell.dataset, cell.source).D.shape


def seconds_on(cell: Cell, n_rows: int) -> float | None:
    """Time on the processor, as other work on the machine says nothing about this row; None where it fails."""
    done = attempt(cell, n_rows)  # the run itself will say what is wrong
    return None if done.answer is None else done.cpu

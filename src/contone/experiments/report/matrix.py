"""table -> what is printed: rows by data sets, without the columns and rows in which nothing was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from contone.experiments.report.schema import Cell, Kind, Row, Section, Table
from contone.experiments.report.tables import LOWER_END, UPPER_END, best_first, mark_best, mean_of
from contone.limits import recovered
from contone.pages import words

ENDS = {"uniform": LOWER_END, "temperature": "Temperature", "limit": UPPER_END}
"""The rows that stand beside every score: what knows nothing, what knows only the labels, and the strong reference."""

Scores = dict[tuple[str, str, str], float]
"""Finite values by (measure, row, data set)."""

Shares = dict[tuple[str, str], float | None]
"""Recovered shares by (row, data set)."""


@dataclass(frozen=True)
class Printed:
    """A figure as it is printed, the number that it is sorted by, and its marks."""

    text: str = ""
    sort: float | None = None
    best: bool = False
    deviation: str = ""
    failed: bool = False

    @property
    def order(self) -> str:
        """The number that a page sorts by, as JavaScript reads it; empty where there is none."""
        if self.sort is None:
            return ""
        return repr(self.sort) if math.isfinite(self.sort) else ("1e300" if self.sort > 0 else "-1e300")


@dataclass(frozen=True)
class MatrixRow:
    """A printed row; `share` is its mean recovered share."""

    name: str
    kind: Kind
    mean: Printed
    share: Printed
    cells: tuple[Printed, ...]


@dataclass(frozen=True)
class Matrix:
    """A printed table: names of the data sets with their short labels, and rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[MatrixRow, ...]
    has_shares: bool = False


def matrix(table: Table, beside: Mapping[str, Row] | None = None, shares: Shares | None = None) -> Matrix:
    """A table as it is printed.

    `beside` are rows of another table of the same measure, shown where this one lacks them; `shares` adds a column.
    """
    added = [row for name, row in (beside or {}).items() if name not in {r.name for r in table.rows}]
    elsewhere = {row.name: [c for c in row.cells if c.dataset not in table.datasets] for row in added}
    rows = _merge([*table.rows, *added], table) if added else list(table.rows)
    shown = {c.dataset for r in table.rows for c in r.cells if _has_news(c)}
    columns = [d for d in table.datasets if d in shown]
    rows = [r for r in rows if any(_has_news(c) for c in r.cells if c.dataset in shown)]
    return Matrix(
        columns=tuple((d, short(d)) for d in columns),
        has_shares=shares is not None,
        rows=tuple(
            MatrixRow(
                name=r.name,
                kind=r.kind,
                mean=_mean(r, columns, elsewhere.get(r.name, ())),
                share=_mean_share(r.name, columns, shares or {}),
                cells=tuple(_printed(c) for d in columns for c in r.cells if c.dataset == d),
            )
            for r in rows
        ),
    )


def sorted_by_mean(shown: Matrix) -> Matrix:
    """A matrix of shares with the highest mean on top."""
    return replace(shown, rows=tuple(sorted(shown.rows, key=lambda r: best_first(r.mean.sort))))


def short(dataset: str) -> str:
    """The name of a data set where room is short.

    Examples
    --------
    >>> short("yeast-alpha"), short("sjaffe")
    ('alpha', 'sjaffe')
    """
    return dataset.removeprefix("yeast-")


def scores(section: Section) -> Scores:
    """Every finite score of an experiment's tables."""
    return {
        (table.measure, row.name, cell.dataset): cell.value
        for table in section.tables
        for row in table.rows
        for cell in row.cells
        if cell.value is not None and math.isfinite(cell.value)
    }


def share(row: str, dataset: str, own: Scores, lower: float | None, upper: float | None) -> float | None:
    """The recovered share of a row on a data set, or None where one of the three figures is missing."""
    kl = own.get(("kl", row, dataset))
    if kl is None or lower is None or upper is None:
        return None
    found = recovered(kl, lower, upper)
    return found if math.isfinite(found) else None


def _merge(rows: Sequence[Row], table: Table) -> list[Row]:
    """Rows of two tables as one: the same data sets in the same order, the best marked among all of them."""
    merged = []
    for row in rows:
        cells = {c.dataset: c for c in row.cells}
        here = tuple(cells.get(d, Cell(d, None, "", "pending")) for d in table.datasets)
        merged.append(replace(row, cells=here))
    return mark_best(merged, table.greater_is_better)


def _has_news(cell: Cell) -> bool:
    return bool(cell.text) or cell.status == "failed"


def _printed(cell: Cell) -> Printed:
    failed = cell.status == "failed"
    return Printed("failed" if failed else cell.text, cell.value, cell.best, cell.deviation_text, failed)


def _mean(row: Row, columns: Sequence[str], elsewhere: Sequence[Cell]) -> Printed:
    """The mean over the shown data sets; none for a row that lacks one of them, which could not be compared."""
    cells = [c for c in row.cells if c.dataset in columns]
    if not all(c.text for c in cells):
        return Printed()
    others = [*(c for c in row.cells if c.dataset not in columns), *elsewhere]
    if not any(_has_news(c) for c in others):
        return Printed(row.mean_text, row.mean)
    mean = mean_of([c.value for c in cells])
    return Printed(words.number(mean), mean)


def _mean_share(name: str, columns: Sequence[str], shares: Shares) -> Printed:
    mean = mean_of([shares.get((name, d)) for d in columns])
    return Printed(words.percent(mean), mean)

"""results -> tables: every row on every data set in one measure, and the recovered shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from contone import measures
from contone.experiments.report.schema import Cell, Figure, Kind, MeasureInfo, Published, Row, Share, Status, Table
from contone.experiments.results import Entry, Results
from contone.limits import recovered
from contone.pages import words

REPORTED = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection")
"""The measures of the tables."""

EQUAL_IN_PRINT = 5e-5
"""Half a unit of the fourth decimal: values closer than this are printed alike, and share being the best."""

LOWER_END, UPPER_END = "Uniform", "Limit"
"""The rows between which the recovered share is counted."""


class Head(NamedTuple):
    """A row to be filled: its name, its kind, and the name that it was published under."""

    name: str
    kind: Kind
    published_as: str | None = None


Publish = Callable[[Head, str, Status, Entry | None], Published | None]
"""The published figure beside a cell: of a row, a data set, the cell's status and its entry."""


def score_table(
    results: Results,
    experiment: str,
    measure: str,
    *,
    heads: Sequence[Head] | None = None,
    datasets: Sequence[str] | None = None,
    publish: Publish | None = None,
) -> Table:
    """One measure of an experiment; `heads` and `datasets` default to what was asked for, in the order of the plan."""
    info = describe_measure(measure)
    known = results.datasets(experiment)
    chosen = tuple(known if datasets is None else datasets)
    rows = []
    for head in heads_of(results, experiment) if heads is None else heads:
        cells = [_cell(results.get(experiment, d, head.name), head, d, measure, d in known, publish) for d in chosen]
        rows.append(Row(head.name, head.kind, tuple(cells), published_as=head.published_as))
    return Table(
        measure=measure,
        title=info.title,
        formula=info.formula,
        arrow=info.arrow,
        greater_is_better=info.greater_is_better,
        datasets=chosen,
        rows=with_means(mark_best(rows, info.greater_is_better), words.number),
    )


def heads_of(results: Results, experiment: str) -> list[Head]:
    """The rows that were asked for, in the order of the plan."""
    return [Head(name, kind) for name, kind in results.kinds(experiment).items()]  # type: ignore[arg-type]


def _cell(
    entry: Entry | None, head: Head, dataset: str, measure: str, available: bool, publish: Publish | None
) -> Cell:
    status: Status = "no data"
    if entry is not None:
        status = entry.status  # type: ignore[assignment]
    elif available:
        status = "pending"
    done = entry is not None and status == "done"
    value = entry.scores.get(measure) if entry is not None and done else None
    deviation = entry.deviation.get(measure) if entry is not None else None
    shown = deviation is not None and deviation >= EQUAL_IN_PRINT
    return Cell(
        dataset=dataset,
        value=value,
        text=words.number(value),
        status=status,
        deviation=deviation,
        deviation_text=f"± {words.number(deviation)}" if shown else "",
        seeds=entry.seeds if entry is not None else 0,
        published=publish(head, dataset, status, entry) if publish is not None else None,
    )


def recovered_table(results: Results, experiment: str) -> Table:
    """The share of the way from uniform to the limit, in KL(D || D^), for every row and data set."""
    datasets, rows = tuple(results.datasets(experiment)), []
    for head in heads_of(results, experiment):
        cells = []
        for dataset in datasets:
            lower, upper, kl = (
                results.score(experiment, dataset, row, "kl") for row in (LOWER_END, UPPER_END, head.name)
            )
            share = recovered(kl, lower, upper) if None not in (kl, lower, upper) else None  # type: ignore[arg-type]
            share = None if share is not None and math.isnan(share) else share
            cells.append(Cell(dataset, share, words.percent(share)))
        rows.append(Row(head.name, head.kind, tuple(cells)))
    return Table(
        measure="recovered",
        title="Recovered share",
        formula="(KL_uniform - KL) / (KL_uniform - KL_limit)",
        arrow="↑",
        greater_is_better=True,
        datasets=datasets,
        rows=with_means(mark_best(rows, greater_is_better=True), words.percent),
    )


def figure(shares: Table) -> Figure:
    """The recovered shares, as the picture of the summary needs them."""
    rows = tuple(Share(r.name, r.kind, r.mean, tuple(c.value for c in r.cells)) for r in shares.rows)
    return Figure(shares.datasets, rows)


def mark_best(rows: Sequence[Row], greater_is_better: bool) -> list[Row]:
    """The rows with the best value on every data set marked, among those that have not seen the truth.

    Values that are equal in print share it.
    """
    best: list[float | None] = []
    for position in range(len(rows[0].cells) if rows else 0):
        cells = [r.cells[position] for r in rows if r.kind != "oracle"]
        values = [c.value for c in cells if c.value is not None and math.isfinite(c.value)]
        best.append((max(values) if greater_is_better else min(values)) if values else None)

    def marked(row: Row, cell: Cell, target: float | None) -> Cell:
        wins = row.kind != "oracle" and target is not None and cell.value is not None
        return replace(cell, best=wins and abs(cell.value - target) < EQUAL_IN_PRINT)  # type: ignore[operator]

    return [replace(row, cells=tuple(marked(row, c, b) for c, b in zip(row.cells, best, strict=True))) for row in rows]


def with_means(rows: Sequence[Row], text: Callable[[float | None], str]) -> tuple[Row, ...]:
    """The rows with their mean over the data sets that have results; none for a row that lacks one of them."""
    filled = [
        position
        for position in range(len(rows[0].cells) if rows else 0)
        if any(row.cells[position].value is not None for row in rows)
    ]
    found = []
    for row in rows:
        mean = mean_of([row.cells[position].value for position in filled])
        found.append(replace(row, mean=mean, mean_text=text(mean)))
    return tuple(found)


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean, infinite where a value is; None where one is missing or there are none.

    Examples
    --------
    >>> mean_of([0.1, 0.3]), mean_of([0.1, None]), mean_of([0.1, -math.inf])
    (0.2, None, -inf)
    """
    known = [v for v in values if v is not None and not math.isnan(v)]
    if not values or len(known) < len(values):
        return None
    return math.fsum(known) / len(known) if all(map(math.isfinite, known)) else sum(known)


def best_first(mean: float | None) -> tuple[bool, float]:
    """A key that sorts by a mean: the highest first, minus infinity after every number, and rows without one last."""
    return mean is None, -mean if mean is not None else 0.0


def describe_measure(name: str) -> MeasureInfo:
    """A measure in words."""
    measure = measures.get(name)
    return MeasureInfo(name, measure.title, measure.formula, measure.arrow, measure.greater_is_better)

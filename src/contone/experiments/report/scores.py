"""results -> tables: every row on every data set in one measure, and the recovered shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from contone import measures
from contone.experiments.store import Result, Results
from contone.limits import recovered
from contone.pages import words
from contone.pages.blocks import Block, Cell, Column, Fold, Grid, Kind, Row

REPORTED = ("kl", "chebyshev", "clark", "canberra", "cosine", "intersection")
"""The measures of the tables. The recovered share is made of the first."""

EQUAL_IN_PRINT = 5e-5
"""Half a unit of the fourth decimal: values closer than this are printed alike, and share being the best."""

LOWER_END, UPPER_END = "Uniform", "Limit"
"""The rows between which the recovered share is counted."""
ENDS = (LOWER_END, "Temperature", UPPER_END)
"""The rows that stand beside every score: what knows nothing, what knows only the labels, and the strong reference."""
TRAINED_ON_TRUTH = ("Floor", "Truth")
"""The limit of a prediction: what learners reach that were trained on the truth."""

SHARES = "Recovered share"


def score_folds(
    results: Results, experiment: str, main: str, more: Mapping[str, Sequence[Block]] | None = None
) -> list[Fold]:
    """The tables of an experiment that hold a figure, one per measure, with `more` below; the first is open."""
    found: list[Fold] = []
    for name in REPORTED if more is None else more:
        grid, measure = score_grid(results, experiment, name, main), measures.get(name)
        if grid.rows:
            blocks = (grid, *(more or {}).get(name, ()))
            found.append(Fold(f"{measure.title} {measure.arrow}", blocks, measure.formula, is_open=not found))
    return found


def score_grid(results: Results, experiment: str, measure: str, main: str) -> Grid:
    """One measure of an experiment, without the rows and data sets that have no result.

    The `ENDS` that it lacks come from the experiment `main`, except beside predictions, which have ends of their own.
    """
    shown = [d for d in results.datasets(experiment) if any(_has_news(r) for r in results.of(experiment, dataset=d))]
    rows = dict.fromkeys(results.kinds(experiment).items(), experiment)
    known = results.kinds(experiment)
    if not set(known) & set(TRAINED_ON_TRUTH):
        rows |= dict.fromkeys(((n, k) for n, k in results.kinds(main).items() if n in ENDS and n not in known), main)
    lines = []
    for (name, kind), source in rows.items():
        found = [results.get(source, dataset, name) for dataset in shown]
        if any(r is not None and _has_news(r) for r in found):
            shares = [share(results, source, dataset, name, main) for dataset in shown]
            lines.append((name, kind, [_cell(r, measure) for r in found], mean_of(shares)))
    described = measures.get(measure)
    title = f"{described.title} {described.arrow}"
    return as_grid(title, shown, lines, words.number, described.greater_is_better, with_shares=True)


def share_grid(results: Results, experiment: str) -> Grid:
    """The share of the way from uniform to the limit, in KL(D || D^), for every row and data set; the best on top."""
    datasets, lines = results.datasets(experiment), []
    for name, kind in results.kinds(experiment).items():
        values = [share(results, experiment, dataset, name, experiment) for dataset in datasets]
        if any(value is not None for value in values):
            lines.append((name, kind, [Cell(words.percent(v), v) for v in values], None))
    grid = as_grid(SHARES, datasets, lines, words.percent, greater_is_better=True, with_shares=False)
    return replace(grid, rows=tuple(sorted(grid.rows, key=lambda row: best_first(row.cells[0].value))))


def share(results: Results, experiment: str, dataset: str, row: str, main: str) -> float | None:
    """The recovered share of a row on a data set; None where one of its three figures is missing."""
    kl = results.score(experiment, dataset, row, "kl")
    lower, _, upper = ends(results, experiment, dataset, "kl", main)
    if kl is None or lower is None or upper is None:
        return None
    found = recovered(kl, lower, upper)
    return None if math.isnan(found) else found


def ends(results: Results, experiment: str, dataset: str, measure: str, main: str) -> list[float | None]:
    """The scores of the `ENDS`: from the experiment where it has them, or from `main`."""
    found = []
    for name in ENDS:
        own = (name, *TRAINED_ON_TRUTH) if name == UPPER_END else (name,)
        places = [*((experiment, row) for row in own), (main, name)]
        scores = (results.score(source, dataset, row, measure) for source, row in places)
        found.append(next((score for score in scores if score is not None), None))
    return found


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


def short(dataset: str) -> str:
    """The name of a data set where room is short.

    Examples
    --------
    >>> short("yeast-alpha"), short("sjaffe")
    ('alpha', 'sjaffe')
    """
    return dataset.removeprefix("yeast-")


def as_grid(
    title: str,
    datasets: Sequence[str],
    lines: Sequence[tuple[str, Kind, Sequence[Cell], float | None]],
    form: Callable[[float | None], str],
    greater_is_better: bool,
    *,
    with_shares: bool,
) -> Grid:
    """Lines (name, kind, a cell per data set, mean share) as a table, with means and with the best of each column."""
    first, best = "descending" if greater_is_better else "ascending", []
    for k in range(len(datasets)):
        values = [cells[k].value for _, kind, cells, _ in lines if kind != "oracle"]
        finite = [v for v in values if v is not None and math.isfinite(v)]
        best.append((max if greater_is_better else min)(finite, default=math.nan))
    rows = []
    for name, kind, cells, mean_share in lines:
        mean = mean_of([cell.value for cell in cells])
        marked = [
            replace(c, best=kind != "oracle" and c.value is not None and abs(c.value - b) < EQUAL_IN_PRINT)
            for c, b in zip(cells, best, strict=True)
        ]
        shares = [Cell(words.percent(mean_share), mean_share)] if with_shares else []
        rows.append(Row(name, (*shares, Cell(form(mean), mean), *marked), kind))
    columns = [Column("Recovered", "descending")] if with_shares else []
    columns += [Column("Mean", first), *(Column(short(d), first, hint=d) for d in datasets)]
    return Grid(title, tuple(columns), tuple(rows), style="scores")


def _has_news(result: Result) -> bool:
    return result.status != "pending"


def _cell(result: Result | None, measure: str) -> Cell:
    if result is None or result.status != "done":
        state = "" if result is None or not _has_news(result) else result.status
        return Cell(state, state=state)
    value, deviation = result.scores.get(measure), result.deviation.get(measure, 0.0)
    note = f"± {words.number(deviation)}" if deviation >= EQUAL_IN_PRINT else ""
    return Cell(words.number(value), value, note=note)

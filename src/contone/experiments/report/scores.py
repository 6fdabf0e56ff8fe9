"""results -> tables: every row on every data set in one measure, and the recovered shares."""

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


def score_folds(results: Results, experiment: str, more: Mapping[str, Sequence[Block]] | None = None) -> list[Fold]:
    """The tables of an experiment that hold a figure, one per measure, with `more` below; the first is open."""
    found: list[Fold] = []
    for name in REPORTED if more is None else more:
        grid, measure = score_grid(results, experiment, name), measures.get(name)
        if grid.rows:
            blocks = (grid, *(more or {}).get(name, ()))
            found.append(Fold(f"{measure.title} {measure.arrow}", blocks, measure.formula, is_open=not found))
    return found


def score_grid(results: Results, experiment: str, measure: str) -> Grid:
    """One measure of an experiment, without the rows and data sets that have no result."""
    done = dict.fromkeys(result.dataset for result in results.of(experiment) if result.status != "pending")
    kinds, described = results.kinds(experiment), measures.get(measure)
    shares = {row: mean_of([share(results, experiment, d, row) for d in done]) for row in kinds}

    def cell(row: str, dataset: str) -> Cell:
        return _cell(results.get(experiment, dataset, row), measure)

    title = f"{described.title} {described.arrow}"
    return as_grid(title, list(done), kinds, cell, words.number, described.greater_is_better, shares)


def share_grid(results: Results, experiment: str) -> Grid:
    """The share of the way from uniform to the limit, in KL(D || D^), for every row and data set; the best on top."""

    def cell(row: str, dataset: str) -> Cell:
        found = share(results, experiment, dataset, row)
        return Cell(words.percent(found), found)

    kinds = results.kinds(experiment)
    return best_first(as_grid(SHARES, results.datasets(experiment), kinds, cell, words.percent, True))


def share(results: Results, experiment: str, dataset: str, row: str) -> float | None:
    """The recovered share of a row on a data set; None where one of its three figures is missing."""
    kl = results.score(experiment, dataset, row, "kl")
    lower, _, upper = ends(results, experiment, dataset, "kl")
    if kl is None or lower is None or upper is None:
        return None
    found = recovered(kl, lower, upper)
    return None if math.isnan(found) else found


def ends(results: Results, experiment: str, dataset: str, measure: str) -> list[float | None]:
    """The scores of the `ENDS`; the limit of a prediction is that of a learner trained on the truth."""
    found = []
    for name in ENDS:
        rows = (name, *TRAINED_ON_TRUTH) if name == UPPER_END else (name,)
        scores = (results.score(experiment, dataset, row, measure) for row in rows)
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
    kinds: Mapping[str, Kind],
    cell: Callable[[str, str], Cell],
    form: Callable[[float | None], str],
    greater_is_better: bool,
    shares: Mapping[str, float | None] | None = None,
) -> Grid:
    """A table of the rows of these kinds that hold anything: `cell` is of a row and a data set.

    With means, with the mean share of every row where `shares` are given, and with the best of each column.
    """
    first, best = "descending" if greater_is_better else "ascending", []
    lines = {row: [cell(row, dataset) for dataset in datasets] for row in kinds}
    lines = {row: cells for row, cells in lines.items() if any(c.text for c in cells)}
    for k in range(len(datasets)):
        values = [cells[k].value for row, cells in lines.items() if kinds[row] != "oracle"]
        finite = [v for v in values if v is not None and math.isfinite(v)]
        best.append((max if greater_is_better else min)(finite, default=math.nan))
    rows = []
    for row, cells in lines.items():
        mean = mean_of([cell.value for cell in cells])
        marked = [
            replace(c, best=kinds[row] != "oracle" and c.value is not None and abs(c.value - b) < EQUAL_IN_PRINT)
            for c, b in zip(cells, best, strict=True)
        ]
        shown = [Cell(words.percent(shares[row]), shares[row])] if shares is not None else []
        rows.append(Row(row, (*shown, Cell(form(mean), mean), *marked), kinds[row]))
    columns = [Column("Recovered", "descending")] if shares is not None else []
    columns += [Column("Mean", first), *(Column(short(d), first, hint=d) for d in datasets)]
    return Grid(title, tuple(columns), tuple(rows), style="scores")


def best_first(grid: Grid) -> Grid:
    """The table with the best mean first, minus infinity after every number, and rows without a mean last."""
    sign = -1.0 if grid.columns[0].first == "descending" else 1.0

    def place(row: Row) -> tuple[bool, float]:
        mean = row.cells[0].value
        return mean is None, 0.0 if mean is None else sign * mean

    return replace(grid, rows=tuple(sorted(grid.rows, key=place)))


def _cell(result: Result | None, measure: str) -> Cell:
    if result is None or result.status != "done":
        state = "" if result is None or result.status == "pending" else result.status
        return Cell(state, state=state)
    value, deviation = result.scores.get(measure), result.deviation.get(measure, 0.0)
    note = f"± {words.number(deviation)}" if deviation >= EQUAL_IN_PRINT else ""
    return Cell(words.number(value), value, note=note)

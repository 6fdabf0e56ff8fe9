"""published | measured | verdict: every figure of the paper's tables beside ours, under one rule for every table.

Both figures are read as losses (cosine and intersection as one minus themselves), so that a relative difference means
the same for every measure. The first rule that applies gives the verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from contone import measures
from contone.experiments.report.make import as_table
from contone.experiments.report.scores import ENDS, ends, short
from contone.experiments.store import Results
from contone.pages import words
from contone.pages.blocks import Block, Cell, Column, Grid, Heading, Row, Text
from contone.reproduction import paper
from contone.reproduction.paper import Counterparts, counterparts

ROUNDING = 1.5e-4
"""Figures printed with four decimals may be off by this much through rounding alone."""

MATCH_RATIO, CLOSE_RATIO = 0.02, 0.06
"""Relative differences up to which a figure matches, or is close."""
MAIN = "recovery"
FULL_TO_SHORT = {full: short for short, full in paper.DATASETS.items()}
BEYOND_FLOOR = "the published figure is beyond what the best of several learners reaches that are trained on the truth"
N_STANDARD_ERRORS = 3.0
"""A figure is called impossible beyond the floor by this many standard errors of the floor's mean over the folds: the
published run had folds of its own, so that both figures have that error."""
WHY_NOT = {"no data": "not available locally", "failed": "the run failed"}
"""Why a published figure has none of ours beside it; else it was not run."""


@dataclass(frozen=True)
class Verdict:
    """What the comparison of a published figure with ours says.

    Attributes
    ----------
    name : str
        "matches", "close", "better", "worse" or "not comparable".
    difference : float or None
        (measured - published) / published, of the losses: negative is better than published.
    reason : str
        Why the two cannot be compared, or why they differ where that is known.
    """

    name: str
    difference: float | None = None
    reason: str = ""


RULES = {
    "not comparable": "one of the two figures is missing or known to be wrong; the reason is given",
    "matches": f"within {ROUNDING:g} or {MATCH_RATIO:.0%} of the published figure",
    "close": f"within {CLOSE_RATIO:.0%} of the published figure",
    "better": f"more than {CLOSE_RATIO:.0%} below the published loss",
    "worse": f"more than {CLOSE_RATIO:.0%} above the published loss",
}
"""The verdicts, in the order in which they are tried, and when each is given."""


def verdict(
    published: float | None, measured: float | None, *, greater_is_better: bool = False, reason: str = ""
) -> Verdict:
    """The verdict on a measured figure beside a published one.

    Examples
    --------
    >>> verdict(0.0859, 0.0861).name
    'matches'
    >>> verdict(0.9, 0.95, greater_is_better=True).name
    'better'
    """
    if published is None or measured is None:
        return Verdict("not comparable", reason=reason)
    loss, theirs = (1.0 - measured, 1.0 - published) if greater_is_better else (measured, published)
    difference = (loss - theirs) / theirs if theirs > 0 else float("inf")
    if abs(loss - theirs) <= ROUNDING or abs(difference) <= MATCH_RATIO:
        return Verdict("matches", difference)
    if abs(difference) <= CLOSE_RATIO:
        return Verdict("close", difference, reason)
    return Verdict("better" if difference < 0 else "worse", difference, reason)


@dataclass(frozen=True)
class Published:
    """A published figure, and ours in the paper's reading of the measure.

    Attributes
    ----------
    method, row : str
        The row in the paper, and ours.
    measure, dataset : str
        The measure that it is printed under, and the data set (our name).
    printed, measured : float
        The two figures; None where we measured none.
    read_as : str
        The reading of the measure behind the printed figure.
    status : str
        That of our result; "no data" where the data set was not run.
    verdict : Verdict
    """

    method: str
    row: str
    measure: str
    dataset: str
    printed: float
    measured: float | None
    read_as: str
    status: str
    verdict: Verdict


def published_figures(results: Results, experiment: str, tables: paper.Table) -> list[Published]:
    """The figures of the paper's tables of an experiment, beside ours; none where nothing of it was run."""
    known = counterparts().get(experiment, Counterparts())
    names, available = list(results.kinds(experiment)), results.datasets(experiment)
    found = []
    for measure, theirs, name, printed in paper.cells(tables) if names else ():
        row, dataset = known.row(theirs, names) or theirs, paper.DATASETS[name]
        convention = paper.KL_CONVENTION.get(theirs.removeprefix("LCdr-"), "kl_reversed_drop")
        read_as = convention if measure == "kl" else measure
        result = results.get(experiment, dataset, row)
        status = result.status if result else "pending" if dataset in available else "no data"
        measured = results.score(experiment, dataset, row, read_as)
        greater = measures.get(measure).greater_is_better
        wrong, least = known.wrong(theirs, measure, name), bound(results, experiment, dataset, known.floor, read_as)
        if not wrong and least is not None and (printed > least if greater else printed < least):
            wrong = BEYOND_FLOOR
        not_run = {"no data": f"{dataset} was not run", "pending": "not run yet", "failed": "the run failed"}
        why = wrong or not_run.get(status, known.reasons.get(theirs, ""))
        judged = verdict(None if wrong else printed, measured, greater_is_better=greater, reason=why)
        found.append(Published(theirs, row, measure, dataset, printed, measured, read_as, status, judged))
    return found


def bound(results: Results, experiment: str, dataset: str, row: str, measure: str) -> float | None:
    """What no figure can be better than: the floor less its error (in a loss); None where it was not computed."""
    result = results.get(experiment, dataset, row)
    if result is None or not result.records or measure not in result.scores:
        return None
    error = result.records[0].get("extra", {}).get("standard_error", {}).get(measure)
    if error is None or not math.isfinite(error):
        return None
    sign = 1 if measures.get(measure).greater_is_better else -1
    return float(result.scores[measure] + sign * N_STANDARD_ERRORS * error)


def overview(figures: Sequence[Published]) -> Grid:
    """How the figures of each method came out over all sets and measures, and why."""
    done, rows = [figure for figure in figures if figure.status == "done"], []
    for method in dict.fromkeys(figure.method for figure in done):
        mine = [figure for figure in done if figure.method == method]
        verdicts = [figure.verdict.name for figure in mine]
        differences = [d for figure in mine if (d := figure.verdict.difference) is not None and math.isfinite(d)]
        middle = median(differences) if differences else None
        counts = {"Figures": len(mine), **{name: verdicts.count(name) for name in RULES}}
        why = next((figure.verdict.reason for figure in mine if figure.verdict.reason), "")
        told = {"Median difference": Cell(words.difference(middle), middle), "Why they differ": why}
        rows.append({"Method": method, "Our row": mine[0].row, **counts, **told})
    return as_table("Published and measured, method by method", rows, "whole")


def comparison(results: Results, experiment: str, measure: str, figures: Sequence[Published]) -> tuple[Block, ...]:
    """The published figures of one measure beside ours: published / measured, then the verdict on our loss."""
    here = [figure for figure in figures if figure.measure == measure]
    done = [figure for figure in here if figure.status == "done"]
    title = measures.get(measure).title
    blocks: list[Block] = []
    if done:
        blocks.append(Heading("Published / measured, verdict"))
        if any(figure.read_as != measure for figure in done):
            formula = measures.get(measure).formula
            blocks.append(
                Text(
                    f"The paper computes {title} in the other direction, with two treatments of zeros; measured "
                    f"figures follow its reading for each row. Uniform, temperature and limit are {formula}.",
                    "note",
                )
            )
        methods = list(dict.fromkeys(figure.method for figure in done))
        rows = []
        for dataset in dict.fromkeys(figure.dataset for figure in done):
            cells = {figure.method: _pair(figure) for figure in done if figure.dataset == dataset}
            beside = ends(results, experiment, dataset, measure)
            row = [*(cells.get(method, Cell()) for method in methods), *(Cell(words.number(v), v) for v in beside)]
            rows.append(Row(short(dataset), tuple(row)))
        columns = tuple(map(Column, (*methods, *ENDS)))
        blocks.append(Grid(f"{title}: published / measured", columns, tuple(rows), "Set"))
    left_out: dict[str, list[str]] = {}
    for figure in here:
        if figure.status != "done":
            left_out.setdefault(WHY_NOT.get(figure.status, "not run"), []).append(short(figure.dataset))
    if left_out:
        said = [f"{len(sets)} on {', '.join(dict.fromkeys(sets))} ({why})" for why, sets in left_out.items()]
        blocks.append(Text(f"Published figures without a measured one: {'; '.join(said)}.", "note"))
    return tuple(blocks)


def _pair(figure: Published) -> Cell:
    text = f"{words.number(figure.printed)} / {words.number(figure.measured)}"
    difference = words.difference(figure.verdict.difference)
    note = f"{figure.verdict.name}, {difference}" if difference else figure.verdict.name
    return Cell(text, figure.verdict.difference, note=note, state=figure.verdict.name)

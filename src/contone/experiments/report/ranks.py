"""results -> ranks and tests: groups of rows over the data sets that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from contone import measures
from contone.experiments import statistics
from contone.experiments.report.scores import REPORTED, short
from contone.experiments.spec import Spec
from contone.experiments.statistics import Ranking, Wilcoxon
from contone.experiments.store import Results
from contone.pages import svg, words
from contone.pages.blocks import Block, Cell, Charts, Column, Fold, Grid, Heading, Row, Section, Text
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_DATASETS = 5
"""Below this many data sets the test has next to no power, and a diagram would suggest that it had."""
RANK_TOLERANCE, P_TOLERANCE = 0.0051, 1e-6
"""Printed ranks and p-values further than this from ours are marked."""


@dataclass(frozen=True)
class MeasureRanks:
    """Ranks and tests in one measure.

    Attributes
    ----------
    measure, title : str
        Its name, and its title with an arrow.
    ranking : Ranking
    reference : str
        The row that Wilcoxon's tests compare with all others.
    wilcoxon : dict
        The tests by the other row.
    printed_ranks, printed_p : dict
        What was published, by row.
    """

    measure: str
    title: str
    ranking: Ranking
    reference: str
    wilcoxon: dict[str, Wilcoxon]
    printed_ranks: Mapping[str, float]
    printed_p: Mapping[str, float]


@dataclass(frozen=True)
class RankGroup:
    """Rows that are ranked against each other on the data sets that all of them have."""

    name: str
    title: str
    datasets: tuple[str, ...]
    tested: tuple[MeasureRanks, ...]


Printed = Mapping[str, Mapping[str, float]]
"""Published figures by measure and row."""


def group_of_results(
    results: Results,
    experiment: str,
    name: str,
    title: str,
    rows: Sequence[str],
    datasets: Sequence[str],
    reference: str | None = None,
) -> RankGroup | None:
    """Rows of ours ranked on these data sets; None where there are fewer than two sets or three rows."""
    scores = {measure: _complete(results, experiment, rows, datasets, measure) for measure in REPORTED}
    if len(datasets) < 2 or any(len(table) < 3 for table in scores.values()):
        return None
    return rank_group(name, title, scores, datasets, reference)


def rank_group(
    name: str,
    title: str,
    scores: Mapping[str, statistics.Scores],
    datasets: Sequence[str],
    reference: str | None,
    printed_ranks: Printed | None = None,
    printed_p: Printed | None = None,
) -> RankGroup:
    """One group; Wilcoxon's tests are of the reference, or of the row with the best rank, against all others."""
    found = []
    for measure, table in scores.items():
        described = measures.get(measure)
        ranking = statistics.rank(table, greater_is_better=described.greater_is_better)
        against = reference or min(ranking.average_ranks, key=ranking.average_ranks.__getitem__)
        tests = {
            other: statistics.wilcoxon(table[against], row, greater_is_better=described.greater_is_better)
            for other, row in table.items()
            if other != against
        }
        theirs = ((printed or {}).get(measure, {}) for printed in (printed_ranks, printed_p))
        found.append(MeasureRanks(measure, f"{described.title} {described.arrow}", ranking, against, tests, *theirs))
    return RankGroup(name, title, tuple(datasets), tuple(found))


def section(spec: Spec, groups: Sequence[RankGroup]) -> Section:
    """The groups with their diagrams, average ranks and tests."""
    blocks: list[Block] = [Text(spec.note)]
    for group in groups:
        blocks += [Heading(group.title), Text(f"Data sets: {', '.join(map(short, group.datasets))}.", "note")]
        few = len(group.datasets) < MIN_DATASETS
        if few:
            least = MIN_DATASETS
            said = f"it needs at least {least} data sets to mean anything, and there are {len(group.datasets)}"
            blocks.append(Text(f"No critical-difference diagram: {said}.", "note"))
        first, *others = sorted(group.tested, key=lambda tested: tested.measure != REPORTED[0])
        blocks.append(Charts(partial(diagrams, group, [first], titled=False)))
        blocks.append(Fold("Average ranks", (_rank_grid(group),), "1 is best", is_open=True))
        references = ", ".join(dict.fromkeys(tested.reference for tested in group.tested))
        about = f"against {references}; p, and wins–ties–losses of the reference"
        blocks.append(Fold("Wilcoxon signed-rank tests", (_test_grid(group),), about))
        if not few:
            drawn = Charts(partial(diagrams, group, others), "figures")
            blocks.append(Fold("Diagrams in the other measures", (drawn,)))
    return Section("ranks", spec.title, tuple(blocks), spec.question)


def _rank_grid(group: RankGroup) -> Grid:
    rows = []
    for name in group.tested[0].ranking.average_ranks:
        ranked = [(tested.ranking.average_ranks, tested.printed_ranks) for tested in group.tested]
        cells = [
            _beside(ranks.get(name), printed.get(name), ".2f", RANK_TOLERANCE, ranks.get(name) == min(ranks.values()))
            for ranks, printed in ranked
        ]
        rows.append(Row(name, tuple(cells)))
    rankings = [tested.ranking for tested in group.tested]
    friedman = [Cell(f"{r.friedman_p:.1e}" if r.friedman_p is not None else "") for r in rankings]
    nemenyi = [Cell(f"{r.critical_difference:.2f}" if r.critical_difference else "") for r in rankings]
    foot = Row("Friedman p", tuple(friedman)), Row("Critical difference (Nemenyi, 0.05)", tuple(nemenyi))
    columns = tuple(Column(tested.title) for tested in group.tested)
    return Grid(f"{group.title}: average ranks", columns, tuple(rows), foot=foot)


def _test_grid(group: RankGroup) -> Grid:
    rows = []
    for name in group.tested[0].ranking.average_ranks:
        cells = [_test(tested.wilcoxon.get(name), tested.printed_p.get(name)) for tested in group.tested]
        rows.append(Row(name, tuple(cells)))
    columns = tuple(Column(tested.title) for tested in group.tested)
    return Grid(f"{group.title}: Wilcoxon signed-rank tests", columns, tuple(rows))


def _test(test: Wilcoxon | None, printed: float | None) -> Cell:
    if test is None:
        return Cell("reference")
    cell = _beside(test.p_value, printed, ".2e", P_TOLERANCE)
    score = f"{test.wins}–{test.ties}–{test.losses}"
    return replace(cell, note=f"{score}, {cell.note}" if cell.note else score)


def _beside(value: float | None, printed: float | None, form: str, tolerance: float, is_best: bool = False) -> Cell:
    """A figure, with the printed one below it."""
    is_off = printed is not None and value is not None and abs(printed - value) > tolerance
    note = f"printed {format(printed, form)}" if printed is not None else ""
    return Cell(format(value, form) if value is not None else "", value, is_best, note, "off" if is_off else "")


def _complete(
    results: Results, experiment: str, rows: Sequence[str], datasets: Sequence[str], measure: str
) -> dict[str, dict[str, float]]:
    """Scores of the rows that have one on every data set."""
    found = {row: {d: results.score(experiment, d, row, measure) for d in datasets} for row in rows}
    known = {row: {d: v for d, v in values.items() if v is not None} for row, values in found.items()}
    return {row: values for row, values in known.items() if len(values) == len(datasets)}


def diagrams(group: RankGroup, tested: Sequence[MeasureRanks], *, titled: bool = True) -> list[Chart]:
    """A diagram per measure; none where the test cannot be made or says too little."""
    if len(group.datasets) < MIN_DATASETS:
        return []
    return [_diagram(group, one, titled) for one in tested if one.ranking.nemenyi]


def _diagram(group: RankGroup, tested: MeasureRanks, titled: bool) -> Chart:
    import pandas as pd  # comes with scikit-posthocs
    import scikit_posthocs

    ranks, length = tested.ranking.average_ranks, tested.ranking.critical_difference or 0.0
    names, title = list(ranks), tested.title[:-2]
    table = pd.DataFrame(tested.ranking.nemenyi).loc[names, names].to_numpy()
    shown = words.clip_all(names, 34)
    drawn = dict(zip(shown, ranks.values(), strict=True))
    with svg.style():
        drawing = svg.canvas(7.6, 1.3 + 0.125 * len(names))
        axis = drawing.subplots()
        parts = scikit_posthocs.critical_difference_diagram(
            drawn,
            pd.DataFrame(table, index=shown, columns=shown),
            ax=axis,
            label_fmt_left="{label}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}{rank:.2f}",
            label_fmt_right="{rank:.2f}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}{label}",
            elbow_props={"color": svg.SOFT, "linewidth": 0.8},
            marker_props={"color": svg.ACCENT, "s": 16},
            crossbar_props={"color": svg.ACCENT, "linewidth": 2.4, "solid_capstyle": "round"},
            text_h_margin=0.03 * len(names),
        )
        for text in parts["labels"]:
            text.set_color(svg.INK)
        axis.spines["top"].set(visible=True, color=svg.SOFT)
        axis.tick_params(axis="x", color=svg.SOFT)
        _critical_difference(axis, length)
        said = "; ".join(f"{name} {ranks[name]:.2f}" for name in sorted(ranks, key=ranks.__getitem__))
        described = f"Average ranks, best first: {said}. Critical difference {length:.2f}."
        headed = f"{group.title}: average ranks, {title}"
        return Chart(
            svg.to_svg(drawing, f"ranks-{group.name}-{tested.measure}", headed, described),
            f"Average rank in {title} over {len(group.datasets)} data sets, 1 is best. Methods joined by "
            "a bar do not differ at the level 0.05 (Nemenyi).",
            title if titled else "",
        )


def _critical_difference(axis: Axes, length: float) -> None:
    """The length of the critical difference, above the axis where it covers no tick label."""
    left, right = axis.get_xlim()
    start = max(left + 0.02 * (right - left), 1.0)
    end = start + length
    axis.plot([start, end], [2.2, 2.2], color=svg.SECOND, linewidth=2.4, solid_capstyle="round")
    axis.text(end, 2.2, f"  critical difference {length:.2f}", va="center", color=svg.SOFT)
    axis.set_ylim(top=2.6)

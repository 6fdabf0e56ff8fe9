"""results -> ranks and tests: groups of rows over the data sets that all of them have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from contone import measures
from contone.experiments.report.scores import REPORTED, short
from contone.experiments.spec import Spec
from contone.experiments.statistics import Ranking, rank
from contone.experiments.store import Results
from contone.pages import svg, words
from contone.pages.blocks import Block, Cell, Charts, Column, Fold, Grid, Heading, Row, Section, Text
from contone.pages.svg import Axes, Chart

MIN_DATASETS = 5
"""Below this many data sets the test has next to no power, and a diagram would suggest that it had."""
RANK_TOLERANCE, P_TOLERANCE = 0.0051, 1e-6
"""Printed ranks and p-values further than this from ours are marked."""

Printed = Mapping[str, Mapping[str, float]]
"""Published figures by measure and row."""


@dataclass(frozen=True)
class RankGroup:
    """Rows that are ranked against each other on the data sets that all of them have.

    Attributes
    ----------
    name, title : str
        An id, and a heading.
    datasets : tuple of str
    rankings : dict
        Ranks and tests by measure.
    printed_ranks, printed_p : dict
        What was published, by measure and row.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    rankings: Mapping[str, Ranking]
    printed_ranks: Printed = field(default_factory=dict)
    printed_p: Printed = field(default_factory=dict)


def group_of_results(
    results: Results, experiment: str, name: str, title: str, rows: Sequence[str], datasets: Sequence[str], *given: str
) -> RankGroup | None:
    """Rows of ours ranked on these data sets; None where there are fewer than two sets or three rows.

    Wilcoxon's tests are of the row `given`, or else of the one with the best rank, against all others.
    """
    scores = {}
    for measure in REPORTED:
        found = {row: {d: results.score(experiment, d, row, measure) for d in datasets} for row in rows}
        scores[measure] = {row: values for row, values in found.items() if None not in values.values()}
    if len(datasets) < 2 or any(len(table) < 3 for table in scores.values()):
        return None
    return RankGroup(name, title, tuple(datasets), rank_all(scores, *given))


def rank_all(scores: Mapping[str, Any], *given: str) -> dict[str, Ranking]:
    """Ranks and tests in every measure."""
    return {m: rank(t, *given, greater_is_better=measures.get(m).greater_is_better) for m, t in scores.items()}


def section(spec: Spec, groups: Sequence[RankGroup]) -> Section:
    """The groups with their diagrams, average ranks and tests."""
    blocks: list[Block] = [Text(spec.note)]
    for group in groups:
        blocks += [Heading(group.title), Text(f"Data sets: {', '.join(map(short, group.datasets))}.", "note")]
        few = len(group.datasets) < MIN_DATASETS
        if few:
            said = f"it needs at least {MIN_DATASETS} data sets to mean anything, and there are {len(group.datasets)}"
            blocks.append(Text(f"No critical-difference diagram: {said}.", "note"))
        first, *others = sorted(group.rankings, key=lambda measure: measure != REPORTED[0])
        blocks.append(Charts(partial(diagrams, group, [first], titled=False)))
        blocks.append(Fold("Average ranks", (_rank_grid(group),), "1 is best", is_open=True))
        references = ", ".join(dict.fromkeys(ranking.reference for ranking in group.rankings.values()))
        about = f"against {references}; p, and wins–ties–losses of the reference"
        blocks.append(Fold("Wilcoxon signed-rank tests", (_test_grid(group),), about))
        if not few:
            drawn = Charts(partial(diagrams, group, others), "figures")
            blocks.append(Fold("Diagrams in the other measures", (drawn,)))
    return Section("ranks", spec.title, tuple(blocks), spec.question)


def _grid(group: RankGroup, title: str, cell: Callable[[str, str], Cell], foot: tuple[Row, ...] = ()) -> Grid:
    """A table of the group's rows in all measures; `cell` is of a measure and a row."""
    described = [measures.get(measure) for measure in group.rankings]
    names = next(iter(group.rankings.values())).average_ranks
    rows = tuple(Row(name, tuple(cell(measure, name) for measure in group.rankings)) for name in names)
    return Grid(f"{group.title}: {title}", tuple(Column(f"{m.title} {m.arrow}") for m in described), rows, foot=foot)


def _rank_grid(group: RankGroup) -> Grid:
    def cell(measure: str, name: str) -> Cell:
        ranks = group.rankings[measure].average_ranks
        printed, is_best = group.printed_ranks.get(measure, {}).get(name), ranks.get(name) == min(ranks.values())
        return _beside(ranks.get(name), printed, ".2f", RANK_TOLERANCE, is_best)

    rankings = group.rankings.values()
    friedman = [Cell(f"{r.friedman_p:.1e}" if r.friedman_p is not None else "") for r in rankings]
    nemenyi = [Cell(f"{r.critical_difference:.2f}" if r.critical_difference else "") for r in rankings]
    foot = Row("Friedman p", tuple(friedman)), Row("Critical difference (Nemenyi, 0.05)", tuple(nemenyi))
    return _grid(group, "average ranks", cell, foot)


def _test_grid(group: RankGroup) -> Grid:
    def cell(measure: str, name: str) -> Cell:
        test = group.rankings[measure].wilcoxon.get(name)
        if test is None:
            return Cell("reference")
        found = _beside(test.p_value, group.printed_p.get(measure, {}).get(name), ".2e", P_TOLERANCE)
        score = f"{test.wins}–{test.ties}–{test.losses}"
        return replace(found, note=f"{score}, {found.note}" if found.note else score)

    return _grid(group, "Wilcoxon signed-rank tests", cell)


def _beside(value: float | None, printed: float | None, form: str, tolerance: float, is_best: bool = False) -> Cell:
    """A figure, with the printed one below it."""
    is_off = printed is not None and value is not None and abs(printed - value) > tolerance
    note = f"printed {format(printed, form)}" if printed is not None else ""
    return Cell(format(value, form) if value is not None else "", value, is_best, note, "off" if is_off else "")


def diagrams(group: RankGroup, shown: Sequence[str], *, titled: bool = True) -> list[Chart]:
    """A diagram per measure; none where the test cannot be made or says too little."""
    if len(group.datasets) < MIN_DATASETS:
        return []
    return [_diagram(group, measure, titled) for measure in shown if group.rankings[measure].nemenyi]


def _diagram(group: RankGroup, measure: str, titled: bool) -> Chart:
    import pandas as pd  # comes with scikit-posthocs
    import scikit_posthocs

    ranking, title = group.rankings[measure], measures.get(measure).title
    ranks, length = ranking.average_ranks, ranking.critical_difference or 0.0
    names = list(ranks)
    table = pd.DataFrame(ranking.nemenyi).loc[names, names].to_numpy()
    shown = words.clip_all(names, 34)
    drawn = dict(zip(shown, ranks.values(), strict=True))
    with svg.style():
        drawing = svg.canvas(7.6, 1.3 + 0.125 * len(names))
        axis = drawing.subplots()
        parts = scikit_posthocs.critical_difference_diagram(
            drawn,
            pd.DataFrame(table, index=shown, columns=shown),
            ax=axis,
            label_fmt_left="{label}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}{rank:.2f}\N{NO-BREAK SPACE}",
            label_fmt_right="\N{NO-BREAK SPACE}{rank:.2f}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}{label}",
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
            svg.to_svg(drawing, f"ranks-{group.name}-{measure}", headed, described),
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
    axis.text(end, 2.2, f"\N{NO-BREAK SPACE} critical difference {length:.2f}", va="center", color=svg.SOFT)
    axis.set_ylim(top=2.6)

"""Critical-difference diagrams: average ranks on a line, methods that the Nemenyi test cannot tell apart joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contone.pages import svg, words
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from contone.experiments.report.ranks import MeasureRanks, RankGroup

MIN_DATASETS = 5
"""Below this many data sets the test has next to no power, and a diagram would suggest that it had."""


def charts(group: RankGroup, tested: Sequence[MeasureRanks], *, titled: bool = True) -> list[Chart]:
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

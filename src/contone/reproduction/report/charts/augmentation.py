"""The paper's bar chart: each method alone and behind the augmentation, on one data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contone.experiments.report.matrix import short
from contone.pages import svg
from contone.pages.svg import Chart
from contone.reproduction.report.schema import Bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (("alone", "alone", svg.LINE), ("augmented", "augmented", svg.ACCENT))


def chart(bars: Bars) -> Chart | None:
    """Two bars per method, the published figure as a mark across each; None where nothing was measured."""
    pairs = bars.pairs
    measured = [v for p in pairs for v in (p.alone, p.augmented) if v is not None]
    if not measured:
        return None
    published = [v for p in pairs for v in (p.alone_published, p.augmented_published) if v is not None]
    top = _top([*measured, *published])
    with svg.style():
        drawing = svg.canvas(7.6, 2.7)
        axis = drawing.subplots()
        svg.bare(axis, "left")
        axis.grid(axis="y", zorder=0)
        axis.set_ylim(0, 1.08 * top)
        axis.set_xticks(range(len(pairs)), [p.method for p in pairs])
        for text in axis.get_xticklabels():
            text.set_color(svg.INK)
        for place, (key, label, colour) in zip((-0.19, 0.19), KINDS, strict=True):
            _series(axis, [getattr(p, key) for p in pairs], place, colour, label, top)
            _published(axis, [getattr(p, f"{key}_published") for p in pairs], place, top, first=key == "alone")
        axis.set_ylabel(bars.title)
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        words = "; ".join(
            f"{p.method} alone {_number(p.alone)} (published {_number(p.alone_published)}), augmented "
            f"{_number(p.augmented)} (published {_number(p.augmented_published)})"
            for p in pairs
        )
        return Chart(
            svg.to_svg(
                drawing,
                "augmentation",
                f"{bars.title} on {bars.dataset} with and without augmentation",
                f"{words}.",
            ),
            f"{bars.title} on {short(bars.dataset)}; lower is better. Bars: measured. Short lines across: "
            "published, after the paper's row names were put right. A bar that leaves the axis is cut off; its figure "
            "stands inside.",
        )


def _top(values: Sequence[float]) -> float:
    """A height at which most bars can be read: an outlier may not flatten all others."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return max([v for v in ordered if v <= 3 * middle], default=ordered[-1])


def _series(axis: Axes, values: Sequence[float | None], place: float, colour: str, label: str, top: float) -> None:
    known = [(i + place, v) for i, v in enumerate(values) if v is not None]
    axis.bar([x for x, _ in known], [min(v, 1.08 * top) for _, v in known], 0.34, color=colour, label=label, zorder=2)
    for x, v in known:
        # At the foot of the bar, where no mark of a published figure can cover it.
        axis.annotate(
            f"{v:.3f}",
            (x, 0),
            textcoords="offset points",
            xytext=(0, 4),
            ha="center",
            fontsize=7.5,
            color=svg.INK if colour == svg.LINE else svg.GROUND,
            zorder=5,
        )


def _published(axis: Axes, values: Sequence[float | None], place: float, top: float, *, first: bool) -> None:
    for i, value in enumerate(values):
        if value is not None and value <= 1.06 * top:
            axis.plot([i + place - 0.17, i + place + 0.17], [value] * 2, color=svg.SECOND, linewidth=2, zorder=4)
    if first:
        axis.plot([], [], color=svg.SECOND, linewidth=2, label="published")


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4f}"

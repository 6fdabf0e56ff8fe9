"""The paper's bar chart: each method alone and behind the augmentation, on one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contone import measures
from contone.experiments.report.scores import short
from contone.experiments.results import Results
from contone.pages import svg
from contone.pages.svg import Chart
from contone.reproduction import paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATASET, MEASURE = "yeast-cdc", "clark"
"""What the paper draws; another set where that one was not run."""
KINDS = (("alone", svg.LINE), ("augmented", svg.ACCENT))


@dataclass(frozen=True)
class Bar:
    """A method alone and behind the augmentation, measured and published."""

    method: str
    alone: float | None
    augmented: float | None
    alone_published: float | None
    augmented_published: float | None


def charts(results: Results) -> list[Chart]:
    """The chart, where anything was measured."""
    available = results.datasets("augmentation")
    dataset = DATASET if DATASET in available else next(iter(available), DATASET)
    printed, name = paper.augmentation()[MEASURE], short(dataset)
    bars = []
    for method in paper.COMPARED:
        rows = method, f"LCdr-{method}"
        measured = (results.score("augmentation", dataset, row, MEASURE) for row in rows)
        bars.append(Bar(method, *measured, *(printed[row].get(name) for row in rows)))
    return chart(dataset, bars)


def chart(dataset: str, bars: Sequence[Bar]) -> list[Chart]:
    """Two bars per method, the published figure as a mark across each; nothing where nothing was measured."""
    measured = [v for b in bars for v in (b.alone, b.augmented) if v is not None]
    if not measured:
        return []
    published = [v for b in bars for v in (b.alone_published, b.augmented_published) if v is not None]
    top, title = _top([*measured, *published]), measures.get(MEASURE).title
    with svg.style():
        drawing = svg.canvas(7.6, 2.7)
        axis = drawing.subplots()
        svg.bare(axis, "left")
        axis.grid(axis="y", zorder=0)
        axis.set_ylim(0, 1.08 * top)
        axis.set_xticks(range(len(bars)), [b.method for b in bars])
        for text in axis.get_xticklabels():
            text.set_color(svg.INK)
        for place, (kind, colour) in zip((-0.19, 0.19), KINDS, strict=True):
            axis.bar(0, 0, color=colour, label=kind)
            for x, bar in enumerate(bars):
                pair = getattr(bar, kind), getattr(bar, f"{kind}_published")
                _bar(axis, x + place, *pair, colour, top)
        axis.plot([], [], color=svg.SECOND, linewidth=2, label="published")
        axis.set_ylabel(title)
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        words = "; ".join(
            f"{b.method} alone {_number(b.alone)} (published {_number(b.alone_published)}), augmented "
            f"{_number(b.augmented)} (published {_number(b.augmented_published)})"
            for b in bars
        )
        named = f"{title} on {dataset} with and without augmentation"
        caption = (
            f"{title} on {short(dataset)}; lower is better. Bars: measured. Short lines across: published, after the "
            "paper's row names were put right. A bar that leaves the axis is cut off; its figure stands inside."
        )
        return [Chart(svg.to_svg(drawing, "augmentation", named, f"{words}."), caption)]


def _top(values: Sequence[float]) -> float:
    """A height at which most bars can be read: an outlier may not flatten all others."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return max([v for v in ordered if v <= 3 * middle], default=ordered[-1])


def _bar(axis: Axes, x: float, value: float | None, published: float | None, colour: str, top: float) -> None:
    """A bar, cut off above `top`, with its figure at its foot, where no mark of a published figure can cover it."""
    if value is not None:
        axis.bar(x, min(value, 1.08 * top), 0.34, color=colour, zorder=2)
        ink, foot = svg.INK if colour == svg.LINE else svg.GROUND, 0.02 * top
        axis.text(x, foot, f"{value:.3f}", ha="center", fontsize=7.5, color=ink, zorder=5)
    if published is not None and published <= 1.06 * top:
        axis.plot([x - 0.17, x + 0.17], [published] * 2, color=svg.SECOND, linewidth=2, zorder=4)


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4f}"

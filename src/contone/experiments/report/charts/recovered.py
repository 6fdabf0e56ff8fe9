"""The picture of the summary: how far each method gets from uniform to the limit, on each data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contone.pages import svg, words
from contone.pages.blocks import Grid, Row
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEFT = -0.6
"""Shares below this are drawn at the edge, as an arrow: the axis belongs to those that recover something."""


def charts(shares: Grid, *, narrow: bool = False) -> list[Chart]:
    """One line per method: a dot for each data set, a bar for their mean. None where there is no share at all.

    The narrow drawing is for phones, where the wide one would have to be scrolled.
    """
    if not shares.rows:
        return []
    datasets = [column.hint for column in shares.columns[1:]]
    with svg.style():
        drawing = svg.canvas(4.6 if narrow else 7.6, 0.8 + 0.235 * len(shares.rows))
        axis = drawing.subplots()
        _ground(axis, shares.rows)
        for position, row in enumerate(shares.rows):
            _row(axis, position, row, datasets)
        _legend(axis, datasets, 2 if narrow else 4)
        means = "; ".join(f"{_label(r)} {r.cells[0].text}" for r in shares.rows if r.cells[0].text)
        described = f"Mean share over {len(datasets)} data sets, best first: {means}."
        name = "recovered-narrow" if narrow else "recovered"
        return [
            Chart(
                svg.to_svg(drawing, name, "Recovered share of each method on each data set", described),
                "0 % is the uniform distribution, 100 % the limit: what learners trained on the truth make of features "
                "and labels, a strong reference and not a bound. Each dot is a data set, each bar the mean of a row. "
                "An arrow at the left edge: further off.",
            )
        ]


def _ground(axis: Axes, rows: Sequence[Row]) -> None:
    svg.bare(axis, "left", "bottom")
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_yticks(range(len(rows)), words.clip_all([_label(r) for r in rows], 36))
    for text, row in zip(axis.get_yticklabels(), rows, strict=True):
        text.set_color(svg.INK if row.kind == "method" else svg.SOFT)
        text.set_fontstyle("italic" if row.kind == "oracle" else "normal")
    axis.set_xlim(LEFT - 0.04, 1.08)
    axis.set_xticks([-0.5, 0, 0.5, 1], ["−50 %", "0 %\nuniform", "50 %", "100 %\nlimit"])
    axis.grid(axis="x", zorder=0)
    for end in (0, 1):
        axis.axvline(end, color=svg.SOFT, linewidth=0.9, zorder=1)


def _row(axis: Axes, position: int, row: Row, datasets: Sequence[str]) -> None:
    colour = svg.ACCENT if row.kind == "method" else svg.SOFT
    mean, *values = (cell.value for cell in row.cells)
    shown = [(v, d) for v, d in zip(values, datasets, strict=True) if v is not None]
    inside = [v for v, _ in shown if v >= LEFT]
    if inside:
        axis.plot([min(inside), max(inside)], [position] * 2, color=colour, alpha=0.35, linewidth=1.2, zorder=2)
    for value, dataset in shown:
        if value < LEFT:
            axis.plot(LEFT, position, marker="<", markersize=4.5, color=colour, alpha=0.7, zorder=3, linestyle="none")
        else:
            axis.plot(value, position, _marker(dataset), color=colour, alpha=0.55, ms=4.3, mew=0, zorder=3)
    if mean is not None and mean >= LEFT:
        axis.plot([mean] * 2, [position - 0.34, position + 0.34], color=svg.INK, linewidth=2.2, zorder=4)


def _marker(dataset: str) -> str:
    """Dots for the Yeast sets, which are alike; other shapes for the sets that are not."""
    return "o" if dataset.startswith("yeast") else "D" if dataset.startswith("artificial") else "s"


def _legend(axis: Axes, datasets: Sequence[str], columns: int) -> None:
    kinds = {"Yeast sets": [d for d in datasets if d.startswith("yeast")]}
    kinds["artificial"] = [d for d in datasets if d.startswith("artificial")]
    others = [d for d in datasets if not d.startswith(("yeast", "artificial"))]
    named = ", ".join(others)
    kinds[named if len(named) <= 40 else "other sets"] = others
    for label, members in kinds.items():
        if members:
            axis.plot([], [], _marker(members[0]), color=svg.SOFT, ms=4.3, mew=0, label=label)
    axis.plot([], [], color=svg.INK, linewidth=2.2, label="mean")
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, handletextpad=0.5)


def _label(row: Row) -> str:
    return row.name if row.kind == "method" else f"{row.name}, {row.kind}"

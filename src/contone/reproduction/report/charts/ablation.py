"""The ablation: what each part of LCdr changes, published and measured, against the uniform answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from contone.experiments.report.matrix import short
from contone.experiments.report.schema import Cell, Table
from contone.pages import svg
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VARIANTS = {"LF+LC": ("o", svg.ACCENT), "X+LC": ("D", svg.ACCENT), "LF+L": ("o", svg.SECOND), "X+L": ("D", svg.SECOND)}
"""Marks: the circle has reduced features, the diamond all of them; the accent has label confidence."""

RIGHT = 1.6
"""Ratios above this are drawn at the edge, as an arrow."""


def chart(table: Table, uniform: Mapping[str, float]) -> Chart | None:
    """Three panels (published, measured, measured with the tuned settings); None where nothing was measured.

    Parameters
    ----------
    table : Table
        The ablation in one measure.
    uniform : dict
        The uniform distribution's score in that measure by data set: all scores are drawn as multiples of it.
    """
    rows = {r.name: {c.dataset: c for c in r.cells} for r in table.rows}
    panels = [
        ("Published", {v: _values(rows.get(v, {}), _published, uniform) for v in VARIANTS}),
        ("Measured", {v: _values(rows.get(v, {}), _measured, uniform) for v in VARIANTS}),
        ("Measured, tuned settings", {v: _values(rows.get(f"{v} (tuned)", {}), _measured, uniform) for v in VARIANTS}),
    ]
    measured = {d for _, panel in panels[1:] for series in panel.values() for d in series}
    datasets = [d for d in table.datasets if d in measured]
    if not datasets:
        return None
    panels = [(title, panel) for title, panel in panels if any(d in s for s in panel.values() for d in datasets)]
    with svg.style():
        drawing = svg.canvas(7.6, 0.9 + 0.21 * len(datasets))
        axes = drawing.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[0]
        for axis, (title, panel) in zip(axes, panels, strict=True):
            _panel(axis, title, panel, datasets)
        axes[0].set_yticks(range(len(datasets)), [short(d) for d in datasets])
        axes[0].set_ylim(len(datasets) - 0.4, -0.6)
        axes[len(axes) // 2].set_xlabel(f"{table.title}, as a multiple of the uniform distribution's")
        for variant, (marker, colour) in VARIANTS.items():
            axes[0].plot([], [], linestyle="none", marker=marker, color=colour, markersize=4.5, label=variant)
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        return Chart(
            svg.to_svg(drawing, "ablation", f"Ablation of LCdr in {table.title}", _words(panels, datasets)),
            "LF: reduced features, X: all features; LC: label confidence, L: logical labels. 1 is the uniform "
            "distribution, lower is better; an arrow at the right edge: further off.",
        )


def _values(
    cells: Mapping[str, Cell], value: Callable[[Cell], float | None], uniform: Mapping[str, float]
) -> dict[str, float]:
    known = {d: v for d, c in cells.items() if (v := value(c)) is not None and math.isfinite(v)}
    return {d: v / uniform[d] for d, v in known.items() if uniform.get(d)}


def _measured(cell: Cell) -> float | None:
    return cell.value


def _published(cell: Cell) -> float | None:
    return cell.published.value if cell.published is not None else None


def _panel(axis: Axes, title: str, panel: Mapping[str, Mapping[str, float]], datasets: Sequence[str]) -> None:
    svg.bare(axis, "left", "bottom")
    axis.set_title(title, loc="left", color=svg.INK)
    axis.grid(axis="y", zorder=0)
    axis.axvline(1, color=svg.SOFT, linewidth=0.9, zorder=1)
    # Four marks that coincide would hide each other: a little apart in height, in a fixed order.
    for shift, (variant, (marker, colour)) in zip((-0.24, -0.08, 0.08, 0.24), VARIANTS.items(), strict=True):
        for position, dataset in enumerate(datasets):
            value = panel[variant].get(dataset)
            if value is not None:
                far = value > RIGHT
                axis.plot(
                    min(value, RIGHT),
                    position + shift,
                    marker=">" if far else marker,
                    markersize=4,
                    markeredgewidth=0,
                    color=colour,
                    zorder=3,
                )


def _words(panels: Sequence[tuple[str, Mapping[str, Mapping[str, float]]]], datasets: Sequence[str]) -> str:
    said = []
    for title, panel in panels:
        means = []
        for variant, series in panel.items():
            known = [series[d] for d in datasets if d in series]
            if known:
                means.append(f"{variant} {sum(known) / len(known):.2f}")
        said.append(f"{title}, mean multiple of uniform: {', '.join(means)}.")
    return " ".join(said)

"""The ablation: what each part of LCdr changes, published and measured, against the uniform answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from contone import measures
from contone.experiments.report.scores import short
from contone.experiments.results import Results
from contone.pages import svg
from contone.pages.svg import Chart
from contone.reproduction.report.published import MAIN, Published

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURE = "chebyshev"
VARIANTS = {"LF+LC": ("o", svg.ACCENT), "X+LC": ("D", svg.ACCENT), "LF+L": ("o", svg.SECOND), "X+L": ("D", svg.SECOND)}
"""Marks: the circle has reduced features, the diamond all of them; the accent has label confidence."""
RIGHT = 1.6
"""Ratios above this are drawn at the edge, as an arrow."""

Panel: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores by variant and data set, as multiples of the uniform distribution's."""


def charts(results: Results, figures: Sequence[Published]) -> list[Chart]:
    """Three panels (published, measured, measured with the tuned settings); nothing where nothing was measured."""
    found = {d: results.score(MAIN, d, "Uniform", MEASURE) for d in results.datasets("ablation")}
    uniform = {d: score for d, score in found.items() if score}
    printed = {(f.method, f.dataset): f.printed for f in figures if f.measure == MEASURE}

    def panel(scores: Mapping[tuple[str, str], float | None]) -> Panel:
        known = {place: v for place, v in scores.items() if v is not None and math.isfinite(v)}
        return {v: {d: known[v, d] / u for d, u in uniform.items() if (v, d) in known} for v in VARIANTS}

    def measured(suffix: str) -> Panel:
        places = [(v, d) for v in VARIANTS for d in uniform]
        return panel({(v, d): results.score("ablation", d, f"{v}{suffix}", MEASURE) for v, d in places})

    panels = {"Measured": measured(""), "Measured, tuned settings": measured(" (tuned)")}
    datasets = [d for d in uniform if any(d in series for shown in panels.values() for series in shown.values())]
    return [_chart({"Published": panel(printed), **panels}, datasets)] if datasets else []


def _chart(panels: Mapping[str, Panel], datasets: Sequence[str]) -> Chart:
    """The panels that hold anything, side by side."""
    title = measures.get(MEASURE).title
    shown = [(name, panel) for name, panel in panels.items() if any(d in s for s in panel.values() for d in datasets)]
    with svg.style():
        drawing = svg.canvas(7.6, 0.9 + 0.21 * len(datasets))
        axes = drawing.subplots(1, len(shown), sharey=True, sharex=True, squeeze=False)[0]
        for axis, (name, panel) in zip(axes, shown, strict=True):
            _panel(axis, name, panel, datasets)
        axes[0].set_yticks(range(len(datasets)), [short(d) for d in datasets])
        axes[0].set_ylim(len(datasets) - 0.4, -0.6)
        axes[len(axes) // 2].set_xlabel(f"{title}, as a multiple of the uniform distribution's")
        for variant, (marker, colour) in VARIANTS.items():
            axes[0].plot([], [], linestyle="none", marker=marker, color=colour, markersize=4.5, label=variant)
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        return Chart(
            svg.to_svg(drawing, "ablation", f"Ablation of LCdr in {title}", _words(shown, datasets)),
            "LF: reduced features, X: all features; LC: label confidence, L: logical labels. 1 is the uniform "
            "distribution, lower is better; an arrow at the right edge: further off.",
        )


def _panel(axis: Axes, title: str, panel: Panel, datasets: Sequence[str]) -> None:
    svg.bare(axis, "left", "bottom")
    axis.set_title(title, loc="left", color=svg.INK)
    axis.grid(axis="y", zorder=0)
    axis.axvline(1, color=svg.SOFT, linewidth=0.9, zorder=1)
    # Four marks that coincide would hide each other: a little apart in height, in a fixed order.
    for shift, (variant, (marker, colour)) in zip((-0.24, -0.08, 0.08, 0.24), VARIANTS.items(), strict=True):
        for position, value in ((i + shift, panel[variant].get(d)) for i, d in enumerate(datasets)):
            if value is not None:
                mark = ">" if value > RIGHT else marker
                axis.plot(min(value, RIGHT), position, marker=mark, ms=4, mew=0, color=colour, zorder=3)


def _words(panels: Sequence[tuple[str, Panel]], datasets: Sequence[str]) -> str:
    said = []
    for title, panel in panels:
        known = {variant: [series[d] for d in datasets if d in series] for variant, series in panel.items()}
        means = ", ".join(f"{variant} {fmean(values):.2f}" for variant, values in known.items() if values)
        said.append(f"{title}, mean multiple of uniform: {means}.")
    return " ".join(said)

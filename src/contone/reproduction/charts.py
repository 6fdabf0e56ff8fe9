"""Pictures of the paper: its bar chart of the augmentation, the ablation, and LCdr as one parameter changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from contone import measures
from contone.experiments.report.scores import short
from contone.experiments.store import Results
from contone.pages import svg, words
from contone.pages.svg import Chart
from contone.reproduction import paper
from contone.reproduction.published import MAIN, Published

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AUGMENTED = "yeast-cdc"
"""The set of the paper's bar chart; another one where that was not run."""
BARS = {"alone": ("{}", svg.LINE), "augmented": ("LCdr-{}", svg.ACCENT)}
"""Each method alone and behind the augmentation: the name of the row, and the colour."""
VARIANTS = {"LF+LC": ("o", svg.ACCENT), "X+LC": ("D", svg.ACCENT), "LF+L": ("o", svg.SECOND), "X+L": ("D", svg.SECOND)}
"""Marks: the circle has reduced features, the diamond all of them; the accent has label confidence."""
RIGHT = 1.6
"""Ratios above this are drawn at the edge, as an arrow."""
COLOURS = (svg.ACCENT, svg.SECOND, svg.SOFT)
SYMBOLS = {"alpha": "α", "beta": "β", "n_components": "d'", "n_neighbors": "k"}
"""The paper's letters for LCdr's parameters."""
PAPER_VALUES: dict[str, float] = {"alpha": 0.1, "beta": 0.1, "n_components": 10, "n_neighbors": 10}
"""What the paper sets them to."""

Pair = tuple[float | None, float | None]
"""A figure, measured and published."""

Panel: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores by variant and data set, as multiples of the uniform distribution's."""


def augmentation(results: Results) -> list[Chart]:
    """The paper's bar chart: each method alone and behind the augmentation, on one data set."""
    available = results.datasets("augmentation")
    dataset = AUGMENTED if AUGMENTED in available else next(iter(available), AUGMENTED)
    printed, bars = paper.augmentation()["clark"], dict[tuple[str, str], Pair]()
    for method in paper.COMPARED:
        for kind, (form, _) in BARS.items():
            row = form.format(method)
            measured = results.score("augmentation", dataset, row, "clark")
            bars[method, kind] = measured, printed[row].get(short(dataset))
    return augmentation_chart(dataset, bars)


def augmentation_chart(dataset: str, bars: Mapping[tuple[str, str], Pair]) -> list[Chart]:
    """Bars by method and kind, the published figure as a mark across each; nothing where nothing was measured."""
    if all(measured is None for measured, _ in bars.values()):
        return []
    top = _top([value for pair in bars.values() for value in pair if value is not None])
    title, methods = measures.get("clark").title, list(dict.fromkeys(method for method, _ in bars))
    with svg.style():
        drawing = svg.canvas(7.6, 2.7)
        axis = drawing.subplots()
        svg.bare(axis, "left")
        axis.grid(axis="y", zorder=0)
        axis.set_ylim(0, 1.08 * top)
        axis.set_xticks(range(len(methods)), methods)
        for text in axis.get_xticklabels():
            text.set_color(svg.INK)
        for place, (kind, (_, colour)) in zip((-0.19, 0.19), BARS.items(), strict=True):
            axis.bar(0, 0, color=colour, label=kind)
            for x, method in enumerate(methods):
                _bar(axis, x + place, *bars.get((method, kind), (None, None)), colour, top)
        axis.plot([], [], color=svg.SECOND, linewidth=2, label="published")
        axis.set_ylabel(title)
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        said = "; ".join(
            f"{method} {kind} {_number(measured)} (published {_number(published)})"
            for (method, kind), (measured, published) in bars.items()
        )
        named = f"{title} on {dataset} with and without augmentation"
        caption = (
            f"{title} on {short(dataset)}; lower is better. Bars: measured. Short lines across: published, after the "
            "paper's row names were put right. A bar that leaves the axis is cut off; its figure stands inside."
        )
        return [Chart(svg.to_svg(drawing, "augmentation", named, f"{said}."), caption)]


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


def ablation(results: Results, figures: Sequence[Published]) -> list[Chart]:
    """What each part of LCdr changes: published, measured, and measured with tuned settings."""
    found = {d: results.score(MAIN, d, "Uniform", "chebyshev") for d in results.datasets("ablation")}
    uniform = {d: score for d, score in found.items() if score}
    printed = {(f.method, f.dataset): f.printed for f in figures if f.measure == "chebyshev"}

    def panel(scores: Mapping[tuple[str, str], float | None]) -> Panel:
        known = {place: v for place, v in scores.items() if v is not None and math.isfinite(v)}
        return {v: {d: known[v, d] / u for d, u in uniform.items() if (v, d) in known} for v in VARIANTS}

    def measured(suffix: str) -> Panel:
        places = [(v, d) for v in VARIANTS for d in uniform]
        return panel({(v, d): results.score("ablation", d, f"{v}{suffix}", "chebyshev") for v, d in places})

    panels = {"Measured": measured(""), "Measured, tuned settings": measured(" (tuned)")}
    datasets = [d for d in uniform if any(d in series for shown in panels.values() for series in shown.values())]
    return [_ablation_chart({"Published": panel(printed), **panels}, datasets)] if datasets else []


def _ablation_chart(panels: Mapping[str, Panel], datasets: Sequence[str]) -> Chart:
    """The panels that hold anything, side by side."""
    title = measures.get("chebyshev").title
    shown = [(name, panel) for name, panel in panels.items() if any(d in s for s in panel.values() for d in datasets)]
    with svg.style():
        drawing = svg.canvas(7.6, 0.9 + 0.21 * len(datasets))
        axes = drawing.subplots(1, len(shown), sharey=True, sharex=True, squeeze=False)[0]
        for axis, (name, panel) in zip(axes, shown, strict=True):
            _ablation_panel(axis, name, panel, datasets)
        axes[0].set_yticks(range(len(datasets)), [short(d) for d in datasets])
        axes[0].set_ylim(len(datasets) - 0.4, -0.6)
        axes[len(axes) // 2].set_xlabel(f"{title}, as a multiple of the uniform distribution's")
        for variant, (marker, colour) in VARIANTS.items():
            axes[0].plot([], [], linestyle="none", marker=marker, color=colour, markersize=4.5, label=variant)
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        return Chart(
            svg.to_svg(drawing, "ablation", f"Ablation of LCdr in {title}", _ablation_words(shown, datasets)),
            "LF: reduced features, X: all features; LC: label confidence, L: logical labels. 1 is the uniform "
            "distribution, lower is better; an arrow at the right edge: further off.",
        )


def _ablation_panel(axis: Axes, title: str, panel: Panel, datasets: Sequence[str]) -> None:
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


def _ablation_words(panels: Sequence[tuple[str, Panel]], datasets: Sequence[str]) -> str:
    said = []
    for title, panel in panels:
        known = {variant: [series[d] for d in datasets if d in series] for variant, series in panel.items()}
        means = ", ".join(f"{variant} {fmean(values):.2f}" for variant, values in known.items() if values)
        said.append(f"{title}, mean multiple of uniform: {means}.")
    return " ".join(said)


@dataclass(frozen=True)
class Curve:
    """A row's scores as one parameter changes, None where there is none; and the uniform distribution's."""

    row: str
    dataset: str
    parameter: str
    values: tuple[float, ...]
    scores: tuple[float | None, ...]
    uniform: float | None


def curves(results: Results, experiment: str = "sensitivity") -> list[Curve]:
    """A curve for each row, data set and parameter with at least one measured point."""
    found: dict[tuple[str, str, str], dict[float, float | None]] = {}
    for result in results.of(experiment):
        for parameter, value in result.setting.items():
            found.setdefault((result.row, result.dataset, parameter), {})[value] = result.scores.get("kl")
    return [
        Curve(*place, tuple(points), tuple(points.values()), results.score("recovery", place[1], "Uniform", "kl"))
        for place, points in found.items()
        if any(score is not None for score in points.values())
    ]


def sensitivity(curves: Sequence[Curve]) -> list[Chart]:
    """A chart for each data set."""
    datasets = dict.fromkeys(curve.dataset for curve in curves)
    return [_strip(dataset, [c for c in curves if c.dataset == dataset]) for dataset in datasets]


def _strip(dataset: str, curves: Sequence[Curve]) -> Chart:
    parameters = list(dict.fromkeys(c.parameter for c in curves))
    rows = list(dict.fromkeys(c.row for c in curves))
    uniform = curves[0].uniform
    with svg.style():
        drawing = svg.canvas(7.6, 1.75)
        axes = drawing.subplots(1, len(parameters), sharey=True, squeeze=False)[0]
        for axis, parameter in zip(axes, parameters, strict=True):
            mine = [c for c in curves if c.parameter == parameter]
            _panel(axis, mine, rows, SYMBOLS.get(parameter, parameter), uniform)
        axes[0].set_ylim(bottom=0)
        axes[0].set_ylabel("KL")
        for row, colour in zip(rows, COLOURS, strict=False):
            axes[0].plot([], [], color=colour, marker="o", markersize=3, label=words.clip(row))
        axes[0].plot([], [], color=svg.SOFT, linewidth=0.9, linestyle=(0, (4, 3)), label="uniform")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
        title = f"Sensitivity of LCdr on {dataset}"
        return Chart(svg.to_svg(drawing, f"sensitivity-{dataset}", title, _words(curves, uniform)), title=dataset)


def _panel(axis: Axes, curves: Sequence[Curve], rows: Sequence[str], symbol: str, uniform: float | None) -> None:
    values = curves[0].values
    axis.grid(axis="y", zorder=0)
    svg.bare(axis, "left")
    # Steps of equal width: the values are a list that someone chose, spread over decades.
    axis.set_xticks(range(len(values)), [_tick(v) for v in values])
    axis.tick_params(axis="x", labelsize=7.5)
    axis.set_xlabel(symbol)
    axis.xaxis.label.set_color(svg.INK)
    if uniform is not None:
        axis.axhline(uniform, color=svg.SOFT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    for curve in curves:
        colour = COLOURS[rows.index(curve.row) % len(COLOURS)]
        place = {v: i for i, v in enumerate(values)}
        known = zip(curve.values, curve.scores, strict=True)
        points = [(place[x], y) for x, y in known if y is not None and x in place]
        axis.plot([x for x, _ in points], [y for _, y in points], color=colour, marker="o", markersize=3, zorder=3)
        at = place.get(PAPER_VALUES.get(curve.parameter, -1.0))
        for x, y in (point for point in points if point[0] == at):
            axis.plot(x, y, marker="o", markersize=6.5, color=colour, fillstyle="none", zorder=3)


def _tick(value: float) -> str:
    """Small numbers as powers of ten, which are narrower."""
    return f"{value:.0e}".replace("e-0", "e−") if 0 < value < 0.001 else f"{value:g}"


def _words(curves: Sequence[Curve], uniform: float | None) -> str:
    said = []
    for c in curves:
        points = ", ".join(f"{x:g}: {y:.4f}" for x, y in zip(c.values, c.scores, strict=True) if y is not None)
        said.append(f"{c.row}, {SYMBOLS.get(c.parameter, c.parameter)} {points}.")
    end = f" Uniform: {uniform:.4f}." if uniform is not None else ""
    return f"KL at each value. {' '.join(said)}{end}"

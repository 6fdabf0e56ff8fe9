"""LCdr as one of its parameters changes: one strip of four panels per data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contone.experiments.results import Results
from contone.pages import svg, words
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURE, TITLE = "kl", "KL"
COLOURS = (svg.ACCENT, svg.SECOND, svg.SOFT)
SYMBOLS = {"alpha": "α", "beta": "β", "n_components": "d'", "n_neighbors": "k"}
"""The paper's letters for LCdr's parameters."""
PAPER_VALUES: dict[str, float] = {"alpha": 0.1, "beta": 0.1, "n_components": 10, "n_neighbors": 10}
"""What the paper sets them to."""


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
            found.setdefault((result.row, result.dataset, parameter), {})[value] = result.scores.get(MEASURE)
    return [
        Curve(*place, tuple(points), tuple(points.values()), results.score("recovery", place[1], "Uniform", MEASURE))
        for place, points in found.items()
        if any(score is not None for score in points.values())
    ]


def charts(curves: Sequence[Curve]) -> list[Chart]:
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
        axes[0].set_ylabel(TITLE)
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
    return f"{TITLE} at each value. {' '.join(said)}{end}"

"""Pictures of the paper: the augmentation, the ablation, and LCdr as one parameter changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from contone import measures
from contone.experiments.report.scores import short
from contone.experiments.store import Results
from contone.pages import svg, words
from contone.pages.svg import Axes, Chart
from contone.reproduction import paper
from contone.reproduction.published import Published
from contone.typing import Record

KINDS = ("alone", "augmented", "alone, published", "augmented, published")
VARIANTS = ("LF+LC", "X+LC", "LF+L", "X+L")
MARKS = (("o", svg.ACCENT), ("D", svg.ACCENT), ("o", svg.SECOND), ("D", svg.SECOND))
"""Four series of a panel: the diamond stands beside the circle, the second pair beside the first."""
RIGHT = 1.6
"""Ratios above this are drawn at the edge, as an arrow."""
COLOURS = (svg.ACCENT, svg.SECOND, svg.SOFT)
DASHES = (0, (4, 3))
SYMBOLS = {"alpha": "α", "beta": "β", "n_components": "d'", "n_neighbors": "k"}
"""The paper's letters for LCdr's parameters."""
PAPER_VALUES: dict[str, float] = {"alpha": 0.1, "beta": 0.1, "n_components": 10, "n_neighbors": 10}
"""What the paper sets them to."""

Panel: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""Scores by series and data set."""


def augmentation(results: Results, figures: Sequence[Published]) -> list[Chart]:
    """Each method alone and behind the augmentation, measured and published."""
    measured, printed = _scores(results, "augmentation", figures, "clark")
    panels = {
        method: dict(zip(KINDS, [table.get(r, {}) for table in (measured, printed) for r in rows], strict=True))
        for method, rows in ((method, (method, f"LCdr-{method}")) for method in paper.COMPARED)
    }
    about = "Published figures stand under the names that the paper's rows should have."
    return _panels(results, "augmentation", "clark", panels, about)


def ablation(results: Results, figures: Sequence[Published]) -> list[Chart]:
    """What each part of LCdr changes: published, measured, and measured with tuned settings."""
    measured, printed = _scores(results, "ablation", figures, "chebyshev")
    tuned = {variant: measured.get(f"{variant} (tuned)", {}) for variant in VARIANTS}
    panels: dict[str, Panel] = {"Published": printed, "Measured": measured, "Measured, tuned settings": tuned}
    shown = {name: {v: panel.get(v, {}) for v in VARIANTS} for name, panel in panels.items()}
    about = "LF: reduced features, X: all features; LC: label confidence, L: logical labels."
    return _panels(results, "ablation", "chebyshev", shown, about)


def _scores(results: Results, experiment: str, figures: Sequence[Published], measure: str) -> tuple[Panel, Panel]:
    """The scores of every row, measured and published."""
    sets = results.datasets(experiment)
    measured = {row: {d: results.score(experiment, d, row, measure) for d in sets} for row in results.kinds(experiment)}
    printed: dict[str, dict[str, float | None]] = {}
    for figure in figures:
        if figure.measure == measure:
            printed.setdefault(figure.method, {})[figure.dataset] = figure.printed
    return measured, printed


def _panels(results: Results, experiment: str, measure: str, panels: Mapping[str, Panel], about: str) -> list[Chart]:
    """Panels side by side, with a mark per series and data set that was measured, as multiples of uniform's score."""
    done = [result.dataset for result in results.of(experiment) if result.status == "done"]
    found = {d: results.score(experiment, d, "Uniform", measure) for d in done}
    uniform = {d: score for d, score in found.items() if score}
    relative = {name: {s: _relative(values, uniform) for s, values in p.items()} for name, p in panels.items()}
    shown = {name: panel for name, panel in relative.items() if any(panel.values())}
    if not shown:
        return []
    title, said = measures.get(measure).title, []
    with svg.style():
        drawing = svg.canvas(7.6, 0.9 + 0.21 * len(uniform))
        axes = drawing.subplots(1, len(shown), sharey=True, sharex=True, squeeze=False)[0]
        for axis, (name, panel) in zip(axes, shown.items(), strict=True):
            _marks(axis, panel, list(uniform))
            axis.set_title(name, loc="left", color=svg.INK)
            means = ", ".join(f"{series} {fmean(v.values()):.2f}" for series, v in panel.items() if v)
            said.append(f"{name}, mean multiple of uniform: {means}.")
        axes[0].set_yticks(range(len(uniform)), map(short, uniform))
        axes[0].set_ylim(len(uniform) - 0.4, -0.6)
        axes[len(axes) // 2].set_xlabel(f"{title}, as a multiple of the uniform distribution's")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        caption = f"{about} 1 is the uniform distribution, lower is better; an arrow at the right edge: further off."
        named = f"{experiment.capitalize()}: {title} on each data set"
        return [Chart(svg.to_svg(drawing, experiment, named, " ".join(said)), caption)]


def _relative(values: Mapping[str, float | None], uniform: Mapping[str, float]) -> dict[str, float]:
    known = ((d, values.get(d)) for d in uniform)
    return {d: value / uniform[d] for d, value in known if value is not None and math.isfinite(value)}


def _marks(axis: Axes, panel: Mapping[str, Mapping[str, float]], datasets: Sequence[str]) -> None:
    svg.bare(axis, "left", "bottom")
    axis.grid(axis="y", zorder=0)
    axis.axvline(1, color=svg.SOFT, linewidth=0.9, zorder=1)
    # Four marks that coincide would hide each other: a little apart in height, in a fixed order.
    for shift, (series, values), (marker, colour) in zip((-0.24, -0.08, 0.08, 0.24), panel.items(), MARKS, strict=True):
        axis.plot([], [], linestyle="none", marker=marker, color=colour, markersize=4.5, label=series)
        for dataset, value in values.items():
            mark, position = ">" if value > RIGHT else marker, datasets.index(dataset) + shift
            axis.plot(min(value, RIGHT), position, marker=mark, ms=4, mew=0, color=colour, zorder=3)


@dataclass(frozen=True)
class Curve:
    """A row's scores as one parameter changes, None where there is none; and the uniform distribution's."""

    row: str
    dataset: str
    parameter: str
    points: Mapping[float, float | None]
    uniform: float | None


def curves(results: Results) -> list[Curve]:
    """A curve for each row, data set and parameter with at least one measured point."""
    found: dict[tuple[str, str, str], dict[float, float | None]] = {}
    for result in results.of("sensitivity"):
        for parameter, value in result.setting.items():
            found.setdefault((result.row, result.dataset, parameter), {})[value] = result.scores.get("kl")
    known = {place: p for place, p in found.items() if any(score is not None for score in p.values())}
    return [Curve(*place, p, results.score("sensitivity", place[1], "Uniform", "kl")) for place, p in known.items()]


def sensitivity(curves: Sequence[Curve]) -> list[Chart]:
    """A chart for each data set."""
    datasets = dict.fromkeys(curve.dataset for curve in curves)
    return [_strip(dataset, [c for c in curves if c.dataset == dataset]) for dataset in datasets]


def _strip(dataset: str, curves: Sequence[Curve]) -> Chart:
    parameters = list(dict.fromkeys(c.parameter for c in curves))
    colours = dict(zip(dict.fromkeys(c.row for c in curves), COLOURS, strict=False))
    uniform = curves[0].uniform
    with svg.style():
        drawing = svg.canvas(7.6, 1.75)
        axes = drawing.subplots(1, len(parameters), sharey=True, squeeze=False)[0]
        for axis, parameter in zip(axes, parameters, strict=True):
            _parameter(axis, [c for c in curves if c.parameter == parameter], colours)
        axes[0].set_ylim(bottom=0)
        axes[0].set_ylabel("KL")
        for row, colour in colours.items():
            axes[0].plot([], [], color=colour, marker="o", markersize=3, label=words.clip(row))
        axes[0].plot([], [], color=svg.SOFT, linewidth=0.9, linestyle=DASHES, label="uniform")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
        title = f"Sensitivity of LCdr on {dataset}"
        said = [f"{c.row}, {SYMBOLS.get(c.parameter, c.parameter)} {_listed(c)}." for c in curves]
        said += [f"Uniform: {uniform:.4f}."] if uniform is not None else []
        described = f"KL at each value. {' '.join(said)}"
        return Chart(svg.to_svg(drawing, f"sensitivity-{dataset}", title, described), title=dataset)


def _parameter(axis: Axes, curves: Sequence[Curve], colours: Mapping[str, str]) -> None:
    parameter, uniform = curves[0].parameter, curves[0].uniform
    values = sorted({value for curve in curves for value in curve.points})
    axis.grid(axis="y", zorder=0)
    svg.bare(axis, "left")
    # Steps of equal width: the values are a list that someone chose, spread over decades.
    axis.set_xticks(range(len(values)), [_tick(v) for v in values])
    axis.tick_params(axis="x", labelsize=7.5)
    axis.set_xlabel(SYMBOLS.get(parameter, parameter), color=svg.INK)
    if uniform is not None:
        axis.axhline(uniform, color=svg.SOFT, linewidth=0.9, linestyle=DASHES, zorder=1)
    for curve in curves:
        known = {values.index(x): y for x, y in curve.points.items() if y is not None}
        style: Record = {"color": colours.get(curve.row, svg.SOFT), "marker": "o", "zorder": 3}
        axis.plot(list(known), list(known.values()), markersize=3, **style)
        for x in (x for x in known if values[x] == PAPER_VALUES.get(parameter)):
            axis.plot(x, known[x], markersize=6.5, fillstyle="none", **style)


def _tick(value: float) -> str:
    """Small numbers as powers of ten, which are narrower."""
    return f"{value:.0e}".replace("e-0", "e−") if 0 < value < 0.001 else f"{value:g}"


def _listed(curve: Curve) -> str:
    return ", ".join(f"{x:g}: {y:.4f}" for x, y in curve.points.items() if y is not None)

"""Single instances: the truth, the logical labels, and what a few methods made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from contone.experiments.report.schema import Example, Instance
from contone.pages import svg, words
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES: tuple[dict[str, Any], ...] = (
    {"color": svg.ACCENT, "marker": "o"},
    {"color": svg.SECOND, "marker": "D"},
    {"color": svg.INK, "marker": "_"},
)
SHOWN = 3
"""Instances per data set."""


def charts(examples: Sequence[Example], rows: Sequence[str]) -> list[Chart]:
    """A strip of instances for each data set; `rows` names the methods to draw, up to three."""
    return [_strip(e, [r for r in rows if r in e.instances[0].recovered]) for e in examples if e.instances]


def _strip(example: Example, rows: Sequence[str]) -> Chart:
    labels, instances = example.labels, example.instances[:SHOWN]
    with svg.style():
        drawing = svg.canvas(7.6, 1.85)
        axes = drawing.subplots(1, len(instances), sharey=True, squeeze=False)[0]
        for axis, instance in zip(axes, instances, strict=True):
            _instance(axis, instance, labels, rows)
        axes[0].set_ylabel("degree")
        axes[0].set_ylim(bottom=0)
        handles, names = axes[0].get_legend_handles_labels()
        order = sorted(range(len(names)), key=lambda i: ["truth", "yes", *rows].index(names[i]))
        drawing.legend(
            [handles[i] for i in order],
            words.clip_all([names[i] for i in order]),
            loc="outside upper left",
            ncols=len(names),
            columnspacing=1.4,
        )
        return Chart(
            svg.to_svg(
                drawing, f"example-{example.dataset}", f"Instances of {example.dataset}", _words(instances, rows)
            ),
            title=example.dataset,
        )


def _instance(axis: Axes, instance: Instance, labels: Sequence[str], rows: Sequence[str]) -> None:
    places = range(len(labels))
    svg.bare(axis, "left")
    axis.set_title(f"instance {instance.row}", loc="left", color=svg.SOFT)
    axis.grid(axis="y", zorder=0)
    axis.bar(places, instance.truth, 0.78, color=svg.LINE, zorder=1, label="truth")
    yes = [i for i, value in enumerate(instance.logical) if value]
    # Below the axis, where no bar is: the labels that were said to apply.
    low = axis.get_xaxis_transform()
    axis.plot(yes, [-0.045] * len(yes), "s", color=svg.INK, markersize=4, clip_on=False, transform=low, label="yes")
    for row, style in zip(rows, STYLES, strict=False):
        size = 9 if style["marker"] == "_" else 3.6
        width = 1.6 if style["marker"] == "_" else 0
        axis.plot(
            places,
            instance.recovered[row],
            linestyle="none",
            markersize=size,
            markeredgewidth=width,
            zorder=3,
            label=row,
            **style,
        )
    named = len(labels) <= 9 and sum(len(str(name)) for name in labels) <= 24
    axis.set_xticks(places if len(labels) <= 9 else places[::3], _names(labels, named))
    axis.tick_params(axis="x", length=0, pad=7, labelsize=7.5)


def _names(labels: Sequence[str], named: bool) -> list[str]:
    if named:
        return [str(name) for name in labels]
    step = 1 if len(labels) <= 9 else 3
    return [str(i + 1) for i in range(0, len(labels), step)]


def _words(instances: Sequence[Instance], rows: Sequence[str]) -> str:
    said = []
    for instance in instances:
        yes = ", ".join(str(i + 1) for i, v in enumerate(instance.logical) if v)
        parts = [f"truth {_numbers(instance.truth)}"]
        parts += [f"{row} {_numbers(instance.recovered[row])}" for row in rows]
        said.append(f"Instance {instance.row}: labels {yes} apply; {'; '.join(parts)}.")
    return " ".join(said)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{v:.3f}" for v in values)

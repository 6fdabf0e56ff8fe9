"""Single instances: the truth, the logical labels, and what a few methods made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contone.experiments.results import Result
from contone.pages import svg, words
from contone.pages.svg import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ((svg.ACCENT, "o", 3.6, 0.0), (svg.SECOND, "D", 3.6, 0.0), (svg.INK, "_", 9.0, 1.6))
"""Colour, marker, its size and the width of its edge, of each row that is drawn."""
SHOWN = 3
"""Instances per data set."""


@dataclass(frozen=True)
class Instance:
    """One instance: truth, labels, and what each row recovered (q values each)."""

    row: int
    truth: Sequence[float]
    logical: Sequence[int]
    recovered: dict[str, Sequence[float]]


def charts(results: Sequence[Result], rows: Sequence[str]) -> list[Chart]:
    """A strip of the instances that were kept for each data set; `rows` names the methods to draw, up to three."""
    found = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        kept = {r.row: r.records[0]["examples"] for r in results if r.dataset == dataset}
        first = next(iter(kept.values()))
        drawn = [row for row in rows if row in kept]
        instances = [
            Instance(row, first["truth"][i], first["logical"][i], {n: kept[n]["recovered"][i] for n in drawn})
            for i, row in enumerate(first["rows"][:SHOWN])
        ]
        if instances:
            found.append(strip(dataset, first["labels"], instances, drawn))
    return found


def strip(dataset: str, labels: Sequence[str], instances: Sequence[Instance], rows: Sequence[str]) -> Chart:
    """Instances side by side."""
    with svg.style():
        drawing = svg.canvas(7.6, 1.85)
        axes = drawing.subplots(1, len(instances), sharey=True, squeeze=False)[0]
        for axis, instance in zip(axes, instances, strict=True):
            _instance(axis, instance, labels, rows)
        axes[0].set_ylabel("degree")
        axes[0].set_ylim(bottom=0)
        handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        named = [name for name in ("truth", "yes", *rows) if name in handles]
        drawing.legend(
            [handles[name] for name in named],
            words.clip_all(named),
            loc="outside upper left",
            ncols=len(named),
            columnspacing=1.4,
        )
        drawn = svg.to_svg(drawing, f"example-{dataset}", f"Instances of {dataset}", _words(instances, rows))
        return Chart(drawn, title=dataset)


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
    for row, (colour, marker, size, edge) in zip(rows, STYLES, strict=False):
        axis.plot(places, instance.recovered[row], marker, color=colour, ms=size, mew=edge, zorder=3, label=row)
    step = 1 if len(labels) <= 9 else 3
    are_named = step == 1 and sum(map(len, labels)) <= 24
    axis.set_xticks(places[::step], labels if are_named else [str(i + 1) for i in places[::step]])
    axis.tick_params(axis="x", length=0, pad=7, labelsize=7.5)


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

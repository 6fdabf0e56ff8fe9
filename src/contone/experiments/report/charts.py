"""Pictures of a comparison: the recovered shares, single instances, and the surface of the artificial set."""

import base64
from collections.abc import Mapping, Sequence

import numpy as np

from contone.experiments.describe import build
from contone.experiments.sources import load
from contone.experiments.store import Result
from contone.pages import svg, words
from contone.pages.blocks import Grid, Picture, Row
from contone.pages.figures import manifold_image, tones
from contone.pages.svg import Axes, Chart
from contone.typing import Record

LEFT = -0.6
"""Shares below this are drawn at the edge, as an arrow: the axis belongs to those that recover something."""
STYLES = ((svg.ACCENT, "o", 3.6, 0.0), (svg.SECOND, "D", 3.6, 0.0), (svg.INK, "_", 9.0, 1.6))
"""Colour, marker, its size and the width of its edge, of each row whose answer is drawn."""
SHOWN = 3
"""Instances per data set."""
PIXELS = 360


def recovered(shares: Grid, *, narrow: bool = False) -> list[Chart]:
    """How far each method gets from uniform to the limit: a dot for each data set, a bar for their mean.

    None where there is no share at all. The narrow drawing is for phones, where the wide one would have to be scrolled.
    """
    if not shares.rows:
        return []
    datasets = [column.hint for column in shares.columns[1:]]
    with svg.style():
        drawing = svg.canvas(4.6 if narrow else 7.6, 0.8 + 0.235 * len(shares.rows))
        axis = drawing.subplots()
        _ground(axis, shares.rows)
        for position, row in enumerate(shares.rows):
            _row(axis, position, row)
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


def _row(axis: Axes, position: int, row: Row) -> None:
    colour = svg.ACCENT if row.kind == "method" else svg.SOFT
    mean, *values = (cell.value for cell in row.cells)
    shown = [value for value in values if value is not None]
    inside = [value for value in shown if value >= LEFT]
    if inside:
        axis.plot([min(inside), max(inside)], [position] * 2, color=colour, alpha=0.35, linewidth=1.2, zorder=2)
    axis.plot(inside, [position] * len(inside), "o", color=colour, alpha=0.55, ms=4.3, mew=0, zorder=3)
    if len(inside) < len(shown):
        axis.plot(LEFT, position, "<", color=colour, alpha=0.7, ms=4.5, zorder=3)
    if mean is not None and mean >= LEFT:
        axis.plot([mean] * 2, [position - 0.34, position + 0.34], color=svg.INK, linewidth=2.2, zorder=4)


def _label(row: Row) -> str:
    return row.name if row.kind == "method" else f"{row.name}, {row.kind}"


def instances(results: Sequence[Result], rows: Sequence[str]) -> list[Chart]:
    """The instances that were kept of each data set: truth, labels, and what `rows` (up to three) made of them."""
    found = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        kept = {r.row: r.records[0]["examples"] for r in results if r.dataset == dataset}
        found.append(_strip(dataset, next(iter(kept.values())), {row: kept[row] for row in rows if row in kept}))
    return found


def _strip(dataset: str, first: Record, kept: Mapping[str, Record]) -> Chart:
    """Instances side by side; `kept` has what was recovered by row, `first` all else."""
    count = len(first["rows"][:SHOWN])
    with svg.style():
        drawing = svg.canvas(7.6, 1.85)
        axes = drawing.subplots(1, count, sharey=True, squeeze=False)[0]
        for i, axis in enumerate(axes):
            _instance(axis, i, first, kept)
        axes[0].set_ylabel("degree")
        axes[0].set_ylim(bottom=0)
        handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        named = [name for name in ("truth", "yes", *kept) if name in handles]
        shown = [handles[name] for name in named], words.clip_all(named)
        drawing.legend(*shown, loc="outside upper left", ncols=len(named), columnspacing=1.4)
        said = " ".join(_in_words(i, first, kept) for i in range(count))
        return Chart(svg.to_svg(drawing, f"example-{dataset}", f"Instances of {dataset}", said), title=dataset)


def _instance(axis: Axes, i: int, first: Record, kept: Mapping[str, Record]) -> None:
    labels = first["labels"]
    places = range(len(labels))
    svg.bare(axis, "left")
    axis.set_title(f"instance {first['rows'][i]}", loc="left", color=svg.SOFT)
    axis.grid(axis="y", zorder=0)
    yes = [place for place, value in enumerate(first["logical"][i]) if value]
    # Below the axis, where no bar is: the labels that were said to apply.
    low = axis.get_xaxis_transform()
    axis.bar(places, first["truth"][i], 0.78, color=svg.LINE, zorder=1, label="truth")
    axis.plot(yes, [-0.045] * len(yes), "s", color=svg.INK, markersize=4, clip_on=False, transform=low, label="yes")
    for (row, answer), (colour, marker, size, edge) in zip(kept.items(), STYLES, strict=False):
        axis.plot(places, answer["recovered"][i], marker, color=colour, ms=size, mew=edge, zorder=3, label=row)
    step = 1 if len(labels) <= 9 else 3
    are_named = step == 1 and sum(map(len, labels)) <= 24
    axis.set_xticks(places[::step], labels if are_named else [str(place + 1) for place in places[::step]])
    axis.tick_params(axis="x", length=0, pad=7, labelsize=7.5)


def _in_words(i: int, first: Record, kept: Mapping[str, Record]) -> str:
    yes = ", ".join(str(place + 1) for place, value in enumerate(first["logical"][i]) if value)
    answers = {"truth": first["truth"][i], **{row: answer["recovered"][i] for row, answer in kept.items()}}
    said = "; ".join(f"{name} {', '.join(f'{v:.3f}' for v in values)}" for name, values in answers.items())
    return f"Instance {first['rows'][i]}: labels {yes} apply; {said}."


def surfaces(results: Sequence[Result], shares: Grid) -> list[Picture]:
    """The artificial set coloured by its degrees: truth, labels, and each row that kept its answer, the best first."""
    cell = results[0].records[0]["cell"]
    kept = {r.row: r.records[0]["surface"] for r in results if r.dataset == cell["dataset"]}
    data = load(cell["dataset"], cell["source"])
    L = build(cell["degradation"]).apply(data.D)
    panels = [("Truth", data.D, ""), ("Given: 0/1 labels", L / L.sum(axis=1, keepdims=True), "")]
    place = [column.hint for column in shares.columns].index(cell["dataset"])
    for row in (row for row in shares.rows if row.name in kept):
        share = row.cells[place].text
        # Zeros where the truth has none are infinitely far from it in KL; a share of that says nothing.
        caption = "infinitely far in KL" if share == "−∞" else f"{share} recovered" if share else ""
        panels.append((row.name, np.array(kept[row.name]), caption))
    shown = []
    for title, D, caption in panels:
        image = base64.b64encode(manifold_image(data.X, tones(D, data.D), pixels=PIXELS)).decode()
        described = f"The surface coloured by its label degrees: {title}. {caption}".strip()
        shown.append(Picture(title, caption, f"data:image/png;base64,{image}", described))
    return shown

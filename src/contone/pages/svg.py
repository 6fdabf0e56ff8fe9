"""matplotlib figure -> inline SVG that follows the page: its font, its colours on light and dark; with words for it.

Drawings use the colours below. They are stand-ins: in the SVG each becomes a CSS variable of the page, so one file
serves both themes and print. Text stays text (small, selectable, in the page's font) and nothing points outside.
"""

import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree

from contone.pages import escape

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"

INK, SOFT, LINE, MARK, ACCENT, SECOND, GROUND = (f"#0102{i:02x}" for i in range(3, 10))
"""Text; secondary text; rules; quiet areas; the accent; a second series; the paper."""

VARIABLES = {INK: "ink", SOFT: "soft", LINE: "line", MARK: "mark", ACCENT: "accent", SECOND: "second", GROUND: "ground"}


@dataclass(frozen=True)
class Chart:
    """A picture, ready for a page.

    Attributes
    ----------
    svg : str
        An SVG element with its alternative text inside.
    caption : str
        How to read it, in a sentence or two.
    title : str
        A short heading, where several charts stand in one section.
    """

    svg: str
    caption: str = ""
    title: str = ""


def style() -> AbstractContextManager[None]:
    """Draw inside this, so that the stand-in colours and the page's sizes are used."""
    from matplotlib import rc_context

    return rc_context(fname=Path(__file__).with_name("page.mplstyle"))


def canvas(width: float, height: float) -> Figure:
    """An empty figure of that size in inches; 7.6 fills the page's column."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def bare(axis: Axes, *sides: str) -> None:
    """Take away the lines of an axis that carry no information."""
    for side in sides:
        axis.spines[side].set_visible(False)
    if "left" in sides:
        axis.tick_params(axis="y", length=0)
    if "bottom" in sides:
        axis.tick_params(axis="x", length=0)


def to_svg(figure: Figure, name: str, title: str, description: str, tips: Mapping[str, str] | None = None) -> str:
    """The figure as an SVG element.

    Parameters
    ----------
    figure : Figure
        What was drawn.
    name : str
        Unique on the page; starts every id in the drawing, whatever characters it holds.
    title, description : str
        What it is, and what it shows: the alternative text.
    tips : mapping or None
        What is shown when the pointer is over an artist, by the artist's gid.
    """
    name = escape.identifier(name)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(escape.printable(buffer.getvalue()))
    for child in [c for c in root if _local(c.tag) == "metadata"]:
        root.remove(child)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", buffer.getvalue()))
    _, _, width, height = (float(v) for v in root.get("viewBox", "0 0 1 1").split())
    label, description_id = f"{name}-title", f"{name}-desc"
    head = (
        f'<svg class="chart" role="img" aria-labelledby="{label} {description_id}" '
        f'viewBox="0 0 {width:g} {height:g}" style="--width: {width:g}px">'
        f'<title id="{label}">{escape.html(title)}</title>'
        f'<desc id="{description_id}">{escape.html(description)}</desc>'
    )
    return head + "".join(_element(child, name, used, tips or {}) for child in root) + "</svg>"


def _element(element: ElementTree.Element, name: str, used: set[str], tips: Mapping[str, str]) -> str:
    """One element and what is in it, as HTML: no namespaces, only ids that something refers to."""
    attributes = {}
    for key, value in element.attrib.items():
        attribute = _local(key)
        if attribute == "id":
            if value not in used:
                continue
            value = f"{name}-{value}"
        elif attribute == "href":
            value = f"#{name}-{value[1:]}"
        attributes[attribute] = re.sub(r"url\(#", f"url(#{name}-", _restyled(value))
    written = "".join(f' {k}="{escape.html(v)}"' for k, v in attributes.items())
    inside = escape.html((element.text or "").strip("\n"))
    inside += "".join(_element(c, name, used, tips) for c in element)
    if (tip := tips.get(element.get("id", ""))) is not None:
        inside = f"<title>{escape.html(tip)}</title>{inside}"
    tag = _local(element.tag)
    return f"<{tag}{written}>{inside}</{tag}>{escape.html((element.tail or '').strip())}"


def _restyled(value: str) -> str:
    """Stand-in colours as variables of the page, its font instead of matplotlib's, and shorter numbers."""
    for colour, variable in VARIABLES.items():
        value = value.replace(colour, f"var(--{variable})")
    value = re.sub(r"(font: [^;]*?px |font-family: )[^;]*", r"\1var(--sans)", value)
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]

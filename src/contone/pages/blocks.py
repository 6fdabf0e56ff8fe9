"""What a report is made of, as frozen values: sections of words, tables and pictures. Every rendering reads these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from contone.pages.svg import Chart
from contone.typing import Record

Kind: TypeAlias = Literal["method", "baseline", "oracle"]
"""What a row is about: only the first may be best without a remark beside its name."""


@dataclass(frozen=True)
class Cell:
    """One place of a table.

    Attributes
    ----------
    text, note : str
        As printed, and what stands below it in small print.
    value : float or None
        The number behind the text.
    best : bool
        Whether it is the best of its column among the rows that have not seen the truth.
    state : str
        How it is marked: "failed", "off", a verdict, or not at all.
    bar : float
        Length of a bar before the text, from 0 to 1.
    """

    text: str = ""
    value: float | None = None
    best: bool = False
    note: str = ""
    state: str = ""
    bar: float = 0.0

    @property
    def order(self) -> str:
        """The number that a page sorts by, as JavaScript reads it; empty where there is none."""
        if self.value is None:
            return ""
        return repr(self.value) if math.isfinite(self.value) else ("1e300" if self.value > 0 else "-1e300")


@dataclass(frozen=True)
class Column:
    """The head of a column: its title, what a click sorts it by at first, and whether it holds words or numbers."""

    title: str
    first: str = "ascending"
    is_text: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: what it is called, and its cells."""

    name: str
    cells: tuple[Cell, ...]
    kind: Kind = "method"


@dataclass(frozen=True)
class Grid:
    """A table: `head` is the title of the column of names, `foot` the rows below a line."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    head: str = "Method"
    foot: tuple[Row, ...] = ()
    style: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section, with a mark beside it, which `state` colours."""

    text: str
    anchor: str = ""
    tag: str = ""
    state: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is "", "note" (small print), "strong" or "pre" (as it stands), `code` a command after it."""

    text: str
    style: str = ""
    code: str = ""


@dataclass(frozen=True)
class Items:
    """A list; `style` is "answers" (numbered) or "missing" (a warning with a title)."""

    items: tuple[str, ...]
    style: str = "answers"
    title: str = ""


@dataclass(frozen=True)
class Terms:
    """Words with what they mean."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Charts:
    """Drawings, made when they are shown."""

    draw: Callable[[], Sequence[Chart]]
    style: str = ""


@dataclass(frozen=True)
class Picture:
    """An image inside the page."""

    title: str
    caption: str
    source: str
    alt: str


@dataclass(frozen=True)
class Pictures:
    """Images, made when they are shown; the first is what the others are compared with."""

    draw: Callable[[], Sequence[Picture]]


@dataclass(frozen=True)
class Fold:
    """Blocks that a reader can open and close."""

    title: str
    blocks: tuple[Block, ...]
    about: str = ""
    is_open: bool = False
    style: str = "tables"


Block: TypeAlias = Grid | Heading | Text | Items | Terms | Charts | Pictures | Fold


@dataclass(frozen=True)
class Section:
    """A part of a report with a title of its own."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    question: str = ""

    def grids(self) -> list[Grid]:
        """Its tables, also those that are folded."""
        return _grids(self.blocks)


def _grids(blocks: Sequence[Block]) -> list[Grid]:
    found: list[Grid] = []
    for block in blocks:
        found += [block] if isinstance(block, Grid) else _grids(block.blocks) if isinstance(block, Fold) else []
    return found


@dataclass(frozen=True)
class Document:
    """A page: its title, a line below it, its sections, and a line at its foot."""

    title: str
    about: str
    sections: tuple[Section, ...] = field(repr=False)
    foot: str = ""

    def section(self, name: str) -> Section:
        """The section of that name."""
        return next(section for section in self.sections if section.name == name)


@dataclass(frozen=True)
class Page(Document):
    """A page with a template of its own, and what that shows."""

    template: str = "report"
    shown: Record = field(default_factory=dict, repr=False)

"""What a reader of a page finds in it: the tables of a section, cell by cell, and its paragraphs."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree


class Shown(NamedTuple):
    """A cell: its text without the small print, that, what it is sorted by, how it is marked, and its bar."""

    text: str
    note: str
    value: float | None
    state: str
    bar: float


def section_of(page: str, name: str) -> str:
    """The HTML of one section."""
    (found,) = re.findall(rf'<section id="{name}".*?</section>', page, flags=re.S)
    return found


def paragraphs(page: str, section: str) -> list[str]:
    """The texts of its paragraphs, with ordinary spaces."""
    texts = re.findall(r"<p[^>]*>(.*?)</p>", section_of(page, section), flags=re.S)
    return [re.sub("<[^>]*>", "", text).replace("&nbsp;", " ").replace("\u00a0", " ") for text in texts]


def tables(page: str, section: str) -> list[tuple[dict[str, bool], list[tuple[str, list[Shown]]]]]:
    """Each table of a section: by title whether a column holds words; and the name and the cells of each row."""
    found = re.findall(r"<table.*?</table>", section_of(page, section), flags=re.S)
    return [_table(ElementTree.fromstring(text)) for text in found]


def _table(table: ElementTree.Element) -> tuple[dict[str, bool], list[tuple[str, list[Shown]]]]:
    heads = table.findall("./thead/tr/th")[1:]
    rows = [(str(row.findtext("th")), list(map(_shown, row.findall("td")))) for row in table.findall("./tbody/tr")]
    assert all(len(cells) == len(heads) for _, cells in rows)
    return {str(head.text): head.get("class") == "text" for head in heads}, rows


def _shown(cell: ElementTree.Element) -> Shown:
    note = cell.findtext("span[@class='printed']") or ""
    text = "".join(cell.itertext()).removesuffix(note).strip().replace("\u00a0", " ")
    bar, value = cell.find("span[@class='bar']"), cell.get("data-value")
    length = 0.0 if bar is None else float(str(bar.get("style")).removeprefix("width: ").removesuffix("rem"))
    return Shown(text, note, float(value) if value else None, cell.get("class", ""), length)

"""document -> Markdown: every word and every table of it; pictures are left to the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from contone.pages.blocks import Block, Cell, Document, Fold, Grid, Heading, Items, Row, Terms, Text
from contone.pages.escape import markdown as escape


def document(content: Document) -> str:
    """The report as one text."""
    lines = [
        f"# {escape(content.title)}",
        "",
        f"{escape(content.about)} Made from stored results by `contone report`.",
        "",
    ]
    for section in content.sections:
        lines += [f"## {escape(section.title)}", ""]
        lines += [escape(section.question), ""] if section.question else []
        lines += _blocks(section.blocks, 3)
    return "\n".join(lines).rstrip() + "\n"


def _blocks(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Heading):
            yield from (f"{'#' * level} {escape(block.text)}{f' ({block.tag})' if block.tag else ''}", "")
        elif isinstance(block, Text):
            text = f"```text\n{block.text}\n```" if block.style == "pre" else escape(block.text)
            yield from (f"{text} {_code(block.code)}" if block.code else text, "")
        elif isinstance(block, Items):
            yield from ([f"{escape(block.title)}", ""] if block.title else [])
            yield from (f"{'1.' if block.style == 'answers' else '-'} {escape(item)}" for item in block.items)
            yield ""
        elif isinstance(block, Terms):
            yield from (f"- {escape(term)}: {escape(text)}" for term, text in block.entries)
            yield ""
        elif isinstance(block, Grid):
            yield from _table(block)
        elif isinstance(block, Fold):
            about = f" ({escape(block.about)})" if block.about else ""
            yield from (f"{'#' * min(level + 1, 6)} {escape(block.title)}{about}", "")
            yield from _blocks(block.blocks, level + 1)


def _table(grid: Grid) -> Iterator[str]:
    yield _joined([grid.head, *(escape(column.title) for column in grid.columns)])
    yield "|:--|" + "|".join(":--" if column.is_text else "--:" for column in grid.columns) + "|"
    for row in (*grid.rows, *grid.foot):
        yield _joined([_named(row), *map(_cell, row.cells)])
    yield ""


def _named(row: Row) -> str:
    """The name of a row, with its kind where it is not a method."""
    return escape(row.name) if row.kind == "method" else f"*{escape(row.name)}* ({row.kind})"


def _cell(cell: Cell) -> str:
    text = f"**{escape(cell.text)}**" if cell.best else escape(cell.text)
    return f"{text} ({escape(cell.note)})" if cell.note else text


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _code(text: str) -> str:
    """Text in the type of code, whatever backticks it holds.

    Examples
    --------
    >>> _code("a"), _code("a`b")
    ('`a`', '``a`b``')
    """
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{' '.join(text.split(chr(10)))}{fence}"

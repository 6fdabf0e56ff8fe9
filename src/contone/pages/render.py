"""document -> files: a page, JSON, Markdown (every word and table) or LaTeX (the tables, for papers: booktabs)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from contone.exceptions import InputError
from contone.pages import escape, html
from contone.pages.blocks import Block, Cell, Charts, Document, Fold, Grid, Heading, Items, Pictures, Terms, Text
from contone.runtime.files import replacing
from contone.runtime.plain import plain

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""The rendering that a file name asks for."""

SCHEMA = 3
"""The version of the layout of JSON."""

ABOUT_THE_RUN = ("rows", "provenance", "summary", "errata")
"""Sections whose tables are about the run and not about its results: left out of LaTeX."""


def render(report: Document, form: str) -> str:
    """The report as one text; `form` is one of the values of `FORMATS`."""
    if form == "json":
        return json.dumps(as_plain(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "markdown":
        return _markdown(report)
    if form == "latex":
        return _latex(report)
    return html.page(report)


def as_plain(report: Document) -> dict[str, object]:
    """The report as JSON has it: all but the pictures. Numbers that are infinite or missing are null."""
    words = replace(report, sections=tuple(replace(s, blocks=_without_pictures(s.blocks)) for s in report.sections))
    return {"schema": SCHEMA, **plain(words)}


def _without_pictures(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    kept = [block for block in blocks if not isinstance(block, Charts | Pictures)]
    return tuple(replace(b, blocks=_without_pictures(b.blocks)) if isinstance(b, Fold) else b for b in kept)


def save(report: Document, path: Path) -> Path:
    """Write the report, whole or not at all, in the format of its suffix."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError(f"path={str(path)!r}: the suffix must be one of {', '.join(FORMATS)}.")
    text = render(report, form)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _markdown(content: Document) -> str:
    lines = [
        f"# {escape.markdown(content.title)}",
        "",
        f"{escape.markdown(content.about)} Made from stored results by `contone report`.",
        "",
    ]
    for section in content.sections:
        lines += [f"## {escape.markdown(section.title)}", ""]
        lines += [escape.markdown(section.question), ""] if section.question else []
        lines += _blocks(section.blocks, 3)
    return "\n".join(lines).rstrip() + "\n"


def _blocks(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Heading):
            yield from (f"{'#' * level} {escape.markdown(block.text)}{f' ({block.tag})' if block.tag else ''}", "")
        elif isinstance(block, Text):
            text = f"```text\n{block.text}\n```" if block.style == "pre" else escape.markdown(block.text)
            yield from (f"{text} {_code(block.code)}" if block.code else text, "")
        elif isinstance(block, Items):
            yield from ([f"{escape.markdown(block.title)}", ""] if block.title else [])
            yield from (f"{'1.' if block.style == 'answers' else '-'} {escape.markdown(item)}" for item in block.items)
            yield ""
        elif isinstance(block, Terms):
            yield from (f"- {escape.markdown(term)}: {escape.markdown(text)}" for term, text in block.entries)
            yield ""
        elif isinstance(block, Grid):
            yield from _markdown_table(block)
        elif isinstance(block, Fold):
            about = f" ({escape.markdown(block.about)})" if block.about else ""
            yield from (f"{'#' * min(level + 1, 6)} {escape.markdown(block.title)}{about}", "")
            yield from _blocks(block.blocks, level + 1)


def _markdown_table(grid: Grid) -> Iterator[str]:
    yield _joined([escape.markdown(text) for text in (grid.head, *(column.title for column in grid.columns))])
    yield "|:--|" + "|".join(":--" if column.is_text else "--:" for column in grid.columns) + "|"
    for row in (*grid.rows, *grid.foot):
        name = escape.markdown(row.name)
        named = name if row.kind == "method" else f"*{name}* ({row.kind})"
        yield _joined([named, *(_cell(cell, escape.markdown, "**{}**", "({})") for cell in row.cells)])
    yield ""


def _cell(cell: Cell, escaped: Callable[[str], str], best: str, note: str) -> str:
    """A cell with what stands below it; `best` and `note` are how these are set."""
    text = best.format(escaped(cell.text)) if cell.best else escaped(cell.text)
    return f"{text} {note.format(escaped(cell.note))}" if cell.note else text


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


def _latex(content: Document) -> str:
    """All tables of results, to be included in a document of one's own."""
    lines = [
        f"% {escape.latex(content.title)}. Made from stored results by: contone report --format latex",
        "% Needs \\usepackage{booktabs}. Best in bold, among rows that have not seen the truth; (o): those that have.",
        "",
    ]
    for section in content.sections:
        for k, grid in enumerate(section.grids() if section.name not in ABOUT_THE_RUN else ()):
            lines += _latex_table(grid, f"{section.title}: {grid.title}", f"{escape.identifier(section.name)}-{k + 1}")
    return "\n".join(lines).rstrip() + "\n"


def _latex_table(grid: Grid, caption: str, label: str) -> Iterator[str]:
    yield from (
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{escape.latex(caption)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{l{''.join('l' if column.is_text else 'r' for column in grid.columns)}}}",
        r"\toprule",
        _line([grid.head, *(column.title for column in grid.columns)]),
        r"\midrule",
    )
    yield from (_line([row.name + (" (o)" if row.kind == "oracle" else ""), *row.cells]) for row in grid.rows)
    if grid.foot:
        yield r"\midrule"
        yield from (_line([row.name, *row.cells]) for row in grid.foot)
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _line(cells: Sequence[Cell | str]) -> str:
    marks = r"\textbf{{{}}}", r"{{\scriptsize {}}}"
    texts = (escape.latex(cell) if isinstance(cell, str) else _cell(cell, escape.latex, *marks) for cell in cells)
    return " & ".join(texts) + r" \\"

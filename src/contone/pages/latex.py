"""document -> LaTeX: its tables, for papers (packages: booktabs)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contone.pages.blocks import Cell, Document, Grid
from contone.pages.escape import identifier
from contone.pages.escape import latex as escape

TABLES = ("rows", "provenance", "summary", "errata")
"""Sections whose tables are about the run and not about its results: left out."""


def document(content: Document) -> str:
    """All tables of results, to be included in a document of one's own."""
    lines = [
        f"% {escape(content.title)}. Made from stored results by: contone report --format latex",
        "% Needs \\usepackage{booktabs}. Best in bold, among rows that have not seen the truth; (o): those that have.",
        "",
    ]
    for section in content.sections:
        for k, grid in enumerate(section.grids() if section.name not in TABLES else ()):
            lines += _table(grid, f"{section.title}: {grid.title}", f"{identifier(section.name)}-{k + 1}")
    return "\n".join(lines).rstrip() + "\n"


def _table(grid: Grid, caption: str, label: str) -> Iterator[str]:
    yield from (
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{escape(caption)}}}",
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
    return " & ".join(escape(cell) if isinstance(cell, str) else _cell(cell) for cell in cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text)
    return rf"{text} {{\scriptsize {escape(cell.note)}}}" if cell.note else text

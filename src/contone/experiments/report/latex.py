"""summary -> LaTeX: tables for papers (packages: booktabs)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contone.experiments.report.matrix import Printed, matrix
from contone.experiments.report.schema import Section, Summary, Table
from contone.pages.escape import latex as escape


def document(summary: Summary, sections: Sequence[Section]) -> str:
    """The recovered shares and all tables of these sections, to be included in a document of one's own."""
    parts = [
        f"% {escape(summary.title)}. Made from stored results by: contone report --format latex",
        "% Needs \\usepackage{booktabs}. Best in bold, among rows that have not seen the truth; (o): those that have.",
        "",
    ]
    parts += table(summary.shares, "Recovered share", "recovered")
    for section in sections:
        for one in section.tables:
            parts += table(one, f"{section.title}: {one.title}", f"{section.name}-{one.measure}")
    return "\n".join(parts).rstrip() + "\n"


def table(content: Table, caption: str, label: str) -> Iterator[str]:
    """One table; published figures stand below the row that re-runs them."""
    shown = matrix(content)
    if not shown.rows:
        return
    published = {r.name: {c.dataset: c.published.text for c in r.cells if c.published} for r in content.rows}
    yield from (
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{escape(caption)} {escape(content.arrow)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{l{'r' * len(shown.columns)}}}",
        r"\toprule",
        _line(["", *(label for _, label in shown.columns)]),
        r"\midrule",
    )
    for row in shown.rows:
        yield _line([row.name + (" (o)" if row.kind == "oracle" else ""), *row.cells])
        printed = [published[row.name].get(dataset, "") for dataset, _ in shown.columns]
        if any(printed):
            yield _line(["published", *printed], style=r"\itshape")
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _line(cells: Sequence[Printed | str], style: str = "") -> str:
    return " & ".join(_cell(cell, style) for cell in cells) + r" \\"


def _cell(cell: Printed | str, style: str) -> str:
    if isinstance(cell, str):
        return f"{{{style} {escape(cell)}}}" if style and cell else escape(cell)
    text = escape(cell.text)
    return rf"\textbf{{{text}}}" if cell.best else text

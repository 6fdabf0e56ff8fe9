"""summary -> LaTeX: one table a measure and experiment, for papers (packages: booktabs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contone.reproduction.report.comparison import COMPARED
from contone.reproduction.report.page import matrix
from contone.reproduction.report.tables import Plain

ESCAPED = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "∞": r"$\infty$",
    "−": "$-$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
}


def document(summary: Mapping[str, Any]) -> str:
    """All tables, to be included in a document of one's own."""
    parts = [
        f"% {summary['title']}. Made from stored results by: contone report --format latex",
        "% Needs \\usepackage{booktabs}. Best in bold, among rows that have not seen the truth; (o): those that have.",
        "",
    ]
    parts += _table(summary["recovery"]["recovered"], "Recovered share", "recovered")
    for name in COMPARED:
        for table in summary[name]["tables"]:
            parts += _table(table, f"{summary[name]['title']}: {table['title']}", f"{name}-{table['measure']}")
    return "\n".join(parts).rstrip() + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape("LCdr_1 50 %"))
    LCdr\\_1 50 \\%
    """
    return "".join(ESCAPED.get(c, c) for c in text)


def _table(table: Mapping[str, Any], caption: str, label: str) -> Iterator[str]:
    shown = matrix(table, {})
    if not shown["rows"]:
        return
    published = {r["name"]: {c["dataset"]: c.get("published_text", "") for c in r["cells"]} for r in table["rows"]}
    columns = [c["name"] for c in shown["columns"]]
    yield from (
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{escape(caption)} {escape(table['arrow'])}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        _line(["", *(c["label"] for c in shown["columns"])]),
        r"\midrule",
    )
    for row in shown["rows"]:
        yield _line([row["name"] + (" (o)" if row["kind"] == "oracle" else ""), *row["cells"]])
        printed = [published[row["name"]].get(dataset, "") for dataset in columns]
        if any(printed):
            yield _line([r"published", *printed], style=r"\itshape")
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _line(cells: Sequence[Plain | str], style: str = "") -> str:
    return " & ".join(_cell(cell, style) for cell in cells) + r" \\"


def _cell(cell: Plain | str, style: str) -> str:
    if isinstance(cell, str):
        return f"{{{style} {escape(cell)}}}" if style and cell else escape(cell)
    text = escape(cell["text"])
    return rf"\textbf{{{text}}}" if cell["best"] else text

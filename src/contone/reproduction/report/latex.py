"""summary -> LaTeX: one table per measure and experiment, the paper's figures below ours."""

from __future__ import annotations

from contone.experiments.report import latex
from contone.reproduction.report.schema import COMPARED, PaperSummary


def document(summary: PaperSummary) -> str:
    """All tables, to be included in a document of one's own."""
    return latex.document(summary, [summary.section(name) for name in COMPARED])

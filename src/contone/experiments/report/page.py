"""summary -> the page of a comparison, as one file."""

from __future__ import annotations

from contone.experiments.report import view
from contone.experiments.report.matrix import scores
from contone.experiments.report.schema import Summary
from contone.experiments.report.view import Words
from contone.experiments.store import Store
from contone.pages import html


def document(summary: Summary, store: Store) -> str:
    """The page as one file."""
    return html.render("benchmark.html.j2", ("contone.experiments.report",), **page(summary, store))


def page(summary: Summary, store: Store) -> Words:
    """All that the template needs."""
    own = scores(summary.recovery)
    found = {
        **view.common(summary, store),
        "question": summary.recovery.question,
        "tables": view.score_tables(summary.recovery, {}, view.shares_in(summary)) if own else [],
    }
    entries = [
        ("summary", "Summary"),
        ("recovery", "Scores"),
        *([("ranks", summary.ranks.title)] if summary.ranks.groups else []),
        ("examples", "Single instances"),
        *([("manifold", "The manifold")] if found["manifold"] else []),
        ("rows", "Methods and settings"),
        ("failures", "Failures"),
        ("provenance", "Provenance"),
    ]
    return {**found, "contents": [{"id": name, "title": title} for name, title in entries]}

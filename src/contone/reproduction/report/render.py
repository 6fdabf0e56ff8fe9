"""store -> files: the page, and the same summary as JSON, Markdown and LaTeX."""

from __future__ import annotations

import json

from contone.experiments.report.schema import plain
from contone.experiments.store import Store
from contone.reproduction.report import latex, markdown, page
from contone.reproduction.report.summary import summarise

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""The rendering that a file name asks for."""


def render(store: Store, form: str) -> str:
    """The report of a store as one text; `form` is one of the values of `FORMATS`."""
    summary = summarise(store)
    if form == "json":
        return json.dumps(plain(summary), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "markdown":
        return markdown.document(summary)
    if form == "latex":
        return latex.document(summary)
    return page.document(summary, store)

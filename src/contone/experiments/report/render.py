"""store -> files: the report of a comparison as a page, JSON, Markdown or LaTeX."""

from __future__ import annotations

import json
from pathlib import Path

from contone.exceptions import InputError
from contone.experiments.report import latex, markdown, page
from contone.experiments.report.schema import plain
from contone.experiments.report.summary import summarise
from contone.experiments.store import Store
from contone.runtime.files import replacing

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
        return latex.document(summary, [summary.recovery])
    return page.document(summary, store)


def save(store: Store, path: Path) -> Path:
    """Write the report, whole or not at all, in the format of its suffix."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError(f"path={str(path)!r}: the suffix must be one of {', '.join(FORMATS)}.")
    text = render(store, form)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path

"""document -> files: a page, JSON, Markdown (every word and table) or LaTeX (the tables, for papers: booktabs)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from contone.exceptions import InputError
from contone.pages import html
from contone.pages.blocks import Block, Charts, Document, Fold, Pictures
from contone.runtime.files import replacing
from contone.runtime.plain import plain

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""The rendering that a file name asks for."""

SCHEMA = 3
"""The version of the layout of JSON."""


def render(report: Document, form: str) -> str:
    """The report as one text; `form` is one of the values of `FORMATS`."""
    if form == "json":
        return json.dumps(as_plain(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return html.page(report, form)


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

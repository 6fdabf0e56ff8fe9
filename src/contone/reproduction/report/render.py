"""store -> files: the page, and the same summary as JSON, Markdown and LaTeX."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from contone.experiments.store import Store
from contone.reproduction.report import latex, markdown
from contone.reproduction.report.page import page
from contone.reproduction.report.summary import summarise
from contone.reproduction.report.tables import Plain

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""The rendering that a file name asks for."""


def render(store: Store, form: str) -> str:
    """The report of a store as one text; `form` is one of the values of `FORMATS`."""
    summary = summarise(store)
    if form == "json":
        return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "markdown":
        return markdown.document(summary)
    if form == "latex":
        return latex.document(summary)
    return html(summary, store)


def html(summary: Plain, store: Store) -> str:
    """The page: one file, nothing outside it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_unbroken
    )
    template = environment.from_string(_part("report.html.j2"))
    text = template.render(**page(summary, store), css=_part("report.css"), js=_part("report.js"))
    return text.lstrip() + "\n"


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _part(name: str) -> str:
    return files("contone.reproduction.report").joinpath("templates", name).read_text(encoding="utf-8")

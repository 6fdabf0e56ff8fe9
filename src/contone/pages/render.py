"""document -> files: a page, JSON, Markdown (every word and table) or LaTeX (the tables, for papers: booktabs).

All but JSON are templates; a page has the shared style and script, and everything it needs, inside.
"""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from contone.exceptions import InputError
from contone.pages import escape
from contone.pages.blocks import Block, Charts, Document, Fold, Page, Pictures
from contone.runtime.files import write_whole
from contone.runtime.plain import plain

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".tex": "latex"}
"""The rendering that a file name asks for."""

SCHEMA = 3
"""The version of the layout of JSON."""


def render(report: Document, form: str) -> str:
    """The report as one text; `form` is one of the values of `FORMATS`."""
    if form == "json":
        return json.dumps(as_plain(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    template, shown = (report.template, report.shown) if isinstance(report, Page) else ("report", {})
    return fill(f"{template}.{form}.j2", title=report.title, document=report, **shown)


def as_plain(report: Document) -> dict[str, object]:
    """The report as JSON has it: all but the pictures. Numbers that are infinite or missing are null."""
    words = replace(report, sections=tuple(replace(s, blocks=_without_pictures(s.blocks)) for s in report.sections))
    return {"schema": SCHEMA, **plain(words)}


def _without_pictures(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    kept = [block for block in blocks if not isinstance(block, Charts | Pictures)]
    return tuple(replace(b, blocks=_without_pictures(b.blocks)) if isinstance(b, Fold) else b for b in kept)


def save(report: Document, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
    """Write the report, whole or not at all, in the format of its suffix."""
    form = FORMATS.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(f"path={str(path)!r}: the suffix must be one of {', '.join(FORMATS)}.")
    write_whole(path, render(report, form), overwrite=overwrite)
    return Path(path)


def fill(template: str, **values: Any) -> str:
    """A template with its values filled in, as one text; nothing outside the file is needed to show it.

    Parameters
    ----------
    template : str
        File name of the template, in the folder ``templates``: "report.html.j2" makes HTML.
    **values
        What the template prints. Texts are escaped, in Markdown and LaTeX by ``| text``; the template computes nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    form = template.split(".")[1]
    environment = Environment(
        loader=PackageLoader("contone.pages"),
        autoescape=form == "html",
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_unbroken if form == "html" else None,
    )
    environment.filters |= {"text": getattr(escape, form), "identifier": escape.identifier, "code": _code}
    return escape.printable(environment.get_template(template).render(**values).strip()) + "\n"


def _code(text: str) -> str:
    """Text in the type of code of Markdown, whatever backticks it holds.

    Examples
    --------
    >>> _code("a"), _code("a`b")
    ('`a`', '``a`b``')
    """
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{' '.join(text.split(chr(10)))}{fence}"


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value

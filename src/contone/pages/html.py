"""values -> one file by a template: a page has the shared style and script, and everything it needs, inside."""

from __future__ import annotations

import re
from typing import Any

from contone.pages import escape
from contone.pages.blocks import Document


def render(template: str, **values: Any) -> str:
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
    environment.filters |= {"text": getattr(escape, form), "identifier": escape.identifier, "code": code}
    return escape.printable(environment.get_template(template).render(**values).strip()) + "\n"


def page(document: Document, form: str = "html") -> str:
    """A document of blocks as one text: HTML, Markdown (every word and table) or LaTeX (the tables of results)."""
    return render(f"report.{form}.j2", title=document.title, document=document)


def code(text: str) -> str:
    """Text in the type of code of Markdown, whatever backticks it holds.

    Examples
    --------
    >>> code("a"), code("a`b")
    ('`a`', '``a`b``')
    """
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{' '.join(text.split(chr(10)))}{fence}"


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value

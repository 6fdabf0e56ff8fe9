"""values -> one HTML file: the shared templates, style and script, with everything inside the file."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from contone.pages import escape
from contone.pages.blocks import Document


def render(template: str, **values: Any) -> str:
    """A template with its values filled in, as one text; nothing outside the file is needed to show it.

    Parameters
    ----------
    template : str
        File name of the template, in the folder ``templates``.
    **values
        What the template prints. Texts are escaped; the template computes nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("contone.pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
    )
    text = environment.get_template(template).render(**values, css=_part("page.css"), js=_part("page.js"))
    return escape.printable(text.lstrip()) + "\n"


def page(document: Document) -> str:
    """A document of blocks as one text."""
    contents = [{"id": section.name, "title": section.title} for section in document.sections]
    return render("report.html.j2", title=document.title, document=document, contents=contents)


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _part(name: str) -> str:
    return files("contone.pages").joinpath("templates", name).read_text(encoding="utf-8")

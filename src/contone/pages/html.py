"""values -> one HTML file: the shared templates, style and script, with everything inside the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from contone.pages import escape
from contone.pages.blocks import Document

HERE = "contone.pages"


def render(template: str, packages: Sequence[str] = (), **values: Any) -> str:
    """A template with its values filled in, as one text; nothing outside the file is needed to show it.

    Parameters
    ----------
    template : str
        File name of the template.
    packages : sequence of str
        Packages whose folder ``templates`` holds it and what it includes; those of `contone.pages` are found always.
    **values
        What the template prints. Texts are escaped; the template computes nothing.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_loader((*packages, HERE))),
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


def _loader(packages: Sequence[str]) -> Callable[[str], str | None]:
    def load(name: str) -> str | None:
        found = (files(package).joinpath("templates", name) for package in packages)
        return next((path.read_text(encoding="utf-8") for path in found if path.is_file()), None)

    return load


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its per cent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _part(name: str) -> str:
    return files(HERE).joinpath("templates", name).read_text(encoding="utf-8")

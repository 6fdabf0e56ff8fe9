"""`contone methods` and `contone measures`: what there is."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from contone.cli import options, terminal
from contone.cli.method import find_method, known_methods

if TYPE_CHECKING:
    from contone.base import Enhancer
    from contone.typing import Record


@options.command
def methods(name: Annotated[str | None, typer.Argument()] = None, as_json: options.AsJson = False) -> None:
    """List the methods: name, what it does, reference, whether it predicts new rows, presets.

    Methods of installed packages are among them (entry point group contone.enhancers).

    Examples:

    contone methods

    contone methods temperature

    contone methods --json

    Parameters
    ----------
    name : name
        Show this one in full, with its parameters; may be MODULE:CLASS.
    as_json : bool
        Print JSON for programs.
    """
    if name is not None:
        cls = find_method(name, "NAME")
        record = describe_method(cls.__name__.lower(), cls)
        if as_json:
            terminal.print_json(record)
        else:
            _print_method(record, cls)
        return
    records = [describe_method(method, cls) for method, cls in known_methods().items()]
    if as_json:
        terminal.print_json(records)
        return
    for r in records:
        presets = f"presets: {', '.join(r['presets'])}" if r["presets"] else ""
        terminal.print_entry(r["name"], _kind(r), r["summary"], "" if r["baseline"] else r["reference"], presets)


@options.command
def measures(as_json: options.AsJson = False) -> None:
    """List the measures: name, which direction is better, formula (d is the truth, r the recovered degree).

    Examples:

    contone measures

    contone measures --json

    Parameters
    ----------
    as_json : bool
        Print JSON for programs.
    """
    from contone import measures as library

    conventions = {k: m for k, m in library.CONVENTIONS.items() if k == m.name}
    listed = {**library.MEASURES, **library.FURTHER, **conventions}
    records = [
        {
            "name": m.name,
            "title": m.title,
            "better": "greater" if m.greater_is_better else "smaller",
            "formula": m.formula,
            "reported": m.name in library.MEASURES,
        }
        for m in listed.values()
    ]
    if as_json:
        terminal.print_json(records)
        return
    table = Table(Column("Measure", no_wrap=True), "Better", "Formula", box=box.SIMPLE_HEAD, pad_edge=False)
    for r in records:
        table.add_row(f"[bold]{r['name']}[/]", str(r["better"]), escape(str(r["formula"])))
    terminal.out().print(table)
    terminal.say(f"The first {len(library.MEASURES)} are what tables report, the others where they are named.")
    terminal.say("The last two are readings of KL in the literature; contone's own KL is the textbook's KL(D || R).")


def describe_method(name: str, cls: type[Enhancer]) -> Record:
    """What `contone methods` says about a method, as plain values."""
    from contone.base import InductiveMixin

    return {
        "name": name,
        "class": cls.__name__,
        "summary": summary(cls),
        "reference": cls.reference,
        "baseline": cls.baseline,
        "inductive": issubclass(cls, InductiveMixin),
        "presets": {k: {p: terminal.plain(v) for p, v in settings.items()} for k, settings in cls.PRESETS.items()},
        "parameters": {k: terminal.plain(v) for k, v in cls().get_params(deep=False).items()},
    }


def summary(cls: type) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("`", "").split())


def _print_method(record: Record, cls: type[Enhancer]) -> None:

    def said(settings: Record) -> str:
        return ", ".join(f"{k}={v!r}" for k, v in settings.items())

    terminal.print_entry(record["name"], _kind(record))
    # A line that was only broken because the line of the source was full is joined again.
    for line in re.sub(r"(?<=[^\n]{85})\n *(?=[\w(`])", " ", inspect.getdoc(cls) or "").split("\n"):
        terminal.out().print(Padding(Text(line.strip()), (0, 0, 0, len(line) - len(line.lstrip()))))
    presets = [f"Preset {name}: {said(settings)}" for name, settings in record["presets"].items()]
    defaults = f"Parameters and defaults: {said(record['parameters']) or 'none'}"
    for line in ("", f"Reference: {record['reference']}", defaults, *presets):
        terminal.out().print(line, markup=False)


def _kind(record: Record) -> str:
    kind = "baseline" if record["baseline"] else "method"
    return f"{kind}, predicts new rows" if record["inductive"] else kind

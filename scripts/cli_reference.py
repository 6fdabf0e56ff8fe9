"""docs/cli.md, made from the help texts: ``python scripts/cli_reference.py > docs/cli.md`` (or ``make docs``)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from contone.cli.app import app

HEAD = """# The command line

This page is made from the help texts (`make docs`); a test keeps it so. `python -m contone` is the same as `contone`.
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(name, command) for name, command in commands())])


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by the words that call it, the groups included."""
    yield from _walk("contone", get_command(app))


def examples(command: Any) -> list[str]:
    """The example lines of a command's help text."""
    _, found, rest = _paragraphs(command.help).partition("\n\nExample")
    return [line.strip() for line in rest.split("\n\n")[1:] if line.strip()] if found else []


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, below in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {child}", below)


def _section(name: str, command: Any) -> str:
    text, _, _ = _paragraphs(command.help).partition("\n\nExample")
    parts = [f"## {name}", text.strip()]
    shown = examples(command)
    if shown:
        parts.append("```sh\n" + "\n".join(shown) + "\n```")
    rows = [_row(p) for p in command.params if p.name != "help"]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _row(param: Any) -> str:
    names = ", ".join(f"`{o}`" for o in (*param.opts, *param.secondary_opts) if o.startswith("-"))
    metavar = param.metavar or ""
    if not names:  # an argument
        names, metavar = f"`{metavar or (param.name or '').upper()}`", ""
    notes = []
    if param.required:
        notes.append("required")
    elif param.default not in (None, False, True, "", ()):
        notes.append(f"default `{param.default}`")
    text = " ".join([param.help or "", f"({', '.join(notes)})" if notes else ""]).strip()
    return f"| {names}{f' `{metavar}`' if metavar else ''} | {text.replace('|', chr(92) + '|')} |"


def _paragraphs(text: str | None) -> str:
    return inspect.cleandoc(text or "")


if __name__ == "__main__":
    print(markdown(), end="")

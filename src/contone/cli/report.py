"""`contone report`: stored results as one page, or as JSON, Markdown or LaTeX."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from contone.cli import experiment, options, terminal
from contone.cli.options import flag
from contone.cli.reproduce import DEFAULT_STORE

FORMATS = ("html", "json", "markdown", "latex")


@options.command
def report(
    store: Annotated[Path, flag("--store FOLDER")] = DEFAULT_STORE,
    out: Annotated[Path | None, flag("--out -o FILE", show_default=False)] = None,
    form: Annotated[str, flag("--format FORMAT")] = "",
    show: Annotated[bool, flag("--open/--no-open")] = False,
    force: options.Force = False,
) -> None:
    """Make the report from stored results.

    One self-contained HTML file, report.html unless another is named: published and measured figures side by side,
    pictures, errata of the paper, provenance. It can be made during a run, and says what is missing.

    Examples:

    contone report --open

    contone report --store contone-results -o results.tex

    Parameters
    ----------
    store : path
        Folder of the results that 'reproduce' or 'benchmark' wrote.
    out : path
        File to write; - for stdout.
    form : word
        html, json, markdown, latex; without it, what the file's name says.
    show : bool
        Open the page in the browser.
    force : bool
        Overwrite existing files.
    """
    from contone.exceptions import DataError
    from contone.experiments.store import Store
    from contone.pages import render
    from contone.runtime.files import replacing
    from contone.tables.targets import check_targets

    terminal.need_report()
    by_name = render.FORMATS.get(out.suffix.lower(), "") if out is not None else ""
    form = form or by_name or "html"
    if form not in FORMATS:
        raise terminal.usage_error(f"no format {form!r}; there are: {', '.join(FORMATS)}.", "--format")
    if not Store(store).exists():
        raise DataError(f"{store} holds no results: run 'contone reproduce --store {store}' first, or name another.")
    folder = Store(store)
    suffix = next(s for s, f in render.FORMATS.items() if f == form)
    target = out if out is not None else Path(f"report{suffix}")
    if str(target) == "-":
        typer.echo(render.render(experiment.make_report(folder), form), nl=False)
        return
    check_targets([], {"out": target}, overwrite=force)
    with terminal.working("reading the results and drawing"):
        text = render.render(experiment.make_report(folder), form)
    with replacing(target, overwrite=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    terminal.say(f"report: {target}")
    if show:
        webbrowser.open(target.resolve().as_uri())

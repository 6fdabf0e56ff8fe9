"""`contone compare`: which method is best for a table, by data like it whose truth is known."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich import box
from rich.markup import escape
from rich.table import Table

from contone.cli import options, terminal
from contone.cli.method import find_method
from contone.cli.options import flag

if TYPE_CHECKING:
    from contone.trust import Comparison

METHODS = ("inversion", "glle", "lp", "lesc", "lemll", "km", "fcm", "lcdr")
"""What is compared unless the user says: methods that need no extra and are fast at the size of a rehearsal."""
WIDE = 100
"""Columns of a terminal that has room for the whole table."""


@options.command
def compare(
    file: options.File,
    reading: options.ReadingToCompare,
    method: Annotated[options.Names, flag("--method -m NAME")] = None,
    replicates: Annotated[int, flag("--replicates N", min=1)] = 5,
    max_rows: Annotated[int, flag("--max-rows N", min=2)] = 2000,
    budget: Annotated[float | None, flag("--budget SECONDS", min=0)] = 60.0,
    jobs: Annotated[int, flag("--jobs -j N")] = 1,
    seed: Annotated[int, flag("--seed N", min=0)] = 0,
    figure: Annotated[Path | None, flag("--figure PATH")] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods on data like the table's whose truth is known.

    A model is fitted to the table; it draws degrees for the same features, and labels by the same rule. Every method is
    run on these labels and scored against the degrees that made them. With votes and levels, methods that take 0/1
    labels get the label that most people chose. Nothing is written but the figure.

    Examples:

    contone compare songs.csv --labels calm,happy,sad

    contone compare songs.parquet --labels 'mood_*' --method glle --method inversion --json

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance.
    reading : Reading
        Which columns are what.
    method : names
        May be repeated; see: contone methods; or MODULE:CLASS.
    replicates : int
        How many data sets to rehearse.
    max_rows : int
        Rehearse a sample of this many rows.
    budget : float
        Time per method; slower ones run less.
    jobs : int
        Processes.
    seed : int
        Random seed.
    figure : path
        Draw the scores: .svg, .png or .pdf.
    force : bool
        Overwrite existing files.
    as_json : bool
        Print JSON for programs.
    """
    from contone.enhance import Inversion
    from contone.pages import figures
    from contone.runtime.machine import check_jobs
    from contone.tables import read_table
    from contone.tables.fitting import read_by
    from contone.tables.targets import check_targets
    from contone.trust import compare as compare_methods

    check_jobs(jobs)
    if figure is not None:
        terminal.need_report()
        figures.check_path(figure)
    check_targets(reading.files(file), {"figure": figure}, overwrite=force)
    names = method or list(METHODS)
    methods = {name: find_method(name, "--method")() for name in names}
    with terminal.plain_warnings():
        problem = read_table(file, progress=terminal.TerminalProgress(), **reading.given())
        problem = problem.of_one_source("comparing")
        model = Inversion(degradation=problem.rule or "main")
        for chosen in methods.values():
            read_by(chosen, problem.rule or "main")
        with terminal.working(f"rehearsing {', '.join(names)}"):
            run = partial(compare_methods, model=model, n_replicates=replicates, max_rows=max_rows, budget=budget)
            found = run(methods, problem.X, problem.Y, n_jobs=jobs, random_state=seed)
    if figure is not None:
        figures.save(found.figure(), figure)
        terminal.say(f"wrote {figure}")
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        _print(found)


def _print(found: Comparison) -> None:
    from contone.trust.comparison import COLUMNS, LESS, NOTES, rows_for_people

    console = terminal.out()
    if not console.is_terminal:  # a file or a pipe has no edge
        console.width = 200
    shown = [k for k, name in enumerate(COLUMNS[:-1]) if console.width >= WIDE or name not in LESS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k in shown:
        table.add_column(COLUMNS[k], justify="left" if k == 0 else "right", no_wrap=True)
    rows = rows_for_people(found)
    for row in rows:
        table.add_row(*(escape(terminal.clean(row[k])) for k in shown))
    console.print(table)
    for line in NOTES:
        console.print(line, markup=False)
    for row in rows:
        if row[-1]:
            terminal.say(f"{row[0]}: {row[-1]}", style="yellow")

"""`contone suggest`: which rows of a table a person should grade, as a page with sliders or as a spreadsheet."""

from __future__ import annotations

from typing import Annotated

from contone.cli import options, terminal
from contone.cli.method import Settings
from contone.cli.options import flag


@options.command
def suggest(
    file: options.File,
    output: options.Output,
    reading: options.ReadingToPredict,
    settings: Settings,
    number: Annotated[int, flag("--number -n N", min=1)] = 30,
    graded: options.Graded = None,
    force: options.Force = False,
) -> None:
    """Choose the rows whose degrees would say most about all others, for a person to grade.

    A page (.html) is one file with a slider per label; it saves graded.csv. A spreadsheet (.csv) has empty columns
    LABEL_degree: fill in percentages or shares, leave rows blank that you do not grade. Either goes to contone enhance
    with --graded. Rows that were graded before (--graded) are not suggested again.

    Examples:

    contone suggest songs.csv --labels calm,happy,sad -n 30 -o grade.html

    contone enhance songs.csv --labels calm,happy,sad --graded graded.csv -o soft.csv

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; a row is an instance.
    output : path
        A page with sliders (.html), or a spreadsheet (.csv, .tsv).
    reading : Reading
        Which columns are what.
    settings : Settings
        Settings of inversion.
    number : int
        How many rows.
    graded : path
        Rows graded before: suggest others.
    force : bool
        Overwrite what is there.
    """
    from contone.tables import suggest_file
    from contone.tables.settings import Reading
    from contone.tables.suggesting import next_command

    method = settings.build()
    with terminal.plain_warnings():
        done = suggest_file(
            file,
            output,
            k=number,
            method=method,
            overwrite=force,
            graded=graded,
            progress=terminal.TerminalProgress(),
            **reading.given(),
        )
    is_sheet = output.lower().endswith((".csv", ".tsv"))
    step = "fill in the degrees" if is_sheet else "open it in a browser, grade, and save graded.csv"
    terminal.say(f"wrote {done.path}: {len(done.rows)} of {done.n_rows:,} rows to grade; {step}, then")
    terminal.say(f"  {next_command(file, Reading(**reading.given()), method, output if is_sheet else 'graded.csv')}")

"""`contone suggest | plan`: which rows a person should grade, where people's next answers should go, and how many."""

import math
from dataclasses import asdict
from typing import Annotated

from rich import box
from rich.table import Table

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
    """Choose rows that represent all others, for a person to grade.

    A page (.html) is one file with a slider per label; it saves graded.csv. A spreadsheet (.csv) has empty columns
    LABEL_degree: fill in percentages or shares, and leave the rows blank that you do not grade. Either goes to contone
    enhance with --graded. Rows that were graded before (--graded) are not suggested again.

    For votes of several people, OUT lists the items to ask about next, and whom to ask: where one more answer lowers
    the expected log loss of all items most.

    Examples:

    contone suggest songs.csv --labels calm,happy,sad -n 30 -o grade.html

    contone enhance songs.csv --labels calm,happy,sad --graded graded.csv -o soft.csv

    contone suggest answers.csv --item item --worker who --label mood -n 200 -o next.csv

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance.
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
        Overwrite existing files.
    """
    from contone.tables import suggest_file
    from contone.tables.settings import Reading
    from contone.tables.suggesting import next_command

    asked = {"k": number, "overwrite": force, "graded": graded}
    done = terminal.run(suggest_file, file, output, method=settings.build(), **asked, **reading.given())
    if done.are_answers:
        terminal.say(f"wrote {done.path}: {len(done.rows):,} answers to ask for, about {len(set(done.rows)):,} of "
                     f"{done.n_rows:,} items")  # fmt: skip
        return
    is_sheet = output.lower().endswith((".csv", ".tsv"))
    step = "fill in the degrees" if is_sheet else "open it in a browser, grade, and save graded.csv"
    terminal.say(f"wrote {done.path}: {len(done.rows)} of {done.n_rows:,} rows to grade; {step}, then")
    again = Reading(**reading.given())
    terminal.say(f"  {next_command(file, again, output if is_sheet else 'graded.csv')}")


@options.command
def plan(file: options.File, reading: options.Reading, settings: Settings, as_json: options.AsJson = False) -> None:
    """Estimate how many answers per item you need: what more votes would bring, and how many counting would need.

    The log loss is that of one more answer, in nats. It cannot fall below the floor, because people differ.

    Examples:

    contone plan answers.csv --item item --worker who --label mood

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; or the export of an annotation tool.
    reading : Reading
        Which columns are what.
    settings : Settings
        Settings of inversion.
    as_json : bool
        Print JSON for programs.
    """
    from contone.tables import plan_file

    found = terminal.run(plan_file, file, method=settings.build(), **reading.given())
    if as_json:
        terminal.print_json(asdict(found))
        return
    table = Table("Answers per item", "Expected log loss", "Counting needs", box=box.SIMPLE_HEAD, pad_edge=False)
    for answers, loss, needed in zip(found.answers, found.expected, found.counting, strict=True):
        table.add_row(f"{answers:.3g}", f"{loss:.3f}", f"{needed:.0f}" if math.isfinite(needed) else "over 1,000")
    terminal.out().print(table)
    terminal.say(f"{found.n_answers:,} answers to {found.n_items:,} items; floor {found.floor:.3f}: people differ")

"""`contone suggest`: which rows of a table a person should grade, as a page with sliders or as a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contone.cli import options, terminal
from contone.cli.enhance import build_method, set_rule


def suggest(
    file: options.File,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A page with sliders (.html), or a spreadsheet (.csv, .tsv)."
        ),
    ],
    labels: options.Labels = None,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, help="How many rows.")] = 30,
    features: options.Features = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="NAMES", help="Columns not to learn from; graded rows are found by them."),
    ] = None,
    graded: Annotated[
        Path | None,
        typer.Option(
            "--graded", metavar="GRADED", exists=True, dir_okay=False, help="Rows graded before: suggest others."
        ),
    ] = None,
    rule: options.Rule = None,
    param: options.Param = None,
    force: options.Force = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    label_separator: options.LabelSeparator = None,
    item: options.Item = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    missing: options.Missing = "impute",
    unlabelled: options.Unlabelled = "predict",
) -> None:
    """Choose the rows whose degrees would tell most about all others, for a person to grade.

    A page (.html) is one file with a slider per label; it saves graded.csv. A spreadsheet (.csv) has empty columns
    LABEL_degree: fill in percentages or shares, leave rows blank that you do not grade. Either goes to contone enhance
    with --graded.

    Examples:

    contone suggest songs.csv --labels calm,happy,sad -n 30 -o grade.html

    contone enhance songs.csv --labels calm,happy,sad --graded graded.csv -o soft.csv
    """
    from contone.tables import suggest_file

    method = build_method("inversion", None, param or [])
    if rule is not None:
        set_rule(method, rule)
    with terminal.plain_warnings():
        done = suggest_file(
            file,
            output,
            labels=labels or [],
            k=number,
            method=method,
            features=features or [],
            ids=ids or [],
            overwrite=force,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            categorical=categorical or [],
            text=text or [],
            missing=missing,
            unlabelled=unlabelled,
            graded=graded,
            progress=terminal.TerminalProgress(),
        )
    is_sheet = output.lower().endswith((".csv", ".tsv"))
    step = "fill in the degrees" if is_sheet else "open it in a browser, grade, and save graded.csv"
    terminal.say(f"wrote {done.path}: {len(done.rows)} of {done.n_rows:,} rows to grade; {step}, then")
    terminal.say(f"  contone enhance {file} --labels … --graded {output if is_sheet else 'graded.csv'} -o OUT")

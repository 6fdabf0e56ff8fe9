"""`contone compare`: which method is best for a table, by data like it whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from contone.cli import options, terminal
from contone.cli.enhance import checked_rule
from contone.cli.listing import find_method

if TYPE_CHECKING:
    from contone.trust import Comparison

METHODS = ("inversion", "glle", "lp", "lesc", "lemll", "km", "fcm", "lcdr")
"""What is compared unless the user says: methods that need no extra and are fast at the size of a rehearsal."""


def compare(
    file: options.File,
    labels: options.Labels = None,
    features: options.Features = None,
    ids: options.Ids = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", metavar="NAME", help="May be repeated; see: contone methods; or MODULE:CLASS."),
    ] = None,
    rule: options.Rule = None,
    replicates: Annotated[
        int, typer.Option("--replicates", metavar="N", min=1, help="How many data sets to rehearse.")
    ] = 5,
    max_rows: Annotated[
        int, typer.Option("--max-rows", metavar="N", min=2, help="Rehearse a sample of this many rows.")
    ] = 2000,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="SECONDS", min=0, help="Time per method; slower ones run less.")
    ] = 60.0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Processes.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="PATH", help="Draw the scores: .svg, .png or .pdf.")
    ] = None,
    as_json: options.AsJson = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    label_separator: options.LabelSeparator = None,
    item: options.Item = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    missing: options.Missing = "impute",
) -> None:
    """Compare methods on data like the table's whose truth is known.

    A model is fitted to the table; it draws degrees for the same features, and labels by the same rule. Every method is
    run on these labels and scored against the degrees that made them. Nothing is written but the figure.

    Examples:

    contone compare songs.csv --labels calm,happy,sad

    contone compare songs.parquet --labels 'mood_*' --method glle --method inversion --json
    """
    from contone.runtime.threads import check_jobs

    check_jobs(jobs)
    if figure is not None:
        from contone.pages import figures

        figures.check_path(figure)
    names = method or list(METHODS)
    methods = {name: find_method(name, "--method")() for name in names}
    from contone.enhance import Inversion, Uniform
    from contone.tables import order, whole
    from contone.trust import compare as compare_methods

    model = Inversion(degradation=checked_rule(rule or "main"))
    wanted = order.Order(
        source=file,
        target="",
        labels=order.as_list(labels or []),
        method=Uniform(),
        features=order.as_list(features or []),
        ids=order.as_list(ids or []),
        separator=separator,
        decimal=decimal,
        label_separator=label_separator,
        item=item,
        categorical=order.as_list(categorical or []),
        text=order.as_list(text or []),
        missing=missing,
        unlabelled="drop",
        progress=terminal.TerminalProgress(),
    )
    with terminal.plain_warnings():
        fitted = whole.fit_whole(wanted)
        X = fitted.encoder.transform(fitted.problem.features)
        with terminal.working(f"rehearsing {', '.join(names)}"):
            found = compare_methods(
                methods,
                X,
                fitted.problem.L,
                model=model,
                n_replicates=replicates,
                max_rows=max_rows,
                budget=budget,
                n_jobs=jobs,
                random_state=seed,
            )
    if figure is not None:
        figures.save(found.figure(), figure)
        terminal.say(f"wrote {figure}")
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        _print(found)


def _print(found: Comparison) -> None:
    from contone.trust.comparison import COLUMNS, NOTES, rows_for_people

    console = terminal.out()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(COLUMNS[:-1]):
        table.add_column(column, justify="left" if k == 0 else "right", no_wrap=True)
    rows = rows_for_people(found)
    for row in rows:
        table.add_row(*(escape(terminal.clean(cell)) for cell in row[:-1]))
    console.print(table)
    for line in NOTES:
        console.print(line, markup=False)
    for row in rows:
        if row[-1]:
            terminal.say(f"{row[0]}: {row[-1]}", style="yellow")

"""`contone check`: can the degrees of this table be believed?"""

from typing import Annotated

import typer

from contone.cli import options, terminal
from contone.cli.enhance import check_page
from contone.cli.method import Method
from contone.cli.options import flag


@options.command
def check(
    file: options.File,
    reading: options.ReadingToPredict,
    method: Method,
    output: Annotated[str | None, flag("--output -o PAGE")] = None,
    max_rows: Annotated[int, flag("--rows N", min=10)] = 1000,
    as_json: options.AsJson = False,
    force: options.Force = False,
) -> None:
    """Check how far the degrees of a table's labels can be believed, when no truth exists.

    Fits inversion, draws labels from it and compares them with yours; tries other rules, other spreads and data drawn
    from the model; says what error to expect and what to do next. The answer of another method is compared with the
    labels, with labels that were hidden from it, and with inversion's model of the same rows; --rule is then the rule
    of that model.

    Examples:

    contone check songs.csv --labels calm,happy,sad

    contone check songs.csv --labels calm,happy,sad --rule everything -o check.html

    contone check songs.csv --labels calm,happy,sad --method glle -o check.html

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance.
    reading : Reading
        Which columns are what.
    method : Method
        The method and its settings.
    output : path
        Write the checks with pictures as a page, .html.
    max_rows : int
        Rows to look at.
    as_json : bool
        Print JSON for programs.
    force : bool
        Overwrite existing files.
    """
    from contone.enhance.inversion import Inversion
    from contone.pages.render import save
    from contone.tables.targets import check_targets
    from contone.trust import page
    from contone.trust.table_check import check_file

    check_page(output, "--output")
    check_targets(reading.files(file), {"target": output}, overwrite=force)
    chosen, model = method.chosen(), None
    if reading.rule is not None and "degradation" not in chosen.get_params(deep=False):
        model = Inversion(degradation=reading.rule)
    found = terminal.run(check_file, file, method=chosen, model=model, max_rows=max_rows, **reading.given())
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        width = terminal.out().width if terminal.out().is_terminal else 0
        typer.echo(terminal.clean(found.text(commands=True, width=width)))
    if output is not None:
        save(page.document(found, file.name, commands=True), output, overwrite=force)
        terminal.say(f"wrote {output}")

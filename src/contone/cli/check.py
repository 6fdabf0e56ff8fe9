"""`contone check`: can the degrees of this table be believed?"""

from __future__ import annotations

from typing import Annotated

import typer

from contone.cli import options, terminal
from contone.cli.enhance import build_method, checked_rule, set_rule


def check(
    file: options.File,
    labels: options.Labels = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="PAGE", help="Write the checks with pictures as a page, .html."),
    ] = None,
    features: options.Features = None,
    ids: options.Ids = None,
    method: options.Method = None,
    preset: options.Preset = None,
    rule: options.Rule = None,
    param: options.Param = None,
    max_rows: Annotated[int, typer.Option("--rows", metavar="N", min=10, help="Rows to look at.")] = 1000,
    as_json: options.AsJson = False,
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
    """Check how far the degrees of a table's labels can be believed, when no truth exists.

    Fits inversion, draws labels from it and compares them with yours; tries other rules, other spreads and data drawn
    from the model; says what error to expect and what to do next. Another method's answer is compared with the labels,
    with labels that were hidden from it, and with inversion's model of the same rows, whose rule --rule then is.

    Examples:

    contone check songs.csv --labels calm,happy,sad

    contone check songs.csv --labels calm,happy,sad --rule everything -o check.html

    contone check songs.csv --labels calm,happy,sad --method glle -o check.html
    """
    from contone.enhance.inversion import Inversion
    from contone.runtime.files import check_target
    from contone.trust import page
    from contone.trust.table_check import check_file

    if output is not None:
        if not output.lower().endswith((".html", ".htm")):
            raise terminal.usage_error(f"{output} must end in .html.", "--output")
        check_target(output, overwrite=force)
    chosen = build_method(method or "inversion", preset, param or [])
    model = None
    if rule is not None and "degradation" in chosen.get_params(deep=False):
        set_rule(chosen, rule)
    elif rule is not None:
        model = Inversion(degradation=checked_rule(rule))
    with terminal.plain_warnings():
        found = check_file(
            file,
            labels=labels or [],
            method=chosen,
            model=model,
            features=features or [],
            ids=ids or [],
            categorical=categorical or [],
            text=text or [],
            max_rows=max_rows,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            missing=missing,
            unlabelled=unlabelled,
            progress=terminal.TerminalProgress(),
        )
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        typer.echo(terminal.clean(str(found)))
    if output is not None:
        page.write(found, output, file.name, overwrite=force)
        terminal.say(f"wrote {output}")

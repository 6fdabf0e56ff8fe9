"""`contone enhance`: a table of features and 0/1 labels in, the same table with degrees out."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contone.cli import options, terminal
from contone.cli.listing import find_method, known_methods
from contone.cli.terminal import usage_error
from contone.exceptions import InputError

if TYPE_CHECKING:
    from contone.base import Enhancer


def enhance(
    file: options.File,
    output: options.Output,
    labels: options.Labels = None,
    features: options.Features = None,
    ids: options.Ids = None,
    method: options.Method = None,
    preset: options.Preset = None,
    param: options.Param = None,
    rule: options.Rule = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose the parameters on data like the table's whose truth is known.")
    ] = False,
    suffix: options.Suffix = "_degree",
    force: options.Force = False,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream", help="Piece by piece, for large files. Default: where memory would not suffice."
        ),
    ] = None,
    chunk_rows: Annotated[
        int | None, typer.Option("--chunk-rows", metavar="N", min=1, help="Stream with this many rows per piece.")
    ] = None,
    sample_rows: Annotated[
        int | None,
        typer.Option("--sample-rows", metavar="N", min=2, help="Stream, and fit on this many rows (50,000)."),
    ] = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    label_separator: options.LabelSeparator = None,
    item: options.Item = None,
    worker: options.Worker = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    missing: options.Missing = "impute",
    unlabelled: options.Unlabelled = "method",
    intervals: options.Intervals = None,
    top: options.Top = None,
    degrees_as: options.DegreesAs = "columns",
    save_model: Annotated[
        str | None, typer.Option("--save-model", metavar="MODEL", help="Keep the fitted method for contone apply.")
    ] = None,
    graded: options.Graded = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="PAGE", help="Also check the answer and write a page about it, .html."),
    ] = None,
) -> None:
    """Recover how much each label describes each row.

    OUT is the table with one new column per label, LABEL_degree. The degrees of a row are not negative and sum to 1.
    All other columns come out as they went in: numeric ones called id, index or something_id are carried along like
    text. OUT appears whole or not at all.

    A file that would not fit into memory is streamed: the method is fitted on a sample of the rows and applied piece by
    piece. Interrupted, the same command goes on where it stopped.

    Examples:

    contone enhance songs.csv --labels calm,happy,sad -o soft.csv

    contone enhance songs.parquet --labels 'mood_*' --method temperature --param c=0.5 -o soft.parquet

    contone enhance songs.csv --labels calm,happy,sad --rule everything -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --method glle --tune -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --report page.html -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --graded graded.csv -o soft.csv

    contone enhance large.parquet --labels 'mood_*' --stream -o soft.parquet
    """
    fitted = build_method(method or default_method(), preset, param or [], tune=tune)
    if rule is not None:
        set_rule(fitted, rule)
    if report is not None:
        refuse_report(report, overwrite=force)
        if worker is not None:
            raise usage_error("the checks know one set of labels per row: leave it out with --worker.", "--report")
    from contone.enhance.inversion.assessment import describe_rule
    from contone.tables import enhance_file
    from contone.tables.columns import listed

    with terminal.plain_warnings():
        done = enhance_file(
            file,
            output,
            labels=labels or [],
            method=fitted,
            features=features or [],
            ids=ids or [],
            suffix=suffix,
            overwrite=force,
            stream=stream,
            chunk_rows=chunk_rows,
            sample_rows=sample_rows,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            worker=worker,
            categorical=categorical or [],
            text=text or [],
            missing=missing,
            unlabelled=unlabelled,
            intervals=intervals,
            top=top,
            degrees_as=degrees_as,
            save_model=save_model,
            graded=graded,
            progress=terminal.TerminalProgress(),
        )
    if done.compare_errors is not None and (errors := done.compare_errors()):
        terminal.say(error_fell(*errors))
    if described := describe_rule(done.method):
        terminal.say(described)
    if hasattr(done.method, "best_params_"):
        chosen = ", ".join(f"{k}={_shown(v)}" for k, v in done.method.best_params_.items())
        terminal.say(f"  chosen on rehearsed data: {getattr(done.method, 'best_name_', method)}, {chosen}")
        for remark in done.method.rehearsal_remarks_:
            terminal.say(remark, style="yellow")
    if done.path is not None:
        terminal.say(f"wrote {done.path}: {done.n_rows:,} rows, new columns {listed(done.degrees)}")
    if report is not None:
        from contone.trust import page
        from contone.trust.table_check import check_file

        found = check_file(
            file,
            labels=labels or [],
            method=done.method,
            sample=done.sample() if done.sample is not None else None,
            features=features or [],
            ids=ids or [],
            categorical=categorical or [],
            text=text or [],
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            missing=missing,
            unlabelled=unlabelled,
            progress=terminal.TerminalProgress(),
        )
        page.write(found, report, file.name, overwrite=force)
        # The rule of Inversion has been said above.
        told = str(found.expected_error) if described else found.headline().removesuffix(".")
        terminal.say(f"{told}; {found.counted()}")
        terminal.say(f"wrote {report}")


def error_fell(before: float, after: float) -> str:
    """What graded rows changed, in a line.

    Examples
    --------
    >>> error_fell(0.02, 0.015)
    'graded rows: the expected error (mean KL) fell from 0.02 to 0.015, by 25 %'
    """
    change = 1.0 - after / before if before > 0 else 0.0
    how = "fell" if change > 0.005 else "rose" if change < -0.005 else "stayed"
    moved = f", by {abs(change):.0%}".replace("%", " %") if how != "stayed" else ""
    return f"graded rows: the expected error (mean KL) {how} from {before:.3g} to {after:.3g}{moved}"


def refuse_report(report: str, *, overwrite: bool) -> None:
    """Refuse before any work a page that could not be written after it."""
    from contone.runtime.files import check_target

    if not report.lower().endswith((".html", ".htm")):
        raise usage_error(f"{report} must end in .html.", "--report")
    check_target(report, overwrite=overwrite)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def default_method() -> str:
    """The best method of the library: inversion; the strongest baseline where it is not there."""
    return "inversion" if "inversion" in known_methods() else "temperature"


def build_method(name: str, preset: str | None, typed: list[str], *, tune: bool = False) -> Enhancer:
    """The method with its settings, checked as far as possible before any data is read."""
    from contone.base import InvalidParameterError
    from contone.trust import Best, Tuned

    cls = Best if name.lower() == "best" else find_method(name, "--method")
    if preset is not None and preset not in cls.PRESETS:
        known = ", ".join(cls.PRESETS) or "none"
        raise usage_error(f"{name} has no preset {preset!r}; it has: {known}.", "--preset")
    settings = dict(parse_param(entry) for entry in typed)
    method = cls.preset(preset) if preset is not None else cls()
    known_params = method.get_params(deep=True)
    unknown = [k for k in settings if k not in known_params]
    if unknown:
        listed = ", ".join(known_params) or "none"
        raise usage_error(f"{name} has no parameter {unknown[0]!r}; it has: {listed}.", "--param")
    try:
        method.set_params(**settings)
        method._validate_params()
    except (InvalidParameterError, ValueError, TypeError) as error:
        raise usage_error(str(error), "--param") from error
    return Tuned(method) if tune and cls is not Best else method


def set_rule(method: Enhancer, rule: str) -> None:
    """Give a method the rule that made the labels; refuse words that are no rule, and methods that assume none."""
    checked_rule(rule)
    known = method.get_params(deep=True)
    if "degradation" not in known and "model" not in known:
        raise usage_error(f"{type(method).__name__} assumes no rule: leave --rule out, or use inversion.", "--rule")
    if "model" in known:  # chosen on a rehearsal, whose model makes labels by the rule
        from contone.enhance import Inversion

        method.set_params(model=Inversion(degradation=rule))
    settings = [name for name in ("degradation", "enhancer__degradation") if name in known]
    method.set_params(**dict.fromkeys(settings, rule))


def checked_rule(rule: str) -> str:
    """The rule as it was typed, if it is one."""
    from contone.measurements import parse_rule

    try:
        parse_rule(rule)
    except InputError as error:
        raise usage_error(str(error), "--rule") from error
    return rule


def parse_param(entry: str) -> tuple[str, Any]:
    """``key=value`` with a Python literal as value; a bare word is text, so quotes are not needed in the shell.

    Examples
    --------
    >>> parse_param("c=0.5"), parse_param("metric=cosine"), parse_param("sigma=None")
    (('c', 0.5), ('metric', 'cosine'), ('sigma', None))
    """
    key, equals, value = (part.strip() for part in entry.partition("="))
    if not equals or not key or not value:
        raise usage_error(f"{entry!r} is not of the form KEY=VALUE, e.g. c=0.5.", "--param")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        words = {"true": True, "false": False, "none": None}
        if value.lower() in words:
            return key, words[value.lower()]
        if re.fullmatch(r"[A-Za-z_][\w.-]*", value):
            return key, value
        raise usage_error(
            f"the value in {entry!r} is no Python literal (a number, True, None, a 'text', a [list]).", "--param"
        ) from error

"""`contone fit | apply | show | evaluate`: a model's life, and how good an answer is."""

from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.table import Table

from contone.cli import options, terminal
from contone.cli.method import Method, find_method
from contone.cli.options import argument, flag

Model = Annotated[Path, argument("MODEL")]


@options.command
def fit(
    file: options.File,
    output: Annotated[str, flag("--output -o MODEL")],
    reading: options.Reading,
    method: Method,
    graded: options.Graded = None,
    force: options.Force = False,
) -> None:
    """Fit a method on a table and keep it, with the columns it needs, for contone apply.

    The file holds arrays and JSON, never code.

    Examples:

    contone fit songs.csv --labels calm,happy,sad -o moods.contone

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance.
    output : path
        Where to write the model.
    reading : Reading
        Which columns are what.
    method : Method
        The method and its settings.
    graded : path
        Degrees of some rows, graded by a person: see contone suggest.
    force : bool
        Overwrite existing files.
    """
    from contone.tables import fit_file

    chosen = method.chosen()
    model = terminal.run(fit_file, file, output, method=chosen, overwrite=force, graded=graded, **reading.given())
    terminal.say(f"wrote {output}: {type(model.method).__name__}, {model.n_rows:,} rows, {len(model.labels)} labels")


@options.command
def apply(
    model: Model,
    file: options.File,
    output: options.Output,
    reading: options.NewRows,
    writing: options.Writing,
    trust: options.Trust = None,
) -> None:
    """Predict the degrees of the rows of another table with a saved model.

    If the table has the model's label columns, they are used. A model of people's answers also uses what people said of
    an item, in an export of an annotation tool or in a table of answers. Otherwise the degrees come from the features
    alone. Columns are found by name, in any order.

    Examples:

    contone apply moods.contone new_songs.csv -o soft.csv

    contone apply topics.contone new-export.json -o predictions.json

    contone apply topics.contone answers.csv --item item --worker who --label topic -o soft.csv

    Parameters
    ----------
    model : path
        A file that contone fit wrote.
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance. Or the export
        of an annotation tool.
    output : path
        Where to write: .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; - is CSV on stdout; .json goes back into Label
        Studio (predictions) or Argilla (suggestions).
    reading : NewRows
        Which columns are what; the model knows its own.
    writing : Writing
        Which columns are added.
    trust : names
        A method of your own that may be in the model; installed ones may be.
    """
    from contone.tables import apply_model

    trusted = trusted_methods(trust)
    done = terminal.run(apply_model, model, file, output, trusted=trusted, **reading.given(), **writing.given())
    if done.path is not None:
        terminal.say(done.in_words())


def trusted_methods(typed: list[str] | None) -> list[str]:
    """Methods that the user trusts, imported from the working folder or from what is installed."""
    return [name for name in typed or [] if find_method(name, "--trust")]


@options.command
def show(model: Model, as_json: options.AsJson = False, trust: options.Trust = None) -> None:
    """Show what a model file holds: method, parameters, labels, features.

    Examples:

    contone show moods.contone

    Parameters
    ----------
    model : path
        A file that contone fit wrote.
    as_json : bool
        Print JSON for programs.
    trust : names
        A method of your own that may be in the model; installed ones may be.
    """
    from contone.tables import load_table_model
    from contone.tables.columns import listed

    found = load_table_model(model, trusted=trusted_methods(trust))
    record: dict[str, Any] = {
        "method": type(found.method).__name__,
        "parameters": {key: terminal.plain(value) for key, value in found.method.get_params(deep=False).items()},
        "fitted rows": found.n_rows,
        "labels": found.labels,
        "features": found.columns.features,
        "categories": found.columns.categories,
        "texts": found.columns.texts,
        "contone": found.contone_version,
    }
    if as_json:
        terminal.print_json(record)
    else:
        few = {key: listed(list(map(str, v)), 8) if isinstance(v, list) else v for key, v in record.items()}
        terminal.print_record(few)


@options.command
def evaluate(
    truth: Annotated[Path, argument("TRUTH")],
    answer: Annotated[Path, argument("ANSWER")],
    suffix: Annotated[str, flag("--suffix TEXT")] = "_degree",
    item: Annotated[str | None, flag("--item NAME")] = None,
    measure: Annotated[options.Names, flag("--measure NAME")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Score degrees against the truth, beside baselines that do not use the features.

    Examples:

    contone evaluate truth.csv soft.csv

    contone evaluate truth.csv soft.csv --measure kl --measure spearman

    Parameters
    ----------
    truth : path
        The true degrees.
    answer : path
        What contone enhance wrote.
    suffix : text
        Ending of the columns that hold degrees.
    item : name
        Column that identifies the rows. Default: rows are matched by their order.
    measure : names
        Measure to report, may be repeated; see: contone measures; 'all' for every one.
    as_json : bool
        Print JSON for programs.
    """
    from contone import measures
    from contone.tables import evaluate_file

    asked = "all" if measure == ["all"] else measure or None
    found = evaluate_file(truth, answer, suffix=suffix, item=item, measures=asked)
    if as_json:
        terminal.print_json({"labels": list(found.labels), "rows": found.n_rows, "scores": found.scores})
        return
    table = Table("Measure", *found.scores, box=box.SIMPLE_HEAD, pad_edge=False)
    for name, reported in measures.chosen(asked).items():
        values = {who: scores[name] for who, scores in found.scores.items()}
        best = max(values.values()) if reported.greater_is_better else min(values.values())
        cells = [f"[bold]{v:.4f}[/]" if v == best else f"{v:.4f}" for v in values.values()]
        table.add_row(f"{name} {reported.arrow}", *cells)
    terminal.out().print(table)
    terminal.say(f"{found.n_rows:,} rows, {len(found.labels)} labels; the best of a line in bold")

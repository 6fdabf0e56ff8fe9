"""`contone enhance`: a table of features and 0/1 labels in, the same table with degrees out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contone.cli import options, terminal
from contone.cli.method import Method
from contone.cli.options import flag
from contone.cli.terminal import usage_error

if TYPE_CHECKING:
    from contone.tables.writing import EnhancedFile


@options.command
def enhance(
    file: options.File,
    output: options.Output,
    reading: options.Reading,
    method: Method,
    writing: options.Writing,
    graded: options.Graded = None,
    tune: Annotated[bool, flag("--tune")] = False,
    stream: Annotated[bool | None, flag("--stream/--no-stream")] = None,
    chunk_rows: Annotated[int | None, flag("--chunk-rows N", min=1)] = None,
    sample_rows: Annotated[int | None, flag("--sample-rows N", min=2)] = None,
    save_model: Annotated[str | None, flag("--save-model MODEL")] = None,
    annotators: Annotated[str | None, flag("--annotators PERSONS")] = None,
    report: Annotated[str | None, flag("--report PAGE")] = None,
) -> None:
    """Recover how much each label describes each row.

    OUT is the table with one new column per label, LABEL_degree. The degrees of a row are not negative and sum to 1.
    All other columns come out as they went in: numeric ones called id, index or something_id are carried along like
    text. OUT appears whole or not at all.

    A file that would not fit into memory is streamed: the method is fitted on a sample of the rows and applied piece by
    piece. After an interruption the same command resumes where it stopped.

    Examples:

    contone enhance songs.csv --labels calm,happy,sad -o soft.csv

    contone enhance songs.parquet --labels 'mood_*' --method temperature --param c=0.5 -o soft.parquet

    contone enhance songs.csv --labels calm,happy,sad --rule everything -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --method glle --tune -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --report page.html -o soft.csv

    contone enhance songs.csv --labels calm,happy,sad --graded graded.csv -o soft.csv

    contone enhance large.parquet --labels 'mood_*' --stream -o soft.parquet

    contone enhance label-studio.json --text text --annotators persons.csv -o soft.parquet

    contone enhance answers.csv --item item --worker who --label mood -o soft.csv

    Parameters
    ----------
    file : path
        CSV, TSV, JSON lines, ARFF, libsvm (all also .gz), Parquet, Arrow or Excel; one row per instance. Or the export
        of an annotation tool: Label Studio, Argilla, Prodigy, doccano.
    output : path
        Where to write: .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; - is CSV on stdout; .json goes back into Label
        Studio (predictions) or Argilla (suggestions).
    reading : Reading
        Which columns are what.
    method : Method
        The method and its settings.
    writing : Writing
        Which columns are added.
    graded : path
        Degrees of some rows, graded by a person: see contone suggest.
    tune : bool
        Choose the parameters on data like the table's whose truth is known.
    stream : bool
        Piece by piece, for large files. Default: where memory would not suffice.
    chunk_rows : int
        Stream with this many rows per piece.
    sample_rows : int
        Stream, and fit on this many rows (50,000).
    save_model : path
        Keep the fitted method for contone apply.
    annotators : path
        Write a table of persons: how much an answer of each is worth, and what each says too often.
    report : path
        Also check the answer and write a page about it, .html.
    """
    fresh = method.chosen(tune=tune)
    check_page(report, "--report")
    from contone.tables import enhance_file
    from contone.tables.targets import check_targets

    kept = {"save_model": save_model, "annotators": annotators}
    targets = {"target": output, "report": report, **kept}
    check_targets(reading.files(file, graded), targets, overwrite=writing.overwrite, over_source=file)
    how = {"stream": stream, "chunk_rows": chunk_rows, "sample_rows": sample_rows, "graded": graded}
    done = terminal.run(enhance_file, file, output, method=fresh, **how, **kept, **reading.given(), **writing.given())
    rule = say_what_was_done(done)
    if report is not None:
        write_page(done, report, file, overwrite=writing.overwrite, rule_was_said=rule)


def say_what_was_done(done: EnhancedFile) -> bool:
    """What is worth knowing about an answer, on stderr; whether the rule of the labels was among it."""
    from contone.enhance.inversion.assessment import describe_rule

    if done.fitted is not None and done.fitted.problem.graded is not None:
        errors = done.fitted.compare_errors(terminal.TerminalProgress())
        terminal.say(error_fell(*errors)) if errors else None
    if done.fitted is not None and (judged := done.fitted.judged_by_reference()):
        right, known = judged
        terminal.say(f"  the first label of the answer is the reference in {right:,} of {known:,} items")
    if rule := describe_rule(done.method):
        terminal.say(rule)
    chosen = getattr(done.method, "best_params_", None)
    if chosen is not None:
        shown = ", ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items())
        name = getattr(done.method, "best_name_", type(done.method).__name__.lower())
        terminal.say(f"  chosen on rehearsed data: {name}, {shown}")
        for remark in getattr(done.method, "rehearsal_remarks_", ()):
            terminal.say(remark, style="yellow")
    if done.path is not None:
        terminal.say(done.in_words())
    return bool(rule)


def write_page(done: EnhancedFile, report: str, file: Path, *, overwrite: bool, rule_was_said: bool) -> None:
    """Check an answer by the rows that its method was fitted on, and write the page about it."""
    from contone.pages.render import save
    from contone.trust import page
    from contone.trust.people import look_at_people
    from contone.trust.table_check import check_rows

    if done.fitted is not None and done.fitted.problem.groups is not None:
        asked = done.fitted.rows()
        names, who = asked.item_names, asked.annotators
        with terminal.working("checking the answer"):
            people = look_at_people(done.method, asked.Y, names, who, asked.X)
        save(page.people_document(people, file.name), report, overwrite=overwrite)
        if people.findings:
            terminal.say(people.decision.sentence())
        terminal.say(f"wrote {report}")
        return
    assert done.fitted_rows is not None
    found = check_rows(done.method, done.fitted_rows(), progress=terminal.TerminalProgress())
    save(page.document(found, file.name, commands=True), report, overwrite=overwrite)
    terminal.say(found.decision.sentence())
    terminal.say(str(found.expected_error) if rule_was_said else found.headline())
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


def check_page(page: str | None, option: str) -> None:
    """Refuse before any work a page that could not be drawn after it, or whose name does not say that it is one."""
    if page is not None and not page.lower().endswith((".html", ".htm")):
        raise usage_error(f"{page} must end in .html.", option)
    if page is not None:
        terminal.need_report()

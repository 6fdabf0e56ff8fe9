"""A table in, a table out: a file at once, or streamed where it would not fit into memory; or a table in memory.

A dataset of Hugging Face is known by what it can do (`to_polars`, `add_column`, `features`), so that the library need
not be imported.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import narwhals as nw
import polars as pl

from contone import enhance
from contone.base import Enhancer
from contone.exceptions import ArgumentError, InputTypeError, MemoryEstimateError
from contone.runtime import machine
from contone.runtime.progress import Progress
from contone.tables import formats, pieces
from contone.tables import writing as output
from contone.tables.fitting import fit_problem, named_method, table_of_persons, with_intervals
from contone.tables.model_file import TableModel, load_table_model, path_of
from contone.tables.reading import check_input, pose, read_problem, recognised
from contone.tables.settings import STDOUT, AnswerOptions, Reading, ReadingOptions, Streaming, split_options
from contone.tables.streaming import Request, stream_file
from contone.tables.table import Table
from contone.tables.targets import check_targets
from contone.tables.writing import EnhancedFile


def enhance_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    method: str | Enhancer = "inversion",
    stream: bool | None = None,
    chunk_rows: int | None = None,
    sample_rows: int | None = None,
    save_model: str | os.PathLike[str] | None = None,
    annotators: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Unpack[AnswerOptions],
) -> EnhancedFile:
    """Recover how much each label describes each row of a table in a file, and write the table with the degrees.

    The file appears whole or not at all. Columns that are neither label nor feature come out as they went in.

    Parameters
    ----------
    source : path
        As in `read_table`.
    target : path
        .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; ``"-"`` is CSV on stdout.
    method : str or Enhancer, default="inversion"
        A name (`contone.enhance.methods()`), ``"module:Class"``, or a method with its settings; it is cloned.
    stream : bool or None
        Piece by piece with a bounded amount of memory, the method fitted on a sample of the rows; None decides by an
        estimate of the memory that the whole table would take.
    chunk_rows, sample_rows : int or None
        Rows per piece, and rows to fit on; either asks for streaming.
    save_model : path or None
        Keep the fitted method with its columns for `apply_model`.
    annotators : path or None
        Write the table of persons: how much each answer of theirs is worth, and what they say too often.
    progress : Progress or None
        Receives what is done; None is silent.
    **options
        Everything that `read_table` takes. Where rows are ``graded``, their degrees come out as they are and inform the
        others; a method that takes no degrees itself is calibrated by them (`contone.Calibrated`). And how the answer
        is written:

        ``suffix`` ("_degree"): name of the new columns, label + suffix; "" puts the degrees in place of the labels.
        ``overwrite`` (False): replace what is at `target`. ``digits``: decimals of the degrees, rounded so that rows
        still sum to 1. ``intervals``: add LABEL_low and LABEL_high, credible intervals of that level, where the method
        gives them. ``top``: add top_1, top_2, …, the names of the labels with the largest degrees. ``degrees_as``:
        "columns", one per label; or one column ``degrees`` that holds a "list" in the order of the labels, or a
        "struct" with their names (Parquet, Arrow, JSON lines).

    Returns
    -------
    EnhancedFile
        The path, the number of rows, which columns were chosen, and the fitted method.

    Raises
    ------
    ArgumentError, DataError, LabelError, OutputError
        Each says what is wrong and what to do; what was at `target` before is then still there.
    """
    reading, writing = split_options(options, target)
    path, said, save_to = Path(source), progress or Progress(), None if save_model is None else str(save_model)
    check_input(path)
    output.check_format(writing)
    targets = {"target": writing.target, "save_model": save_to, "annotators": annotators}
    check_targets([path, *reading.files], targets, overwrite=writing.overwrite, over_source=path)
    fresh = named_method(method, reading)
    if writing.intervals is not None:
        with_intervals(fresh)
    request = Request(path, fresh, reading, writing, Streaming(chunk_rows, sample_rows), said)
    if is_streamed(request, stream):
        refuse_unless_streamable(request, annotators)
        job = stream_file(request, save_to)
        done = output.what_was_written(writing, job.blank, job.model.method)
        return replace(done, n_rows=job.source.n_rows, streamed=True, fitted_rows=job.rows)
    problem = read_problem(path, reading, said)
    if annotators is not None and problem.annotators is None:
        raise ArgumentError("the table does not say who gave which answer: name their column (--worker).", "annotators")
    output.check_answer(writing, problem)
    fitted = fit_problem(problem, fresh, said)
    output.write_problem(problem, fitted.D, writing, fitted.intervals(writing.intervals))
    if save_to is not None:
        TableModel.of(fitted).save(save_to)
    if annotators is not None:
        persons = table_of_persons(fitted)
        often = pl.Series("too_often", output.not_run(persons["too_often"].to_list(), str(annotators)))
        formats.write(persons.with_columns(often), str(annotators), overwrite=writing.overwrite)
    return replace(output.what_was_written(writing, problem, fitted.method), fitted=fitted, fitted_rows=fitted.rows)


def fit_file(
    source: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    method: str | Enhancer = "inversion",
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> TableModel:
    """Fit a method on a table in a file and keep it, with its columns, for `apply_model`.

    `model` is the file to write, of arrays and JSON, never a pickle; the other arguments are those of `enhance_file`.
    """
    reading, said = Reading(**options), progress or Progress()
    check_targets([source, *reading.files], {"target": model}, overwrite=overwrite)
    fresh = named_method(method, reading)
    fitted = fit_problem(read_problem(Path(source), reading, said), fresh, said)
    TableModel.of(fitted).save(str(model))
    return load_table_model(model, trusted=[path_of(fitted.method)])


# ----------------------------------------------------------------------------------------------- which way it goes


def is_streamed(request: Request, asked: bool | None) -> bool:
    """What was asked for; else by an estimate of the memory that the whole table would take."""
    source, progress = request.source, request.progress
    if asked is not None:
        return asked
    if request.streaming != Streaming():
        return True
    if formats.suffix_of(source) not in formats.STREAMED:
        return False
    n, width = pieces.estimated_shape(source)
    is_text = formats.suffix_of(source) in formats.SEPARATORS
    # Which columns are labels is not known yet; what they are matters little here.
    needed = machine.table_bytes(n, width, is_text=is_text) + request.method._fit_bytes(n, width, max(width // 4, 1))
    available = machine.available_bytes()
    if needed <= available:
        return False
    size = f"{source} has about {n:,} rows and needs about {machine.shown(needed)}; {machine.shown(available)} are free"
    if hasattr(request.method, "enhance"):
        progress.note(f"{size}: streaming")
        return True
    raise MemoryEstimateError(
        f"{size}, and {type(request.method).__name__} needs all rows at once. Choose a method that can stream "
        f"({_able_to_stream()}), take a sample of the rows, or set {machine.LIMIT_VARIABLE}."
    )


def refuse_unless_streamable(request: Request, annotators: object = None) -> None:
    """What only the whole table can give."""
    reading, target = request.reading, request.writing.target
    for place, argument in ((str(request.source), "source"), (target, "target")):
        if place != STDOUT and formats.suffix_of(place) not in formats.STREAMED:
            raise ArgumentError(f"{place} cannot be streamed; these can: {', '.join(formats.STREAMED)}.", argument)
    for name, given, why in (
        ("item", reading.item, "the rows of an item may be anywhere in the file"),
        ("graded", reading.graded, "graded rows must be in the fit"),
        ("embeddings", reading.embeddings, "embeddings are not read in pieces"),
        ("annotators", annotators, "the answers of a person may be anywhere in the file"),
    ):
        if given is not None:
            raise ArgumentError(f"{why}, which needs the whole table in memory: leave out --stream.", name)
    for name, only in (("missing", ("impute", "error")), ("unlabelled", ("method",))):
        if getattr(reading, name) not in only:
            raise ArgumentError(
                f"a streamed table has as many rows out as in and all of them labelled, so {getattr(reading, name)!r} "
                "needs the whole table in memory: leave out --stream, or take these rows out of the file first.",
                name,
            )
    if not hasattr(request.method, "enhance"):
        name = type(request.method).__name__
        raise ArgumentError(f"{name} needs all rows at once; these methods can stream: {_able_to_stream()}.", "method")


def _able_to_stream() -> str:
    return ", ".join(name for name, cls in enhance.methods().items() if hasattr(cls(), "enhance"))


# --------------------------------------------------------------------------------------------- tables in memory


def enhance_table(
    table: Any,
    *,
    method: str | Enhancer = "inversion",
    progress: Progress | None = None,
    **options: Unpack[AnswerOptions],
) -> Any:
    """Recover the degrees of a table that is in memory, with everything `enhance_file` knows about columns and labels.

    Parameters
    ----------
    table : data frame or datasets.Dataset
        pandas, polars or pyarrow; or a dataset of Hugging Face, whose numbers of classes are read as their names.
    method : str or Enhancer, default="inversion"
        As in `enhance_file`.
    progress : Progress or None, default=None
        Receives what is done; None is silent.
    **options
        As in `enhance_file`, but for what is about files, and without what would change the number of rows.

    Returns
    -------
    table
        Of the same kind, with the new columns; one row per item where several rows are about one.

    Examples
    --------
    >>> import polars as pl
    >>> songs = pl.DataFrame({"tempo": [60, 180, 90], "mood": [["calm", "sad"], ["happy"], ["calm"]]})
    >>> enhance_table(songs, labels="mood", method="temperature").columns
    ['tempo', 'mood', 'calm_degree', 'happy_degree', 'sad_degree']
    """
    reading, writing = split_options(options, "table.parquet")
    said = progress or Progress()
    for name in ("missing", "unlabelled"):
        if getattr(reading, name) == "drop":
            raise ArgumentError("'drop' would change the number of rows: drop these rows before.", name)
    stored, fresh = opened(table), named_method(method, reading)
    if writing.intervals is not None:
        with_intervals(fresh)
    if stored.stored.is_empty():
        raise ArgumentError("the table has no rows.", "table")
    problem = pose(recognised(stored, reading), reading, said)
    output.new_columns(writing, problem)
    fitted = fit_problem(problem, fresh, said)
    ends = fitted.intervals(writing.intervals)
    if problem.groups is not None or reading.item is not None:  # one row per item comes out
        return _like(table, output.answer_frame(writing, problem, fitted.D, ends))
    return _with_columns(table, output.added_columns(writing, problem, fitted.D, ends))


def is_dataset(table: Any) -> bool:
    """Whether it is a dataset of Hugging Face, or something that can do the same."""
    return all(hasattr(table, name) for name in ("to_polars", "add_column", "features", "column_names"))


def opened(table: Any) -> Table:
    """A table in memory as a `Table`; numbers of classes become their names."""
    if is_dataset(table):
        frame: pl.DataFrame = table.to_polars()
        named = {name: _class_names(feature) for name, feature in dict(table.features).items()}
        classes = {name: names for name, names in named.items() if names}
        frame = frame.with_columns(_named(frame[name], names) for name, names in classes.items())
        return Table(frame, categories=tuple(name for name in classes if frame[name].dtype == pl.String))
    if hasattr(table, "keys") and all(is_dataset(part) for part in dict(table).values()) and len(table):
        raise InputTypeError(f"this is a dictionary of datasets: pass one of {', '.join(map(repr, table))}.")
    if not nw.dependencies.is_into_dataframe(table):
        raise InputTypeError(
            f"a {type(table).__name__} is not a table in memory: pass a data frame (pandas, polars, pyarrow) or a "
            "datasets.Dataset."
        )
    try:
        return Table(nw.from_native(table, eager_only=True).to_polars())
    except Exception as error:  # of pyarrow, polars or narwhals: objects of Python, names twice
        raise InputTypeError(f"the table cannot be read: {str(error).partition(chr(10))[0]}.") from error


def _class_names(feature: Any) -> list[str]:
    """The names behind the numbers of a column of classes, or of a column of lists of them; [] for other columns."""
    names = getattr(getattr(feature, "feature", feature), "names", None)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []


def _named(column: pl.Series, names: list[str]) -> pl.Series:
    """Numbers of classes as names; -1, which stands for none, is missing."""
    numbers, is_list = list(range(len(names))), isinstance(column.dtype, (pl.List, pl.Array))
    entry = pl.element() if is_list else pl.col(column.name)
    named = entry.replace_strict(numbers, names, default=None, return_dtype=pl.String)
    shown = pl.col(column.name).cast(pl.List(pl.Int64)).list.eval(named) if is_list else named
    return column.to_frame().select(shown).to_series()


def _like(table: Any, frame: pl.DataFrame) -> Any:
    """A frame as the kind of table that was given."""
    if is_dataset(table):
        return table.from_polars(frame)
    kind = nw.from_native(table, eager_only=True).implementation
    return nw.to_native(nw.from_dict({c.name: c.to_list() for c in frame}, backend=kind))


def _with_columns(table: Any, new: pl.DataFrame) -> Any:
    if is_dataset(table):
        for column in new:
            if column.name in table.column_names:
                table = table.remove_columns(column.name)
            table = table.add_column(column.name, column.to_list())
        return table
    frame = nw.from_native(table, eager_only=True)
    index = nw.maybe_get_index(frame)
    columns = [nw.new_series(c.name, c.to_list(), backend=frame.implementation) for c in new]
    if index is not None:
        columns = [nw.maybe_set_index(column, index=index) for column in columns]
    return nw.to_native(frame.with_columns(*columns))

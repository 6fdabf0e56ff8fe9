"""Tables that are in memory already: data frames, and `datasets.Dataset` of Hugging Face, in and out as they came.

A dataset is known by what it can do (`to_polars`, `add_column`, `features`), so that the library need not be imported.
"""

from __future__ import annotations

from typing import Any, Unpack

import narwhals as nw
import polars as pl

from contone.base import Enhancer
from contone.exceptions import ArgumentError, InputTypeError
from contone.runtime.progress import Progress
from contone.tables import exports
from contone.tables.fitting import fit_problem, named_method, with_intervals
from contone.tables.reading import pose
from contone.tables.settings import AnswerOptions, split_options
from contone.tables.table import Table
from contone.tables.writing import added_columns, answer_frame, new_columns


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
    answers = None if reading.labels or reading.worker else exports.answers_in(stored.stored, reading.question)
    problem = pose(answers or stored, reading, said)
    new_columns(writing, problem)
    fitted = fit_problem(problem, fresh, said)
    ends = fitted.intervals(writing.intervals)
    if problem.groups is not None or reading.item is not None:  # one row per item comes out
        return _like(table, answer_frame(writing, problem, fitted.D, ends))
    return _with_columns(table, added_columns(writing, problem, fitted.D, ends))


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
        flat = tuple(name for name in classes if frame[name].dtype == pl.String)
        return Table(frame, categories=flat)
    if hasattr(table, "keys") and all(is_dataset(part) for part in dict(table).values()) and len(table):
        raise InputTypeError(f"this is a dictionary of datasets: pass one of {', '.join(map(repr, table))}.")
    try:
        return Table(nw.from_native(table, eager_only=True).to_polars())
    except TypeError as error:
        raise InputTypeError(
            f"a {type(table).__name__} is not a table in memory: pass a data frame (pandas, polars, pyarrow) or a "
            "datasets.Dataset."
        ) from error


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

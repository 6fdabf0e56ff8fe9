"""Tables that are in memory already: data frames, and `datasets.Dataset` of Hugging Face, in and out as they came.

A dataset is known by what it can do (`to_polars`, `add_column`, `features`), so that the library need not be imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from contone.exceptions import ArgumentError, InputTypeError
from contone.tables import answer, run, whole
from contone.tables.formats import Table
from contone.tables.order import Order

NOWHERE = Path("table")
"""Stands for the file that there is none of."""


def enhance(table: Any, order: Order) -> Any:
    """The table with the new columns, as the kind of table that it is."""
    for name in ("missing", "unlabelled"):
        if getattr(order, name) == "drop":
            raise ArgumentError("'drop' would change the number of rows: drop these rows before.", name)
    run.check_settings(order)
    stored = opened(table)
    if stored.stored.is_empty():
        raise ArgumentError("the table has no rows.", "table")
    fitted = whole.fit_whole(order, stored)
    problem = fitted.problem
    X = fitted.encoder.transform(problem.features)
    ends = answer.ends_of_fitted_rows(order, fitted.method, X, fitted.fitted_rows)
    new = answer.added_columns(order, problem.chosen, problem.L.columns, fitted.D, ends)
    return _with_columns(table, new)


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

    def name_of(number: int | None) -> str | None:
        return names[number] if number is not None and 0 <= number < len(names) else None

    if isinstance(column.dtype, (pl.List, pl.Array)):
        entries = [None if row is None else [name_of(k) for k in row] for row in column.to_list()]
        return pl.Series(column.name, entries, dtype=pl.List(pl.String))
    return pl.Series(column.name, [name_of(k) for k in column.to_list()], dtype=pl.String)


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

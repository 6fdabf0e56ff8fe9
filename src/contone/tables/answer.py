"""What is added to a table: degrees as columns, as one list or as one struct, ends of intervals, first labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from contone.exceptions import ArgumentError
from contone.tables import formats
from contone.tables.columns import Columns
from contone.tables.order import STDOUT, Order

WAYS = ("columns", "list", "struct")
ONE_COLUMN = "degrees"
"""What the column is called that holds all degrees of a row."""


class Ends(NamedTuple):
    """Lower and upper ends of intervals, each (n, q)."""

    low: np.ndarray
    high: np.ndarray


def check_way(order: Order) -> None:
    """Refuse before any work a way to write degrees that the output cannot hold."""
    if order.degrees_as == "columns":
        return
    able = (*formats.PARQUET, *formats.ARROW, *formats.JSON_LINES)
    if order.target == STDOUT or formats.suffix_of(order.target) not in able:
        raise ArgumentError(
            f"{order.target} cannot hold a {order.degrees_as}: write {', '.join(able)}, or degrees as columns.",
            "degrees_as",
        )


def degree_columns(order: Order, chosen: Columns, names: Sequence[str]) -> list[str]:
    """Names of the columns that the degrees come in."""
    return chosen.degrees(order.suffix, names) if order.degrees_as == "columns" else [ONE_COLUMN]


def added_columns(
    order: Order, chosen: Columns, names: Sequence[str], D: np.ndarray, ends: Ends | None = None
) -> pl.DataFrame:
    """Degrees D (n, q), and what else was asked for: ends of intervals, names of the first labels."""
    degrees = degree_columns(order, chosen, names)
    if order.degrees_as == "columns":
        new = [pl.Series(name, D[:, j]) for j, name in enumerate(degrees)]
        if ends is not None:
            for j, name in enumerate(names):
                new += [pl.Series(f"{name}_low", ends.low[:, j]), pl.Series(f"{name}_high", ends.high[:, j])]
    else:
        shown = {ONE_COLUMN: D}
        if ends is not None:
            shown |= {f"{ONE_COLUMN}_low": ends.low, f"{ONE_COLUMN}_high": ends.high}
        new = [_in_one(column, names, values, order.degrees_as) for column, values in shown.items()]
    if order.top:
        first = np.argsort(-D, axis=1, kind="stable")[:, : min(order.top, len(names))]
        new += [pl.Series(f"top_{k + 1}", [names[j] for j in first[:, k]]) for k in range(first.shape[1])]
    _refuse_taken([column.name for column in new], degrees if order.degrees_as == "columns" else [], chosen)
    return pl.DataFrame(new)


def _in_one(column: str, names: Sequence[str], values: np.ndarray, way: str) -> pl.Series:
    """All values (n, q) of a row in one entry: a list in the order of the labels, or a struct by their names."""
    if way == "list":
        return pl.Series(column, values.tolist(), dtype=pl.List(pl.Float64))
    return pl.DataFrame({name: values[:, j] for j, name in enumerate(names)}).to_struct(column)


def _refuse_taken(made: list[str], degrees: list[str], chosen: Columns) -> None:
    """`Columns.degrees` has looked at the columns of degrees; the others may not replace anything."""
    there = {*chosen.labels, *chosen.features, *chosen.carried}
    taken = next((n for i, n in enumerate(made) if n in made[:i] or (n not in degrees and n in there)), None)
    if taken is not None:
        raise ArgumentError(f"the output would have two columns {taken!r}: rename it in the table.", "suffix")


def refuse_intervals(method: Any) -> None:
    """Refuse before any work a method that gives no intervals."""
    if not hasattr(method, "intervals"):
        raise ArgumentError(f"{type(method).__name__} gives no intervals; inversion does.", "intervals")


def ends_of_new_rows(order: Order, method: Any, X: np.ndarray, L: pl.DataFrame | None) -> Ends | None:
    """Intervals of rows that the method was not fitted on, if they are asked for; from features where L is None."""
    if order.intervals is None:
        return None
    refuse_intervals(method)
    return Ends(*(np.asarray(end) for end in method.intervals(X, L, order.intervals)))


def ends_of_fitted_rows(order: Order, method: Any, X: np.ndarray, fitted_rows: np.ndarray) -> Ends | None:
    """Intervals of all rows X (n, d), of which the method was fitted on some, `fitted_rows` (n,)."""
    if order.intervals is None:
        return None
    refuse_intervals(method)
    low, high = method.intervals_(order.intervals)
    if fitted_rows.all():
        return Ends(np.asarray(low), np.asarray(high))
    others = ends_of_new_rows(order, method, X[~fitted_rows], None)
    assert others is not None
    ends = Ends(*np.empty((2, len(X), low.shape[1])))
    for end, known, other in zip(ends, (low, high), others, strict=True):
        end[fitted_rows], end[~fitted_rows] = known, other
    return ends

"""Degrees that are known of some rows, from any container, checked and put in the order of the rows and labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from array_api_compat import is_dask_array

from contone.backends import get_backend
from contone.exceptions import LabelError, ShapeError
from contone.typing import Array, Data
from contone.validation.containers import as_frame, check_column_names, first_row, read_numbers

DEGREE_TOLERANCE = 1e-3
"""How far the sum of degrees may be from 1, because people, sliders and spreadsheets round; rows are renormalised."""


class KnownDegrees(NamedTuple):
    """Distributions (m, q) that are known, and the numbers (m,) of their rows, rising."""

    rows: np.ndarray
    degrees: np.ndarray

    def among(self, numbers: np.ndarray) -> KnownDegrees:
        """Those of a sample of the rows, given by its rising numbers, and where they are in it."""
        inside = np.isin(self.rows, numbers)
        return KnownDegrees(np.searchsorted(numbers, self.rows[inside]), self.degrees[inside])


NOTHING_KNOWN = KnownDegrees(np.empty(0, dtype=np.int64), np.empty((0, 0)))


def check_degrees(degrees: Data, names: Sequence[str], n: int, X: Data, Y: Data) -> KnownDegrees:
    """Known distributions of some of the n rows of a fit to X and Y, whose labels are called `names`.

    `degrees` is (n, q), with rows on the simplex where they are known and NaN where not: an array, tensor, dask array,
    or a frame with the labels as columns. A pandas frame may hold some of the rows only: its index says which.
    """
    indexes = (nw.maybe_get_index(frame) for frame in (as_frame(Y), as_frame(X)) if frame is not None)
    index = next((found for found in indexes if found is not None), None)
    rows, whose = (range(n), "row numbers") if index is None else (index.tolist(), "the index of Y")
    return _check_values(*_open_degrees(degrees, names, rows, whose), names, f"X has {n}")


def check_degrees_of_items(degrees: Data, names: Sequence[str], items: Sequence[Hashable]) -> KnownDegrees:
    """Known distributions of some of the items of a fit with groups, in their order or as a pandas frame by item."""
    return _check_values(*_open_degrees(degrees, names, items, "groups"), names, f"groups names {len(items)} items")


def _check_values(values: np.ndarray, rows: np.ndarray, names: Sequence[str], expected: str) -> KnownDegrees:
    """Degrees (m, q) of rows (m,) without those that are not known; refused where they are no distributions."""
    if values.shape[1] != len(names):
        raise ShapeError(f"degrees has {values.shape[1]} columns; Y has {len(names)} labels. Give a degree per label.")
    if len(values) != len(rows):
        raise ShapeError(
            f"degrees has {len(values)} rows, {expected}. Give one row for each of them, NaN where the degrees are not "
            "known, or a pandas frame whose index says which they belong to."
        )
    missing = np.isnan(values)
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        row = first_row(partly)
        label = names[int(np.argmax(missing[row]))]
        raise LabelError(f"degrees knows row {rows[row]} but for {label!r}: give all degrees of a row, or none (NaN).")
    known = ~missing.all(axis=1)
    rows, values = rows[known], values[known]
    if len(rows) == 0:
        return KnownDegrees(rows, values)
    total = values.sum(axis=1)
    off = ~np.isfinite(values).all(axis=1) | (values < 0).any(axis=1) | (np.abs(total - 1.0) > DEGREE_TOLERANCE)
    if off.any():
        row = first_row(off)
        shown = ", ".join(f"{v:g}" for v in values[row][:6])
        raise LabelError(
            f"degrees must hold label distributions: row {rows[row]} has {shown}, which sum to {total[row]:.6g} "
            f"({int(off.sum())} such rows). Degrees are not negative and sum to 1 per row; divide each row by its sum."
        )
    order = np.argsort(rows, kind="stable")
    return KnownDegrees(rows[order], (values / total[:, None])[order])


def _open_degrees(degrees: Data, names: Sequence[str], rows: Sequence[Hashable], whose: str) -> tuple[Array, Array]:
    """Values (m, q) in the order of the labels, and the number (m,) of each among the rows, as `whose` names them."""
    n = len(rows)
    if is_dask_array(degrees):
        backend, missing = get_backend(degrees), np.isnan(degrees).all(axis=1)
        known = np.flatnonzero(~np.asarray(backend.compute(missing)[0]))
        return np.asarray(backend.compute(degrees[known])[0], dtype=np.float64), known
    frame = as_frame(degrees)
    if frame is None or isinstance(frame, nw.Series):
        values = read_numbers(degrees, "degrees")
        if values.ndim != 2:
            raise ShapeError(f"degrees must be a matrix, one column per label; it has shape {values.shape}.")
        return values, np.arange(n if len(values) == n else 0)
    check_column_names(degrees, "degrees")
    columns = {str(c): c for c in frame.columns}
    absent = [name for name in names if name not in columns]
    if absent:
        raise LabelError(f"degrees has no column {absent[0]!r} ({len(absent)} labels are missing): give one per label.")
    values = np.stack([read_numbers(frame[columns[name]].to_numpy(), "degrees") for name in names], axis=1)
    index = nw.maybe_get_index(frame)
    if index is None:
        return values, np.arange(n if len(values) == n else 0)
    return values, _find(index, rows, whose)


def _find(index: Data, rows: Sequence[Hashable], whose: str) -> np.ndarray:
    """Where the entries of a pandas index are among the rows."""
    wanted = index.tolist()
    if wanted == list(rows):  # where some are equal, too
        return np.arange(len(rows))
    number = {name: i for i, name in enumerate(rows)}
    if len(number) < len(rows) or not index.is_unique:
        raise LabelError(f"degrees cannot be aligned: its index, or {whose}, holds a value twice. Reset both.")
    found = np.array([number.get(name, -1) for name in wanted], dtype=np.int64)
    if (found < 0).any():
        raise LabelError(
            f"degrees has a row {wanted[first_row(found < 0)]!r} that is not in {whose} ({int((found < 0).sum())} such "
            f"rows): its index must hold entries of {whose}."
        )
    return found

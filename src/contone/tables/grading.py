"""Rows for a person to grade, and their degrees back: a spreadsheet out, a file of degrees in.

A row is known by its number and by a fingerprint of all that it holds, or by the columns named as ids. So a sheet that
was sorted, shortened or copied still finds its rows, and one that belongs to another file, or to rows that have
changed since, is refused by their numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError, LabelError
from contone.tables import columns, formats
from contone.tables.table import Table
from contone.typing import Matrix

if TYPE_CHECKING:
    from contone.tables.reading import Problem

ROW, CHECK = "contone_row", "contone_check"
"""Columns of a sheet: the number of the row in the file, from 0, and its fingerprint."""
LETTERS = str.maketrans("0123456789", "ghijklmnop")
SUFFIX = "_degree"
TOLERANCE = 0.025
"""How far the degrees of a row may be from one, because people round; rows are divided by their sum."""


def fingerprints(frame: pl.DataFrame) -> list[str]:
    """One short text per row, the same for the same entries; of letters only, so that no program reads a number."""
    texts = ("\x1f".join(map(as_text, row)).encode("utf-8", "surrogatepass") for row in frame.iter_rows())
    return [hashlib.sha256(text).hexdigest()[:12].translate(LETTERS) for text in texts]


def as_text(value: object) -> str:
    """An entry of a table as text; nothing where it is missing."""
    return "" if value is None else str(value)


def make_sheet(problem: Problem, places: NDArray[np.int64]) -> pl.DataFrame:
    """The rows at these places of a problem with all their columns, and empty columns for the degrees."""
    chosen, numbers = problem.table.stored[places.tolist()], problem.numbers[places]
    made = [f"{label}{SUFFIX}" for label in problem.label_names]
    taken = next((name for name in (ROW, CHECK, *made) if name in chosen.columns), None)
    if taken is not None:
        raise ArgumentError(f"the table has a column {taken!r}, which the sheet needs: rename it.", "source")
    front = pl.DataFrame({ROW: numbers, CHECK: fingerprints(chosen)})
    lists = [c.name for c in chosen if c.dtype.is_nested()]
    plain = chosen.with_columns(pl.Series(name, [as_text(v) for v in chosen[name]]) for name in lists)
    empty = {name: pl.Series([None] * len(places), dtype=pl.String) for name in made}
    sheet: pl.DataFrame = pl.concat([front, plain, pl.DataFrame(empty)], how="horizontal")
    return sheet


def read_graded(path: Path, table: Table, names: Sequence[str], ids: Sequence[str] = ()) -> Matrix:
    """Degrees (n, q) of the rows of a table from a file of some of them, NaN in the others.

    The file has one column per label, LABEL_degree or LABEL, and ROW and CHECK, or the columns `ids`. Degrees are
    shares that sum to 1, or percentages that sum to 100; a row without any is not graded.
    """
    sheet = formats.read(path)
    there = set(sheet.values.columns)
    found = {name: next((c for c in (f"{name}{SUFFIX}", name) if c in there), None) for name in names}
    absent = [name for name, column in found.items() if column is None]
    if absent:
        raise ArgumentError(
            f"{path} has no column {absent[0] + SUFFIX!r} ({len(absent)} labels are missing in it). It needs one "
            "column of degrees per label; contone suggest makes such a file.",
            "graded",
        )
    degrees = np.stack([_numbers(path, sheet, str(column)) for column in found.values()], axis=1)
    is_graded = np.asarray(~np.isnan(degrees).all(axis=1))
    shown = _shown_rows(sheet, ids)
    degrees = _as_shares(path, degrees[is_graded], [shown[i] for i in np.flatnonzero(is_graded)])
    graded = np.full((table.n_rows, len(names)), np.nan)
    graded[_find_rows(path, sheet.stored.filter(is_graded), table.stored, ids)] = degrees
    return graded


def _numbers(path: Path, table: Table, name: str) -> Matrix:
    column = table.values[name]
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not column.dtype.is_numeric():
        text = column.cast(pl.String).str.strip_chars()
        odd = text.filter(text.is_not_null() & (text != "") & text.cast(pl.Float64, strict=False).is_null())
        raise DataError(
            f"{path}: the column {name!r} holds {odd[0] if len(odd) else str(column.dtype)!r}, which is not a degree. "
            "Write numbers, or leave the row blank."
        )
    return np.asarray(column.cast(pl.Float64).to_numpy())


def _shown_rows(table: Table, ids: Sequence[str]) -> list[str]:
    """What each row is called in errors."""
    name = ROW if ROW in table.stored.columns else next((c for c in ids if c in table.stored.columns), None)
    return [str(v) for v in table.stored[name]] if name else [f"{i + 1} of the file" for i in range(table.n_rows)]


def _as_shares(path: Path, degrees: Matrix, shown: Sequence[str]) -> Matrix:
    """Percentages and shares as shares; what a row leaves blank is 0 where the others make it whole."""
    if len(degrees) == 0:
        raise DataError(f"{path} has no graded row: fill in the degrees of some rows.")
    filled = np.nan_to_num(degrees, nan=0.0)
    total = filled.sum(axis=1)
    percent = np.abs(total / 100.0 - 1.0) <= TOLERANCE
    off = (filled < 0).any(axis=1) | ~(percent | (np.abs(total - 1.0) <= TOLERANCE))
    if off.any():
        first = int(np.argmax(off))
        listed = columns.listed([shown[int(i)] for i in np.flatnonzero(off)])
        raise LabelError(
            f"{path}: the degrees of a row must not be negative and must sum to 100 (or to 1); those of row "
            f"{shown[first]} sum to {total[first]:g}. Rows to correct: {listed}."
        )
    return np.asarray(filled / total[:, None])


def _find_rows(path: Path, sheet: pl.DataFrame, stored: pl.DataFrame, ids: Sequence[str]) -> NDArray[np.int64]:
    """The number (m,) of each row of the sheet in the table; an error that names those that are not there."""
    keys = [name for name in columns.matching(ids, stored.columns) if name in sheet.columns]
    ours: Sequence[object]
    theirs: Sequence[object]
    if keys:
        what, numbers = f"the id {', '.join(keys)}", [None] * sheet.height
        ours, theirs = (f.select(keys).cast(pl.String).rows() for f in (stored, sheet))
        shown = [" ".join(map(as_text, row)) for row in sheet.select(keys).rows()]
    elif ROW in sheet.columns and CHECK in sheet.columns:
        what, numbers = "the content", sheet[ROW].cast(pl.Int64, strict=False).to_list()
        ours, theirs, shown = fingerprints(stored), sheet[CHECK].to_list(), [str(row) for row in sheet[ROW]]
    else:
        raise ArgumentError(
            f"{path} does not say which rows it grades: it needs the columns {ROW} and {CHECK} that contone suggest "
            "writes, or a column of ids that --id names.",
            "graded",
        )
    places: dict[object, list[int]] = {}
    for i, key in enumerate(ours):
        places.setdefault(key, []).append(i)
    lost = [name for key, name in zip(theirs, shown, strict=True) if key not in places]
    if lost:
        raise DataError(
            f"{path} was made for other rows: by {what}, {len(lost)} of its rows are not in the table (rows "
            f"{columns.listed(lost)}). Use the file that contone suggest was given, or suggest rows again."
        )
    found = list[int]()
    for key, number, name in zip(theirs, numbers, shown, strict=True):
        # A row with the right number comes first: there may be others that hold the same.
        there = [number] if number is not None and number in places[key] else places[key]
        if len(there) > 1:
            raise DataError(f"{path}: {what} of row {name} is not unique, so it does not say which row is graded.")
        if there[0] in found:
            raise DataError(f"{path} grades row {there[0]} twice: keep one of them.")
        found.append(there[0])
    return np.array(found, dtype=np.int64)

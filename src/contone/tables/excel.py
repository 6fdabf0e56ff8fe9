"""Excel and OpenDocument sheets, by fastexcel and xlsxwriter; the first sheet of a file."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from contone.exceptions import DataError, MissingExtraError, OutputError

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 1_048_575, 16_384, 32_767
"""What a sheet holds below its header, and what a cell holds."""


def read_excel(path: Path) -> pl.DataFrame:
    """The first sheet of a file."""
    if find_spec("fastexcel") is None:
        raise MissingExtraError(
            f"Reading {path.suffix} needs fastexcel, which is not installed: pip install 'contone[excel]'. Or save the "
            "sheet as CSV."
        )
    import fastexcel

    # Not by polars.read_excel: it fails on whole numbers that are larger than an integer may be.
    try:
        sheet = fastexcel.read_excel(path.read_bytes()).load_sheet(0, schema_sample_rows=None)
        frame: pl.DataFrame = sheet.to_polars()
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise DataError(f"Cannot read {path}: {str(error).strip().splitlines()[0]}.") from error
    if frame.width:  # a blank line is not a row
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame.with_columns(_whole(column) for column in frame if column.dtype == pl.Float64)


def _whole(column: pl.Series) -> pl.Series:
    """A sheet knows numbers only; those that are whole, and exact as such, become integers."""
    there = column.drop_nulls()
    is_whole = len(there) > 0 and bool(((there == there.round()) & (there.abs() < 2.0**53)).all())
    return column.cast(pl.Int64) if is_whole else column


def refuse_without_writer() -> None:
    """Refuse before any work what could not be written after it."""
    if find_spec("xlsxwriter") is None:
        raise MissingExtraError(
            "Writing .xlsx needs xlsxwriter, which is not installed: pip install 'contone[excel]'. Or write CSV."
        )


def write_excel(frame: pl.DataFrame, path: Path) -> None:
    """One sheet; numbers keep 16 digits, as many as Excel knows; text stays text."""
    refuse_without_writer()
    if frame.height > MOST_ROWS or frame.width > MOST_COLUMNS:
        raise OutputError(
            f"The table has {frame.height:,} rows and {frame.width:,} columns; a sheet holds {MOST_ROWS:,} and "
            f"{MOST_COLUMNS:,}: write .parquet or .csv."
        )
    long = next((c.name for c in frame if c.dtype == pl.String and (c.str.len_chars() > MOST_LETTERS).any()), None)
    if long is not None:
        raise OutputError(f"The column {long!r} has texts of more than {MOST_LETTERS:,} letters, which no cell holds.")
    content = io.BytesIO()
    frame.write_excel(content, autofit=False, float_precision=6)
    path.write_bytes(content.getvalue())

"""Excel and OpenDocument sheets, by fastexcel and xlsxwriter; the first sheet of a file."""

import io
import re
import zipfile
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from contone.exceptions import DataError, OutputError, missing_extra
from contone.runtime.machine import available_bytes, shown

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 1_048_575, 16_384, 32_767
"""What a sheet holds below its header, and what a cell holds."""
MADE_OF_TEXT = ("strings_to_urls", "strings_to_formulas", "strings_to_numbers")
AS_IT_IS = {**dict.fromkeys(MADE_OF_TEXT, False), "nan_inf_to_errors": True, "in_memory": True}
"""Text is written as text: no links, no formulas, no numbers are made of it."""
FIRST_DAY = date(1900, 3, 1)
"""Before it, sheets count days in different ways, or not at all."""
CELL_BYTES = 64
"""What the reader takes for a cell, whether there is something in it or not."""


def read_excel(path: Path) -> pl.DataFrame:
    """The first sheet of a file."""
    if find_spec("fastexcel") is None:
        raise missing_extra(f"Reading {path.suffix}", "fastexcel", "excel", " Or save the sheet as CSV.")
    import fastexcel

    _refuse_what_does_not_fit(path)
    # Not by polars.read_excel: it fails on whole numbers that are larger than an integer may be.
    try:
        sheet = fastexcel.read_excel(path.read_bytes()).load_sheet(0, schema_sample_rows=None)
        frame: pl.DataFrame = sheet.to_polars()
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise DataError(f"Cannot read {path}: {str(error).strip().splitlines()[0]}.") from error
    if frame.width:  # a blank line is not a row
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame.with_columns(_whole(column) for column in frame if column.dtype == pl.Float64)


def _refuse_what_does_not_fit(path: Path) -> None:
    """Refuse, before the reader takes memory for them, sheets that a small file can claim to hold.

    The reader makes a table from the first cell to the last one: a stray entry in the last row and column is enough.
    """
    if not zipfile.is_zipfile(path):  # .xls has 65,536 rows and 256 columns at most
        return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        room = available_bytes() / 2
        if (size := sum(float(member.file_size) for member in members)) > room:
            raise DataError(f"{path} unpacks to {shown(size)}, which does not fit into memory.")
        for member in members:
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", member.filename):
                rows, columns = _last_cell(archive, member)
            elif member.filename == "content.xml":
                rows, columns = _last_repeated_cell(archive, member)
            else:
                continue
            if rows * columns * CELL_BYTES > room:
                raise DataError(
                    f"{path}: a sheet reaches over {rows:,} rows and {columns:,} columns, which would take "
                    f"{shown(float(rows * columns * CELL_BYTES))} of memory. Delete the entries far from the table, "
                    "or save it as CSV."
                )


def _last_cell(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Rows and columns of an Excel sheet by the names of its cells."""
    rows = columns = 0
    with archive.open(member) as stream:
        rest = b""
        while block := stream.read(1 << 20):
            text = rest + block
            for letters, digits in set(re.findall(rb'\br="([A-Z]{1,3})(\d{1,7})"', text)):
                number = 0
                for letter in letters:
                    number = 26 * number + letter - 64
                rows, columns = max(rows, int(digits)), max(columns, number)
            rest = text[-20:]
    return rows, columns


def _last_repeated_cell(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Rows and columns of an OpenDocument sheet, where a cell or a row may stand for many."""
    rows = columns = row = column = 0
    with archive.open(member) as stream:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            kind = element.tag.rpartition("}")[2]
            if event == "start" and kind == "table":
                row = 0
            elif event == "start" and kind == "table-row":
                column = last = 0
            elif event == "end" and kind in ("table-cell", "covered-table-cell"):
                column += _repeated(element, "columns")
                last = column if any(name.endswith("value-type") for name in element.attrib) else last
            elif event == "end" and kind == "table-row":
                row += _repeated(element, "rows")
                rows, columns = (max(rows, row), max(columns, last)) if last else (rows, columns)
                element.clear()
    return rows, columns


def _repeated(element: ElementTree.Element, what: str) -> int:
    found = next((v for name, v in element.attrib.items() if name.endswith(f"number-{what}-repeated")), "1")
    return int(found) if found.isdecimal() and len(found) < 12 else 1


def _whole(column: pl.Series) -> pl.Series:
    """A sheet knows numbers only; those that are whole, and exact as such, become integers."""
    there = column.drop_nulls()
    is_whole = len(there) > 0 and bool(((there == there.round()) & (there.abs() < 2.0**53)).all())
    return column.cast(pl.Int64) if is_whole else column


def refuse_without_writer() -> None:
    """Refuse before any work what could not be written after it."""
    if find_spec("xlsxwriter") is None:
        raise missing_extra("Writing .xlsx", "xlsxwriter", "excel", " Or write CSV.")


def write_excel(frame: pl.DataFrame, path: Path | io.BytesIO) -> None:
    """One sheet; numbers keep all their digits; text stays text.

    What a sheet does not know is written as text: whole numbers beyond 2^53, decimals of more digits than a double,
    infinite numbers, times finer than a millisecond or with a zone, days before March 1900.
    """
    refuse_without_writer()
    if frame.height > MOST_ROWS or frame.width > MOST_COLUMNS:
        raise OutputError(
            f"The table has {frame.height:,} rows and {frame.width:,} columns; a sheet holds {MOST_ROWS:,} and "
            f"{MOST_COLUMNS:,}: write .parquet or .csv."
        )
    long = next((c.name for c in frame if c.dtype == pl.String and (c.str.len_chars() > MOST_LETTERS).any()), None)
    if long is not None:
        raise OutputError(f"The column {long!r} has texts of more than {MOST_LETTERS:,} letters, which no cell holds.")
    import xlsxwriter

    class Sheet(xlsxwriter.worksheet.Worksheet):
        """A sheet with 17 digits of a number, where 16 are not all of a double."""

        def _xml_number_element(self, number: float, attributes: Any = ()) -> None:
            super()._xml_number_element(_Exact(number), attributes)

    content = io.BytesIO()  # a sheet that meets a full disk would try again when it is forgotten
    with xlsxwriter.Workbook(content, AS_IT_IS) as book:
        book.worksheet_class = Sheet
        frame.with_columns(map(_kept, frame)).write_excel(book, autofit=False, float_precision=6)
    with path.open("wb") if isinstance(path, Path) else path as file:
        file.write(content.getbuffer())


class _Exact(float):
    """A number that is written as the shortest text that gives it back, whatever format is asked for."""

    def __format__(self, _: str) -> str:
        return repr(float(self)).removesuffix(".0")


def _kept(column: pl.Series) -> pl.Series:
    """The column, as text where a sheet would round it."""
    if column.dtype.is_float():
        return column.cast(pl.String) if column.is_infinite().any() else column
    if column.dtype in (pl.Date, pl.Datetime) and (column.dt.date() < FIRST_DAY).any():
        return column.dt.to_string("iso")
    if column.dtype.is_integer():
        return column.cast(pl.String) if (column.cast(pl.Int128).abs() > 2**53).any() else column
    if column.dtype.is_decimal():
        as_number = column.cast(pl.Float64).cast(column.dtype, strict=False)
        return column if as_number.equals(column) else column.cast(pl.String)
    if column.dtype.is_temporal() and column.dtype != pl.Date:
        finer = {"ms": 1, "us": 1_000}.get(getattr(column.dtype, "time_unit", "ns"), 1_000_000)
        has_zone = getattr(column.dtype, "time_zone", None) is not None
        return column.dt.to_string("iso") if has_zone or (column.to_physical() % finer != 0).any() else column
    return column

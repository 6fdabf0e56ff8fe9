"""CSV and TSV as bytes: encoding, header, and what the text of a column can be read as without loss.

Nothing is guessed in silence: a file that is not UTF-8 is read as Windows-1252 (or Latin-1), and a note says so.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from contone.exceptions import DataError

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
BLOCK_BYTES = 1 << 24
UTF8 = "utf-8"
CODE = r"^\s*(?:\+|-?\d{17,}\s*$)"
"""Numbers that look like codes: a telephone number, or more digits than a double holds."""
DTYPES: dict[str, Any] = {str(kind): kind for kind in (pl.Null(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.String())}


@dataclass(frozen=True)
class ColumnKind:
    """What the text of a column can be read as.

    Attributes
    ----------
    dtype : polars type
        Int64, Float64, Boolean or String; Null for a column without any entry.
    exact : bool
        Writing the values gives the text back to the letter.
    plain : bool
        No entry looks like a code (a leading plus, 17 digits and more).
    """

    dtype: Any
    exact: bool = True
    plain: bool = True

    @property
    def is_number(self) -> bool:
        return bool(self.dtype.is_numeric() or self.dtype == pl.Boolean)

    def joined(self, other: ColumnKind) -> ColumnKind:
        """The kind of a column with both parts in it: whole numbers become numbers, all else that differs is text."""
        if other.dtype == pl.Null:
            return self
        if self.dtype == pl.Null:
            return other
        same = self.dtype == other.dtype
        both_numeric = self.dtype.is_numeric() and other.dtype.is_numeric()
        dtype = self.dtype if same else pl.Float64() if both_numeric else pl.String()
        return ColumnKind(dtype, same and self.exact and other.exact, self.plain and other.plain)


def kind_of(column: pl.Series) -> ColumnKind:
    """The narrowest kind that every entry of a column of text allows."""
    text = _entries(column)
    if text.null_count() == len(text):
        return ColumnKind(pl.Null())
    plain = not text.str.contains(CODE).any()
    if not text.str.contains(r"^[+-]?0\d").any():  # 00123 is a name, not a number
        for dtype in (pl.Int64(), pl.Float64()):
            numbers = text.cast(dtype, strict=False)
            if numbers.null_count() == text.null_count():
                return ColumnKind(dtype, _gives_back(numbers, column), plain)
        if text.str.to_lowercase().is_in(["true", "false"]).all():
            return ColumnKind(pl.Boolean(), bool(column.is_in(["true", "false"]).all()))
    return ColumnKind(pl.String(), plain=plain)


def read_as(column: pl.Series, dtype: Any) -> pl.Series:
    """Text as the given type, which every entry allows; an empty entry is a missing one."""
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        return column
    text = _entries(column)
    return text.str.to_lowercase() == "true" if dtype == pl.Boolean else text.cast(dtype, strict=False)


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, decompressed."""
    return gzip.open(path, "rb") if is_compressed(path) else open(path, "rb")  # type: ignore[return-value]


def is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def encoding_of(parts: Iterable[bytes]) -> str:
    """utf-8, utf-16 (by its mark), cp1252 or latin-1: the first that all bytes allow."""
    decoder, is_utf8, undefined, first = codecs.getincrementaldecoder(UTF8)(), True, False, True
    for part in parts:
        if first and part[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        first = False
        if is_utf8:
            try:
                decoder.decode(part)
            except UnicodeDecodeError:
                is_utf8 = False
        undefined = undefined or any(byte in part for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"))
    if is_utf8:
        try:
            decoder.decode(b"", final=True)
            return UTF8
        except UnicodeDecodeError:
            pass
    return "latin-1" if undefined else "cp1252"


def said_encoding(path: Path, encoding: str, note: Callable[[str], None]) -> None:
    """Say what was found, where it is not what everyone expects."""
    if encoding != UTF8:
        shown = {"cp1252": "Windows-1252 (Latin-1)", "latin-1": "Latin-1", "utf-16": "UTF-16"}[encoding]
        note(f"  {path} is not UTF-8: read as {shown}; the output is UTF-8")


def header_record(stream: IO[bytes]) -> bytes:
    """The first record; a quoted name may have line ends in it."""
    header = stream.readline()
    while header.count(b'"') % 2 and (more := stream.readline()):
        header += more
    return header


def column_names(header: bytes, separator: str, encoding: str, path: Path) -> list[str]:
    """The names in a header, as the rules of CSV read them; they must differ."""
    text = header.decode("utf-8-sig" if encoding == UTF8 else encoding)
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error as error:
        raise DataError(f"Cannot read {path}: its first line is not a header ({error}).") from error
    if not names:
        raise DataError(f"Cannot read {path}: it has no header. The first line must name the columns.")
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise DataError(f"{path} has columns of the same name: {repeated!r}.")
    return names


def parse(content: bytes | Path, names: list[str], separator: str, encoding: str, path: Path) -> pl.DataFrame:
    """The records below the header, all as text."""
    if isinstance(content, bytes):
        content = content if encoding == UTF8 else content.decode(encoding).encode(UTF8)
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    frame = pl.read_csv(stream, separator=separator, infer_schema=False, glob=False)
    if frame.width != len(names):
        raise DataError(f"Cannot read {path}: its header names {len(names)} columns, its rows have {frame.width}.")
    frame.columns = names  # polars keeps doubled quotes in names
    return frame


def _entries(column: pl.Series) -> pl.Series:
    text = column.str.strip_chars()
    return text.set(text == "", None)


def _gives_back(values: pl.Series, text: pl.Series) -> bool:
    return bool((values.cast(pl.String).fill_null("") == text.fill_null("")).all())

"""CSV and TSV as bytes: encoding, header, and what the text of a column can be read as without loss.

Nothing is guessed in silence: a file that is not UTF-8 is read as Windows-1252 (or Latin-1), and a note says so; so it
does where the separator is not that of the file's name, or the decimal mark is a comma.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import polars as pl

from contone.exceptions import DataError
from contone.tables.labels import Words, joined_words, words_of

STRAY = frozenset({"?", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "-", ".", "nil"})
"""Words that stand for a missing number, in lower case."""
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
BLOCK_BYTES = 1 << 24
SAMPLE_BYTES = 1 << 18
"""The beginning of a file from which its separator and decimal mark are found."""
SHOWN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)"}
UTF8 = "utf-8"
CODE = r"^\s*(?:\+|-?\d{17,}\s*$)"
"""Numbers that look like codes: a telephone number, or more digits than a double holds."""
DTYPES: dict[str, Any] = {str(kind): kind for kind in (pl.Null(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.String())}


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = UTF8


COMMAS = Dialect()


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
    percent : bool
        Every entry is written like 12%, and read as 0.12.
    stray : tuple of str
        Words among numbers that stand for a missing one: ?, NA.
    n_entries, n_numbers : int
        Entries that are not blank, and how many of these are numbers.
    odd : str
        The first entry that is not a number, if there is any.
    words : tuple of str or None
        The different entries, if they are few (`contone.tables.labels`).
    """

    dtype: Any
    exact: bool = True
    plain: bool = True
    percent: bool = False
    stray: tuple[str, ...] = ()
    n_entries: int = 0
    n_numbers: int = 0
    odd: str = ""
    words: Words = ()

    @property
    def is_number(self) -> bool:
        return bool(self.dtype.is_numeric() or self.dtype == pl.Boolean)

    def joined(self, other: ColumnKind) -> ColumnKind:
        """The kind of a column with both parts in it: whole numbers become numbers, all else that differs is text."""
        words = joined_words(self.words, other.words)
        if other.dtype == pl.Null:
            return replace(self, words=words)
        if self.dtype == pl.Null:
            return replace(other, words=words)
        same = self.dtype == other.dtype and self.percent == other.percent
        both_numeric = self.dtype.is_numeric() and other.dtype.is_numeric() and self.percent == other.percent
        return ColumnKind(
            dtype=self.dtype if same else pl.Float64() if both_numeric else pl.String(),
            exact=same and self.exact and other.exact,
            plain=self.plain and other.plain,
            percent=self.percent and other.percent,
            stray=tuple(sorted({*self.stray, *other.stray})),
            n_entries=self.n_entries + other.n_entries,
            n_numbers=self.n_numbers + other.n_numbers,
            odd=self.odd or other.odd,
            words=words,
        )

    @property
    def is_mostly_numbers(self) -> bool:
        """Whether text holds numbers but for a few entries: more likely a fault in the file than a text."""
        return self.dtype == pl.String and self.n_numbers >= 3 and self.n_numbers >= 0.8 * self.n_entries


def kind_of(column: pl.Series, decimal: str = ".") -> ColumnKind:
    """The narrowest kind that every entry of a column of text allows."""
    text, words = _entries(column), words_of(column)
    if text.null_count() == len(text):
        return ColumnKind(pl.Null(), words=words)
    written = text.drop_nulls()
    rest = written.filter(~written.str.to_lowercase().is_in(list(STRAY)))
    kind = _kind_of_entries(rest, decimal)
    if not kind.is_number or (kind.dtype == pl.Boolean and len(rest) < len(written)):
        kind = _kind_of_entries(written, decimal) if len(rest) < len(written) else kind
        stray = written[:0]
    else:
        stray = written.filter(written.str.to_lowercase().is_in(list(STRAY)))
    values = read_as(column, kind, decimal)
    as_written = not kind.percent and stray.is_empty() and _gives_back(values, column, decimal)
    return replace(
        kind,
        exact=kind.dtype == pl.String or as_written,
        stray=tuple(sorted(stray.unique().to_list())[:5]),
        n_entries=len(written),
        words=words,
    )


def _kind_of_entries(text: pl.Series, decimal: str) -> ColumnKind:
    """The kind of entries that are all there; how many of them are numbers, and the first that is not."""
    if text.is_empty():
        return ColumnKind(pl.String())
    plain = not text.str.contains(CODE).any()
    numbers = _pointed(text, decimal).cast(pl.Float64, strict=False)
    counted = {"n_numbers": len(text) - numbers.null_count(), "odd": next(iter(text.filter(numbers.is_null())), "")}
    if text.str.contains(r"^[+-]?0\d").any():  # 00123 is a name, not a number
        return ColumnKind(pl.String(), plain=plain)
    if not numbers.null_count():
        whole = text.cast(pl.Int64, strict=False)
        return ColumnKind(pl.Float64() if whole.null_count() else pl.Int64(), plain=plain, **counted)  # type: ignore[arg-type]
    if text.str.to_lowercase().is_in(["true", "false"]).all():
        return ColumnKind(pl.Boolean())
    if text.str.ends_with("%").all():
        shares = _pointed(text.str.strip_chars_end("% "), decimal).cast(pl.Float64, strict=False)
        if not shares.null_count():
            return ColumnKind(pl.Float64(), plain=plain, percent=True)
    return ColumnKind(pl.String(), plain=plain, **counted)  # type: ignore[arg-type]


def read_as(column: pl.Series, kind: ColumnKind, decimal: str = ".") -> pl.Series:
    """Text as the given kind; an empty entry, or a word that stands for one, is missing."""
    if not kind.is_number:
        return column
    text = _entries(column)
    if kind.dtype == pl.Boolean:
        return text.str.to_lowercase() == "true"
    if kind.percent:
        return _pointed(text.str.strip_chars_end("% "), decimal).cast(pl.Float64, strict=False) / 100
    values = (text if kind.dtype == pl.Int64 else _pointed(text, decimal)).cast(kind.dtype, strict=False)
    return values.fill_nan(None) if kind.dtype == pl.Float64 else values


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


def found_dialect(
    path: Path, encoding: str, default: str, separator: str | None, decimal: str | None, note: Callable[[str], None]
) -> Dialect:
    """How a file is written, from its first records; what is not as everyone expects is said."""
    if encoding != UTF8:
        shown = {"cp1252": "Windows-1252 (Latin-1)", "latin-1": "Latin-1", "utf-16": "UTF-16"}[encoding]
        note(f"  {path} is not UTF-8: read as {shown}; the output is UTF-8")
    with opened(path) as stream:
        first = stream.read(SAMPLE_BYTES)
    text = first.decode("utf-8-sig" if encoding == UTF8 else encoding, errors="ignore")
    if len(first) == SAMPLE_BYTES:
        text = text[: text.rfind("\n") + 1]  # the last record may be cut
    chosen = separator or _separator(text, default)
    mark = decimal or _decimal(text, chosen)
    if separator is None and chosen != default:
        note(f"  {path}: columns are separated by {SHOWN.get(chosen, repr(chosen))} (--separator overrides)")
    if decimal is None and mark != ".":
        note(f"  {path}: the decimal mark is a comma (--decimal overrides)")
    return Dialect(chosen, mark, encoding)


def _separator(text: str, default: str) -> str:
    """The default if the header has it; else the one that cuts all first records into the most equal fields."""
    widths = {}
    for candidate in dict.fromkeys((default, ",", ";", "\t", "|")):
        found = [len(record) for record in _records(text, candidate) if record]
        if found and found[0] > 1 and found.count(found[0]) >= 0.9 * len(found):
            widths[candidate] = found[0]
    if default in widths:
        return default
    return max(widths, key=lambda candidate: widths[candidate]) if widths else default


def _decimal(text: str, separator: str) -> str:
    """A comma where numbers are written with one and none with a point; never where it separates the columns."""
    if separator == ",":
        return "."
    cells = [cell.strip() for record in _records(text, separator)[1:] for cell in record]
    commas = any(re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", cell, flags=re.IGNORECASE) for cell in cells)
    points = any(re.fullmatch(r"[+-]?\d*\.\d+(e[+-]?\d+)?", cell, flags=re.IGNORECASE) for cell in cells)
    return "," if commas and not points else "."


def _records(text: str, separator: str, most: int = 200) -> list[list[str]]:
    try:
        return list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), most))
    except csv.Error:
        return []


def header_record(stream: IO[bytes]) -> bytes:
    """The first record; a quoted name may have line ends in it."""
    header = stream.readline()
    while header.count(b'"') % 2 and (more := stream.readline()):
        header += more
    return header


def column_names(header: bytes, dialect: Dialect, path: Path) -> list[str]:
    """The names in a header, as the rules of CSV read them; they must differ."""
    text = header.decode("utf-8-sig" if dialect.encoding == UTF8 else dialect.encoding)
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=dialect.separator), [])
    except csv.Error as error:
        raise DataError(f"Cannot read {path}: its first line is not a header ({error}).") from error
    if not names:
        raise DataError(f"Cannot read {path}: it has no header. The first line must name the columns.")
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise DataError(f"{path} has columns of the same name: {repeated!r}.")
    return names


def parse(content: bytes | Path, names: list[str], dialect: Dialect, path: Path) -> pl.DataFrame:
    """The records below the header, all as text."""
    if isinstance(content, bytes):
        content = content if dialect.encoding == UTF8 else content.decode(dialect.encoding).encode(UTF8)
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    frame = pl.read_csv(stream, separator=dialect.separator, infer_schema=False, glob=False)
    if frame.width != len(names):
        raise DataError(f"Cannot read {path}: its header names {len(names)} columns, its rows have {frame.width}.")
    frame.columns = names  # polars keeps doubled quotes in names
    return frame


def _entries(column: pl.Series) -> pl.Series:
    text = column.str.strip_chars()
    return text.set(text == "", None)


def _pointed(text: pl.Series, decimal: str) -> pl.Series:
    return text if decimal == "." else text.str.replace(decimal, ".", literal=True)


def _gives_back(values: pl.Series, text: pl.Series, decimal: str) -> bool:
    written = values.cast(pl.String).fill_null("")
    if decimal != "." and values.dtype == pl.Float64:
        written = written.str.replace(".", decimal, literal=True)
    return bool((written == text.fill_null("")).all())

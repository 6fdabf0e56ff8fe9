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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import polars as pl

from contone.exceptions import DataError
from contone.tables.labels import Words, joined_words, words_of_columns

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
LONG_NUMBER = r"^-?\d{16,}$"
LEADING_ZERO = r"^[+-]?0\d"
KINDS: tuple[pl.DataType, ...] = (pl.Null(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.String())


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = UTF8
    is_csv: bool = True
    """Whether its name says CSV: a CSV file is written as one was read."""


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
    code : bool
        An entry looks like a code (a leading plus, 17 digits and more).
    long : bool
        An entry is a whole number of 16 digits or more, which a double may not hold.
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

    dtype: pl.DataType
    exact: bool = True
    code: bool = False
    long: bool = False
    percent: bool = False
    stray: tuple[str, ...] = ()
    n_entries: int = 0
    n_numbers: int = 0
    odd: str = ""
    words: Words = ()

    @property
    def is_number(self) -> bool:
        return bool(self.dtype.is_numeric() or self.dtype == pl.Boolean)

    @property
    def plain(self) -> bool:
        """Whether the numbers hold all that the text says."""
        return not (self.code or (self.long and self.dtype == pl.Float64))

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
            code=self.code or other.code,
            long=self.long or other.long,
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


def kinds_of(frame: pl.DataFrame, decimal: str = ".") -> dict[str, ColumnKind]:
    """The narrowest kind that every entry of a column of text allows, for all columns at once."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    if not texts:
        return {name: ColumnKind(kind, words=None) for name, kind in frame.schema.items()}
    written = frame.select(texts).select(_entry(pl.all()))
    rest = written.select(pl.when(~pl.all().str.to_lowercase().is_in(sorted(STRAY))).then(pl.all()).name.keep())
    words = words_of_columns(frame.select(texts))
    kinds = {}
    for name, all_entries, entries in zip(texts, _facts(written, decimal), _facts(rest, decimal), strict=True):
        kind, n = _kind_of(entries), all_entries["entries"]
        has_stray = entries["entries"] < n
        if n == 0:
            kind = ColumnKind(pl.Null())
        elif has_stray and (not kind.is_number or kind.dtype == pl.Boolean):
            kind, has_stray = _kind_of(all_entries), False
        stray = sorted(set(written[name].filter(rest[name].is_null()).drop_nulls().unique())) if has_stray else []
        marks = {mark: all_entries[mark] for mark in ("code", "long")}
        kinds[name] = replace(kind, stray=tuple(stray[:5]), n_entries=n, words=words[name], **marks)
    numbers = [name for name, kind in kinds.items() if kind.is_number]
    values = read_columns(frame.select(numbers), kinds, decimal)
    back = values.select(_written(values.schema[name], name, decimal) for name in numbers)
    given = frame.select(pl.col(name).fill_null("") for name in numbers)
    for j, name in enumerate(numbers):
        is_as_written = not (kinds[name].percent or kinds[name].stray) and back.to_series(j).equals(given.to_series(j))
        kinds[name] = replace(kinds[name], exact=is_as_written)
    # Lists that were made from rows are no text.
    return {name: kinds.get(name, ColumnKind(kind, words=None)) for name, kind in frame.schema.items()}


def kind_of(column: pl.Series, decimal: str = ".") -> ColumnKind:
    """The same for one column."""
    return kinds_of(column.to_frame(), decimal)[column.name]


def _facts(entries: pl.DataFrame, decimal: str) -> list[dict[str, Any]]:
    """What decides the kind of each column: how many entries there are, how many are numbers, and so on."""
    entry, number = pl.all(), _pointed(pl.all(), decimal).cast(pl.Float64, strict=False)
    share = _pointed(entry.str.strip_chars_end("% "), decimal).cast(pl.Float64, strict=False)
    asked = {
        "entries": entry.count(),
        "numbers": number.count(),
        "whole": entry.cast(pl.Int64, strict=False).count(),
        "truths": entry.str.to_lowercase().is_in(["true", "false"]).sum(),
        "shares": (entry.str.ends_with("%") & share.is_not_null()).sum(),
        "zeros": entry.str.contains(LEADING_ZERO).any(),
        "code": entry.str.contains(CODE).any(),
        "long": entry.str.contains(LONG_NUMBER).any(),
        "odd": entry.filter(number.is_null()).drop_nulls().first(),
    }
    rows = [entries.select(expression).row(0) for expression in asked.values()]
    return [dict(zip(asked, row, strict=True)) for row in zip(*rows, strict=True)]


def _kind_of(fact: Mapping[str, Any]) -> ColumnKind:
    n = fact["entries"]
    if n == 0 or fact["zeros"]:  # 00123 is a name, not a number
        return ColumnKind(pl.String())
    if fact["numbers"] == n:
        return ColumnKind(pl.Int64() if fact["whole"] == n else pl.Float64(), n_numbers=n)
    if fact["truths"] == n:
        return ColumnKind(pl.Boolean())
    if fact["shares"] == n:
        return ColumnKind(pl.Float64(), percent=True)
    return ColumnKind(pl.String(), n_numbers=fact["numbers"], odd=fact["odd"] or "")


def read_columns(frame: pl.DataFrame, kinds: Mapping[str, ColumnKind], decimal: str = ".") -> pl.DataFrame:
    """Text as the given kinds; an empty entry, or a word that stands for one, is missing."""
    return frame.select(_reading(name, kinds[name], decimal) for name in frame.columns)


def _reading(name: str, kind: ColumnKind, decimal: str) -> pl.Expr:
    if not kind.is_number:
        return pl.col(name)
    entry = _entry(pl.col(name))
    if kind.dtype == pl.Boolean:
        return entry.str.to_lowercase() == "true"
    if kind.percent:
        return _pointed(entry.str.strip_chars_end("% "), decimal).cast(pl.Float64, strict=False) / 100
    if kind.dtype == pl.Int64:
        return entry.cast(pl.Int64, strict=False)
    return _pointed(entry, decimal).cast(pl.Float64, strict=False).fill_nan(None)


def _entry(column: pl.Expr) -> pl.Expr:
    """An entry without blanks around it; a blank one is missing."""
    return column.str.strip_chars().replace("", None)


def _pointed(column: pl.Expr, decimal: str) -> pl.Expr:
    return column if decimal == "." else column.str.replace(decimal, ".", literal=True)


def _written(kind: pl.DataType, name: str, decimal: str) -> pl.Expr:
    """Values as they would be written."""
    text = pl.col(name).cast(pl.String).fill_null("")
    return text.str.replace(".", decimal, literal=True) if decimal != "." and kind == pl.Float64 else text


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
    return Dialect(chosen, mark, encoding, is_csv=default == ",")


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
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
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

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import DataError
from contone.tables.labels import Words, joined_words, words_of_columns

STRAY = frozenset({"?", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "-", ".", "nil"})
"""Words that stand for a missing number, in lower case."""
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
BLOCK_BYTES = 1 << 24
MOST_BYTES = 1 << 28
"""Of a header."""
SAMPLE_BYTES = 1 << 18
"""The beginning of a file from which its separator and decimal mark are found."""
SHOWN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)"}
UTF8 = "utf-8"
BLOCK_CELLS = 4_000_000
"""Cells that are looked at together."""
LONG_NUMBER = r"^-?\d{16,}$"
CODE = rf"^\+|{LONG_NUMBER}"
LEADING_ZERO = r"^[+-]?0\d"


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
        An entry looks like a code: a leading plus (a telephone number), or 16 digits, which a double may not hold.
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
        return not (self.stray or self.percent or self.code)

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
    """The narrowest kind that every entry of a column of text allows, for all columns of a frame."""
    # Lists that were made from rows are no text.
    kinds = {name: ColumnKind(kind, words=None) for name, kind in frame.schema.items()}
    for names in _blocks(frame, [name for name, kind in kinds.items() if kind.dtype == pl.String]):
        kinds |= _kinds_of_block(frame.select(names), decimal)
    return kinds


def _blocks(frame: pl.DataFrame, names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Columns of text, so many at a time that they can be worked on as one long column.

    A column by itself costs a millisecond, which many columns of few rows cannot afford.
    """
    size = max(BLOCK_CELLS // max(frame.height, 1), 1)
    yield from (names[start : start + size] for start in range(0, len(names), size))


def _kinds_of_block(frame: pl.DataFrame, decimal: str) -> dict[str, ColumnKind]:
    text = pl.concat([column.alias("") for column in frame], rechunk=True)
    entry, shape = _entries(text), (frame.width, frame.height)

    def each(found: pl.Series) -> NDArray[np.bool_]:
        return np.asarray(found.fill_null(False).to_numpy(), dtype=bool).reshape(shape)

    lower, number, whole = entry.str.to_lowercase(), _numbers(entry, decimal), entry.cast(pl.Int64, strict=False)
    percent = entry.str.ends_with("%") & _numbers(entry.str.strip_chars_end("% "), decimal).is_not_null()
    there, stray = each(entry.is_not_null()), each(lower.is_in(sorted(STRAY)))
    facts = {
        "numbers": each(number.is_not_null()),
        "whole": each(whole.is_not_null()),
        "truths": each(lower.is_in(["true", "false"])),
        "shares": each(percent),
        "zeros": each(entry.str.contains(LEADING_ZERO)),
    }
    code = each(entry.str.contains(CODE))
    blank = text.fill_null("")
    as_written = {
        kind: np.asarray(each(_written(values, decimal) == blank).all(axis=1))
        for kind, values in (("Int64", whole), ("Float64", number.fill_nan(None)), ("Boolean", lower))
    }
    words, kinds = words_of_columns(frame), {}
    n, n_rest = there.sum(axis=1), (there & ~stray).sum(axis=1)
    of_all, of_rest = ({what: (found & keep).sum(axis=1) for what, found in facts.items()} for keep in (there, ~stray))
    for j, name in enumerate(frame.columns):
        kind = _kind_of(int(n_rest[j]), {what: int(counts[j]) for what, counts in of_rest.items()})
        is_stray = stray[j] if kind.is_number and kind.dtype != pl.Boolean else np.zeros_like(stray[j])
        if n[j] == 0:
            kind = ColumnKind(pl.Null())
        elif n_rest[j] < n[j] and not is_stray.any():  # words for missing numbers where there are no numbers
            kind = _kind_of(int(n[j]), {what: int(counts[j]) for what, counts in of_all.items()})
        column = entry.slice(j * frame.height, frame.height)
        odd = np.flatnonzero(there[j] & ~facts["numbers"][j])
        kinds[name] = replace(
            kind,
            exact=not kind.is_number
            or bool(not kind.percent and not is_stray.any() and as_written[str(kind.dtype)][j]),
            code=bool(code[j].any()),
            stray=tuple(sorted(set(column.filter(is_stray)))[:5]) if is_stray.any() else (),
            n_entries=int(n[j]),
            odd=column[int(odd[0])] if kind.dtype == pl.String and odd.size else "",
            words=words[name],
        )
    return kinds


def _kind_of(n: int, counts: Mapping[str, int]) -> ColumnKind:
    """The kind of n entries, of which so many are numbers, and so on."""
    if n == 0 or counts["zeros"]:  # 00123 is a name, not a number
        return ColumnKind(pl.String())
    if counts["numbers"] == n:
        return ColumnKind(pl.Int64() if counts["whole"] == n else pl.Float64(), n_numbers=n)
    if counts["truths"] == n:
        return ColumnKind(pl.Boolean())
    if counts["shares"] == n:
        return ColumnKind(pl.Float64(), percent=True)
    return ColumnKind(pl.String(), n_numbers=counts["numbers"])


def read_columns(frame: pl.DataFrame, kinds: Mapping[str, ColumnKind], decimal: str = ".") -> pl.DataFrame:
    """Text as the given kinds; an empty entry, or a word that stands for one, is missing."""
    ways: dict[str, Callable[[pl.Series], pl.Series]] = {
        "Boolean": lambda entry: entry.str.to_lowercase() == "true",
        "Int64": lambda entry: entry.cast(pl.Int64, strict=False),
        "Float64": lambda entry: _numbers(entry, decimal).fill_nan(None),
        "percent": lambda entry: _numbers(entry.str.strip_chars_end("% "), decimal) / 100,
    }
    found = {column.name: column for column in frame}
    for way, read in ways.items():
        of_kind = [c for c in found if way == ("percent" if kinds[c].percent else str(kinds[c].dtype))]
        for names in _blocks(frame, of_kind):
            values = read(_entries(pl.concat([found[name].alias("") for name in names], rechunk=True)))
            found |= {name: values.slice(j * frame.height, frame.height).alias(name) for j, name in enumerate(names)}
    return pl.DataFrame(list(found.values()))


def _entries(text: pl.Series) -> pl.Series:
    """Entries without blanks around them; a blank one is missing."""
    stripped = text.str.strip_chars()
    return stripped.set(stripped == "", None)


def _numbers(entry: pl.Series, decimal: str) -> pl.Series:
    pointed = entry if decimal == "." else entry.str.replace(decimal, ".", literal=True)
    return pointed.cast(pl.Float64, strict=False)


def _written(values: pl.Series, decimal: str) -> pl.Series:
    """Values as they would be written."""
    text = values.cast(pl.String).fill_null("")
    return text.str.replace(".", decimal, literal=True) if decimal != "." and values.dtype == pl.Float64 else text


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, decompressed."""
    return gzip.open(path, "rb") if is_compressed(path) else open(path, "rb")  # type: ignore[return-value]


def is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def encoding_of(path: Path) -> str:
    """utf-8, utf-16 (by its mark), cp1252 or latin-1: the first that all bytes allow."""
    with opened(path) as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
    for encoding in (UTF8, "cp1252"):
        with opened(path) as stream, suppress(UnicodeDecodeError):
            for _ in codecs.iterdecode(blocks(stream), encoding):
                pass
            return encoding
    return "latin-1"


def found_dialect(
    path: Path, encoding: str, default: str, separator: str | None, decimal: str | None, note: Callable[[str], None]
) -> Dialect:
    """How a file is written, from its first records; a note says what is unusual."""
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
    header = stream.readline(MOST_BYTES)
    while header.count(b'"') % 2 and len(header) < MOST_BYTES and (more := stream.readline(MOST_BYTES)):
        header += more
    if len(header) >= MOST_BYTES:
        raise DataError(f"The first line holds {MOST_BYTES:,} bytes or more: it is no header.")
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
    refuse_repeated(names, path)
    return names


def refuse_repeated(names: list[str], path: Path) -> None:
    """Names of columns must differ."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path} has columns of the same name: {repeated!r}.")


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

"""A table in pieces: Parquet by rows, text files by bytes, so that no more than one piece is in memory.

A CSV file is cut where records end: at line ends with an even number of quotes before them, which is what RFC 4180
makes of a quoted field with line ends or quotes in it. The places are remembered, so that any piece can be read by
itself later (a compressed file is decompressed up to there).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from contone.exceptions import DataError
from contone.tables import text
from contone.tables.formats import PARQUET, SEPARATORS, Table, numeric_columns, readable, suffix_of
from contone.tables.labels import Words, words_of
from contone.tables.text import ColumnKind

PIECE_CELLS = 4_000_000
"""Cells of a piece by default: some 100 MB as text, numbers and working copies."""
COMPRESSION = 4.0
"""How much smaller gzip makes a table of numbers, roughly; for estimates only."""


@dataclass
class Pieces:
    """Where the pieces of a file are.

    Attributes
    ----------
    path : Path
    names : list of str
        All columns.
    starts : list of int
        First row of each piece, and the number of rows at the end.
    offsets : list of int
        Text files: first byte of each piece, and the size at the end; empty for Parquet.
    kinds : dict
        Text files: what each column can be read as, in the whole file; empty for Parquet.
    dialect : Dialect
        How a text file is written.
    """

    path: Path
    names: list[str]
    starts: list[int]
    offsets: list[int] = field(default_factory=list)
    kinds: dict[str, ColumnKind] = field(default_factory=dict)
    numeric: list[str] = field(default_factory=list)
    dialect: text.Dialect = text.COMMAS

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_rows(self) -> int:
        return self.starts[-1]

    def read(self, wanted: list[int] | range | None = None) -> Iterator[tuple[int, Table]]:
        """The pieces of these numbers (ascending; all by default), each with its number."""
        for i, frame in self._frames(range(len(self)) if wanted is None else wanted):
            if frame.height != self.starts[i + 1] - self.starts[i]:
                raise DataError(
                    f"{self.path} changed while it was read, so its rows do not belong together: run again."
                )
            yield i, Table(frame, bool(self.offsets), self.kinds or None, self.dialect)

    def _frames(self, numbers: list[int] | range) -> Iterator[tuple[int, pl.DataFrame]]:
        with readable(self.path):
            if not self.offsets:
                scan = pl.scan_parquet(self.path, glob=False)
                for i in numbers:
                    yield i, scan.slice(self.starts[i], self.starts[i + 1] - self.starts[i]).collect()
                return
            with text.opened(self.path) as stream:
                header = text.header_record(stream)
                for i in numbers:
                    stream.seek(self.offsets[i])
                    body = stream.read(self.offsets[i + 1] - self.offsets[i])
                    yield i, text.parse(header + body, self.names, self.dialect, self.path)

    def schema(self) -> dict[str, Any]:
        """The type of each column, as the whole file allows it."""
        if self.kinds:
            return {name: kind.dtype for name, kind in self.kinds.items()}
        return dict(pl.scan_parquet(self.path, glob=False).collect_schema())

    def words(self, columns: list[str]) -> dict[str, Words]:
        """The different entries of these columns, where they are few."""
        if self.kinds:
            return {name: self.kinds[name].words for name in columns}
        scan = pl.scan_parquet(self.path, glob=False)
        nested = {name for name, kind in self.schema().items() if kind.is_nested()}
        with readable(self.path):
            return {
                name: None if name in nested else words_of(scan.select(pl.col(name).unique()).collect().to_series())
                for name in columns
            }

    def as_plain(self) -> dict[str, Any]:
        """Everything as values that JSON can hold."""
        kinds = {name: {**asdict(kind), "dtype": str(kind.dtype)} for name, kind in self.kinds.items()}
        return {**vars(self), "path": str(self.path), "kinds": kinds, "dialect": asdict(self.dialect)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Pieces:
        """The way back."""
        kinds = {
            name: ColumnKind(**{**kind, "dtype": text.DTYPES[kind["dtype"]], **_as_tuples(kind)})
            for name, kind in plain["kinds"].items()
        }
        dialect = text.Dialect(**plain["dialect"])
        return cls(**{**plain, "path": Path(plain["path"]), "kinds": kinds, "dialect": dialect})


def _as_tuples(kind: dict[str, Any]) -> dict[str, Any]:
    """JSON makes lists of tuples."""
    return {name: None if kind[name] is None else tuple(kind[name]) for name in ("stray", "words")}


def cut(
    path: Path,
    rows: int | None,
    note: Callable[[str], None] = lambda _: None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> Pieces:
    """Cut a file into pieces of that many rows; None chooses by the number of columns."""
    with readable(path):
        if suffix_of(path) in PARQUET:
            return _cut_parquet(path, rows)
        return _cut_text(path, rows, note, separator, decimal)


def estimated_shape(path: Path) -> tuple[int, int]:
    """Rows and columns of a file, without reading it: exact for Parquet, from the first megabyte for text."""
    with readable(path):
        if suffix_of(path) in PARQUET:
            scan = pl.scan_parquet(path, glob=False)
            return int(scan.select(pl.len()).collect().item()), len(scan.collect_schema())
        with text.opened(path) as stream:
            first = stream.read(1 << 20)
        size = path.stat().st_size * (COMPRESSION if text.is_compressed(path) else 1.0)
    lines = max(first.count(b"\n"), 1)
    n_columns = first.split(b"\n", 1)[0].count(SEPARATORS[suffix_of(path)].encode()) + 1
    return round(lines * max(size / max(len(first), 1), 1.0)), n_columns


def _cut_parquet(path: Path, rows: int | None) -> Pieces:
    scan = pl.scan_parquet(path, glob=False)
    schema = scan.collect_schema()
    n = int(scan.select(pl.len()).collect().item())
    rows = rows or _rows_per_piece(len(schema))
    if n == 0:
        raise DataError(f"{path} has no rows.")
    return Pieces(path, list(schema), [*range(0, n, rows), n], numeric=numeric_columns(schema))


def _cut_text(
    path: Path, rows: int | None, note: Callable[[str], None], separator: str | None, decimal: str | None
) -> Pieces:
    """Find the places to cut at, and what each column holds in all pieces."""
    with text.opened(path) as stream:
        encoding = text.encoding_of(text.blocks(stream))
    dialect = text.found_dialect(path, encoding, SEPARATORS[suffix_of(path)], separator, decimal, note)
    if encoding == "utf-16":
        raise DataError(f"{path} is UTF-16, which cannot be cut into pieces: convert it to UTF-8 first.")
    with text.opened(path) as stream:
        header = text.header_record(stream)
        names = text.column_names(header, dialect, path)
        offsets = _record_offsets(stream, len(header), rows or _rows_per_piece(len(names)))
    found = Pieces(path, names, [0] * len(offsets), offsets, dialect=dialect)
    starts, kinds = [0], {name: ColumnKind(pl.Null()) for name in names}
    for _, frame in found._frames(range(len(found))):
        starts.append(starts[-1] + frame.height)
        kinds = {column.name: kinds[column.name].joined(text.kind_of(column, dialect.decimal)) for column in frame}
    if starts[-1] == 0:
        raise DataError(f"{path} has no rows.")
    found.starts, found.kinds = starts, kinds
    found.numeric = [name for name, kind in kinds.items() if kind.is_number]
    return found


def _record_offsets(stream: IO[bytes], start: int, rows: int) -> list[int]:
    """The bytes at which every `rows`-th record begins, from `start` on, and the size of the file."""
    offsets, position, count, quotes = [start], start, 0, 0
    last = b"\n"
    for block in text.blocks(stream):
        content = np.frombuffer(block, dtype=np.uint8)
        inside = (quotes + np.cumsum(content == ord('"'))) & 1
        ends = np.flatnonzero((content == ord("\n")) & (inside == 0))
        # Every `rows`-th end of a record is a place to cut, counted through the blocks.
        offsets += (position + ends[rows - 1 - count % rows :: rows] + 1).tolist()
        count += len(ends)
        quotes = int(inside[-1])
        position += len(block)
        last = block[-1:]
    if quotes:
        raise DataError("A quote is opened and never closed, so records cannot be told apart: read the file whole.")
    if offsets[-1] == position and len(offsets) > 1 and last == b"\n":
        offsets.pop()
    return [*offsets, position]


def _rows_per_piece(n_columns: int) -> int:
    return max(PIECE_CELLS // max(n_columns, 1), 1000)

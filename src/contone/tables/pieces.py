"""A table in pieces: Parquet by rows, text files by bytes, so that no more than one piece is in memory.

A CSV file is cut where records end: at line ends with an even number of quotes before them, which is what RFC 4180
makes of a quoted field with line ends or quotes in it. The places are remembered, so that any piece can be read by
itself later (a compressed file is decompressed up to there).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from contone.exceptions import DataError
from contone.runtime.machine import available_bytes, shown
from contone.runtime.progress import Progress
from contone.tables import text
from contone.tables.formats import PARQUET, SEPARATORS, readable, suffix_of
from contone.tables.labels import Words, words_of_columns
from contone.tables.settings import Reading
from contone.tables.table import Table, numeric_columns
from contone.tables.text import ColumnKind

PIECE_CELLS = 4_000_000
"""Cells of a piece by default: some 100 MB as text, numbers and working copies."""
TEXT_BYTES = 6.0
"""Of memory for a byte of text."""
COMPRESSION = 4.0
"""How much smaller gzip makes a table of numbers, roughly; for estimates only."""


@dataclass(frozen=True)
class Pieces:
    """Where the pieces of a file are.

    Attributes
    ----------
    path : Path
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
    starts: list[int]
    offsets: list[int] = field(default_factory=list)
    kinds: dict[str, ColumnKind] = field(default_factory=dict)
    dialect: text.Dialect = text.COMMAS
    label_names = categories = ()
    """No format that can be read in pieces says which columns are labels or categories."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_rows(self) -> int:
        return self.starts[-1]

    @property
    def is_text(self) -> bool:
        return bool(self.offsets)

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The type of each column, as the whole file allows it."""
        if self.is_text:
            return {name: kind.dtype for name, kind in self.kinds.items()}
        return dict(pl.scan_parquet(self.path, glob=False).collect_schema())

    @property
    def numeric(self) -> list[str]:
        return numeric_columns(self.schema)

    def table(self, stored: pl.DataFrame) -> Table:
        """Rows of the file as a table."""
        return Table(stored, self.is_text, self.kinds or None, self.dialect)

    def head(self) -> Table:
        """A few rows of the file; of a text file none, since text can be written anywhere."""
        if self.is_text:
            return self.table(pl.DataFrame(schema=dict.fromkeys(self.kinds, pl.String())))
        return self.table(pl.read_parquet(self.path, n_rows=1000, glob=False))

    def rows_of(self, i: int) -> int:
        """Rows of one piece."""
        return self.starts[i + 1] - self.starts[i]

    def words(self, columns: Sequence[str]) -> dict[str, Words]:
        """The different entries of these columns, where they are few."""
        if self.is_text:
            return {name: self.kinds[name].words for name in columns}
        scan, found = pl.scan_parquet(self.path, glob=False), dict.fromkeys(columns, None)
        with readable(self.path):
            for name in columns:
                if not self.schema[name].is_nested():
                    found |= words_of_columns(scan.select(pl.col(name).unique()).collect())
        return found

    def read(self, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, Table]]:
        """The pieces of these numbers (ascending; all by default), each with its number."""
        for i, frame in self._frames(range(len(self)) if wanted is None else wanted):
            if frame.height != self.rows_of(i):
                raise DataError(f"{self.path} changed while it was read, and its rows are of two files: run again.")
            yield i, self.table(frame)

    def _frames(self, numbers: Sequence[int]) -> Iterator[tuple[int, pl.DataFrame]]:
        with readable(self.path):
            if not self.is_text:
                scan = pl.scan_parquet(self.path, glob=False)
                for i in numbers:
                    yield i, scan.slice(self.starts[i], self.rows_of(i)).collect()
                return
            with text.opened(self.path) as stream:
                header = text.header_record(stream)
                for i in numbers:
                    stream.seek(self.offsets[i])
                    body = stream.read(self.offsets[i + 1] - self.offsets[i])
                    yield i, text.parse(header + body, list(self.kinds), self.dialect, self.path)


def cut(path: Path, rows: int | None, reading: Reading | None = None, progress: Progress | None = None) -> Pieces:
    """Cut a file into pieces of that many rows; None chooses by the number of columns."""
    with readable(path):
        if suffix_of(path) in PARQUET:
            n, width = estimated_shape(path)
            found = Pieces(path, [*range(0, n, rows or _rows_per_piece(width)), n])
        else:
            found = _cut_text(path, rows, reading or Reading(), progress or Progress())
    if not found.n_rows:
        raise DataError(f"{path} has no rows.")
    return found


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


def _cut_text(path: Path, rows: int | None, reading: Reading, progress: Progress) -> Pieces:
    """Find the places to cut at, and what each column holds in all pieces."""
    encoding = text.encoding_of(path)
    default = SEPARATORS[suffix_of(path)]
    dialect = text.found_dialect(path, encoding, default, reading.separator, reading.decimal, progress.note)
    if encoding == "utf-16":
        raise DataError(f"{path} is UTF-16, which cannot be cut into pieces: convert it to UTF-8 first.")
    with text.opened(path) as stream:
        header = text.header_record(stream)
        names = text.column_names(header, dialect, path)
        offsets = _record_offsets(stream, len(header), rows or _rows_per_piece(len(names)))
    if (size := TEXT_BYTES * max(b - a for a, b in pairwise(offsets))) > available_bytes():
        raise DataError(f"{path} has parts that take {shown(size)} of memory: choose a smaller --chunk-rows.")
    starts, kinds = [0], {name: ColumnKind(pl.Null()) for name in names}
    found = Pieces(path, [0] * len(offsets), offsets, kinds, dialect)
    for _, frame in found._frames(range(len(found))):
        starts.append(starts[-1] + frame.height)
        more = text.kinds_of(frame, dialect.decimal)
        kinds = {name: kind.joined(more[name]) for name, kind in kinds.items()}
    return replace(found, starts=starts, kinds=kinds)


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
        raise DataError("A quote is opened and never closed, so records have no end: read the file whole.")
    if offsets[-1] == position and len(offsets) > 1 and last == b"\n":
        offsets.pop()
    return [*offsets, position]


def _rows_per_piece(n_columns: int) -> int:
    return max(PIECE_CELLS // max(n_columns, 1), 1000)

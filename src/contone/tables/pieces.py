"""A table in pieces: Parquet by rows, text files by bytes, so that no more than one piece is in memory.

A CSV file is cut where records end: at line ends with an even number of quotes before them, which is what RFC 4180
makes of a quoted field with line ends or quotes in it. The places are remembered, so that any piece can be read by
itself later (a compressed file is decompressed up to there).
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from contone.exceptions import DataError
from contone.tables.formats import PARQUET, SEPARATORS, Table, refuse_repeated, suffix_of

BLOCK_BYTES = 1 << 24
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
        Text files: the type of each column, as the whole file allows it; empty for Parquet.
    """

    path: Path
    names: list[str]
    starts: list[int]
    offsets: list[int] = field(default_factory=list)
    kinds: dict[str, Any] = field(default_factory=dict)
    numeric: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_rows(self) -> int:
        return self.starts[-1]

    def read(self, wanted: list[int] | range | None = None) -> Iterator[tuple[int, Table]]:
        """The pieces of these numbers (ascending; all by default), each with its number."""
        numbers = range(len(self)) if wanted is None else wanted
        try:
            if not self.offsets:
                scan = pl.scan_parquet(self.path)
                for i in numbers:
                    yield i, Table(scan.slice(self.starts[i], self.starts[i + 1] - self.starts[i]).collect())
                return
            with _open(self.path) as stream:
                header = _header(stream)
                for i in numbers:
                    stream.seek(self.offsets[i])
                    body = stream.read(self.offsets[i + 1] - self.offsets[i])
                    yield i, Table(_parse(header + body, self.path), is_text=True, kinds=self.kinds)
        except (pl.exceptions.PolarsError, OSError, EOFError) as error:
            raise _unreadable(self.path, error) from error


def cut(path: Path, rows: int | None) -> Pieces:
    """Cut a file into pieces of that many rows; None chooses by the number of columns."""
    try:
        if suffix_of(path) in PARQUET:
            return _cut_parquet(path, rows)
        return _cut_text(path, rows)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def estimated_shape(path: Path) -> tuple[int, int]:
    """Rows and columns of a file, without reading it: exact for Parquet, from the first megabyte for text."""
    try:
        if suffix_of(path) in PARQUET:
            scan = pl.scan_parquet(path)
            return int(scan.select(pl.len()).collect().item()), len(scan.collect_schema())
        with _open(path) as stream:
            first = stream.read(1 << 20)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        raise _unreadable(path, error) from error
    lines = max(first.count(b"\n"), 1)
    size = path.stat().st_size * (COMPRESSION if _is_compressed(path) else 1.0)
    n_columns = first.split(b"\n", 1)[0].count(SEPARATORS[suffix_of(path)].encode()) + 1
    return round(lines * max(size / max(len(first), 1), 1.0)), n_columns


def _cut_parquet(path: Path, rows: int | None) -> Pieces:
    scan = pl.scan_parquet(path)
    schema = scan.collect_schema()
    n = int(scan.select(pl.len()).collect().item())
    rows = rows or _rows_of_a_piece(len(schema))
    if n == 0:
        raise DataError(f"{path} has no rows.")
    numeric = [c for c, kind in schema.items() if kind.is_numeric() or kind == pl.Boolean]
    return Pieces(path, list(schema), [*range(0, n, rows), n], numeric=numeric)


def _cut_text(path: Path, rows: int | None) -> Pieces:
    """Find the places to cut at, and what type each column has in all pieces."""
    with _open(path) as stream:
        header = _header(stream)
        names = _parse(header, path).columns
        refuse_repeated(path, names)
        rows = rows or _rows_of_a_piece(len(names))
        offsets = _record_offsets(stream, len(header), rows)
    found = Pieces(path, names, [0] * len(offsets), offsets)
    starts, kinds = [0], dict.fromkeys(names, pl.Null())
    for _, piece in Pieces(path, names, [0] * len(offsets), offsets).read():
        table = Table(piece.stored, is_text=True)
        starts.append(starts[-1] + table.stored.height)
        kinds = {name: _common(kinds[name], kind) for name, kind in table.found_kinds().items()}
    if starts[-1] == 0:
        raise DataError(f"{path} has no rows.")
    found.starts = starts
    found.kinds = {name: pl.String() if kind == pl.Null else kind for name, kind in kinds.items()}
    found.numeric = [name for name, kind in found.kinds.items() if kind.is_numeric() or kind == pl.Boolean]
    return found


def _header(stream: IO[bytes]) -> bytes:
    """The first record; a quoted name may have line ends in it."""
    header = stream.readline()
    while header.count(b'"') % 2 and (more := stream.readline()):
        header += more
    return header


def _record_offsets(stream: IO[bytes], start: int, rows: int) -> list[int]:
    """The bytes at which every `rows`-th record begins, from `start` on, and the size of the file."""
    offsets, position, count, quotes = [start], start, 0, 0
    last = b"\n"
    while block := stream.read(BLOCK_BYTES):
        text = np.frombuffer(block, dtype=np.uint8)
        inside = (quotes + np.cumsum(text == ord('"'))) & 1
        ends = np.flatnonzero((text == ord("\n")) & (inside == 0))
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


def _common(a: Any, b: Any) -> Any:
    """The type that holds both: whole numbers become numbers, anything else that differs is text."""
    if a == b or b == pl.Null:
        return a
    if a == pl.Null:
        return b
    return pl.Float64() if a.is_numeric() and b.is_numeric() else pl.String()


def _parse(content: bytes, path: Path) -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(content), separator=SEPARATORS[suffix_of(path)], infer_schema=False)


def _rows_of_a_piece(n_columns: int) -> int:
    return max(PIECE_CELLS // max(n_columns, 1), 1000)


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if _is_compressed(path) else open(path, "rb")


def _is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = (str(error).strip().splitlines() or ["it ends too early"])[0]
    return DataError(f"Cannot read {path}: {reason}. Is it a whole {suffix_of(path)[1:]} file?")

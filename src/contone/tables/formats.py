"""CSV and Parquet tables in and out, through polars.

A CSV file is kept as the text it holds, so that columns which are only carried along come out as they went in (an id
like ``00123`` keeps its zeros); numbers are read from the text where they are needed.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from contone.exceptions import ArgumentError, ContoneError, DataError, LabelError, OutputError
from contone.runtime.files import replacing
from contone.tables import text
from contone.tables.columns import Columns
from contone.tables.order import STDOUT
from contone.tables.text import ColumnKind

SEPARATORS = text.SEPARATORS
PARQUET = (".parquet", ".pq")
FORMATS = (".csv", ".tsv", *PARQUET)


@dataclass(frozen=True)
class Table:
    """A table as it is stored; `values` is the same with numbers where the text of a CSV file holds numbers."""

    stored: pl.DataFrame
    is_text: bool = False
    given_kinds: Mapping[str, ColumnKind] | None = None
    """Kinds that were decided elsewhere, for a piece of a text file; None decides by what the table holds."""

    @cached_property
    def kinds(self) -> Mapping[str, ColumnKind]:
        """Text files: what each column can be read as."""
        if self.given_kinds is not None:
            return self.given_kinds
        return {column.name: text.kind_of(column) for column in self.stored}

    @cached_property
    def values(self) -> pl.DataFrame:
        if not self.is_text:
            return self.stored
        return pl.DataFrame([text.read_as(column, self.kinds[column.name].dtype) for column in self.stored])

    @property
    def numeric(self) -> list[str]:
        return numeric_columns(self.values.schema)

    def numbers(self, columns: Sequence[str]) -> pl.DataFrame:
        """These columns; an error that names the column and row where an entry is missing."""
        chosen = self.values.select(columns)
        missing = {c: _first_missing(chosen[c]) for c in columns if chosen[c].null_count()}
        if missing:
            listed = ", ".join(f"{c!r} (first in row {row})" for c, row in list(missing.items())[:5])
            raise DataError(
                f"{len(missing)} columns have missing entries: {listed}. "
                "Fill or drop these rows first, or choose other columns."
            )
        return chosen

    def label_numbers(self, columns: Sequence[str]) -> pl.DataFrame:
        """The same for labels, which must hold 0 and 1 or true and false."""
        odd = [c for c in columns if c not in set(self.numeric)]
        if odd:
            found = next((str(v) for v in self.stored[odd[0]].head(1000).to_list() if v is not None), "")
            raise LabelError(
                f"labels must hold 0 and 1 (or true and false) only; these columns do not: "
                f"{', '.join(map(repr, odd[:5]))} ({odd[0]!r} has {found[:40]!r})."
            )
        return self.numbers(columns)

    def with_columns(self, names: Sequence[str], D: np.ndarray, chosen: Columns, *, as_text: bool) -> pl.DataFrame:
        """The table and the columns of D (n, q) under these names; a name that exists is replaced in its place.

        Where a text file goes to a format with types, labels and features become numbers; carried columns only where
        that loses not a letter.
        """
        frame = self.stored if as_text or not self.is_text else self._typed({*chosen.labels, *chosen.features})
        return frame.with_columns(pl.Series(name, D[:, j]) for j, name in enumerate(names))

    def _typed(self, used: set[str]) -> pl.DataFrame:
        def keeps_text(name: str) -> bool:
            return not (self.kinds[name].plain if name in used else self.kinds[name].exact)

        return pl.DataFrame([(self.stored if keeps_text(name) else self.values)[name] for name in self.stored.columns])


def numeric_columns(schema: Mapping[str, Any]) -> list[str]:
    return [c for c, kind in schema.items() if kind.is_numeric() or kind == pl.Boolean]


def suffix_of(path: str | Path) -> str:
    """The format of a file by its name, `.gz` left aside; an empty string where it is none of ours."""
    name = str(path).lower().removesuffix(".gz")
    found = Path(name).suffix
    return found if found in SEPARATORS or found in PARQUET else ""


def read(path: Path, note: Callable[[str], None] = lambda _: None) -> Table:
    """A CSV, TSV (plain or gzip) or Parquet file; what is unusual about it goes to `note`."""
    with readable(path):
        table = Table(pl.read_parquet(path, glob=False)) if suffix_of(path) in PARQUET else _read_text(path, note)
    if table.stored.is_empty():
        raise DataError(f"{path} has no rows.")
    return table


def _read_text(path: Path, note: Callable[[str], None]) -> Table:
    separator = SEPARATORS[suffix_of(path)]
    with text.opened(path) as stream:
        encoding = text.encoding_of(text.blocks(stream))
    text.said_encoding(path, encoding, note)
    content: bytes | Path = path
    if encoding != text.UTF8 or text.is_compressed(path):
        with text.opened(path) as stream:
            content = stream.read()
    if encoding == "utf-16" and isinstance(content, bytes):
        content, encoding = content.decode(encoding).encode(), text.UTF8
    if isinstance(content, bytes):
        from io import BytesIO

        header = text.header_record(BytesIO(content))
    else:
        with text.opened(path) as stream:
            header = text.header_record(stream)
    names = text.column_names(header, separator, encoding, path)
    return Table(text.parse(content, names, separator, encoding, path), is_text=True)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever a reader raises about a file becomes a DataError that names it."""
    try:
        yield
    except ContoneError:
        raise
    except (pl.exceptions.PolarsError, OSError, EOFError, zlib.error, UnicodeError, ValueError) as error:
        raise _unreadable(path, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what a defect in a reader written in Rust looks like
            raise
        raise _unreadable(path, error) from error


def state_of(path: Path) -> tuple[int, int, int, int]:
    """What changes with a file's content: size, times of change, and which file it is."""
    with readable(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def refuse_changed(path: Path, before: tuple[int, ...]) -> None:
    """An error if the file is not the one it was."""
    if state_of(path) != tuple(before):
        raise changed(path)


def changed(path: Path) -> DataError:
    return DataError(f"{path} changed while it was read, so its rows do not belong together: run again.")


def refuse_nested(schema: Mapping[str, Any], *, as_text: bool) -> None:
    """Lists and structs have no place in a text file."""
    nested = [name for name, kind in schema.items() if kind.is_nested() or kind in (pl.Binary, pl.Object)]
    if as_text and nested:
        raise ArgumentError(
            f"a text file cannot hold the column {nested[0]!r} ({schema[nested[0]]}): write .parquet instead.", "target"
        )


def write(frame: pl.DataFrame, path: str, *, overwrite: bool) -> None:
    """Write the table whole or not at all; ``-`` is CSV on stdout."""
    if path == STDOUT:
        to_stdout(frame.write_csv().encode())
        return
    with replacing(path, overwrite=overwrite) as temporary:
        write_frame(frame, temporary, suffix_of(path))


def write_frame(frame: pl.DataFrame, path: Path, suffix: str, *, header: bool = True) -> None:
    """Write to a path as it is; errors of the writer become an OutputError."""
    try:
        if suffix in PARQUET:
            frame.write_parquet(path)
        else:
            frame.write_csv(path, separator=SEPARATORS[suffix], include_header=header)
    except pl.exceptions.PolarsError as error:
        raise OutputError(f"Cannot write the table: {_first_line(error)}.") from error


def to_stdout(content: bytes) -> None:
    """Bytes to stdout, in UTF-8 whatever the terminal is set to."""
    if sys.stdout is None:
        raise OutputError("stdout is closed: name a file for the output.")
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(content.decode())
    else:
        sys.stdout.flush()
        stream.write(content)
        stream.flush()


def _unreadable(path: Path, error: BaseException) -> DataError:
    reason = getattr(error, "strerror", None) or _first_line(error) or "it ends too early"
    return DataError(f"Cannot read {path}: {reason}. Is it a whole {suffix_of(path)[1:]} file?")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")


def _first_missing(column: pl.Series) -> int:
    row = column.is_null().arg_max()
    return 0 if row is None else row

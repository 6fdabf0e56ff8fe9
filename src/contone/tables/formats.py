"""Tables in and out: text, Parquet, Arrow, JSON lines, ARFF, libsvm, Excel, through libraries that know them.

A CSV file is kept as the text it holds, so that columns which are only carried along come out as they went in (an id
like ``00123`` keeps its zeros); numbers are read from the text where they are needed.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from contone.exceptions import ArgumentError, ContoneError, DataError, OutputError
from contone.runtime.files import check_regular, replacing
from contone.runtime.memory import available_bytes, refuse_dense, shown
from contone.tables import arff, excel, labels, text
from contone.tables.order import STDOUT
from contone.tables.text import ColumnKind

SEPARATORS = text.SEPARATORS
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
JSON_LINES = (".jsonl", ".ndjson")
EXCEL = (".xlsx", ".xls", ".ods")
LIBSVM = (".svm", ".libsvm", ".svmlight")
READABLE = (*SEPARATORS, *PARQUET, *ARROW, *JSON_LINES, ".arff", *LIBSVM, *EXCEL)
COMPRESSED = (*SEPARATORS, *JSON_LINES, ".arff", *LIBSVM)
"""Formats that may be gzip files as well."""
WRITABLE = (".csv", ".tsv", *PARQUET, *ARROW, *JSON_LINES, ".xlsx")
FLAT = (*SEPARATORS, ".xlsx")
"""Formats without lists and structs."""
STREAMED = (*SEPARATORS, *PARQUET)
"""Formats that can be read and written piece by piece."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class Table:
    """A table as it is stored; `values` is the same with numbers where the text of a CSV file holds numbers.

    Attributes
    ----------
    stored : DataFrame
    is_text : bool
        Whether all columns are the text of a file.
    given_kinds : mapping or None
        Kinds that were decided elsewhere, for a piece of a text file; None decides by what the table holds.
    dialect : Dialect
        How a text file is written.
    label_names : tuple of str
        Columns that the format itself says are labels.
    categories : tuple of str
        Columns that the format itself says are categories.
    """

    stored: pl.DataFrame
    is_text: bool = False
    given_kinds: Mapping[str, ColumnKind] | None = None
    dialect: text.Dialect = text.COMMAS
    label_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @cached_property
    def kinds(self) -> Mapping[str, ColumnKind]:
        """Text files: what each column can be read as."""
        if self.given_kinds is not None:
            return self.given_kinds
        return {
            column.name: text.kind_of(column, self.dialect.decimal)
            if column.dtype == pl.String
            else ColumnKind(column.dtype, words=None)  # lists that were made from rows
            for column in self.stored
        }

    @cached_property
    def values(self) -> pl.DataFrame:
        if not self.is_text:
            return self.stored
        decimal = self.dialect.decimal
        return pl.DataFrame([text.read_as(column, self.kinds[column.name], decimal) for column in self.stored])

    @property
    def numeric(self) -> list[str]:
        return numeric_columns(self.values.schema)

    def words(self, columns: Sequence[str]) -> dict[str, labels.Words]:
        """The different entries of these columns, where they are few."""
        if self.is_text:
            return {name: self.kinds[name].words for name in columns}
        return {name: labels.words_of(self.stored[name]) for name in columns}

    def label_numbers(self, meanings: Mapping[str, Any]) -> pl.DataFrame:
        """The columns of labels as numbers; null where an entry is blank, which nobody was asked about."""
        source = self.stored if self.is_text else self.values
        columns = [(self.values if meaning is None else source)[name] for name, meaning in meanings.items()]
        return pl.DataFrame([labels.as_numbers(c, m) for c, m in zip(columns, meanings.values(), strict=True)])

    def with_columns(self, new: pl.DataFrame, used: Sequence[str], *, as_text: bool) -> pl.DataFrame:
        """The table and new columns; a name that exists is replaced in its place.

        Where a text file goes to a format with types, the columns `used` as labels or features become numbers; others
        only where that loses not a letter.
        """
        frame = self.stored if as_text or not self.is_text else self._typed(set(used))
        return frame.with_columns(new.get_columns())

    def _typed(self, used: set[str]) -> pl.DataFrame:
        def keeps_text(name: str) -> bool:
            kind = self.kinds[name]
            return not (kind.plain and not kind.stray and not kind.percent if name in used else kind.exact)

        return pl.DataFrame([(self.stored if keeps_text(name) else self.values)[name] for name in self.stored.columns])


def numeric_columns(schema: Mapping[str, Any]) -> list[str]:
    return [c for c, kind in schema.items() if kind.is_numeric() or kind == pl.Boolean]


def refuse_missing(frame: pl.DataFrame) -> None:
    """An error that names the columns and the first rows where an entry is missing."""
    missing = {c.name: _first_missing(c) for c in frame if c.null_count()}
    if missing:
        listed = ", ".join(f"{c!r} (first in row {row})" for c, row in list(missing.items())[:5])
        raise DataError(
            f"{len(missing)} columns have missing entries: {listed}. "
            "Fill or drop these rows first, or choose other columns."
        )


def suffix_of(path: str | Path) -> str:
    """The format of a file by its name, `.gz` left aside; an empty string where it is none of ours."""
    name = str(path).lower()
    found = Path(name.removesuffix(".gz")).suffix
    known = COMPRESSED if name.endswith(".gz") else READABLE
    return found if found in known else ""


def read(path: Path, note: Note = lambda _: None, *, separator: str | None = None, decimal: str | None = None) -> Table:
    """A file in any of the formats; what is unusual about it goes to `note`."""
    suffix = suffix_of(path)
    with readable(path):
        check_regular(path)
        if suffix in SEPARATORS:
            table = _read_text(path, note, separator, decimal)
        elif suffix in PARQUET:
            table = Table(pl.read_parquet(path, glob=False))
        elif suffix in ARROW:
            table = Table(pl.read_ipc(path.read_bytes()))
        elif suffix in JSON_LINES:
            table = Table(pl.read_ndjson(_content(path), infer_schema_length=None))
        elif suffix == ".arff":
            found = arff.read_arff(path, _decoded(path, note))
            table = Table(found.frame, label_names=found.labels, categories=found.categories)
        elif suffix in LIBSVM:
            table = _read_libsvm(path)
        else:
            table = Table(excel.read_excel(path))
    if table.stored.is_empty():
        raise DataError(f"{path} has no rows.")
    return table


def _read_text(path: Path, note: Note, separator: str | None, decimal: str | None) -> Table:
    with text.opened(path) as stream:
        encoding = text.encoding_of(text.blocks(stream))
    dialect = text.found_dialect(path, encoding, SEPARATORS[suffix_of(path)], separator, decimal, note)
    content: bytes | Path = path
    if encoding != text.UTF8 or text.is_compressed(path):
        content = _content(path)
    if encoding == "utf-16" and isinstance(content, bytes):
        content, dialect = content.decode(encoding).encode(), replace(dialect, encoding=text.UTF8)
    with io.BytesIO(content) if isinstance(content, bytes) else text.opened(path) as stream:
        header = text.header_record(stream)
    names = text.column_names(header, dialect, path)
    return Table(text.parse(content, names, dialect, path), is_text=True, dialect=dialect)


def _read_libsvm(path: Path) -> Table:
    """Labels as ``1,3`` in front (or none), features as ``index:value``."""
    from sklearn.datasets import load_svmlight_file

    X, sets = load_svmlight_file(io.BytesIO(_content(path)), multilabel=True)
    names = sorted({label for entry in sets for label in entry})
    if not names:
        raise DataError(f"{path} has no labels in front of its rows.")
    refuse_dense(path, X.shape[0], X.shape[1] + len(names))
    width = len(str(X.shape[1]))
    features = pl.DataFrame(X.toarray(), schema=[f"f{j + 1:0{width}d}" for j in range(X.shape[1])])
    marked = {f"label_{name:g}": [int(name in entry) for entry in sets] for name in names}
    return Table(features.with_columns(pl.DataFrame(marked)), label_names=tuple(marked))


def _content(path: Path) -> bytes:
    """All of a file, unpacked; refused where it unpacks to more than half of the memory that is available."""
    room = int(available_bytes() / 2)
    with text.opened(path) as stream:
        content = stream.read(room)
        if len(content) == room and stream.read(1):
            raise DataError(f"{path} holds more than {shown(room)}, which does not fit into memory: use --stream.")
        return content


def _decoded(path: Path, note: Note) -> str:
    content = _content(path)
    encoding = text.encoding_of([content])
    if encoding != text.UTF8:
        note(f"  {path} is not UTF-8: read as {encoding}; the output is UTF-8")
    return content.decode("utf-8-sig" if encoding == text.UTF8 else encoding)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever a reader raises about a file becomes a DataError that names it."""
    try:
        yield
    except (ContoneError, MemoryError):
        raise
    except Exception as error:  # readers of other libraries fail with errors of their own
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
    """Lists and structs have no place in a text file or in a sheet."""
    nested = [name for name, kind in schema.items() if kind.is_nested() or kind in (pl.Binary, pl.Object)]
    if as_text and nested:
        raise ArgumentError(
            f"this format cannot hold the column {nested[0]!r} ({schema[nested[0]]}): write .parquet instead.", "target"
        )


def write(frame: pl.DataFrame, path: str, *, overwrite: bool, dialect: text.Dialect | None = None) -> None:
    """Write the table whole or not at all; ``-`` is CSV on stdout. A CSV file gets the marks of the `dialect`."""
    if path == STDOUT:
        to_stdout(frame.write_csv(**_csv_options(".csv", dialect)).encode())
        return
    with replacing(path, overwrite=overwrite) as temporary:
        write_frame(frame, temporary, suffix_of(path), dialect=dialect)


def _csv_options(suffix: str, dialect: text.Dialect | None) -> dict[str, Any]:
    """CSV out is written as CSV in was; TSV has tabs."""
    if dialect is None or suffix != ".csv":
        return {"separator": SEPARATORS[suffix]}
    return {"separator": dialect.separator, "decimal_comma": dialect.decimal == ","}


def write_frame(
    frame: pl.DataFrame, path: Path, suffix: str, *, header: bool = True, dialect: text.Dialect | None = None
) -> None:
    """Write to a path as it is; errors of the writer become an OutputError."""
    try:
        if suffix in PARQUET:
            frame.write_parquet(path)
        elif suffix in ARROW:
            frame.write_ipc(path)
        elif suffix in JSON_LINES:
            frame.write_ndjson(path)
        elif suffix == ".xlsx":
            excel.write_excel(frame, path)
        else:
            frame.write_csv(path, **_csv_options(suffix, dialect), include_header=header)
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

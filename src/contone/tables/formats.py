"""Tables in and out: text, Parquet, Arrow, JSON lines, ARFF, libsvm, Excel, through libraries that know them."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from contone.exceptions import ArgumentError, ContoneError, DataError, OutputError
from contone.runtime.files import check_regular, replacing
from contone.runtime.machine import available_bytes, refuse_dense, shown
from contone.tables import arff, excel, text
from contone.tables.settings import STDOUT
from contone.tables.table import Table
from contone.tables.text import Dialect

SEPARATORS = text.SEPARATORS
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
JSON_LINES = (".jsonl", ".ndjson")
JSON = (".json", *JSON_LINES)
EXCEL = (".xlsx", ".xls", ".ods")
LIBSVM = (".svm", ".libsvm", ".svmlight")
READABLE = (*SEPARATORS, *PARQUET, *ARROW, *JSON, ".arff", *LIBSVM, *EXCEL)
COMPRESSED = (*SEPARATORS, *JSON, ".arff", *LIBSVM)
"""Formats that may be gzip files as well."""
WRITABLE = (".csv", ".tsv", *PARQUET, *ARROW, *JSON_LINES, ".xlsx")
FLAT = (*SEPARATORS, ".xlsx")
"""Formats without lists and structs."""
STREAMED = (*SEPARATORS, *PARQUET)
"""Formats that can be read and written piece by piece."""
PAIRS = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})")
"""Escaped characters of two halves; and, in a group, half of one."""

Note = Callable[[str], None]


def suffix_of(path: str | Path) -> str:
    """The format of a file by its name, `.gz` left aside; an empty string where it is not known."""
    name = str(path).lower()
    found = Path(name.removesuffix(".gz")).suffix
    return found if found in (COMPRESSED if name.endswith(".gz") else READABLE) else ""


def read(path: Path, note: Note = lambda _: None, *, separator: str | None = None, decimal: str | None = None) -> Table:
    """A file in any of the formats; what is unusual about it goes to `note`."""
    suffix = suffix_of(path)
    with readable(path):
        check_regular(path)
        ways: dict[tuple[str, ...], Callable[[], Table]] = {
            tuple(SEPARATORS): lambda: _read_text(path, note, separator, decimal),
            PARQUET: lambda: Table(pl.read_parquet(path, glob=False)),
            ARROW: lambda: Table(pl.read_ipc(path.read_bytes())),
            JSON_LINES: lambda: _read_json(pl.read_ndjson, path),
            (".json",): lambda: _read_json(pl.read_json, path),
            (".arff",): lambda: arff.read_arff(path, _decoded(path, note)),
            LIBSVM: lambda: _read_libsvm(path),
            EXCEL: lambda: Table(excel.read_excel(path)),
        }
        table = next(read_it for suffixes, read_it in ways.items() if suffix in suffixes)()
    if table.stored.is_empty():
        raise DataError(f"{path} has no rows.")
    return table


def _read_text(path: Path, note: Note, separator: str | None, decimal: str | None) -> Table:
    encoding = text.encoding_of(path)
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


def _read_json(read_content: Callable[..., pl.DataFrame], path: Path) -> Table:
    """Whole numbers beyond 2^53 stay exact: as text, where fractions are in their column."""
    content = json_content(path)
    frame = read_content(content, infer_schema_length=None)
    large = [c.name for c in frame if c.dtype == pl.Float64 and (c.abs() >= 2.0**53).any()]
    if large:
        texts = read_content(content, infer_schema_length=None, schema_overrides=dict.fromkeys(large, pl.String()))
        whole, doubles = (f.select(pl.col(large).cast(pl.Int128, strict=False)) for f in (texts, frame))
        frame = frame.with_columns(texts[name] for name in large if (whole[name] != doubles[name]).any())
    return Table(frame)


def json_content(path: Path) -> bytes:
    """All of a JSON file; refused where it holds half of a character, of which readers make something else."""
    content = _content(path)
    if half := next((found[1] for found in PAIRS.finditer(content) if found[1]), None):
        raise DataError(f"{path} holds half of a character ({half.decode()}): export it again.")
    return content


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
    marked = {f"label_{name:.17g}": [int(name in entry) for entry in sets] for name in names}
    return Table(features.with_columns(pl.DataFrame(marked)), label_names=tuple(marked))


def _content(path: Path) -> bytes:
    """All of a file, unpacked; refused where it would take more memory than there is: about six times its size.

    (Measured: 600 MB in one field, read and written, take 3.3 GB.)
    """
    room = int(available_bytes() / 6)
    with text.opened(path) as stream:
        content = stream.read(room)
        if len(content) == room and stream.read(1):
            raise DataError(f"{path} holds more than {shown(room)}, which does not fit into memory: use --stream.")
        return content


def _decoded(path: Path, note: Note) -> str:
    content, encoding = _content(path), text.encoding_of(path)
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
    except BaseException as error:  # readers of other libraries fail with errors of their own
        if not isinstance(error, Exception) and not _is_panic(error):
            raise
        reason = getattr(error, "strerror", None) or _first_line(error) or "it ends too early"
        raise DataError(f"Cannot read {path}: {reason}. Is it a whole {suffix_of(path)[1:]} file?") from error


def state_of(path: Path) -> tuple[int, int, int, int]:
    """What changes with a file's content: size, times of change, and which file it is."""
    with readable(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def refuse_changed(path: Path, before: tuple[int, ...]) -> None:
    """An error if the file is not the one it was."""
    if state_of(path) != tuple(before):
        raise DataError(f"{path} changed while it was read, so its rows do not belong together: run again.")


def refuse_unwritable(frame: pl.DataFrame, target: str) -> None:
    """Refuse before any work a table that the target's format cannot hold: its first row is written and thrown away."""
    suffix = target_suffix(target)
    for column in frame:
        kind = column.dtype
        if kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null):
            continue
        try:
            if (kind.is_nested() and suffix in FLAT) or (kind in (pl.Binary, pl.Object) and suffix in (*FLAT, *JSON)):
                raise OutputError("this format has no such entries.")
            write_frame(column.drop_nulls().head(1).to_frame(), io.BytesIO(), suffix)
        except OutputError as error:
            raise ArgumentError(
                f"{target} cannot hold the column {column.name!r} ({kind}): {error} Write .parquet instead, or bring "
                "the column to another type first.",
                "target",
            ) from error


def target_suffix(target: str) -> str:
    """The format that a target is written in."""
    return ".csv" if target == STDOUT else suffix_of(target)


def write(frame: pl.DataFrame, path: str, *, overwrite: bool, dialect: Dialect | None = None) -> None:
    """Write the table whole or not at all; ``-`` is CSV on stdout. A CSV file gets the marks of the `dialect`."""
    if path == STDOUT:
        content = io.BytesIO()
        write_frame(frame, content, ".csv", dialect=dialect)
        to_stdout(content.getvalue())
        return
    with replacing(path, overwrite=overwrite) as temporary:
        write_frame(frame, temporary, suffix_of(path), dialect=dialect)


def write_frame(
    frame: pl.DataFrame, path: Path | io.BytesIO, suffix: str, *, header: bool = True, dialect: Dialect | None = None
) -> None:
    """Write to a path as it is; errors of the writer become an OutputError."""
    as_read = dialect is not None and dialect.is_csv and suffix == ".csv"
    marks = dialect if dialect is not None and as_read else Dialect(SEPARATORS.get(suffix, ","))
    try:
        if suffix in PARQUET:
            frame.write_parquet(path)
        elif suffix in ARROW:
            frame.write_ipc(path)
        elif suffix in JSON_LINES:
            infinite = (c.cast(pl.String) for c in frame if c.dtype.is_float() and c.is_infinite().any())
            frame.with_columns(infinite).write_ndjson(path)  # JSON has no such number
        elif suffix == ".xlsx":
            excel.write_excel(frame, path)
        else:
            comma = marks.decimal == ","
            frame.write_csv(path, separator=marks.separator, decimal_comma=comma, include_header=header)
    except BaseException as error:
        if not isinstance(error, (pl.exceptions.PolarsError, TypeError, ValueError)) and not _is_panic(error):
            raise
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


def _is_panic(error: BaseException) -> bool:
    """What a defect in a reader or writer in Rust looks like."""
    return type(error).__name__ == "PanicException"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")

"""CSV and Parquet tables in and out, through polars.

A CSV file is kept as the text it holds, so that columns which are only carried along come out as they went in (an id
like ``00123`` keeps its zeros); numbers are read from the text where they are needed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from contone.exceptions import DataError, OutputError
from contone.runtime.files import replacing

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PARQUET = (".parquet", ".pq")
FORMATS = (".csv", ".tsv", *PARQUET)
STDOUT = "-"


@dataclass(frozen=True)
class Table:
    """A table as it is stored; `values` is the same with numbers where the text of a CSV file holds numbers."""

    stored: pl.DataFrame
    is_text: bool = False
    kinds: Mapping[str, Any] | None = None
    """Types that were decided elsewhere, for a piece of a text file; None decides by what the table holds."""

    @cached_property
    def values(self) -> pl.DataFrame:
        if self.is_text and self.kinds is not None:
            return pl.DataFrame([read_as(column, self.kinds[column.name]) for column in self.stored])
        return pl.DataFrame([_typed(column) for column in self.stored]) if self.is_text else self.stored

    @property
    def numeric(self) -> list[str]:
        return [c for c, kind in self.values.schema.items() if kind.is_numeric() or kind == pl.Boolean]

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

    def with_columns(self, names: Sequence[str], D: np.ndarray, *, as_text: bool) -> pl.DataFrame:
        """The table and the columns of D (n, q) under these names; a name that exists is replaced in its place."""
        frame = self.stored if as_text else self.values
        return frame.with_columns(pl.Series(name, D[:, j]) for j, name in enumerate(names))

    def found_kinds(self) -> dict[str, Any]:
        """The type of every column by what it holds; Null for one without any entry."""
        empty = {c.name for c in self.stored if self.is_text and (c.str.strip_chars().fill_null("") == "").all()}
        return {name: pl.Null() if name in empty else kind for name, kind in self.values.schema.items()}


def suffix_of(path: str | Path) -> str:
    """The format of a file by its name, `.gz` left aside; an empty string where it is none of ours."""
    name = str(path).lower().removesuffix(".gz")
    found = Path(name).suffix
    return found if found in SEPARATORS or found in PARQUET else ""


def read(path: Path) -> Table:
    """A CSV, TSV (plain or gzip) or Parquet file."""
    try:
        if suffix_of(path) in PARQUET:
            table = Table(pl.read_parquet(path))
        else:
            separator = SEPARATORS[suffix_of(path)]
            table = Table(pl.read_csv(path, separator=separator, infer_schema=False), is_text=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f"Cannot read {path}: {reason}. Is it a whole {suffix_of(path)[1:]} file?") from error
    refuse_repeated(path, table.stored.columns)
    if table.stored.is_empty():
        raise DataError(f"{path} has no rows.")
    return table


def refuse_repeated(path: Path, columns: Sequence[str]) -> None:
    """Column names must differ; polars renames those that do not."""
    twice = [c for c in columns if _renamed(c, columns)]
    if twice:
        raise DataError(f"{path} has columns of the same name: {twice[0].rpartition('_duplicated_')[0]!r}.")


def write(frame: pl.DataFrame, path: str, *, overwrite: bool) -> None:
    """Write the table whole or not at all; ``-`` is CSV on stdout."""
    if path == STDOUT:
        sys.stdout.write(frame.write_csv())
        return
    with replacing(path, overwrite=overwrite) as temporary:
        try:
            _writer(suffix_of(path))(frame, temporary)
        except pl.exceptions.PolarsError as error:
            raise OutputError(f"Cannot write {path}: {str(error).strip().splitlines()[0]}.") from error


def _writer(suffix: str) -> Callable[[pl.DataFrame, Path], Any]:
    if suffix in PARQUET:
        return lambda frame, path: frame.write_parquet(path)
    return lambda frame, path: frame.write_csv(path, separator=SEPARATORS[suffix])


def _typed(column: pl.Series) -> pl.Series:
    """Text to whole numbers, numbers or yes/no where every entry allows it; else the text as it is."""
    text = column.str.strip_chars()
    text = text.set(text == "", None)
    if text.null_count() == len(text):
        return column
    if text.str.contains(r"^[+-]?0\d").any():  # 00123 is a name, not a number
        return column
    for kind in (pl.Int64, pl.Float64):
        numbers = text.cast(kind, strict=False)
        if numbers.null_count() == text.null_count():
            return numbers
    if text.str.to_lowercase().is_in(["true", "false"]).all():
        return text.str.to_lowercase() == "true"
    return column


def read_as(column: pl.Series, kind: Any) -> pl.Series:
    """Text as the given type, which every entry allows; an empty entry is a missing one."""
    if not (kind.is_numeric() or kind == pl.Boolean):
        return column
    text = column.str.strip_chars()
    text = text.set(text == "", None)
    return text.str.to_lowercase() == "true" if kind == pl.Boolean else text.cast(kind, strict=False)


def _first_missing(column: pl.Series) -> int:
    row = column.is_null().arg_max()
    return 0 if row is None else row


def _renamed(name: str, names: Sequence[str]) -> bool:
    """Whether polars gave a repeated column this name."""
    found = re.fullmatch(r"(.*)_duplicated_\d+", name, flags=re.DOTALL)
    return found is not None and found[1] in names

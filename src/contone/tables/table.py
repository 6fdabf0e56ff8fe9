"""A table as its file stores it, and as the numbers that it holds.

A CSV file is kept as the text it holds, so that columns which are only carried along come out as they went in (an id
like ``00123`` keeps its zeros); numbers are read from the text where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import DataError
from contone.tables import text
from contone.tables.labels import Words, words_of_columns
from contone.tables.text import ColumnKind


@dataclass(frozen=True)
class Table:
    """A whole table, or a piece of one.

    Attributes
    ----------
    stored : DataFrame
        The columns as the file has them: of a text file, all are text.
    is_text : bool
        Whether it comes from a text file.
    given_kinds : mapping or None
        Kinds that were decided elsewhere, for a piece of a text file; None decides by what the table holds.
    dialect : Dialect
        How a text file is written.
    label_names : tuple of str
        Columns that the format itself says are labels.
    categories : tuple of str
        Columns that the format itself says are categories.
    embedded : DataFrame
        Columns of numbers from another file, which are learnt from and not written.
    """

    stored: pl.DataFrame
    is_text: bool = False
    given_kinds: Mapping[str, ColumnKind] | None = None
    dialect: text.Dialect = text.COMMAS
    label_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    embedded: pl.DataFrame = field(default_factory=pl.DataFrame)

    def with_rows(self, stored: pl.DataFrame) -> Table:
        """Other rows and columns, written as this table is."""
        return Table(stored, self.is_text, dialect=self.dialect)

    @property
    def n_rows(self) -> int:
        return self.stored.height

    @cached_property
    def kinds(self) -> Mapping[str, ColumnKind]:
        """Text files: what each column can be read as; empty for other files."""
        if not self.is_text or self.given_kinds is not None:
            return self.given_kinds or {}
        return text.kinds_of(self.stored, self.dialect.decimal)

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The type of each column, as all its entries allow it."""
        stored = self.stored.schema.items()
        types = {name: self.kinds[name].dtype if name in self.kinds else kind for name, kind in stored}
        return types | dict(self.embedded.schema)

    @cached_property
    def values(self) -> pl.DataFrame:
        """The columns with numbers where the text of the file holds numbers."""
        read = text.read_columns(self.stored, self.kinds, self.dialect.decimal) if self.is_text else self.stored
        return read.with_columns(self.embedded.get_columns())

    @property
    def numeric(self) -> list[str]:
        return numeric_columns(self.schema)

    def words(self, columns: Sequence[str]) -> dict[str, Words]:
        """The different entries of these columns, where they are few."""
        if self.is_text:
            return {name: self.kinds[name].words for name in columns if name in self.kinds}
        stored = self.stored.schema
        return words_of_columns(self.stored.select(name for name in columns if name in stored))

    def read(self) -> Iterator[tuple[int, Table]]:
        """Its pieces, each with its number: it is the only one."""
        yield 0, self

    def filter(self, keep: NDArray[np.bool_]) -> Table:
        """The same for some rows."""
        kinds = self.kinds if self.is_text else None
        embedded = self.embedded.filter(keep) if self.embedded.width else self.embedded
        return replace(self, stored=self.stored.filter(keep), given_kinds=kinds, embedded=embedded)

    def with_columns(self, new: pl.DataFrame, used: Sequence[str], *, as_text: bool) -> pl.DataFrame:
        """The table and new columns; a name that exists is replaced in its place.

        Where a text file goes to a format with types, the columns `used` as labels or features become numbers, and so
        do others where that is lossless.
        """
        if as_text or not self.is_text:
            return self.stored.with_columns(new.get_columns())
        numbers = set(used)

        def keeps_text(name: str) -> bool:
            kind = self.kinds[name]
            return not (kind.plain if name in numbers else kind.exact)

        typed = [(self.stored if keeps_text(name) else self.values)[name] for name in self.stored.columns]
        return pl.DataFrame(typed).with_columns(new.get_columns())


def numeric_columns(schema: Mapping[str, pl.DataType]) -> list[str]:
    return [name for name, kind in schema.items() if kind.is_numeric() or kind == pl.Boolean]


def refuse_missing(frame: pl.DataFrame) -> None:
    """An error that names the columns and the first rows where an entry is missing."""
    missing = {c.name: int(c.is_null().arg_max() or 0) for c in frame if c.null_count()}
    if missing:
        listed = ", ".join(f"{c!r} (first in row {row})" for c, row in list(missing.items())[:5])
        raise DataError(f"{len(missing)} columns have missing entries: {listed}. Fill or drop them, or choose others.")

"""How labels are read from the pieces of a file: decided once, by all rows, so that a piece is read like the whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from contone.exceptions import LabelError
from contone.tables import labels
from contone.tables.columns import Columns
from contone.tables.formats import Table
from contone.tables.pieces import Pieces


@dataclass(frozen=True)
class LabelReading:
    """The labels, and either what the words of their columns mean, or the one column of sets that holds them."""

    names: list[str]
    meanings: dict[str, dict[str, float | None] | None] = field(default_factory=dict)
    set_column: str = ""
    delimiter: str = ""

    @property
    def is_set(self) -> bool:
        return bool(self.set_column)

    def read(self, piece: Table) -> pl.DataFrame:
        """The labels of a piece as 0 and 1, one column per label."""
        if not self.is_set:
            return piece.label_numbers(self.meanings)
        return labels.split_sets(piece.stored[self.set_column], self.delimiter, self.names)[1]


def decide(source: Pieces, chosen: Columns, separator: str | None) -> LabelReading:
    """How the labels of a file are written; a column of sets is read once through for the names in it."""
    words, first = source.words(chosen.labels), chosen.labels[0]
    kind = pl.String() if source.kinds else source.schema()[first]
    if len(chosen.labels) > 1 or not labels.are_sets(pl.Series(first, [], dtype=kind), words[first], separator):
        return LabelReading(chosen.labels, labels.meanings(words, source.numeric))
    delimiter = separator
    if delimiter is None:
        there = {d for _, piece in source.read() for d in labels.delimiters_in(piece.stored[first])}
        delimiter = next((d for d in labels.DELIMITERS if d in there), "")
    names = sorted({name for _, piece in source.read() for name in labels.names_in(piece.stored[first], delimiter)})
    if not names:
        raise LabelError(f"the label column {first!r} names no label in any row.")
    return LabelReading(names, set_column=first, delimiter=delimiter)

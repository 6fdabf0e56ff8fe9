"""From a table to what a method is fitted on: which columns, labels as 0 and 1, features as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from contone.exceptions import ArgumentError, DataError
from contone.tables import columns, labels
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder
from contone.tables.formats import Table, numeric_columns
from contone.tables.order import Order
from contone.tables.text import ColumnKind


@dataclass(frozen=True)
class Annotations:
    """What several annotators said: one row per item and annotator."""

    item: np.ndarray
    """(r,) number of the item, rising."""
    L: pl.DataFrame
    """(r, q) labels."""

    def rows(self, mask: np.ndarray) -> Annotations:
        """Those of some items."""
        kept = mask[self.item]
        return Annotations((np.cumsum(mask) - 1)[self.item[kept]], self.L.filter(kept))


@dataclass(frozen=True)
class Problem:
    """A table whose columns have their parts: the features as they are, the labels as 0 and 1, one column per label."""

    table: Table
    chosen: Columns
    features: pl.DataFrame
    L: pl.DataFrame
    is_set: bool = False
    """Whether the labels came from one column of sets."""
    degrees: np.ndarray | None = None
    """Degrees (n, q) of graded rows, NaN in the others; None where there are none."""
    kept: np.ndarray | None = None
    """Numbers (n,) of the rows in the file, where some of them were left out."""
    annotations: Annotations | None = None
    """Where several annotators labelled each row of the table; L then holds what any of them marked."""

    @property
    def numbers(self) -> np.ndarray:
        """Numbers (n,) of the rows in the file."""
        return np.arange(self.L.height) if self.kept is None else self.kept

    def rows(self, mask: np.ndarray) -> Problem:
        """The same for some rows."""
        table = Table(
            self.table.stored.filter(mask),
            self.table.is_text,
            self.table.kinds if self.table.is_text else None,
            self.table.dialect,
            self.table.label_names,
            self.table.categories,
        )
        degrees = None if self.degrees is None else self.degrees[mask]
        left, said = self.numbers[mask], None if self.annotations is None else self.annotations.rows(mask)
        features, L = self.features.filter(mask), self.L.filter(mask)
        return Problem(table, self.chosen, features, L, self.is_set, degrees, left, said)


def choose_columns(
    order: Order,
    schema: Mapping[str, Any],
    kinds: Mapping[str, ColumnKind],
    *,
    label_names: Sequence[str] = (),
    declared: Sequence[str] = (),
) -> Columns:
    """The part of each column by what was asked for, what the format says, and what the columns hold."""
    typed = labels.expand(order.labels) or [labels.exactly(name) for name in label_names]
    if not typed:
        raise ArgumentError(
            f"name the label columns; the table has {', '.join(map(repr, list(schema)[:12]))}"
            f"{f' and {len(schema) - 12} more' if len(schema) > 12 else ''}.",
            "labels",
        )
    numeric = numeric_columns(schema)
    dates = [name for name, kind in schema.items() if kind.is_temporal()] if order.features else []
    # A file may declare 0 and 1 as the two classes of an attribute: a number as good as any.
    classes = [name for name in declared if name not in numeric]
    chosen = columns.choose(
        list(schema),
        [*numeric, *dates],
        labels=typed,
        features=order.features,
        ids=order.ids,
        categorical=order.categorical,
        text=order.text,
        declared=classes,
    )
    if not order.features:
        for name in chosen.carried:
            if name in kinds and kinds[name].is_mostly_numbers and not columns.ID_NAME.fullmatch(name):
                _refuse_mostly_numbers(order, name, kinds[name])
    return chosen


def _refuse_mostly_numbers(order: Order, name: str, kind: ColumnKind) -> None:
    if name in columns.resolve(order.ids, [name]):
        return
    n_odd = kind.n_entries - kind.n_numbers
    raise DataError(
        f"the column {name!r} holds {kind.n_numbers:,} numbers and {n_odd:,} entries that are not, such as "
        f"{kind.odd[:40]!r}. Correct these, carry the column along (--id), or take it as categories (--categorical)."
    )


def posed(order: Order, table: Table) -> Problem:
    """The problem that a whole table poses."""
    sets: tuple[pl.Series, pl.Series] | None = None
    if order.item:
        column = labels.expand(order.labels)
        if len(column) != 1:
            raise ArgumentError("with one row per item and label, name the one column of labels.", "labels")
        stored = table.stored
        if order.worker:
            sets = labels.of_annotators(stored, order.item, order.worker, column[0])
            stored = stored.drop(order.worker)
        table = Table(labels.grouped(stored, order.item, column[0]), table.is_text, None, table.dialect)
    elif order.worker:
        raise ArgumentError("a column of annotators needs a column of items beside it (--item).", "worker")
    schema = _schema(table)
    chosen = choose_columns(
        order,
        schema,
        table.kinds if table.is_text else {},
        label_names=table.label_names,
        declared=table.categories,
    )
    note = order.progress.note
    words = table.words(chosen.labels)
    first = table.stored[chosen.labels[0]]
    is_set = len(chosen.labels) == 1 and labels.are_sets(first, words[chosen.labels[0]], order.label_separator)
    if is_set:
        delimiter, L = labels.split_sets(first, order.label_separator)
        shown = f"sets separated by {delimiter!r}" if delimiter else "one set of labels per row"
        note(f"  {chosen.labels[0]!r} holds {shown}: {L.width} labels")
    else:
        L = table.label_numbers(labels.meanings(words, numeric_columns(schema)))
        if not table.label_names:
            ask_about_labels(order, chosen, table.words(chosen.features))
    say_what_was_read(order, chosen, table.kinds if table.is_text else {})
    if blank := int(L.null_count().sum_horizontal().item()):
        note(f"  {blank:,} entries of label columns are blank: taken as unasked, neither yes nor no")
    said = None if sets is None else _annotations(table.stored[str(order.item)], *sets, L.columns)
    return Problem(table, chosen, features_of(table, chosen), L, is_set, annotations=said)


def _annotations(items: pl.Series, item: pl.Series, marked: pl.Series, names: list[str]) -> Annotations:
    """The sets of every item and annotator as 0 and 1, by the place of the item in the table."""
    place = {name: i for i, name in enumerate(items.to_list())}
    number = np.array([place[name] for name in item.to_list()])
    order = np.argsort(number, kind="stable")
    cleaned = [{str(label).strip() for label in entry} for entry in marked.to_list()]
    L = pl.DataFrame({name: [float(name in cleaned[r]) for r in order] for name in names})
    return Annotations(number[order], L)


def _schema(table: Table) -> Mapping[str, Any]:
    if not table.is_text:
        return table.stored.schema
    # Sets became lists: these have no kind of text.
    return {n: table.kinds[n].dtype if t == pl.String else t for n, t in table.stored.schema.items()}


def features_of(table: Table, chosen: Columns) -> pl.DataFrame:
    """The features of a table or piece: numbers, and the text of categories."""
    text = set(chosen.as_written)
    return pl.DataFrame([(table.stored if name in text else table.values)[name] for name in chosen.features])


def encoder_for(order: Order, chosen: Columns) -> ColumnEncoder:
    return ColumnEncoder(
        categorical=tuple(chosen.categories),
        text=tuple(chosen.texts),
        missing="error" if order.missing == "error" else "impute",
    )


def say_what_was_read(order: Order, chosen: Columns, kinds: Mapping[str, ColumnKind]) -> None:
    """Numbers that were not written as plain numbers."""
    for name in chosen.features:
        if name in kinds and kinds[name].stray:
            order.progress.note(f"  {name!r}: {', '.join(kinds[name].stray)} read as missing")
        if name in kinds and kinds[name].percent:
            order.progress.note(f"  {name!r}: 12% read as 0.12")


def ask_about_labels(order: Order, chosen: Columns, words: Mapping[str, labels.Words]) -> None:
    """A feature that holds yes and no like the labels may be a label that was forgotten."""
    like = [c for c in chosen.features if c in words and c not in chosen.as_written and labels.is_logical(words[c])]
    if like and not order.features:
        order.progress.note(
            f"  question: {columns.listed(like)} hold yes and no like the labels, but are used as features: are they "
            "labels?"
        )

"""Answers of several people in a table, however it is laid out.

    one row per answer and label      item, person, label            crowd-kit's task, worker, label are known by name
    one row per answer                item, person, a column per label
    one row per item                  a column per person (cleanlab), blank where nobody was asked

Columns that differ between the answers about an item say something of the answer, not of the item: they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError
from contone.tables import columns, labels
from contone.tables.answers import Answers, in_order
from contone.tables.label_names import expand
from contone.tables.settings import Reading
from contone.tables.table import Table

FEW_REPEATED = 0.05
"""Share of rows up to which a person's second row about an item is a second answer; more are sets of labels."""


def gather(table: Table, reading: Reading, note: Callable[[str], None]) -> Answers | None:
    """The answers in a table; None where each row is an item of its own, or names one of its labels."""
    there = table.stored.columns
    if reading == replace(reading, labels=(), item=None, worker=None) and {"task", "worker", "label"} <= set(there):
        reading = replace(reading, item="task", worker="worker", labels=("label",))
    item, worker = reading.item, reading.worker
    if item is None and worker is None:
        return None
    people = [] if worker is None else columns.resolve([worker], there, "worker", skip={item or ""})
    if len(people) > 1:
        return _column_per_person(table, people, reading, note)
    if item is None:
        raise ArgumentError("a column of annotators needs a column of items beside it (--item).", "worker")
    names = columns.resolve(expand(reading.labels), there, "labels", skip={item, worker or ""})
    roles = [*columns.resolve([item], there, "item"), *people, *names]
    if not names:
        raise ArgumentError("name the column of labels, or one column per label.", "labels")
    if len(set(roles)) < len(roles):
        raise ArgumentError("item, annotator and labels must be different columns.", "item" if not people else "worker")
    if len(names) == 1:
        return _row_per_label(table, roles[0], people, names[0], reading, note)
    Y = labels.LabelReading(names, labels.meanings(table.words(names), table.numeric)).read(table)
    items, place = _items(table.stored, roles[0], roles, note)
    return Answers(items, place, *_people(table.stored, people), names, _matrix(Y), key=roles[0], written=table.written)


def _row_per_label(
    table: Table, item: str, people: list[str], label: str, reading: Reading, note: Callable[[str], None]
) -> Answers | None:
    """One row per item, person and label; without persons, each row is an answer where labels of an item repeat."""
    stored = table.stored
    said = _named(stored[label])
    if not people and reading.rule != "votes" and not stored.select(item, said).is_duplicated().any():
        return None
    items, place = _items(stored, item, [item, *people, label], note)
    workers, worker = _people(stored, people)
    pairs = labels.exploded(said, reading.label_separator or "")
    names = in_order(pairs["name"].unique().to_list())
    if not names:
        raise DataError(f"the label column {label!r} names no label in any row.")
    pair = place * (len(workers) + 1) + worker
    repeated = 1.0 - len(np.unique(pair)) / len(pair)
    are_votes = reading.rule == "votes" or (reading.rule is None and repeated < FEW_REPEATED)
    if people and are_votes and repeated:
        note(f"{repeated:.1%} of the answers are by somebody who answered about the item before: each counts")
    alone = (worker < 0) | are_votes
    keys = np.where(alone, np.arange(len(pair)) + pair.max(initial=0) + 1, pair)
    _, first, answer = np.unique(keys, return_index=True, return_inverse=True)
    Y = np.zeros((len(first), len(names)), dtype=np.float32)
    Y[answer.ravel()[pairs["row"].to_numpy()], labels.codes(pairs["name"], names)] = 1.0
    order = np.argsort(first)
    return Answers(
        items, place[first[order]], workers, worker[first[order]], names, Y[order], key=item, written=table.written
    )


def _column_per_person(table: Table, people: list[str], reading: Reading, note: Callable[[str], None]) -> Answers:
    """One row per item; a blank entry was not asked."""
    if reading.labels:
        raise ArgumentError("with a column per person, their entries are the labels: leave it out.", "labels")
    items = table.stored.drop(people)
    if reading.item is not None and items[reading.item].n_unique() < items.height:
        raise DataError(f"the item {reading.item!r} is not unique: a column per person needs one row per item.")
    cells = _named(pl.concat([table.stored[name].cast(pl.String).alias("label") for name in people]))
    asked = (cells.fill_null("").str.strip_chars() != "").to_numpy()
    place, worker = np.tile(np.arange(items.height), len(people)), np.repeat(np.arange(len(people)), items.height)
    pairs = labels.exploded(cells.filter(asked), reading.label_separator or "")
    names = in_order(pairs["name"].unique().to_list())
    if not names:
        raise DataError(f"the columns {columns.shown(people)} hold no answer.")
    Y = labels.indicators(pairs, int(asked.sum()), names)
    return Answers(items, place[asked], people, worker[asked], names, Y, key=reading.item or "", written=table.written)


def _items(
    frame: pl.DataFrame, item: str, used: Sequence[str], note: Callable[[str], None]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """A row per item with what all its rows agree on, and the number (m,) of the item of every row."""
    blank = frame[item].cast(pl.String).fill_null("").str.strip_chars() == ""
    if blank.any():
        raise DataError(f"row {blank.arg_max()} has no {item!r}: every answer must say what it is about.")
    others = [name for name in frame.columns if name not in used]
    counts = frame.group_by(item).agg(pl.col(name).n_unique() for name in others)
    differing = [name for name in others if (counts[name] > 1).any()]
    if differing:
        note(f"left out, since the rows of an item differ in it: {columns.listed(differing)}")
    kept = [name for name in others if name not in differing]
    items = frame.select(item, *kept).unique(subset=item, keep="first", maintain_order=True)
    numbered = items.select(item).with_row_index("#")
    place = frame.select(item).join(numbered, on=item, how="left", maintain_order="left")["#"]
    return items, place.to_numpy().astype(np.int64)


def _people(frame: pl.DataFrame, people: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the persons, and the number (m,) of the person of every row; -1 for a blank name, or no column."""
    if not people:
        return [], np.full(frame.height, -1, dtype=np.int64)
    said = frame[people[0]].cast(pl.String).fill_null("").str.strip_chars()
    names = [name for name in said.unique(maintain_order=True).to_list() if name]
    return names, labels.codes(said, names)


def _named(column: pl.Series) -> pl.Series:
    """Entries as names; a whole number that a blank elsewhere has turned into a fraction is whole again."""
    if column.dtype.is_nested():
        return column
    text = column.cast(pl.String)
    return text.str.strip_suffix(".0") if text.drop_nulls().str.contains(r"^\s*(-?\d+\.0)?\s*$").all() else text


def _matrix(Y: pl.DataFrame) -> NDArray[np.float32]:
    return Y.cast(pl.Float32).fill_null(float("nan")).to_numpy()

"""Answers of people, whatever tool they gave them in: who said what about which item.

`contone.tables.exports` makes them from the exports of tools, `gather` from a table, however it is laid out:

    one row per answer and label      item, person, label            crowd-kit's task, worker, label are known by name
    one row per answer                item, person, a column per label
    one row per item                  a column per person (cleanlab), blank where nobody was asked

Columns that differ between the answers about an item say something of the answer, not of the item: they are left out.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError, LabelError
from contone.pages import words
from contone.tables import columns, labels
from contone.tables.settings import Reading
from contone.tables.table import Table

Kind = Literal["votes", "marks", "levels", "ranks"]
NUMBERS = (({bool}, pl.Boolean), ({int}, pl.Int64), ({int, float}, pl.Float64))

MOST_LEVELS = 101
"""Ratings further apart are not filled with those in between."""
FEW_REPEATED = 0.05
"""Share of rows up to which a person's second row about an item is a second answer; more are sets of labels."""


@dataclass(frozen=True)
class Question:
    """What people were asked, as far as it is known."""

    tool: str = ""
    name: str = ""
    kind: Kind | None = None
    """What an answer is, where the tool says so."""
    asked: str = ""
    """What the tool calls a question of this kind."""
    shown: str = ""
    """What the question is about, by the tool's name of it (`to_name` of Label Studio)."""


UNKNOWN = Question()


@dataclass(frozen=True)
class Answers:
    """One question, answered by people about items."""

    items: pl.DataFrame
    """A row per item, with its name (`key`) and what is known about it."""
    item: NDArray[np.int64]
    """Of each answer, the row of `items` (m,)."""
    workers: list[str]
    worker: NDArray[np.int64]
    """Of each answer, a number into `workers` (m,); -1 where nobody is named."""
    labels: list[str]
    Y: NDArray[np.float32]
    """What each answer says of each label (m, q): 0 or 1, a level, or the higher the further up; NaN: not on offer."""
    key: str = ""
    """The column of `items` with their names; "" where they have none."""
    question: Question = UNKNOWN
    reference: dict[int, list[str]] = field(default_factory=dict)
    """Items whose answer was marked as the right one; these are not among the answers."""
    skipped: tuple[tuple[str, int], ...] = ()
    """Answers that were left out, and why."""
    fields: list[Mapping[str, object]] = field(default_factory=list, repr=False)
    """What the tool holds about each item, as it was."""
    source: Table = field(default_factory=lambda: Table(pl.DataFrame()), repr=False)
    """The table that they come from."""

    @property
    def table(self) -> Table:
        """The items as a table."""
        return self.source.with_rows(self.items)

    def in_words(self) -> str:
        """What was read, in one sentence."""
        by = f" by {words.count(len(self.workers), 'person', 'people')}" if self.workers else ""
        said = f"{self.question.tool}: " if self.question.tool else ""
        said += f"{words.count(len(self.item), 'answer')}{by} about {words.count(self.items.height, 'item')}"
        said += f", question {self.question.name!r}" if self.question.name else ""
        said += f"; {words.count(len(self.reference), 'item')} with a reference answer" if self.reference else ""
        left_out = [f"{count:,} {why}" for why, count in self.skipped if count]
        return said + (f" ({', '.join(left_out)} left out)" if left_out else "")

    def refuse_empty(self) -> None:
        """Refuse to learn from items about which nobody has said anything."""
        if not len(self.item):
            left_out = ", ".join(f"{count:,} {why}" for why, count in self.skipped)
            raise DataError(
                f"This {self.question.tool} export holds no answers{f' ({left_out})' if left_out else ''}:"
                " export items that people have annotated."
            )
        if not self.labels:
            raise DataError(
                f"In this {self.question.tool} export nobody chose a label: {len(self.item):,} answers are empty."
            )

    def by_item(self) -> Answers:
        """The same answers, those of an item one after the other."""
        order = np.argsort(self.item, kind="stable")
        return replace(self, item=self.item[order], worker=self.worker[order], Y=self.Y[order])

    def with_labels(self, labels: list[str]) -> Answers:
        """The same with these labels, in their order; one that is not among them is refused."""
        if unknown := next((name for name in self.labels if name not in labels), None):
            raise LabelError(f"the label {unknown!r} is not one of the model's: {', '.join(labels)}.")
        Y = np.zeros((len(self.Y), len(labels)), dtype=np.float32)
        Y[:, [labels.index(name) for name in self.labels]] = self.Y
        return replace(self, labels=labels, Y=Y)

    @cached_property
    def annotators(self) -> tuple[str, ...] | None:
        """Who gave each answer; None where nobody is named, and "" for an answer without a name among others."""
        return tuple(np.array([*self.workers, ""], dtype=object)[self.worker]) if self.workers else None

    @property
    def n_answers(self) -> NDArray[np.int64]:
        """How many answers each item has."""
        return np.bincount(self.item, minlength=self.items.height)


class Collector:
    """Answers as they come, one after the other."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.items: dict[int | str | tuple[int], int] = {}
        self.workers: dict[int | str, int] = {}
        self.labels: dict[str, int] = {}
        self.fields: list[Mapping[str, object]] = []
        self.reference: dict[int, list[str]] = {}
        self.skipped: dict[str, int] = {}
        self._item, self._worker = array("q"), array("q")
        # What answers say, flat (number of the answer, of the label, level): a million small lists would cost minutes.
        self._answer, self._label, self._level = array("q"), array("q"), array("d")
        self._offered: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """How many answers there are."""
        return len(self._item)

    def sharing_items(self, question: Question) -> Collector:
        """A collector for another question about the same items."""
        other = Collector(question)
        other.items, other.fields = self.items, self.fields
        return other

    def item(self, name: object, fields: Mapping[str, object]) -> int:
        """The number of an item, by its name where it has one; its fields are those of the first time it is seen."""
        n = len(self.items)
        number = self.items.setdefault(name if isinstance(name, (int, str)) else (n,), n)
        if number == len(self.fields):
            self.fields.append(fields)
        return number

    def offer(self, labels: Iterable[str]) -> None:
        """Labels that could be chosen, whether somebody did or not."""
        for label in labels:
            self.labels.setdefault(label, len(self.labels))

    def offer_scale(self) -> None:
        """Ratings are labels in the order of their numbers: offered from the first to the last, whoever chose them."""
        try:
            numbers = [int(label) for label in self.labels]
        except ValueError:  # halves, or words
            return
        if numbers and max(numbers) - min(numbers) < MOST_LEVELS:
            self.offer(str(level) for level in range(min(1, *numbers), max(numbers) + 1))

    def add(
        self,
        item: int,
        worker: object,
        labels: Sequence[str],
        levels: Sequence[float] | None = None,
        offered: Sequence[str] | None = None,
    ) -> None:
        """One answer: labels (with a level each, or without), and what was on offer where that differs by item."""
        number = len(self._item)
        if offered is not None:
            self.offer(offered)
            self._offered[number] = [self.labels[label] for label in offered]
        self._item.append(item)
        if isinstance(worker, Mapping):  # a person with an address and a number
            worker = worker.get("email") or worker.get("id")
        is_named = isinstance(worker, (int, str)) and worker != ""
        self._worker.append(self.workers.setdefault(cast("int | str", worker), len(self.workers)) if is_named else -1)
        for k, label in enumerate(labels):
            self._answer.append(number)
            self._label.append(self.labels.setdefault(label, len(self.labels)))
            self._level.append(1.0 if levels is None else levels[k])

    def skip(self, why: str) -> None:
        """An answer that does not count."""
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def finish(self, kind: Kind | None = None) -> Answers:
        """All answers; without a kind, votes where every answer has exactly one label, and marks elsewhere."""
        m, order = len(self._item), in_order(list(self.labels))
        labels.refuse_many(m, len(order))
        number_of = {label: j for j, label in enumerate(order)}
        place = np.array([number_of[label] for label in self.labels], dtype=np.int64)
        Y = np.zeros((m, len(order)), dtype=np.float32)
        for number, offered in self._offered.items():
            Y[number] = np.nan
            Y[number, place[offered]] = 0.0
        answer = np.frombuffer(self._answer, dtype=np.int64)
        Y[answer, place[np.frombuffer(self._label, dtype=np.int64)]] = np.frombuffer(self._level)
        if kind is None:
            kind = "votes" if (np.bincount(answer, minlength=m) == 1).all() else "marks"
        names = list(dict.fromkeys(name for fields in self.fields for name in fields))
        item = "item"
        while item in names:
            item += "_"
        known = {name: [fields.get(name) for fields in self.fields] for name in names}
        called: list[object] = [name[0] if isinstance(name, tuple) else name for name in self.items]
        items = pl.DataFrame([_column(item, called), *(_column(name, known[name]) for name in names)])
        about, by = (np.frombuffer(numbers, dtype=np.int64) for numbers in (self._item, self._worker))
        workers, question = [str(name) for name in self.workers], replace(self.question, kind=kind)
        more = self.reference, tuple(self.skipped.items()), self.fields
        return Answers(items, about, workers, by, order, Y, item, question, *more)


def choose_question(tool: str, names: Iterable[str], question: str | None) -> str:
    """The question that is meant; it must be named where there are several."""
    there = sorted(set(names))
    if question in there or (question is None and len(there) == 1):
        return there[0] if question is None else question
    if question is None and there:
        raise DataError(f"This {tool} export has {len(there)} questions: {', '.join(there)}. Name one (--question).")
    asked = "no answers to any question" if question is None else f"no question {question!r}"
    raise DataError(f"This {tool} export has {asked}{'; it has ' if there else ''}{', '.join(there)}.")


def in_order(names: list[str]) -> list[str]:
    """Names of labels by the alphabet, numbers by their size."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _column(name: str, values: list[object]) -> pl.Series:
    """Values as a column: numbers where all of them are, text otherwise; lists and objects as JSON."""
    kinds = {type(value) for value in values if value is not None}
    dtypes = [dtype for types, dtype in NUMBERS if kinds <= types]
    if dtypes:
        try:
            return pl.Series(name, values, dtype=dtypes[0])
        except (OverflowError, TypeError, pl.exceptions.PolarsError):  # more than 64 bits: exact as text
            pass
    return pl.Series(name, [None if value is None else as_text(value) for value in values], dtype=pl.String)


def as_text(value: object) -> str:
    """A value of JSON as one text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# --------------------------------------------------------------------------------------------- answers in a table


def gather(table: Table, reading: Reading, note: Callable[[str], None]) -> Answers | Table:
    """The answers in a table; or a table with one row per item, where each row is one, or names one of its labels."""
    there = table.stored.columns
    if reading == replace(reading, labels=(), item=None, worker=None) and {"task", "worker", "label"} <= set(there):
        reading = replace(reading, item="task", worker="worker", labels=("label",))
    item, worker = reading.item, reading.worker
    if item is None and worker is None:
        return table
    people = [] if worker is None else columns.resolve([worker], there, "worker", skip={item or ""})
    if len(people) > 1:
        return _column_per_person(table, people, reading, note)
    if item is None:
        raise ArgumentError("a column of annotators needs a column of items beside it (--item).", "worker")
    names = columns.resolve(labels.expand(reading.labels), there, "labels", skip={item, worker or ""})
    roles = [*columns.resolve([item], there, "item"), *people, *names]
    if not names:
        raise ArgumentError("name the column of labels, or one column per label.", "labels")
    if len(set(roles)) < len(roles):
        raise ArgumentError("item, annotator and labels must be different columns.", "item" if not people else "worker")
    if len(names) == 1:
        return _row_per_label(table, roles[0], people, names[0], reading, note)
    Y = labels.LabelReading(names, labels.meanings(table.words(names), table.numeric)).read(table)
    items, place = _items(table.stored, roles[0], roles, note)
    given = Y.cast(pl.Float32).fill_null(float("nan")).to_numpy()
    return Answers(items, place, *_people(table.stored, people), names, given, key=roles[0], source=table)


def _row_per_label(
    table: Table, item: str, people: list[str], label: str, reading: Reading, note: Callable[[str], None]
) -> Answers | Table:
    """One row per item, person and label; without persons, each row is an answer where labels of an item repeat."""
    stored = table.stored
    said = _named(stored[label])
    if not people and reading.rule != "votes" and not stored.select(item, said).is_duplicated().any():
        return table.with_rows(_sets(stored, item, label))
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
    labels.refuse_many(len(first), len(names))
    Y = np.zeros((len(first), len(names)), dtype=np.float32)
    Y[answer.ravel()[pairs["row"].to_numpy()], labels.codes(pairs["name"], names)] = 1.0
    order = np.argsort(first)
    return Answers(items, place[first[order]], workers, worker[first[order]], names, Y[order], key=item, source=table)


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
    return Answers(items, place[asked], people, worker[asked], names, Y, key=reading.item or "", source=table)


def _sets(frame: pl.DataFrame, item: str, label: str) -> pl.DataFrame:
    """One row per item, whose labels become a list; other columns must agree."""
    others = [name for name in frame.columns if name not in (item, label)]
    for name, odd in _differing(frame, item, others).items():
        raise DataError(f"the rows of item {odd!r} differ in the column {name!r}: only the label may differ per item.")
    listed = pl.col(label).drop_nulls().unique(maintain_order=True)
    rows = frame.group_by(item, maintain_order=True).agg(*(pl.col(name).first() for name in others), listed)
    return rows.select(frame.columns)


def _differing(frame: pl.DataFrame, item: str, names: Sequence[str]) -> dict[str, object]:
    """Columns in which the rows of an item differ, each with such an item."""
    counts = frame.group_by(item, maintain_order=True).agg(pl.col(name).n_unique() for name in names)
    return {name: counts[item][counts[name].arg_max() or 0] for name in names if (counts[name] > 1).any()}


def _items(
    frame: pl.DataFrame, item: str, used: Sequence[str], note: Callable[[str], None]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """A row per item with what all its rows agree on, and the number (m,) of the item of every row."""
    blank = frame[item].cast(pl.String).fill_null("").str.strip_chars() == ""
    if blank.any():
        raise DataError(f"row {blank.arg_max()} has no {item!r}: every answer must say what it is about.")
    others = [name for name in frame.columns if name not in used]
    differing = _differing(frame, item, others)
    if differing:
        note(f"left out, since the rows of an item differ in it: {columns.listed(list(differing))}")
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

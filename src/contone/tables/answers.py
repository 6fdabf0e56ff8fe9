"""Answers of people, whatever tool they gave them in: who said what about which item.

`contone.tables.exports` makes them from the exports of tools, `contone.tables.gathering` from tables; from there on
they are one.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import DataError
from contone.tables.table import Table, Written

Kind = Literal["votes", "marks", "levels", "ranks"]
NUMBERS = (({bool}, pl.Boolean), ({int}, pl.Int64), ({int, float}, pl.Float64))


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
    kind: Kind | None = None
    """What an answer is, where the tool says so."""
    key: str = ""
    """The column of `items` with their names; "" where they have none."""
    tool: str = ""
    question: str = ""
    reference: dict[int, list[str]] = field(default_factory=dict)
    """Items whose answer was marked as the right one; these are not among the answers."""
    skipped: tuple[tuple[str, int], ...] = ()
    """Answers that were left out, and why."""
    asked: str = ""
    """What the tool calls a question of this kind."""
    shown: str = ""
    """What the question is about, by the tool's name of it (`to_name` of Label Studio)."""
    fields: list[Mapping[str, object]] = field(default_factory=list, repr=False)
    """What the tool holds about each item, as it was."""
    written: Written = field(default_factory=Written, repr=False)
    """How the table is written that they come from."""

    @property
    def table(self) -> Table:
        """The items as a table."""
        return Table(self.items, **self.written)

    def in_words(self) -> str:
        """What was read, in one sentence."""
        by = f" by {len(self.workers):,} people" if self.workers else ""
        said = f"{self.tool}: " if self.tool else ""
        said += f"{len(self.item):,} answers{by} about {self.items.height:,} items"
        said += f", question {self.question!r}" if self.question else ""
        said += f"; {len(self.reference):,} items with a reference answer" if self.reference else ""
        left_out = [f"{count:,} {why}" for why, count in self.skipped if count]
        return said + (f" ({', '.join(left_out)} left out)" if left_out else "")

    def by_item(self) -> Answers:
        """The same answers, those of an item one after the other."""
        order = np.argsort(self.item, kind="stable")
        return replace(self, item=self.item[order], worker=self.worker[order], Y=self.Y[order])

    @cached_property
    def annotators(self) -> tuple[str, ...] | None:
        """Who gave each answer; None where nobody is named, and "" for an answer without a name among others."""
        names = np.array([*self.workers, ""], dtype=object)
        return tuple(names[self.worker]) if self.workers else None

    @property
    def n_answers(self) -> NDArray[np.int64]:
        """How many answers each item has."""
        return np.bincount(self.item, minlength=self.items.height)


class Collector:
    """Answers as they come, one after the other."""

    def __init__(self, tool: str, question: str = "") -> None:
        self.tool, self.question, self.asked, self.shown = tool, question, "", ""
        self.items: dict[Hashable, int] = {}
        self.workers: dict[Hashable, int] = {}
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

    def sharing_items(self, question: str) -> Collector:
        """A collector for another question about the same items."""
        other = Collector(self.tool, question)
        other.items, other.fields = self.items, self.fields
        return other

    def item(self, name: Hashable, fields: Mapping[str, object]) -> int:
        """The number of an item; its fields are those of the first time it is seen."""
        number = self.items.setdefault(name, len(self.items))
        if number == len(self.fields):
            self.fields.append(fields)
        return number

    def offer(self, labels: Iterable[str]) -> None:
        """Labels that could be chosen, whether somebody did or not."""
        for label in labels:
            self.labels.setdefault(label, len(self.labels))

    def add(
        self,
        item: int,
        worker: Hashable | None,
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
        self._worker.append(-1 if worker is None else self.workers.setdefault(worker, len(self.workers)))
        for k, label in enumerate(labels):
            self._answer.append(number)
            self._label.append(self.labels.setdefault(label, len(self.labels)))
            self._level.append(1.0 if levels is None else levels[k])

    def skip(self, why: str) -> None:
        """An answer that does not count."""
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def finish(self, kind: Kind | None = None) -> Answers:
        """All answers; without a kind, votes where every answer has exactly one label, and marks elsewhere."""
        if not self._item:
            left_out = ", ".join(f"{count:,} {why}" for why, count in self.skipped.items())
            raise DataError(
                f"This {self.tool} export holds no answers{f' ({left_out})' if left_out else ''}:"
                " export items that people have annotated."
            )
        if not self.labels:
            raise DataError(f"In this {self.tool} export nobody chose a label: {len(self._item):,} answers are empty.")
        m, order = len(self._item), in_order(list(self.labels))
        place = np.array([order.index(label) for label in self.labels], dtype=np.int64)
        Y = np.zeros((m, len(order)), dtype=np.float32)
        for number, offered in self._offered.items():
            Y[number] = np.nan
            Y[number, place[offered]] = 0.0
        answer = np.frombuffer(self._answer, dtype=np.int64)
        Y[answer, place[np.frombuffer(self._label, dtype=np.int64)]] = np.frombuffer(self._level)
        if kind is None:
            kind = "votes" if (np.bincount(answer, minlength=m) == 1).all() else "marks"
        names = list(dict.fromkeys(name for fields in self.fields for name in fields))
        item = _free("item", set(names))
        known = {name: [fields.get(name) for fields in self.fields] for name in names}
        return Answers(
            pl.DataFrame([_column(item, list(self.items)), *(_column(name, known[name]) for name in names)]),
            np.frombuffer(self._item, dtype=np.int64),
            [str(name) for name in self.workers],
            np.frombuffer(self._worker, dtype=np.int64),
            order,
            Y,
            kind,
            item,
            self.tool,
            self.question,
            self.reference,
            tuple(self.skipped.items()),
            self.asked,
            self.shown,
            self.fields,
        )


def in_order(names: list[str]) -> list[str]:
    """Names of labels by the alphabet, numbers by their size."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _free(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken; it is from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


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

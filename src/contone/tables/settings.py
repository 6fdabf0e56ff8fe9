"""What is wanted from a file, as three frozen values: how it is read, how the answer is written, how it is streamed."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any, TypedDict, get_args, get_origin

from contone.exceptions import ArgumentError, InputError
from contone.measurements import parse_rule

STDOUT = "-"
"""The target that stands for CSV on stdout."""
WIDER: dict[Any, type] = {int: Integral, float: Real, bool: object}
"""What is taken for values of a kind, those of NumPy among them."""
COLUMN_LISTS = ("labels", "features", "ids", "categorical", "text")


class ReadingOptions(TypedDict, total=False):
    """The arguments of `contone.read_table` about columns and reading."""

    labels: Sequence[str]
    features: Sequence[str]
    ids: Sequence[str]
    categorical: Sequence[str]
    text: Sequence[str]
    separator: str | None
    decimal: str | None
    label_separator: str | None
    item: str | None
    worker: str | None
    question: str | None
    rule: str | None
    embeddings: str | os.PathLike[str] | None
    missing: str
    unlabelled: str
    graded: str | os.PathLike[str] | None


class WritingOptions(TypedDict, total=False):
    """The arguments of `contone.write_answer` about the columns that are added."""

    suffix: str
    overwrite: bool
    top: int | None
    degrees_as: str
    digits: int | None


class AnswerOptions(ReadingOptions, WritingOptions, total=False):
    """All of these, and the level of intervals."""

    intervals: float | None


@dataclass(frozen=True)
class Reading:
    """How a table is read: which columns are what, how its text is written, what is done with gaps.

    The fields are the arguments of `contone.read_table`.
    """

    labels: Sequence[str] = ()
    features: Sequence[str] = ()
    ids: Sequence[str] = ()
    categorical: Sequence[str] = ()
    text: Sequence[str] = ()
    separator: str | None = None
    decimal: str | None = None
    label_separator: str | None = None
    item: str | None = None
    worker: str | None = None
    question: str | None = None
    rule: str | None = None
    embeddings: str | os.PathLike[str] | None = None
    missing: str = "impute"
    unlabelled: str = "method"
    graded: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in COLUMN_LISTS:
            object.__setattr__(self, name, as_names(getattr(self, name)))
            if not all(isinstance(entry, str) for entry in getattr(self, name)):
                raise ArgumentError(f"must be names of columns; got {getattr(self, name)!r}.", name)
        _check_kinds(self)
        _check_word("missing", self.missing, ("impute", "drop", "error"))
        _check_word("unlabelled", self.unlabelled, ("method", "predict", "drop"))
        _check_word("decimal", self.decimal, (None, ".", ","))
        if self.rule is not None:
            try:
                parse_rule(self.rule)
            except InputError as error:
                raise ArgumentError(str(error), "rule") from error
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise ArgumentError(f"must be one character; got {self.separator!r}.", "separator")

    @property
    def files(self) -> list[str]:
        """Files that are read beside the table: graded rows, embeddings, lists of label names."""
        lists = [entry.removeprefix("@") for entry in self.labels if entry.startswith("@") or Path(entry).suffix]
        return [*lists, *(os.fspath(file) for file in (self.graded, self.embeddings) if file is not None)]

    def as_options(self) -> list[str]:
        """The same on the command line, as far as it differs from the defaults; without graded rows."""
        found = []
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name != "graded" and value != own.default:
                name = "id" if own.name == "ids" else own.name.replace("_", "-")
                found += [f"--{name}", ",".join(value) if isinstance(value, tuple) else os.fspath(value)]
        return found


@dataclass(frozen=True)
class Writing:
    """How an answer is written: where to, and which columns are added.

    The fields are the arguments of `contone.enhance_file` of the same names.
    """

    target: str
    suffix: str = "_degree"
    overwrite: bool = False
    top: int | None = None
    degrees_as: str = "columns"
    digits: int | None = None
    intervals: float | None = None

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_word("degrees_as", self.degrees_as, ("columns", "list", "struct"))
        if self.intervals is not None and not 0 < self.intervals < 1:
            raise ArgumentError(f"the level must be between 0 and 1; got {self.intervals}.", "intervals")
        if self.top is not None and self.top < 1:
            raise ArgumentError(f"must be 1 or more; got {self.top}.", "top")
        if self.digits is not None and not 1 <= self.digits <= 15:
            raise ArgumentError(f"must be from 1 to 15; got {self.digits}.", "digits")


@dataclass(frozen=True)
class Streaming:
    """How a file is streamed: rows per piece, and rows to fit on; None chooses."""

    chunk_rows: int | None = None
    sample_rows: int | None = None

    def __post_init__(self) -> None:
        _check_kinds(self)


def split_options(options: AnswerOptions, target: str | os.PathLike[str]) -> tuple[Reading, Writing]:
    """The options of reading and those of writing, apart."""
    written = {field.name for field in fields(Writing)}
    of_writing = {name: value for name, value in options.items() if name in written}
    of_reading = {name: value for name, value in options.items() if name not in written}
    return Reading(**of_reading), Writing(str(target), **of_writing)  # type: ignore[arg-type]


def as_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several, as they are typed or passed."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _check_kinds(options: Reading | Writing | Streaming) -> None:
    """Refuse values that are of no kind that their field allows."""
    for own in fields(options):
        value, kinds = getattr(options, own.name), get_args(own.type) or (own.type,)
        allowed = tuple(WIDER.get(kind, get_origin(kind) or kind) for kind in kinds)
        if own.name not in COLUMN_LISTS and not isinstance(value, allowed):
            names = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
            raise ArgumentError(f"must be {names}; got {value!r}.", own.name)


def _check_word(argument: str, value: str | None, allowed: Sequence[str | None]) -> None:
    if value not in allowed:
        raise ArgumentError(f"{value!r} must be one of {', '.join(filter(None, allowed))}.", argument)

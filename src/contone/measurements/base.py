"""What a measurement is: how labels Y (n, q) were made from degrees D (n, q).

A person who labels an item measures its degrees. *How* (marking the main labels, passing a bar, voting, giving levels)
is the measurement, and one class in one file of this package:

| it says | by |
|---|---|
| what Y may hold | `check_labels(Y)` raises LabelError; `takes_numbers` lets whole numbers other than 0 and 1 in |
| how Y is made from D | `simulate(D, rng, like=Y)`: labels of the same kind, size and gaps as Y, for rehearsals |
| which rows of Y say nothing | `silent(Y)`; nobody else decides about rows without labels |
| what Y says of the spread of the degrees | `scale_matters`, and `spread_prior` for what it leaves open |
| what it is called | `spoken` (what a person types), `in_words()` (how it is said back) |

How degrees are recovered from Y is the sampler's part. For rules that leave an *interval* to each log degree,
`IntervalRule` (`intervals`) adds what the sweeps need. A measurement that is no such rule derives from `Measurement`
and brings its own conditional distributions.

A measurement is a frozen dataclass: a value, equal to another with the same parameters, that goes into model files.
Y and D are arrays of any kind that `contone.backends` knows; NaN in Y is an entry that nobody asked about.
"""

from abc import ABC, abstractmethod
from numbers import Real
from typing import ClassVar, NamedTuple, Self

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like, to_numpy
from contone.typing import Array


class Spoken(NamedTuple):
    """Words for a measurement, and what they stand for."""

    words: str
    """In plain words; the part before a comma means the same."""
    parameters: tuple[float, ...] | None = ()
    """Of the class; None where the labels have to say them."""


class Measurement(ABC):
    """How labels were made from degrees."""

    spoken: ClassVar[dict[str, Spoken]] = {}
    """Short names, and the words that mean the same."""
    parameter: ClassVar[tuple[str, type] | None] = None
    """Name before a colon and type of the number after it (``topk:3``); None where no number can be typed."""
    scale_matters: ClassVar[bool] = True
    """Whether labels say how uneven degrees are; not so where only the order of the degrees counts."""
    spread_prior: ClassVar[tuple[float, float]] = (0.22, 0.5)
    """Median and log standard deviation of the prior of the spread: a typical degree is 1.25 times its neighbour, and
    twice or half that spread is one standard deviation and a half away. It decides only where labels do not."""
    takes_numbers: ClassVar[bool] = False
    """Whether Y may hold whole numbers other than 0 and 1."""

    @abstractmethod
    def check_labels(self, Y: Array) -> None:
        """Raise LabelError where Y (n, q) holds what this measurement cannot give."""

    @abstractmethod
    def simulate(self, D: Array, rng: np.random.Generator, like: Array | None = None) -> Array:
        """Labels (n, q), float, of rows with degrees D (n, q).

        What the measurement leaves open (how many people were asked, which levels there are, what nobody asked) is
        taken from the labels `like` (n, q).
        """

    def in_words(self) -> str:
        """What this measurement says about the labels that a row was given, in plain words."""
        return str(self)

    def suited_to(self, Y: Array) -> Self:
        """The same measurement with what the labels Y (n, q) themselves say of it; here they say nothing."""
        return self

    def silent(self, Y: Array) -> Array:
        """Which rows of Y (n, q) say nothing about their degrees, bool (n,): here those that nobody asked about."""
        return array_namespace(Y).all(Y != Y, axis=1)

    def forget_silent(self, Y: Array) -> Array:
        """Y (n, q) with NaN in the rows that say nothing."""
        silent, xp = self.silent(Y), array_namespace(Y)
        return xp.where(silent[:, None], xp.full_like(Y, xp.nan), Y) if bool(silent.any()) else Y


def is_share(value: object) -> bool:
    """Whether a parameter is a number in [0, 1)."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < 1


def first_entry(off: Array, Y: Array) -> str:
    """Which entry of Y (n, q) is the first that is off, bool (n, q), and its value."""
    row, label = (int(places[0]) for places in np.nonzero(to_numpy(off)))
    return f"in row {row}, label number {label} (from 0) is {float(Y[row, label]):g}"


class Answers(Measurement):
    """What people answered: choices, marks, levels. A degree is what people give a label on average."""

    takes_numbers: ClassVar[bool] = True

    def coded(self, Y: Array) -> np.ndarray:
        """Y (n, q) as the engine reads it."""
        return np.ascontiguousarray(to_numpy(Y), dtype=np.float64)

    def count_answers(self, Y: np.ndarray) -> np.ndarray:
        """How many people the rows of Y (n, q) are by, (n,)."""
        return np.asarray(np.any(~np.isnan(Y), axis=1), dtype=np.float64)


def has_unasked(L: Array) -> bool:
    """Whether an entry of labels in memory is NaN."""
    return bool(array_namespace(L).any(L != L))


def asked_frequencies(L: Array) -> np.ndarray:
    """How often each label is marked where it was asked, (q,); half a count on either side keeps it inside (0, 1)."""
    backend, asked = get_backend(L), L == L
    xp = array_namespace(L)
    marked, count = backend.compute((asked & (L > 0)).sum(axis=0), asked.sum(axis=0))
    if backend.name == "torch":
        marked, count = backend.to_numpy(xp.astype(marked, L.dtype)), backend.to_numpy(xp.astype(count, L.dtype))
    return (np.asarray(marked, dtype=float) + 0.5) / (np.asarray(count, dtype=float) + 1.0)


def fill_unasked(L: Array, values: np.ndarray) -> Array:
    """L (n, q) in memory with the values (q,) of its labels in place of NaN."""
    return array_namespace(L).where(L == L, L, like(values, L)[None, :])

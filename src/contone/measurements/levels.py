"""Levels and marks: each person judges every label by itself.

A degree is a label's part of the whole level that people give an item on average:

    d_j = E[level_j] / sum_k E[level_k],

levels counted from the lowest one, the mean over people. Marks have the levels 0 and 1: a degree is the label's share
of all marks. The lowest level is evidence, too: "not at all".
"""

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import ClassVar, Self

import numpy as np
from array_api_compat import array_namespace

from contone.backends import to_numpy
from contone.exceptions import InputError, LabelError
from contone.measurements.base import Answers, Spoken, first_entry
from contone.typing import Array

MOST_STEPS = 25
"""Levels that are told apart: of grades with more, the rarest neighbours are read as one."""


@dataclass(frozen=True)
class Levels(Answers):  # numpydoc ignore=PR02
    """A level for every label: 0 to 3, a five-point scale, grades from 0 to 100, no / unsure / yes as 0, 1, 2.

    Y (n, q) holds whole numbers, NaN where nobody asked. Distances between levels are learnt, so that heaps (at 50 and
    100, say) and levels that nobody uses do no harm; a level counts as its number above the lowest.

    Parameters
    ----------
    levels : (lowest, highest) or None, default=None
        The range that people were given; None takes it from Y.
    numbers : tuple of float, default=()
        The levels that are told apart; `suited_to` takes them from Y.

    Examples
    --------
    >>> rule = Levels((0, 3)).suited_to(np.array([[0, 3, 1], [0, 1, 1]]))
    >>> rule, rule.numbers, rule.coded(np.array([[0, 3, 1]])).tolist()
    (Levels(levels=(0, 3)), (0.0, 1.0, 3.0), [[0.0, 2.0, 1.0]])
    """

    levels: tuple[float, float] | None = None
    numbers: tuple[float, ...] = field(default=(), repr=False)
    spoken: ClassVar[dict[str, Spoken]] = {"levels": Spoken("levels, one for every label")}

    def __post_init__(self) -> None:
        numbers = self.levels is None or (isinstance(self.levels, tuple | list) and len(self.levels) == 2)
        numbers = numbers and all(isinstance(level, Real) for level in self.levels or ())
        if not numbers or (self.levels is not None and not self.levels[0] < self.levels[1]):
            raise InputError(f"Levels: levels must be (lowest, highest), the first the smaller; got {self.levels!r}.")

    @property
    def lowest(self) -> float:
        """The level that means nothing of a label."""
        return 0.0 if self.levels is None else float(self.levels[0])

    @property
    def worth(self) -> np.ndarray:
        """What each of the levels told apart counts, (K + 1,)."""
        return np.asarray(self.numbers) - self.lowest

    def suited_to(self, Y: Array) -> Self:
        """With the levels that Y (n, q) uses; rare neighbours are put together where there are too many."""
        given = to_numpy(Y)
        values, counts = np.unique(given[~np.isnan(given)], return_counts=True)
        if len(values) < 2:  # one level says nothing of distances: it stands beside the end of the range
            low, high = self.levels or (0.0, 1.0)
            values = np.unique([low, *values]) if (values > low).any() else np.array([low, high])
            counts = np.ones(len(values), dtype=np.intp)
        numbers, weights = values.tolist(), counts.tolist()
        found = (float(values[0]), float(values[-1]))
        while len(numbers) > MOST_STEPS:
            k = int(np.argmin(np.add(weights[1:], weights[:-1])))
            total = weights[k] + weights[k + 1]
            numbers[k] = (weights[k] * numbers[k] + weights.pop(k + 1) * numbers.pop(k + 1)) / total
            weights[k] = total
        return replace(self, levels=self.levels or found, numbers=tuple(map(float, numbers)))

    def coded(self, Y: Array) -> np.ndarray:
        """Which of the levels told apart each entry of Y (n, q) is or lies next to, from 0; NaN stays."""
        given = np.asarray(to_numpy(Y), dtype=np.float64)
        between = np.convolve(self.numbers, [0.5, 0.5], mode="valid")
        return np.where(np.isnan(given), np.nan, np.searchsorted(between, given).astype(np.float64))

    def check_labels(self, Y: Array) -> None:
        xp, (low, high) = array_namespace(Y), self.levels or (-np.inf, np.inf)
        off = (Y == Y) & ((xp.round(Y) != Y) | ~xp.isfinite(Y) | (low > Y) | (high < Y))
        if bool(xp.any(off)):
            told = "" if self.levels is None else f" from {low:g} to {high:g}"
            raise LabelError(
                f"Y must hold {type(self).__name__.lower()}, whole numbers{told}; {first_entry(off, Y)}. Round it, or "
                "say the range: levels=(lowest, highest)."
            )

    def simulate(self, D: Array, rng: np.random.Generator, like: Array | None = None) -> Array:
        """Levels whose means are in the ratio of D (n, q), as high in sum as the rows of `like` (n, q), NaN as there.

        Sums are half those of the row and half the mean, since a row's own sum is chance as well.
        """
        shares = np.asarray(to_numpy(D), dtype=np.float64)
        low, high = self.levels or (0.0, 1.0 if like is None else float(np.nanmax(to_numpy(like), initial=1.0)))
        given = np.full_like(shares, low + 1.0) if like is None else np.asarray(to_numpy(like), dtype=np.float64)
        sums = np.nansum(given - low, axis=1)
        sums = 0.5 * (sums + sums.mean())
        chance = np.clip(shares * sums[:, None] / (high - low), 0.0, 1.0)
        return np.where(np.isnan(given), np.nan, low + rng.binomial(round(high - low), chance))

    def in_words(self) -> str:
        told = "" if self.levels is None else f", from {self.levels[0]:g} to {self.levels[1]:g}"
        return f"each person gave every label a level{told}"


@dataclass(frozen=True)
class Marks(Levels):  # numpydoc ignore=PR02
    """All labels that hold, in the eyes of one person: Y (n, q) in {0, 1}, one row per answer.

    A row of zeros says that nothing holds.

    Parameters
    ----------
    levels : tuple of float, default=(0.0, 1.0)
        Not marked and marked.
    numbers : tuple of float, default=()
        As in `Levels`.

    Examples
    --------
    >>> Marks().suited_to(np.array([[0, 1, 1], [0, 0, 0]])).worth.tolist()
    [0.0, 1.0]
    """

    levels: tuple[float, float] | None = field(default=(0.0, 1.0), repr=False)
    spoken: ClassVar[dict[str, Spoken]] = {"marks": Spoken("marks, all labels that hold")}

    def suited_to(self, Y: Array) -> Self:
        return replace(self, numbers=(0.0, 1.0))

    def in_words(self) -> str:
        return "each person marked all labels that hold"

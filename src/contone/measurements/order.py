"""The order alone: rankings, levels, or marked above unmarked."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from contone.exceptions import InputError
from contone.measurements.base import Spoken
from contone.measurements.intervals import IntervalRule, Region
from contone.measurements.topk import TopK
from contone.typing import Array


@dataclass(frozen=True)
class Order(IntervalRule):
    """Larger numbers, degrees at least as large, no more: rankings, levels such as 0 to 3, and plain 0 and 1.

    L holds whole numbers, of which only the order within a row counts; ties leave open which degree is the larger.
    `interval` is that of two levels; `level_interval` has any number of them.
    `apply` would have to know how many levels to make (`TopK` makes two).

    Examples
    --------
    >>> Order().agrees(np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]]), np.array([[1, 3, 1], [2, 1, 0]])).tolist()
    [True, False]
    """

    spoken: ClassVar[dict[str, Spoken]] = {"order": Spoken("marked above unmarked, no more")}
    scale_matters: ClassVar[bool] = False
    takes_numbers: ClassVar[bool] = True

    @property
    def region(self) -> Region | None:
        return Region("order") if type(self) is Order else None

    def in_words(self) -> str:
        return self.spoken["order"].words

    def silent(self, Y: Array) -> Array:
        """Rows that nobody asked about; a row of zeros is one of equal levels."""
        return array_namespace(Y).all(Y != Y, axis=1)

    def simulate(self, D: Array, rng: np.random.Generator, like: Array | None = None) -> Array:
        """The levels of every row of `like` (n, q), the largest where D (n, q) is largest; NaN stays."""
        if like is None:
            return self._apply(D)
        return in_order_of(D, like)

    def _apply(self, D: Array) -> Array:
        raise InputError("Order does not say how many labels to mark, so it makes none from degrees: use TopK(k).")

    def agrees(self, D: Array, L: Array) -> Array:
        xp = array_namespace(D, L)
        swapped = [xp.any((L[:, j : j + 1] > L) & (D[:, j : j + 1] < D), axis=1) for j in range(D.shape[1])]
        return ~xp.any(xp.stack(swapped), axis=0)

    def cardinality(self, ranked: Array) -> Array:
        raise InputError("Order does not say how many labels to mark.")

    def start(self, L: Array) -> tuple[Array, Array]:
        xp = array_namespace(L)
        impossible = xp.zeros_like(L[:, 0], dtype=xp.bool)
        if not has_levels(L):
            return TopK().start(L)[0], impossible
        q = L.shape[1]
        below = [xp.sum(xp.astype(L[:, j : j + 1] > L, xp.float64), axis=1) for j in range(q)]
        return xp.astype(xp.stack(below, axis=1), L.dtype) / q, impossible


def in_order_of(D: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The labels (or levels) of every row of `given` (n, q), the largest where D (n, q) is largest; NaN stays."""
    placed = np.empty_like(given, dtype=float)
    order = np.argsort(np.where(np.isnan(given), np.inf, -D), axis=1, kind="stable")
    np.put_along_axis(placed, order, -np.sort(-given, axis=1), axis=1)
    return placed


def level_interval(Z: Array, levels: Array, j: int) -> tuple[Array, Array]:
    """Ends (n,), (n,) for label j between labels of lower and of higher levels; Z and levels are (q, n).

    A level that is NaN bounds nothing and is bounded by nothing.
    """
    xp = array_namespace(Z)
    far, own = xp.full_like(Z, xp.inf), levels[j, :]
    return xp.max(xp.where(levels < own, Z, -far), axis=0), xp.min(xp.where(levels > own, Z, far), axis=0)


def has_levels(L: Array) -> bool:
    """Whether labels L (n, q) hold anything but 0 and 1."""
    return bool(array_namespace(L).any((L != 0) & (L != 1)))

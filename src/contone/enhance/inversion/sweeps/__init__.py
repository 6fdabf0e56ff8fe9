"""Gibbs sweeps: log weights Z (q, n) redrawn within what the labels of their rows allow.

`reference` says what a sweep is, for every rule and every kind of array; tests hold the others to it. `compiled`
(numba, NumPy arrays) and `gpu` (Triton, tensors on a GPU) do the same for rules that have a `Region`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from contone.enhance.inversion.covariance import Precision
from contone.typing import Array

Sums = tuple[Array, Array, Array]
"""Of degrees, their logits and the squares of these over draws."""


class KnownRows(NamedTuple):
    """Rows whose degrees are known: their log weights stay, but for those of degrees that were rounded to 0."""

    rows: Array
    """(n,) which rows."""
    is_zero: Array
    """(q, n) which of their degrees are 0."""
    highest_zero: Array
    """(n,) the largest log weight of such a degree, where the row's largest is 0."""


class Bound(NamedTuple):
    """What binds the log weights of n rows beside the rule."""

    positive: Array
    """(q, n) which labels are marked."""
    relaxed: Array | None = None
    """(n,) which rows keep to an order alone, that of marked and unmarked labels or of `levels`; None for no row."""
    levels: Array | None = None
    """(q, n) the order where it has more than two levels or gaps (NaN, which nothing binds)."""
    known: KnownRows | None = None


class Sweeps(ABC):
    """One way to sweep."""

    takes_factors: ClassVar[bool] = True
    """Whether Sigma^-1 in factors is used as it is; otherwise it is multiplied out."""

    @abstractmethod
    def sweep(
        self,
        Z: Array,
        bound: Bound,
        mean: Array,
        precision: Precision,
        u: Array,
        shift: Array,
        *,
        reflect: bool = False,
        root_weights: Array | None = None,
    ) -> Array:
        """One sweep with given draws: new log weights (q, n). `ReferenceSweeps.sweep` says what everything is."""

    def run_chain(
        self, Z: Array, bound: Bound, mean: Array, precision: Precision, draws: Any, length: tuple[int, int], sums: Sums
    ) -> Array | None:
        """All sweeps of a chain whose parameters stay as they are as one operation that makes its own random numbers.

        `length` is the number of sweeps, every other one a reflection, and how many of them are left out of the sums,
        each (n, q). What comes back are new log weights; None, and nothing done, where sweeps go one by one.
        """
        return None

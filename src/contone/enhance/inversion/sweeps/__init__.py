"""Gibbs sweeps: log weights Z (q, n) redrawn within what the labels of their rows allow.

`reference` says what a sweep is, for every rule and every kind of array; tests hold the others to it. `compiled`
(numba, NumPy arrays) and `gpu` (Triton, tensors on a GPU) do the same for rules that have a `Region`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from contone.enhance.inversion.covariance import Precision
from contone.typing import Array

Sums = tuple[Array, Array, Array]
"""Of degrees, their logits and the squares of these over draws."""
Length = tuple[int, int]
"""How many sweeps a chain has, every other one a reflection, and how many of them are left out of the sums."""


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


class Move(NamedTuple):
    """How one sweep moves the log weights of n rows."""

    u: Array
    """(q, n) uniform draws in (0, 1)."""
    shift: Array
    """(n,) standard normal draws. A common shift of a row's log weights changes nothing that the labels see, so it is
    redrawn from the prior first; without that the walk along it is slow."""
    reflect: bool = False
    """Reflect each log weight at the median of its conditional distribution instead of redrawing it. That leaves the
    distribution as it is (over-relaxation, Adler 1981, Neal 1998). Every other sweep so, and the errors of an average
    over sweeps cancel in pairs; reflections alone would not explore."""
    root_weights: Array | None = None
    """(n,) square roots of the weights of the rows; a row with the weight w has covariance Sigma / w."""


class Sweeps(ABC):
    """One way to sweep."""

    takes_factors: ClassVar[bool] = True
    """Whether Sigma^-1 in factors is used as it is; otherwise it is multiplied out."""

    @abstractmethod
    def sweep(self, Z: Array, bound: Bound, mean: Array, precision: Precision, move: Move) -> Array:
        """One sweep with given draws: new log weights (q, n). `ReferenceSweeps.sweep` says what everything is."""

    def run_chain(
        self, Z: Array, bound: Bound, mean: Array, precision: Precision, draws: Any, length: Length, sums: Sums
    ) -> Array | None:
        """All sweeps of a chain whose parameters stay as they are as one operation that makes its own random numbers.

        The sums are each (n, q). What comes back are new log weights; None, and nothing done, where sweeps go one by
        one.
        """
        return None

"""The main labels: from the largest degree down, until they have more than a share of the weight."""

from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace

from contone.exceptions import InputError
from contone.measurements.base import Spoken, is_share
from contone.measurements.intervals import IntervalRule, Others, Region, Support, descending, put_back, ratio
from contone.numerics.simplex import log_weight
from contone.typing import Array


@dataclass(frozen=True)
class CumulativeMass(IntervalRule):  # numpydoc ignore=PR02
    """Labels from the largest degree down, until their sum is strictly more than t.

    Parameters
    ----------
    t : float, default=0.5
        Share of the weight, in [0, 1).

    Examples
    --------
    >>> CumulativeMass(0.5).apply([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]).tolist()
    [[0, 1, 1], [1, 0, 0]]
    """

    t: float = 0.5
    spoken: ClassVar[dict[str, Spoken]] = {
        "main": Spoken("main labels, more than half of the weight", (0.5,)),
        "everything": Spoken("everything that matters, nearly all of the weight", (0.9,)),
    }
    parameter: ClassVar[tuple[str, type] | None] = ("cumulative", float)

    def __post_init__(self) -> None:
        if not is_share(self.t):
            raise InputError(f"CumulativeMass: t must be in [0, 1); got {self.t!r}.")

    @property
    def region(self) -> Region | None:
        return Region("mass", float(self.t)) if type(self) is CumulativeMass and self.t > 0 else None

    def in_words(self) -> str:
        if self.t == 0.5:
            return self.spoken["main"].words
        return f"the largest labels, until they have more than {100 * self.t:.3g} % of the weight"

    def _apply(self, D: Array) -> Array:
        xp = array_namespace(D)
        order, ranked = descending(D)
        # A label is needed as long as those before it have not yet passed t.
        needed = xp.ones_like(D, dtype=xp.bool)
        needed[:, 1:] = xp.cumulative_sum(ranked, axis=1)[:, :-1] <= self.t
        return put_back(order, needed)

    def interval(self, others: Others, positive: Array) -> tuple[Array, Array]:
        """Order, enough, not one too many.

        With the mass P of the positive and N of the negative labels:

        every positive >= every negative;  (1 - t) P > t N;  (1 - t) P - min(positive) <= t N.
        """
        xp = array_namespace(others.positive_mass)
        t, P, N = self.t, others.positive_mass, others.negative_mass
        alone = others.n_positive == 0
        smallest = xp.where(alone, xp.zeros_like(P), xp.exp(others.lowest_positive))
        # As a positive label, w: (1 - t)(P + w) > t N, and (1 - t)(P + w) - min(w, smallest) <= t N. The left side of
        # the latter falls until w = smallest and rises from there, so that it holds between two values of w.
        least = xp.maximum(t * N / (1 - t) - P, ratio((1 - t) * P - t * N, t))
        most = xp.where(alone, xp.full_like(P, xp.inf), (t * N + smallest) / (1 - t) - P)
        lower_positive = xp.maximum(log_weight(least), others.highest_negative)
        # As a negative label, w: t (N + w) < (1 - t) P, and t (N + w) >= (1 - t) P - smallest.
        lower_negative = log_weight(ratio((1 - t) * P - smallest, t) - N)
        upper_negative = xp.minimum(log_weight(ratio((1 - t) * P, t) - N), others.lowest_positive)
        return xp.where(positive, lower_positive, lower_negative), xp.where(positive, log_weight(most), upper_negative)

    def support(self, n_positive: Array, q: int) -> Support:
        """With m positive labels and k others, of which the largest m - 1 have at most t and m more than t.

        What is left beside the m - 1 largest is 1 - t or more, for the smallest positive label and k smaller ones.
        """
        xp, t, m = array_namespace(n_positive), self.t, n_positive
        k, alone = q - m, m <= 1
        least, others = (1 - t) / (1 + k), xp.clip(m - 1, min=1.0)
        lowest = xp.where(alone, xp.clip(least, min=max(t, 1 / q)), least)
        highest = xp.where(alone, xp.ones_like(m), t - (others - 1) * least)
        negative = xp.where(alone, xp.zeros_like(m), xp.clip(1 - t - k * t / others, min=0.0))
        return Support(lowest, highest, negative, xp.clip(1 / (m + 1), max=1 - t))

    def cardinality(self, ranked: Array) -> Array:
        xp = array_namespace(ranked)
        # Label by label: columns are long, and NumPy's running sums along short rows slow.
        mass = xp.zeros_like(ranked[:, 0])
        size = xp.ones_like(mass, dtype=xp.int64)
        for j in range(ranked.shape[1] - 1):
            mass = mass + ranked[:, j]
            size += xp.astype(mass <= self.t, xp.int64)
        return size

    def negative_share(self, n_positive: Array, q: int) -> Array:
        xp = array_namespace(n_positive)
        m, t = n_positive, self.t
        rest = xp.clip(q - m, min=1.0)
        lowest = ratio((m - 1) - t * m, t) / rest
        highest = xp.clip(ratio(m * (1 - t), t) / rest, max=1.0)
        between = xp.where(lowest > 0, xp.sqrt(xp.clip(lowest, min=0.0) * highest), 0.8 * highest)
        return xp.where((m == q) | (highest <= lowest), xp.ones_like(m), between)

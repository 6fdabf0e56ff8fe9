"""Whatever passes a bar."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from array_api_compat import array_namespace, device

from contone.exceptions import InputError
from contone.measurements.base import Spoken, is_share
from contone.measurements.intervals import IntervalRule, Others, Region, Support, ratio
from contone.numerics.simplex import log_weight
from contone.typing import Array


@dataclass(frozen=True)
class Threshold(IntervalRule):  # numpydoc ignore=PR02
    """The labels with a degree of more than tau; the largest one where no label reaches it.

    With ``at_least_one=False`` a row keeps no label where none reaches tau: a row of zeros then says that all its
    degrees are at most tau.

    Parameters
    ----------
    tau : float, default=0.1
        The bar, in [0, 1).
    at_least_one : bool, default=True
        Mark the largest label where none reaches the bar.

    Examples
    --------
    >>> Threshold(0.25).apply([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]).tolist()
    [[0, 1, 1], [0, 0, 1]]
    >>> Threshold(0.5, at_least_one=False).apply([[0.2, 0.5, 0.3], [0.2, 0.2, 0.6]]).tolist()
    [[0, 0, 0], [0, 0, 1]]
    """

    tau: float = 0.1
    at_least_one: bool = True
    spoken: ClassVar[dict[str, Spoken]] = {"bar": Spoken("whatever passes a bar", None)}
    parameter: ClassVar[tuple[str, type] | None] = ("threshold", float)
    spread_by_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_share(self.tau):
            raise InputError(f"Threshold: tau must be in [0, 1); got {self.tau!r}.")

    def __repr__(self) -> str:
        return f"Threshold(tau={self.tau!r}{'' if self.at_least_one else ', at_least_one=False'})"

    @property
    def region(self) -> Region | None:
        if type(self) is not Threshold or self.tau == 0:
            return None
        return Region("bar" if self.at_least_one else "any bar", float(self.tau))

    def suited_to(self, Y: Array) -> Threshold:
        """A row of zeros is something that a threshold makes, unless it is told to mark one label at least."""
        return replace(self, at_least_one=False) if bool((Y == 0).all(axis=1).any()) else self

    def in_words(self) -> str:
        return f"{self.spoken['bar'].words} of {100 * self.tau:.3g} % of the weight"

    def _apply(self, D: Array) -> Array:
        xp = array_namespace(D)
        chosen = self.tau < D
        if not self.at_least_one:
            return chosen
        chosen[xp.arange(len(D), device=device(D)), xp.argmax(D, axis=1)] = True
        return chosen

    def interval(self, others: Others, positive: Array) -> tuple[Array, Array]:
        """Every positive degree is more than tau, every negative one at most tau; one positive alone need only lead.

        With the mass T of the other labels, d > tau means w > tau T / (1 - tau); and another label with weight v stays
        above (below) tau as long as w < v / tau - T (w >= v / tau - T).
        """
        xp = array_namespace(others.positive_mass)
        tau, T = self.tau, others.positive_mass + others.negative_mass
        own = log_weight(tau * T / (1 - tau))
        pushes = log_weight(ratio(xp.exp(others.highest_negative), tau) - T)
        single = xp.where(positive, others.n_positive == 0, others.n_positive == 1)
        if not self.at_least_one:
            single = xp.zeros_like(single)
        spared = xp.where(others.n_positive == 0, xp.zeros_like(T), xp.exp(others.lowest_positive))
        unbounded = xp.full_like(T, xp.inf)
        allows = xp.where(single | (others.n_positive == 0), unbounded, log_weight(ratio(spared, tau) - T))
        lower = xp.maximum(pushes, xp.where(single, others.highest_negative, own))
        upper = xp.minimum(own, xp.where(single, others.lowest_positive, allows))
        return xp.where(positive, lower, pushes), xp.where(positive, allows, upper)

    def support(self, n_positive: Array, q: int) -> Support:
        """Positive labels have more than tau, negative ones at most tau; a single positive one may do with leading."""
        xp, tau, m = array_namespace(n_positive), self.tau, n_positive
        zero = xp.zeros_like(m)
        alone = xp.clip(zero + 1.0 - (q - 1) * tau, min=1.0 / q if self.at_least_one else tau)
        lowest = xp.where(m == 1, alone, zero + tau)
        spared = xp.clip(1.0 - m * tau, min=0.0)  # what the other positive labels leave
        empty = xp.where(m == 0, xp.clip(1.0 - (q - 1) * tau + zero, min=0.0), zero)
        exempt = (m == 1) & self.at_least_one
        highest = xp.where(exempt, xp.clip(zero + tau, max=0.5), xp.clip(spared, max=tau))
        return Support(lowest, xp.where(m <= 1, zero + 1.0, spared + tau), empty, highest)

    def cardinality(self, ranked: Array) -> Array:
        xp = array_namespace(ranked)
        return xp.clip(xp.sum(xp.astype(ranked > self.tau, xp.int64), axis=1), min=int(self.at_least_one))

    def negative_share(self, n_positive: Array, q: int) -> Array:
        xp = array_namespace(n_positive)
        m, tau = n_positive, self.tau
        rest = xp.clip(q - m, min=1.0)
        clears = ratio(1 - m * tau, tau) / rest
        fits = tau * m / xp.clip(1 - tau * rest, min=1e-12)
        return 0.5 * xp.clip(xp.minimum(clears, fits), min=1e-6, max=1.0)

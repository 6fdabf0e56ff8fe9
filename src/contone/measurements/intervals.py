"""Rules D -> L that leave an interval to each log degree.

Write a row as d = w / sum(w) with weights w = exp(z). For every rule here, the weights of one label that give back L,
the others held fixed, form an *interval*: each condition is monotone in each weight. Its ends have closed forms in five
numbers about the other labels (`Others`), so that a sampler can walk through the set of all distributions that give L,
one label at a time.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from contone.measurements.base import Measurement
from contone.typing import Array
from contone.validation.containers import default_names
from contone.validation.distributions import check_distributions
from contone.validation.training import examine, judge_labels, silent_rows


class Others(NamedTuple):
    """What an interval needs to know about all labels but one, each an array (n,).

    The log weights z may carry any common shift per row; masses are sums of exp(z).
    """

    positive_mass: Array
    negative_mass: Array
    lowest_positive: Array
    """Smallest log weight among the other positive labels; +inf where there is none."""
    highest_negative: Array
    """Largest log weight among the other negative labels; -inf where there is none."""
    n_positive: Array
    """Number of the other positive labels, as float."""


class Support(NamedTuple):
    """Ends of the degrees that give the labels of a row, each (n,): of its positive and of its negative labels."""

    lowest_positive: Array
    highest_positive: Array
    lowest_negative: Array
    highest_negative: Array


class Region(NamedTuple):
    """A rule for compiled sweeps, which cannot call `interval`: one of four kinds, and its number."""

    kind: str
    """"order": no positive label weighs less than a negative one. "mass": that, and the positive ones are just enough
    for more than `share` of the sum. "bar": positive labels have more than `share` of the sum, others do not, and a
    single positive one need only lead. "any bar": the same without this exception."""
    share: float = 0.0

    @property
    def number(self) -> int:
        """The number of the kind, as compiled code has it."""
        return ("order", "mass", "bar", "any bar").index(self.kind)


class IntervalRule(Measurement):
    """A rule D -> L that leaves an interval to each log degree. Ties go to the label with the lower index."""

    at_least_one: bool = True
    """Whether every row keeps a label; where not, a row of zeros says something about its degrees."""
    spread_by_shape: ClassVar[bool] = False
    """Whether the spread also shows in how often single labels are marked, as it does under a fixed bar."""

    def apply(self, D: Any) -> np.ndarray:
        """Logical labels (n, q), int8 in {0, 1}, of the label distributions D (n, q)."""
        return np.asarray(self._apply(check_distributions(D)), dtype=np.int8)

    @abstractmethod
    def _apply(self, D: Array) -> Array:
        """D (n, q), checked, to a bool matrix (n, q)."""

    def interval(self, others: Others, positive: Array) -> tuple[Array, Array]:
        """Ends (n,), (n,) of the log weights of one label for which the row gives L.

        The other labels are as in `others`; `positive` (n,) says whether L has this label. Inside the interval the row
        gives L, outside it does not; on an end, ties decide. Empty (lower > upper) where no weight will do. Here it is
        what the order says: a positive label weighs at least as much as every negative one.
        """
        xp = array_namespace(others.positive_mass)
        unbounded = xp.full_like(others.positive_mass, xp.inf)
        lower = xp.where(positive, others.highest_negative, -unbounded)
        return lower, xp.where(positive, unbounded, others.lowest_positive)

    @abstractmethod
    def cardinality(self, ranked: Array) -> Array:
        """|L| (n,) of distributions whose rows are sorted from the largest degree down, (n, q)."""

    def negative_share(self, n_positive: Array, q: int) -> Array:
        """A ratio (n,) of every negative to every positive weight that gives back L, where any ratio does."""
        return 0.8 * array_namespace(n_positive).ones_like(n_positive)

    def support(self, n_positive: Array, q: int) -> Support:
        """Between what every row's degrees lie, whatever else is known, by its number of labels (n,) out of q.

        Here no more than the order says: a positive degree is at least as large as every negative one.
        """
        xp, m = array_namespace(n_positive), n_positive
        nothing = xp.zeros_like(m)
        return Support(xp.where(m == 1, nothing + 1.0 / q, nothing), nothing + 1.0, nothing, 1.0 / (m + 1.0))

    @property
    def region(self) -> Region | None:
        """What compiled sweeps know of this rule; None leaves it to the reference sweep, which knows every rule."""
        return None

    def check_labels(self, Y: Array) -> None:
        judge_labels(examine(None, Y), default_names(Y.shape[1]), constant=False, levels=self.takes_numbers)

    def simulate(self, D: Array, rng: np.random.Generator, like: Array | None = None) -> Array:
        L = array_namespace(D).astype(self._apply(D), D.dtype)
        return L if like is None else array_namespace(D).where(like == like, L, like)

    def silent(self, Y: Array) -> Array:
        return silent_rows(Y) if self.at_least_one else super().silent(Y)

    def confine(self, D: Array, L: Array) -> Array:
        """Degrees (n, q) moved to the nearest ones that labels L (n, q) allow, one by one; NaN in L allows all."""
        xp, q = array_namespace(D, L), L.shape[1]
        positive = L > 0
        n_positive = xp.sum(xp.astype(positive, D.dtype), axis=1)
        low, high, low_negative, high_negative = (end[:, None] for end in self.support(n_positive, q))
        nearest = xp.where(positive, xp.clip(D, low, high), xp.clip(D, low_negative, high_negative))
        return xp.where(xp.all(L == L, axis=1)[:, None], nearest, D)

    def agrees(self, D: Array, L: Array) -> Array:
        """Whether labels L (m, q), where they were asked, are those of distributions D (m, q), bool (m,)."""
        return array_namespace(D, L).all((self._apply(D) == (L > 0)) | (L != L), axis=1)

    def start(self, L: Array) -> tuple[Array, Array]:
        """Log weights (n, q) of a distribution that gives L, and where there is none, bool (n,).

        All positive labels weigh 1, all negative ones the `negative_share`. The rule itself decides whether the row is
        possible, so that what can only be had by a tie (as .5/.5 with both labels, t = .5) is found too.
        """
        xp = array_namespace(L)
        positive = L > 0
        precision = L.dtype if xp.isdtype(L.dtype, "real floating") else xp.float64
        share = self.negative_share(xp.sum(xp.astype(positive, precision), axis=1), L.shape[1])
        share = xp.where(xp.any(positive, axis=1), share, xp.ones_like(share))
        W = xp.where(positive, xp.ones_like(share)[:, None], share[:, None])
        same = self._apply(W / xp.sum(W, axis=1, keepdims=True)) == positive
        return xp.log(W), ~xp.all(same, axis=1)


def ratio(a: Array, b: float) -> Array:
    """a / b, with the right infinity for b = 0 (a share or threshold of nothing); 0 / 0 = 0."""
    if b > 0:
        return a / b
    xp = array_namespace(a)
    return xp.where(a > 0, xp.full_like(a, xp.inf), xp.where(a < 0, xp.full_like(a, -xp.inf), xp.zeros_like(a)))


def descending(D: Array) -> tuple[Array, Array]:
    """Column order by falling degree, ties by index, and the degrees in that order."""
    xp = array_namespace(D)
    order = xp.argsort(-D, axis=1, stable=True)
    return order, xp.take_along_axis(D, order, axis=1)


def put_back(order: Array, chosen: Array) -> Array:
    """A choice made in sorted order, back in the order of the labels."""
    xp = array_namespace(order)
    L = xp.empty_like(chosen)
    L[xp.arange(len(order), device=device(order))[:, None], order] = chosen
    return L

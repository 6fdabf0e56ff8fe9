"""D -> L: the forward operators that turn a label distribution into logical labels.

Benchmarks of label enhancement start from known distributions and degrade them; `CumulativeMass(0.5)` is the rule
behind the published logical labels of the field. Annotators follow rules too; `TopK` and `Threshold` model the usual
ones.

The way back needs what L says about D. Write a row as d = w / sum(w) with weights w = exp(z). For every rule here, the
weights of one label that give back L, the others held fixed, form an *interval*: each condition is monotone in each
weight. Its ends have closed forms in five numbers about the other labels (`Others`), so that a sampler can walk
through the set of all distributions that degrade to L one label at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from contone.backends.protocols import Region
from contone.exceptions import InputError
from contone.validation import check_distributions


class Others(NamedTuple):
    """What an interval needs to know about all labels but one, each an array (n,).

    The log weights z may carry any common shift per row; masses are sums of exp(z).
    """

    positive_mass: Any
    negative_mass: Any
    lowest_positive: Any
    """Smallest log weight among the other positive labels; +inf where there is none."""
    highest_negative: Any
    """Largest log weight among the other negative labels; -inf where there is none."""
    n_positive: Any
    """Number of the other positive labels, as float."""

    @classmethod
    def of(cls, Z: Any, L: Any, j: int) -> Others:
        """All labels but the j-th of log weights Z (n, q) with logical labels L (n, q)."""
        xp = array_namespace(Z)
        keep = xp.arange(Z.shape[1]) != j
        positive, negative = (L > 0) & keep, (L <= 0) & keep
        W, zero, far = xp.exp(Z), xp.zeros_like(Z), xp.full_like(Z, xp.inf)
        return cls(
            xp.sum(xp.where(positive, W, zero), axis=1),
            xp.sum(xp.where(negative, W, zero), axis=1),
            xp.min(xp.where(positive, Z, far), axis=1),
            xp.max(xp.where(negative, Z, -far), axis=1),
            xp.sum(xp.astype(positive, Z.dtype), axis=1),
        )


class Degradation(ABC):
    """A rule D -> L. Ties go to the label with the lower index."""

    scale_matters = True
    """Whether |L| tells how uneven D is; not so where only the order of the degrees counts."""
    at_least_one = True
    """Whether every row keeps a label; where not, a row of zeros says something about its degrees."""

    def apply(self, D: Any) -> np.ndarray:
        """Logical labels (n, q), int8 in {0, 1}, of the label distributions D (n, q)."""
        return np.asarray(self._apply(check_distributions(D)), dtype=np.int8)

    @abstractmethod
    def _apply(self, D: Any) -> Any:
        """D (n, q), checked, to a bool matrix (n, q)."""

    @abstractmethod
    def interval(self, others: Others, positive: Any) -> tuple[Any, Any]:
        """Ends (n,), (n,) of the log weights of one label for which the row degrades to L.

        The other labels are as in `others`; `positive` (n,) says whether L has this label. Inside the interval the row
        degrades to L, outside it does not; on an end, ties decide. Empty (lower > upper) where no weight will do.
        """

    @abstractmethod
    def cardinality(self, ranked: Any) -> Any:
        """|L| (n,) of distributions whose rows are sorted from the largest degree down, (n, q)."""

    @abstractmethod
    def negative_share(self, n_positive: Any, q: int) -> Any:
        """A ratio (n,) of every negative to every positive weight that gives back L, where any ratio does."""

    def agrees(self, D: Any, L: Any) -> Any:
        """Whether labels L (m, q), where they were asked, are those of distributions D (m, q), bool (m,)."""
        xp = array_namespace(D, L)
        return xp.all((self._apply(D) == (L > 0)) | (L != L), axis=1)

    def start(self, L: Any) -> tuple[Any, Any]:
        """Log weights (n, q) of a distribution that degrades to L, and where there is none, bool (n,).

        All positive labels weigh 1, all negative ones the `negative_share`. The rule itself decides whether the row is
        possible, so that what can only be had by a tie (as .5/.5 with both labels, t = .5) is found too.
        """
        xp = array_namespace(L)
        positive = L > 0
        precision = L.dtype if xp.isdtype(L.dtype, "real floating") else xp.float64
        share = self.negative_share(xp.sum(xp.astype(positive, precision), axis=1), L.shape[1])
        W = xp.where(positive, xp.ones_like(share)[:, None], share[:, None])
        same = self._apply(W / xp.sum(W, axis=1, keepdims=True)) == positive
        return xp.log(W), ~xp.all(same, axis=1)


@dataclass(frozen=True)
class CumulativeMass(Degradation):  # numpydoc ignore=PR02
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

    def __post_init__(self) -> None:
        if not _is_share(self.t):
            raise InputError(f"CumulativeMass: t must be in [0, 1); got {self.t!r}.")

    def _apply(self, D: Any) -> Any:
        xp = array_namespace(D)
        order, ranked = _descending(D)
        # A label is needed as long as those before it have not yet passed t.
        needed = xp.ones_like(D, dtype=xp.bool)
        needed[:, 1:] = xp.cumulative_sum(ranked, axis=1)[:, :-1] <= self.t
        return _scatter(order, needed)

    def interval(self, others: Others, positive: Any) -> tuple[Any, Any]:
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
        least = xp.maximum(t * N / (1 - t) - P, _ratio((1 - t) * P - t * N, t))
        most = xp.where(alone, xp.full_like(P, xp.inf), (t * N + smallest) / (1 - t) - P)
        lower_positive = xp.maximum(_log(least), others.highest_negative)
        # As a negative label, w: t (N + w) < (1 - t) P, and t (N + w) >= (1 - t) P - smallest.
        lower_negative = _log(_ratio((1 - t) * P - smallest, t) - N)
        upper_negative = xp.minimum(_log(_ratio((1 - t) * P, t) - N), others.lowest_positive)
        return xp.where(positive, lower_positive, lower_negative), xp.where(positive, _log(most), upper_negative)

    def cardinality(self, ranked: Any) -> Any:
        xp = array_namespace(ranked)
        # Label by label: columns are long, and NumPy's running sums along short rows slow.
        mass = xp.zeros_like(ranked[:, 0])
        size = xp.ones_like(mass, dtype=xp.int64)
        for j in range(ranked.shape[1] - 1):
            mass = mass + ranked[:, j]
            size += xp.astype(mass <= self.t, xp.int64)
        return size

    def negative_share(self, n_positive: Any, q: int) -> Any:
        xp = array_namespace(n_positive)
        m, t = n_positive, self.t
        rest = xp.clip(q - m, min=1.0)
        lowest = _ratio((m - 1) - t * m, t) / rest
        highest = xp.clip(_ratio(m * (1 - t), t) / rest, max=1.0)
        between = xp.where(lowest > 0, xp.sqrt(xp.clip(lowest, min=0.0) * highest), 0.8 * highest)
        return xp.where((m == q) | (highest <= lowest), xp.ones_like(m), between)


@dataclass(frozen=True)
class TopK(Degradation):  # numpydoc ignore=PR02
    """The k labels with the largest degrees.

    Parameters
    ----------
    k : int, default=1
        How many.

    Examples
    --------
    >>> TopK(2).apply([[0.2, 0.5, 0.3]]).tolist()
    [[0, 1, 1]]
    """

    k: int = 1
    scale_matters = False

    def __post_init__(self) -> None:
        if not isinstance(self.k, Integral) or isinstance(self.k, bool) or self.k < 1:
            raise InputError(f"TopK: k must be a positive whole number; got {self.k!r}.")

    def _apply(self, D: Any) -> Any:
        chosen = array_namespace(D).zeros_like(D, dtype=array_namespace(D).bool)
        chosen[:, : self.k] = True
        return _scatter(_descending(D)[0], chosen)

    def interval(self, others: Others, positive: Any) -> tuple[Any, Any]:
        """Order alone: a positive label weighs at least as much as every negative one. It holds for any |L|."""
        xp = array_namespace(others.positive_mass)
        unbounded = xp.full_like(others.positive_mass, xp.inf)
        lower = xp.where(positive, others.highest_negative, -unbounded)
        return lower, xp.where(positive, unbounded, others.lowest_positive)

    def cardinality(self, ranked: Any) -> Any:
        xp = array_namespace(ranked)
        return xp.full((ranked.shape[0],), min(self.k, ranked.shape[1]), dtype=xp.int64)

    def negative_share(self, n_positive: Any, q: int) -> Any:
        return 0.8 * array_namespace(n_positive).ones_like(n_positive)


@dataclass(frozen=True)
class Order(Degradation):
    """Larger numbers, degrees at least as large, no more: rankings, levels such as 0 to 3, and plain 0 and 1.

    L holds whole numbers, of which only the order within a row counts; ties leave open which degree is the larger. It
    leads back from labels only: `apply` would have to know how many levels to tell apart (`TopK` makes two).

    Examples
    --------
    >>> Order().agrees(np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]]), np.array([[1, 3, 1], [2, 1, 0]])).tolist()
    [True, False]
    """

    scale_matters = False

    def _apply(self, D: Any) -> Any:
        raise InputError("Order does not say how many labels a row has, so it makes none from degrees: use TopK(k).")

    def agrees(self, D: Any, L: Any) -> Any:
        xp = array_namespace(D, L)
        swapped = [xp.any((L[:, j : j + 1] > L) & (D[:, j : j + 1] < D), axis=1) for j in range(D.shape[1])]
        return ~xp.any(xp.stack(swapped), axis=0)

    def interval(self, others: Others, positive: Any) -> tuple[Any, Any]:
        """For two levels; `level_interval` has any number of them."""
        return TopK().interval(others, positive)

    def level_interval(self, Z: Any, levels: Any, j: int) -> tuple[Any, Any]:
        """Ends (n,), (n,) for label j between labels of lower and of higher levels; Z and levels are (q, n).

        A level that is NaN bounds nothing and is bounded by nothing.
        """
        xp = array_namespace(Z)
        far, own = xp.full_like(Z, xp.inf), levels[j, :]
        return xp.max(xp.where(levels < own, Z, -far), axis=0), xp.min(xp.where(levels > own, Z, far), axis=0)

    def cardinality(self, ranked: Any) -> Any:
        raise InputError("Order does not say how many labels a row has.")

    def negative_share(self, n_positive: Any, q: int) -> Any:
        return TopK().negative_share(n_positive, q)

    def start(self, L: Any) -> tuple[Any, Any]:
        xp = array_namespace(L)
        impossible = xp.zeros_like(L[:, 0], dtype=xp.bool)
        if not has_levels(L):
            return TopK().start(L)[0], impossible
        q = L.shape[1]
        below = [xp.sum(xp.astype(L[:, j : j + 1] > L, xp.float64), axis=1) for j in range(q)]
        return xp.astype(xp.stack(below, axis=1), L.dtype) / q, impossible


def has_levels(L: Any) -> bool:
    """Whether labels L (n, q) hold anything but 0 and 1."""
    return bool(array_namespace(L).any((L != 0) & (L != 1)))


@dataclass(frozen=True)
class Threshold(Degradation):  # numpydoc ignore=PR02
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

    def __post_init__(self) -> None:
        if not _is_share(self.tau):
            raise InputError(f"Threshold: tau must be in [0, 1); got {self.tau!r}.")

    def __repr__(self) -> str:
        return f"Threshold(tau={self.tau!r}{'' if self.at_least_one else ', at_least_one=False'})"

    def _apply(self, D: Any) -> Any:
        xp = array_namespace(D)
        chosen = self.tau < D
        if not self.at_least_one:
            return chosen
        chosen[xp.arange(len(D), device=device(D)), xp.argmax(D, axis=1)] = True
        return chosen

    def interval(self, others: Others, positive: Any) -> tuple[Any, Any]:
        """Every positive degree is more than tau, every negative one at most tau; one positive alone need only lead.

        With the mass T of the other labels, d > tau means w > tau T / (1 - tau); and another label with weight v stays
        above (below) tau as long as w < v / tau - T (w >= v / tau - T).
        """
        xp = array_namespace(others.positive_mass)
        tau, T = self.tau, others.positive_mass + others.negative_mass
        own = _log(tau * T / (1 - tau))
        pushes = _log(_ratio(xp.exp(others.highest_negative), tau) - T)
        single = xp.where(positive, others.n_positive == 0, others.n_positive == 1)
        if not self.at_least_one:
            single = xp.zeros_like(single)
        spared = xp.where(others.n_positive == 0, xp.zeros_like(T), xp.exp(others.lowest_positive))
        unbounded = xp.full_like(T, xp.inf)
        allows = xp.where(single | (others.n_positive == 0), unbounded, _log(_ratio(spared, tau) - T))
        lower = xp.maximum(pushes, xp.where(single, others.highest_negative, own))
        upper = xp.minimum(own, xp.where(single, others.lowest_positive, allows))
        return xp.where(positive, lower, pushes), xp.where(positive, allows, upper)

    def cardinality(self, ranked: Any) -> Any:
        xp = array_namespace(ranked)
        return xp.clip(xp.sum(xp.astype(ranked > self.tau, xp.int64), axis=1), min=int(self.at_least_one))

    def negative_share(self, n_positive: Any, q: int) -> Any:
        xp = array_namespace(n_positive)
        m, tau = n_positive, self.tau
        rest = xp.clip(q - m, min=1.0)
        clears = _ratio(1 - m * tau, tau) / rest
        fits = xp.where(tau * rest < 1, tau * m / xp.clip(1 - tau * rest, min=1e-12), xp.ones_like(m))
        return 0.5 * xp.clip(xp.minimum(clears, fits), min=1e-6, max=1.0)


def region_of(rule: Degradation) -> Region | None:
    """The rule in the words of the backends; None for a rule of somebody else."""
    if type(rule) in (TopK, Order):
        return Region("order")
    if type(rule) is CumulativeMass:
        return Region("mass", float(rule.t))
    if type(rule) is Threshold:
        return Region("bar" if rule.at_least_one else "any bar", float(rule.tau))
    return None


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < 1


def _log(w: Any) -> Any:
    """log(w), and -inf for weights that are not positive."""
    xp = array_namespace(w)
    tiny = xp.full_like(w, xp.finfo(w.dtype).smallest_normal)
    return xp.where(w > 0, xp.log(xp.maximum(w, tiny)), xp.full_like(w, -xp.inf))


def _ratio(a: Any, b: float) -> Any:
    """a / b, with the right infinity for b = 0 (a share or threshold of nothing); 0 / 0 = 0."""
    if b > 0:
        return a / b
    xp = array_namespace(a)
    return xp.where(a > 0, xp.full_like(a, xp.inf), xp.where(a < 0, xp.full_like(a, -xp.inf), xp.zeros_like(a)))


def _descending(D: Any) -> tuple[Any, Any]:
    """Column order by falling degree, ties by index, and the degrees in that order."""
    xp = array_namespace(D)
    order = xp.argsort(-D, axis=1, stable=True)
    return order, xp.take_along_axis(D, order, axis=1)


def _scatter(order: Any, chosen: Any) -> Any:
    """A choice made in sorted order, back in the order of the labels."""
    xp = array_namespace(order)
    L = xp.empty_like(chosen)
    L[xp.arange(len(order), device=device(order))[:, None], order] = chosen
    return L

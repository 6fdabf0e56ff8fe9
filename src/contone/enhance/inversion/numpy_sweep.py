"""The sweep of `sampler` for NumPy arrays, in steps whose cost does not grow with the number of labels.

The distribution that is sampled is the same. What differs is the bookkeeping:

- what a rule asks of the other labels is a *balance*, a sum of weights with fixed coefficients, kept up to date, and
  the lowest positive and highest negative weight: those of labels not yet visited are found once for all labels, those
  of labels visited already run along. A step then takes O(n) operations, where `sampler.Weights` takes O(n q);
- Sigma^-1 (z - m) is worked out for `BLOCK` labels at a time, by one matrix product, and corrected for the labels of
  the block that have moved since;
- intervals are worked out for weights, so that two logarithms per label are all it takes;
- from `MANY_ROWS` rows on, log weights and draws are in single precision (`backends.numpy.normal`), which is far finer
  than what a sample tells. Balances stay in double precision: rows keep to their labels exactly;
- rows in pieces, side by side on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from contone.backends.numpy.normal import reflected_normal, truncated_normal
from contone.degrade import CumulativeMass, Degradation, Order, Threshold, TopK
from contone.enhance.inversion.covariance import FactorPrecision, Precision
from contone.runtime.threads import for_each
from contone.typing import Array

BLOCK = 32
"""Labels whose gradients are worked out together."""
MANY_ROWS = 1200
"""Rows from which on single precision is faster; with fewer, calls are what takes the time."""
PIECE_ROWS = 8192
"""At most how many rows one thread works on at a time."""
LOWEST = -60.0
"""As `sampler.LOWEST`."""
MARGIN = {8: 1e-9, 4: 1e-5}
"""How far draws stay clear of the ends of their interval, by bytes a number."""

Ends = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]
"""(balance, lowest positive, highest negative, number of positive labels) of the others, own label -> weights between
which the row keeps its labels; not positive where there is no lower end."""


def can_sweep(rule: Degradation) -> bool:
    """Whether the ends for this rule are written out here."""
    return type(rule) in (TopK, Order, Threshold) or (type(rule) is CumulativeMass and rule.t > 0)


def precision_for(n: int) -> Any:
    """The kind of numbers for n rows."""
    return np.dtype(np.float32 if n >= MANY_ROWS else np.float64)


def balance_of(rule: Degradation, positive: Array) -> Array | float:
    """Coefficients of the weights in the balance of a rule."""
    if isinstance(rule, CumulativeMass):
        return np.subtract(positive, rule.t, dtype=np.float64)  # (1 - t) of the positive, -t of the negative mass
    return 1.0


def ends_of(rule: Degradation) -> Ends:
    """The ends of a rule: `rule.interval` for weights in place of log weights."""
    if isinstance(rule, CumulativeMass):
        return _cumulative_ends(rule.t)
    if isinstance(rule, Threshold):
        return _threshold_ends(rule.tau, getattr(rule, "at_least_one", True))
    return _order_ends


def _order_ends(balance: Array, lowest: Array, highest: Array, others: Array, positive: Array) -> tuple[Array, Array]:
    return np.where(positive, highest, 0.0), np.where(positive, np.inf, lowest)


def _cumulative_ends(t: float) -> Ends:
    rest = 1.0 - t

    def ends(A: Array, lowest: Array, highest: Array, others: Array, positive: Array) -> tuple[Array, Array]:
        over = A / t
        lower = np.maximum(A / -rest, over)
        np.maximum(lower, highest, out=lower)
        spare = lowest - A
        return np.where(positive, lower, spare / -t), np.where(positive, spare / rest, np.minimum(over, lowest))

    return ends


def _threshold_ends(tau: float, at_least_one: bool) -> Ends:
    def ends(T: Array, lowest: Array, highest: Array, others: Array, positive: Array) -> tuple[Array, Array]:
        own = T * (tau / (1.0 - tau))
        pushes = highest / tau - T
        single = (others == np.where(positive, 0, 1)) & at_least_one
        allows = np.where(single | (others == 0), np.inf, lowest / tau - T)
        lower = np.maximum(pushes, np.where(single, highest, own))
        upper = np.minimum(own, np.where(single, lowest, allows))
        return np.where(positive, lower, pushes), np.where(positive, allows, upper)

    return ends


def sweep(
    Z: Array,
    positive: Array,
    relaxed: Array | None,
    mean: Array,
    precision: Precision,
    rule: Degradation,
    u: Array,
    shift: Array,
    *,
    reflect: bool,
    root_weights: Array | None,
) -> Array:
    """One Gibbs sweep over the q labels of all n rows; the parameters are those of `sampler.sweep`.

    `relaxed` (n,) says which rows keep to the order of marked and unmarked labels only.
    """
    found = np.empty_like(Z)
    P = _Factors(precision, Z.dtype) if isinstance(precision, FactorPrecision) else _Full(precision, Z.dtype)

    def of_piece(rows: slice) -> None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            found[:, rows] = _sweep_piece(
                Z[:, rows],
                positive[:, rows],
                None if relaxed is None else relaxed[rows],
                mean[:, rows],
                P,
                rule,
                u[:, rows],
                shift[rows],
                reflect,
                None if root_weights is None else root_weights[rows],
            )

    for_each(of_piece, pieces_of(Z.shape[1]))
    return found


def pieces_of(n: int) -> Sequence[slice]:
    """n rows in pieces of equal size, at least two where single precision pays for each of them."""
    count = max(-(-n // PIECE_ROWS), min(2, n // (2 * MANY_ROWS)), 1)
    edges = np.linspace(0, n, count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


class _Full:
    """Sigma^-1 (q, q) in the kind of numbers of a sweep, and what a sweep asks of it."""

    def __init__(self, matrix: np.ndarray, dtype: Any) -> None:
        along = matrix.sum(axis=0)
        self.total = float(along.sum())
        self.along, self.matrix = along.astype(dtype), np.asarray(matrix, dtype=dtype)
        self.variances = (1.0 / np.diag(matrix)).tolist()

    def begin(self, residual: Array) -> Array | None:
        """What is kept of the residuals r (q, n) of all labels, up to date with `follow`."""
        return None

    def gradient(self, labels: slice, residual: Array, kept: Array | None) -> Array:
        """(Sigma^-1 r) of some labels."""
        return self.matrix[labels] @ residual

    def within(self, labels: slice) -> Array:
        """Sigma^-1 of some labels among themselves."""
        return self.matrix[labels, labels]

    def follow(self, labels: slice, moved: Array, kept: Array | None) -> None:
        """The residuals of some labels have changed."""


class _Factors:
    """The same for diag(own) - shared^T shared: `shared` r is kept up to date."""

    def __init__(self, precision: FactorPrecision, dtype: Any) -> None:
        along = precision.along()
        self.total, self.along = float(along.sum()), along.astype(dtype)
        self.own, self.shared = precision.own.astype(dtype), precision.shared.astype(dtype)
        self.variances = (1.0 / precision.diagonal()).tolist()

    def begin(self, residual: Array) -> Array | None:
        return self.shared @ residual

    def gradient(self, labels: slice, residual: Array, kept: Array | None) -> Array:
        return self.own[labels, None] * residual[labels] - self.shared[:, labels].T @ kept

    def within(self, labels: slice) -> Array:
        return np.diag(self.own[labels]) - self.shared[:, labels].T @ self.shared[:, labels]

    def follow(self, labels: slice, moved: Array, kept: Array | None) -> None:
        assert kept is not None
        kept += self.shared[:, labels] @ moved


def _sweep_piece(
    Z: Array,
    positive: Array,
    relaxed: Array | None,
    mean: Array,
    precision: _Full | _Factors,
    rule: Degradation,
    u: Array,
    shift: Array,
    reflect: bool,
    root_weights: Array | None,
) -> Array:
    q, n = Z.shape
    margin, tiny, infinite = MARGIN[Z.itemsize], np.finfo(Z.dtype).tiny, Z.dtype.type(np.inf)
    Z = Z - Z.max(axis=0)
    residual = Z - mean
    narrowed = precision.total**0.5 if root_weights is None else precision.total**0.5 * root_weights
    residual += shift / narrowed - (precision.along @ residual) / precision.total
    kept = precision.begin(residual)
    W = np.exp(Z)
    coefficients, ends_for = balance_of(rule, positive), ends_of(rule)
    shares = (W * coefficients).astype(np.float64, copy=False)
    balance = shares.sum(axis=0)
    count = positive.sum(axis=0) if isinstance(rule, Threshold) else None
    lowest, highest = _extremes_ahead(W, positive)
    low, high = np.full(n, infinite), np.zeros_like(Z[0])  # of the labels visited already
    ends = np.empty((2, n), dtype=Z.dtype)
    for start in range(0, q, BLOCK):
        labels = slice(start, min(start + BLOCK, q))
        gradients, within = precision.gradient(labels, residual, kept), precision.within(labels)
        moved = np.empty_like(gradients)
        for i, j in enumerate(range(labels.start, labels.stop)):
            own, old, variance = positive[j], Z[j], precision.variances[j]
            balance -= shares[j]
            least, most = np.minimum(low, lowest[j]), np.maximum(high, highest[j])
            others = None if count is None else count - own
            ends[0], ends[1] = ends_for(balance, least, most, others, own)
            if relaxed is not None:
                ends[0, relaxed], ends[1, relaxed] = (
                    end[relaxed] for end in _order_ends(balance, least, most, others, own)
                )
            np.maximum(ends, tiny, out=ends)
            np.log(ends, out=ends)
            ends[0] += margin
            ends[1] -= margin
            np.maximum(ends[0], LOWEST, out=ends[0])
            closed = ends[1] <= ends[0]  # no room: stays where it is
            if closed.any():
                ends[:, closed] = old[closed]
            gradient = gradients[i]
            if i:
                gradient += within[i, :i] @ moved[:i]
            gradient *= -variance
            centre = np.add(gradient, old, out=gradient)
            scale = variance**0.5 if root_weights is None else variance**0.5 / root_weights
            scaled = (ends - centre) / scale
            x = reflected_normal(scaled, (old - centre) / scale, u[j]) if reflect else truncated_normal(scaled, u[j])
            x *= scale
            x += centre
            np.maximum(x, ends[0], out=x)
            np.minimum(x, ends[1], out=x)
            np.subtract(x, old, out=moved[i])
            Z[j] = x
            w = np.exp(x, out=x)
            np.multiply(w, coefficients if isinstance(coefficients, float) else coefficients[j], out=shares[j])
            balance += shares[j]
            np.minimum(low, np.where(own, w, infinite), out=low)
            np.maximum(high, np.where(own, -infinite, w), out=high)
        residual[labels] += moved
        precision.follow(labels, moved, kept)
    return Z


def _extremes_ahead(W: Array, positive: Array) -> tuple[Array, Array]:
    """Lowest positive and highest negative weight (q, n) among the labels after each one; infinite and 0 for none."""
    lowest, highest = np.empty_like(W), np.empty_like(W)
    lowest[-1], highest[-1] = np.inf, 0.0
    up, down = np.where(positive, W, W.dtype.type(np.inf)), np.where(positive, W.dtype.type(0.0), W)
    for j in range(len(W) - 2, -1, -1):
        np.minimum(lowest[j + 1], up[j + 1], out=lowest[j])
        np.maximum(highest[j + 1], down[j + 1], out=highest[j])
    return lowest, highest

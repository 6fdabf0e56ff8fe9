"""The sweep of `gibbs` for NumPy arrays, in steps whose cost does not grow with the number of labels.

The distribution that is sampled is the same. What differs is the bookkeeping:

- what a rule asks of the other labels is a *balance*, a sum of weights with fixed coefficients, kept up to date, and
  the lowest positive and highest negative weight: those of labels not yet visited are found once for all labels, those
  of labels visited already run along. A step then takes O(n) operations, where `gibbs.Weights` takes O(n q);
- Sigma^-1 (z - m) is worked out for `BLOCK` labels at a time, by one matrix product, and corrected for the labels of
  the block that have moved since;
- intervals are worked out for weights, so that two logarithms per label are all it takes;
- from `MANY_ROWS` rows on, log weights and draws are in single precision (`backends.numpy.normal`) where labels are
  many or parameters known, which is far finer than what a sample tells. Balances stay in double precision: rows keep
  to their labels exactly;
- choices between two numbers are made by bits (`marks_of`), and every step writes over the memory of the last one;
- rows in pieces, side by side on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from contone.backends.numpy.normal import WHOLE, bits, reflected_normal, truncated_normal
from contone.enhance.inversion.covariance import FactorPrecision, Precision
from contone.measurements import CumulativeMass, IntervalRule, Order, Threshold, TopK
from contone.runtime.threads import for_each
from contone.typing import Array

BLOCK = 32
"""Labels whose gradients are worked out together."""
MANY_ROWS = 1200
"""Rows from which on single precision is faster; with fewer, calls are what takes the time."""
PIECE_ROWS = 8192
"""At most how many rows one thread works on at a time."""
LOWEST = -60.0
"""As `gibbs.LOWEST`."""
INFINITE = {size: np.array(np.inf, dtype=f"f{size}").view(kind) for size, kind in WHOLE.items()}
"""The bits of infinity."""
MARGIN = {8: 1e-9, 4: 1e-5}
"""How far draws stay clear of the ends of their interval, by bytes a number."""


def can_sweep(rule: IntervalRule) -> bool:
    """Whether the ends for this rule are written out here."""
    if type(rule) is CumulativeMass:
        return rule.t > 0
    return type(rule) in (TopK, Order) or (type(rule) is Threshold and rule.tau > 0)


def precision_for(n: int) -> Any:
    """The kind of numbers for n rows."""
    return np.dtype(np.float32 if n >= MANY_ROWS else np.float64)


def marks_of(positive: Array, dtype: Any) -> Array:
    """Whole numbers as wide as those of a kind: all bits set where a label is positive, none where it is not.

    A choice between two numbers by such marks takes a tenth of the time of `np.where`.
    """
    marks = positive.astype(WHOLE[np.dtype(dtype).itemsize])
    return np.negative(marks, out=marks)


def balance_of(rule: IntervalRule, positive: Array) -> Array:
    """Coefficients (q, n) of the weights in the balance of a rule."""
    if isinstance(rule, CumulativeMass):
        return np.subtract(positive, rule.t, dtype=np.float64)  # (1 - t) of the positive, -t of the negative mass
    return np.ones(positive.shape)


def infinite_where(marks: Array, dtype: Any) -> Array:
    """Infinite numbers where a mark is set, 0 elsewhere."""
    return (marks & INFINITE[marks.itemsize]).view(dtype)


class Own(NamedTuple):
    """The label of a step: its coefficients in the balance, its marks, and its highest weights, each (n,)."""

    coefficient: Array
    mark: Array
    highest: Array
    """Infinite where the label is positive, 0 where it is not."""


class Ends:
    """Weights between which a label keeps the labels of its row: `rule.interval` for weights in place of log weights.

    Here for rules of which the order is all that counts. What is worked out is in `lower` and `upper` (n,), which the
    next call writes over; the lower end is not positive where there is no such end.
    """

    def __init__(self, n: int, dtype: Any) -> None:
        self.both = np.empty((2, n), dtype=dtype)
        self.lower, self.upper = self.both
        self.lower_bits, self.upper_bits = bits(self.both)

    def __call__(self, balance: Array, lowest: Array, highest: Array, others: Array | None, own: Own) -> None:
        """From the balance, the lowest positive and the highest negative weight and the number of positive labels
        among the others: above the highest negative weight, or below the lowest positive one."""
        np.bitwise_and(bits(highest), own.mark, out=self.lower_bits)
        np.maximum(lowest, own.highest, out=self.upper)


class _CumulativeEnds(Ends):
    """Of a positive weight max(-A / (1 - t), A / t, highest) and (lowest - A) / (1 - t), with the balance A; of a
    negative weight (A - lowest) / t and min(A / t, lowest).

    With the coefficient c of the label, 1 - t or -t, -A / c and (lowest - A) / c are among the ends in both cases.
    """

    def __init__(self, t: float, n: int, dtype: Any) -> None:
        super().__init__(n, dtype)
        self.t, self.room = np.array(t), np.empty(n)
        work = np.empty((3, n), dtype=dtype)
        self.balanced, self.spare, self.over = work
        self.balanced_bits, self.spare_bits, self.over_bits = bits(work)
        self.swapped = np.empty_like(self.over_bits)

    def __call__(self, balance: Array, lowest: Array, highest: Array, others: Array | None, own: Own) -> None:
        np.divide(balance, own.coefficient, out=self.balanced)
        np.negative(self.balanced, out=self.balanced)
        np.subtract(lowest, balance, out=self.room)  # in double precision: the two may be alike
        np.divide(self.room, own.coefficient, out=self.spare)
        np.divide(balance, self.t, out=self.over)
        np.maximum(self.over, highest, out=self.over)
        np.bitwise_and(self.over_bits, own.mark, out=self.over_bits)
        np.maximum(self.balanced, self.over, out=self.balanced)
        np.maximum(lowest, own.highest, out=self.over)
        np.minimum(self.balanced, self.over, out=self.balanced)
        # The lower end is the first of the two where the label is positive, and the second where it is not.
        np.bitwise_xor(self.balanced_bits, self.spare_bits, out=self.swapped)
        np.bitwise_and(self.swapped, own.mark, out=self.swapped)
        np.bitwise_xor(self.spare_bits, self.swapped, out=self.lower_bits)
        np.bitwise_xor(self.balanced_bits, self.swapped, out=self.upper_bits)


class _ThresholdEnds(Ends):
    def __init__(self, tau: float, at_least_one: bool, n: int, dtype: Any) -> None:
        super().__init__(n, dtype)
        self.tau, self.at_least_one = tau, at_least_one

    def __call__(self, balance: Array, lowest: Array, highest: Array, others: Array | None, own: Own) -> None:
        positive, share = own.mark != 0, balance * (self.tau / (1.0 - self.tau))
        pushes = highest / self.tau - balance
        single = (others == np.where(positive, 0, 1)) & self.at_least_one
        allows = np.where(single | (others == 0), np.inf, lowest / self.tau - balance)
        lower = np.maximum(pushes, np.where(single, highest, share))
        upper = np.minimum(share, np.where(single, lowest, allows))
        self.lower[:], self.upper[:] = np.where(positive, lower, pushes), np.where(positive, allows, upper)


def ends_of(rule: IntervalRule, n: int, dtype: Any) -> Ends:
    """The ends of a rule, for n rows."""
    if isinstance(rule, CumulativeMass):
        return _CumulativeEnds(rule.t, n, dtype)
    if isinstance(rule, Threshold):
        return _ThresholdEnds(rule.tau, getattr(rule, "at_least_one", True), n, dtype)
    return Ends(n, dtype)


def sweep(
    Z: Array,
    positive: Array,
    relaxed: Array | None,
    mean: Array,
    precision: Precision,
    rule: IntervalRule,
    u: Array,
    shift: Array,
    *,
    reflect: bool,
    root_weights: Array | None,
) -> Array:
    """One Gibbs sweep over the q labels of all n rows; the parameters are those of `gibbs.sweep`.

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


def _widths(diagonal: np.ndarray, dtype: Any) -> tuple[list[np.ndarray], ...]:
    """Minus the variance, the standard deviation and its inverse of each label given the others.

    As arrays without a dimension, which NumPy need not convert.
    """
    return tuple(
        [np.array(v, dtype=dtype) for v in values] for values in (-1 / diagonal, diagonal**-0.5, diagonal**0.5)
    )


class _Full:
    """Sigma^-1 (q, q) in the kind of numbers of a sweep, and what a sweep asks of it."""

    def __init__(self, matrix: np.ndarray, dtype: Any) -> None:
        along = matrix.sum(axis=0)
        self.total = float(along.sum())
        self.along, self.matrix = along.astype(dtype), np.asarray(matrix, dtype=dtype)
        self.minus_variances, self.scales, self.narrows = _widths(np.diag(matrix), dtype)

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
        self.minus_variances, self.scales, self.narrows = _widths(precision.diagonal(), dtype)

    def begin(self, residual: Array) -> Array | None:
        return self.shared @ residual

    def gradient(self, labels: slice, residual: Array, kept: Array | None) -> Array:
        return self.own[labels, None] * residual[labels] - self.shared[:, labels].T @ kept

    def within(self, labels: slice) -> Array:
        return np.diag(self.own[labels]) - self.shared[:, labels].T @ self.shared[:, labels]

    def follow(self, labels: slice, moved: Array, kept: Array | None) -> None:
        assert kept is not None
        kept += self.shared[:, labels] @ moved


class _Others:
    """What a step asks of the labels other than its own, kept up to date one label at a time.

    Log weights Z (q, n), labels (q, n).
    """

    def __init__(self, Z: Array, positive: Array, rule: IntervalRule) -> None:
        dtype, W = Z.dtype, np.exp(Z)
        self.marks, self.coefficients = marks_of(positive, dtype), balance_of(rule, positive)
        self.unmarked = np.invert(self.marks)
        self.highest_own, self.no_lowest = infinite_where(self.marks, dtype), infinite_where(self.unmarked, dtype)
        self.shares = W * self.coefficients
        self.balance = self.shares.sum(axis=0)
        self.low, self.high = np.full_like(W[0], np.inf), np.zeros_like(W[0])  # of the labels visited already
        self.work = np.empty_like(W[0])
        self.work_bits = bits(self.work)
        self._look_ahead(W)

    def _look_ahead(self, W: Array) -> None:
        """Lowest positive and highest negative weight (q, n) of the labels after each one; infinite and 0 for none."""
        self.lowest, self.highest = np.empty_like(W), np.empty_like(W)
        self.lowest[-1], self.highest[-1] = np.inf, 0.0
        up, down = np.maximum(W, self.no_lowest), (bits(W) & self.unmarked).view(W.dtype)
        for j in range(len(W) - 2, -1, -1):
            np.minimum(self.lowest[j + 1], up[j + 1], out=self.lowest[j])
            np.maximum(self.highest[j + 1], down[j + 1], out=self.highest[j])

    def own(self, j: int) -> Own:
        """Label j."""
        return Own(self.coefficients[j], self.marks[j], self.highest_own[j])

    def without(self, j: int) -> tuple[Array, Array, Array]:
        """Balance (n,), lowest positive and highest negative weight without label j."""
        lowest, highest = self.lowest[j], self.highest[j]
        np.subtract(self.balance, self.shares[j], out=self.balance)
        return self.balance, np.minimum(lowest, self.low, out=lowest), np.maximum(highest, self.high, out=highest)

    def put(self, j: int, w: Array) -> None:
        """Give label j the weights w (n,), after `without(j)`."""
        share = np.multiply(w, self.coefficients[j], out=self.shares[j])
        np.add(self.balance, share, out=self.balance)
        np.maximum(w, self.no_lowest[j], out=self.work)
        np.minimum(self.low, self.work, out=self.low)
        np.bitwise_and(bits(w), self.unmarked[j], out=self.work_bits)
        np.maximum(self.high, self.work, out=self.high)


def _sweep_piece(
    Z: Array,
    positive: Array,
    relaxed: Array | None,
    mean: Array,
    precision: _Full | _Factors,
    rule: IntervalRule,
    u: Array,
    shift: Array,
    reflect: bool,
    root_weights: Array | None,
) -> Array:
    (q, n), dtype = Z.shape, Z.dtype
    margin, least, tiny = (np.array(v, dtype=dtype) for v in (MARGIN[Z.itemsize], np.exp(LOWEST), np.finfo(dtype).tiny))
    Z = Z - Z.max(axis=0)
    residual = Z - mean
    narrowed = precision.total**0.5 if root_weights is None else precision.total**0.5 * root_weights
    residual += shift / narrowed - (precision.along @ residual) / precision.total
    kept = precision.begin(residual)
    others, ends = _Others(Z, positive, rule), ends_of(rule, n, dtype)
    ordered = Ends(n, dtype) if relaxed is not None else None
    count = positive.sum(axis=0) if isinstance(rule, Threshold) else None
    scaled, x = np.empty_like(ends.both), np.empty(n, dtype=dtype)
    from_lower, from_upper = scaled
    for start in range(0, q, BLOCK):
        labels = slice(start, min(start + BLOCK, q))
        gradients, within = precision.gradient(labels, residual, kept), precision.within(labels)
        moved = np.empty_like(gradients)
        for i, j in enumerate(range(labels.start, labels.stop)):
            old, asked, own = Z[j], others.without(j), others.own(j)
            n_others = None if count is None else count - positive[j]
            ends(*asked, n_others, own)
            if ordered is not None:
                ordered(*asked, n_others, own)
                ends.both[:, relaxed] = ordered.both[:, relaxed]
            np.maximum(ends.lower, least, out=ends.lower)
            np.maximum(ends.upper, tiny, out=ends.upper)
            np.log(ends.both, out=ends.both)
            np.add(ends.lower, margin, out=ends.lower)
            np.subtract(ends.upper, margin, out=ends.upper)
            closed = np.less_equal(ends.upper, ends.lower)  # no room: stays where it is
            if np.count_nonzero(closed):
                ends.both[:, closed] = old[closed]
            centre, minus_variance = gradients[i], precision.minus_variances[j]
            if i:
                centre += np.matmul(within[i, :i], moved[:i], out=x)
            centre *= minus_variance
            centre += old
            scale, narrow = precision.scales[j], precision.narrows[j]
            if root_weights is not None:
                scale, narrow = scale / root_weights, narrow * root_weights
            np.subtract(ends.lower, centre, out=from_lower)
            np.subtract(ends.upper, centre, out=from_upper)
            scaled *= narrow
            if reflect:
                np.subtract(old, centre, out=x)
                x *= narrow
                drawn = reflected_normal(scaled, x, u[j])
            else:
                drawn = truncated_normal(scaled, u[j])
            drawn *= scale
            drawn += centre
            np.maximum(drawn, ends.lower, out=drawn)
            np.minimum(drawn, ends.upper, out=drawn)
            np.subtract(drawn, old, out=moved[i])
            Z[j] = drawn
            others.put(j, np.exp(drawn, out=drawn))
        residual[labels] += moved
        precision.follow(labels, moved, kept)
    return Z

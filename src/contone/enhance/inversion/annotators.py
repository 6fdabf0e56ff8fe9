"""Several annotators of one item: every row of labels measures the item's distribution through noise of its own.

    z_i ~ N(B^T phi(x_i), Sigma),   z_r = z_i + e_r,   e_r ~ N(0, tau^2 C),   l_r = rule(softmax(z_r))

for each row r of labels of item i, with C = I - 11^T / q. The answer is the posterior of softmax(z_i). Given the rest,

- z_r is normal around z_i, confined to what l_r allows: the sweep of `sweeps`, with covariance tau^2 C;
- z_i together with all its z_r moves along one axis: its prior, cut to what the labels of *all* its rows allow. Where
  annotators agree closely (tau small), this is the move that explores;
- z_i is normal, in closed form: in the directions of Sigma's eigenvectors all covariances are diagonal;
- tau^2 is inverse gamma. Its prior is worth one row, at a quarter of the variance between items.

How well the rows of one item agree says how large tau is beside Sigma; it takes items with two rows or more. Items
whose degrees are known stay at them, and inform tau as well. `Items` has the methods of `sampler.Rows`, so that the
parameters are learnt and calibrated by the same chains.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.sampler import Rows, draw_weights
from contone.enhance.inversion.sweeps.reference import LOWEST, Weights, interval
from contone.measurements import IntervalRule
from contone.numerics.truncated import reflected_normal, truncated_normal
from contone.typing import Array

PRIOR_SHAPE, PRIOR_SHARE = 1.0, 0.25
"""The prior of tau^2: worth as many rows as this, at this share of the mean variance of Sigma."""
START = 0.5
"""tau at the start, in units of the start of z, whose labels have variance 1."""
MARGIN = 1e-9
"""How far from a tie log weights stay."""


class Items:
    """Log weights Z (q, m) of items, those of their rows, and how to redraw all of them.

    Parameters
    ----------
    rule : IntervalRule
        What made the labels.
    L : (n, q)
        Labels, the rows of an item one after the other.
    item : (n,)
        Number 0, ..., m - 1 of the item of every row, rising.
    deviation : float or None
        tau, where it is known; None estimates it.
    grades : Grades or None
        Items whose degrees are known.
    tail : float
        Degrees of freedom of the items around their mean, as for `Rows`.
    """

    def __init__(
        self,
        rule: IntervalRule,
        L: np.ndarray,
        item: np.ndarray,
        deviation: float | None = None,
        grades: Grades | None = None,
        tail: float = math.inf,
    ) -> None:
        self.rule, self.item, self.tail = rule, item, tail
        self.rows = Rows(rule, L)
        self.n_relaxed = self.rows.n_relaxed
        self.first = np.flatnonzero(np.diff(item, prepend=-1))
        self.count = np.bincount(item)
        self.is_known = deviation is not None
        self.Z = self._sums(_centred(self.rows.Z)) / self.count
        self.deviation = START if deviation is None else deviation
        self.history: list[float] = []
        """tau at the start and after every sweep."""
        self.grades: Grades | None = None
        self.held = np.zeros(len(self.first), dtype=bool)
        if grades is not None:
            self.hold(grades)

    def hold(self, grades: Grades) -> None:
        """Put items at the degrees that are known of them."""
        self.grades, self.held = grades, np.asarray(grades.known)
        self.Z = np.where(self.held, _centred(np.asarray(grades.log_weights()).T), self.Z)
        self.is_zero = self.held & (np.asarray(grades.degrees).T <= 0)
        self.highest_zero = np.log(grades.bound / np.asarray(grades.degrees).max(axis=1))

    def exact_labels(self) -> None:
        """None: what annotators mark is not what the degrees of an item give."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """As for `Rows`."""
        return self.rows.moments()

    def rescale(self, factor: float) -> None:
        """The parameters were multiplied by a factor: tau is one of them."""
        if not self.is_known:
            self.deviation *= factor
            self.history.append(self.deviation)

    takes_factors = False

    def run(self, *chain: Any) -> bool:
        """Items are swept one by one."""
        return False

    def sweep(self, mean: np.ndarray, precision: np.ndarray, rng: Any, *, reflect: bool = False) -> None:
        """Redraw all log weights once, and tau."""
        q = len(self.Z)
        self.rows.sweep(self.Z[:, self.item], np.eye(q) / self.deviation**2, rng, reflect=reflect)
        weights = 1.0 if math.isinf(self.tail) else draw_weights(self.Z - mean, precision, self.tail, rng)
        self._move_together(mean, precision, weights, rng, reflect=reflect)
        self._draw_items(mean, precision, weights, rng)
        if not self.is_known:
            self._draw_deviation(precision, rng)

    def _move_together(
        self,
        mean: np.ndarray,
        precision: np.ndarray,
        weights_of_items: Array,
        rng: np.random.Generator,
        *,
        reflect: bool,
    ) -> None:
        """Move every item and all its rows along each axis in turn; `weights_of_items` (m,) or 1, as in `Rows`."""
        q, m = self.Z.shape
        root = weights_of_items**0.5
        Z = self.rows.Z - self.rows.Z.max(axis=0)
        u, along = rng.random((q, m)), precision.sum(axis=0)
        residual = self.Z - mean
        # The shift of an item's log weights means nothing, so it is redrawn first; see `reference.sweep`.
        residual += rng.standard_normal(m) / (along.sum() ** 0.5 * root) - (along @ residual) / along.sum()
        bound, weights, moved = self.rows.bound, Weights(Z, self.rows.positive), np.zeros((q, m))
        for j in range(q):
            lower, upper = interval(self.rule, bound, j, weights)
            lower = np.maximum.reduceat(np.clip(lower, LOWEST, None) + MARGIN - Z[j], self.first)
            upper = np.minimum.reduceat(upper - MARGIN - Z[j], self.first)
            room = (lower < 0) & (upper > 0) & ~self.held
            lower, upper = np.where(room, lower, 0.0), np.where(room, upper, 1.0)
            centre, scale = -(precision[j] @ residual) / precision[j, j], precision[j, j] ** -0.5 / root
            ends = (lower - centre) / scale, (upper - centre) / scale
            step = reflected_normal(*ends, -centre / scale, u[j]) if reflect else truncated_normal(*ends, u[j])
            moved[j] = np.where(room, np.clip(centre + scale * step, lower, upper), 0.0)
            residual[j] += moved[j]
            weights.put(j, Z[j] + moved[j][self.item])
        self.rows.Z = Z
        self.Z = self.Z + moved

    def _draw_items(self, mean: np.ndarray, precision: np.ndarray, weights: Array, rng: np.random.Generator) -> None:
        """z_i given all z_r, centred; known degrees stay, but for those that are given as zero."""
        q, m = self.Z.shape
        strength, directions = np.linalg.eigh(precision)
        noise, said = self.count / self.deviation**2, self._sums(_centred(self.rows.Z)) / self.deviation**2
        strength = strength[:, None] * weights
        total = strength + noise
        expected = (strength * (directions.T @ mean) + directions.T @ said) / total
        drawn = _centred(directions @ (expected + rng.standard_normal((q, m)) / total**0.5))
        if self.held.any():
            known = self._draw_zeros(mean, _centred(_centred(precision).T), weights, noise, said, rng)
            drawn = np.where(self.held, known, drawn)
        self.Z = drawn

    def _draw_zeros(
        self,
        mean: np.ndarray,
        precision: np.ndarray,
        weights: Array,
        noise: np.ndarray,
        said: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The items (q, m) with degrees given as zero redrawn, each below what the person could have given."""
        Z = self.Z.copy()
        for j in np.flatnonzero(self.is_zero.any(axis=1)):
            slope = weights * (precision[j] @ (Z - mean)) + noise * (Z[j] - Z.mean(axis=0)) - said[j]
            curvature = weights * precision[j, j] + noise * (1.0 - 1.0 / len(Z))
            centre, scale = Z[j] - slope / curvature, curvature**-0.5
            highest = (self.highest_zero + Z.max(axis=0) - centre) / scale
            below = centre + scale * truncated_normal(np.full_like(highest, -np.inf), highest, rng.random(len(highest)))
            Z[j] = np.where(self.is_zero[j], below, Z[j])
        return _centred(Z)

    def _draw_deviation(self, precision: np.ndarray, rng: np.random.Generator) -> None:
        """tau given all z."""
        q = len(self.Z)
        residual = _centred(self.rows.Z) - self.Z[:, self.item]
        variance = (np.trace(np.linalg.inv(precision)) - 1.0 / (precision.sum() / q)) / max(q - 1, 1)
        shape = PRIOR_SHAPE + 0.5 * (q - 1) * residual.shape[1]
        rate = PRIOR_SHAPE * PRIOR_SHARE * variance + 0.5 * float(np.square(residual).sum())
        self.deviation = float((rate / rng.standard_gamma(shape)) ** 0.5)

    def typical_deviation(self, n_sweeps: int) -> float:
        """tau, the root mean square of the last sweeps."""
        return self.deviation if self.is_known else float(np.sqrt(np.mean(np.square(self.history[-n_sweeps:]))))

    def _sums(self, A: np.ndarray) -> np.ndarray:
        """Sums (q, m) over the rows of every item of A (q, n)."""
        total: np.ndarray = np.add.reduceat(A, self.first, axis=1)
        return total


def _centred(Z: np.ndarray) -> np.ndarray:
    centred: np.ndarray = Z - Z.mean(axis=0)
    return centred

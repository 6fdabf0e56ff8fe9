"""Rows under their labels: log weights z ~ N(m, Sigma) confined to the set that the labels of a row allow.

`sweeps` says how they are redrawn. This is about what rows may ask for beside it: entries that nobody asked or that are
wrong, degrees that are known, labels that the rule cannot have made, heavier tails.
"""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like, to_numpy
from contone.enhance.inversion import logistic_normal, unasked
from contone.enhance.inversion.covariance import FEW_LABELS, Precision, dense
from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sweeps import Bound, KnownRows, Move, Sweeps
from contone.measurements import IntervalRule, Order, TopK, has_unasked
from contone.measurements.order import has_levels
from contone.numerics.simplex import softmax
from contone.typing import Array

STARTING_ROWS = 5000
"""About how many rows with levels a start is worked out from."""
PRIOR_OF_NOISE = (1.0, 9.0), (1.0, 19.0)
"""Beta distributions of the shares of wrong entries among positives and among negatives, where these are estimated."""
FIRST_LEAPS, LEAPS = 64, 4
"""How often a row with unasked entries is offered other values of all its labels at once: at most before the first
sweep, as the completion that it starts from may be the least likely of all, and in every other."""
MANY_ROWS = 1200
"""Rows from which on single precision is faster; with fewer, calls are what takes the time."""


class Rows:
    """Rows under their labels: log weights Z (q, n), labels-first, and how to redraw them.

    Parameters
    ----------
    rule : IntervalRule
        What made the labels.
    L : (n, q)
        NaN where nobody asked: the labels that a row has there are sampled along (`unasked`).
    noise : Flips
        Shares of the entries of L that are wrong.
    tail : float
        Degrees of freedom nu: every row has a weight w ~ Gamma(nu / 2, nu / 2) of its own, and covariance Sigma / w.
    single : bool
        Keep log weights of many NumPy rows in single precision; those of many labels always are.
    """

    def __init__(
        self, rule: IntervalRule, L: Array, noise: Flips = NO_FLIPS, tail: float = math.inf, *, single: bool = False
    ) -> None:
        self.rule, self.noise, self.tail = rule, noise, tail
        self.grades: Grades | None = None
        transpose = get_backend(L).transpose
        self.given = transpose(L > 0)
        self.labels = transpose(L) if has_unasked(L) else None
        """(q, n), where some of them were not asked."""
        self.by_level = isinstance(rule, Order) and (self.labels is not None or has_levels(L))
        exact = self.labels is None
        Z, self.relaxed, completed = (*rule.start(L), L > 0) if exact else unasked.start_rows(rule, L)
        self.n_relaxed = int(self.relaxed.sum())
        if noise.any() and self.n_relaxed:
            # A rule that cannot have made these labels may have made others near them.
            Z[self.relaxed] = 0.1 * array_namespace(Z).astype(L[self.relaxed] > 0, Z.dtype)
            self.n_relaxed = 0
        elif self.n_relaxed:
            Z[self.relaxed] = TopK().start(L[self.relaxed])[0]
        self.levels = transpose(L) if self.by_level or (self.labels is not None and self.n_relaxed) else None
        """(q, n), where rows go by the order of their levels, or of marked and unmarked labels with gaps."""
        self.known: KnownRows | None = None
        self.Z = transpose(Z)
        self.positive = self._labels(self.Z) if noise.any() else transpose(completed)
        self._prepare()
        many = (single or L.shape[1] > FEW_LABELS) and len(L) >= MANY_ROWS
        if many and self.takes_factors and get_backend(L).name == "numpy":
            self.Z = self.Z.astype(np.float32)

    def hold(self, grades: Grades) -> None:
        """From here on, rows whose degrees are known stay at these, whatever their labels say."""
        self.grades, self.relaxed = grades, self.relaxed & ~grades.known
        self.n_relaxed = int(self.relaxed.sum()) if not self.noise.any() else 0
        xp, transpose = array_namespace(self.Z), get_backend(self.Z).transpose
        weights = transpose(grades.log_weights())
        self.Z = xp.where(grades.known, weights, xp.astype(self.Z, weights.dtype))
        is_zero = transpose(grades.known[:, None] & (grades.degrees <= 0))
        self.known = KnownRows(grades.known, is_zero, xp.log(grades.bound / xp.max(grades.degrees, axis=1)))
        if self.noise.any():
            self.positive = self._labels(self.Z)
        self._prepare()

    def _prepare(self) -> None:
        """Which entries are proposed, and by which sweeps rows move, now that all is known that binds them."""
        xp = array_namespace(self.Z)
        self.asked = self.given | True if self.labels is None else self.labels == self.labels
        self.proposed: list[Array] = []
        """Rows, label by label, whose label may change: all under noise, else those that nobody was asked about it.
        None where an order is enough."""
        if (self.noise.any() or self.labels is not None) and not isinstance(self.rule, Order):
            held = self.relaxed & (self.n_relaxed > 0)
            held = held if self.grades is None else held | self.grades.known
            free = self.asked | True if self.noise.any() else ~self.asked
            self.proposed = [xp.nonzero(open_ & ~held)[0] for open_ in free]
            self.leaping, self.leapt = xp.nonzero(xp.any(free, axis=0) & ~held)[0], False
        self.sweeps = choose_sweeps(self.Z, self.rule, self.bound)
        plain = self.grades is None and self.levels is None and self.labels is None and self.rule.region is not None
        self.takes_factors = plain and self.sweeps.takes_factors
        """Whether Sigma^-1 may be a `FactorPrecision`."""

    @property
    def bound(self) -> Bound:
        """What binds the rows beside the rule."""
        relaxed = self.relaxed | True if self.by_level else self.relaxed if self.n_relaxed else None
        return Bound(self.positive, relaxed, self.levels, self.known)

    def exact_labels(self) -> Array | None:
        """Labels (n, q) that the degrees of the rows give without exception, NaN in other rows; see `Posterior`."""
        if self.noise.any() or self.by_level:
            return None
        backend, xp = get_backend(self.Z), array_namespace(self.Z)
        labels = xp.astype(self.given, self.Z.dtype) if self.labels is None else self.labels
        return backend.transpose(xp.where(self.relaxed[None, :], xp.full_like(labels, xp.nan), labels))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """A start for mean (q,) and Sigma (q, q) of z from the labels alone, up to a common scale."""
        if self.by_level and self.levels is not None:
            step = max(self.levels.shape[1] // STARTING_ROWS, 1)
            return logistic_normal.level_moments(to_numpy(self.levels[:, ::step]))
        if self.labels is not None:
            return logistic_normal.moments(unasked.meetings(self.labels.T), self.labels.shape[1])
        met = array_namespace(self.Z).astype(self.given, self.Z.dtype)
        return logistic_normal.moments(to_numpy(met @ met.T).astype(np.float64), met.shape[1])

    def sweep(self, mean: Array, precision: Precision, rng: Any, *, reflect: bool = False) -> None:
        """Redraw (or reflect) all log weights once."""
        (q, n), root = self.Z.shape, None
        if self.proposed or not math.isinf(self.tail):
            matrix = like(dense(precision), self.Z)
            root = None if math.isinf(self.tail) else draw_weights(self.Z - mean, matrix, self.tail, rng) ** 0.5
            if self.proposed:
                self._propose(mean, matrix, getattr(rng, "aside", rng), 1.0 if root is None else root)
        single = self.Z.dtype == np.float32 and isinstance(rng, np.random.Generator)
        how = {"dtype": np.float32} if single else {}
        move = Move(rng.random((q, n), **how), rng.standard_normal(n, **how), reflect, root)
        self.Z = self.sweeps.sweep(self.Z, self.bound, mean, precision, move)

    def run(
        self, mean: Array, precision: Precision, draws: Any, n_sweeps: int, n_burn: int, averages: Averages
    ) -> bool:
        """All sweeps of a chain as one operation, added up in `averages`; False where that is not possible."""
        if self.proposed or self.grades is not None or not math.isinf(self.tail):
            return False  # more than Z is redrawn
        length, sums = (n_sweeps, n_burn), (averages.degrees, averages.logits, averages.squares)
        found = self.sweeps.run_chain(self.Z, self.bound, mean, precision, draws, length, sums)
        if found is None:
            return False
        self.Z = found
        averages.n += n_sweeps - n_burn
        return True

    def _propose(self, mean: Array, precision: Array, rng: Any, root_weights: Array | float) -> None:
        """Metropolis steps to other labels: z_j from its normal without bounds, accepted by the given labels.

        What unasked labels, and labels without error, are then is what the rule says. Where labels are exact, the asked
        ones must stay; otherwise the given ones have the likelihood missed^a (1 - missed)^b false^c (1 - false)^d,
        where a of the positive labels are not marked and b are, c of the negative ones are marked and d are not.
        """
        xp, (q, n) = array_namespace(mean), self.Z.shape
        noise, shift = rng.standard_normal((q, n)) / root_weights, rng.standard_normal(n)
        chance = xp.log(rng.random((q, n))) if self.noise.any() else None
        # The normal distribution holds up to a common shift of the row, which is redrawn first as in `sweep`.
        along, residual = precision.sum(axis=0), self.Z - mean
        residual = residual + (shift / (along.sum() ** 0.5 * root_weights) - (along @ residual) / along.sum())
        self.Z, self.positive = xp.asarray(self.Z, copy=True), xp.asarray(self.positive, copy=True)
        for j, rows in enumerate(self.proposed):
            scale = 1.0 / precision[j, j] ** 0.5
            step = scale * noise[j, rows] - (precision[j, :] @ residual[:, rows]) * scale**2
            proposal = xp.asarray(self.Z[:, rows], copy=True)
            proposal[j, :] += step
            kept = self._take(proposal, rows, None if chance is None else chance[j, rows])
            residual[j, rows] += xp.where(kept, step, xp.zeros_like(step))
        if self.labels is not None and q <= FEW_LABELS:
            self._leap(mean, precision, rng, root_weights)

    def _leap(self, mean: Array, precision: Array, rng: Any, root_weights: Array | float) -> None:
        """The same for rows with unasked entries, all labels at once.

        Completions may lie far apart, with nothing likely between them that one label at a time could pass. With e from
        N(0, Sigma), cos(a) (z - m) + sin(a) e has the distribution of z - m before the labels, for any angle a (Neal
        1998): a quarter turn, which is a draw that knows nothing of z, and an angle at random take turns. The first
        sweep has quarter turns alone, until one is kept: a row then starts from its posterior.
        """
        xp, (q, n), rows = array_namespace(mean), self.Z.shape, self.leaping
        covariance = np.linalg.pinv(to_numpy(precision), hermitian=True)
        root = like(np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(q)), mean)
        for k in range(LEAPS if self.leapt else FIRST_LEAPS):
            angle = 2.0 * math.pi * (rng.random(n) if self.leapt and k % 2 else xp.full_like(mean[0, :], 0.25))
            residual, drawn = self.Z - mean, root @ rng.standard_normal((q, n)) / root_weights
            proposal = mean + xp.cos(angle) * (residual - residual.mean(axis=0)) + xp.sin(angle) * drawn
            kept = self._take(proposal[:, rows], rows, xp.log(rng.random(n))[rows] if self.noise.any() else None)
            rows = rows if self.leapt else rows[~kept]
        self.leapt = True

    def _take(self, proposal: Array, rows: Array, chance: Array | None) -> Array:
        """Which rows (m,) take their proposal (q, m), given the log of a uniform draw where labels may be wrong."""
        xp, labels = array_namespace(proposal), self._labels(proposal)
        before, marks = self.positive[:, rows], (self.given[:, rows], self.asked[:, rows])
        if chance is None:
            kept = xp.all((labels == marks[0]) | ~marks[1], axis=0)
        else:
            kept = chance < self.noise.log_likelihood(labels, *marks) - self.noise.log_likelihood(before, *marks)
        self.Z[:, rows] = xp.where(kept, proposal, self.Z[:, rows])
        self.positive[:, rows] = xp.where(kept, labels, before)
        return kept

    def draw_noise(self, rng: np.random.Generator) -> None:
        """Draw the shares of wrong entries given the labels that rows have without error: beta variables."""
        given, positive, asked = (to_numpy(A) for A in (self.given, self.positive, self.asked))
        shares = []
        for among, wrong, prior in zip((positive, ~positive), (~given, given), PRIOR_OF_NOISE, strict=True):
            n_wrong, n_all = (among & wrong & asked).sum(), (among & asked).sum()
            shares.append(rng.beta(prior[0] + n_wrong, prior[1] + n_all - n_wrong))
        self.noise = Flips(*shares)

    def _labels(self, Z: Array) -> Array:
        return get_backend(Z).transpose(self.rule._apply(softmax(Z.T)))


def draw_weights(residual: Array, precision: Array, tail: float, rng: Any) -> Array:
    """Weights (n,) of rows with heavier tails, given residuals (q, n) of their log weights.

    Gamma with shape (nu + q - 1) / 2 and rate (nu + distance^2) / 2.
    """
    q, n = residual.shape
    residual = residual - residual.mean(axis=0)
    distance = (residual * (precision @ residual)).sum(axis=0)
    # Twice a gamma variable with half a whole number as its shape is a sum of squared normal variables.
    squares = rng.standard_normal((int(tail) + q - 1, n)) ** 2
    return squares.sum(axis=0) / (tail + distance)


def choose_sweeps(Z: Array, rule: IntervalRule, bound: Bound) -> Sweeps:
    """The quickest sweeps for log weights Z (q, n) that know all that binds them."""
    kind, region = get_backend(Z).name, rule.region
    if region is not None and bound.levels is None:
        if kind == "numpy":
            from contone.enhance.inversion.sweeps.compiled import CompiledSweeps

            return CompiledSweeps(region)
        if kind == "torch":
            from contone.enhance.inversion.sweeps.gpu import FusedSweeps, can_fuse

            if can_fuse(Z):
                return FusedSweeps(rule)
    from contone.enhance.inversion.sweeps.reference import ReferenceSweeps

    return ReferenceSweeps(rule)

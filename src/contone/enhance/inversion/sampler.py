"""Rows under their labels: log weights z ~ N(m, Sigma) confined to the set that the labels of a row allow.

`gibbs` says how they are redrawn. This is about what rows may ask for beside it (entries that nobody asked or that are
wrong, degrees that are known, labels that the rule cannot have made, heavier tails), and about which of the sweeps that
do the same (`gibbs`, `numpy_sweep`, those of the backend) is the quickest that knows all of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like, to_numpy
from contone.backends.protocols import KnownRows, Sweeps
from contone.enhance.inversion import logistic_normal, numpy_sweep, unasked
from contone.enhance.inversion.covariance import FEW_LABELS, dense
from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.gibbs import Weights, draw_weights, sweep
from contone.enhance.inversion.posterior import Averages
from contone.measurements import IntervalRule, Order, Others, TopK
from contone.measurements.order import has_levels
from contone.numerics.simplex import softmax
from contone.numerics.unasked import has_unasked
from contone.typing import Array

STARTING_ROWS = 5000
"""About how many rows with levels a start is worked out from."""


class Rows:
    """Rows under their labels: log weights Z (q, n), labels-first, and how to redraw them.

    Parameters
    ----------
    rule : IntervalRule
        What made the labels.
    L : (n, q)
        NaN where nobody asked: the labels that a row has there are sampled along (`unasked`).
    noise : float
        Share of the entries of L that are wrong.
    grades : Grades or None
        Degrees that are known; such rows stay where they are, whatever their labels say.
    tail : float
        Degrees of freedom nu: every row has a weight w ~ Gamma(nu / 2, nu / 2) of its own, and covariance Sigma / w.
    single : bool
        Single precision where `numpy_sweep` can be used and rows are many, whatever the number of labels.
    n_sweeps : int
        How many sweeps are to come, where that is known: many are worth a start that takes time (`Backend.sweeps`).
    """

    def __init__(
        self,
        rule: IntervalRule,
        L: Array,
        noise: float,
        grades: Grades | None = None,
        tail: float = math.inf,
        *,
        single: bool = False,
        n_sweeps: int = 0,
    ) -> None:
        self.rule, self.noise, self.grades, self.tail = rule, noise, grades, tail
        self.given = get_backend(L).transpose(L > 0)
        self.labels = get_backend(L).transpose(L) if has_unasked(L) else None
        by_level = isinstance(rule, Order) and (self.labels is not None or has_levels(L))
        self.levels = get_backend(L).transpose(L) if by_level else None
        Z, self.relaxed, completed = unasked.start_rows(rule, L)
        if grades is not None:
            self.relaxed = self.relaxed & ~grades.known
        self.n_relaxed = int(self.relaxed.sum())
        if noise > 0 and self.n_relaxed:
            # A rule that cannot have made these labels may have made others near them.
            Z[self.relaxed] = 0.1 * array_namespace(Z).astype(L[self.relaxed] > 0, Z.dtype)
            self.n_relaxed = 0
        elif self.n_relaxed:
            Z[self.relaxed] = TopK().start(L[self.relaxed])[0]
        if grades is not None:
            xp = array_namespace(Z)
            Z = xp.where(grades.known[:, None], grades.log_weights(), Z)
            self.is_zero = get_backend(Z).transpose(grades.known[:, None] & (grades.degrees <= 0))
            self.highest_zero = xp.log(grades.bound / xp.max(grades.degrees, axis=1))
        self.Z = get_backend(Z).transpose(Z)
        self.positive = self._labels(self.Z) if noise > 0 else get_backend(L).transpose(completed)
        self.asked: Array = None  # (q, n) where there are unasked entries
        if self.labels is not None:
            self._open_unasked(self.labels)
        self.quick = self._can_be_quick()
        if self.quick:
            single = single or L.shape[1] > FEW_LABELS
            self.Z = self.Z.astype(numpy_sweep.precision_for(len(L)) if single else np.float64)
        self.fused = self._fused_sweeps(n_sweeps)

    def _open_unasked(self, labels: Array) -> None:
        """Which entries of labels (q, n) are unasked; which are proposed, and which rows go by the order alone."""
        xp = array_namespace(labels)
        self.asked = labels == labels
        self.ordered = self.relaxed & (self.n_relaxed > 0) & xp.any(~self.asked, axis=0)
        held = xp.ones_like(self.relaxed) if isinstance(self.rule, Order) else self.ordered
        if self.grades is not None:
            held = held | self.grades.known
        self.proposed = [xp.nonzero(~self.asked[j, :] & ~held)[0] for j in range(len(labels))]

    def _can_be_quick(self) -> bool:
        """Whether `numpy_sweep` knows all that these rows ask for."""
        plain = self.grades is None and self.levels is None and self.asked is None
        return plain and get_backend(self.Z).name == "numpy" and numpy_sweep.can_sweep(self.rule)

    def _fused_sweeps(self, n_sweeps: int) -> Sweeps | None:
        """Sweeps as one operation each, where the backend has them and they know all that these rows ask for."""
        region = self.rule.region
        ordered = self.labels is not None and self.n_relaxed > 0
        if region is None or self.levels is not None or ordered:
            return None
        found = get_backend(self.Z).sweeps(self.Z, region, n_sweeps)
        return None if found is None or (self.grades is not None and not found.knows_all) else found

    deviation = 0.0
    """Standard deviation of what separates the log weights that the labels see from Z: nothing here."""

    def rescale(self, factor: float) -> None:
        """The parameters were multiplied by a factor; rows have none of their own."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """A start for mean (q,) and Sigma (q, q) of z from the labels alone, up to a common scale."""
        if self.levels is not None:
            step = max(self.levels.shape[1] // STARTING_ROWS, 1)
            return logistic_normal.level_moments(to_numpy(self.levels[:, ::step]))
        if self.labels is not None:
            return logistic_normal.moments(unasked.meetings(self.labels.T), self.labels.shape[1])
        met = array_namespace(self.Z).astype(self.given, self.Z.dtype)
        return logistic_normal.moments(to_numpy(met @ met.T).astype(np.float64), met.shape[1])

    def sweep(self, mean: Array, precision: Array, rng: Any, *, reflect: bool = False) -> None:
        """Redraw (or reflect) all log weights once."""
        q, n = self.Z.shape
        given = precision
        if not self.quick or self.noise > 0 or not math.isinf(self.tail):
            precision = like(dense(precision), self.Z)
        root = None if math.isinf(self.tail) else draw_weights(self.Z - mean, precision, self.tail, rng) ** 0.5
        if self.noise > 0:
            self._propose_other_labels(mean, precision, rng, 1.0 if root is None else root)
        elif self.asked is not None:
            self._propose_completions(mean, precision, getattr(rng, "aside", rng), 1.0 if root is None else root)
        if self.quick:
            self._sweep_quickly(mean, given, rng, reflect, root)
            return
        u, shift = rng.random((q, n)), rng.standard_normal(n)
        how: dict[str, Any] = {"reflect": reflect, "root_weights": root}
        if self.fused is not None:
            loose, known = self.relaxed if self.n_relaxed else None, self._known_rows()
            self.Z = self.fused.sweep(self.Z, self.positive, loose, mean, dense(given), u, shift, **how, known=known)
            return
        self.Z = sweep(self.Z, self.positive, mean, precision, self._interval, u, shift, **how)

    def run(self, mean: Array, precision: Array, draws: Any, n_sweeps: int, n_burn: int, averages: Averages) -> bool:
        """All sweeps of a chain as one operation, added up in `averages`; False where more than Z has to be redrawn."""
        fixed = self.noise == 0 and self.asked is None and self.grades is None and math.isinf(self.tail)
        region = self.rule.region
        if self.fused is None or region is None or not fixed:
            return False
        chain = get_backend(self.Z).chain(self.Z, region, draws)
        if chain is None:
            return False
        loose, sums = self.relaxed if self.n_relaxed else None, (averages.degrees, averages.logits, averages.squares)
        self.Z = chain.run(self.Z, self.positive, loose, mean, dense(precision), n_sweeps, n_burn, sums)
        averages.n += n_sweeps - n_burn
        return True

    def _sweep_quickly(self, mean: Array, precision: Array, rng: Any, reflect: bool, root: Array | None) -> None:
        (q, n), dtype = self.Z.shape, self.Z.dtype
        single = {"dtype": dtype} if isinstance(rng, np.random.Generator) else {}
        u, shift = (np.asarray(A, dtype=dtype) for A in (rng.random((q, n), **single), rng.standard_normal(n)))
        root = None if root is None else np.asarray(root, dtype=dtype)
        rows = (
            self.Z,
            self.positive,
            self.relaxed if self.n_relaxed else None,
            np.asarray(mean, dtype=dtype),
            precision,
        )
        if self.fused is not None:
            self.Z = self.fused.sweep(*rows, u, shift, reflect=reflect, root_weights=root)
        else:
            self.Z = numpy_sweep.sweep(*rows, self.rule, u, shift, reflect=reflect, root_weights=root)

    def _known_rows(self) -> KnownRows | None:
        return None if self.grades is None else KnownRows(self.grades.known, self.is_zero, self.highest_zero)

    def _interval(self, j: int, weights: Weights) -> tuple[Array, Array]:
        others = Others(*weights.without(j))
        if self.levels is not None and isinstance(self.rule, Order):
            lower, upper = self.rule.level_interval(weights.Z, self.levels, j)
        else:
            lower, upper = self.rule.interval(others, self.positive[j])
        if self.n_relaxed:
            where = array_namespace(lower).where
            order = TopK().interval(others, self.positive[j])
            lower, upper = where(self.relaxed, order[0], lower), where(self.relaxed, order[1], upper)
            if self.labels is not None:  # where NaN is neither above nor below anything
                order = Order().level_interval(weights.Z, self.labels, j)
                lower, upper = where(self.ordered, order[0], lower), where(self.ordered, order[1], upper)
        if self.grades is not None:
            # An empty interval holds a log weight where it is. The largest one of a row is 0 in `sweep`.
            where, far = array_namespace(lower).where, array_namespace(lower).full_like(lower, np.inf)
            zero, known = self.is_zero[j], self.grades.known
            lower = where(known, where(zero, -far, far), lower)
            upper = where(known, where(zero, self.highest_zero, -far), upper)
        return lower, upper

    def _propose_completions(self, mean: Array, precision: Array, rng: Any, root_weights: Array | float) -> None:
        """Metropolis steps of unasked labels: z_j from its normal without bounds, kept where asked labels stay.

        What the unasked labels are then is what the rule says, so that rows move between completions.
        """
        xp, (q, n) = array_namespace(mean), self.Z.shape
        along = precision.sum(axis=0)
        noise, shift = rng.standard_normal((q, n)) / root_weights, rng.standard_normal(n)
        residual = self.Z - mean
        residual = residual + (shift / (along.sum() ** 0.5 * root_weights) - (along @ residual) / along.sum())
        Z, positive = xp.asarray(self.Z, copy=True), xp.asarray(self.positive, copy=True)
        for j, rows in enumerate(self.proposed):
            if rows.shape[0] == 0:
                continue
            scale = 1.0 / precision[j, j] ** 0.5
            step = scale * noise[j, rows] - (precision[j, :] @ residual[:, rows]) * scale**2
            proposal = Z[:, rows]
            proposal[j, :] += step
            labels = self._labels(proposal)
            kept = xp.all((labels == self.given[:, rows]) | ~self.asked[:, rows], axis=0)
            step = xp.where(kept, step, xp.zeros_like(step))
            Z[j, rows] += step
            residual[j, rows] += step
            positive[:, rows] = xp.where(kept, labels, positive[:, rows])
        self.Z, self.positive = Z, positive

    def _propose_other_labels(self, mean: Array, precision: Array, rng: Any, root_weights: Array | float) -> None:
        """Metropolis steps to other labels: z_j from its normal without bounds, accepted by the flips it explains.

        With a share `noise` of wrong entries, labels at Hamming distance h from the given ones have the likelihood
        (noise / (1 - noise))^h times a constant.
        """
        xp = array_namespace(mean)
        odds = float(np.log(self.noise / (1 - self.noise)))
        # The normal distribution holds up to a common shift of the row, which is redrawn first as in `sweep`.
        along = precision.sum(axis=0)
        shift = rng.standard_normal(self.Z.shape[1]) / (along.sum() ** 0.5 * root_weights)
        Z = self.Z + shift - (along @ (self.Z - mean)) / along.sum()
        wrong = self._count_wrong(self.positive)
        for j in range(len(Z)):
            scale = 1.0 / precision[j, j] ** 0.5
            proposal = xp.asarray(Z, copy=True)
            noise = rng.standard_normal(Z.shape[1]) / root_weights
            proposal[j] += scale * noise - (precision[j] @ (Z - mean)) * scale**2
            positive = self._labels(proposal)
            newly = self._count_wrong(positive)
            accepted = xp.log(rng.random(Z.shape[1])) < odds * (newly - wrong)
            if self.grades is not None:
                accepted = accepted & ~self.grades.known
            Z = xp.where(accepted, proposal, Z)
            self.positive = xp.where(accepted, positive, self.positive)
            wrong = xp.where(accepted, newly, wrong)
        self.Z = Z

    def _count_wrong(self, positive: Array) -> Array:
        """In how many entries (n,) labels (q, n) differ from those that were given."""
        differs = positive != self.given
        return (differs if self.asked is None else differs & self.asked).sum(axis=0)

    def _labels(self, Z: Array) -> Array:
        return get_backend(Z).transpose(self.rule._apply(softmax(Z.T)))

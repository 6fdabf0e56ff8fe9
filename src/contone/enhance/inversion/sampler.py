"""Gibbs sampling of log weights z ~ N(m, Sigma) confined to the set that a row's labels allow.

The set is not an orthant, but every section of it along one axis is an interval (`contone.degrade`). So a sweep visits
the labels in turn and redraws each from its normal conditional distribution cut to that interval,

    z_j | z_-j  ~  N( z_j - (Sigma^-1 (z - m))_j / Sigma^-1_jj ,  1 / Sigma^-1_jj ),   lower_j < z_j < upper_j,

for all rows at once. Arrays are labels-first, (q, n): a step then works on contiguous rows of n numbers. A sweep costs
O(n q^2) flops in q steps of O(n q). Random numbers are handed in, so that the caller owns reproducibility.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like, to_numpy
from contone.backends.protocols import KnownRows, Sweeps
from contone.degrade import Degradation, Order, Others, TopK, has_levels, region_of
from contone.enhance.inversion import logistic_normal, numpy_sweep, unasked
from contone.enhance.inversion.covariance import FEW_LABELS, dense
from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.posterior import Averages
from contone.numerics.simplex import softmax
from contone.numerics.truncated import reflected_normal, truncated_normal
from contone.numerics.unasked import has_unasked
from contone.typing import Array

Interval = Callable[[int, "Weights"], tuple[Array, Array]]

LOWEST = -60.0
"""Log weight below the row's largest at which a label is as good as absent; keeps exp(z) clear of underflow."""
STARTING_ROWS = 5000
"""About how many rows with levels a start is worked out from."""


class Rows:
    """Rows under their labels: log weights Z (q, n), labels-first, and how to redraw them.

    Parameters
    ----------
    rule : Degradation
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
        rule: Degradation,
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
        region = region_of(self.rule)
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
        root = None if math.isinf(self.tail) else self._draw_weights(mean, precision, rng) ** 0.5
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
        region = region_of(self.rule)
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

    def _draw_weights(self, mean: Array, precision: Array, rng: Any) -> Array:
        """Weights (n,) of the rows given z: gamma with shape (nu + q - 1) / 2 and rate (nu + distance^2) / 2."""
        q, n = self.Z.shape
        residual = self.Z - mean
        residual = residual - residual.mean(axis=0)
        distance = (residual * (precision @ residual)).sum(axis=0)
        # Twice a gamma variable with half a whole number as its shape is a sum of squared normal variables.
        squares = rng.standard_normal((int(self.tail) + q - 1, n)) ** 2
        return squares.sum(axis=0) / (self.tail + distance)

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


class Weights:
    """Log weights and weights of the positive and negative labels apart, kept up to date one label at a time.

    Parameters
    ----------
    Z, positive : array, bool array, (q, n)
        Log weights, and which labels are marked.
    """

    def __init__(self, Z: Array, positive: Array) -> None:
        xp = array_namespace(Z)
        self.Z, self.positive = Z, positive
        E, zero, far = xp.exp(Z), xp.zeros_like(Z), xp.full_like(Z, xp.inf)
        self._positive_weights = xp.where(positive, E, zero)
        self._negative_weights = xp.where(positive, zero, E)
        self._lowest = xp.where(positive, Z, far)
        self._highest = xp.where(positive, -far, Z)
        self._count = xp.sum(xp.astype(positive, Z.dtype), axis=0)

    def without(self, j: int) -> tuple[Array, Array, Array, Array, Array]:
        """Mass, extremes and count of the labels other than j, in the order of `contone.degrade.Others`."""
        xp = array_namespace(self.Z)
        self._positive_weights[j, :] = 0.0
        self._negative_weights[j, :] = 0.0
        self._lowest[j, :] = xp.inf
        self._highest[j, :] = -xp.inf
        return (
            xp.sum(self._positive_weights, axis=0),
            xp.sum(self._negative_weights, axis=0),
            xp.min(self._lowest, axis=0),
            xp.max(self._highest, axis=0),
            self._count - xp.astype(self.positive[j, :], self.Z.dtype),
        )

    def put(self, j: int, z: Array) -> None:
        """Give label j the log weights z (n,), after `without(j)`."""
        xp = array_namespace(z)
        positive, w, zero, far = self.positive[j, :], xp.exp(z), xp.zeros_like(z), xp.full_like(z, xp.inf)
        self.Z[j, :] = z
        self._positive_weights[j, :] = xp.where(positive, w, zero)
        self._negative_weights[j, :] = xp.where(positive, zero, w)
        self._lowest[j, :] = xp.where(positive, z, far)
        self._highest[j, :] = xp.where(positive, -far, z)


def sweep(
    Z: Array,
    positive: Array,
    mean: Array,
    precision: Array,
    interval: Interval,
    u: Array,
    shift: Array,
    *,
    reflect: bool = False,
    root_weights: Array | None = None,
) -> Array:
    """One Gibbs sweep over the q labels of all n rows.

    Parameters
    ----------
    Z : array, (q, n)
        Current log weights; every row within what its labels allow. Not changed.
    positive : bool array, (q, n)
        Which labels are marked.
    mean : array, (q, n)
        Of the log weights, before the labels.
    precision : array, (q, q)
        Sigma^-1, positive definite.
    interval : callable
        `interval(j, weights)` gives the ends (n,), (n,) for label j, up to the common shift of the row.
    u : array, (q, n)
        Uniform draws in (0, 1).
    shift : array, (n,)
        Standard normal draws. A common shift of a row's log weights changes nothing that the labels see, so it is
        redrawn from the prior first; without that the walk along it is slow.
    reflect : bool
        Reflect each log weight at the median of its conditional distribution instead of drawing it anew. That leaves
        the distribution as it is (over-relaxation, Adler 1981, Neal 1998). Every other sweep so, and the errors of an
        average over sweeps cancel in pairs; reflections alone would not explore.
    root_weights : array, (n,), or None
        Square roots of the weights of the rows; a row with the weight w has covariance Sigma / w.

    Returns
    -------
    array, (q, n)
        New log weights, not centred.
    """
    xp = array_namespace(Z)
    margin = 1e-9 if Z.dtype == xp.float64 else 1e-5
    Z = Z - xp.max(Z, axis=0)
    along = xp.sum(precision, axis=0)
    total = xp.sum(along)
    # r = (z + c) - m with the shift c of each row: intervals are worked out for z, the normal holds for z + c.
    residual = Z - mean
    narrowed = total**0.5 if root_weights is None else total**0.5 * root_weights
    residual += (shift / narrowed - (along @ residual) / total)[None, :]
    weights = Weights(Z, positive)
    for j in range(Z.shape[0]):
        scale = 1.0 / precision[j, j] ** 0.5
        old = xp.asarray(Z[j, :], copy=True)
        lower, upper = interval(j, weights)
        centre = old - (precision[j, :] @ residual) * scale**2
        if root_weights is not None:
            scale = scale / root_weights
        # Ends are ties, which the index order may decide against L: stay clear of them. Rows that have no room (a
        # pattern that only a tie gives) stay where they are.
        lower, upper = lower + margin, upper - margin
        room = upper > lower
        lower = xp.where(room, xp.clip(lower, min=LOWEST), old)
        upper = xp.where(room, upper, old)
        room = room & (upper > lower)
        ends = (lower - centre) / scale, (upper - centre) / scale
        step = reflected_normal(*ends, (old - centre) / scale, u[j, :]) if reflect else truncated_normal(*ends, u[j, :])
        z = centre + scale * step
        z = xp.where(room, xp.clip(z, lower, upper), old)
        residual[j, :] += z - old
        weights.put(j, z)
    return Z

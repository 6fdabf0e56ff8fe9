"""Several annotators of one item: every row of labels measures the item's distribution through noise of its own.

    z_i ~ N(B^T phi(x_i), Sigma),   z_r = z_i + e_r,   e_r ~ N(0, tau^2 C),   l_r = degrade(softmax(z_r))

for each row r of labels of item i, with C = I - 11^T / q. The answer is the posterior of softmax(z_i). Given the rest,

- z_r is normal around z_i, confined to what l_r allows: the sweep of `gibbs`, with covariance tau^2 C;
- z_i together with all its z_r moves along one axis: its prior, cut to what the labels of *all* its rows allow. Where
  annotators agree closely (tau small), this is the move that explores;
- z_i is normal, in closed form: in the directions of Sigma's eigenvectors all covariances are diagonal;
- tau^2 is inverse gamma. Its prior is worth one row, at a quarter of the variance between items.

How well the rows of one item agree says how large tau is beside Sigma; it takes items with two rows or more. Items
whose degrees are known stay at them, and tell of tau as well. `Items` has the same face as `sampler.Rows`, so that the
parameters are learnt and calibrated by the same chains.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np

from contone.backends import get_backend, to_numpy
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.chain import Settings, calibrate_parameters, learn_parameters, redraws
from contone.enhance.inversion.evidence import Grades
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.model import N_DIRECTIONS, Fit, _certain, _mean_features, choose_rows, with_tails
from contone.enhance.inversion.posterior import Averages, Posterior
from contone.enhance.inversion.sampler import Rows, draw_weights
from contone.enhance.inversion.shape_uncertainty import ShapeUncertainty
from contone.enhance.inversion.sweeps.reference import LOWEST, Weights, interval
from contone.enhance.inversion.unasked import count_labels
from contone.exceptions import InputError, InputTypeError
from contone.measurements import IntervalRule
from contone.numerics.principal import principal_map
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
        self.rows = Rows(rule, L, 0.0)
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

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """As for `Rows`."""
        return self.rows.moments()

    def rescale(self, factor: float) -> None:
        """The parameters were multiplied by a factor: tau is one of them."""
        if not self.is_known:
            self.deviation *= factor
            self.history.append(self.deviation)

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
        self, mean: np.ndarray, precision: np.ndarray, weights_of_items: Array, rng: Any, *, reflect: bool
    ) -> None:
        """Move every item and all its rows along each axis in turn; `weights_of_items` (m,) or 1, as in `Rows`."""
        q, m = self.Z.shape
        root = weights_of_items**0.5
        Z = self.rows.Z - self.rows.Z.max(axis=0)
        u, along = rng.random((q, m)), precision.sum(axis=0)
        residual = self.Z - mean
        # The shift of an item's log weights means nothing, so it is redrawn first; see `gibbs.sweep`.
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

    def _draw_items(self, mean: np.ndarray, precision: np.ndarray, weights: Array, rng: Any) -> None:
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
        self, mean: np.ndarray, precision: np.ndarray, weights: Array, noise: np.ndarray, said: np.ndarray, rng: Any
    ) -> np.ndarray:
        """The items (q, m) with degrees given as zero drawn anew, each below what the person could have given."""
        Z = self.Z.copy()
        for j in np.flatnonzero(self.is_zero.any(axis=1)):
            slope = weights * (precision[j] @ (Z - mean)) + noise * (Z[j] - Z.mean(axis=0)) - said[j]
            curvature = weights * precision[j, j] + noise * (1.0 - 1.0 / len(Z))
            centre, scale = Z[j] - slope / curvature, curvature**-0.5
            highest = (self.highest_zero + Z.max(axis=0) - centre) / scale
            below = centre + scale * truncated_normal(np.full_like(highest, -np.inf), highest, rng.random(len(highest)))
            Z[j] = np.where(self.is_zero[j], below, Z[j])
        return _centred(Z)

    def _draw_deviation(self, precision: np.ndarray, rng: Any) -> None:
        """tau given all z."""
        q = len(self.Z)
        residual = _centred(self.rows.Z) - self.Z[:, self.item]
        variance = (np.trace(np.linalg.inv(precision)) - 1.0 / (precision.sum() / q)) / max(q - 1, 1)
        shape = PRIOR_SHAPE + 0.5 * (q - 1) * residual.shape[1]
        rate = PRIOR_SHAPE * PRIOR_SHARE * variance + 0.5 * float(np.square(residual).sum())
        self.deviation = float((rate / rng.standard_gamma(shape)) ** 0.5)

    def typical_deviation(self, n_sweeps: int) -> float:
        """tau, the root mean square of the last sweeps."""
        return float(np.sqrt(np.mean(np.square(self.history[-n_sweeps:]))))

    def _sums(self, A: np.ndarray) -> np.ndarray:
        """Sums (q, m) over the rows of every item of A (q, n)."""
        total: np.ndarray = np.add.reduceat(A, self.first, axis=1)
        return total


def fit_items(
    X: np.ndarray,
    L: np.ndarray,
    item: np.ndarray,
    rule: IntervalRule,
    settings: Settings,
    rng: np.random.Generator,
    grades: Grades | None = None,
) -> tuple[Fit, Posterior]:
    """The model of items with features X (m, d) and rows of labels L (n, q), and the posterior of the items.

    `item` (n,) numbers the item of every row; `grades` are those of the items. Parameters are estimated on at most
    `max_rows` items, drawn at random, graded ones first: from the labels, and then from what is known beside them.
    """
    order, q, n_kept = np.argsort(item, kind="stable"), L.shape[1], settings.n_sweeps - settings.n_burn
    L, item = rule.forget_silent(L[order]), item[order]
    directions = copy.deepcopy(rng).standard_normal((N_DIRECTIONS, q))
    feature_map = principal_map(X, settings.n_components) if settings.features else None
    chosen = np.arange(len(X))[choose_rows(len(X), settings.max_rows, grades, rng)]
    phi = _mean_features(feature_map, X[chosen])
    if q == 1:
        parameters, n = Parameters(np.zeros((len(phi), 1)), np.zeros((1, 1)), 0.0), len(X)
        size = float(settings.n_sweeps)
        model = Fit(rule, feature_map, parameters, Spread(0.0, 0.0), settings, directions, n, 0, size, 1.0)
        return model, _certain(np.ones((n, 1)))
    L_some, item_some = take_items(L, item, chosen)
    known = None if grades is None else grades[chosen]
    items = Items(rule, L_some, item_some, grades=None if rule.scale_matters else known)
    averages = Averages(items.Z, settings.n_samples, n_kept)
    counts = count_labels(L, rule)
    shape = ShapeUncertainty(len(chosen), q, float(q) if settings.strength is None else settings.strength)
    parameters, spread, _ = learn_parameters(phi, items, averages, counts, settings, rng, shape)
    n_graded = 0 if known is None else int(known.known.sum())
    model = Fit(
        rule,
        feature_map,
        parameters,
        spread,
        settings,
        directions,
        len(chosen),
        items.n_relaxed,
        *averages.diagnostics(),
        annotator_deviation=items.typical_deviation(n_kept),
        shape_shares=shape.shares(settings.weights, n_graded),
        n_graded=n_graded,
    )
    if known is not None:
        items.hold(known)
        found = calibrate_parameters(phi, items, parameters, spread, counts, settings, rng)
        tails, deviation = with_tails(directions, found.tail), items.typical_deviation(redraws(settings) // 2)
        model = replace(model, **found._asdict(), directions=tails, annotator_deviation=deviation)
    elif len(X) <= settings.max_rows:
        return model, averages.posterior(items.n_relaxed)
    posterior = posterior_of_items(model, X, L, item, rng, grades)
    return model, posterior if grades is None else posterior.with_known(grades)


def posterior_of_items(
    fit: Fit, X: np.ndarray, L: np.ndarray, item: np.ndarray, rng: Any, grades: Grades | None = None
) -> Posterior:
    """Posterior of items X (m, d) with rows of labels L (n, q), sorted by `item` (n,), at the parameters of a fit."""
    found = []
    for start in range(0, len(X), fit.settings.max_rows):
        block = np.arange(start, min(start + fit.settings.max_rows, len(X)))
        known = None if grades is None else grades[block]
        items = Items(fit.rule, *take_items(L, item, block), fit.annotator_deviation, known, fit.tail)
        mean, precision = fit.mean(X[block]), logistic_normal.precision(fit.parameters.covariance)
        n_sweeps = max(20, fit.settings.n_sweeps // 2)
        averages = Averages(items.Z, 0, n_sweeps)
        for k in range(n_sweeps):
            items.sweep(mean, precision, rng, reflect=k % 2 == 1)
            if k >= n_sweeps // 4:
                averages.add(items.Z)
        found.append(averages.posterior(items.n_relaxed))
    return Posterior(
        np.concatenate([p.mean for p in found]),
        np.concatenate([p.logit_centre for p in found]),
        np.concatenate([p.logit_width for p in found]),
        sum(p.n_relaxed for p in found),
    )


def enhance_items(fit: Fit, X: Array, L: Array, rng: np.random.Generator) -> Posterior:
    """Posterior of new rows X (m, d), L (m, q), each an item with one annotator."""
    if not get_backend(X).in_memory:
        raise InputTypeError(
            "Inversion was fitted with groups, and then takes new rows with labels in memory only: pass NumPy arrays, "
            "or the features alone to `predict`."
        )
    return posterior_of_items(fit, to_numpy(X), to_numpy(L), np.arange(len(X)), rng)


def refuse_beside_groups(noise: float) -> None:
    """Refuse what cannot be combined with several annotators."""
    if noise > 0:
        raise InputError(f"Inversion: noise={noise:g} beside groups counts errors twice; use noise=0 with groups.")


def take_items(L: np.ndarray, item: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of labels of some items (rising numbers), and their items numbered anew."""
    rows = np.isin(item, chosen)
    return L[rows], np.searchsorted(chosen, item[rows])


def _centred(Z: np.ndarray) -> np.ndarray:
    centred: np.ndarray = Z - Z.mean(axis=0)
    return centred

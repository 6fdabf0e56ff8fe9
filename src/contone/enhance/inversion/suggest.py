"""Which rows to grade: those whose degrees would bring the answers of all rows closest to the truth.

Grading tells the parameters theta = (a, delta) of `evidence`, the log scales of the labels and their mean, in which the
labels leave most open. With the score s(z) = d log p(z | theta) / d theta of a row whose z is known, and its moments
over what the labels of the row leave of z,

    m_i = E[s(z_i) | l_i],   V_i = Cov[s(z_i) | l_i],   J_i = Cov[d_i, s(z_i) | l_i]   (= the slope of d^_i in theta),

an error Delta of theta costs 1/2 Delta^T H Delta in the mean over the rows, H = mean of J_i^T diag(1 / d^_i) J_i. The
calibration moves theta by about G sum s(z_i), with G = (P + k I)^-1, the prior's precision P and the information I of
a row. Under their labels, the scores of the graded rows S have mean  sum m_i + sum V_i Delta  and covariance  sum V_i.
So the expected error is

    R(S) = 1/2 tr H [ G (mm^T + V) G + (G V - 1) P^-1 (G V - 1)^T ],     m = sum m_i,   V = sum V_i   over S.

The first part asks for rows that *together* are like all rows (m near 0): a batch of rows with large residuals would
pass for a large scale. The last one asks for rows whose labels leave much open. Of many random batches, without rows
that have the labels of another one and nearly its features, the one with the least R(S), less the error of the rows of
S themselves, is taken. Random batches, and not the minimum: row by row R can be made smaller, but real data are not
logistic normal, and rows at the edge of the model told less than it promised (docs/inversion-notebook.md).
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from contone.backends import get_backend
from contone.enhance.inversion import evidence, logistic_normal
from contone.enhance.inversion.assessment import ErrorSample
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import InputError
from contone.numerics.simplex import softmax
from contone.typing import Array

N_SWEEPS, N_BURN = 90, 20
"""Sweeps of the chain that the moments are taken from, and how many of them are left out."""
MOST_LABELS = 40
"""Labels whose parameters are looked at, those with the largest mean degree."""
MOST_DIRECTIONS = 24
"""Directions of theta that are looked at, those in which the answer is expected to be off most."""
ROWS_OF_MEAN = 100.0
"""How many graded rows the mean of the labels is worth: the middle of what `evidence` averages over."""
N_BATCHES = 1000
"""Batches that are drawn."""
NEAR = 0.05
"""Rows of one label set are near duplicates below this quantile of the distances between rows."""


class Moments(NamedTuple):
    """What grading single rows would add: p parameters, m rows."""

    mean: np.ndarray
    """m_i (m, p)."""
    covariance: np.ndarray
    """V_i (m, p, p)."""
    cost: np.ndarray
    """H (p, p)."""
    own: np.ndarray
    """Expected error (m,) of the rows themselves."""

    def along(self, change: np.ndarray) -> Moments:
        """For parameters x with theta = change x, change (p, r)."""
        covariance = np.einsum("pa,ipr,rb->iab", change, self.covariance, change, optimize=True)
        return Moments(self.mean @ change, covariance, change.T @ self.cost @ change, self.own)


def suggest_rows(fit: Fit, sample: ErrorSample, k: int, seed: int = 0) -> np.ndarray:
    """Numbers (k,) of the rows of a sample to grade, in the order of choice, or all that are left."""
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise InputError(f"suggest: k must be a whole number, 1 or more; got {k!r}.")
    free = np.flatnonzero(~sample.graded)
    if len(free) == 0:
        raise InputError("suggest: every row is graded already; there is nothing left to suggest.")
    k = min(int(k), len(free))
    if len(fit.parameters.covariance) == 1:
        return sample.numbers[free[:k]]
    return sample.numbers[_choose(fit, sample, k, free, np.random.default_rng(seed))]


def _choose(fit: Fit, sample: ErrorSample, k: int, free: np.ndarray, rng: np.random.Generator) -> Array:
    labels = np.sort(np.argsort(-sample.D.mean(axis=0), kind="stable")[:MOST_LABELS])
    prior = prior_covariance(fit, labels)
    moments = learn_moments(fit, sample, labels, rng)
    # theta = root vectors x with x ~ N(0, 1), in the directions with the largest expected cost.
    root = logistic_normal.square_root(prior)
    values, vectors = np.linalg.eigh(root.T @ moments.cost @ root)
    moments = moments.along(root @ vectors[:, np.argsort(-values)[:MOST_DIRECTIONS]])
    information = np.mean(moments.covariance, axis=0) + np.atleast_2d(np.cov(moments.mean.T, bias=True))
    precision = np.eye(len(information)) + fit.n_graded * information
    near, share = near_duplicates(fit, sample), len(sample.X) / sample.n
    return best_batch(moments, information, precision, k, free, near, share, rng)


def learn_moments(fit: Fit, sample: ErrorSample, labels: np.ndarray, rng: np.random.Generator) -> Moments:
    """Moments of the scores over a chain at the fitted parameters, for the parameters of these labels."""
    n, q = sample.L.shape
    rows = Rows(fit.rule, sample.L, fit.settings.noise, tail=fit.tail)
    mean, precision = fit.mean(sample.X), logistic_normal.precision(fit.parameters.covariance)
    draws: Any = get_backend(sample.X).draws(rng, sample.X)
    inverse = np.linalg.pinv(fit.parameters.covariance, rcond=1e-10, hermitian=True)
    p, kept = 2 * len(labels), N_SWEEPS - N_BURN
    first, second = np.zeros((n, p)), np.zeros((n, p, p))
    degrees, squares, cross = np.zeros((n, q)), np.zeros((n, q)), np.zeros((n, q, p))
    for k in range(N_SWEEPS):
        rows.sweep(mean, precision, draws)
        if k < N_BURN:
            continue
        D, s = softmax(rows.Z.T), score(rows.Z.T - mean.T, inverse, fit.tail)[:, [*labels, *(q + labels)]]
        first += s / kept
        second += s[:, :, None] * s[:, None, :] / kept
        degrees += D / kept
        squares += D * D / kept
        cross += D[:, :, None] * s[:, None, :] / kept
    slopes = cross - degrees[:, :, None] * first[:, None, :]
    weights = 1.0 / np.maximum(degrees, 1e-12)
    cost = np.einsum("ijp,ij,ijr->pr", slopes, weights, slopes, optimize=True) / n
    own = 0.5 * (weights * np.maximum(squares - degrees**2, 0.0)).sum(axis=1)
    return Moments(first, second - first[:, :, None] * first[:, None, :], cost, own)


def score(residuals: np.ndarray, inverse: np.ndarray, tail: float) -> Array:
    """d log p / d (a, delta), (m, 2 q), at a = 0 and delta = 0, of residuals e (m, q) under t_nu(0, Sigma).

    `inverse` (q, q) is that of Sigma among centred vectors; of delta, the part along the shift 1 says nothing.
    """
    E = residuals - residuals.mean(axis=1, keepdims=True)
    U = E @ inverse
    q = E.shape[1]
    weight = 1.0 if math.isinf(tail) else ((tail + q - 1) / (tail + (U * E).sum(axis=1)))[:, None]
    # Among centred vectors Sigma^-1 Sigma is 1 - 11^T / q, with this diagonal.
    return np.concatenate([weight * U * E - (1.0 - 1.0 / q), weight * U], axis=1)


def prior_covariance(fit: Fit, labels: np.ndarray) -> np.ndarray:
    """What is not known of (a, delta) of some labels (l,) once L is, (2 l, 2 l)."""
    n_labels = len(labels)
    own, common = np.mean(np.square(evidence.LABEL_SCALES)), fit.spread_deviation**2 + evidence.MODEL_DEVIATION**2
    prior = np.zeros((2 * n_labels, 2 * n_labels))
    prior[:n_labels, :n_labels] = own * np.eye(n_labels) + common
    prior[n_labels:, n_labels:] = fit.parameters.covariance[np.ix_(labels, labels)] / ROWS_OF_MEAN
    return prior


def expected_cost(m: np.ndarray, V: np.ndarray, G: np.ndarray, prior: np.ndarray, cost: np.ndarray) -> Array:
    """R (...,) of sums m (..., p) and V (..., p, p) of the moments of graded rows; the formula is at the top."""
    left = G @ V - np.eye(len(G))
    error = (m @ G)[..., :, None] * (m @ G)[..., None, :] + G @ V @ G + left @ prior @ np.swapaxes(left, -1, -2)
    return 0.5 * np.einsum("...pr,rp->...", error, cost)


def best_batch(
    moments: Moments,
    information: np.ndarray,
    precision: np.ndarray,
    k: int,
    free: np.ndarray,
    near: np.ndarray,
    share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """The batch (k,) of the rows `free` with the least expected error, of many that are drawn at random.

    Parameters
    ----------
    moments : Moments
        What a row adds, for the m rows of the sample.
    information, precision : (p, p)
        Of one row in the mean, and of the prior with the rows that are graded already.
    k : int
        Size of the batch.
    free : (m,)
        Which rows may be chosen.
    near : (m, m)
        Pairs of rows that add the same.
    share : float
        Rows of the sample per row of the data: the own error of a row counts for one of all rows.
    rng : Generator
        Source of the batches.
    """
    batches = np.stack([_draw_batch(k, free, near, rng) for _ in range(N_BATCHES)])
    chosen = np.zeros((N_BATCHES, len(near)))
    np.put_along_axis(chosen, batches, 1.0, axis=1)
    p = len(information)
    V = (chosen @ moments.covariance.reshape(len(near), -1)).reshape(-1, p, p)
    G = np.linalg.inv(precision + k * information)
    R = expected_cost(chosen @ moments.mean, V, G, np.linalg.inv(precision), moments.cost)
    best: np.ndarray = batches[np.argmin(R - share * (chosen @ moments.own) / len(near))]
    return best


def _draw_batch(k: int, free: np.ndarray, near: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """k of the rows `free` in a random order, near duplicates of earlier ones only where nothing else is left."""
    order = rng.permutation(free)
    chosen: list[int] = []
    passed: list[int] = []
    for row in order:
        if len(chosen) == k:
            break
        (passed if near[row, chosen].any() else chosen).append(int(row))
    return np.array((chosen + passed)[:k], dtype=np.int64)


def near_duplicates(fit: Fit, sample: ErrorSample) -> np.ndarray:
    """Pairs (m, m) of rows with the same labels whose means of z are close, with the features that matter."""
    same: np.ndarray = ((sample.L > 0)[:, None, :] == (sample.L > 0)[None, :, :]).all(axis=2)
    if fit.feature_map is None:
        np.fill_diagonal(same, False)
        return same
    features = np.asarray(fit.feature_map(sample.X))
    squared = np.square(features).sum(axis=1)
    distance = squared[:, None] + squared[None, :] - 2.0 * features @ features.T
    limit = np.quantile(distance[np.triu_indices(len(distance), 1)], NEAR) if len(distance) > 1 else 0.0
    found: np.ndarray = same & (distance <= limit)
    np.fill_diagonal(found, False)
    return found

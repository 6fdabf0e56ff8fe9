"""Data like the user's with known truth: draws of the parameters, of distributions and of labels from a fitted model.

    theta* ~ p(theta | X, L),   z*_i ~ N(B*^T phi(x_i), Sigma*),   d*_i = softmax(z*_i),   l*_i = degrade(d*_i)

The posterior of the parameters is approximated by a normal around the fit (Laplace), with the information that the
*labels* hold, not the one that z would hold. By Fisher's identity the score of a row's labels is the posterior mean of
the score of its z, so the information is the sum over rows of the squares of such means (`learn_information`). Where
it is zero the labels leave a direction open, and the draws are those of the prior. In whitened residuals e, with
z = B^T phi + H e and H H^T = Sigma, the scores are e for the mean and e e^T - I for the shape of Sigma:

- B: precision (Phi Phi^T) x R + ridge x I, with the share R of the information on the mean that the labels keep;
- Sigma* = H exp(A) H^T, A symmetric and normal; the prior of Sigma is worth `strength` rows;
- the overall spread: log normal with the moments that the histogram of |L| gave it.

Correlations between the three are ignored.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.special import ndtri

from contone.backends import get_backend
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.logistic_normal import Flips, Parameters, Spread, variance_factor
from contone.enhance.inversion.model import Fit, mean_features
from contone.enhance.inversion.posterior import shape_scores
from contone.enhance.inversion.sampler import Rows
from contone.measurements import IntervalRule, Order
from contone.measurements.order import in_order_of
from contone.numerics.simplex import softmax
from contone.typing import Array

N_SWEEPS = 80
"""Sweeps for posterior means of scores; the first fifth is left out."""
MAX_LABELS = 25
"""Up to this many labels all entries of the shape of Sigma are looked at; beyond, its diagonal stands for the rest."""


@dataclass(frozen=True)
class Information:
    """What the labels of the rows say about the parameters, in whitened residuals (r = q - 1 dimensions)."""

    mean: np.ndarray
    """R (r, r): the share of a row's information on its mean that its labels keep, from `rarest_share` to I."""
    shape: np.ndarray
    """(s, s): information of all rows on the shape of Sigma, in the order of `_pairs`."""
    gram: np.ndarray
    """Phi Phi^T (p, p)."""


class Draw(NamedTuple):
    """Distributions and labels with the parameters that made them."""

    distributions: np.ndarray
    """(n, q)."""
    labels: np.ndarray
    """(n, q), 0 and 1."""
    parameters: Parameters


def learn_information(fit: Fit, X: np.ndarray, L: np.ndarray, rng: np.random.Generator) -> Information:
    """The information that labels L (n, q) of rows X (n, d) hold about the parameters of a fit, q > 1.

    Sums of squares of averages over a chain would be too large by the noise of the averages; products of the averages
    over its two halves are not.
    """
    phi, (n, q) = mean_features(fit.feature_map, X), L.shape
    product, r = _score_products(fit, X, L, rng), q - 1
    shape = slice(r, len(product) - q)
    least = rarest_share(max(fit.n_rows, n))
    mean = _clipped(product[:r, :r] / n, least, 1.0)
    return Information(mean, _clipped(product[shape, shape], 0.0, np.inf), phi @ phi.T)


def _score_products(fit: Fit, X: Array, L: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sums over rows of products of E[s | l], for the scores of the mean (r), of the shape, and of the labels' means.

    The last are those of factors exp(b_j) of the means of all rows, (q,).
    """
    mean, precision = fit.mean(X), logistic_normal.precision(fit.parameters.covariance)
    whiten = np.linalg.pinv(_whitening(fit.parameters.covariance)[1])
    first, second = _pairs(len(whiten))
    rows = Rows(fit.rule, fit.settings.noise.forget_silent(fit.rule, L), fit.settings.noise)
    draws = get_backend(X).draws(rng, X)
    n_burn, half = N_SWEEPS // 5, (N_SWEEPS - N_SWEEPS // 5) // 2
    averages = np.zeros((2, len(whiten) + len(first) + len(mean), X.shape[0]))
    for k in range(n_burn + 2 * half):
        rows.sweep(mean, precision, draws)
        if k >= n_burn:
            e = whiten @ (rows.Z - rows.Z.mean(axis=0) - mean)
            scores = np.concatenate([e, shape_scores(e, first, second), (whiten.T @ e) * mean])
            averages[(k - n_burn) // half] += scores / half
    product: np.ndarray = averages[0] @ averages[1].T
    return 0.5 * product + 0.5 * product.T


def free_spread(fit: Fit, X: Array, L: np.ndarray) -> Spread:
    """The spread of a fit with a deviation that knows of the rest of the model, from rows X (n, d) and L (n, q).

    The histogram of |L| tells the spread with B and the shape of Sigma held. Under a bar these follow the spread: a
    label is marked where z_j passes a fixed number, so that q frequencies determine q - 1 differences of means *and*
    the scale, by way of sum_j z_j = 0; and whatever is not known of the scales of single labels is not known of the
    whole. With the information I of all scores, the prior P of the shape (none of the overall scale) and the slope g of
    log s, the variance of log s is g^T (I + P)^-1 g; where the prior of the spread knows more, it is that one's.
    """
    values, q = _whitening(fit.parameters.covariance)[0], L.shape[1]
    r, (first, second) = q - 1, _pairs(q - 1)
    if fit.spread.at_edge():  # as good as not told
        return Spread(fit.spread.mean, logistic_normal.spread_prior(fit.rule).deviation)
    information = _score_products(fit, X, L, np.random.default_rng(0))
    # No direction has negative information: the lowest eigenvalue says how far chance reaches.
    chance = max(-float(np.linalg.eigvalsh(information)[0]), 0.0)
    information = _clipped(information - chance * np.eye(len(information)), 0.0, np.inf) * (fit.n_rows / len(L))
    diagonal = np.concatenate([np.zeros(r), first == second, np.zeros(q)])
    shape = np.concatenate([np.zeros(r), np.ones(len(first)), np.zeros(q)])
    prior = fit.settings.worth(q) * (np.diag(shape) - np.outer(diagonal, diagonal) / r)
    squares = np.concatenate([np.zeros(r), np.zeros(len(first)), 2.0 * np.square(fit.mean(X)).mean(axis=1)])
    squares[diagonal > 0] = math.sqrt(2.0) * values  # how the mean square of z changes
    slope = squares / (2.0 * q * fit.spread.mean**2)
    known = information + prior + 0.5 * np.eye(len(prior))
    log_deviation = min(math.sqrt(float(slope @ np.linalg.solve(known, slope))), fit.rule.spread_prior[1])
    return Spread(fit.spread.mean, max(fit.spread.deviation, fit.spread.mean * log_deviation))


def rarest_share(n: int) -> float:
    """The share of a row's information on a mean that labels keep which are marked in half a row of n.

    A label that is never marked has no information of its own at the fit, where the likelihood is flat; on one side of
    it, though, it falls as soon as the label would be marked. Half a mark stands for that. Without it the draws would
    be those of the flat prior of the intercept, most of which contradict the labels.
    """
    p = 0.5 / max(n, 1)
    density = math.exp(-0.5 * float(ndtri(p)) ** 2) / math.sqrt(2 * math.pi)
    return density**2 / (p * (1 - p))


def with_graded_rows(information: Information, n: int, n_graded: int) -> Information:
    """The information of n rows where the degrees of some are known: these rows keep all of it."""
    r, s = len(information.mean), len(information.shape)
    share = n_graded / n
    mean = (1.0 - share) * information.mean + share * np.eye(r)
    return Information(mean, (1.0 - share) * information.shape + n_graded * np.eye(s), information.gram)


def draw_parameters(
    fit: Fit, information: Information, X: np.ndarray, rng: np.random.Generator, score: float | None = None
) -> Parameters:
    """B, Sigma and their overall spread, from the posterior; see the top of this file.

    `score` is the normal score of the spread in its posterior; without one it is drawn, too.
    """
    now, q = fit.parameters, len(fit.parameters.covariance)
    _, unwhiten = _whitening(now.covariance)
    coefficients = now.coefficients + _draw_mean(information, now.theta, rng) @ unwhiten.T
    covariance = unwhiten @ _draw_shape(information.shape, fit.settings.worth(q), q - 1, rng) @ unwhiten.T
    drawn = Parameters(coefficients, covariance, now.theta)
    wanted = fit.believed_spread.at(rng.standard_normal() if score is None else score)
    mean = replace(fit, parameters=drawn).mean(X)
    size = float(np.sqrt(np.mean(np.square(mean)) + variance_factor(fit.tail) * np.trace(covariance) / q))
    return drawn.scaled(wanted / size) if size > 0 else drawn


def even_scores(k: int, rng: np.random.Generator) -> np.ndarray:
    """k normal scores in random order: evenly spaced quantiles, brought to the variance 1 (0 where k is 1).

    A few models then stand for the whole posterior of the spread, whatever the seed; few independent draws may all lie
    on one side of it.
    """
    scores: np.ndarray = ndtri((rng.permutation(k) + 0.5) / k)
    if k > 1:
        scores /= float(np.sqrt(np.mean(np.square(scores))))
    return scores


def draw_rows(
    fit: Fit, parameters: Parameters, X: np.ndarray, rng: np.random.Generator, given: np.ndarray | None = None
) -> Draw:
    """Distributions of rows X (n, d), and the labels that the rule, with the fit's share of wrong entries, gives.

    `given` (n, q) are labels whose numbers (and levels) per row are kept, for a rule that does not say them (`Order`).
    """
    D = softmax(replace(fit, parameters=parameters).draw(X, rng))
    return Draw(D, draw_labels(fit.rule, D, fit.settings.noise, rng, given), parameters)


def draw_labels(
    rule: IntervalRule, D: np.ndarray, noise: Flips, rng: np.random.Generator, given: np.ndarray | None = None
) -> np.ndarray:
    """Labels (n, q) of distributions D (n, q), some wrong; no row loses all, unless given ones have none."""
    if isinstance(rule, Order) and given is not None:
        return in_order_of(D, given)
    positive = np.asarray(rule._apply(D))
    flipped = noise.applied(positive, rng)
    if given is not None and (given == 0).all(axis=1).any():
        return flipped.astype(float)
    return np.where(flipped.any(axis=1, keepdims=True), flipped, positive).astype(float)


def _whitening(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positive eigenvalues of a centred Sigma (q, q), and H (q, q - 1) with H H^T = Sigma."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values[1:], 1e-12 * values[-1])
    return values, vectors[:, 1:] * np.sqrt(values)


def _pairs(r: int) -> tuple[np.ndarray, np.ndarray]:
    """Which entries (j, k), j <= k, of a symmetric (r, r) matrix have a score of their own."""
    return np.triu_indices(r) if r < MAX_LABELS else (np.arange(r), np.arange(r))


def _draw_shape(information: np.ndarray, strength: float, r: int, rng: np.random.Generator) -> np.ndarray:
    """exp(A) (r, r), with A normal around 0: its precision is the labels' information and the prior's."""
    first, second = _pairs(r)
    values, vectors = np.linalg.eigh(information)
    entries = vectors @ (rng.standard_normal(len(values)) / np.sqrt(values + strength))
    A = np.zeros((r, r))
    A[first, second] = entries
    if len(first) == r:  # only the diagonal was looked at; the others are known as well as it is in the mean
        others = np.triu_indices(r, 1)
        A[others] = rng.standard_normal(len(others[0])) / np.sqrt(values.mean() + strength)
    diagonal = np.diag(A).copy()
    A = A + A.T
    np.fill_diagonal(A, np.sqrt(2.0) * diagonal)
    drawn: np.ndarray = expm(A)
    return drawn


def _draw_mean(information: Information, theta: float, rng: np.random.Generator) -> Array:
    """What to add to B, in whitened coordinates (p, r)."""
    share, vectors = np.linalg.eigh(information.mean)
    p = len(information.gram)
    ridge = np.full(p, 1.0 / theta if theta > 0 else 1e12)
    ridge[0] = 1.0 / logistic_normal.FLAT
    columns = []
    for kept in share:
        lower = logistic_normal.root_of(kept * information.gram, ridge)
        columns.append(np.linalg.solve(lower.T, rng.standard_normal(p)))
    return np.stack(columns, axis=1) @ vectors.T


def _clipped(matrix: np.ndarray, least: float, most: float) -> Array:
    """A symmetric matrix with its eigenvalues cut to [least, most]."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.clip(values, least, most)) @ vectors.T

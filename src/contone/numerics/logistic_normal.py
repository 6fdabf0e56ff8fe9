"""Parameters of a logistic-normal model with features: conjugate draws and the spread that the cardinalities tell.

    z_i = B^T phi_i + e_i,   e_i ~ N(0, Sigma),   d_i = softmax(z_i)

Softmax does not see a common shift, so z, B and Sigma are kept *centred*: z sums to zero over the labels and Sigma has
the null vector 1. Given z, the priors

    Sigma ~ inverse Wishart, centred at a multiple of I - 11^T/q, worth `strength` rows;
    row k of B ~ N(0, theta_g Sigma) for the features k of group g;   theta_g ~ inverse gamma

are conjugate, and everything depends on z through the sums Phi Phi^T, Phi z and z z^T over rows only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

FLAT = 1e3
"""Prior variance of the intercept in units of Sigma: large enough to leave it to the data."""


@dataclass(frozen=True)
class Parameters:
    """B (p, q), Sigma (q, q), both centred, and the variance theta (g,) of each feature group, in units of Sigma."""

    coefficients: np.ndarray
    covariance: np.ndarray
    theta: np.ndarray

    def scaled(self, factor: float) -> Parameters:
        """The same shape, with z spread `factor` times as wide."""
        return Parameters(self.coefficients * factor, self.covariance * factor**2, self.theta)


def centring(q: int) -> np.ndarray:
    """I - 11^T / q."""
    return np.eye(q) - 1.0 / q


def precision(covariance: np.ndarray) -> np.ndarray:
    """Inverse of the centred Sigma, given its mean variance along the shift as well (any value would do)."""
    q = len(covariance)
    return np.linalg.inv(covariance + np.trace(covariance) / (q * max(q - 1, 1)))


def square_root(covariance: np.ndarray) -> np.ndarray:
    """A (q, q) matrix H with H H^T = Sigma, for a Sigma with a null space."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def draw_coefficients(
    gram: np.ndarray, cross: np.ndarray, groups: np.ndarray, current: Parameters, rng: np.random.Generator
) -> np.ndarray:
    """B (p, q) given z: matrix normal around ridge regression.

    Parameters
    ----------
    gram : (p, p)
        Phi Phi^T; the first feature is the constant.
    cross : (p, q)
        Phi z.
    groups : (p - 1,)
        Group of each other feature.
    """
    variance = np.concatenate([[FLAT], current.theta[groups]])
    lower = np.linalg.cholesky(gram + np.diag(1.0 / variance))
    noise = rng.standard_normal(cross.shape) @ square_root(current.covariance).T
    return solve_triangular(lower, solve_triangular(lower, cross, lower=True) + noise, lower=True, trans="T")


def draw_theta(
    coefficients: np.ndarray, groups: np.ndarray, covariance: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Variance (g,) of the coefficients of each feature group: how much of the features the labels bear out.

    The prior is inverse gamma with shape 1 and scale 0.1: features of unit total variance explain about a tenth as much
    as is left over, give or take an order of magnitude.
    """
    q = len(covariance)
    inside = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    size = np.einsum("kj,jl,kl->k", coefficients[1:], inside, coefficients[1:])
    n_groups = int(groups.max()) + 1 if len(groups) else 0
    shape = 1.0 + 0.5 * (q - 1) * np.bincount(groups, minlength=n_groups)
    scale = 0.1 + 0.5 * np.bincount(groups, weights=size, minlength=n_groups)
    return scale / rng.standard_gamma(shape)


def draw_covariance(scatter: np.ndarray, n: int, strength: float, rng: np.random.Generator) -> np.ndarray:
    """Sigma (q, q) given the scatter sum_i e_i e_i^T of n centred residuals.

    The prior is worth `strength` rows of equal and unrelated labels with the spread of the scatter itself: it bears on
    the shape of Sigma, not on its size.
    """
    q = len(scatter)
    prior = np.trace(scatter) / (n * max(q - 1, 1)) * centring(q)
    mode = (scatter + strength * prior) / (n + strength)
    # Bartlett: Sigma^-1 = C A A^T C^T / dof, in q - 1 coordinates that leave the shift out.
    basis = contrasts(q)
    dof = n + strength
    factor = np.linalg.cholesky(np.linalg.inv(basis.T @ mode @ basis))
    triangle = np.tril(rng.standard_normal((q - 1, q - 1)), -1)
    triangle[np.diag_indices(q - 1)] = np.sqrt(rng.chisquare(np.maximum(dof - np.arange(q - 1), 1.0)))
    half = solve_triangular(factor @ triangle, np.eye(q - 1), lower=True) * np.sqrt(dof)
    inside = basis @ half.T
    return inside @ inside.T


def contrasts(q: int) -> np.ndarray:
    """An orthonormal basis (q, q - 1) of the vectors that sum to zero (Helmert)."""
    basis = np.zeros((q, q - 1))
    for k in range(1, q):
        basis[:k, k - 1] = 1.0
        basis[k, k - 1] = -k
    return basis / np.linalg.norm(basis, axis=0)


def spread_posterior(
    Z: np.ndarray,
    counts: np.ndarray,
    cardinality: Callable[[np.ndarray], np.ndarray],
    grid: np.ndarray,
    prior: tuple[float, float],
) -> np.ndarray:
    """Posterior probabilities (k,) of the spreads on `grid`, from the histogram of |L|.

    Draws Z (m, q) from the model, at spread 1, are widened to every spread s on the grid and degraded; their
    cardinalities, half a count added to each, give the multinomial likelihood of the observed `counts` (q,). The prior
    is log normal: log s ~ N(log prior[0], prior[1]^2).
    """
    score = _log_prior(grid, prior) + _log_likelihood(Z, counts, cardinality, grid)
    return np.exp(score - logsumexp(score))


def spread_evidence(
    Z: np.ndarray,
    counts: np.ndarray,
    cardinality: Callable[[np.ndarray], np.ndarray],
    grid: np.ndarray,
    prior: tuple[float, float],
) -> float:
    """Log likelihood of the cardinalities under a rule, averaged over the prior of the spread; arguments as above."""
    return float(logsumexp(_log_prior(grid, prior) + _log_likelihood(Z, counts, cardinality, grid)))


def _log_prior(grid: np.ndarray, prior: tuple[float, float]) -> np.ndarray:
    score = -0.5 * np.square(np.log(grid / prior[0]) / prior[1])
    return score - logsumexp(score)


def _log_likelihood(
    Z: np.ndarray, counts: np.ndarray, cardinality: Callable[[np.ndarray], np.ndarray], grid: np.ndarray
) -> np.ndarray:
    q = Z.shape[1]
    # The order of a row does not depend on the spread: sort once.
    ranked = -np.sort(-Z, axis=1)
    ranked -= ranked[:, :1]
    score = np.empty(len(grid))
    for k, s in enumerate(grid):
        W = np.exp(s * ranked)
        size = cardinality(W / W.sum(axis=1, keepdims=True))
        simulated = np.bincount(size, minlength=q + 1)[1 : q + 1] + 0.5
        score[k] = counts @ np.log(simulated / simulated.sum())
    return score

"""PT-Bayes: Gaussian classes with weighted moments, and Bayes' rule.

The original turns every instance into single-label examples drawn with probability d_ij ("problem transformation") and
fits one Gaussian with a full covariance to each label. What the draw estimates is known in closed form: every instance
belongs to label j with weight d_ij. So, without drawing,

    pi_j = 1/n sum_i d_ij                                       mu_j = sum_i d_ij x_i / sum_i d_ij
    Sigma_j = sum_i d_ij (x_i - mu_j)(x_i - mu_j)^T / sum_i d_ij + ridge v I,     v = mean variance of the features

    p_j(x) ~ pi_j N(x; mu_j, Sigma_j), in logarithms; floored at 1e-9 and renormalised.

Reference: Geng, Label Distribution Learning, TKDE 2016.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from contone.base import POSITIVE, DistributionLearner, estimator, parameter
from contone.exceptions import InputError
from contone.numerics.simplex import normalise_rows, softmax
from contone.numerics.solution import Solution
from contone.typing import Array

FLOOR = 1e-9
"""No label gets less than this before the rows are renormalised, as in the original."""


FARTHEST = 1e100
"""New rows count as being at most this many largest deviations away."""
LONGEST = 1e150
"""The same in deviations of a Gaussian, whose ridge may be tiny: squares stay in floating point."""


@estimator
class PTBayes(DistributionLearner):
    """Label distribution learning by Bayes' rule with one Gaussian per label; deterministic.

    Parameters
    ----------
    ridge : float, default=1e-6
        What is added to the diagonal of every covariance, as a share of the mean variance of the features. Raise it
        when there are nearly as many features as rows: an unregularised Gaussian is then sure of anything.

    Notes
    -----
    A unit that all features share makes no difference, however small or large. Units of their own do, because the
    ridge is one number for all of them: a feature whose deviation is below ``sqrt(ridge)`` of the others' (a
    thousandth, by default) lies inside the ridge and says nothing. Standardise features that have different units.

    Examples
    --------
    >>> X, D = [[-1.0], [0.0], [1.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    >>> PTBayes().fit(X, D).predict([[0.0]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    reference = "Geng, Label Distribution Learning, IEEE TKDE 28(7), 2016"
    ridge: float = parameter(POSITIVE, default=1e-6)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        self.centre_ = X.mean(axis=0)
        self.unit_ = float(np.abs(X - self.centre_).max()) or 1.0
        Z = self._in_units(X)
        # Paper: the original adds 1e-14 whatever the units of the features; a share of their variance has no units.
        added = self.ridge * (Z.var(axis=0).mean() or 1.0)
        try:
            self.classes_ = weighted_gaussians(Z, D, added)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"PTBayes: with ridge={self.ridge!r} the covariance of a label is singular: features repeat others, "
                "or rows are few. Raise ridge, e.g. to 1e-6."
            ) from error
        return Solution(self.classes_)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        # A covariance and its factor per label, and a copy of the rows, centred.
        return super()._fit_bytes(n, d, q) + 8.0 * (2 * q * d * d + n * d)

    def _predict(self, X: np.ndarray) -> Array:
        return normalise_rows(np.maximum(softmax(log_joint(self._in_units(X), self.classes_)), FLOOR))

    def _in_units(self, X: np.ndarray) -> Array:
        """X with the largest deviation of the training rows as unit, so that squares stay in floating point."""
        with np.errstate(over="ignore"):
            return np.clip((X - self.centre_) / self.unit_, -FARTHEST, FARTHEST)


class Gaussians(NamedTuple):
    """One Gaussian per label."""

    log_prior: np.ndarray
    """log pi_j, (q,); minus infinity for a label without mass."""
    means: np.ndarray
    """mu_j, (q, d)."""
    factors: np.ndarray
    """Lower Cholesky factors of Sigma_j, (q, d, d)."""


def weighted_gaussians(X: np.ndarray, D: np.ndarray, added: float) -> Gaussians:
    """Priors, means and covariances of X (n, d) under the weights of each column of D (n, q)."""
    n, d = X.shape
    mass = D.sum(axis=0)
    # A label without mass gets the moments of all rows; its prior rules it out.
    weights = np.where(mass > 0, D / np.where(mass > 0, mass, 1.0), 1.0 / n)
    means = weights.T @ X
    factors = np.empty((len(mass), d, d))
    for j, mu in enumerate(means):
        centred = X - mu
        covariance = (weights[:, j, None] * centred).T @ centred
        covariance[np.diag_indices(d)] += added
        factors[j] = np.linalg.cholesky(covariance)
    with np.errstate(divide="ignore"):
        return Gaussians(np.log(mass / n), means, factors)


def log_joint(X: np.ndarray, classes: Gaussians) -> Array:
    """log pi_j + log N(x_i; mu_j, Sigma_j) without the constant, (n, q)."""
    answer = np.empty((len(X), len(classes.means)))
    for j, (mu, factor) in enumerate(zip(classes.means, classes.factors, strict=True)):
        whitened = np.clip(solve_triangular(factor, (X - mu).T, lower=True, check_finite=False), -LONGEST, LONGEST)
        answer[:, j] = -0.5 * np.sum(whitened**2, axis=0) - np.log(np.diag(factor)).sum()
    return answer + classes.log_prior

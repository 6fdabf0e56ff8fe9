"""LDL-SCL: label distribution learning with correlations of labels that are local to groups of rows.

Clusters l = 1..m of the training distributions, with centres P_l, get a positive code c_il for each row; the code adds
to the logits, and is to be small where the prediction is far from the centre:

    p_i = softmax(Theta^T x_i + b + W^T c_i)

    min_{Theta, b, W, c > 0}  1/n sum_i KL(d_i || p_i) + locality / (n m) sum_il c_il ||p_i - P_l||^2
                              + barrier / (n m) sum_il 1 / c_il + l2/2 (||Theta||^2 + ||W||^2)

with c = exp(gamma), so that nothing is constrained. For given p the best code is c_il^2 = barrier / (locality
||p_i - P_l||^2) where W = 0. New rows get their codes by a linear regression of c on x.

Reference: X. Zheng, X. Jia, W. Li. Label distribution learning by exploiting sample correlations locally. AAAI 2018;
X. Jia, Z. Li, X. Zheng, W. Li, S.-J. Huang. Label distribution learning with label correlations on local samples. IEEE
TKDE, 2021.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, DistributionLearner, estimator, parameter
from contone.numerics.optimise import join, lbfgs, split
from contone.numerics.scaling import standardisation, unscaled
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.predict.maxent import entropy
from contone.runtime.machine import pieces_by_width, total
from contone.typing import Array, Seed

LARGEST_LOG_CODE = 30.0
"""gamma stays within +-30; what lies beyond is no different."""


@estimator
class LDLSCL(DistributionLearner):
    """Maximum entropy whose logits also depend on a code of nearness to clusters of the distributions.

    Parameters
    ----------
    n_clusters : int, default=5
        m, clusters of the training distributions by k-means; cut to the number of distinct ones.
    locality : float, default=1e-3
        Weight of the distances to the centres.
    barrier : float, default=1e-3
        Weight of 1 / c, which keeps the codes positive.
    l2 : float, default=1e-3
        Weight of the penalty on Theta and W.
    standardize : bool, default=True
        Use z-scores of the features.
    max_iter : int, default=50
        Iterations of L-BFGS: part of the model, no warning. The codes are one free number per row and cluster, so that
        training rows can be fitted as well as one likes, while new rows have to do with a regression of the codes:
        after thousands of iterations predictions are useless.
    tol : float, default=1e-6
        Stop before `max_iter` when no entry of the gradient is larger.
    random_state : int, RandomState or None, default=0
        Start of k-means.

    Attributes
    ----------
    coef_ : (d, q)
        Theta, of scaled features.
    intercept_ : (q,)
        b.
    code_coef_ : (m, q)
        W.
    codes_ : (n, m)
        c of the training rows.
    centres_ : (m, q)
        P.

    Notes
    -----
    `n_clusters`, `locality` and `barrier` are those of the public implementation, which trains by Adam, has no penalty,
    divides the squared distances by q and applies the softmax twice; there is no preset that behaves as it does.
    `l2` and `max_iter` are ours, set after cross-validation on SJAFFE, Yeast-cold and Yeast-alpha.

    Examples
    --------
    >>> X, D = [[-1.0], [0.0], [1.0]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> LDLSCL(n_clusters=2).fit(X, D).predict([[-1.0], [1.0]]).round(1).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """

    reference = "Zheng, Jia & Li, AAAI 2018; Jia et al., IEEE TKDE 2021"
    _shares_rows = True
    n_clusters: int = parameter(COUNT, default=5)
    locality: float = parameter(NOT_NEGATIVE, default=1e-3)
    barrier: float = parameter(NOT_NEGATIVE, default=1e-3)
    l2: float = parameter(NOT_NEGATIVE, default=1e-3)
    standardize: bool = parameter("boolean", default=True)
    max_iter: int = parameter(COUNT, default=50)
    tol: float = parameter(POSITIVE, default=1e-6)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        self._scaling = standardisation(X) if self.standardize else unscaled
        X = self._scaling(X)
        self.centres_ = cluster_centres(D, self.n_clusters, self.random_state)
        problem = Problem(X, D, self.centres_, float(self.locality), float(self.barrier), float(self.l2))
        shapes = problem.shapes
        # Theta = b = W = 0 and c = 1: the uniform answer, and codes that say nothing.
        start = np.zeros(sum(int(np.prod(shape)) for shape in shapes))
        solution = lbfgs(lambda w: objective(split(w, shapes), problem), start, tol=self.tol, max_iter=self.max_iter)
        self.coef_, self.intercept_, self.code_coef_, gamma = split(solution.value, shapes)
        self.codes_ = codes(gamma)
        # Paper: what a code outside those of the training rows would mean is open; here it is cut to their range.
        self._code_range = self.codes_.min(axis=0), self.codes_.max(axis=0)
        self._regression = LinearRegression().fit(X, self.codes_)
        self.n_iter_ = solution.n_iter
        value = solution.objective - entropy(D)
        return Solution((self.coef_, self.intercept_, self.code_coef_), value, solution.residual, solution.n_iter)

    def _predict(self, X: np.ndarray) -> Array:
        X = self._scaling(X)
        C = np.clip(self._regression.predict(X).reshape(len(X), -1), *self._code_range)
        return softmax(X @ self.coef_ + self.intercept_ + C @ self.code_coef_)


class Problem(NamedTuple):
    """What stays the same while the objective is minimised."""

    X: np.ndarray
    """(n, d)."""
    D: np.ndarray
    """(n, q)."""
    centres: np.ndarray
    """(m, q)."""
    locality: float
    barrier: float
    l2: float

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of Theta, b, W, gamma."""
        (n, d), (m, q) = self.X.shape, self.centres.shape
        return [(d, q), (q,), (m, q), (n, m)]


def cluster_centres(D: np.ndarray, n_clusters: int, random_state: Seed) -> Array:
    """Centres (m, q) of k-means on the rows of D (n, q)."""
    m = min(n_clusters, len(np.unique(D, axis=0)))
    return KMeans(m, n_init=4, random_state=random_state).fit(D).cluster_centers_


def codes(gamma: np.ndarray) -> Array:
    """c = exp(gamma), (n, m)."""
    return np.exp(np.clip(gamma, -LARGEST_LOG_CODE, LARGEST_LOG_CODE))


def objective(parameters: list[np.ndarray], problem: Problem) -> tuple[float, np.ndarray]:
    """The objective plus the entropy of D, which is constant, and the gradient by the joined parameters.

    Rows go piece by piece, as those of `MaxEnt` do.
    """
    Theta, b, W, gamma = parameters
    centres = problem.centres
    n, m = gamma.shape
    a, e = problem.locality / (n * m), problem.barrier / (n * m)
    by_gamma = np.empty_like(gamma)

    def of_piece(rows: slice) -> np.ndarray:
        X, D, C = problem.X[rows], problem.D[rows], codes(gamma[rows])
        Z = X @ Theta + b + C @ W
        log_partition = logsumexp(Z, axis=1, keepdims=True)
        P = np.exp(Z - log_partition)
        distance = np.sum(P**2, axis=1, keepdims=True) - 2.0 * P @ centres.T + np.sum(centres**2, axis=1)
        fit = np.sum(log_partition) / n - np.vdot(D, Z) / n
        value = float(fit + a * np.vdot(C, distance) + e * np.sum(1.0 / C))
        by_P = 2.0 * a * (P * C.sum(axis=1, keepdims=True) - C @ centres)
        by_Z = (P - D) / n + P * (by_P - np.sum(P * by_P, axis=1, keepdims=True))
        by_C = by_Z @ W.T + a * distance - e / C**2
        by_gamma[rows] = (np.abs(gamma[rows]) <= LARGEST_LOG_CODE) * by_C * C
        return join([value, X.T @ by_Z, by_Z.sum(axis=0), C.T @ by_Z])

    sums = total(of_piece, pieces_by_width(n, problem.X.shape[1] + problem.D.shape[1] + m))
    value = sums[0] + 0.5 * problem.l2 * float(np.sum(Theta**2) + np.sum(W**2))
    return float(value), np.append(sums[1:] + problem.l2 * join([Theta, 0.0 * b, W]), by_gamma)

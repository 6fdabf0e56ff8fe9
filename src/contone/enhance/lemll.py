"""LEMLL, label-enhanced multi-label learning: numerical labels and their regression on the features, found together.

    min_{U, Theta, b}  sum_i loss(||u_i - Theta^T phi(x_i) - b||)   regression, loss(r) = max(r - epsilon, 0)^2
                       + ridge ||Theta||^2
                       + closeness ||U - Y||^2                       Y = 2 L - 1, the logical labels as -1 and 1
                       + topology tr(U^T M U)                        M of locally linear embedding (`numerics.lle`)

The problem is convex and smooth, and is solved in all of (U, Theta, b) at once (`minimise`). The authors alternate
between U and reweighted least squares for Theta, which has the same minimum and comes to it slowly where the features
can fit every row: the weights max(1 - epsilon / r_i, 0) go to zero there.
Reference: Shao, Xu and Geng, "Multi-Label Learning with Label Enhancement", ICDM 2018 (arXiv 1706.08323).
"""

import math
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from sklearn.kernel_approximation import Nystroem

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, InductiveMixin, estimator, parameter
from contone.measurements import asked_frequencies, fill_unasked
from contone.numerics.lle import lle_matrix, lle_weights
from contone.numerics.optimise import lbfgs
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets, Seed


@estimator
class LEMLL(InductiveMixin, Enhancer):
    """Label-enhanced multi-label learning (Shao, Xu, Geng 2018); *unverified against the original*.

        min  sum_i max(||u_i - Theta^T phi(x_i) - b|| - epsilon, 0)^2 + ridge ||Theta||^2
             + closeness ||U - Y||^2 + topology tr(U^T M U),           D^ = softmax(scale U)

    No code of the authors is public and the weights are not in print, so this is the objective that the abstract
    describes, with all weights 1 and z-scored features, chosen before any score was seen. With ``preset("paper")`` it
    comes within 4 % of the published Clark on all ten Yeast sets (always a little below).

    A confidence matrix F takes the place of L as Y = 2 F - 1. New rows get softmax(scale (Theta^T phi(x) + b)).

    Parameters
    ----------
    epsilon : float, default=0.1
        Residuals up to this norm are free. With 0 the answer is one linear system. With a value above all residuals (a
        reading of "epsilon = 10" in the literature) the regression has no say.
    ridge, closeness, topology : float, default=1.0
        Weights of the three other terms.
    n_neighbors : int, default=3
        Neighbours of the reconstruction weights in M.
    kernel : {"linear", "rbf"}, default="linear"
        phi(x) = x, solved in the primal, or a Gaussian kernel with the root mean square distance as width, through
        `n_components` Nystroem features (exact when there are as many as rows).
    n_components : int, default=200
        Nystroem features of kernel "rbf"; cut to n.
    scale : float, default=0.1
        U is near -1 and 1. With 1 (preset ``paper``) softmax gives a relevant label up to e^2 times the degree of an
        irrelevant one; with 0.1 up to exp(0.2), the same as `Temperature()`.
    tol : float, default=1e-6
        On the largest entry of the gradient, in scaled coordinates, relative to that at U = 0 and Theta = 0.
    max_iter : int, default=2000
        Maximum number of iterations of L-BFGS.
    random_state : int, RandomState or None, default=0
        Chooses the rows behind the Nystroem features.

    Attributes
    ----------
    coef_ : (m, q)
        Theta.
    intercept_ : (q,)
        b.

    Examples
    --------
    >>> X, L = [[0.0], [1.0], [2.0], [3.0]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> model = LEMLL(n_neighbors=2).fit(X, L)
    >>> bool(model.predict([[-1.0]])[0, 0] > 0.5)
    True
    """

    reference = "Shao, Xu, Geng. Multi-Label Learning with Label Enhancement. ICDM 2018."
    PRESETS: ClassVar[Presets] = {"paper": {"scale": 1.0, "n_neighbors": 3, "kernel": "linear"}}
    SEARCH: ClassVar[Domains] = {
        "ridge": [0.1, 1.0, 10.0, 100.0],
        "closeness": [0.1, 1.0, 10.0],
        "topology": [0.1, 1.0, 10.0],
        "n_neighbors": [3, 10],
        "kernel": ["linear", "rbf"],
    }
    kinds = frozenset({"unasked"})
    epsilon: float = parameter(NOT_NEGATIVE, default=0.1)
    ridge: float = parameter(POSITIVE, default=1.0)
    closeness: float = parameter(POSITIVE, default=1.0)
    topology: float = parameter(NOT_NEGATIVE, default=1.0)
    n_neighbors: int = parameter(COUNT, default=3)
    kernel: str = parameter({"linear", "rbf"}, default="linear")
    n_components: int = parameter(COUNT, default=200)
    scale: float = parameter(POSITIVE, default=0.1)
    tol: float = parameter(POSITIVE, default=1e-6)
    max_iter: int = parameter(COUNT, default=2000)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        # Paper: says nothing of scaling; z-scores make the ridge and the neighbours independent of the units of X.
        self._scaling = standardisation(X)
        scaled = self._scaling(X)
        self._nystroem = _nystroem(scaled, self.n_components, self.random_state) if self.kernel == "rbf" else None
        features, basis = _narrowed(self._features(scaled))
        Phi, Y = np.hstack([features, np.ones((len(X), 1))]), 2.0 * fill_unasked(L, asked_frequencies(L)) - 1.0
        M, weights = lle_matrix(lle_weights(scaled, self.n_neighbors)), (self.ridge, self.closeness, self.topology)
        problem = Problem(Phi, Y, M, self.epsilon, *weights, asked=~np.isnan(L))
        solution = minimise(problem, tol=self.tol, max_iter=self.max_iter)
        U, Theta = solution.value
        self.coef_, self.intercept_ = Theta[:-1] if basis is None else basis @ Theta[:-1], Theta[-1]
        return solution.with_value(softmax(self.scale * U))

    def _predict(self, X: np.ndarray) -> Array:
        return softmax(self.scale * (self._features(self._scaling(X)) @ self.coef_ + self.intercept_))

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        m = min(self.n_components, n) if self.kernel == "rbf" else d
        # Features of the kernel, weighted and solved for: three matrices (n, m), and a small system (m, m).
        return super()._fit_bytes(n, d, q) + 8.0 * (3 * n * m + 3 * m * m)

    def _features(self, scaled: np.ndarray) -> np.ndarray:
        return scaled if self._nystroem is None else self._nystroem.transform(scaled)


class Problem(NamedTuple):
    """The data of the objective. Phi (n, m + 1) ends with a column of ones, whose coefficients b are not penalised."""

    Phi: np.ndarray
    Y: np.ndarray
    M: sp.csr_array
    epsilon: float
    ridge: float
    closeness: float
    topology: float
    asked: np.ndarray | bool = True
    """Which entries of Y (n, q) count; True for all."""


def objective(p: Problem, U: np.ndarray, Theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The objective at U (n, q) and Theta (m + 1, q), b its last row, and its derivatives in both."""
    residuals = U - p.Phi @ Theta
    r = np.linalg.norm(residuals, axis=1)
    penalised = np.vstack([Theta[:-1], np.zeros_like(Theta[-1:])])
    away, bent = np.where(p.asked, U - p.Y, 0.0), p.M @ U
    value = np.sum(np.maximum(r - p.epsilon, 0.0) ** 2) + p.ridge * np.sum(penalised**2)
    value += p.closeness * np.sum(away**2) + p.topology * np.sum(U * bent)
    pull = np.maximum(1.0 - p.epsilon / np.maximum(r, 1e-300), 0.0)[:, None] * residuals
    in_U = 2.0 * (pull + p.closeness * away + p.topology * bent)
    return float(value), in_U, 2.0 * (p.ridge * penalised - p.Phi.T @ pull)


def minimise(p: Problem, *, tol: float, max_iter: int) -> Solution:
    """The minimiser (U, Theta), by L-BFGS in coordinates in which the curvature is near 1 in every direction.

    Those are U / s, with 1 / s^2 the diagonal of (1 + closeness) I + topology M, and C^T Theta, with C C^T the
    curvature Phi^T Phi + ridge I of the regression where every residual counts.
    """
    n, m = p.Phi.shape
    s = 1.0 / np.sqrt(1.0 + p.closeness + p.topology * p.M.diagonal())[:, None]
    curvature = p.Phi.T @ p.Phi
    # Columns of zeros, or nearly equal ones, with next to no ridge: any C will do that can be inverted.
    curvature[np.diag_indices(m)] += p.ridge + 1e-10 * np.trace(curvature) / m
    C = cholesky(curvature, lower=True, overwrite_a=True)

    def split(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return s * V[:n], solve_triangular(C, V[n:], lower=True, trans="T", check_finite=False)

    def value_and_gradient(V: np.ndarray) -> tuple[float, np.ndarray]:
        value, in_U, in_Theta = objective(p, *split(V))
        if not math.isfinite(value):  # a step beyond all numbers: back
            return math.inf, np.zeros_like(V)
        return value, np.vstack([s * in_U, solve_triangular(C, in_Theta, lower=True, check_finite=False)])

    start = np.vstack([p.Y / s, solve_triangular(C, p.Phi.T @ p.Y, lower=True)])
    first = 2.0 * p.closeness * float(np.max(s * np.abs(p.Y))) or 1.0  # of the gradient at U = 0, Theta = 0
    found = lbfgs(value_and_gradient, start, tol=tol * first, max_iter=max_iter, min_decrease=0.0)
    return replace(found, value=split(found.value), residual=found.residual / first)


def _narrowed(features: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Features (n, m) with more columns than rows in coordinates of their row space, (n, n), and its basis (m, n).

    Theta lies in the row space, or its ridge would be larger for the same residuals; a rotation changes no ridge.
    """
    n, m = features.shape
    if m <= n:
        return features, None
    basis = np.linalg.qr(features.T)[0]
    return features @ basis, basis


def _nystroem(scaled: np.ndarray, n_components: int, random_state: Seed) -> Nystroem:
    """Features whose inner products are the Gaussian kernel's; width the root mean square distance of two rows."""
    mean_square = 2.0 * float(scaled.var(axis=0, ddof=1).sum()) or 1.0
    components = min(n_components, len(scaled))
    return Nystroem(gamma=0.5 / mean_square, n_components=components, random_state=random_state).fit(scaled)

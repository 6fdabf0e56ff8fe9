"""DLDL: label distribution learning from logical labels. Recovery and prediction are one problem.

    min_{D, W}  sum_i KL(D_i || softmax(x_i W)) + alpha tr D^T G D + beta ||D||_F^2 + gamma ||W||_F^2
    s.t.        every row of D on the simplex, D = 0 where L = 0

G is the Laplacian of the graph of nearest rows, with weights exp(-|x_i - x_j|^2 / (2 sigma^2)). D is the answer for the
given rows: a label that is not marked gets exactly 0. softmax(x W) is the answer for new ones.

The problem is convex in D and convex in W, not in both. For given scores Z = X W the best D is unique, and inside the
mask: with H = 2 alpha G + 2 beta I it is the fixed point

    D = softmax over the mask of Z - H D,

found by Newton's method (`recover`). What is left, F(W) = min_D, is smooth, and by the envelope theorem its gradient is
X^T (P - D) + 2 gamma W with P = softmax(X W); L-BFGS minimises it. For alpha = beta = 0 it is known by another name: D
is P on the mask, normalised, and F(W) = -sum_i log sum_{j marked} p_ij + gamma ||W||^2, the likelihood of "one of the
marked labels".

Reference: Jia, Tang and Jiang, "Label Distribution Learning from Logical Label", IJCAI 2024 (arXiv 2303.06847).
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import logsumexp

from contone.backends import Graph
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, InductiveMixin, estimator, parameter
from contone.numerics.graphs import neighbour_affinity
from contone.numerics.optimise import lbfgs
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.predict.maxent import append_row, refuse_extreme_columns, whiten
from contone.runtime.machine import pieces_by_width
from contone.typing import Array, Domains, Matrix, Presets, Record

DECREMENT = 1e-10
"""Newton's method for D ends when its decrement, per row, is below this: D is then known to about as many digits."""
ROUNDING = 1e-13
"""Decreases below this, relative to the value, are not seen in it."""
NEWTON_STEPS, CG_STEPS = 50, 500
HALVINGS = 30
LEAST = -700.0
"""Of log d: exp of this is still a number, so that a degree that its neighbours hold at 0 can come back."""
MOST = 1e30
"""Weights of D count as at most this: the divergence is lost in rounding long before, and squares are still numbers."""


@estimator
class DLDL(InductiveMixin, Enhancer):
    """Label distributions and their predictor from logical labels, learnt together (Jia, Tang and Jiang 2024).

        min_{D, W}  sum_i KL(D_i || softmax(x_i W)) + alpha tr D^T G D + beta ||D||_F^2 + gamma ||W||_F^2

    over D with rows on the simplex and 0 where L is 0. Its recovered degrees of unmarked labels are exactly 0, so that
    KL(truth || D) is infinite wherever the truth is not 0 there; `predict` gives every label a positive degree.

    Confidences in place of L count as marks where they are positive. An entry that nobody asked about (NaN) may be
    relevant, so that nothing holds its degree at 0.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the smoothness of D on the graph.
    beta : float, default=0.001
        Weight of ||D||^2. Large values share out each row equally over its marked labels.
    gamma : float, default=0.5
        Weight of ||W||^2, beside a sum over rows: one half is a standard normal prior of the weights of z-scores.
    n_neighbors : int, default=20
        Neighbours of a row in the graph; cut to n - 1.
    sigma : float or "mean_knn", default="mean_knn"
        Width of the weights; by default the mean distance to the farthest of the neighbours.
    standardize : bool, default=True
        Use z-scores of the features.
    fit_intercept : bool, default=True
        Whether the scores have a constant per label, which is not penalised.
    tol : float, default=1e-5
        On the largest entry of the gradient of F(W) / n, in coordinates of W in which the features are white.
    max_iter : int, default=1000
        Iterations of L-BFGS.

    Attributes
    ----------
    coef_ : (d, q)
        W, for the features as they were given.
    intercept_ : (q,)
        The constant per label.

    Notes
    -----
    The preset ``paper`` has the published settings: features as they are, no intercept, sigma = 20. The minimum is of
    the problem as printed. The authors' program has G G^T in the place of G and ends elsewhere: its steps for D sum
    over all other rows' labels, so that what it recovers is a projection of the labels' frequencies.

    Examples
    --------
    >>> X, L = [[0.0], [0.1], [5.0], [5.1]], [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1]]
    >>> dldl = DLDL().fit(X, L)
    >>> dldl.label_distributions_.round(1).tolist()
    [[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """

    reference = "Jia, Tang & Jiang, Label Distribution Learning from Logical Label, IJCAI 2024"
    kinds = frozenset({"unasked"})
    PRESETS: ClassVar[Presets] = {"paper": {"gamma": 0.01, "sigma": 20.0, "standardize": False, "fit_intercept": False}}
    SEARCH: ClassVar[Domains] = {"alpha": [1e-3, 0.01, 0.1, 1.0], "beta": [1e-3, 0.1, 1.0], "gamma": [0.5, 5.0, 50.0]}
    alpha: float = parameter(NOT_NEGATIVE, default=0.1)
    beta: float = parameter(NOT_NEGATIVE, default=0.001)
    gamma: float = parameter(POSITIVE, default=0.5)
    n_neighbors: int = parameter(COUNT, default=20)
    sigma: float | str = parameter(POSITIVE, {"mean_knn"}, default="mean_knn")
    standardize: bool = parameter("boolean", default=True)
    fit_intercept: bool = parameter("boolean", default=True)
    tol: float = parameter(NOT_NEGATIVE, default=1e-5)
    max_iter: int = parameter(COUNT, default=1000)

    def _fit_enhance(self, X: Matrix, L: Matrix) -> Solution:
        refuse_extreme_columns("DLDL", X)  # also where they are scaled: `coef_` is for the features as they are
        if self.standardize:
            scaling = standardisation(X)
            X = scaling(X)
        smoothness, about = self._smoothness(X)
        found = self._minimise(X, ~(L == 0), smoothness)  # NaN, an entry that nobody asked about, is open
        D, self.coef_, self.intercept_ = found.value
        if self.standardize:
            self.coef_ = self.coef_ / scaling.scale[:, None]
            self.intercept_ = self.intercept_ - scaling.origin @ self.coef_
        return found.with_value(D, **about)

    def _minimise(self, X: Matrix, mask: Array, smoothness: Smoothness) -> Solution:
        """The minimum of F(W) that L-BFGS finds from W = 0, and D there; mask (n, q) says which labels are marked.

        Its coordinates are those in which the Hessian of the mean divergence at W = 0, for fixed D, is the identity.
        """
        n, q = mask.shape
        d = X.shape[1]
        mean = X.mean(axis=0) if self.fit_intercept else np.zeros(d)
        white, V, scale = whiten(X - mean, q, 2.0 * self.gamma / n, pieces_by_width(n, d + q))
        r = white.shape[1]
        weight = (2.0 * self.gamma / n / scale**2)[:, None]
        if self.fit_intercept:
            white, weight = append_row(white.T, math.sqrt(q)).T, append_row(weight, 0.0)
        # Paper: D starts at the softmax of similarities to prototypes, refined by ten rounds of quadratic programmes, W
        # at ones on the diagonal. W = 0 is a start that favours no label; D, being the best for W, needs none.
        latest = [np.where(mask, 1.0, 0.0) / mask.sum(axis=1, keepdims=True)]
        steps = [0]

        def profile(Phi: Matrix) -> tuple[float, Matrix]:
            Z = white @ Phi
            inner = recover(Z, mask, smoothness, latest[0])
            latest[0] = inner.value
            steps[0] += inner.n_iter
            value = inner.objective + float(logsumexp(Z, axis=1).sum())
            shrunk = weight * Phi
            slope = white.T @ (softmax(Z) - inner.value) / n + shrunk
            return value / n + 0.5 * float(np.vdot(shrunk, Phi)), slope

        start = np.zeros((white.shape[1], q))
        found = lbfgs(profile, start, tol=self.tol, max_iter=self.max_iter, n_pairs=60, min_decrease=0.0)
        Phi = found.value
        inner = recover(white @ Phi, mask, smoothness, latest[0])
        W = V @ (Phi[:r] / scale[:, None])
        b = math.sqrt(q) * Phi[r] - mean @ W if self.fit_intercept else np.zeros(q)
        value = objective(inner.value, X @ W + b, W, smoothness, self.gamma)
        info = {"newton_steps": steps[0], "decrement": inner.residual}
        return Solution((inner.value, W, b), value, found.residual, found.n_iter, found.residual <= self.tol, info)

    def _smoothness(self, X: Matrix) -> tuple[Smoothness, Record]:
        """The quadratic form of D, and what is known about its graph."""
        if self.alpha == 0 or len(X) == 1:
            return Smoothness(None, 0.0, min(self.beta, MOST)), {}
        # Paper: sigma = 20 whatever the unit of the features. With that of the Yeast sets all weights are 1.
        graph, sigma, search, _ = neighbour_affinity(X, self.n_neighbors, self.sigma)
        return Smoothness(graph, min(self.alpha, MOST), min(self.beta, MOST)), {"sigma": sigma, "neighbours": search}

    def _predict(self, X: Matrix) -> Array:
        return softmax(X @ self.coef_ + self.intercept_)

    def _enhance(self, X: Matrix, L: Matrix) -> Matrix:
        """The best D for the scores and marks of new rows; they have no neighbours to agree with."""
        mask = ~(L == 0)
        start, smoothness = mask / mask.sum(axis=1, keepdims=True), Smoothness(None, 0.0, min(self.beta, MOST))
        return np.asarray(recover(X @ self.coef_ + self.intercept_, mask, smoothness, start).value)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        return super()._fit_bytes(n, d, q) + 8.0 * (12.0 * n * q + 3.0 * n * d + 2.0 * d * d + 50.0 * d * q)


class Smoothness(NamedTuple):
    """The quadratic form alpha tr D^T G D + beta ||D||^2, G the Laplacian of the graph; None is one without edges."""

    graph: Graph | None
    alpha: float
    beta: float

    def slope(self, D: Matrix) -> Matrix:
        """Its gradient H D (n, q), H = 2 alpha G + 2 beta I."""
        if self.graph is None:
            return 2.0 * self.beta * D
        diagonal = self.beta + self.alpha * self.graph.row_sums()[:, None]
        return np.asarray(2.0 * (diagonal * D - self.alpha * self.graph.matmul(D)))


def objective(D: Matrix, Z: Matrix, W: Matrix, smoothness: Smoothness, gamma: float) -> float:
    """The objective at D (n, q), scores Z (n, q) and their weights W (d, q)."""
    log_D = np.log(np.where(D > 0, D, 1.0))
    log_P = Z - logsumexp(Z, axis=1, keepdims=True)
    return float(np.vdot(D, log_D - log_P + 0.5 * smoothness.slope(D)) + gamma * np.vdot(W, W))


def recover(Z: Matrix, mask: Array, smoothness: Smoothness, start: Matrix) -> Solution:
    """The D (n, q) that minimises sum d (log d - z) + alpha tr D^T G D + beta ||D||^2 on the masked simplices.

    Newton's step delta solves (diag(1 / d) + H) delta = -g over rows of sum 0, where g = log d - z + H D is the
    gradient; in u = delta / sqrt(d) the matrix is I + sqrt(d) H sqrt(d), which conjugate gradients solve in a few
    products. The step is made in log d, by log(1 + delta / d) or, where delta is negative, by delta / d, so that D
    stays positive. The residual bounds the decrement of Newton's method per row: with g less its mean over the row,
    weighted by d, it is the root of the mean over rows of sum_j d_j g_j^2.
    """
    n = len(Z)
    with np.errstate(divide="ignore"):
        # Where H is small, or Z is nearly what it was, a step of the fixed point comes near; where H is large, too far.
        starts = [_log_normalised(T, mask) for T in (np.log(start), Z - smoothness.slope(start))]
    T, (value, D, slope) = min(((T, _divergence(T, Z, mask, smoothness)) for T in starts), key=lambda one: one[1][0])
    for step in range(NEWTON_STEPS + 1):
        root = np.sqrt(D)
        residual = _tangent(-root * np.where(mask, T - Z + slope, 0.0), root)
        square = float(np.vdot(residual, residual))  # at least the decrement, squared: H is not negative
        if square <= DECREMENT**2 * n or step == NEWTON_STEPS:
            break
        u = _newton_direction(residual, root, smoothness)
        decrease = float(np.vdot(u, residual))
        change = np.divide(u, root, out=np.zeros_like(u), where=root > 0)
        for halvings in range(HALVINGS):
            length = 0.5**halvings
            trial = _log_normalised(T + _log_step(length * change), mask)
            found = _divergence(trial, Z, mask, smoothness)
            # A change below the rounding of the value says nothing: near the answer the whole step is right.
            if found[0] <= value - 1e-4 * length * decrease or decrease <= ROUNDING * (n + abs(value)):
                break
        T, (value, D, slope) = trial, found
    return Solution(D, value, math.sqrt(square / n), step, square <= DECREMENT**2 * n)


def _log_normalised(T: Matrix, mask: Array) -> Matrix:
    """Logarithms of the softmax of T over the mask, none below that of the least number; -inf outside."""
    T = np.where(mask, T, -np.inf)
    return np.where(mask, np.maximum(T - logsumexp(T, axis=1, keepdims=True), LEAST), -np.inf)


def _divergence(T: Matrix, Z: Matrix, mask: Array, smoothness: Smoothness) -> tuple[float, Matrix, Matrix]:
    """sum d (log d - z) + the quadratic form at log D = T; D; and H D."""
    D = np.exp(T)
    slope = smoothness.slope(D)
    return float(np.vdot(D, np.where(mask, T - Z + 0.5 * slope, 0.0))), D, slope


def _log_step(v: Matrix) -> Matrix:
    """log(1 + v) for v > 0 and v for v <= 0."""
    return np.where(v > 0, np.log1p(np.maximum(v, 0.0)), v)


def _tangent(A: Matrix, root: Matrix) -> Matrix:
    """The part of A (n, q) that is orthogonal, row by row, to `root`, whose rows have length 1."""
    return np.asarray(A - root * np.einsum("ij,ij->i", A, root)[:, None])


def _newton_direction(residual: Matrix, root: Matrix, smoothness: Smoothness) -> Matrix:
    """u with (I + root H root) u = residual over rows orthogonal to those of `root`, by conjugate gradients."""
    residual = _tangent(residual, root)  # again: the first time leaves rounding of a gradient that is far larger
    square = float(np.vdot(residual, residual))

    def product(v: Matrix) -> Matrix:
        P = v.reshape(root.shape)
        return _tangent(P + root * smoothness.slope(root * P), root).ravel()

    # Looser far from the answer, where the next step sees another system anyway.
    enough = math.sqrt(min(0.01, max(square / len(root), 1e-12)))
    operator = LinearOperator((root.size, root.size), matvec=product, dtype=float)
    return np.asarray(cg(operator, residual.ravel(), rtol=enough, maxiter=CG_STEPS)[0]).reshape(root.shape)

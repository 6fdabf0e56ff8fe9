"""The maximum entropy model of label distributions: IIS-LDL and BFGS-LDL, one model with two solvers.

    p(x) = softmax(x^T Theta + b),    Theta (d, q), b (q,)

    min  f(Theta, b) = 1/n sum_i KL(d_i || p(x_i)) + l2/2 ||Theta||_F^2

f is convex and smooth, with the gradient 1/n X^T (P - D) + l2 Theta. Its minimiser is unique in its predictions
where l2 > 0 or every direction of X was seen with mass on every label. Adding one number to all labels' entries of a
feature changes no prediction; the answer is reported with entries that sum to zero over the labels.

Reference: Geng, Label Distribution Learning, TKDE 2016 (SA-IIS and SA-BFGS there).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import xlogy

from contone.base import COUNT, NOT_NEGATIVE, DistributionLearner, estimator, parameter
from contone.numerics.iterative_scaling import centre_over_labels, improved_iterative_scaling, softmax_and_log_partition
from contone.numerics.optimise import join, lbfgs
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.runtime.machine import pieces_by_width, total
from contone.typing import Array, Presets
from contone.validation.containers import refuse_beyond_squares

IIS = {"solver": "iis", "fit_intercept": False}
"""No model of the originals has a bias."""
Extra = Callable[..., tuple[float, np.ndarray]]
"""One more term of the objective: predictions P (q, m) of some rows, and which rows these are (a slice, all by
default), to what they add to the value, and the gradient by P, (q, m)."""


@estimator
class LinearSoftmax(DistributionLearner):
    """A learner whose prediction is softmax(x^T Theta + b)."""

    _shares_rows = True
    fit_intercept: bool = parameter("boolean", default=True)
    l2: float = parameter(NOT_NEGATIVE, default=0.0)
    max_iter: int = parameter(COUNT, default=500)
    tol: float = parameter(NOT_NEGATIVE, default=1e-6)

    def _keep(self, solution: Solution) -> Solution:
        """Set what a fit found, with entries that sum to zero over the labels."""
        Theta, b = solution.value
        self.coef_ = centre_over_labels(Theta)
        self.intercept_ = b - b.mean()
        self.n_iter_ = solution.n_iter
        return solution

    def _predict(self, X: np.ndarray) -> Array:
        return softmax(X @ self.coef_ + self.intercept_)

    def _fit_lbfgs(self, X: np.ndarray, D: np.ndarray, Theta: np.ndarray, extra: Extra | None = None) -> Solution:
        """L-BFGS in coordinates where the Hessian at the uniform answer, without the extra term, is the identity.

        There the Hessian is (I - 1 1^T / q) / q (x) X^T X / n + l2 I. With the eigenvalues lambda and eigenvectors V of
        X^T X / n (X centred where there is an intercept to take the mean up), the coordinates are
        Phi = (lambda / q + l2)^(1/2) V^T Theta. Raw features are often nearly collinear, and L-BFGS then needs
        hundreds of iterations for what takes ten here. Directions that X does not have are left out: they change no
        prediction.
        """
        n, d = X.shape
        q = D.shape[1]
        # Without a penalty no column has a unit: those in small ones must not pass for rounding of the others.
        unit = column_units(X, centred=self.fit_intercept) if self.l2 == 0 else np.ones(d)
        X, Theta = X / unit, Theta * unit[:, None]
        mean = X.mean(axis=0) if self.fit_intercept else np.zeros(d)
        pieces = pieces_by_width(n, d + q)
        white, V, scale = whiten(X - mean if self.fit_intercept else X, q, self.l2, pieces)
        r = white.shape[1]
        # The penalty in the new coordinates, and the intercept as a last coordinate without one.
        weight, start = (self.l2 / scale**2)[:, None], scale[:, None] * (V.T @ Theta)
        if self.fit_intercept:
            white, weight = append_row(white.T, np.sqrt(q)).T, append_row(weight, 0.0)
            start = append_row(start, np.sqrt(1 / q) * (mean @ Theta))
        target = total(lambda rows: white[rows].T @ D[rows], pieces) / n

        # Piece by piece, each in one thread: what is made in between stays in the cache, and no thread waits for
        # another within a product, as those of BLAS do again and again where the inner dimension is the number of rows.
        def value_and_gradient(Phi: np.ndarray) -> tuple[float, np.ndarray]:
            def of_piece(rows: slice) -> np.ndarray:
                P, log_partition = softmax_and_log_partition(Phi.T @ white[rows].T)
                value, gradient = log_partition.sum() / n, (P @ white[rows]).T / n
                if extra is not None:
                    added, by_P = extra(P, rows)
                    value, gradient = value + added, gradient + (through_softmax(P, by_P) @ white[rows]).T
                return join([value, gradient])

            sums = total(of_piece, pieces)
            shrunk = weight * Phi
            value = sums[0] - np.vdot(target, Phi) + 0.5 * np.vdot(shrunk, Phi)
            return float(value), sums[1:].reshape(Phi.shape) - target + shrunk

        rms = np.append(root_mean_square(X), 1.0)
        # By Cauchy-Schwarz, this bound on the gradient in the new coordinates brings every moment residual below tol.
        stretch = np.append(np.sqrt(((V * scale) ** 2).sum(axis=1)) + np.abs(mean) / np.sqrt(q), 1 / np.sqrt(q)) / rms
        bound = self.tol / (stretch.max() * np.sqrt(len(start)))
        answer = lbfgs(value_and_gradient, start, tol=bound, max_iter=self.max_iter, n_pairs=20, min_decrease=0.0)
        Phi = answer.value
        Theta = V @ (Phi[:r] / scale[:, None])
        b = np.sqrt(q) * Phi[r] - mean @ Theta if self.fit_intercept else np.zeros(q)
        value, gradient = objective(X, D, Theta, b, self.l2, extra)
        moments = append_row(gradient.Theta, gradient.b) if self.fit_intercept else gradient.Theta
        residual = float(np.abs(moments / rms[: len(moments), None]).max())
        parameters = Parameters(Theta / unit[:, None], b)
        return Solution(parameters, value - entropy(D), residual, answer.n_iter, residual <= self.tol)


@estimator
class MaxEnt(LinearSoftmax):
    """Label distribution learning by maximum entropy: softmax of a linear function, fitted in KL(D || D^).

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the model has b. Inside "iis" it is the weight of one more feature that is 1 in every row, so it counts
        in the row sums that set the length of a step.
    l2 : float, default=0.0
        Weight of the penalty on Theta (not on b). With more features than rows the unpenalised model can fit any D.
    max_iter : int, default=500
        Iterations at most.
    tol : float, default=1e-6
        Converged when the moment conditions hold this well: |df / dtheta_kj| / rms(x_k) <= tol for all k, j, which does
        not depend on the scale of the features. Below about 1e-8, rounding of f ends "lbfgs" first.
    solver : {"lbfgs", "iis"}, default="lbfgs"
        "lbfgs" is BFGS-LDL: L-BFGS with the analytic gradient, in coordinates where X is white. "iis" is IIS-LDL:
        improved iterative scaling, which needs more iterations to reach the same minimum; stopped early, as
        published, its answer depends on where it started.
    init : {"zeros", "eye"}, default="zeros"
        Where Theta starts: the uniform answer, or ones on the main diagonal as in the original code. b starts at 0.
    accelerate : bool, default=True
        Whether "iis" extrapolates from its last steps (Anderson's method): some ten times fewer iterations to the same
        minimum, and the likelihood still rises at each of them. False is the algorithm as published.

    Attributes
    ----------
    coef_ : (d, q)
        Theta, rows summing to zero.
    intercept_ : (q,)
        b, summing to zero; zero without intercept.

    Examples
    --------
    >>> X, D = [[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> MaxEnt().fit(X, D).predict([[1.0]]).round(2).tolist()
    [[0.6, 0.4]]
    """

    reference = "Geng, Label Distribution Learning, IEEE TKDE 28(7), 2016"
    PRESETS: ClassVar[Presets] = {
        # The experiment's learner is IIS-LDL; its settings are not stated there.
        "paper": IIS,
        # The original stops by the change of the likelihood, which 50 iterations do not reach.
        "original_code": {**IIS, "init": "eye", "accelerate": False, "max_iter": 50, "tol": 1e-7},
    }
    solver: str = parameter({"lbfgs", "iis"}, default="lbfgs")
    init: str = parameter({"zeros", "eye"}, default="zeros")
    accelerate: bool = parameter("boolean", default=True)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        d, q = X.shape[1], D.shape[1]
        refuse_extreme_columns("MaxEnt", X)
        Theta = np.eye(d, q) if self.init == "eye" else np.zeros((d, q))
        return self._keep(self._fit_iis(X, D, Theta) if self.solver == "iis" else self._fit_lbfgs(X, D, Theta))

    def _fit_iis(self, X: np.ndarray, D: np.ndarray, Theta: np.ndarray) -> Solution:
        """Improved iterative scaling; the intercept is the weight of a constant feature."""
        d, q = Theta.shape
        penalty = np.full((d, 1), self.l2)
        if self.fit_intercept:
            # Paper: the published models have no intercept. The feature's height, 1, is a choice: it does not move the
            # limit, but a high constant would make the row sums larger and with them every step shorter.
            X, Theta, penalty = append_row(X.T, 1.0).T, append_row(Theta, 0.0), append_row(penalty, 0.0)
        weight = penalty if self.l2 > 0 else 0.0
        solution = improved_iterative_scaling(
            X, D, Theta, penalty=weight, accelerate=self.accelerate, max_iter=self.max_iter, tol=self.tol
        )
        constant = entropy(D)
        value = Parameters(solution.value[:d], solution.value[d] if self.fit_intercept else np.zeros(q))
        info = {"objective": [each - constant for each in solution.info["objective"]]}
        return replace(solution, value=value, objective=solution.objective - constant, info=info)


class Parameters(NamedTuple):
    """Theta (d, q) and b (q,)."""

    Theta: np.ndarray
    b: np.ndarray


def objective(
    X: np.ndarray, D: np.ndarray, Theta: np.ndarray, b: np.ndarray, l2: float = 0.0, extra: Extra | None = None
) -> tuple[float, Parameters]:
    """f at (Theta, b) plus the entropy of D, which is constant, and the extra term; and the gradient."""
    n = len(X)
    Z = X @ Theta + b
    P, log_partition = softmax_and_log_partition(Z.T)
    value = float(log_partition.mean() - np.vdot(D, Z) / n + 0.5 * l2 * np.sum(Theta**2))
    G = (P.T - D) / n
    if extra is not None:
        added, by_P = extra(P)
        value, G = value + added, G + through_softmax(P, by_P).T
    return value, Parameters(X.T @ G + l2 * Theta, G.sum(axis=0))


def entropy(D: np.ndarray) -> float:
    """Mean entropy of the rows of D (n, q): cross-entropy minus this is the mean KL."""
    return -float(xlogy(D, D).sum(axis=1).mean())


def through_softmax(P: np.ndarray, by_P: np.ndarray) -> Array:
    """The gradient (q, n) by the logits whose softmax is P (q, n), from that by P."""
    weighted = P * by_P
    return weighted - P * weighted.sum(axis=0)


def refuse_extreme_columns(name: str, X: np.ndarray) -> None:
    """Refuse X (n, d) with a column whose squares, or whose coefficient, floating point cannot hold."""
    refuse_beyond_squares(name, np.abs(X).max(axis=0))


def whiten(X: np.ndarray, q: int, l2: float, pieces: list[slice]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X V / scale (n, r), V (d, r) and scale (r,) = (lambda / q + l2)^(1/2), over the directions that X has."""
    eigenvalues, V = np.linalg.eigh(total(lambda rows: X[rows].T @ X[rows], pieces) / len(X))
    # Rounding leaves eigenvalues of about this size where X has no extent.
    seen = eigenvalues > 10 * len(V) * np.finfo(float).eps * eigenvalues[-1]
    V, scale = V[:, seen], np.sqrt(eigenvalues[seen] / q + l2)
    return X @ V / scale, V, scale


def column_units(X: np.ndarray, *, centred: bool) -> np.ndarray:
    """A power of two near the deviation, or the root mean square, of every column (d,); 1 for a column without any."""
    size = X.std(axis=0) if centred else root_mean_square(X)
    return np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))


def root_mean_square(X: np.ndarray) -> np.ndarray:
    """Root mean square of every column (d,); 1 for a column of zeros."""
    rms = np.sqrt(np.einsum("ik,ik->k", X, X) / len(X))
    return np.where(rms > 0, rms, 1.0)


def append_row(A: np.ndarray, row: Array | float) -> np.ndarray:
    """A (d, q) with one more row, given as a number or (q,)."""
    return np.vstack([A, np.broadcast_to(row, (1, A.shape[1]))])

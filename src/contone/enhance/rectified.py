"""The model of LCdr without the augmentation: softmax of a rectified linear map (Kou et al., Eq. 8).

min_W  sum_i || f_i - softmax(ReLU(W x_i)) ||^2 + beta ||W||_F^2,    W (q, d)
"""

from functools import partial

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils import check_random_state

from contone.backends import get_backend, like, to_numpy
from contone.base import COUNT, NOT_NEGATIVE, Enhancer, InductiveMixin, estimator, parameter
from contone.measurements import asked_frequencies, fill_unasked
from contone.numerics.optimise import lbfgs
from contone.numerics.simplex import normalise_rows, softmax
from contone.numerics.solution import Solution
from contone.typing import Array, Seed


@estimator
class RectifiedSoftmax(InductiveMixin, Enhancer):
    """Label distributions softmax(ReLU(W x)), fitted to the labels by penalised least squares.

    Minimises  c sum_i || f_i - softmax(ReLU(W x_i)) ||^2 + (beta + weight_decay / 2) ||W||_F^2  over W (q, d), with
    c = 1/n ("mean") or 1 ("sum"). F is the confidence matrix handed in; logical labels are divided by their number,
    where one that nobody asked about (NaN) counts as much as it is marked among the asked ones: its expected label.
    There is no bias. The problem is not convex, and W = 0 (the uniform answer) is always a stationary point; the start
    is drawn as PyTorch draws a linear layer, uniform in +-1/sqrt(d); of `n_init` starts the lowest minimum is kept.

    Parameters
    ----------
    beta : float, default=0.1
        Penalty on ||W||^2.
    weight_decay : float, default=5e-4
        The optimiser's own shrinkage, as in PyTorch: it adds weight_decay/2 ||W||^2.
    reduction : {"mean", "sum"}, default="mean"
        Whether the loss is averaged or summed over rows; "sum" makes the penalty n times weaker.
    max_iter : int, default=1000
        Iterations of L-BFGS.
    tol : float, default=1e-7
        L-BFGS stops when no entry of the gradient, divided by c n, is larger.
    n_init : int, default=1
        Random starts.
    random_state : int, RandomState or None, default=0
        Seed of the random starts.

    Attributes
    ----------
    weights_ : (q, d)
    """

    reference = "Kou et al., Data Augmentation for Label Enhancement, Eq. 8"
    kinds = frozenset({"torch", "unasked"})
    beta: float = parameter(NOT_NEGATIVE, default=0.1)
    weight_decay: float = parameter(NOT_NEGATIVE, default=5e-4)
    reduction: str = parameter({"mean", "sum"}, default="mean")
    max_iter: int = parameter(COUNT, default=1000)
    tol: float = parameter(NOT_NEGATIVE, default=1e-7)
    n_init: int = parameter(COUNT, default=1)
    random_state: Seed = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        F = normalise_rows(fill_unasked(L, asked_frequencies(L)))
        # Paper: beta is a penalty and weight decay another one on the same weights; both are kept.
        weight, penalty = 1.0 / len(X) if self.reduction == "mean" else 1.0, self.beta + 0.5 * self.weight_decay
        fun = partial(objective_and_gradient, X=X, F=F, weight=weight, penalty=penalty)
        random = check_random_state(self.random_state)  # the few weights live on the host, whatever holds the rows
        bound = 1.0 / np.sqrt(X.shape[1])
        starts = [random.uniform(-bound, bound, size=(L.shape[1], X.shape[1])) for _ in range(self.n_init)]
        found = (lbfgs(fun, start, tol=self.tol * weight * len(X), max_iter=self.max_iter) for start in starts)
        best = min(found, key=lambda solution: solution.objective)
        self.weights_ = best.value
        D = self._predict(X)
        return best.with_value(D, uniform_distance=float(distances_from_uniform(D).max()))

    def _predict(self, X: np.ndarray) -> Array:
        return recover(like(self.weights_, X), X)


def distances_from_uniform(D: Array) -> Array:
    """The total-variation distance 1/2 sum_j |d_ij - 1/q| of every row of D (n, q) from 1/q, (n,)."""
    return 0.5 * abs(D - 1.0 / D.shape[1]).sum(axis=1)


def recover(W: Array, X: Array) -> Array:
    """softmax(ReLU(W x)) for every row: W (q, d), X (n, d) -> (n, q)."""
    xp = array_namespace(W, X)
    return softmax(xp.clip(xp.matmul(X, W.T), min=0.0))


def objective_and_gradient(W: Array, X: Array, F: Array, weight: float, penalty: float) -> tuple[float, np.ndarray]:
    """weight * sum_i ||f_i - softmax(ReLU(W x_i))||^2 + penalty ||W||^2 and its gradient in W (q, d), on the host.

    With R the answer, E = R - F and Z = X W^T, the gradient is 2 (weight G^T X + penalty W) where
    G = R * (E - <E, R>) * 1[Z > 0], row by row; at a kink (z = 0) the derivative 0 is taken, as PyTorch does.
    """
    found = get_backend(X).over_rows(_loss_and_half_gradient, X, F, W=like(W, X), weight=weight)
    return float(found[0]) + penalty * float(np.sum(W * W)), 2.0 * (found[1:].reshape(W.shape) + penalty * W)


def _loss_and_half_gradient(X: Array, F: Array, W: Array, weight: float) -> np.ndarray:
    """The same of some rows, without the penalty, one number after the other; the rows stay where they are."""
    xp = array_namespace(W, X, F)
    Z = xp.matmul(X, W.T)
    R = softmax(xp.clip(Z, min=0.0))
    E = R - F
    # In double precision even for float32 rows: the line search compares values that differ in late digits.
    value = weight * float(xp.sum(E * E, dtype=xp.float64))
    G = R * (E - xp.sum(E * R, axis=-1, keepdims=True))
    G = xp.where(Z > 0, G, xp.zeros_like(G))
    return np.append(value, to_numpy(weight * xp.matmul(G.T, X)))

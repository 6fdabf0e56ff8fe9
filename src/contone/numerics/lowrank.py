"""Low-rank representation: every instance as a mix of all, with the least nuclear norm.

    min_C  ||C||_* + beta sum_i ||x_i - X^T c_i||,         X (n, d) with rows x_i, c_i the i-th column of C (n, n)

Nothing of size n x n is ever formed. With the thin SVD X = V S U^T of rank r, an optimal C is V Z with Z (r, n), the
rotation U leaves the row norms alone, and the problem becomes

    min_Z  ||Z||_* + beta sum_i ||t_i - S z_i||,           t_i = S v_i,

whose dictionary S is diagonal. Its singular values are thresholded through the eigenvectors of an r x r Gram matrix, so
that an iteration costs n r^2. Outside an interval of beta the answer is known (`beta_interval`): 0 below, V V^T above.
Inside, `low_rank_representation` runs a convergent splitting until its duality gap, a bound on the distance from the
minimum, is small. `inexact_alm` is the iteration behind published results, which for small beta stops far from it.
Reference: Liu, Lin and Yu, "Robust Subspace Segmentation by Low-Rank Representation", ICML 2010.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from contone.numerics.solution import Solution
from contone.typing import Array


class LowRank(NamedTuple):
    """C = Q Z^T, with Q (n, r) orthonormal and Z (n, r): its i-th row holds the r coordinates of c_i."""

    Q: np.ndarray
    Z: np.ndarray


def row_space(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V (n, r) and the singular values S (r,) of X (n, d), r its numerical rank."""
    V, S, _ = scipy.linalg.svd(X, full_matrices=False, check_finite=False)
    r = int((max(X.shape) * np.finfo(float).eps * S[:1] < S).sum())
    return V[:, :r], S[:r]


def beta_interval(V: np.ndarray, S: np.ndarray) -> tuple[float, float]:
    """The beta up to which Z = 0 is optimal, and the one from which Z = V is.

    Optimality asks for Y (n, r) with ||y_i|| <= beta and Y S a subgradient of the nuclear norm at Z. At Z = V that is
    Y S = V, so beta must reach max_i ||v_i / S||. At Z = 0 it is ||Y S||_2 <= 1 with y_i = beta t_i / ||t_i||.
    """
    T = V * S
    directions = T / np.maximum(np.linalg.norm(T, axis=1, keepdims=True), np.finfo(float).tiny)
    return 1.0 / float(np.linalg.norm(directions * S, ord=2)), float(np.linalg.norm(V / S, axis=1).max())


def middle_beta(X: np.ndarray) -> float:
    """The geometric mean of `beta_interval`: the middle of where beta matters, whatever the scale of X (n, d)."""
    V, S = row_space(X)
    return float(np.sqrt(np.prod(beta_interval(V, S)))) if S.size else 1.0


def low_rank_representation(X: np.ndarray, beta: float, *, tol: float = 1e-3, max_iter: int = 2000) -> Solution:
    """The optimal C of X (n, d), as a `LowRank`.

    Closed form where `beta_interval` allows; otherwise the alternating direction method of multipliers (ADMM) on
    Z = J, T = S Z + E, with over-relaxation and a penalty that balances both residuals in the first iterations.

    Parameters
    ----------
    X : (n, d)
        Rows.
    beta : float
        Weight of the noise: small gives C = 0, large V V^T.
    tol : float
        Stop once the relative duality gap is at most this; `Solution.residual` is that gap.
    max_iter : int
        Maximum number of iterations.
    """
    V, S = row_space(X)
    if not S.size:
        return Solution(LowRank(V, V), 0.0)
    lowest, highest = beta_interval(V, S)
    if beta <= lowest or beta >= highest:
        Z = np.zeros_like(V) if beta <= lowest else V
        return Solution(LowRank(V, Z), lrr_objective(V * S, S, Z, beta))
    # Dividing T and S by a constant (and multiplying beta by it) leaves Z alone. The geometric mean of the extreme
    # singular values balances the two constraints; with the largest one the method is five to ten times slower.
    centre = float(np.sqrt(S[0] * S[-1]))
    value, objective, gap, n_iter = _admm(V * (S / centre), S / centre, beta * centre, tol, max_iter)
    return Solution(LowRank(V, value), objective, gap, n_iter, gap <= tol)


_RELAXATION = 1.6
_CHECK_EVERY = 10
_BALANCE_UNTIL = 200
_ALM_TOLERANCE = 1e-8


def _admm(T: np.ndarray, S: np.ndarray, beta: float, tol: float, max_iter: int) -> tuple[np.ndarray, float, float, int]:
    """The best Z seen, its objective, the relative duality gap and the iterations used."""
    Z, Y, Y2 = (np.zeros_like(T) for _ in range(3))  # Y and Y2 are the multipliers divided by mu
    best, objective, bound, gap, mu, n_iter = Z, np.inf, 0.0, np.inf, 1.0, 0
    while gap > tol and n_iter < max_iter:
        n_iter += 1
        J = shrink_singular_values(Z + Y2, 1.0 / mu)
        E = shrink_rows(T - Z * S + Y, beta / mu)
        J_relaxed = _RELAXATION * J + (1.0 - _RELAXATION) * Z
        E_relaxed = _RELAXATION * E + (1.0 - _RELAXATION) * (T - Z * S)
        previous = Z
        Z = ((T - E_relaxed + Y) * S + J_relaxed - Y2) / (S**2 + 1.0)
        Y += T - Z * S - E_relaxed
        Y2 += Z - J_relaxed
        if n_iter % _CHECK_EVERY and n_iter < max_iter:
            continue
        for candidate in (J, (T - E) / S):  # low rank exactly; free of noise exactly
            value = lrr_objective(T, S, candidate, beta)
            if value < objective:
                best, objective = candidate, value
        bound = max(bound, dual_bound(T, S, mu * Y, beta))
        gap = 1.0 - bound / objective
        if n_iter <= _BALANCE_UNTIL:
            primal = np.hypot(np.linalg.norm(T - Z * S - E), np.linalg.norm(Z - J))
            dual = mu * np.hypot(np.linalg.norm(Z - previous), np.linalg.norm((Z - previous) * S))
            factor = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.5, 2.0))
            mu, Y, Y2 = mu * factor, Y / factor, Y2 / factor
    return best, objective, gap, n_iter


def inexact_alm(X: np.ndarray, beta: float, *, rho: float = 1.1, max_iter: int = 1000) -> Solution:
    """C of X (n, d) as the code of Liu et al. computes it, as a `LowRank`.

    The penalty mu grows by the factor rho each iteration, which forces the constraints to hold whether or not the
    objective has reached its minimum. `Solution.residual` is the violation of the constraints, relative to the largest
    entry of T and to 1; ``info["gap"]`` is the relative duality gap.
    """
    V, S = row_space(X)
    T = V * S
    Z, E, Y, Y2 = (np.zeros_like(T) for _ in range(4))
    size = float(np.abs(T).max(initial=0.0)) or 1.0
    residual, n_iter, mu = (np.inf if T.size else 0.0), 0, 1e-6
    while residual > _ALM_TOLERANCE and n_iter < max_iter:
        J = shrink_singular_values(Z + Y2 / mu, 1.0 / mu)
        Z = ((T - E + Y / mu) * S + J - Y2 / mu) / (S**2 + 1.0)
        SZ = Z * S
        E = shrink_rows(T - SZ + Y / mu, beta / mu)
        violation, split = T - SZ - E, Z - J
        Y += mu * violation
        Y2 += mu * split
        mu = min(rho * mu, 1e10)
        residual = max(float(np.abs(violation).max()) / size, float(np.abs(split).max()))
        n_iter += 1
    objective = lrr_objective(T, S, Z, beta)
    gap = 1.0 - dual_bound(T, S, Y, beta) / objective if objective > 0 else 0.0
    return Solution(LowRank(V, Z), objective, residual, n_iter, residual <= _ALM_TOLERANCE, {"gap": gap})


def lrr_objective(T: np.ndarray, S: np.ndarray, Z: np.ndarray, beta: float) -> float:
    """||Z||_* + beta sum_i ||t_i - S z_i|| for T, Z (n, r) and S (r,)."""
    # Through the Gram matrix: n r^2 instead of a full SVD.
    nuclear = float(np.sqrt(np.maximum(np.linalg.eigvalsh(Z.T @ Z), 0.0)).sum())
    return nuclear + beta * float(np.linalg.norm(T - Z * S, axis=1).sum())


def dual_bound(T: np.ndarray, S: np.ndarray, Y: np.ndarray, beta: float) -> float:
    """A lower bound on the minimum: <Y, T> for Y scaled so that ||y_i|| <= beta and ||S Y^T||_2 <= 1."""
    if not Y.size:
        return 0.0
    excess = max(1.0, float(np.linalg.norm(Y, axis=1).max()) / beta, float(np.linalg.norm(Y * S, ord=2)))
    return float(np.vdot(Y, T)) / excess


def shrink_singular_values(A: np.ndarray, threshold: float) -> Array:
    """argmin_J threshold ||J||_* + 1/2 ||J - A||^2 for A (n, r): singular values shrink by threshold, down to 0."""
    squares, B = np.linalg.eigh(A.T @ A)
    keep = squares > threshold**2
    B = B[:, keep]
    return (A @ (B * (1.0 - threshold / np.sqrt(squares[keep])))) @ B.T


def shrink_rows(A: np.ndarray, threshold: float) -> Array:
    """argmin_E threshold sum_i ||e_i|| + 1/2 ||E - A||^2 for A (n, r): each row is shortened by threshold."""
    return A * (1.0 - threshold / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), threshold))

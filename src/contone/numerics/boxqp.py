"""Quadratic programs with bounds, many right-hand sides at once.

    min_U  1/2 tr(U^T H U) - tr(B^T U)   s.t.  lower <= U <= upper          H (n, n) positive definite, U (n, q)

The columns of U share H and nothing else. Each is solved by block principal pivoting: guess which entries sit at a
bound, solve the linear system of the free ones, exchange every entry with the wrong sign (beyond its bound, or a
multiplier that pulls inwards), repeat. Five to ten rounds are usual. Whenever the number of wrong entries does not
fall, half as many are exchanged, down to the last wrong one alone; exchanging that one cannot cycle when H is positive
definite (Murty's rule), so the method is finite.

Finite may still be long: on a smooth surface with few neighbours a row, one wrong entry after another turns up for
hundreds of rounds. After a few rounds without progress the column goes to a projected Newton method with a line search
(Bertsekas), which frees and binds many entries in a step and always descends: 60 steps for 2601 rows.

Reference: Judice and Pires, Computers & OR 21 (1994); Portugal, Judice and Vicente, Math. Comp. 63 (1994);
Bertsekas, SIAM J. Control and Optimization 20 (1982).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import cg, splu

from contone.numerics.solution import Solution

DENSE_LIMIT = 1500
"""Free entries up to which a dense Cholesky factor is used; it does not mind a bad condition, and 1500 cost 18 MB."""

SPARSE_ROW = 24
"""Entries a row up to which a sparse factor is used instead: such a matrix is a neighbour graph with little fill."""

MAX_STALLS = 6
"""Rounds of pivoting without progress after which the projected Newton method takes over."""


def solve_box_qp(
    H: sp.csr_array,
    B: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    tol: float = 1e-9,
    max_iter: int = 500,
    dense_limit: int = DENSE_LIMIT,
) -> Solution:
    """The minimiser U (n, q), feasible exactly, with `kkt_residual` as its certificate.

    Parameters
    ----------
    H : (n, n)
        Sparse, symmetric, positive definite.
    B, lower, upper : (n, q)
        Linear term and bounds; bounds may be infinite.
    tol : float
        A column is done when its KKT residual is at most this.
    max_iter : int
        Exchanges per column. `Solution.n_iter` is the largest number used.
    dense_limit : int
        Systems up to this size are solved as dense ones.
    """
    U = np.empty_like(B)
    residual = np.empty(B.shape[1])
    n_iter = 0
    for j in range(B.shape[1]):
        U[:, j], residual[j], used = _solve_column(
            H, B[:, j], lower[:, j], upper[:, j], tol=tol, max_iter=max_iter, dense_limit=dense_limit
        )
        n_iter = max(n_iter, used)
    worst = float(residual.max(initial=0.0))
    objective = float(0.5 * np.vdot(U, H @ U) - np.vdot(B, U))
    return Solution(U, objective, worst, n_iter, worst <= tol)


def kkt_residual(H: sp.csr_array, B: np.ndarray, lower: np.ndarray, upper: np.ndarray, U: np.ndarray) -> float:
    """max |U - clip(U - (H U - B)/h)| over the size of the problem's data: 0 exactly at the minimiser.

    h is the largest diagonal entry of H. Multiplying H and B, or B and the bounds, by a constant changes nothing.
    """
    h, size = _scale(H, B, lower, upper)
    return float(np.abs(U - np.clip(U - (H @ U - B) / h, lower, upper)).max(initial=0.0) / size)


def _scale(H: sp.csr_array, B: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """The largest diagonal entry of H, and the size of the bounds and of B/h."""
    h = float(H.diagonal().max(initial=0.0)) or 1.0
    bounds = np.abs(np.concatenate([lower.ravel(), upper.ravel()]))
    size = max(float(bounds[np.isfinite(bounds)].max(initial=0.0)), float(np.abs(B).max(initial=0.0)) / h)
    return h, size or 1.0


def _solve_column(
    H: sp.csr_array, b: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, tol: float, max_iter: int, dense_limit: int
) -> tuple[np.ndarray, float, int]:
    """u (n,), its KKT residual and the number of exchanges."""
    h, size = _scale(H, b, lower, upper)
    slack = 1e-2 * tol * size
    u = np.clip(np.zeros_like(b), lower, upper)
    g = H @ u - b
    side = np.where((u == lower) & (g > 0), -1, np.where((u == upper) & (g < 0), 1, 0))
    fewest, stalls = len(b) + 1, 0
    best, residual = u, np.inf
    for iteration in range(max_iter + 1):
        u = _solve_free(H, b, np.where(side < 0, lower, upper), side == 0, u, dense_limit, tol)
        g = (H @ u - b) / h
        feasible = np.clip(u, lower, upper)
        # Clipping moves u by the rounding of the solve only, once the exchanges are done.
        now = float(np.abs(feasible - np.clip(feasible - (H @ feasible - b) / h, lower, upper)).max(initial=0.0)) / size
        if now < residual:
            best, residual = feasible, now
        if residual <= tol or iteration == max_iter:
            break
        to_lower = (side == 0) & (u < lower - slack)
        to_upper = (side == 0) & (u > upper + slack)
        to_free = ((side < 0) & (g < -slack)) | ((side > 0) & (g > slack))
        wrong = np.flatnonzero(to_lower | to_upper | to_free)
        if not len(wrong):
            break
        if len(wrong) < fewest:
            fewest, stalls = len(wrong), 0
        else:
            stalls += 1
            if stalls > MAX_STALLS:
                return _projected_newton(
                    H, b, lower, upper, best, tol=tol, max_iter=max_iter, done=iteration, dense_limit=dense_limit
                )
            wrong = wrong[-max(1, len(wrong) >> stalls) :]
        side[wrong] = np.where(to_lower[wrong], -1, np.where(to_upper[wrong], 1, 0))
    return best, residual, iteration


def _projected_newton(
    H: sp.csr_array,
    b: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    u: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    done: int,
    dense_limit: int,
) -> tuple[np.ndarray, float, int]:
    """u (n,) from a feasible start, its KKT residual, and the number of steps with those already done."""
    h, size = _scale(H, b, lower, upper)
    residual = np.inf
    for iteration in range(done, max_iter + 1):
        g = H @ u - b
        residual = float(np.abs(u - np.clip(u - g / h, lower, upper)).max(initial=0.0)) / size
        if residual <= tol or iteration == max_iter:
            break
        # Entries within reach of their bound count as bound, or steps would be cut short without end.
        reach = size * min(1e-3, 0.1 * residual)
        bound = ((u <= lower + reach) & (g > 0)) | ((u >= upper - reach) & (g < 0))
        step = _solve_free(H, -g, np.zeros_like(g), ~bound, np.zeros_like(g), dense_limit, tol)
        step[bound] = -g[bound] / h
        value, length = 0.5 * u @ (H @ u) - b @ u, 1.0
        while length > 1e-12:
            trial = np.clip(u + length * step, lower, upper)
            if 0.5 * trial @ (H @ trial) - b @ trial <= value + 1e-4 * (g @ (trial - u)):
                break
            length *= 0.5
        else:  # no descent within rounding
            break
        u = trial
    return u, residual, iteration


def _solve_free(
    H: sp.csr_array,
    b: np.ndarray,
    bound: np.ndarray,
    free: np.ndarray,
    start: np.ndarray,
    dense_limit: int,
    tol: float,
) -> np.ndarray:
    """u with u = bound off the free set and (H u - b) = 0 on it."""
    u = np.where(free, 0.0, bound)
    rows = np.flatnonzero(free)
    if not len(rows):
        return u
    right = b[rows] - (H[rows] @ u)
    H_free = H[rows][:, rows]
    if H_free.nnz <= SPARSE_ROW * len(rows):
        factor = splu(H_free.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        u[rows] = factor.solve(right)
        return u
    if len(rows) <= dense_limit:
        u[rows] = scipy.linalg.solve(H_free.toarray(), right, assume_a="pos", check_finite=False)
        return u
    inverse_diagonal = sp.diags_array(1.0 / H_free.diagonal())
    u[rows], _ = cg(H_free, right, x0=start[rows], rtol=min(1e-10, 1e-2 * tol), M=inverse_diagonal, maxiter=10_000)
    return u

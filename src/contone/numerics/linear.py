"""Linear systems with a symmetric positive definite operator and several right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from contone.numerics.solution import Solution

Array = Any
Operator = Callable[[Array], Array]


def conjugate_gradient(
    apply: Operator,
    B: Array,
    *,
    diagonal: Array | None = None,
    start: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Solution:
    """Solve A X = B for symmetric positive definite A, for all columns of B at once.

    Every column runs its own conjugate gradients (own step lengths), but all share each product with A: for a graph or
    a recomputed kernel the product's cost hardly depends on the number of columns.

    Parameters
    ----------
    apply : callable
        V (n, q) -> A V (n, q).
    B : array, (n, q)
    diagonal : array (n,), optional
        Diagonal of A, or any positive vector near it: Jacobi preconditioner.
    start : array (n, q), optional
        First iterate; 0 by default.
    tol : float
        Stop once every column has ||b - A x|| <= tol ||b||.
    max_iter : int
        Most products with A.

    Returns
    -------
    Solution
        `value` X (n, q); `residual` the largest relative residual over the columns.
    """
    xp = array_namespace(B)
    precondition = _jacobi(diagonal)
    scale = xp.sqrt(xp.sum(B * B, axis=0))
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    X = xp.zeros_like(B) if start is None else start + xp.zeros_like(B)
    R = B + xp.zeros_like(B) if start is None else B - apply(start)
    Z = precondition(R)
    P = Z + xp.zeros_like(Z)
    rz = xp.sum(R * Z, axis=0)
    residual = _largest(xp, R, scale)
    n_iter = 0
    while residual > tol and n_iter < max_iter:
        AP = apply(P)
        curvature = xp.sum(P * AP, axis=0)
        # A column that is done has rz = 0 (or rounding): it takes no further step.
        step = _ratio(xp, rz, curvature)
        X += step * P
        R -= step * AP
        Z = precondition(R)
        rz, previous = xp.sum(R * Z, axis=0), rz
        P *= _ratio(xp, rz, previous)
        P += Z
        residual = _largest(xp, R, scale)
        n_iter += 1
    return Solution(X, residual=residual, n_iter=n_iter, converged=residual <= tol)


def _jacobi(diagonal: Array | None) -> Operator:
    if diagonal is None:
        return lambda R: R
    inverse = 1.0 / diagonal[:, None]
    return lambda R: inverse * R


def _ratio(xp: Any, a: Array, b: Array) -> Array:
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(a))


def _largest(xp: Any, R: Array, scale: Array) -> float:
    return float(xp.max(xp.sqrt(xp.sum(R * R, axis=0)) / scale))

"""Linear systems with a symmetric positive definite operator and several right-hand sides."""

import math

from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.numerics.solution import Solution
from contone.typing import Array, Operator


def conjugate_gradient(
    apply: Operator, B: Array, *, diagonal: Array | None = None, tol: float = 1e-10, max_iter: int = 1000
) -> Solution:
    """Solve A X = B for symmetric positive definite A, for all columns of B at once.

    Every column runs its own conjugate gradients (own step lengths), but all share each product with A: for a graph or
    a recomputed kernel the product's cost hardly depends on the number of columns.

    Parameters
    ----------
    apply : callable
        V (n, q) -> A V (n, q).
    B : array, (n, q)
        Right sides.
    diagonal : array (n,), optional
        Diagonal of A, or any positive vector near it: Jacobi preconditioner.
    tol : float
        Stop once every column has ||b - A x|| <= tol ||b||.
    max_iter : int
        Maximum number of iterations; each is one product with A.

    Returns
    -------
    Solution
        `value` X (n, q); `residual` the largest relative residual over the columns.
    """
    over_rows, xp = get_backend(B).over_rows, array_namespace(B)
    square = over_rows(column_inner, B, B)
    scale = xp.where(square > 0, square, xp.ones_like(square))
    X = xp.zeros_like(B)
    R = B + X
    weight = X[:, :1] + 1.0 if diagonal is None else 1.0 / diagonal[:, None]
    P = weight * R  # Z = R / diagonal is never stored
    lengths = over_rows(_lengths, R, weight)
    n_iter = 0
    while (residual := math.sqrt(float(xp.max(lengths[1, ...] / scale)))) > tol and n_iter < max_iter:
        AP = apply(P)
        curvature = over_rows(column_inner, P, AP)
        # A column that is done has rz = 0 (or rounding): it takes no further step.
        previous = lengths
        lengths = over_rows(_move, X, R, P, AP, weight, step=ratio(previous[0, ...], curvature))
        over_rows(_turn, P, R, weight, ratio=ratio(lengths[0, ...], previous[0, ...]))
        n_iter += 1
    return Solution(X, residual=residual, n_iter=n_iter, converged=residual <= tol)


# What is done between two sums over all rows, to some of the rows. `weight` (n, 1) is 1 / diagonal.


def _lengths(R: Array, weight: Array) -> Array:
    """r^T z and r^T r of every column, (2, q)."""
    return array_namespace(R).stack([column_inner(R, weight * R), column_inner(R, R)])


def _move(X: Array, R: Array, P: Array, AP: Array, weight: Array, step: Array) -> Array:
    X += step * P
    R -= step * AP
    return _lengths(R, weight)


def _turn(P: Array, R: Array, weight: Array, ratio: Array) -> None:
    P *= ratio
    P += weight * R


def column_inner(A: Array, B: Array) -> Array:
    """a_j^T b_j (q,) of the columns of A and B (n, q).

    A product with ones, because NumPy sums short rows ten times slower than it multiplies.
    """
    xp = array_namespace(A, B)
    return xp.matmul(xp.ones(A.shape[0], dtype=A.dtype, device=getattr(A, "device", None)), A * B)


def ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is 0."""
    xp = array_namespace(a, b)
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(a))

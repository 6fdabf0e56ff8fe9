"""Linear systems with a symmetric positive definite operator and several right-hand sides."""

from __future__ import annotations

from functools import partial
from typing import Any

from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.numerics.solution import Solution
from contone.runtime.threads import for_each, total
from contone.typing import Array, Operator


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
        Right sides.
    diagonal : array (n,), optional
        Diagonal of A, or any positive vector near it: Jacobi preconditioner.
    start : array (n, q), optional
        First iterate; 0 by default.
    tol : float
        Stop once every column has ||b - A x|| <= tol ||b||.
    max_iter : int
        Maximum number of iterations; each is one product with A.

    Returns
    -------
    Solution
        `value` X (n, q); `residual` the largest relative residual over the columns.
    """
    xp = array_namespace(B)
    scale = xp.sqrt(column_inner(B, B))
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    X = xp.zeros_like(B) if start is None else start + xp.zeros_like(B)
    R = B + xp.zeros_like(B) if start is None else B - apply(start)
    P = xp.empty_like(R)
    inverse = None if diagonal is None else 1.0 / diagonal[:, None]
    pieces = get_backend(B).pieces(B)

    # What is done between two sums over all rows, to a piece of the rows. Z = R / diagonal is never stored.
    def preconditioned(rows: slice) -> Array:
        return R[rows, :] if inverse is None else inverse[rows, :] * R[rows, :]

    def lengths(rows: slice) -> Array:
        """r^T z and r^T r of every column."""
        square = column_inner(R[rows, :], R[rows, :])
        return xp.stack([square if inverse is None else column_inner(R[rows, :], preconditioned(rows)), square])

    def begin(rows: slice) -> Array:
        P[rows, :] = preconditioned(rows)
        return lengths(rows)

    def move(rows: slice, AP: Array, step: Array) -> Array:
        X[rows, :] += step * P[rows, :]
        R[rows, :] -= step * AP[rows, :]
        return lengths(rows)

    def turn(rows: slice, ratio: Array) -> None:
        direction = P[rows, :]
        direction *= ratio
        direction += preconditioned(rows)

    rz, square = _two(total(begin, pieces))
    n_iter = 0
    while _largest(xp, square, scale) > tol and n_iter < max_iter:
        AP = apply(P)
        curvature = total(partial(_column_inner_of, P, AP), pieces)
        # A column that is done has rz = 0 (or rounding): it takes no further step.
        previous, (rz, square) = rz, _two(total(partial(move, AP=AP, step=_ratio(xp, rz, curvature)), pieces))
        for_each(partial(turn, ratio=_ratio(xp, rz, previous)), pieces)
        n_iter += 1
    residual = _largest(xp, square, scale)
    return Solution(X, residual=residual, n_iter=n_iter, converged=residual <= tol)


def column_inner(A: Array, B: Array) -> Array:
    """a_j^T b_j (q,) of the columns of A and B (n, q).

    A product with ones, because NumPy sums short rows ten times slower than it multiplies.
    """
    xp = array_namespace(A, B)
    return xp.matmul(xp.ones(A.shape[0], dtype=A.dtype, device=getattr(A, "device", None)), A * B)


def _column_inner_of(A: Array, B: Array, rows: slice) -> Array:
    return column_inner(A[rows, :], B[rows, :])


def _two(stacked: Array) -> tuple[Array, Array]:
    return stacked[0, ...], stacked[1, ...]


def _ratio(xp: Any, a: Array, b: Array) -> Array:
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(a))


def _largest(xp: Any, square: Array, scale: Array) -> float:
    return float(xp.max(xp.sqrt(square) / scale))

"""Quadratic forms b^T f(A) b of a large symmetric operator, for many functions f at the price of a few products.

m Lanczos steps from b reduce A to a tridiagonal T (m, m), and b^T f(A) b ~ ||b||^2 (f(T))_11: Gauss quadrature, exact
for polynomials up to degree 2m - 1. So one run serves every f, for instance every value of a regularization weight.

G. H. Golub, G. Meurant. Matrices, Moments and Quadrature with Applications. Princeton 2010.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, to_numpy
from contone.numerics.linear import column_inner, ratio
from contone.typing import Array, Operator


class Quadrature(NamedTuple):
    """For every column b_j: b_j^T f(A) b_j is about sum_r weights[j, r] f(nodes[j, r])."""

    nodes: np.ndarray
    weights: np.ndarray

    def __call__(self, f: Callable[[np.ndarray], np.ndarray]) -> Array:
        """The quadratic forms (q,) of f, a function of an array of eigenvalues; or (q, m) of m functions (..., m)."""
        return np.einsum("qr,qr...->q...", self.weights, f(self.nodes))


def quadrature(
    apply: Operator, B: Array, *, steps: int = 20, enough: Callable[[Quadrature], bool] | None = None
) -> Quadrature:
    """Nodes and weights (q, steps) of the columns of B (n, q), by `steps` products with the symmetric V -> A V.

    There may be fewer: `enough`, asked after each, ends it.

    No vector is kept beyond the last two and nothing is re-orthogonalised: the copies of eigenvalues that rounding
    brings share the weight of the original, which leaves sums as they are.
    """
    over_rows, xp = get_backend(B).over_rows, array_namespace(B)
    norm = xp.sqrt(over_rows(column_inner, B, B))
    one = xp.ones_like(norm)
    V = ratio(one, norm) * B
    previous, beta = V, 0.0 * norm
    T = np.zeros((B.shape[1], steps, steps))  # a few numbers, on the host
    length = to_numpy(norm)[:, None]
    for r in range(steps):
        W = apply(V)
        alpha = over_rows(_subtract, W, previous, V, share=beta)
        square = over_rows(_subtract, W, V, W, share=alpha)
        T[:, r, r] = to_numpy(alpha)
        beta = xp.sqrt(square)
        # Rounding only: the Krylov space is exhausted, and the rest of T stays zero without touching its first entry.
        beta = xp.where(beta > 1e-10 * (1.0 + xp.abs(alpha)), beta, xp.zeros_like(beta))
        nodes, vectors = np.linalg.eigh(T[:, : r + 1, : r + 1])
        found = Quadrature(nodes, (length * vectors[:, 0, :]) ** 2)
        if r + 1 == steps or (enough is not None and enough(found)):
            break
        T[:, r, r + 1] = T[:, r + 1, r] = to_numpy(beta)
        over_rows(_multiply, W, factor=ratio(one, beta))
        previous, V = V, W
    return found


# What is done between two sums over all rows, to some of the rows.


def _multiply(W: Array, factor: Array) -> None:
    W *= factor


def _subtract(W: Array, other: Array, V: Array, share: Array) -> Array:
    """W - share other, in place, and its inner products with the columns of V, which may be W itself."""
    W -= share * other
    return column_inner(W, V)

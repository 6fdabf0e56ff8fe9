"""Quadratic forms b^T f(A) b of a large symmetric operator, for many functions f at the price of a few products.

m Lanczos steps from b reduce A to a tridiagonal T (m, m), and b^T f(A) b ~ ||b||^2 (f(T))_11: Gauss quadrature, exact
for polynomials up to degree 2m - 1. So one run serves every f, for instance every value of a regularization weight.

G. H. Golub, G. Meurant. Matrices, Moments and Quadrature with Applications. Princeton 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, to_numpy
from contone.numerics.linear import column_inner
from contone.runtime.threads import for_each, total
from contone.typing import Array, Operator


class Quadrature(NamedTuple):
    """For every column b_j: b_j^T f(A) b_j is about sum_r weights[j, r] f(nodes[j, r])."""

    nodes: np.ndarray
    weights: np.ndarray

    def __call__(self, f: Callable[[np.ndarray], np.ndarray]) -> Array:
        """The quadratic forms (q,) of f, a function of an array of eigenvalues; or (q, m) of m functions (..., m)."""
        values = f(self.nodes)
        return np.einsum("qr,qr...->q...", self.weights, values)


def quadrature(
    apply: Operator, B: Array, *, steps: int = 20, enough: Callable[[Quadrature], bool] | None = None
) -> Quadrature:
    """Nodes and weights (q, steps) of the columns of B (n, q), by `steps` products with the symmetric V -> A V.

    There may be fewer: `enough`, asked after each, ends it.

    No vector is kept beyond the last two and nothing is re-orthogonalised: the copies of eigenvalues that rounding
    brings share the weight of the original, which leaves sums as they are.
    """
    xp = array_namespace(B)
    norm = xp.sqrt(column_inner(B, B))
    V = B * _inverse(xp, norm)
    previous = xp.zeros_like(V)
    beta = xp.zeros_like(norm)
    T = np.zeros((B.shape[1], steps, steps))  # a few numbers, on the host
    length = to_numpy(norm)[:, None]
    pieces = get_backend(B).pieces(B)

    def subtracted(rows: slice, W: Array, share: Array, V: Array, other: Array) -> Array:
        """W - share V, in place, and its inner products with the columns of `other`."""
        some = W[rows, :]
        some -= share * V[rows, :]
        return column_inner(some, other[rows, :])

    def divided(rows: slice, W: Array, inverse: Array) -> None:
        W[rows, :] *= inverse

    for r in range(steps):
        W = apply(V)
        alpha = total(partial(subtracted, W=W, share=beta, V=previous, other=V), pieces)
        square = total(partial(subtracted, W=W, share=alpha, V=V, other=W), pieces)
        T[:, r, r] = to_numpy(alpha)
        beta = xp.sqrt(square)
        # Rounding only: the Krylov space is exhausted, and the rest of T stays zero without touching its first entry.
        beta = xp.where(beta > 1e-10 * (1.0 + xp.abs(alpha)), beta, xp.zeros_like(beta))
        nodes, vectors = np.linalg.eigh(T[:, : r + 1, : r + 1])
        found = Quadrature(nodes, (length * vectors[:, 0, :]) ** 2)
        if r + 1 == steps or (enough is not None and enough(found)):
            break
        T[:, r, r + 1] = T[:, r + 1, r] = to_numpy(beta)
        for_each(partial(divided, W=W, inverse=_inverse(xp, beta)), pieces)
        previous, V = V, W
    return found


def _inverse(xp: Any, a: Array) -> Array:
    return xp.where(a > 0, 1.0 / xp.where(a > 0, a, xp.ones_like(a)), xp.zeros_like(a))

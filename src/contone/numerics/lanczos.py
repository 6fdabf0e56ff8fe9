"""Quadratic forms b^T f(A) b of a large symmetric operator, for many functions f at the price of a few products.

m Lanczos steps from b reduce A to a tridiagonal T (m, m), and b^T f(A) b ~ ||b||^2 (f(T))_11: Gauss quadrature, exact
for polynomials up to degree 2m - 1. So one run serves every f, for instance every value of a regularisation weight.

G. H. Golub, G. Meurant. Matrices, Moments and Quadrature with Applications. Princeton 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from contone.numerics.linear import column_inner
from contone.numerics.threads import for_each, pieces_of, total

Array = Any
Operator = Callable[[Array], Array]


class Quadrature(NamedTuple):
    """For every column b_j: b_j^T f(A) b_j is about sum_r weights[j, r] f(nodes[j, r])."""

    nodes: Array
    weights: Array

    def __call__(self, f: Callable[[Array], Array]) -> Array:
        """The quadratic forms (q,) of f, a function of an array of eigenvalues."""
        return array_namespace(self.nodes).sum(self.weights * f(self.nodes), axis=1)


def quadrature(apply: Operator, B: Array, *, steps: int = 20) -> Quadrature:
    """Nodes and weights (q, steps) of the columns of B (n, q), by `steps` products with the symmetric V -> A V.

    No vector is kept beyond the last two and nothing is re-orthogonalised: the copies of eigenvalues that rounding
    brings share the weight of the original, which leaves sums as they are.
    """
    xp = array_namespace(B)
    norm = xp.sqrt(column_inner(B, B))
    V = B * _inverse(xp, norm)
    previous = xp.zeros_like(V)
    beta = xp.zeros_like(norm)
    T = xp.zeros((B.shape[1], steps, steps), dtype=B.dtype, device=getattr(B, "device", None))
    pieces = pieces_of(B)

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
        T[:, r, r] = alpha
        beta = xp.sqrt(square)
        # Rounding only: the Krylov space is exhausted, and the rest of T stays zero without touching its first entry.
        beta = xp.where(beta > 1e-10 * (1.0 + xp.abs(alpha)), beta, xp.zeros_like(beta))
        if r + 1 < steps:
            T[:, r, r + 1] = beta
            T[:, r + 1, r] = beta
        for_each(partial(divided, W=W, inverse=_inverse(xp, beta)), pieces)
        previous, V = V, W
    nodes, vectors = xp.linalg.eigh(T)
    return Quadrature(nodes, (norm[:, None] * vectors[:, 0, :]) ** 2)


def _inverse(xp: Any, a: Array) -> Array:
    return xp.where(a > 0, 1.0 / xp.where(a > 0, a, xp.ones_like(a)), xp.zeros_like(a))

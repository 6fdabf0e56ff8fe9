"""A generalised eigenproblem whose left side is a thin product.

    A v = lambda B v,   A = C C^T,   C (d, q),   B (d, d) symmetric positive semi-definite

With K such that K^T B K = I (a whitening of B), v = K u turns it into the symmetric problem of (K^T C)(K^T C)^T, whose
eigenvectors are the left singular vectors of K^T C: a thin SVD of a (d, q) matrix, and A is never formed. At most
rank(C) eigenvalues are not zero; the eigenvectors of the rest are arbitrary and are chosen here, by a second matrix G,
as the B-orthonormal directions in the remaining space along which v^T G v is largest.
"""

from __future__ import annotations

from typing import NamedTuple

from array_api_compat import array_namespace

from contone.typing import Array


class Eigenpairs(NamedTuple):
    """Solutions of C C^T v = lambda B v, largest eigenvalue first."""

    values: Array
    """(r,) eigenvalues; exactly 0 beyond `rank`."""
    vectors: Array
    """(d, r) eigenvectors in columns, V^T B V = I, largest entry of each positive."""
    rank: int
    """How many eigenvalues differ from 0 in floating point."""


def thin_generalised_eigen(C: Array, B: Array, G: Array) -> Eigenpairs:
    """All r = rank(B) eigenpairs of C C^T v = lambda B v, the null part ordered by v^T G v.

    Parameters
    ----------
    C : array, (d, q)
    B : array, (d, d)
        Symmetric positive semi-definite; directions in its null space are left out.
    G : array, (d, d)
        Symmetric; orders the eigenvectors whose eigenvalue is 0.
    """
    xp = array_namespace(C, B, G)
    K = whitening(B)
    U, s, _ = xp.linalg.svd(xp.matmul(K.T, C), full_matrices=True)
    r = K.shape[1]
    resolution = float(xp.finfo(s.dtype).eps) * max(C.shape) * (float(s[0]) if s.shape[0] else 0.0)
    rank = int(xp.sum(xp.astype(s > resolution, xp.int64)))
    null = U[:, rank:]
    if rank < r:
        inner = xp.matmul(K, null)
        _, rotation = xp.linalg.eigh(xp.matmul(inner.T, xp.matmul(G, inner)))
        null = xp.matmul(null, xp.flip(rotation, axis=1))
    V = xp.matmul(K, xp.concat([U[:, :rank], null], axis=1))
    values = xp.concat([s[:rank] ** 2, xp.zeros(r - rank, dtype=s.dtype, device=getattr(s, "device", None))])
    return Eigenpairs(values, fix_signs(V), rank)


def whitening(B: Array) -> Array:
    """K (d, r) with K^T B K = I, r = rank(B), for a symmetric positive semi-definite B (d, d).

    By eigenvectors, not by Cholesky: it costs a little more and also serves a singular B.
    """
    xp = array_namespace(B)
    values, vectors = xp.linalg.eigh(B)
    largest = float(values[-1])
    kept = xp.nonzero(values > float(xp.finfo(B.dtype).eps) * B.shape[0] * largest)[0]
    return xp.take(vectors, kept, axis=1) / xp.sqrt(xp.take(values, kept))


def fix_signs(V: Array) -> Array:
    """Columns of V with their sign chosen so that the entry of largest magnitude (the first such) is positive."""
    xp = array_namespace(V)
    position = xp.argmax(xp.abs(V), axis=0)
    entry = xp.take_along_axis(V, xp.reshape(position, (1, -1)), axis=0)
    return xp.where(entry < 0, -V, V)

"""A generalised eigenproblem whose left side is a thin product.

    A v = lambda B v,   A = C C^T,   C (d, q),   B (d, d) symmetric positive semi-definite

With K such that K^T B K = I (a whitening of B), v = K u turns it into the symmetric problem of (K^T C)(K^T C)^T, whose
eigenvectors are the left singular vectors of K^T C: a thin SVD of a (d, q) matrix, and A is never formed. At most
rank(C) eigenvalues are not zero; the eigenvectors of the rest are arbitrary and are chosen here, by a second matrix G,
as the B-orthonormal directions in the remaining space along which v^T G v is largest.
"""

import math
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


def thin_generalised_eigen(C: Array, B: Array, G: Array, shift: Array | None = None) -> Eigenpairs:
    """All r = rank(B) eigenpairs of C C^T v = lambda B v, the null part ordered by v^T G v.

    Parameters
    ----------
    C : array, (d, q)
        Factor of the left side.
    B : array, (d, d)
        Symmetric positive semi-definite; directions in its null space are left out.
    G : array, (d, d)
        Symmetric; orders the eigenvectors whose eigenvalue is 0.
    shift : array, (d,), optional
        b, where B + b b^T takes the place of B; however long b is, B is not lost in the sum.
    """
    xp = array_namespace(C, B, G)
    K = whitening(B, shift)
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


def whitening(B: Array, shift: Array | None = None) -> Array:
    """K (d, r) with K^T (B + b b^T) K = I for a symmetric positive semi-definite B (d, d) and b = `shift` (d,) or 0.

    By eigenvectors, not by Cholesky: it costs a little more and also serves a singular B. The diagonal of B is made 1
    before, so that rows in a small unit are not taken for rounding of those in a large one. With K_0 for B itself,
    w = K_0^T b and a multiple z of what of b the columns of B do not reach, b^T z = rho, the answer is

        K_0 (I - (1 - (1 + w^T w)^(-1/2)) w w^T / (w^T w))   if b is in the column space of B,
        [K_0 - z w^T / rho,  z / rho]                        otherwise.
    """
    xp = array_namespace(B)
    root = xp.sqrt(xp.linalg.diagonal(B))
    unit = xp.where(root > 0, root, xp.ones_like(root))
    values, vectors = xp.linalg.eigh(B / unit[:, None] / unit[None, :])
    rounding = float(xp.finfo(B.dtype).eps) * B.shape[0]
    kept = xp.nonzero(values > rounding * float(values[-1]))[0]
    basis = xp.take(vectors, kept, axis=1)
    K = basis / xp.sqrt(xp.take(values, kept)) / unit[:, None]
    if shift is None or not bool(xp.any(shift != 0)):
        return K
    b = shift / unit
    rest = b - xp.matmul(basis, xp.matmul(basis.T, b))
    w = xp.matmul(K.T, shift)
    length = float(xp.linalg.vector_norm(rest))
    reached = K.shape[1] == B.shape[0] or length <= math.sqrt(rounding) * float(xp.linalg.vector_norm(b))
    if not reached:  # a full basis reaches everything: what it leaves of b is rounding, and no direction
        z = rest / length / unit
        return xp.concat([K - z[:, None] * w[None, :] / length, z[:, None] / length], axis=1)
    norm = float(xp.linalg.vector_norm(w))
    if norm == 0.0:
        return K
    direction = w / norm
    shrink = 1.0 - 1.0 / math.hypot(1.0, norm)
    return K - shrink * xp.matmul(K, direction)[:, None] * direction[None, :]


def fix_signs(V: Array) -> Array:
    """Columns of V with their sign chosen so that the entry of largest magnitude (the first such) is positive."""
    xp = array_namespace(V)
    entry = xp.take_along_axis(V, xp.argmax(xp.abs(V), axis=0)[None, :], axis=0)
    return xp.where(entry < 0, -V, V)

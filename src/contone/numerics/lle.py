"""Reconstruction weights of locally linear embedding: every row as an affine mix of its neighbours.

For row i with neighbours N(i):  min_w ||x_i - sum_j w_j x_j||^2  s.t. sum_j w_j = 1. With Z the differences x_j - x_i,
w is Z Z^T w = 1 scaled to sum 1. Reference: Roweis and Saul, Science 290 (2000).
"""

import numpy as np
import scipy.sparse as sp

from contone.backends.numpy.graph import edge_graph
from contone.backends.numpy.neighbours import nearest_neighbours, safe_unit
from contone.typing import Array

BLOCK_ENTRIES = 2**22
"""Differences held in memory at once; 32 MB."""


def lle_weights(X: np.ndarray, k: int, *, regularization: float = 1e-3) -> sp.csr_array:
    """Reconstruction weights W (n, n), k entries per row that sum to 1; k is cut to n - 1.

    Parameters
    ----------
    X : (n, d)
        Rows.
    k : int
        Number of neighbours.
    regularization : float
        The local Gram matrix G gets ``regularization * trace(G)`` on its diagonal, always. Without it G is singular
        as soon as k > d or a neighbour is a duplicate of the row, and the weights reach 1e17.
    """
    X = X / safe_unit(X)  # the weights have no unit
    neighbours = nearest_neighbours(X, k)
    n, k = neighbours.indices.shape
    weights = np.empty((n, k))
    step = max(1, BLOCK_ENTRIES // max(1, k * X.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        weights[rows] = _affine_weights(X[neighbours.indices[rows]] - X[rows, None, :], regularization)
    return edge_graph(neighbours.indices, weights).matrix


def _affine_weights(Z: np.ndarray, r: float) -> Array:
    """Weights (m, k) that sum to 1 and minimise w^T (G + r trace(G) I) w, for differences Z (m, k, d), G = Z Z^T."""
    k, d = Z.shape[1:]
    Zt = Z.transpose(0, 2, 1)
    G = Z @ Zt if k <= d else Zt @ Z
    trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
    # Dividing by the trace makes the weights independent of the scale of X; a row whose neighbours are all its
    # duplicates has trace 0 and gets equal weights.
    trace = np.where(trace > 0, trace, 1.0)
    G = G / trace + r * np.eye(min(k, d))
    if k <= d:
        w = np.linalg.solve(G, np.ones((len(G), k, 1)))[..., 0]
    else:  # (Z Z^T + r I)^-1 = (I - Z (Z^T Z + r I)^-1 Z^T) / r: a system in the features, where these are fewer
        w = 1.0 - (Z @ np.linalg.solve(G, Zt.sum(axis=2, keepdims=True) / trace))[..., 0]
    return w / w.sum(axis=1, keepdims=True)


def lle_matrix(W: sp.csr_array) -> sp.csr_array | np.ndarray:
    """M = (I - W)^T (I - W), (n, n): tr(U^T M U) is how badly the weights reconstruct U (n, q).

    Sparse, unless rows have so many neighbours, more than sqrt(n), that nearly every entry is filled.
    """
    n = W.shape[0]
    A = sp.eye_array(n, format="csr") - W
    if W.nnz**2 > float(n) ** 3:
        A = A.toarray()
        return A.T @ A
    return (A.T @ A).tocsr()

"""Reconstruction weights of locally linear embedding: every row as an affine mix of its neighbours.

For row i with neighbours N(i):  min_w ||x_i - sum_j w_j x_j||^2  s.t. sum_j w_j = 1. With Z the differences x_j - x_i,
w is Z Z^T w = 1 scaled to sum 1. Reference: Roweis and Saul, Science 290 (2000).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contone.backends.numpy.graph import edge_graph
from contone.backends.numpy.neighbours import nearest_neighbours, safe_unit
from contone.typing import Array

BLOCK_ENTRIES = 2**22
"""Differences, and entries of Gram matrices, held in memory at once; 32 MB each."""


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
    step = max(1, BLOCK_ENTRIES // max(1, k * max(k, X.shape[1])))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        Z = X[neighbours.indices[rows]] - X[rows, None, :]
        weights[rows] = _affine_weights(Z @ Z.transpose(0, 2, 1), regularization)
    return edge_graph(neighbours.indices, weights).matrix


def _affine_weights(G: np.ndarray, regularization: float) -> Array:
    """Weights (m, k) that sum to 1 and minimise w^T (G + r trace(G) I) w, for Gram matrices G (m, k, k)."""
    k = G.shape[-1]
    trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
    # Dividing by the trace makes the weights independent of the scale of X; a row whose neighbours are all its
    # duplicates has trace 0 and gets equal weights.
    G = G / np.where(trace > 0, trace, 1.0) + regularization * np.eye(k)
    w = np.linalg.solve(G, np.ones((len(G), k, 1)))[..., 0]
    return w / w.sum(axis=1, keepdims=True)


def lle_matrix(W: sp.csr_array) -> sp.csr_array:
    """M = (I - W)^T (I - W), sparse (n, n): tr(U^T M U) is how badly the weights reconstruct U (n, q)."""
    A = sp.eye_array(W.shape[0], format="csr") - W
    return (A.T @ A).tocsr()

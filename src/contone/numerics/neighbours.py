"""Nearest neighbours and the graphs made of them.

One function finds neighbours for the whole library, so that its engine can change with the size of the problem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors


class Neighbours(NamedTuple):
    """The k nearest other rows of every row, nearest first."""

    indices: np.ndarray
    """(n, k) row numbers; never the row itself."""
    distances: np.ndarray
    """(n, k) Euclidean distances."""


def nearest_neighbours(X: np.ndarray, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count as neighbours at 0."""
    k = min(k, X.shape[0] - 1)
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return Neighbours(indices, distances)


def query_neighbours(X: np.ndarray, queries: np.ndarray, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
    distances, indices = NearestNeighbors(n_neighbors=min(k, X.shape[0])).fit(X).kneighbors(queries)
    return Neighbours(indices, distances)


def edge_matrix(neighbours: Neighbours, weights: np.ndarray) -> sp.csr_array:
    """The directed graph with weight w_ir (n, k) on the edge from row i to its r-th neighbour, as (n, n) CSR."""
    n, k = neighbours.indices.shape
    width = np.int32 if n * k < 2**31 else np.int64  # half the memory, and faster products, while it suffices
    start = np.arange(0, n * k + 1, k, dtype=width)
    return sp.csr_array((weights.ravel(), neighbours.indices.ravel().astype(width), start), shape=(n, n))


def gaussian_weights(distances: np.ndarray, sigma: float) -> np.ndarray:
    """w = exp(-distance^2 / sigma^2), shape kept; at sigma = 0 the limit: 1 between duplicates, 0 elsewhere."""
    if sigma == 0.0:
        return (distances == 0.0).astype(distances.dtype)
    return np.exp(-np.square(distances / sigma))


class NormalisedGraph(NamedTuple):
    """S = D^-1/2 W D^-1/2 of a symmetric graph W."""

    S: sp.csr_array
    """(n, n); rows and columns of isolated points are zero."""
    degree: np.ndarray
    """(n,) row sums of W; 0 for an isolated point."""


def normalised_graph(W: sp.csr_array) -> NormalisedGraph:
    """S = D^-1/2 W D^-1/2 of the symmetric W (n, n), whose eigenvalues lie in [-1, 1].

    A degree that is zero, or so small that dividing by it loses all digits, counts as isolated.
    """
    degree = np.asarray(W.sum(axis=1)).ravel()
    linked = degree > np.finfo(np.float64).tiny / np.finfo(np.float64).eps
    degree = np.where(linked, degree, 0.0)
    root = np.zeros_like(degree)
    root[linked] = 1.0 / np.sqrt(degree[linked])
    S = W.tocsr(copy=True)
    S.data *= root[S.indices]
    S.data *= np.repeat(root, np.diff(S.indptr))
    S.eliminate_zeros()
    return NormalisedGraph(S, degree)

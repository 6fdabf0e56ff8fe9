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


def edge_matrix(neighbours: Neighbours, weights: np.ndarray) -> sp.csr_array:
    """The directed graph with weight w_ir (n, k) on the edge from row i to its r-th neighbour, as (n, n) CSR."""
    n, k = neighbours.indices.shape
    start = np.arange(0, n * k + 1, k)
    return sp.csr_array((weights.ravel(), neighbours.indices.ravel(), start), shape=(n, n))

"""Nearest neighbours and the graphs made of them.

One function finds neighbours for the whole library, and chooses its engine by the size of the problem:

- torch tensors: exact, on their device (`neighbours_torch`);
- up to 50,000 rows, or up to 6 features (where trees are fast at any size): exact, scikit-learn;
- beyond: faiss (extra `scale`), approximate, tuned to the data, its recall measured (`neighbours_faiss`).
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_torch_array
from sklearn.neighbors import NearestNeighbors

EXACT_ROWS = 50_000
"""Up to this many rows comparing all with all takes seconds: about 6 on one core with 24 features."""
LOW_DIMENSION = 6
"""Up to this many features a k-d tree is exact and faster than anything else, whatever the number of rows."""
GOOD_RECALL = 0.95
"""Below this share of true neighbours an approximate graph comes with a warning."""


class Neighbours(NamedTuple):
    """The k nearest rows of every row (or query), nearest first, and how they were found."""

    indices: Any
    """(n, k) row numbers; never the row itself."""
    distances: Any
    """(n, k) Euclidean distances."""
    engine: str = "exact"
    """What searched, with its settings."""
    recall: float = 1.0
    """Share of true neighbours among those found, measured on a sample; 1 for an exact search."""

    def report(self) -> dict[str, Any]:
        """Engine and recall as plain values, for `Solution.info["neighbours"]`."""
        return {"engine": self.engine, "recall": self.recall}


def nearest_neighbours(X: Any, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count as neighbours at 0."""
    n = X.shape[0]
    k = min(k, n - 1)
    if is_torch_array(X):
        from contone.numerics import neighbours_torch

        found = neighbours_torch.nearest_neighbours(X, k)
        return Neighbours(found.indices, found.distances, "torch-exact")
    if _use_faiss(X, n):
        from contone.numerics import neighbours_faiss

        return _approximate(neighbours_faiss.nearest_neighbours(X, k))
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return Neighbours(indices, distances)


def query_neighbours(X: np.ndarray, queries: np.ndarray, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
    k = min(k, X.shape[0])
    if _use_faiss(X, len(queries)):
        from contone.numerics import neighbours_faiss

        return _approximate(neighbours_faiss.query_neighbours(X, queries, k))
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(queries)
    return Neighbours(indices, distances)


def _use_faiss(X: np.ndarray, n_queries: int) -> bool:
    """Whether this search is too large to be exact; says so where faiss is not there to help."""
    n, d = X.shape
    if n * n_queries <= EXACT_ROWS**2 or d <= LOW_DIMENSION:
        return False
    if find_spec("faiss") is not None:
        return True
    warnings.warn(
        f"Comparing {n_queries:,} rows with {n:,} one by one will take about {_exact_minutes(X, n_queries):.0f} "
        "minutes. Install faiss, which takes seconds: pip install 'contone[scale]'.",
        UserWarning,
        stacklevel=3,
    )
    return False


def _exact_minutes(X: np.ndarray, n_queries: int, n_tried: int = 256) -> float:
    """The time of an exact search, from that of a few queries."""
    search = NearestNeighbors(n_neighbors=min(10, len(X))).fit(X)
    before = time.perf_counter()
    search.kneighbors(X[:: max(len(X) // n_tried, 1)][:n_tried])
    return (time.perf_counter() - before) / min(n_tried, len(X)) * n_queries / 60.0


def _approximate(found: Any) -> Neighbours:
    lists, probes, candidates = found.settings
    engine = f"faiss, {lists} lists, {probes} probes, {candidates} candidates"
    return Neighbours(found.indices, found.distances, engine, found.recall)


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

"""Nearest neighbours and the graphs made of them.

One function finds neighbours for the whole library, and chooses its engine by the size of the problem:

- torch tensors on a GPU: exact, where they are (`neighbours_torch`);
- dask arrays: exact, blocks against blocks (`neighbours_dask`);
- up to 50,000 rows, or up to 6 features (where trees are fast at any size): exact, scikit-learn;
- beyond: faiss (extra `scale`), approximate, tuned to the data, its recall measured (`neighbours_faiss`).
"""

from __future__ import annotations

import math
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_dask_array, is_torch_array
from sklearn.neighbors import NearestNeighbors

from contone.backends.numpy import graph as sparse
from contone.runtime.threads import inverse, taken
from contone.runtime.warnings import warn

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
    order: Any = None
    """(n,) the rows in an order in which neighbours lie near each other; None where that was not worth finding."""

    def report(self) -> dict[str, Any]:
        """Engine and recall as plain values, for `Solution.info["neighbours"]`."""
        return {"engine": self.engine, "recall": self.recall}


def nearest_neighbours(X: Any, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count as neighbours at 0."""
    n = X.shape[0]
    k = min(k, n - 1)
    if is_torch_array(X):
        from contone.backends.torch import neighbours as neighbours_torch

        if _on_host(X):
            return _as_tensors(nearest_neighbours(X.numpy(), k), X)
        found = neighbours_torch.nearest_neighbours(X, k)
        return Neighbours(found.indices, found.distances, "torch-exact")
    if is_dask_array(X):
        from contone.backends.dask import neighbours as neighbours_dask

        return Neighbours(*neighbours_dask.nearest_neighbours(X, k), "dask-exact")
    if _use_faiss(X, n):
        from contone.backends.numpy import faiss_search as neighbours_faiss

        return _approximate(neighbours_faiss.nearest_neighbours(X, k))
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return Neighbours(indices, distances)


def query_neighbours(X: Any, queries: Any, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
    k = min(k, X.shape[0])
    if is_torch_array(X):
        from contone.backends.torch import neighbours as neighbours_torch

        if _on_host(X):
            return _as_tensors(query_neighbours(X.numpy(), queries.numpy(), k), X)
        return Neighbours(*neighbours_torch.query_neighbours(X, queries, k), "torch-exact")
    if is_dask_array(X) or is_dask_array(queries):
        from contone.backends.dask import neighbours as neighbours_dask

        return Neighbours(*neighbours_dask.query_neighbours(X, queries, k), "dask-exact")
    if _use_faiss(X, len(queries)):
        from contone.backends.numpy import faiss_search as neighbours_faiss

        return _approximate(neighbours_faiss.query_neighbours(X, queries, k))
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(queries)
    return Neighbours(indices, distances)


def _on_host(X: Any) -> bool:
    """Whether a tensor lies in the memory of the host, where the engines for arrays are faster and need no copy."""
    return X.device.type == "cpu"


def _as_tensors(found: Neighbours, X: Any) -> Neighbours:
    """What an engine for arrays found, as tensors like X."""
    import torch

    order = None if found.order is None else torch.as_tensor(found.order)
    indices = torch.as_tensor(found.indices).to(torch.int64)
    return found._replace(indices=indices, distances=torch.as_tensor(found.distances).to(X.dtype), order=order)


def _use_faiss(X: np.ndarray, n_queries: int) -> bool:
    """Whether this search is too large to be exact; says so where faiss is not there to help."""
    n, d = X.shape
    if n * n_queries <= EXACT_ROWS**2 or d <= LOW_DIMENSION:
        return False
    if find_spec("faiss") is not None:
        return True
    warn(
        f"Comparing {n_queries:,} rows with {n:,} one by one will take about {_exact_minutes(X, n_queries):.0f} "
        "minutes. Install faiss, which takes seconds: pip install 'contone[scale]'.",
        UserWarning,
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
    return Neighbours(found.indices, found.distances, engine, found.recall, found.order)


def localised(neighbours: Neighbours) -> tuple[Neighbours, Any]:
    """The same neighbourhoods with the rows renumbered by `order`, and that order: row r is now what order[r] was.

    Products with the graph of a million rows spend their time waiting for memory; with neighbours near each other the
    processor's cache holds most of what a row needs. Without an order nothing changes, and slice(None) stands for it.
    """
    order = neighbours.order
    if order is None:
        return neighbours, slice(None)
    indices = taken(inverse(order), taken(neighbours.indices, order))
    return neighbours._replace(indices=indices, distances=taken(neighbours.distances, order), order=None), order


def put_back(A: Any, order: Any) -> Any:
    """The rows of A (n, q), given in the order of `localised`, where they were before."""
    if isinstance(order, slice):
        return A
    return taken(A, inverse(order))


def edge_matrix(neighbours: Neighbours, weights: Any) -> Any:
    """The directed graph with weight w_ir (n, k) on the edge from row i to its r-th neighbour, as (n, n) CSR."""
    return sparse.edge_matrix(neighbours.indices, weights)


def affinity_matrix(neighbours: Neighbours, width: float) -> Any:
    """A (n, n) CSR, A_ij = exp(-distance_ij^2 / (2 width^2)) where i is a neighbour of j or j one of i."""
    W = edge_matrix(neighbours, gaussian_weights(neighbours.distances, math.sqrt(2.0) * width))
    return sparse.symmetrised(W, by="max")


def gaussian_weights(distances: Any, sigma: float) -> Any:
    """w = exp(-distance^2 / sigma^2), shape kept; at sigma = 0 the limit: 1 between duplicates, 0 elsewhere."""
    xp = array_namespace(distances)
    if sigma == 0.0:
        return xp.astype(distances == 0.0, distances.dtype)
    return xp.exp(-xp.square(distances / sigma))


class NormalisedGraph(NamedTuple):
    """S = D^-1/2 W D^-1/2 of a symmetric graph W."""

    S: Any
    """(n, n) CSR; rows and columns of isolated points are zero."""
    degree: Any
    """(n,) row sums of W; 0 for an isolated point."""


def normalised_graph(W: Any) -> NormalisedGraph:
    """S = D^-1/2 W D^-1/2 of the symmetric CSR matrix W (n, n), whose eigenvalues lie in [-1, 1].

    A degree that is zero, or so small that dividing by it loses all digits, counts as isolated.
    """
    degree = sparse.row_sums(W)
    xp = array_namespace(degree)
    precision = xp.finfo(degree.dtype)
    linked = degree > precision.smallest_normal / precision.eps
    degree = xp.where(linked, degree, xp.zeros_like(degree))
    root = xp.where(linked, 1.0 / xp.sqrt(xp.where(linked, degree, xp.ones_like(degree))), degree)
    return NormalisedGraph(sparse.scaled(W, root, root), degree)

"""Nearest neighbours of NumPy rows; the engine is chosen by the size of the problem.

- up to 50,000 rows, or up to 6 features (where trees are fast at any size): exact, scikit-learn;
- beyond: faiss (extra `scale`), approximate, tuned to the data, its recall measured (`faiss_search`).
"""

import time
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from contone.runtime.warnings import warn
from contone.typing import Array, Record

EXACT_ROWS = 50_000
"""Up to this many rows comparing all with all takes seconds: about 6 on one core with 24 features."""
LOW_DIMENSION = 6
"""Up to this many features a k-d tree is exact and faster than anything else, whatever the number of rows."""

SMALLEST, LARGEST = 1e-140, 1e140
"""Features between these have squares that can be added up; others are searched in a unit of their own."""


class Neighbours(NamedTuple):
    """The k nearest rows of every row (or query), nearest first, and how they were found."""

    indices: Array
    """(n, k) row numbers; never the row itself."""
    distances: Array
    """(n, k) Euclidean distances."""
    engine: str = "exact"
    """What searched, with its settings."""
    recall: float = 1.0
    """Share of true neighbours among those found, measured on a sample; 1 for an exact search."""
    order: Array | None = None
    """(n,) the rows in an order in which neighbours lie near each other; None where that was not worth finding."""

    def report(self) -> Record:
        """Engine and recall as plain values, for `Solution.info["neighbours"]`."""
        return {"engine": self.engine, "recall": self.recall}


def nearest_neighbours(X: np.ndarray, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); k is cut to n - 1."""
    return _search(X, None, min(k, len(X) - 1))


def query_neighbours(X: np.ndarray, queries: np.ndarray, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
    return _search(X, queries, min(k, len(X)))


def _search(X: np.ndarray, queries: np.ndarray | None, k: int) -> Neighbours:
    asked = X if queries is None else queries
    unit = safe_unit(X, asked)
    if unit != 1.0:
        found = _search(X / unit, None if queries is None else queries / unit, k)
        return found._replace(distances=found.distances * unit)
    if _is_too_large(X, len(asked)):
        from contone.backends.numpy import faiss_search

        return faiss_search.search(X, queries, k)
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(queries)
    return Neighbours(indices, distances)


def safe_unit(*arrays: np.ndarray) -> float:
    """1, or where squares of the features would run out of floating point, a power of two near the largest of them."""
    largest = max(float(np.abs(A).max(initial=0.0)) for A in arrays)
    return 1.0 if largest == 0.0 or SMALLEST < largest < LARGEST else float(2.0 ** np.floor(np.log2(largest)))


def _is_too_large(X: np.ndarray, n_queries: int) -> bool:
    """Whether this search is too large to be exact; says so where faiss is not installed."""
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

"""Nearest neighbours of rows that no single machine holds.

Up to 50,000 rows, and where faiss is missing, blocks against blocks, which is exact; beyond, by lists (`lists`).

Every block of queries meets every block of the database in a task of its own, which leaves the k nearest of that block;
a tree of tasks merges them to the k nearest of all. The answer does not depend on the blocks. For B blocks there are
B^2 tasks; a task holds two blocks of features, and the blocks of a search are shared among the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import dask.array as da
import numpy as np
from dask.delayed import delayed

from contone.backends.dask.rows import block_starts, combine, persist
from contone.backends.numpy import neighbours as host_neighbours
from contone.backends.numpy.neighbours import Neighbours
from contone.typing import Array

if TYPE_CHECKING:
    from contone.backends.dask.lists import LocalNeighbours

EXACT_ROWS = host_neighbours.EXACT_ROWS
"""Up to this many rows all are compared with all."""


class DaskNeighbours(NamedTuple):
    """The k nearest rows of every query, nearest first, as lazy arrays (m, k)."""

    indices: Array
    distances: Array


def nearest_neighbours(X: Array, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); found now and held by the workers, who share n k numbers."""
    k = min(k, X.shape[0] - 1)
    if not by_lists(X):
        return Neighbours(*_as_arrays(persist(*_search(X, X, k, same=True)), X, k), "dask-exact")
    from contone.backends.dask import lists

    found = lists.nearest_neighbours(X, k, original=True)
    put_back = found.order.put_back
    return Neighbours(put_back(found.indices), put_back(found.distances), engine_of(found), found.recall)


def local_neighbours(X: Array, k: int) -> tuple[Neighbours, Array]:
    """The same in an order in which neighbours are near each other, and that order; slice(None) stands for none."""
    if not by_lists(X):
        return nearest_neighbours(X, k), slice(None)
    from contone.backends.dask import lists

    found = lists.nearest_neighbours(X, k)
    return Neighbours(found.indices, found.distances, engine_of(found), found.recall), found.order


def by_lists(X: Array) -> bool:
    """Whether X has so many rows that they are searched by lists."""
    return X.shape[0] > EXACT_ROWS and find_spec("faiss") is not None


def engine_of(found: LocalNeighbours) -> str:
    return f"dask, {found.lists} lists, {found.probes} probes, {len(found.order.ends)} groups"


def query_neighbours(X: Array, queries: Array, k: int) -> DaskNeighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); nothing is computed before it is asked for."""
    k = min(k, X.shape[0])
    X, queries = (A if isinstance(A, da.Array) else da.from_array(A, chunks=A.shape) for A in (X, queries))
    return _as_arrays(_search(X, queries, k, same=False), queries, k)


def _search(X: Array, queries: Array, k: int, *, same: bool) -> list[Array]:
    """A delayed (indices, distances) for every block of queries."""
    search, database, start = delayed(_nearest_in_block, pure=True), X.to_delayed().ravel(), block_starts(X)
    merge = partial(_nearest_of_parts, k=k)
    return [
        combine(merge, [search(Q, Y, k, int(start[j]), same and i == j) for j, Y in enumerate(database)])
        for i, Q in enumerate(queries.to_delayed().ravel())
    ]


def _as_arrays(found: Sequence[Array], queries: Array, k: int) -> DaskNeighbours:
    sizes = queries.chunks[0]

    def column(position: int, dtype: type) -> Array:
        parts = [delayed(_item)(f, position) for f in found]
        return da.concatenate([da.from_delayed(p, (m, k), dtype=dtype) for p, m in zip(parts, sizes, strict=True)])

    return DaskNeighbours(column(0, np.int64), column(1, np.float64))


def _item(pair: tuple[np.ndarray, np.ndarray], position: int) -> np.ndarray:
    return pair[position]


def _nearest_in_block(queries: np.ndarray, Y: np.ndarray, k: int, start: int, same: bool) -> tuple[Array, Array]:
    """The k rows of a block Y (b, d) nearest to every query: their numbers, counted from `start`, and distances.

    With `same` the queries are the rows of Y, and none is its own neighbour.
    """
    k = min(k, len(Y) - same)
    if k == 0:
        return np.empty((len(queries), 0), dtype=np.int64), np.empty((len(queries), 0))
    # As many queries at a time as are compared one by one, never approximately.
    step = max(1, host_neighbours.EXACT_ROWS**2 // len(Y))
    parts = [host_neighbours.query_neighbours(Y, queries[r : r + step], k + same) for r in range(0, len(queries), step)]
    indices = np.concatenate([p.indices for p in parts]).astype(np.int64, copy=False)
    distances = np.concatenate([p.distances for p in parts])
    if same:
        other = indices != np.arange(len(Y))[:, None]
        other[other.all(axis=1), -1] = False  # more than k duplicates hide the row itself: leave out the last of them
        indices, distances = indices[other].reshape(-1, k), distances[other].reshape(-1, k)
    return indices + start, distances


def _nearest_of_parts(parts: list[tuple[np.ndarray, np.ndarray]], k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest (m, k) of the candidates in all parts; of equal distances the one in the earlier block."""
    indices = np.concatenate([i for i, _ in parts], axis=1)
    distances = np.concatenate([d for _, d in parts], axis=1)
    first = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(indices, first, axis=1), np.take_along_axis(distances, first, axis=1)

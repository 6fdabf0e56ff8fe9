"""Dask arrays: rows in blocks that lie anywhere, labels and solutions here, features never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import dask.array as da
import numpy as np

from contone.backends.dask import checks, duplicates, graph, neighbours, rows, tasks
from contone.backends.dask.order import ListOrder
from contone.backends.numpy import Backend
from contone.backends.numpy.neighbours import Neighbours
from contone.runtime import machine
from contone.runtime.machine import Piece, Result, pieces_of
from contone.typing import Array, Arrays, Function, Step

_HOST = Backend()


class DaskBackend(Backend):
    """What lazy arrays do otherwise than NumPy arrays. What is small is computed as a NumPy array."""

    name = "dask"
    in_memory = False

    # Rows

    map_rows = staticmethod(rows.map_rows)
    sum_rows = staticmethod(tasks.sum_rows)
    compute = staticmethod(rows.compute)
    persist = staticmethod(rows.persist)
    split_like = staticmethod(rows.split_like)
    row_numbers = staticmethod(rows.row_numbers)

    def update(
        self, function: Function, changed: Arrays, given: Arrays = (), *, summed: bool = True, **shared: object
    ) -> Step:
        return tasks.update(None, None, function, changed, given, summed, shared)

    def scratch(self, A: Array) -> Array:
        return tasks.Blank(A)

    def n_blocks(self, A: Array) -> int:
        return sum(len(pieces_of(rows)) for rows in A.chunks[0])

    def pieces(self, A: Array) -> list[slice]:
        return [slice(None)]

    def gather(self, A: Array) -> Array:
        return rows.compute(A)[0]

    def take_rows(self, A: Array, order: Array) -> Array:
        return order.take(A) if isinstance(order, ListOrder) else A[order]

    def to_numpy(self, A: Array) -> np.ndarray:
        return np.asarray(rows.compute(A)[0])

    def transpose(self, A: Array) -> Array:
        return A.T

    def row_maxima(self, A: Array) -> Array:
        return A.max(axis=-1)

    def count_members(self, group: Array, n_groups: int = 0) -> Array:
        if not isinstance(group, da.Array):
            return _HOST.count_members(group, n_groups)
        return sum(tasks.fetch(tasks.run(_HOST.count_members, [(some, n_groups) for some in tasks.handles(group)])))

    def sum_members(self, A: Array, group: Array, n_groups: int) -> Array:
        given = zip(tasks.handles(A), tasks.handles(group), strict=True)
        return sum(tasks.fetch(tasks.run(_HOST.sum_members, [(*some, n_groups) for some in given])))

    def min_members(self, A: Array, group: Array, n_groups: int) -> Array:
        given = zip(tasks.handles(A), tasks.handles(group), strict=True)
        return np.minimum.reduce(tasks.fetch(tasks.run(_HOST.min_members, [(*some, n_groups) for some in given])))

    # Neighbourhoods

    nearest_neighbours = staticmethod(neighbours.nearest_neighbours)
    local_neighbours = staticmethod(neighbours.local_neighbours)
    edge_graph = staticmethod(graph.edge_graph)
    average_equal_rows = staticmethod(duplicates.average_equal_rows)
    group_duplicates = staticmethod(duplicates.group_duplicates)
    random_signs = staticmethod(rows.signs)

    def query_neighbours(self, X: Array, queries: Array, k: int) -> Neighbours:
        return Neighbours(*neighbours.query_neighbours(X, queries, min(k, X.shape[0])), "dask-exact")

    def put_back(self, A: Array, order: Array) -> Array:
        return order.put_back(A) if isinstance(order, ListOrder) else A

    # Sampling: rows are sampled on the workers, as NumPy arrays

    def map_blocks(self, function: Callable[[Piece], Result], blocks: Iterable[Piece]) -> Iterator[Result]:
        return map(function, blocks)

    # Checks

    def available_bytes(self, X: Array) -> float:
        on_workers = tasks.worker_bytes() if machine.user_limit() is None else None
        return machine.available_bytes() if on_workers is None else on_workers

    check_matrix = staticmethod(checks.check_matrix)
    each_block = staticmethod(rows.each_block)
    check_later = staticmethod(checks.check_later)

"""Dask arrays: rows in blocks that lie anywhere, labels and solutions here, features never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import dask.array as da
import numpy as np

from contone.backends.dask import checks, duplicates, graph, neighbours, rows, tasks
from contone.backends.dask.order import ListOrder
from contone.backends.numpy import Backend
from contone.backends.numpy.neighbours import Neighbours
from contone.backends.protocols import Groups
from contone.runtime import machine
from contone.runtime.machine import Piece, Result, pieces_of
from contone.typing import Array, Arrays, Function, Numbers, Operator, Step

_HOST = Backend()


class DaskBackend(Backend):
    """What lazy arrays do otherwise than NumPy arrays. What is small is computed as a NumPy array."""

    name = "dask"
    in_memory = False

    # Rows

    def map_rows(
        self, function: Callable[..., Array], *arrays: Array, columns: int, dtype: type = np.float64, **shared: Array
    ) -> Array:
        return rows.map_rows(function, *arrays, columns=columns, dtype=dtype, **shared)

    def sum_rows(self, function: Function, *arrays: Array) -> Callable[..., Numbers]:
        return tasks.sum_rows(function, *arrays)

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

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        return rows.compute(*arrays)

    def gather(self, A: Array) -> Array:
        return rows.compute(A)[0]

    def persist(self, *arrays: Array) -> tuple[Array, ...]:
        return rows.persist(*arrays)

    def split_like(self, A: Array, model: Array) -> Array:
        return rows.split_like(A, model)

    def take_rows(self, A: Array, order: Array) -> Array:
        return order.take(A) if isinstance(order, ListOrder) else A[order]

    def row_numbers(self, A: Array) -> Array:
        return rows.row_numbers(A)

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

    def nearest_neighbours(self, X: Array, k: int) -> Neighbours:
        return neighbours.nearest_neighbours(X, k)

    def query_neighbours(self, X: Array, queries: Array, k: int) -> Neighbours:
        return Neighbours(*neighbours.query_neighbours(X, queries, min(k, X.shape[0])), "dask-exact")

    def edge_graph(self, indices: Array, weights: Array) -> graph.BlockGraph:
        return graph.edge_graph(indices, weights)

    def local_neighbours(self, X: Array, k: int) -> tuple[Neighbours, Array]:
        return neighbours.local_neighbours(X, k)

    def put_back(self, A: Array, order: Array) -> Array:
        return order.put_back(A) if isinstance(order, ListOrder) else A

    def average_equal_rows(self, X: Array, order: Array) -> tuple[int, Operator | None]:
        return duplicates.average_equal_rows(X, order)

    def random_signs(self, A: Array, columns: int) -> Array:
        return rows.signs(A, columns)

    def group_duplicates(self, X: Array) -> Groups:
        return duplicates.group_duplicates(X)

    # Sampling: rows are sampled on the workers, as NumPy arrays

    def map_blocks(self, function: Callable[[Piece], Result], blocks: Iterable[Piece]) -> Iterator[Result]:
        return map(function, blocks)

    # Checks

    def available_bytes(self, X: Array) -> float:
        on_workers = tasks.worker_bytes() if machine.user_limit() is None else None
        return machine.available_bytes() if on_workers is None else on_workers

    def check_matrix(self, A: Array, name: str) -> Array:
        return checks.check_matrix(A, name)

    def each_block(self, function: Callable[..., Result], *arrays: Array) -> Sequence[Result]:
        return rows.each_block(function, *arrays)

    def check_later(self, A: Array, check: Callable[[Array, int], None]) -> Array:
        return checks.check_later(A, check)

"""NumPy arrays: all rows in the memory of this process, in pieces on threads where they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import special

from contone.backends.numpy import duplicates, graph, neighbours, rows
from contone.backends.permutations import invert, reorder
from contone.backends.protocols import Groups, Neighbours
from contone.exceptions import InputTypeError, ShapeError
from contone.runtime import memory, threads
from contone.typing import Array, Operator


class NumpyBackend:
    """See `contone.backends.protocols` for what each method does."""

    name = "numpy"
    in_memory = True

    # Rows

    def map_rows(
        self, function: Callable[..., Array], *arrays: Array, columns: int, dtype: Any = np.float64, **shared: Array
    ) -> Array:
        return function(*arrays, **shared)

    def sum_rows(self, function: Callable[..., Any], *arrays: Array) -> Callable[..., tuple[Any, ...]]:
        return rows.sum_rows(function, *arrays)

    def update(
        self,
        function: Callable[..., Any],
        changed: Sequence[Array],
        given: Sequence[Array] = (),
        *,
        summed: bool = True,
        **shared: Any,
    ) -> tuple[tuple[Array, ...], Any]:
        pieces = self.pieces((*changed, *given)[0])
        return rows.update(function, changed, given, pieces, summed, **shared)

    def scratch(self, A: Array) -> Array:
        return array_namespace(A).empty_like(A)

    def n_blocks(self, A: Array) -> int:
        return len(self.pieces(A))

    def pieces(self, A: Array) -> list[slice]:
        return threads.pieces_of(A.shape[0])

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def gather(self, A: Array) -> Array:
        return A

    def persist(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def split_like(self, A: Array, model: Array) -> Array:
        return A

    def take_rows(self, A: Array, order: Array) -> Array:
        return rows.take_rows(A, order)

    def row_numbers(self, A: Array) -> Array:
        return np.arange(A.shape[0])[:, None]

    def to_numpy(self, A: Array) -> np.ndarray:
        return np.asarray(A)

    def like(self, A: Array, model: Array) -> Array:
        return np.asarray(A.detach().cpu() if hasattr(A, "detach") else A, dtype=model.dtype)

    def transpose(self, A: Array) -> Array:
        return np.ascontiguousarray(A.T)

    def row_maxima(self, A: Array) -> Array:
        return rows.row_maxima(A)

    def count_members(self, group: Array, n_groups: int = 0) -> Array:
        return np.bincount(group, minlength=n_groups)

    def min_members(self, A: Array, group: Array, n_groups: int) -> Array:
        return rows.min_members(A, group, n_groups)

    def sum_members(self, A: Array, group: Array, n_groups: int) -> Array:
        return rows.sum_members(A, group, n_groups)

    def normal_distribution(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        return special.ndtr, special.ndtri

    # Neighbourhoods

    def nearest_neighbours(self, X: Array, k: int) -> Neighbours:
        return neighbours.nearest_neighbours(X, k)

    def query_neighbours(self, X: Array, queries: Array, k: int) -> Neighbours:
        return neighbours.query_neighbours(X, queries, k)

    def edge_graph(self, indices: Array, weights: Array) -> graph.NumpyGraph:
        return graph.edge_graph(indices, weights)

    def local_neighbours(self, X: Array, k: int) -> tuple[Neighbours, Any]:
        return reorder(self.nearest_neighbours(X, k), self.take_rows)

    def put_back(self, A: Array, order: Any) -> Array:
        return A if isinstance(order, slice) else rows.take_rows(A, invert(order))

    def average_equal_rows(self, X: Array, order: Any) -> tuple[int, Operator | None]:
        groups = self.group_duplicates(X[order])
        return rows.average_members(groups, self.count_members(groups.member), self.sum_members)

    def random_signs(self, A: Array, columns: int) -> Array:
        return rows.random_signs(A.shape[0], columns).astype(A.dtype, copy=False)

    def group_duplicates(self, X: Array) -> Groups:
        return duplicates.group_duplicates(X)

    # Sampling

    def draws(self, generator: np.random.Generator, model: Array) -> np.random.Generator:
        return generator

    def rows_per_block(self, X: Array, q: int, max_rows: int) -> int:
        return max_rows

    def map_blocks(self, function: Callable[[Any], Any], blocks: Iterable[Any]) -> Iterator[Any]:
        return threads.side_by_side(function, blocks)

    # Checks

    def available_bytes(self, X: Array) -> float:
        return memory.available_bytes()

    def check_matrix(self, A: Array, name: str) -> Array:
        if A.ndim != 2 or A.shape[1] == 0:
            raise ShapeError(f"{name} must be a matrix, one row per instance; it has shape {A.shape}.")
        if A.dtype.kind not in "buif":
            raise InputTypeError(f"{name} must hold numbers; it holds {A.dtype}.")
        return A

    def each_block(self, function: Callable[..., Any], *arrays: Array) -> Sequence[Any]:
        return [function(*arrays)]

    def check_later(self, A: Array, check: Callable[[Array, int], None]) -> Array:
        check(A, 0)
        return A

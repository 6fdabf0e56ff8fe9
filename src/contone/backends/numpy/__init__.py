"""NumPy arrays: all rows in the memory of this process, in pieces on threads where they are many.

`Backend` says what a kind of array must bring along. Elementwise work is written once, against the array API
(`array_api_compat.array_namespace`); a backend holds only what differs between kinds of arrays: how rows are mapped and
summed, how neighbours are found, how a sparse graph is multiplied, where random numbers come from, how much memory
there is, and how data is looked at where it lies. Other kinds derive from this one and say what they do otherwise.

Shapes: n or m rows, d features, q labels, k neighbours.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

import numpy as np
from scipy import special

from contone.backends.numpy import duplicates, graph, neighbours
from contone.backends.numpy.neighbours import Neighbours
from contone.backends.protocols import Draws, Graph, Groups
from contone.exceptions import InputTypeError, ShapeError
from contone.runtime import machine
from contone.runtime.machine import Piece, Result
from contone.typing import Array, Function

FEW_COLUMNS = 64
"""Up to so many columns a maximum is taken column by column: NumPy is many times slower over a short last axis."""


class Backend:
    """One kind of array: that of NumPy."""

    name = "numpy"
    """The word for this kind: "numpy", "sparse", "torch", "dask"."""
    in_memory = True
    """Whether all rows lie in the memory of this process or of its GPU."""

    # Rows: functions of them, and arrays of one kind as arrays of another

    def map_rows(self, function: Callable[..., Array], *arrays: Array, columns: int) -> Array:
        """function(rows of every array) -> (m, columns), for all rows."""
        return function(*arrays)

    def over_rows(self, function: Function, *arrays: Array, **shared: object) -> Array:
        """The sum of function(rows of every array, **shared) over all rows, in pieces; None where it returns nothing.

        The function may write over the rows. The order of the sum depends on the pieces alone, not on which is faster.
        """
        return machine.total(lambda rows: function(*(A[rows, ...] for A in arrays), **shared), self.pieces(arrays[0]))

    def pieces(self, A: Array) -> list[slice]:
        """The rows of A in pieces that threads may work on side by side; one where that does not pay."""
        return machine.pieces_of(A.shape[0])

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        """Arrays in the memory of this process, computed together in one pass."""
        return arrays

    def split_like(self, A: Array, model: Array) -> Array:
        """A (n, q) in the row blocks of `model`."""
        return A

    def take_rows(self, A: Array, order: Array) -> Array:
        """A[order], for row numbers `order` of any shape."""
        return take_rows(A, order)

    def row_numbers(self, A: Array) -> Array:
        """0, 1, ... (n, 1), in the row blocks of A (n, q)."""
        return np.arange(A.shape[0])[:, None]

    def to_numpy(self, A: Array) -> np.ndarray:
        """A in the memory of the host; a NumPy array stays as it is."""
        return np.asarray(A)

    def like(self, A: Array, model: Array) -> Array:
        """A in the library, on the device and in the precision of the floating-point array `model`."""
        return np.asarray(A.detach().cpu() if hasattr(A, "detach") else A, dtype=model.dtype)

    def transpose(self, A: Array) -> Array:
        """A^T, its rows one after the other in memory."""
        return np.ascontiguousarray(A.T)

    def row_maxima(self, A: Array) -> Array:
        """The largest entry along the last axis."""
        if 0 < A.shape[-1] <= FEW_COLUMNS:
            return reduce(np.maximum, (A[..., j] for j in range(A.shape[-1])))
        return np.asarray(np.max(A, axis=-1))

    def count_members(self, group: Array, n_groups: int = 0) -> Array:
        """How often each of the numbers 0, 1, ... occurs in `group` (n,); at least `n_groups` counts."""
        return np.bincount(group, minlength=n_groups)

    def sum_members(self, A: Array, group: Array, n_groups: int) -> Array:
        """Sums (n_groups, ...) of the rows of A (n, ...) that belong to each group (n,)."""
        columns = [np.bincount(group, weights=a, minlength=n_groups) for a in A.reshape(len(A), -1).T]
        return np.stack(columns, axis=1).reshape(n_groups, *A.shape[1:])

    def normal_distribution(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """The standard normal distribution function and its inverse."""
        return special.ndtr, special.ndtri

    # Neighbourhoods: which rows are near each other, or equal

    def nearest_neighbours(self, X: Array, k: int) -> Neighbours:
        """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count, at distance 0."""
        return neighbours.nearest_neighbours(X, k)

    def query_neighbours(self, X: Array, queries: Array, k: int) -> Neighbours:
        """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
        return neighbours.query_neighbours(X, queries, k)

    def edge_graph(self, indices: Array, weights: Array) -> Graph:
        """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""
        return graph.edge_graph(indices, weights)

    def group_duplicates(self, X: Array) -> Groups:
        """Groups of equal rows of X (n, d), in O(n d + n log n)."""
        return duplicates.group_duplicates(X)

    # Sampling

    def host_is_quicker(self, A: Array) -> bool:
        """Whether A lies elsewhere, and so little of it that the host is done before work has started there."""
        return False

    def draws(self, generator: np.random.Generator, model: Array) -> Draws:
        """What draws for rows like `model`, seeded by the generator."""
        return generator

    def rows_per_block(self, X: Array, q: int, max_rows: int) -> int:
        """How many rows with q labels to sample at once: `max_rows`, or more where starting work is what takes time."""
        return max_rows

    def map_blocks(self, function: Callable[[Piece], Result], blocks: Iterable[Piece]) -> Iterator[Result]:
        """function(block) of every block, in their order, side by side where that pays."""
        return machine.side_by_side(function, blocks)

    # Checks: data is looked at where it lies

    def available_bytes(self, X: Array) -> float:
        """Memory that work beside X can take."""
        return machine.available_bytes()

    def check_matrix(self, A: Array, name: str) -> Array:
        """A as a matrix of real numbers with rows and columns; refuses anything else."""
        if A.ndim != 2 or A.shape[1] == 0:
            raise ShapeError(f"{name} must be a matrix, one row per instance; it has shape {A.shape}.")
        if A.dtype.kind not in "buif":
            raise InputTypeError(f"{name} must hold numbers; it holds {A.dtype}.")
        return A

    def each_block(self, function: Callable[..., Result], *arrays: Array) -> Sequence[Result]:
        """function(rows of every array) of every block of rows, in order and in one pass; its results are small."""
        return [function(*arrays)]

    def check_later(self, A: Array, check: Callable[[Array, int], None]) -> Array:
        """A, whose rows call check(rows, number of the first) before they are used: now where they are in memory."""
        check(A, 0)
        return A


class SparseBackend(Backend):
    """Sparse matrices of SciPy: features only, and for methods that never need them dense."""

    name = "sparse"

    def to_numpy(self, A: Array) -> np.ndarray:
        return np.asarray(A.toarray() if hasattr(A, "toarray") else A)


def take_rows(A: np.ndarray, order: np.ndarray) -> Array:
    """A[order], for row numbers `order` of any shape, in pieces."""
    out = np.empty((*order.shape, *A.shape[1:]), dtype=A.dtype)

    def work(rows: slice) -> None:
        out[rows] = A[order[rows]]

    machine.for_each(work, machine.pieces_of(len(order)))
    return out

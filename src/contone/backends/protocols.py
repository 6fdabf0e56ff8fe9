"""What a kind of array must bring along, and the few values that all kinds share.

Elementwise work is written once, against the array API (`array_api_compat.array_namespace`). A backend holds only what
differs between kinds of arrays: how rows are mapped and summed, how neighbours are found, how a sparse graph is
multiplied, where random numbers come from, how much memory there is, and how data is examined where it lies.

Shapes: n or m rows, d features, q labels, k neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from contone.typing import Array, Operator


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

    def report(self) -> dict[str, Any]:
        """Engine and recall as plain values, for `Solution.info["neighbours"]`."""
        return {"engine": self.engine, "recall": self.recall}


class Groups(NamedTuple):
    """The distinct rows of a matrix."""

    member: Array
    """(n,) number of the distinct row that row i is equal to; distinct rows are numbered in order of appearance."""
    first: Array
    """(m,) where each distinct row occurs first, ascending."""


class Graph(Protocol):
    """A square sparse matrix A (n, n) with entries that are not negative: edges between rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""

    def matmul(self, F: Array) -> Array:
        """A F for a dense F (n, q)."""

    def update(
        self,
        F: Array,
        function: Callable[..., Any],
        changed: Sequence[Array],
        given: Sequence[Array] = (),
        *,
        summed: bool = True,
        **shared: Any,
    ) -> tuple[tuple[Array, ...], Any]:
        """As `Rows.update`; the function gets rows of A F before everything else."""

    def diagonal_plus(self, diagonal: Array, scale: float) -> Operator:
        """The map V -> (diag(diagonal) + scale A) V."""

    def symmetrize(self, *, by: str) -> Graph:
        """A + A^T (by="sum") or the larger of a_ij and a_ji (by="max"), for A without repeated entries."""

    def scale(self, left: Array, right: Array) -> Graph:
        """diag(left) A diag(right)."""

    def row_sums(self) -> Array:
        """A 1 (n,)."""

    def connected_components(self) -> tuple[int, Array]:
        """How many components the graph of a symmetric A has, and which one (n,) every row is in."""


class GraphInMemory(Graph, Protocol):
    """A graph whose rows all lie in the memory of this process or of its GPU."""

    def submatrix(self, chosen: Array) -> GraphInMemory:
        """A[chosen][:, chosen], for ascending row numbers."""


class Draws(Protocol):
    """Random numbers for rows, as arrays of the kind that the rows are in; shapes end with the number of rows."""

    def random(self, size: Any) -> Array:
        """Uniform draws in [0, 1)."""

    def standard_normal(self, size: Any) -> Array:
        """Standard normal draws."""


class Rows(Protocol):
    """Functions of rows, and arrays of one kind as arrays of another."""

    name: str
    """The word for this kind: "numpy", "torch", "dask"."""
    in_memory: bool
    """Whether all rows lie in the memory of this process or of its GPU."""

    def map_rows(
        self, function: Callable[..., Array], *arrays: Array, columns: int, dtype: Any = np.float64, **shared: Array
    ) -> Array:
        """function(rows of every array, **shared) -> (m, columns), for all rows; `shared` is in memory."""

    def sum_rows(self, function: Callable[..., Any], *arrays: Array) -> Callable[..., tuple[Any, ...]]:
        """The map a -> sum over blocks of function(a..., rows of every array), a tuple of numbers or small arrays.

        The order of the summation depends on the blocks alone, not on which worker or thread is faster.
        """

    def update(
        self,
        function: Callable[..., Any],
        changed: Sequence[Array],
        given: Sequence[Array] = (),
        *,
        summed: bool = True,
        **shared: Any,
    ) -> tuple[tuple[Array, ...], Any]:
        """One step of a solver: function(rows of `changed`..., rows of `given`..., **shared), for all rows, in pieces.

        The function writes over the rows of `changed` and returns numbers. What comes back is `changed`, with these
        rows, and the sum of the numbers over all pieces, in this process; None where nothing is to be `summed`. Arrays
        in memory are written over; others are left as they were.
        """

    def scratch(self, A: Array) -> Array:
        """An array like A, to be written over by `update`."""

    def n_blocks(self, A: Array) -> int:
        """How many blocks of rows `sum_rows` sums over."""

    def pieces(self, A: Array) -> list[slice]:
        """The rows of A in pieces that threads may work on side by side; one where that does not pay."""

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        """Small results in the memory of this process, computed together in one pass."""

    def gather(self, A: Array) -> Array:
        """A in the memory of this process: for labels and solutions, (n, q), never for features."""

    def persist(self, *arrays: Array) -> tuple[Array, ...]:
        """The same arrays, computed once and held where they will be used again."""

    def split_like(self, A: Array, model: Array) -> Array:
        """A (n, q) in the row blocks of `model`."""

    def take_rows(self, A: Array, order: Array) -> Array:
        """A[order], for row numbers `order` of any shape."""

    def row_numbers(self, A: Array) -> Array:
        """0, 1, ... (n, 1), in the row blocks of A (n, q)."""

    def to_numpy(self, A: Array) -> np.ndarray:
        """A in the memory of the host; a NumPy array stays as it is."""

    def like(self, A: Array, model: Array) -> Array:
        """A in the library, on the device and in the precision of the floating-point array `model`."""

    def transpose(self, A: Array) -> Array:
        """A^T, its rows one after the other in memory."""

    def row_maxima(self, A: Array) -> Array:
        """The largest entry along the last axis."""

    def count_members(self, group: Array, n_groups: int = 0) -> Array:
        """How often each of the numbers 0, 1, ... occurs in `group` (n,); at least `n_groups` counts."""

    def min_members(self, A: Array, group: Array, n_groups: int) -> Array:
        """The smallest entries (n_groups, q) of the rows of A (n, q) in each group (n,); inf where there are none."""

    def sum_members(self, A: Array, group: Array, n_groups: int) -> Array:
        """Sums (n_groups, ...) of the rows of A (n, ...) that belong to each group (n,)."""

    def normal_distribution(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """The standard normal distribution function and its inverse."""


class Neighbourhoods(Protocol):
    """Which rows are near each other, or equal."""

    def nearest_neighbours(self, X: Array, k: int) -> Neighbours:
        """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count, at distance 0."""

    def query_neighbours(self, X: Array, queries: Array, k: int) -> Neighbours:
        """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""

    def edge_graph(self, indices: Array, weights: Array) -> Graph:
        """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""

    def local_neighbours(self, X: Array, k: int) -> tuple[Neighbours, Any]:
        """The same neighbourhoods as those of `nearest_neighbours` with the rows renumbered so that neighbours are near
        each other, and that order, for `take_rows` and `put_back`; slice(None) where nothing was renumbered."""

    def put_back(self, A: Array, order: Any) -> Array:
        """The rows of A (n, q), given in the order of `local_neighbours`, where they were before."""

    def average_equal_rows(self, X: Array, order: Any) -> tuple[int, Operator | None]:
        """How many distinct rows X (n, d) has, and the map that gives each row of V (n, q), in that order, the mean
        over all rows that are equal in X; None where no two are."""

    def random_signs(self, A: Array, columns: int) -> Array:
        """Random signs (n, columns) in the row blocks of A (n, q), always the same."""

    def group_duplicates(self, X: Array) -> Groups:
        """Groups of equal rows of X (n, d), in O(n d + n log n)."""


class Sampling(Protocol):
    """Random numbers and blocks for a sampler of rows."""

    def draws(self, generator: np.random.Generator, model: Array) -> Draws:
        """What draws for rows like `model`, seeded by the generator."""

    def rows_per_block(self, X: Array, q: int, max_rows: int) -> int:
        """How many rows with q labels to sample at once: `max_rows`, or more where starting work is what takes time."""

    def map_blocks(self, function: Callable[[Any], Any], blocks: Any) -> Any:
        """function(block) of every block, in their order, side by side where that pays."""


class Checks(Protocol):
    """How data of this kind is examined where it lies."""

    def available_bytes(self, X: Array) -> float:
        """Memory that work beside X can take."""

    def check_matrix(self, A: Array, name: str) -> Array:
        """A as a matrix of real numbers with rows and columns; refuses anything else."""

    def each_block(self, function: Callable[..., Any], *arrays: Array) -> Sequence[Any]:
        """function(rows of every array) of every block of rows, in order and in one pass; its results are small."""

    def check_later(self, A: Array, check: Callable[[Array, int], None]) -> Array:
        """A, whose rows call check(rows, number of the first) before they are used: now where they are in memory."""


class Backend(Rows, Neighbourhoods, Sampling, Checks, Protocol):
    """One kind of array."""

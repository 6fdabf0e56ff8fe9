"""The values that all kinds of arrays share: groups, graphs, draws, permutations of rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from array_api_compat import array_namespace

from contone.typing import Array, Function, Operator


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

    def over_rows(self, F: Array, function: Function, *arrays: Array, **shared: object) -> Array:
        """As `Backend.over_rows`; the function gets rows of A F before everything else."""

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

    def submatrix(self, chosen: Array) -> Graph:
        """A[chosen][:, chosen], for ascending row numbers."""


class Draws(Protocol):
    """Random numbers for rows, as arrays of the kind that the rows are in; shapes end with the number of rows."""

    def random(self, size: int | tuple[int, ...]) -> Array:
        """Uniform draws in [0, 1)."""

    def standard_normal(self, size: int | tuple[int, ...]) -> Array:
        """Standard normal draws."""


def invert(order: Array) -> Array:
    """The permutation (n,) that undoes `order`: A[order][invert(order)] is A."""
    rank = array_namespace(order).empty_like(order)
    rank[order] = array_namespace(order).arange(len(order), dtype=order.dtype)
    return rank

"""Permutations of rows, for arrays of any library."""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import array_namespace

from contone.backends.protocols import Neighbours
from contone.typing import Array


def invert(order: Array) -> Array:
    """The permutation (n,) that undoes `order`: A[order][invert(order)] is A."""
    rank = array_namespace(order).empty_like(order)
    rank[order] = array_namespace(order).arange(len(order), dtype=order.dtype)
    return rank


def reorder(neighbours: Neighbours, take_rows: Callable[[Array, Array], Array]) -> tuple[Neighbours, Array | slice]:
    """The same neighbourhoods with the rows renumbered by their `order`, and that order: row r is what order[r] was.

    Products with the graph of a million rows spend their time waiting for memory; with neighbours near each other the
    processor's cache holds most of what a row needs. Without an order nothing changes, and slice(None) stands for it.
    """
    order = neighbours.order
    if order is None:
        return neighbours, slice(None)
    indices = take_rows(invert(order), take_rows(neighbours.indices, order))
    return neighbours._replace(indices=indices, distances=take_rows(neighbours.distances, order), order=None), order

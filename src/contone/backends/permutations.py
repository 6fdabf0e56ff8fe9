"""Permutations of rows, for arrays of any library."""

from __future__ import annotations

from array_api_compat import array_namespace

from contone.typing import Array


def invert(order: Array) -> Array:
    """The permutation (n,) that undoes `order`: A[order][invert(order)] is A."""
    rank = array_namespace(order).empty_like(order)
    rank[order] = array_namespace(order).arange(len(order), dtype=order.dtype)
    return rank

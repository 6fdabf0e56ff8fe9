"""Rows of NumPy arrays: in pieces that fit a processor's cache, side by side on threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from contone.runtime.threads import for_each, pieces_of, side_by_side
from contone.typing import Array

FEW_COLUMNS = 64


def sum_rows(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[..., tuple[Any, ...]]:
    """The map a -> sum over pieces of function(a..., rows of every array)."""
    pieces = pieces_of(len(arrays[0]))

    def total(*given: Any) -> tuple[Any, ...]:
        def work(rows: slice) -> tuple[Any, ...]:
            found: tuple[Any, ...] = function(*given, *(A[rows] for A in arrays))
            return found

        return add_parts(list(side_by_side(work, pieces))) if len(pieces) > 1 else work(slice(None))

    return total


def add_parts(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The sums of tuples, entry by entry, in their order."""
    return tuple(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True))


def take_rows(A: np.ndarray, order: np.ndarray) -> Array:
    """A[order], for row numbers `order` of any shape."""
    pieces = pieces_of(len(order))
    if len(pieces) == 1:
        return A[order]
    out = np.empty((*order.shape, *A.shape[1:]), dtype=A.dtype)

    def work(rows: slice) -> None:
        out[rows] = A[order[rows]]

    for_each(work, pieces)
    return out


def row_maxima(A: np.ndarray) -> np.ndarray:
    """The largest entry along the last axis; column by column, as NumPy is many times slower over a short last axis."""
    if 0 < A.shape[-1] <= FEW_COLUMNS:
        return reduce(np.maximum, (A[..., j] for j in range(A.shape[-1])))
    return np.asarray(np.max(A, axis=-1))


def sum_members(A: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums (n_groups, ...) of the rows of A (n, ...) that belong to each group (n,)."""
    columns = [np.bincount(group, weights=a, minlength=n_groups) for a in A.reshape(len(A), -1).T]
    return np.stack(columns, axis=1).reshape(n_groups, *A.shape[1:])

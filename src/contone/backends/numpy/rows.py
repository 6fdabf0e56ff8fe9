"""Rows of NumPy arrays: in pieces that fit a processor's cache, side by side on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from contone.backends.protocols import Groups
from contone.runtime.threads import for_each, pieces_of, side_by_side, total
from contone.typing import Array, Operator

FEW_COLUMNS = 64


def sum_rows(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[..., tuple[Any, ...]]:
    """The map a -> sum over pieces of function(a..., rows of every array)."""
    pieces = pieces_of(len(arrays[0]))

    def all_rows(*given: Any) -> tuple[Any, ...]:
        def work(rows: slice) -> tuple[Any, ...]:
            found: tuple[Any, ...] = function(*given, *(A[rows] for A in arrays))
            return found

        return add_parts(list(side_by_side(work, pieces))) if len(pieces) > 1 else work(slice(None))

    return all_rows


def update(
    function: Callable[..., Any],
    changed: Sequence[np.ndarray],
    given: Sequence[np.ndarray],
    pieces: Sequence[slice],
    summed: bool,
    **shared: Any,
) -> tuple[tuple[np.ndarray, ...], Any]:
    """`contone.backends.protocols.Rows.update` for arrays in memory, piece by piece."""

    def work(rows: slice) -> Any:
        return function(*(A[rows, ...] for A in changed), *(A[rows, ...] for A in given), **shared)

    if summed:
        return tuple(changed), total(work, pieces)
    for_each(work, pieces)
    return tuple(changed), None


def average_members(group: Groups, count: Array, sum_members: Callable[..., Array]) -> tuple[int, Operator | None]:
    """How many groups there are, and the map from rows of V (n, q) to their means over groups, None where each row is
    a group; `count` (m,) says how large they are."""
    m = len(group.first)
    if m == len(group.member):
        return m, None
    return m, lambda V: (sum_members(V, group.member, m) / count[:, None])[group.member]


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


def random_signs(n: int, columns: int) -> Array:
    """Random signs (n, columns), always the same."""
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(n, columns))


def row_maxima(A: np.ndarray) -> np.ndarray:
    """The largest entry along the last axis; column by column, as NumPy is many times slower over a short last axis."""
    if 0 < A.shape[-1] <= FEW_COLUMNS:
        return reduce(np.maximum, (A[..., j] for j in range(A.shape[-1])))
    return np.asarray(np.max(A, axis=-1))


def min_members(A: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """The smallest entries (n_groups, q) of the rows of A (n, q) that belong to each group (n,); inf without rows."""
    out = np.full((n_groups, *A.shape[1:]), np.inf)
    np.minimum.at(out, group, A)
    return out


def sum_members(A: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums (n_groups, ...) of the rows of A (n, ...) that belong to each group (n,)."""
    columns = [np.bincount(group, weights=a, minlength=n_groups) for a in A.reshape(len(A), -1).T]
    return np.stack(columns, axis=1).reshape(n_groups, *A.shape[1:])

"""Equal rows of a lazy array: hashes come together, the rows stay where they are."""

from __future__ import annotations

import dask.array as da
import numpy as np

from contone.backends.dask import tasks
from contone.backends.dask.graph import edge_graph
from contone.backends.dask.order import ListOrder
from contone.backends.dask.rows import block_starts, compute, map_rows, persist, split_like
from contone.backends.numpy.duplicates import hash_rows, number_by_appearance
from contone.backends.protocols import Groups
from contone.typing import Array, Operator


def group_duplicates(X: Array) -> Groups:
    """Groups of equal rows of X (n, d), by two hashes: two that agree by chance are one case in 10^38 per pair."""
    codes = compute(map_rows(_two_hashes, X, columns=2, dtype=np.uint64))[0]
    _, first, member = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return number_by_appearance(first, member)


def average_equal_rows(X: Array, order: Array) -> tuple[int, Operator | None]:
    """`Backend.average_equal_rows`.

    In the order of lists equal rows are in one block, which finds them; otherwise rows are few, and hashes come here.
    """
    codes = map_rows(_two_hashes, X, columns=2, dtype=np.uint64)
    if isinstance(order, ListOrder):
        listed = order.take(codes)
        starts = block_starts(listed).tolist()
        found = tasks.run(_first_equal, zip(tasks.handles(listed), starts, strict=False))
        leader = tasks.as_array(found, listed.chunks[0], 1, np.int64)
        n_distinct = sum(tasks.fetch(tasks.run(_count_own, zip(found, starts, strict=False))))
    else:
        member, first = group_duplicates(X)
        leader, n_distinct = split_like(first[member][:, None], X), len(first)
    n = X.shape[0]
    if n_distinct == n:
        return n, None
    spread = edge_graph(leader, tasks.as_array(tasks.run(_ones, zip(tasks.handles(leader))), leader.chunks[0], 1))
    collect = spread.transpose()
    (share,) = persist(1.0 / da.maximum(collect.row_sums(), 1.0)[:, None])

    def average(V: Array) -> Array:
        (sums,), _ = collect.update(V, _scaled, (tasks.Blank(V),), (share,), summed=False)
        return spread.matmul(sums)

    return n_distinct, average


def _first_equal(codes: np.ndarray, start: int) -> np.ndarray:
    """The number (b, 1) of the first row of a block, which begins at `start`, that is equal to each."""
    _, first, member = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return (start + first[member.ravel()])[:, None]


def _count_own(leader: np.ndarray, start: int) -> int:
    return int(np.sum(leader[:, 0] == start + np.arange(len(leader))))


def _ones(A: np.ndarray) -> np.ndarray:
    return np.ones(A.shape)


def _scaled(product: np.ndarray, out: np.ndarray, share: np.ndarray) -> None:
    out[...] = share * product


def _two_hashes(X: np.ndarray) -> np.ndarray:
    return np.stack([hash_rows(X), hash_rows(X, 0xD1342543DE82EF95)], axis=1)

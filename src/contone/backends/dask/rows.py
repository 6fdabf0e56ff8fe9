"""Lazy arrays (dask): the same functions of rows, run block by block wherever the blocks are.

A dask array here has its rows in blocks and all its columns in one. Arrays that are in memory pass through: a function
of rows is then called once, with all of them. dask itself is imported only when one of its arrays is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
from array_api_compat import is_dask_array

from contone.runtime.threads import pieces_of, side_by_side

Array = Any

FAN = 8
"""How many partial results a task of a reduction takes in."""


def by_rows(
    function: Callable[..., Array], *arrays: Array, columns: int, dtype: Any = np.float64, **shared: Array
) -> Array:
    """function(rows of every array, **shared) -> (m, columns), for all rows; lazy where the arrays are.

    What is `shared` is in memory, and goes to each worker once.
    """
    if not any(is_dask_array(A) for A in arrays):
        return function(*arrays, **shared)
    import dask.array as da
    from dask import delayed

    chunks = next(A.chunks[0] for A in arrays if is_dask_array(A))
    once = {name: delayed(A) for name, A in shared.items()}
    return da.map_blocks(function, *arrays, chunks=(chunks, (columns,)), meta=np.empty((0, 0), dtype=dtype), **once)


def over_rows(function: Callable[..., Any], *arrays: Array) -> Callable[..., Any]:
    """The map a -> sum over blocks of function(a..., rows of every array), a tuple of numbers or small arrays.

    The order of the summation depends on the blocks alone, not on which worker or thread is faster.
    """
    if not any(is_dask_array(A) for A in arrays):
        pieces = pieces_of(arrays[0])

        def by_pieces(*given: Any) -> tuple[Any, ...]:
            work = lambda rows: function(*given, *(A[rows] for A in arrays))  # noqa: E731
            return _add(list(side_by_side(work, pieces))) if len(pieces) > 1 else work(slice(None))

        return by_pieces
    from dask import compute, delayed

    blocks = list(zip(*(A.to_delayed().ravel() for A in arrays), strict=True))
    task = delayed(function, pure=False)

    def total(*given: Any) -> tuple[Any, ...]:
        return compute(combined(_add, [task(*given, *rows) for rows in blocks]))[0]

    return total


def combined(function: Callable[[list[Any]], Any], parts: Sequence[Any]) -> Any:
    """One delayed value from many, by a tree of calls function([some of them])."""
    from dask import delayed

    task, level = delayed(function, pure=False), list(parts)
    while len(level) > 1:
        level = [task(level[i : i + FAN]) for i in range(0, len(level), FAN)]
    return level[0]


def _add(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True))


def settled(*arrays: Array) -> tuple[Array, ...]:
    """Small lazy results, computed together in one pass; arrays that are in memory as they are."""
    if not any(is_dask_array(A) for A in arrays):
        return arrays
    from dask import compute

    return compute(*arrays)


def gathered(A: Array) -> Array:
    """A in the memory of this process: for labels and solutions, (n, q), never for features."""
    return settled(A)[0]


def kept(*arrays: Array) -> tuple[Array, ...]:
    """The same arrays, lazy ones computed once and held by the workers (who compute again what is lost)."""
    if not any(is_dask_array(A) for A in arrays):
        return arrays
    from dask import persist

    return persist(*arrays)


def spread(A: np.ndarray, model: Array) -> Array:
    """A (n, q) as a lazy array with the row blocks of `model`, if that is one; else A itself.

    The numbers travel with the tasks, so that they outlive any worker.
    """
    if not is_dask_array(model) or is_dask_array(A):
        return A
    import dask.array as da

    return da.from_array(A, chunks=(model.chunks[0], A.shape[1]))


def n_blocks(A: Array) -> int:
    """How many blocks of rows `over_rows` sums over."""
    return len(A.chunks[0]) if is_dask_array(A) else len(pieces_of(A))


def row_numbers(A: Array) -> Array:
    """0, 1, ... (n, 1), with the row blocks of a lazy array A (n, q)."""
    import dask.array as da

    return da.arange(A.shape[0], chunks=(A.chunks[0],), dtype=np.int64)[:, None]


@contextmanager
def large_graphs(X: Array) -> Iterator[None]:
    """Let tasks carry labels and solutions, (n, q), without a warning by dask: it is meant (see `spread`)."""
    if not is_dask_array(X):
        yield
        return
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        yield


def bounds(A: Array) -> np.ndarray:
    """Where the row blocks of a lazy array begin, and its length at the end: (blocks + 1,)."""
    return np.concatenate([[0], np.cumsum(A.chunks[0])])


def with_everywhere(function: Callable[..., Any], blocks: Sequence[Any], shared: np.ndarray) -> list[Any]:
    """[function(block, shared) for every delayed block], with `shared`, a large array, sent to each worker once.

    It goes with the tasks and not by `Client.scatter`: what was scattered is gone with the workers that had it, while
    the scheduler makes everything that came with tasks again.
    """
    from dask import compute, delayed

    once = delayed(shared, name=f"shared-{uuid4().hex}")
    task = delayed(function, pure=False)
    return list(compute(*(task(block, once) for block in blocks)))

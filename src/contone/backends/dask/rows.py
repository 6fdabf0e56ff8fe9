"""Lazy arrays (dask): the same functions of rows, run block by block wherever the blocks are.

A dask array here has its rows in blocks and all its columns in one. Arrays in memory may stand beside lazy ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import dask.array as da
import numpy as np
from dask import config
from dask.base import compute as compute_together
from dask.base import persist as persist_together
from dask.delayed import delayed

from contone.backends.numpy import random_signs
from contone.backends.numpy.neighbours import EXACT_ROWS
from contone.runtime.machine import Result
from contone.typing import Array

FAN = 8
"""How many partial results a task of a reduction takes in."""


def map_rows(
    function: Callable[..., Array], *arrays: Array, columns: int, dtype: type = np.float64, **shared: Array
) -> Array:
    """function(rows of every array, **shared) -> (m, columns), lazily; what is `shared` goes to each worker once."""
    chunks = next(A.chunks[0] for A in arrays if isinstance(A, da.Array))
    once = {name: delayed(A) for name, A in shared.items()}
    return da.map_blocks(function, *arrays, chunks=(chunks, (columns,)), meta=np.empty((0, 0), dtype=dtype), **once)


def combine(function: Callable[[list[Array]], Array], parts: Sequence[Array]) -> Array:
    """One delayed value from many, by a tree of calls function([some of them])."""
    task, level = delayed(function, pure=False), list(parts)
    while len(level) > 1:
        level = [task(level[i : i + FAN]) for i in range(0, len(level), FAN)]
    return level[0]


def compute(*arrays: Array) -> tuple[Array, ...]:
    """Small lazy results (arrays or delayed values), computed together in one pass; what is in memory as it is."""
    with _large_graphs():
        found: tuple[Array, ...] = compute_together(*arrays)
    return found


def each_block(function: Callable[..., Result], *arrays: Array) -> tuple[Result, ...]:
    """function(rows of every array) of every block of rows, in one pass; only the results are kept."""
    task = delayed(function, pure=False)
    return compute(*(task(*rows) for rows in zip(*(A.to_delayed().ravel() for A in arrays), strict=True)))


def persist(*arrays: Array) -> tuple[Array, ...]:
    """The same arrays, lazy ones computed once and held by the workers (who compute again what is lost)."""
    with _large_graphs():
        found: tuple[Array, ...] = persist_together(*arrays)
    return found


def split_like(A: Array, model: Array) -> Array:
    """A (n, q) as a lazy array with the row blocks of `model`, if that is one.

    The numbers travel with the tasks, so that they outlive any worker.
    """
    if isinstance(A, da.Array) or not isinstance(model, da.Array):
        return A
    return da.from_array(A, chunks=(model.chunks[0], A.shape[1]))


def row_numbers(A: Array) -> Array:
    """0, 1, ... (n, 1), with the row blocks of a lazy array A (n, q)."""
    return da.arange(A.shape[0], chunks=(A.chunks[0],), dtype=np.int64)[:, None]


def block_starts(A: Array) -> np.ndarray:
    """Where the row blocks of a lazy array begin, and its length at the end: (blocks + 1,)."""
    return np.concatenate([[0], np.cumsum(A.chunks[0])])


def signs(A: Array, columns: int) -> Array:
    """Random signs (n, columns) in the row blocks of A: up to 50,000 rows those of NumPy, beyond by blocks."""
    n, sizes = A.shape[0], A.chunks[0]
    if n <= EXACT_ROWS:
        return split_like(random_signs(n, columns), A)
    made = [
        da.from_delayed(delayed(_signs)(i, m, columns), (m, columns), dtype=np.float64) for i, m in enumerate(sizes)
    ]
    return da.concatenate(made)


def _signs(block: int, rows: int, columns: int) -> Array:
    return np.random.default_rng([0, block]).choice([-1.0, 1.0], size=(rows, columns))


@contextmanager
def _large_graphs() -> Iterator[None]:
    """Let tasks carry labels and solutions, (n, q), without a warning by dask: it is meant (see `split_like`)."""
    with suppress(ImportError):
        # dask imports it while it computes; were that inside, its defaults would be gone with the setting below.
        import distributed  # noqa: F401
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
        yield

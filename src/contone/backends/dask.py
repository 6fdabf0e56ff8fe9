"""Dask arrays: rows in blocks that lie anywhere; functions of rows run block by block, wherever the blocks are.

A dask array here has its rows in blocks and all its columns in one. Arrays in memory may stand beside lazy ones. What
needs all rows together (a neighbour graph, a kernel matrix) is computed in this process, where they fit: see
`contone.base.template.in_its_kind`.
"""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed

from contone.backends.numpy import Backend
from contone.exceptions import FeatureError, ShapeError
from contone.runtime.machine import Result
from contone.typing import Array

NO_ROWS = np.empty((0, 0))
"""Tells dask what a block is."""


class DaskBackend(Backend):
    """What lazy arrays do otherwise than NumPy arrays. What is small is computed as a NumPy array."""

    name = "dask"
    in_memory = False

    # Rows

    def map_rows(self, function: Callable[..., Array], *arrays: Array, columns: int) -> Array:
        """function(rows of every array) -> (m, columns), lazily."""
        chunks = next(A.chunks[0] for A in arrays if isinstance(A, da.Array))
        return da.map_blocks(function, *arrays, chunks=(chunks, (columns,)), meta=NO_ROWS)

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        return tuple(compute(*arrays))

    def split_like(self, A: Array, model: Array) -> Array:
        """The numbers travel with the tasks, so that they outlive any worker."""
        return A if isinstance(A, da.Array) else da.from_array(A, chunks=(model.chunks[0], A.shape[1]))

    def take_rows(self, A: Array, order: Array) -> Array:
        return A[order]

    def row_numbers(self, A: Array) -> Array:
        return da.arange(A.shape[0], chunks=(A.chunks[0],), dtype=np.int64)[:, None]

    def to_numpy(self, A: Array) -> np.ndarray:
        return np.asarray(compute(A)[0])

    # Checks: one pass over the blocks, which stay where they are

    def check_matrix(self, A: Array, name: str) -> Array:
        """A as a lazy array with known rows and all columns in one block."""
        if not isinstance(A, da.Array):
            A = da.from_array(np.asarray(A), chunks="auto")
        if A.ndim == 1:
            raise ShapeError(
                f"{name} must be a matrix, one row per instance; it has shape {A.shape}. One class per row is not read "
                "from dask arrays: use one column per label."
            )
        A = super().check_matrix(A, name)
        if np.isnan(A.shape[0]):
            A = A.compute_chunk_sizes()
        rows = tuple(size for size in A.chunks[0] if size)  # filters leave empty blocks
        if not rows:
            raise FeatureError(f"{name} is empty: it has 0 sample(s); pass at least two rows.")
        return A.rechunk((rows, A.shape[1]))

    def each_block(self, function: Callable[..., Result], *arrays: Array) -> tuple[Result, ...]:
        task = delayed(function, pure=False)
        blocks = zip(*(A.to_delayed().ravel() for A in arrays), strict=True)
        return self.compute(*(task(*rows) for rows in blocks))

    def check_later(self, A: Array, check: Callable[[Array, int], None]) -> Array:
        return A.map_blocks(_checked, check=check, dtype=np.float64, meta=NO_ROWS)


def _checked(A: np.ndarray, check: Callable[[Array, int], None], block_info: Any = None) -> np.ndarray:
    check(A, int(block_info[0]["array-location"][0][0]))
    return A

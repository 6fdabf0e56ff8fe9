"""Data checks of lazy arrays: one pass over the blocks, which stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from contone.exceptions import FeatureError, InputTypeError, ShapeError
from contone.typing import Array


def check_matrix(A: Array, name: str) -> Array:
    """A as a lazy array with known rows and all columns in one block."""
    if not isinstance(A, da.Array):
        A = da.from_array(np.asarray(A), chunks="auto")
    if A.ndim != 2 or A.shape[1] == 0:
        advice = " One class per row is not read from dask arrays: use one column per label." if A.ndim == 1 else ""
        raise ShapeError(f"{name} must be a matrix, one row per instance; it has shape {A.shape}.{advice}")
    if A.dtype.kind not in "buif":
        raise InputTypeError(f"{name} must hold numbers; it holds {A.dtype}.")
    if np.isnan(A.shape[0]):
        A = A.compute_chunk_sizes()
    rows = tuple(size for size in A.chunks[0] if size)  # filters leave empty blocks
    if not rows:
        raise FeatureError(f"{name} is empty: it has 0 sample(s); pass at least two rows.")
    return A.rechunk((rows, A.shape[1]))


def align(X: Array, Y: Array) -> tuple[Array, Array]:
    """Both as lazy matrices with the same blocks of rows: those of X, or of Y where X is in memory."""
    X_lazy, Y_lazy = check_matrix(X, "X"), check_matrix(Y, "Y")
    if X_lazy.shape[0] != Y_lazy.shape[0]:
        raise ShapeError(
            f"X and Y must have the same number of rows; they have {X_lazy.shape[0]} and {Y_lazy.shape[0]} "
            "(inconsistent numbers of samples)."
        )
    if isinstance(X, da.Array):
        return X_lazy, Y_lazy.rechunk((X_lazy.chunks[0], Y_lazy.shape[1]))
    return X_lazy.rechunk((Y_lazy.chunks[0], X_lazy.shape[1])), Y_lazy


def check_later(A: Array, check: Callable[[Array, int], None]) -> Array:
    """A, float64, whose blocks call check(rows, number of the first row) when they are computed, not now."""
    return A.map_blocks(_checked, check=check, dtype=np.float64, meta=np.empty((0, 0)))


def _checked(A: np.ndarray, check: Callable[[Array, int], None], block_info: Any = None) -> np.ndarray:
    check(A, int(block_info[0]["array-location"][0][0]))
    return A

"""Data checks of lazy arrays: one pass over the blocks, which stay where they are."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from contone.backends import examination
from contone.backends.dask.rows import compute
from contone.backends.protocols import Findings
from contone.exceptions import FeatureError, InputTypeError, LabelError, ShapeError
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


def examine(X: Array | None, Y: Array | None, tolerance: float) -> Findings:
    """What is found in X and Y, which share their blocks, in one pass over them."""
    given = [A for A in (X, Y) if A is not None]
    blocks = zip(*(A.to_delayed().ravel() for A in given), strict=True)
    task = delayed(_examine, pure=False)
    parts = compute(*(task(block, X is not None, Y is not None, tolerance) for block in blocks))
    return examination.merge(parts)


def _examine(block: tuple[np.ndarray, ...], has_X: bool, has_Y: bool, tolerance: float) -> Findings:
    return examination.examine(block[0] if has_X else None, block[-1] if has_Y else None, tolerance)


def refuse_later(X: Array) -> Array:
    """X, float64, that refuses NaN and infinity when it is computed, not now."""
    return X.astype(np.float64).map_blocks(_finite, dtype=np.float64, meta=np.empty((0, 0)))


def refuse_labels_later(Y: Array, tolerance: float, *, levels: bool = False, unasked: bool = False) -> Array:
    """Y, float64, that refuses what is neither labels (or levels) nor confidences when it is computed, not now."""
    meta, function = np.empty((0, 0)), _whole if levels else _logical
    return Y.astype(np.float64).map_blocks(function, tolerance=tolerance, unasked=unasked, dtype=np.float64, meta=meta)


def _finite(X: np.ndarray, block_info: Any = None) -> np.ndarray:
    bad = examination.examine(X, None, 0.0).bad_features
    if bad >= 0:
        row = _first_row(block_info) + bad
        raise FeatureError(f"X contains NaN or infinity in row {row}: impute or drop such rows.")
    return X


def _logical(Y: np.ndarray, tolerance: float, unasked: bool, block_info: Any = None) -> np.ndarray:
    marked = ((Y == 0) | (Y == 1) | (np.isnan(Y) & unasked)).all(axis=1)
    graded = (Y >= 0).all(axis=1) & (np.abs(Y.sum(axis=1) - 1.0) <= tolerance)
    bad = np.flatnonzero(~marked & ~graded)
    if bad.size:
        row = _first_row(block_info) + int(bad[0])
        missing = ", or NaN for entries that nobody asked about" if unasked else ""
        raise LabelError(f"Y must hold 0 and 1{missing}, or confidences; row {row} does not.")
    return Y


def _whole(Y: np.ndarray, tolerance: float, unasked: bool, block_info: Any = None) -> np.ndarray:
    graded = (Y >= 0).all(axis=1) & (np.abs(Y.sum(axis=1) - 1.0) <= tolerance)
    bad = np.flatnonzero(~(((np.round(Y) == Y) & np.isfinite(Y)) | (np.isnan(Y) & unasked)).all(axis=1) & ~graded)
    if bad.size:
        row = _first_row(block_info) + int(bad[0])
        raise LabelError(f"Y must hold whole numbers (levels or ranks), or confidences; row {row} does not.")
    return Y


def _first_row(block_info: Any) -> int:
    return int(block_info[0]["array-location"][0][0])

"""The checks of `contone.validation` for dask arrays: in one pass over the blocks, which stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_dask_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_n_features

from contone.backends.dask.rows import bounds
from contone.exceptions import (
    FeatureError,
    InputError,
    InputTypeError,
    LabelError,
    LabelWarning,
    MemoryEstimateError,
    MissingExtraError,
    ShapeError,
)
from contone.runtime import memory
from contone.runtime.warnings import warn
from contone.validation import SIMPLEX_TOLERANCE, Border, Training, _default_names

OUT_OF_CORE = ("LCdr", "GLLE", "LP", "Inversion", "LabelConfidence", "Augmented", "Uniform", "Temperature", "Logical")
"""The enhancers that take dask arrays."""


def check_training(estimator: BaseEstimator, X: Any, Y: Any, *, logical: bool = True) -> Training:
    """Features and labels with the same blocks of rows and one block of columns, float64, all entries checked.

    Without `logical`, Y may be any finite matrix.
    """
    check_supported(estimator)
    X, Y = _aligned(X, Y)
    if X.shape[0] < 2:
        raise FeatureError("X has fewer than two rows (n_samples): nothing can be learnt from one row; pass more rows.")
    _count_features(estimator, X, reset=True)
    found = _findings(X, Y)
    start = bounds(X)
    _refuse_infinite(found, start, "bad_features", "X", FeatureError)
    _refuse_infinite(found, start, "bad_labels", "Y", LabelError)
    names = _default_names(Y.shape[1])
    if logical:
        _check_logical(found, start, names)
    return Training(X.astype(np.float64), Y.astype(np.float64), Border(names, rows=X))


def check_features(estimator: BaseEstimator, X: Any) -> Any:
    """Features of new rows; whether they are finite is checked when they are used."""
    X = _matrix(X, "X")
    _count_features(estimator, X, reset=False)
    return X.astype(np.float64).map_blocks(_finite, dtype=np.float64, meta=np.empty((0, 0)))


def check_new_rows(estimator: BaseEstimator, X: Any, Y: Any, label_names: Sequence[str]) -> tuple[Any, Any]:
    """Features and labels of new rows in the same blocks; what is in them is checked when they are used."""
    X, Y = _aligned(X, Y)
    X = check_features(estimator, X)
    if Y.shape[1] != len(label_names):
        raise ShapeError(f"Y has {Y.shape[1]} labels; the enhancer was fitted with {len(label_names)}.")
    return X, Y.astype(np.float64).map_blocks(_logical, dtype=np.float64, meta=np.empty((0, 0)))


def check_supported(estimator: Any) -> None:
    """Refuse methods that need all rows in memory."""
    if not getattr(estimator, "out_of_core", False):
        raise InputTypeError(
            f"{type(estimator).__name__} does not fit dask arrays; these methods do: {', '.join(OUT_OF_CORE)}. Or fit "
            "it to a sample in memory (X[rows].compute()); where it has `predict`, that takes dask arrays."
        )


def check_setting(estimator: Any, X: Any, setting: str, instead: str) -> None:
    """Refuse dask arrays with a setting that needs all rows in memory."""
    if is_dask_array(X):
        raise InputError(
            f"{type(estimator).__name__}({setting}={getattr(estimator, setting)!r}) needs all rows in memory; with "
            f"dask arrays use {setting}={instead!r}."
        )


def check_solver_memory(estimator: Any, n: int, q: int) -> None:
    """Refuse, before the search, a graph whose solver would not fit here: features and edges are with the workers, but
    the solver holds about a dozen matrices of the shape of Y in this process."""
    needed, available = memory.fit_bytes(n, 0, q), memory.available_bytes()
    if needed > available:
        raise MemoryEstimateError(
            f"{type(estimator).__name__} on {n:,} rows with {q} labels needs about {memory.shown(needed)} of memory in "
            f"the process that solves for them; {memory.shown(available)} are available. Use Inversion, which never "
            "brings all labels together; or fit on a sample of the rows in memory and predict the others (dask arrays "
            f"will do). If the estimate is wrong, set {memory.LIMIT_VARIABLE}, to a size such as 64GB or to off."
        )


# ------------------------------------------------------------------------------------------------------ containers


def _aligned(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both as lazy matrices with the same blocks of rows: those of X, or of Y where X is in memory."""
    if Y is None:
        raise LabelError(
            "requires y to be passed, but the target y is None. Pass the labels Y as a dask array, (n, q)."
        )
    model, other = (X, Y) if is_dask_array(X) else (Y, X)
    names = ("X", "Y") if is_dask_array(X) else ("Y", "X")
    model = _matrix(model, names[0])
    other = _matrix(other, names[1])
    if model.shape[0] != other.shape[0]:
        n, m = (model, other) if names[0] == "X" else (other, model)
        raise ShapeError(
            f"X and Y must have the same number of rows; they have {n.shape[0]} and {m.shape[0]} "
            "(inconsistent numbers of samples)."
        )
    other = other.rechunk((model.chunks[0], other.shape[1]))
    return (model, other) if names[0] == "X" else (other, model)


def _matrix(A: Any, name: str) -> Any:
    """A as a dask array with known rows and all columns in one block."""
    try:
        import dask.array as da
    except ImportError as error:  # an array of dask's without dask itself
        raise MissingExtraError("dask.array cannot be imported: pip install 'contone[scale]'.") from error
    if not is_dask_array(A):
        A = da.from_array(np.asarray(A), chunks="auto")
    if A.ndim != 2 or A.shape[1] == 0:
        advice = " One class a row is not read from dask arrays: use one column a label." if A.ndim == 1 else ""
        raise ShapeError(f"{name} must be a matrix, one row an instance; it has shape {A.shape}.{advice}")
    if A.dtype.kind not in "buif":
        raise InputTypeError(f"{name} must hold numbers; it holds {A.dtype}.")
    if np.isnan(A.shape[0]):
        A = A.compute_chunk_sizes()
    rows = tuple(size for size in A.chunks[0] if size)  # filters leave empty blocks
    if not rows:
        raise FeatureError(f"{name} is empty: it has 0 sample(s); pass at least two rows.")
    return A.rechunk((rows, A.shape[1]))


def _count_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> None:
    try:
        _check_n_features(estimator, X, reset=reset)
    except ValueError as error:
        raise FeatureError(str(error)) from error


# --------------------------------------------------------------------------------------------------------- contents


class _Finding(NamedTuple):
    """What one block says. Rows are counted from its first; -1 stands for none."""

    bad_features: int
    bad_labels: int
    is_logical: bool
    n_empty: int
    empty: int
    off: int
    """First row that is not on the simplex, and what is wrong with it."""
    reason: tuple[int, float]
    lowest: np.ndarray
    highest: np.ndarray


def _findings(X: Any, Y: Any) -> list[_Finding]:
    from dask import compute, delayed

    pairs = zip(X.to_delayed().ravel(), Y.to_delayed().ravel(), strict=True)
    return list(compute(*(delayed(_examine, pure=False)(x, y) for x, y in pairs)))


def _examine(X: np.ndarray, Y: np.ndarray) -> _Finding:
    with np.errstate(invalid="ignore"):
        logical = (Y == 0) | (Y == 1)
        total = Y.sum(axis=1, dtype=np.float64)
        off = np.asarray((Y < 0).any(axis=1) | (np.abs(total - 1.0) > SIMPLEX_TOLERANCE))
        empty = np.asarray(~Y.any(axis=1))
    row = _first(off)
    odd = np.flatnonzero(~logical[row]) if row >= 0 else np.empty(0, dtype=int)
    return _Finding(
        _first(~np.isfinite(X).all(axis=1)),
        _first(~np.isfinite(Y).all(axis=1)),
        bool(logical.all()),
        int(empty.sum()),
        _first(empty),
        row,
        (int(odd[0]), float(Y[row, odd[0]])) if len(odd) else (-1, float(total[row])),
        Y.min(axis=0),
        Y.max(axis=0),
    )


def _refuse_infinite(found: list[_Finding], start: np.ndarray, field: str, name: str, error: type[Exception]) -> None:
    for finding, first in zip(found, start[:-1], strict=True):
        if getattr(finding, field) >= 0:
            raise error(f"{name} contains NaN or infinity in row {first + getattr(finding, field)}: impute or drop it.")


def _check_logical(found: list[_Finding], start: np.ndarray, names: Sequence[str]) -> None:
    """As `validation._check_logical`, from what the blocks say."""
    if all(f.is_logical for f in found):
        empty = [int(first) + f.empty for f, first in zip(found, start[:-1], strict=True) if f.empty >= 0]
        if empty:
            raise LabelError(
                f"Y has rows without any label ({sum(f.n_empty for f in found)} of {start[-1]}, first row {empty[0]}): "
                "every row needs at least one 1. Drop these rows, or give them their labels."
            )
    for finding, first in zip(found, start[:-1], strict=True):
        if finding.off >= 0 and not all(f.is_logical for f in found):
            column, value = finding.reason
            what = f"label {names[column]!r} is {value:g}" if column >= 0 else f"the sum is {value:g}"
            raise LabelError(
                "Y must hold 0 and 1 only (or confidences: rows that are not negative and sum to 1); in row "
                f"{first + finding.off}, {what}. Turn the labels into 0 and 1, or divide each row of confidences by "
                "its sum."
            )
    lowest, highest = np.min([f.lowest for f in found], axis=0), np.max([f.highest for f in found], axis=0)
    constant = np.flatnonzero((lowest == highest) & ((lowest == 0) | (lowest == 1)))
    if constant.size:
        shown = ", ".join(f"{names[j]!r} (always {lowest[j]:g})" for j in constant[:5])
        warn(
            f"{constant.size} of {len(names)} labels are the same in every row, so the data cannot say how they vary: "
            f"{shown}. Consider dropping them.",
            LabelWarning,
        )


def _finite(X: np.ndarray, block_info: Any = None) -> np.ndarray:
    bad = _first(~np.isfinite(X).all(axis=1))
    if bad >= 0:
        raise FeatureError(f"X contains NaN or infinity in row {_origin(block_info) + bad}: impute or drop such rows.")
    return X


def _logical(Y: np.ndarray, block_info: Any = None) -> np.ndarray:
    total = Y.sum(axis=1)
    marked = ((Y == 0) | (Y == 1)).all(axis=1) & (total > 0)
    bad = _first(~marked & ~((Y >= 0).all(axis=1) & (np.abs(total - 1.0) <= SIMPLEX_TOLERANCE)))
    if bad >= 0:
        raise LabelError(
            f"Y must hold 0 and 1, at least one 1 a row, or confidences; row {_origin(block_info) + bad} does not."
        )
    return Y


def _origin(block_info: Any) -> int:
    """The number of the first row of a block."""
    return int(block_info[0]["array-location"][0][0])


def _first(condition: np.ndarray) -> int:
    found = np.flatnonzero(condition)
    return int(found[0]) if found.size else -1

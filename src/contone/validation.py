"""The only place where data is checked, and the only place where containers are opened and closed.

Estimators see float arrays; users hand in NumPy arrays, lists, sparse matrices, pandas or polars frames, torch tensors,
or dask arrays. `check_training` and `check_features` open what came in, refuse what cannot be used (with an error that
says what to do), and remember in a `Border` how the answer must leave: the same kind of container, with its index and
column names. A public call checks once; steps inside a method call each other's hooks.

What is in the rows is examined by the backend, where the rows lie, and judged here: `Findings` in, an error or a
warning out, with the same words for every kind of array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from array_api_compat import is_dask_array, is_torch_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_n_features, validate_data

from contone.backends import Findings, get_backend
from contone.exceptions import (
    FeatureError,
    InputError,
    InputTypeError,
    LabelError,
    LabelWarning,
    MissingExtraError,
    ShapeError,
)
from contone.runtime.warnings import warn
from contone.typing import Array

SIMPLEX_TOLERANCE = 1e-6
"""Row sums may be off by this much (files store rounded degrees); such rows are renormalised."""
SINGLE_TOLERANCE = 1e-4
"""The same for tensors in single precision."""


@dataclass(frozen=True)
class Border:
    """How an answer leaves: the container it is wrapped in, its index and its column names."""

    label_names: list[str]
    frame: Any = None
    model: Any = None
    """The tensor or dask array whose kind, device, precision or blocks the answer shares."""

    def wrap(self, D: Array) -> Any:
        """D (n, q) as the kind of container that came in."""
        if self.model is not None and is_torch_array(self.model):
            return _as_tensor(D, self.model)
        if self.model is not None:
            return get_backend(self.model).split_like(D, self.model)
        D = get_backend(D).to_numpy(D)
        if self.frame is None:
            return D
        answer = nw.to_native(nw.from_numpy(D, schema=self.label_names, backend=self.frame.implementation))
        index = nw.maybe_get_index(self.frame)
        if index is not None:  # pandas and its kin only
            answer.index = index
            columns = getattr(nw.to_native(self.frame), "columns", ())
            if [str(c) for c in columns] == self.label_names:  # numbers and tuples are column names too
                answer.columns = columns
        return answer


class Training(NamedTuple):
    """Checked input of a fit: X (n, d), labels (n, q), and the way out."""

    X: Any
    labels: Any
    border: Border


def check_training(estimator: BaseEstimator, X: Any, Y: Any) -> Training:
    """Check features and labels for an enhancer's fit.

    Y is logical, (n, q) in {0, 1} with at least one 1 per row; or a confidence matrix, rows on the simplex; or one
    class per row, (n,), which is read as scikit-learn reads it and one-hot encoded.
    """
    X_checked, labels, border = check_supervision(estimator, X, Y, examine=False)
    tolerance = _tolerance(labels)
    found = get_backend(labels).examine(_unexamined(X_checked), labels, tolerance)
    _judge_features(found)
    judge_labels(found, border.label_names)
    return Training(X_checked, labels, border)


def check_supervision(estimator: BaseEstimator, X: Any, Y: Any, *, examine: bool = True) -> Training:
    """Check features and any finite targets Y (n, q), or one class per row, (n,), for a supervised estimator.

    Without `examine`, whether the entries of dask arrays and of labels are finite is left to the caller.
    """
    if Y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Pass the labels Y: one row per instance, one column per label."
        )
    if is_dask_array(X) or is_dask_array(Y):
        X_checked, labels = _align_lazily(X, Y)
        _count_features(estimator, X_checked, reset=True)
        if X_checked.shape[0] < 2:
            raise FeatureError(
                "X has fewer than two rows (n_samples): nothing can be learnt from one row; pass more rows."
            )
        border = Border(default_names(labels.shape[1]), model=X_checked)
    else:
        X_checked = check_features(estimator, X, reset=True)
        labels, border = _open_labels(Y, name="Y", estimator=estimator)
        _same_rows(X_checked, labels, "Y")
        labels = _beside(X_checked, labels)
    if examine:
        found = get_backend(labels).examine(_unexamined(X_checked), labels, SIMPLEX_TOLERANCE)
        _judge_features(found)
        _judge_finite(found)
    return Training(X_checked, labels, border)


def check_learning(estimator: BaseEstimator, X: Any, D: Any) -> Training:
    """Check features and label distributions for a learner's fit; a 1-D D holds one class per row."""
    X_checked = check_features(estimator, X, reset=True)
    D_array, border = _open_labels(D, name="D", estimator=estimator)
    _same_rows(X_checked, D_array, "D")
    return Training(X_checked, _read_only(check_distributions(D_array, name="D")), border)


def check_truth(estimator: BaseEstimator, D: Any, label_names: Sequence[str]) -> np.ndarray:
    """The distributions (m, q) that a fitted learner is scored against; a 1-D D holds one of its classes per row."""
    labels, border = _open_labels(D, name="D", estimator=estimator)
    if np.ndim(D) == 1:
        unknown = sorted(set(border.label_names) - set(label_names))
        if unknown:
            raise LabelError(f"D has classes that were not there in fit: {', '.join(unknown[:5])}.")
        position = {name: j for j, name in enumerate(border.label_names)}
        absent = np.zeros(len(labels))
        labels = np.stack([labels[:, position[n]] if n in position else absent for n in label_names], axis=1)
    elif labels.shape[1] != len(label_names):
        raise ShapeError(f"D has {labels.shape[1]} labels; the learner was fitted with {len(label_names)}.")
    return check_distributions(labels, name="D")


def check_new_rows(estimator: Any, X: Any, Y: Any, label_names: Sequence[str]) -> Training:
    """Features (m, d) and labels (m, q) of new rows for a fitted enhancer, as in `check_training`.

    What is in lazy rows is checked when they are used.
    """
    if is_dask_array(X) or is_dask_array(Y):
        from contone.backends.dask import checks

        X_lazy, Y_lazy = _align_lazily(X, Y)
        _count_features(estimator, X_lazy, reset=False)
        _same_labels(Y_lazy, label_names)
        labels = checks.refuse_labels_later(Y_lazy, SIMPLEX_TOLERANCE)
        return Training(checks.refuse_later(X_lazy), labels, Border(list(label_names), model=X_lazy))
    X_checked = check_features(estimator, X, reset=False)
    labels = check_new_labels(estimator, X_checked, Y, label_names)
    return Training(X_checked, labels, open_border(Y, label_names))


def check_new_labels(estimator: Any, X: Any, Y: Any, label_names: Sequence[str]) -> Any:
    """Labels (m, q) of new rows X, checked against the names of the labels; see `check_new_rows`."""
    labels, border = _open_labels(Y, name="Y", estimator=estimator)
    _same_rows(X, labels, "Y")
    _same_labels(labels, label_names)
    labels = _beside(X, labels)
    judge_labels(get_backend(labels).examine(None, labels, _tolerance(labels)), border.label_names, constant=False)
    return labels


def check_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a finite matrix; on `reset` the feature names and count are remembered on the estimator.

    The class attribute `kinds` of the estimator says what it computes with: for "torch", a tensor stays one, in its
    precision and on its device; for "sparse", a sparse matrix becomes a CSR array. Otherwise X becomes float64 NumPy. A
    dask array stays lazy: whether it is finite is checked when it is used.
    """
    if is_dask_array(X):
        from contone.backends.dask import checks

        X = checks.check_matrix(X, "X")
        _count_features(estimator, X, reset=reset)
        return checks.refuse_later(X)
    kinds = getattr(estimator, "kinds", frozenset())
    if is_torch_array(X):
        X = get_backend(X).check_matrix(X, "X")
        if "torch" in kinds:
            if reset and X.shape[0] < 2:
                raise FeatureError("X has one row: nothing can be learnt from one row; pass more rows.")
            if X.shape[0] == 0:
                raise FeatureError("X is empty: it has 0 sample(s).")
            _judge_features(get_backend(X).examine(X, None, 0.0))
            _count_features(estimator, X, reset=reset)
            return X
        X = get_backend(X).to_numpy(X)
    _check_columns(X, "X")
    _refuse_odd_arrays(X, "X")
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if "sparse" in kinds else False,
            dtype=np.float64,
            order="C",
            ensure_min_samples=2 if reset else 1,
        )
    except TypeError as error:
        if sp.issparse(X):
            raise InputTypeError(
                f"{error} {type(estimator).__name__} needs dense features: pass X.toarray()."
            ) from error
        raise InputTypeError(f"{error} X must hold numbers only.") from error
    except ValueError as error:
        raise FeatureError(f"{error}{_advice(str(error))}") from error
    return _read_only(checked)


def check_distributions(D: Any, *, name: str = "D") -> np.ndarray:
    """D as a float64 matrix with rows on the simplex; rounding is repaired, anything worse is refused."""
    _refuse_odd_arrays(D, name)
    D = np.asarray(_to_numpy(D, name), dtype=np.float64)
    if D.ndim != 2 or D.size == 0:
        raise ShapeError(
            f"{name} must be a non-empty matrix with one row per instance and one column per label; "
            f"it has shape {D.shape}."
        )
    if not np.isfinite(D).all():
        raise LabelError(f"{name} has NaN or infinite entries in row {_first(~np.isfinite(D).all(axis=1))}.")
    if (D < 0).any():
        row = _first((D < 0).any(axis=1))
        raise LabelError(f"{name} has a negative degree in row {row}: a label distribution is not negative.")
    total = D.sum(axis=1)
    off = np.abs(total - 1.0) > SIMPLEX_TOLERANCE
    if off.any():
        row = _first(off)
        raise LabelError(
            f"{name} must have rows that sum to 1; row {row} sums to {total[row]:.6g} ({int(off.sum())} such rows). "
            "Divide each row by its sum if the entries are meant as degrees."
        )
    return D / total[:, None]


def check_pair(D: Any, D_hat: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two label distributions of one shape."""
    truth, answer = check_distributions(D, name="D"), check_distributions(D_hat, name="D_hat")
    if truth.shape != answer.shape:
        raise ShapeError(f"D and D_hat must have the same shape; they have {truth.shape} and {answer.shape}.")
    return truth, answer


def open_border(container: Any, label_names: Sequence[str]) -> Border:
    """The way out for an answer about the rows of `container` (predict's X)."""
    model = container if is_torch_array(container) or is_dask_array(container) else None
    return Border(list(label_names), _frame(container), model)


# ----------------------------------------------------------------------------------------------------------- judgement


def _judge_features(found: Findings) -> None:
    if found.bad_features >= 0:
        raise FeatureError(
            f"X contains NaN or infinity in row {found.bad_features}: impute or drop it "
            "(e.g. with sklearn.impute.SimpleImputer)."
        )


def _judge_finite(found: Findings) -> None:
    if found.bad_labels >= 0:
        raise _missing_label("Y", found.bad_labels)


def judge_labels(found: Findings, names: Sequence[str], *, constant: bool = True) -> None:
    """Refuse what is neither logical labels nor confidences; warn of labels that say nothing, if `constant` asks."""
    _judge_finite(found)
    if found.is_logical and found.n_empty:
        raise LabelError(
            f"Y has rows without any label ({found.n_empty} of {found.n}, first row {found.empty}): "
            "every row needs at least one 1. Drop these rows, or give them their labels."
        )
    if not found.is_logical and found.off >= 0:
        value = found.off_value
        what = f"label {names[found.off_label]!r} is {value:g}" if found.off_label >= 0 else f"the sum is {value:g}"
        raise LabelError(
            f"Y must hold 0 and 1 only (or confidences: rows that are not negative and sum to 1); in row {found.off}, "
            f"{what}. Turn the labels into 0 and 1, or divide each row of confidences by its sum."
        )
    same = np.flatnonzero((found.lowest == found.highest) & ((found.lowest == 0) | (found.lowest == 1)))
    if constant and same.size:
        shown = ", ".join(f"{names[j]!r} (always {found.lowest[j]:g})" for j in same[:5])
        warn(
            f"{same.size} of {len(names)} labels are the same in every row, so the data cannot say how they vary: "
            f"{shown}. Consider dropping them.",
            LabelWarning,
        )


def _tolerance(labels: Array) -> float:
    return SINGLE_TOLERANCE if labels.dtype.itemsize == 4 else SIMPLEX_TOLERANCE


def _unexamined(X: Array) -> Array | None:
    """X where nobody has looked into it yet: lazy arrays."""
    return X if is_dask_array(X) else None


# ---------------------------------------------------------------------------------------------------------- labels


def _open_labels(Y: Any, *, name: str, estimator: Any) -> tuple[Any, Border]:
    """Y as a float64 matrix (n, q), or a floating tensor for an estimator that takes them, and its way out."""
    if Y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            f"Pass the labels {name}: one row per instance, one column per label."
        )
    _check_columns(Y, name)
    _refuse_odd_arrays(Y, name)
    frame, tensor = _frame(Y), Y if is_torch_array(Y) else None
    if tensor is not None and tensor.ndim == 2 and "torch" in getattr(estimator, "kinds", ()):
        labels = get_backend(tensor).check_matrix(tensor, name)
        return labels, Border(default_names(labels.shape[1]), None, tensor)
    array = _to_numpy(Y, name)
    if array.ndim == 1:
        labels, classes = _one_hot(array, name)
        return labels, Border(classes, frame, tensor)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ShapeError(
            f"{name} must be a matrix, one row per instance and one column per label; it has shape {array.shape}."
        )
    if array.dtype.kind not in "buif":
        raise InputTypeError(
            f"{name} must hold numbers (0 and 1, or bool); it holds {array.dtype}. "
            "Turn text labels into one column per label first, e.g. with sklearn.preprocessing.MultiLabelBinarizer."
        )
    labels = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(labels).all():
        raise _missing_label(name, _first(~np.isfinite(labels).all(axis=1)))
    names = [str(c) for c in frame.columns] if frame is not None else default_names(labels.shape[1])
    return labels, Border(names, frame, tensor)


def _missing_label(name: str, row: int) -> LabelError:
    return LabelError(f"{name} has a missing (NaN) or infinite entry in row {row}: say 0 or 1 for every label.")


def _one_hot(y: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """One class per row, as scikit-learn writes single-label targets, becomes one column per class."""
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        bad = _first(~np.isfinite(y) | (y != np.round(y)))
        raise LabelError(
            f"{name} is one-dimensional, so it must hold one class per row; entry {bad} is {y[bad]!r}. Input contains "
            f"NaN or numbers that are not a class. Pass a matrix with one column per label for multi-label data."
        )
    if y.dtype.kind == "c" or y.size == 0:
        raise LabelError(f"{name} must hold one class per row; it has dtype {y.dtype} and shape {y.shape}.")
    try:
        classes, position = np.unique(y, return_inverse=True)
    except TypeError as error:  # None or NaN among text, or text among numbers: there is no order to put them in
        raise InputTypeError(
            f"{name} must hold one class per row, all of one kind; it mixes kinds ({error}). "
            "Drop rows without a class, and write all classes as text or all as numbers."
        ) from error
    labels = np.zeros((y.size, classes.size))
    labels[np.arange(y.size), position] = 1.0
    return labels, [str(c) for c in classes]


# ------------------------------------------------------------------------------------------------------ containers


def _frame(container: Any) -> Any:
    """A narwhals frame or series around a pandas, polars, ... object; None for anything else."""
    opened = nw.from_native(container, eager_only=True, allow_series=True, pass_through=True)
    return opened if isinstance(opened, (nw.DataFrame, nw.Series)) else None


def _check_columns(container: Any, name: str) -> None:
    """Column names of a frame must differ, its columns must hold numbers, and it must be there: not lazy."""
    if nw.dependencies.is_polars_lazyframe(container):
        raise InputTypeError(f"{name} is a LazyFrame: collect it into a data frame first.")
    columns = getattr(container, "columns", None)
    if columns is None or isinstance(container, np.ndarray):
        return
    listed = [str(c) for c in columns]
    repeated = sorted({c for c in listed if listed.count(c) > 1}) if len(set(listed)) < len(listed) else []
    if repeated:
        raise InputError(f"{name} has duplicate column names: {', '.join(repeated[:5])}. Rename or drop them.")
    frame = _frame(container)
    if isinstance(frame, nw.DataFrame):
        odd = [c for c, t in frame.schema.items() if not _is_number(t)]
        if odd:
            raise InputTypeError(
                f"{name} must hold numbers only; these columns do not: {', '.join(map(repr, odd[:5]))}. "
                "Drop them or encode them as numbers."
            )


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind == nw.Boolean)


def _to_numpy(container: Any, name: str) -> np.ndarray:
    if sp.issparse(container):
        return container.toarray()
    if is_torch_array(container):
        return get_backend(container).to_numpy(container)
    frame = _frame(container)
    if isinstance(frame, nw.DataFrame) and all(_is_number(t) for t in frame.schema.values()):
        # Column by column, because pandas makes objects of numbers beside truth values, and of nullable types.
        return np.asarray(frame.select(nw.all().cast(nw.Float64)).to_numpy(), dtype=np.float64)
    if frame is not None:
        return frame.to_numpy()
    try:
        array = np.asarray(container)
    except ValueError as error:
        raise ShapeError(f"{name} is not a rectangular table: {error}.") from error
    if array.ndim == 0:
        raise InputTypeError(
            f"{name} is a {type(container).__name__}, not a table: pass an array, a list of rows or a data frame."
        )
    return array


def _refuse_odd_arrays(A: Any, name: str) -> None:
    """Arrays whose entries would be changed by reading them as numbers: masked, dates, complex."""
    if isinstance(A, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} is a masked array, whose mask would be ignored: pass A.filled(np.nan) or drop the masked rows."
        )
    kind = getattr(getattr(A, "dtype", None), "kind", "")
    if kind in "mM" and kind:
        raise InputTypeError(f"{name} holds dates or durations ({A.dtype}): turn them into numbers first.")
    if kind == "c":
        raise InputTypeError(f"{name} is complex: pass real numbers. Complex data not supported.")


def _align_lazily(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both as lazy float64 matrices with the same blocks of rows."""
    try:
        from contone.backends.dask import checks
    except ImportError as error:  # an array of dask's without dask itself
        raise MissingExtraError("dask.array cannot be imported: pip install 'contone[scale]'.") from error
    X, Y = checks.align(X, Y)
    return X.astype(np.float64), Y.astype(np.float64)


def _count_features(estimator: Any, X: Any, *, reset: bool) -> None:
    try:
        _check_n_features(estimator, X, reset=reset)
    except ValueError as error:
        raise FeatureError(str(error)) from error


def _beside(X: Any, labels: Any) -> Any:
    """Labels as the method wants them: a tensor beside a tensor X, else a read-only array."""
    if is_torch_array(X):
        return _as_tensor(labels, X)
    return _read_only(np.asarray(get_backend(labels).to_numpy(labels), dtype=np.float64))


def _as_tensor(A: Any, model: Any) -> Any:
    """A on the device of the tensor `model`, and in its precision if that is a floating one."""
    import torch

    precise = model.dtype in (torch.float32, torch.float64)
    return torch.as_tensor(A, device=model.device, dtype=model.dtype if precise else None)


def _same_labels(labels: Any, label_names: Sequence[str]) -> None:
    if labels.shape[1] != len(label_names):
        raise ShapeError(f"Y has {labels.shape[1]} labels; the enhancer was fitted with {len(label_names)}.")


def _same_rows(X: Any, labels: Any, name: str) -> None:
    if X.shape[0] != labels.shape[0]:
        raise ShapeError(
            f"X and {name} must have the same number of rows; they have {X.shape[0]} and {labels.shape[0]} "
            "(inconsistent numbers of samples)."
        )


def _advice(message: str) -> str:
    if "NaN" in message or "infinity" in message:
        return "\nX must be finite: impute or drop such rows (e.g. with sklearn.impute.SimpleImputer)."
    if "could not convert string" in message:
        return "\nX must hold numbers only: drop or encode text columns."
    if "0 sample(s)" in message:
        return " X is empty: pass at least two rows."
    if "minimum of 2 is required" in message:
        return " (n_samples = 1): nothing can be learnt from one row; pass more rows."
    if "0 feature(s)" in message:
        return " X has no columns: pass at least one feature."
    return ""


def default_names(q: int) -> list[str]:
    """What labels are called that came without names."""
    return [f"label_{j}" for j in range(q)]


def _first(condition: Any) -> int:
    return int(np.flatnonzero(condition)[0])


def _read_only(A: Any) -> Any:
    """The same array behind a view that cannot be written to: the caller's data is never changed."""
    if isinstance(A, np.ndarray):
        A = A.view()
        A.flags.writeable = False
    return A

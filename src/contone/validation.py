"""The only place where data is checked, and the only place where containers are opened and closed.

Estimators see float arrays; users hand in NumPy arrays, lists, sparse matrices, pandas or polars frames, torch tensors,
or dask arrays (`validation_dask`).
`check_training` and `check_features` open what came in, refuse what cannot be used (with an error that says what to
do), and remember in a `Border` how the answer must leave: the same kind of container, with its index and column names.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from array_api_compat import is_dask_array, is_torch_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_n_features, validate_data

from contone.backends.dask.rows import spread
from contone.exceptions import FeatureError, InputError, InputTypeError, LabelError, LabelWarning, ShapeError
from contone.runtime.warnings import warn

SIMPLEX_TOLERANCE = 1e-6
"""Row sums may be off by this much (files store rounded degrees); such rows are renormalised."""
SINGLE_TOLERANCE = 1e-4
"""The same for tensors in single precision."""


@dataclass(frozen=True)
class Border:
    """How an answer leaves: the container it is wrapped in, its index and its column names."""

    label_names: list[str]
    frame: Any = None
    tensor: Any = None
    rows: Any = None
    """The dask array whose blocks of rows the answer shares."""

    def wrap(self, D: Any) -> Any:
        """D (n, q) as the kind of container that came in."""
        if self.tensor is not None:
            return _as_tensor(D, like=self.tensor)
        if self.rows is not None:
            return spread(D, self.rows)
        D = _as_numpy(D)
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
    labels: np.ndarray
    border: Border


def check_training(estimator: BaseEstimator, X: Any, Y: Any, *, accept_sparse: bool = False) -> Training:
    """Check features and labels for an enhancer's fit.

    Y is logical, (n, q) in {0, 1} with at least one 1 a row; or a confidence matrix, rows on the simplex; or one class
    a row, (n,), which is read as scikit-learn reads it and one-hot encoded.
    """
    if is_dask_array(X) or is_dask_array(Y):
        from contone import validation_dask

        return validation_dask.check_training(estimator, X, Y)
    X_checked = check_features(estimator, X, reset=True, accept_sparse=accept_sparse)
    labels, border = _open_labels(Y, name="Y", estimator=estimator)
    _same_rows(X_checked, labels, "Y")
    _check_logical(labels, border.label_names)
    return Training(X_checked, _beside(X_checked, labels), border)


def check_learning(estimator: BaseEstimator, X: Any, D: Any, *, accept_sparse: bool = False) -> Training:
    """Check features and label distributions for a learner's fit; a 1-D D holds one class a row."""
    X_checked = check_features(estimator, X, reset=True, accept_sparse=accept_sparse)
    D_array, border = _open_labels(D, name="D", estimator=estimator)
    _same_rows(X_checked, D_array, "D")
    return Training(X_checked, _read_only(check_distributions(D_array, name="D")), border)


def check_supervision(estimator: BaseEstimator, X: Any, F: Any) -> Training:
    """Check features and any real-valued targets F (n, q), or one class a row, (n,), for a supervised transformer."""
    if is_dask_array(X) or is_dask_array(F):
        from contone import validation_dask

        return validation_dask.check_training(estimator, X, F, logical=False)
    X_checked = check_features(estimator, X, reset=True)
    F_array, border = _open_labels(F, name="Y", estimator=estimator)
    _same_rows(X_checked, F_array, "Y")
    return Training(X_checked, _beside(X_checked, F_array), border)


def check_truth(estimator: BaseEstimator, D: Any, label_names: Sequence[str]) -> np.ndarray:
    """The distributions (m, q) that a fitted learner is scored against; a 1-D D holds one of its classes a row."""
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


def check_new_labels(estimator: BaseEstimator, X: Any, Y: Any, label_names: Sequence[str]) -> np.ndarray:
    """Labels (m, q) of new rows X for a fitted enhancer, as in `check_training`."""
    labels, border = _open_labels(Y, name="Y", estimator=estimator)
    _same_rows(X, labels, "Y")
    if labels.shape[1] != len(label_names):
        raise ShapeError(f"Y has {labels.shape[1]} labels; the enhancer was fitted with {len(label_names)}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # a few new rows may well share a label
        _check_logical(labels, border.label_names)
    return _beside(X, labels)


def check_features(
    estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: bool = False
) -> np.ndarray | sp.csr_array:
    """X as a finite float64 matrix; on `reset` the feature names and count are remembered on the estimator.

    A torch tensor stays one, in its precision and on its device, for an estimator whose `array_api` is true.
    """
    if is_dask_array(X):
        from contone import validation_dask

        if reset:
            validation_dask.check_supported(estimator)
        return validation_dask.check_features(estimator, X)
    if is_torch_array(X):
        if getattr(estimator, "array_api", False):
            return _check_tensor(estimator, X, reset=reset)
        X = _as_numpy(X)
    _check_columns(X, "X")
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
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
    D = np.asarray(_to_numpy(D, name), dtype=np.float64)
    if D.ndim != 2 or D.size == 0:
        raise ShapeError(
            f"{name} must be a non-empty matrix with one row an instance and one column a label; "
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
    tensor, rows = (container if test(container) else None for test in (is_torch_array, is_dask_array))
    return Border(list(label_names), _frame(container), tensor, rows)


# ---------------------------------------------------------------------------------------------------------- labels


def _open_labels(Y: Any, *, name: str, estimator: BaseEstimator) -> tuple[Any, Border]:
    """Y as a float64 matrix (n, q), or a floating tensor for an estimator that takes them, and its way out."""
    if Y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            f"Pass the labels {name}: one row an instance, one column a label."
        )
    _check_columns(Y, name)
    frame, tensor = _frame(Y), Y if is_torch_array(Y) else None
    if tensor is not None and tensor.ndim == 2 and tensor.shape[1] and getattr(estimator, "array_api", False):
        labels = _floating(tensor, name)
        if not bool(labels.isfinite().all()):
            raise _missing_label(name, _first(~_as_numpy(labels.isfinite().all(dim=1))))
        return labels, Border(_default_names(labels.shape[1]), None, tensor)
    array = _to_numpy(Y, name)
    if array.ndim == 1:
        labels, classes = _one_hot(array, name)
        return labels, Border(classes, frame, tensor)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ShapeError(
            f"{name} must be a matrix, one row an instance and one column a label; it has shape {array.shape}."
        )
    if array.dtype.kind not in "buif":
        raise InputTypeError(
            f"{name} must hold numbers (0 and 1, or bool); it holds {array.dtype}. "
            "Turn text labels into one column a label first, e.g. with sklearn.preprocessing.MultiLabelBinarizer."
        )
    labels = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(labels).all():
        raise _missing_label(name, _first(~np.isfinite(labels).all(axis=1)))
    names = [str(c) for c in frame.columns] if frame is not None else _default_names(labels.shape[1])
    return labels, Border(names, frame, tensor)


def _missing_label(name: str, row: int) -> LabelError:
    return LabelError(f"{name} has a missing (NaN) or infinite entry in row {row}: say 0 or 1 for every label.")


def _one_hot(y: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """One class a row, as scikit-learn writes single-label targets, becomes one column a class."""
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        bad = _first(~np.isfinite(y) | (y != np.round(y)))
        raise LabelError(
            f"{name} is one-dimensional, so it must hold one class a row; entry {bad} is {y[bad]!r}. Input contains "
            f"NaN or numbers that are no class. Pass a matrix with one column a label for multi-label data."
        )
    if y.dtype.kind == "c" or y.size == 0:
        raise LabelError(f"{name} must hold one class a row; it has dtype {y.dtype} and shape {y.shape}.")
    try:
        classes, position = np.unique(y, return_inverse=True)
    except TypeError as error:  # None or NaN among text, or text among numbers: there is no order to put them in
        raise InputTypeError(
            f"{name} must hold one class a row, all of one kind; it mixes kinds ({error}). "
            "Drop rows without a class, and write all classes as text or all as numbers."
        ) from error
    labels = np.zeros((y.size, classes.size))
    labels[np.arange(y.size), position] = 1.0
    return labels, [str(c) for c in classes]


def _check_logical(labels: Any, names: Sequence[str]) -> None:
    """Refuse what is neither logical labels nor confidences; warn of columns that say nothing."""
    tolerance = SIMPLEX_TOLERANCE
    if is_torch_array(labels):
        if labels.element_size() < 8:
            tolerance = SINGLE_TOLERANCE
        if _says_nothing_odd(labels, tolerance):
            return
        labels = _as_numpy(labels)  # to say what is wrong, and where
    logical = (labels == 0) | (labels == 1)
    if logical.all():
        empty = ~labels.any(axis=1)
        if empty.any():
            raise LabelError(
                f"Y has rows without any label ({int(empty.sum())} of {len(labels)}, first row {_first(empty)}): "
                "every row needs at least one 1. Drop these rows, or give them their labels."
            )
    elif (labels < 0).any() or (np.abs(labels.sum(axis=1) - 1.0) > tolerance).any():
        total = labels.sum(axis=1)
        bad = (labels < 0).any(axis=1) | (np.abs(total - 1.0) > tolerance)
        neither = bad & ~logical.all(axis=1)  # among rows of 0 and 1, name the one that is different
        row = _first(neither if neither.any() else bad)
        odd = np.flatnonzero(~logical[row])
        found = f"label {names[odd[0]]!r} is {labels[row, odd[0]]:g}" if odd.size else f"the sum is {total[row]:g}"
        raise LabelError(
            f"Y must hold 0 and 1 only (or confidences: rows that are not negative and sum to 1); in row {row}, "
            f"{found}. Turn the labels into 0 and 1, or divide each row of confidences by its sum."
        )
    constant = (labels == labels[0]).all(axis=0) & logical.all(axis=0)
    if constant.any():
        shown = ", ".join(f"{names[j]!r} (always {labels[0, j]:g})" for j in np.flatnonzero(constant)[:5])
        warn(
            f"{int(constant.sum())} of {labels.shape[1]} labels are the same in every row, so the data cannot say how "
            f"they vary: {shown}. Consider dropping them.",
            LabelWarning,
        )


def _says_nothing_odd(labels: Any, tolerance: float) -> bool:
    """Whether a tensor of labels passes every test of `_check_logical`, found out where it lies."""
    logical = (labels == 0) | (labels == 1)
    if bool(logical.all()):
        valid = labels.any(dim=1).all()
    else:
        valid = (labels >= 0).all() & ((labels.sum(dim=1) - 1.0).abs() <= tolerance).all()
    constant = ((labels == labels[0]).all(dim=0) & logical.all(dim=0)).any()
    return bool(valid & ~constant)


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
        return _as_numpy(container)
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


def _check_tensor(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A torch matrix, checked where it lies: nothing but a yes or no leaves its device."""
    if X.ndim != 2 or 0 in X.shape:
        raise ShapeError(f"X must be a non-empty matrix, one row an instance; it has shape {tuple(X.shape)}.")
    if reset and X.shape[0] < 2:
        raise FeatureError("X has one row: nothing can be learnt from one row; pass more rows.")
    X = _floating(X, "X")
    if not bool(X.isfinite().all()):
        raise FeatureError("X contains NaN or infinity: impute or drop such rows.")
    try:
        _check_n_features(estimator, X, reset=reset)
    except ValueError as error:
        raise FeatureError(str(error)) from error
    return X


def _floating(A: Any, name: str) -> Any:
    """A tensor in float32 or float64: as it is, or, where it holds other numbers, in float64."""
    import torch

    if A.is_complex():
        raise InputTypeError(f"{name} is complex: pass real numbers.")
    A = A.detach()
    if A.layout != torch.strided:
        A = A.to_dense()
    return A if A.dtype in (torch.float32, torch.float64) else A.to(torch.float64)


def _beside(X: Any, labels: Any) -> Any:
    """Labels as the method wants them: a tensor beside a tensor X, else a read-only array."""
    if is_torch_array(X):
        return _as_tensor(labels, like=X)
    return _read_only(np.asarray(_as_numpy(labels), dtype=np.float64))


def _as_tensor(A: Any, *, like: Any) -> Any:
    """A on the device of the tensor `like`, and in its precision if that is a floating one."""
    import torch

    return torch.as_tensor(A, device=like.device, dtype=like.dtype if like.is_floating_point() else None)


def _as_numpy(A: Any) -> np.ndarray:
    return A.detach().cpu().numpy() if is_torch_array(A) else A


def _same_rows(X: Any, labels: np.ndarray, name: str) -> None:
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


def _default_names(q: int) -> list[str]:
    return [f"label_{j}" for j in range(q)]


def _first(condition: Any) -> int:
    return int(np.flatnonzero(condition)[0])


def _read_only(A: Any) -> Any:
    """The same array behind a view that cannot be written to: the caller's data is never changed."""
    if isinstance(A, np.ndarray):
        A = A.view()
        A.flags.writeable = False
    return A

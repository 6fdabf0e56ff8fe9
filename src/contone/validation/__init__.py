"""The only place where data is checked. A public call checks once; steps inside a method call each other's hooks.

`check_training` and its siblings open what came in (`containers`), have the backend examine it where it lies, and
refuse what cannot be used, with an error that says what to do (`judgement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_dask_array, is_torch_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from contone.backends import Findings, get_backend
from contone.backends.examination import silent_rows
from contone.exceptions import FeatureError, InputTypeError, LabelError, MissingExtraError, ShapeError
from contone.runtime import memory
from contone.typing import Array
from contone.validation.containers import (
    Border,
    check_columns,
    default_names,
    first_row,
    index_of,
    open_border,
    open_labels,
    place_beside,
    read_array,
    read_only,
    refuse_odd_arrays,
    refuse_other_index,
)
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees, check_degrees, check_degrees_of_items
from contone.validation.groups import Grouping, check_groups
from contone.validation.judgement import (
    SIMPLEX_TOLERANCE,
    able_methods,
    judge_features,
    judge_finite,
    judge_labels,
    refuse_beyond_squares,
    tolerance_of,
)

__all__ = [
    "NOTHING_KNOWN",
    "SIMPLEX_TOLERANCE",
    "Border",
    "Grouping",
    "KnownDegrees",
    "Training",
    "able_methods",
    "check_degrees",
    "check_degrees_of_items",
    "check_distributions",
    "check_features",
    "check_groups",
    "check_learning",
    "check_new_labels",
    "check_new_rows",
    "check_pair",
    "check_shares",
    "check_supervision",
    "check_training",
    "check_truth",
    "examine_training",
    "index_of",
    "open_border",
    "refuse_beyond_squares",
    "refuse_other_index",
    "silent_rows",
]


class Training(NamedTuple):
    """Checked input of a fit: X (n, d), labels (n, q), and the way out."""

    X: Any
    labels: Any
    border: Border


def check_training(estimator: BaseEstimator, X: Any, Y: Any) -> Training:
    """Check features and labels for an enhancer's fit.

    Y is logical, (n, q) in {0, 1}, NaN for an entry that nobody asked about, where the estimator takes it; or a
    confidence matrix, rows on the simplex; or one class per row, (n,), which is read as scikit-learn reads it and
    one-hot encoded; or whole numbers, for an estimator that takes levels.
    """
    return examine_training(estimator, X, Y)[0]


def examine_training(estimator: BaseEstimator, X: Any, Y: Any) -> tuple[Training, Findings]:
    """The same with what was found: rows without any label are left to the caller."""
    X_checked, labels, border = check_supervision(estimator, X, Y, examine=False)
    tolerance = tolerance_of(labels)
    found = get_backend(labels).examine(_unexamined(X_checked), labels, tolerance)
    judge_features(found)
    judge_labels(found, border.label_names, levels=_takes_levels(estimator), kinds=_kinds(estimator))
    return Training(X_checked, labels, border), found


def check_supervision(estimator: BaseEstimator, X: Any, Y: Any, *, examine: bool = True) -> Training:
    """Check features and any finite targets Y (n, q), or one class per row, (n,), for a supervised estimator.

    Without `examine`, whether the entries of dask arrays and of labels are finite is left to the caller.
    """
    if Y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Pass the labels Y: one row per instance, one column per label."
        )
    refuse_other_index(X, Y)
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
        labels, border = open_labels(Y, name="Y", estimator=estimator)
        _same_rows(X_checked, labels, "Y")
        labels = place_beside(X_checked, labels)
    if examine:
        found = get_backend(labels).examine(_unexamined(X_checked), labels, SIMPLEX_TOLERANCE)
        judge_features(found)
        judge_finite(found)
    return Training(X_checked, labels, border)


def check_learning(estimator: BaseEstimator, X: Any, D: Any) -> Training:
    """Check features and label distributions for a learner's fit; a 1-D D holds one class per row."""
    refuse_other_index(X, D, "D")
    X_checked = check_features(estimator, X, reset=True)
    D_array, border = open_labels(D, name="D", estimator=estimator)
    _same_rows(X_checked, D_array, "D")
    return Training(X_checked, read_only(check_distributions(D_array, name="D")), border)


def check_truth(estimator: BaseEstimator, D: Any, label_names: Sequence[str]) -> Array:
    """The distributions (m, q) that a fitted learner is scored against; a 1-D D holds one of its classes per row."""
    labels, border = open_labels(D, name="D", estimator=estimator)
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
        takes = {"levels": _takes_levels(estimator), "unasked": "unasked" in _kinds(estimator)}
        labels = checks.refuse_labels_later(Y_lazy, SIMPLEX_TOLERANCE, **takes)
        return Training(checks.refuse_later(X_lazy), labels, Border(list(label_names), model=X_lazy))
    refuse_other_index(X, Y)
    X_checked = check_features(estimator, X, reset=False)
    labels = check_new_labels(estimator, X_checked, Y, label_names)
    return Training(X_checked, labels, open_border(Y, label_names))


def check_new_labels(estimator: Any, X: Any, Y: Any, label_names: Sequence[str]) -> Any:
    """Labels (m, q) of new rows X, checked against the names of the labels; see `check_new_rows`."""
    labels, border = open_labels(Y, name="Y", estimator=estimator)
    _same_rows(X, labels, "Y")
    _same_labels(labels, label_names)
    labels = place_beside(X, labels)
    found = get_backend(labels).examine(None, labels, tolerance_of(labels))
    judge_labels(found, border.label_names, constant=False, levels=_takes_levels(estimator), kinds=_kinds(estimator))
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
    kinds: frozenset[str] = getattr(estimator, "kinds", frozenset())
    if is_torch_array(X):
        X = get_backend(X).check_matrix(X, "X")
        if "torch" in kinds:
            if reset and X.shape[0] < 2:
                raise FeatureError("X has one row: nothing can be learnt from one row; pass more rows.")
            if X.shape[0] == 0:
                raise FeatureError("X is empty: it has 0 sample(s).")
            judge_features(get_backend(X).examine(X, None, 0.0))
            _count_features(estimator, X, reset=reset)
            return X
        X = get_backend(X).to_numpy(X)
    check_columns(X, "X")
    refuse_odd_arrays(X, "X")
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
            size = memory.shown(8.0 * X.shape[0] * X.shape[1])
            raise InputTypeError(
                f"{error} {type(estimator).__name__} needs dense features: pass X.toarray(), which takes {size} ("
                f"{memory.shown(memory.available_bytes())} are available); make fewer features of them first, e.g. "
                "with sklearn.decomposition.TruncatedSVD; or use Inversion, which takes sparse features as they are."
            ) from error
        raise InputTypeError(f"{error} X must hold numbers only.") from error
    except ValueError as error:
        raise FeatureError(f"{error}{_advice(str(error))}") from error
    return read_only(checked)


def check_distributions(D: Any, *, name: str = "D") -> Array:
    """D as a float64 matrix with rows on the simplex; rounding is repaired, anything worse is refused."""
    D = _check_not_negative(D, name)
    total = D.sum(axis=1)
    off = np.abs(total - 1.0) > SIMPLEX_TOLERANCE
    if off.any():
        row = first_row(off)
        raise LabelError(
            f"{name} must have rows that sum to 1; row {row} sums to {total[row]:.6g} ({int(off.sum())} such rows). "
            "Divide each row by its sum if the entries are meant as degrees."
        )
    return D / total[:, None]


def check_shares(counts: Any, *, name: str = "D") -> Array:
    """Counts (or weights) of each label as shares of their row; NaN in a row without any."""
    found = _check_not_negative(counts, name)
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0)


def _check_not_negative(D: Any, name: str) -> Array:
    refuse_odd_arrays(D, name)
    D = np.asarray(read_array(D, name), dtype=np.float64)
    if D.ndim != 2 or D.size == 0:
        raise ShapeError(
            f"{name} must be a non-empty matrix with one row per instance and one column per label; "
            f"it has shape {D.shape}."
        )
    if not np.isfinite(D).all():
        raise LabelError(f"{name} has NaN or infinite entries in row {first_row(~np.isfinite(D).all(axis=1))}.")
    if (D < 0).any():
        row = first_row((D < 0).any(axis=1))
        raise LabelError(f"{name} has a negative degree in row {row}: a label distribution is not negative.")
    return D


def check_pair(D: Any, D_hat: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two label distributions of one shape."""
    truth, answer = check_distributions(D, name="D"), check_distributions(D_hat, name="D_hat")
    if truth.shape != answer.shape:
        raise ShapeError(f"D and D_hat must have the same shape; they have {truth.shape} and {answer.shape}.")
    return truth, answer


def _unexamined(X: Array) -> Array | None:
    """X where nobody has looked into it yet: lazy arrays."""
    return X if is_dask_array(X) else None


def _align_lazily(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both as lazy float64 matrices with the same blocks of rows."""
    try:
        from contone.backends.dask import checks
    except ImportError as error:  # an array of dask's without dask itself
        raise MissingExtraError("dask.array cannot be imported: pip install 'contone[scale]'.") from error
    X, Y = checks.align(X, Y)
    return X.astype(np.float64), Y.astype(np.float64)


def _count_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Remember the number of features on `reset`, refuse another one later."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        raise FeatureError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input.")


def _kinds(estimator: Any) -> frozenset[str]:
    return getattr(estimator, "kinds", frozenset())


def _takes_levels(estimator: Any) -> bool:
    """Whether the labels of an enhancer may be whole numbers, of which the order within a row counts."""
    takes = getattr(estimator, "takes_levels", None)
    return takes is not None and bool(takes())


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

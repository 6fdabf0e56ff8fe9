"""Label distributions that were handed in: of a learner's fit, of a truth to score against, of two to compare."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from contone.exceptions import LabelError, ShapeError
from contone.typing import Array, Data
from contone.validation import containers
from contone.validation.training import SIMPLEX_TOLERANCE, Training, check_features, same_rows


def check_learning(estimator: BaseEstimator, X: Data, D: Data) -> Training:
    """Check features and label distributions for a learner's fit; a 1-D D holds one class per row."""
    containers.refuse_other_index(X, D, "D")
    X_checked = check_features(estimator, X, reset=True)
    D_array, border = containers.open_labels(D, name="D", estimator=estimator)
    same_rows(X_checked, D_array, "D")
    return Training(X_checked, containers.read_only(check_distributions(D_array, name="D")), border)


def check_truth(estimator: BaseEstimator, D: Data, label_names: Sequence[str]) -> Array:
    """The distributions (m, q) that a fitted learner is scored against; a 1-D D holds one of its classes per row."""
    labels, border = containers.open_labels(D, name="D", estimator=estimator)
    if np.ndim(D) == 1:
        unknown = sorted(set(border.label_names) - set(label_names))
        if unknown:
            raise LabelError(f"D has classes that were not in the fit: {', '.join(unknown[:5])}.")
        position = {name: j for j, name in enumerate(border.label_names)}
        absent = np.zeros(len(labels))
        labels = np.stack([labels[:, position[n]] if n in position else absent for n in label_names], axis=1)
    elif labels.shape[1] != len(label_names):
        raise ShapeError(f"D has {labels.shape[1]} labels; the learner was fitted with {len(label_names)}.")
    return check_distributions(labels, name="D")


def check_distributions(D: Data, *, name: str = "D") -> Array:
    """D as a float64 matrix with rows on the simplex; rounding is repaired, anything worse is refused."""
    D = _check_not_negative(D, name)
    total = D.sum(axis=1)
    off = np.abs(total - 1.0) > SIMPLEX_TOLERANCE
    if off.any():
        row = containers.first_row(off)
        raise LabelError(
            f"{name} must have rows that sum to 1; row {row} sums to {total[row]:.6g} ({int(off.sum())} such rows). "
            "Divide each row by its sum if the entries are meant as degrees."
        )
    return D / total[:, None]


def check_shares(counts: Data, *, name: str = "D") -> Array:
    """Counts (or weights) of each label as shares of their row; NaN in a row without any."""
    found = _check_not_negative(counts, name)
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0)


def _check_not_negative(D: Data, name: str) -> Array:
    containers.refuse_odd_arrays(D, name)
    D = containers.read_numbers(D, name)
    if D.ndim != 2 or D.size == 0:
        raise ShapeError(f"{name} must be a non-empty matrix, a row per instance, a column per label; got {D.shape}.")
    finite = np.isfinite(D).all(axis=1)
    if not finite.all():
        raise LabelError(f"{name} has NaN or infinite entries in row {containers.first_row(~finite)}.")
    if (D < 0).any():
        row = containers.first_row((D < 0).any(axis=1))
        raise LabelError(f"{name} has a negative degree in row {row}: a label distribution is not negative.")
    return D


def check_pair(D: Data, D_hat: Data) -> tuple[np.ndarray, np.ndarray]:
    """Two label distributions of one shape."""
    truth, answer = check_distributions(D, name="D"), check_distributions(D_hat, name="D_hat")
    if truth.shape != answer.shape:
        raise ShapeError(f"D and D_hat must have the same shape; they have {truth.shape} and {answer.shape}.")
    return truth, answer

"""Degrees as weights: rows copied once per label, for classifiers that take one class per row and `sample_weight`.

A classifier that minimises sum_i loss(x_i, y_i), y_i one class, learns from degrees d_i through

    min  sum_i sum_j d_ij loss(x_i, j),

which needs no new code: every row becomes one copy per label, of class j and weight d_ij.
"""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from contone.exceptions import ArgumentError, InputTypeError, ShapeError
from contone.numerics.simplex import normalise_rows, shared_out
from contone.typing import Data
from contone.validation.containers import as_frame, check_column_names
from contone.validation.distributions import check_distributions


class WeightedRows(NamedTuple):
    """Copies of rows for ``fit(X, y, sample_weight=sample_weight)``."""

    X: Data
    """Features (m, d) of the copies, in the kind of container they came in."""
    y: np.ndarray
    """Classes (m,): numbers of the labels, or their names where D is a frame."""
    sample_weight: np.ndarray
    """Weights (m,); those of one row sum to 1."""
    row: np.ndarray
    """Which row each copy is of (m,): the groups for a split that keeps copies of one row together."""

    @property
    def copies_per_row(self) -> float:
        """Mean number of copies of a row: multiply by it what a classifier counts in rows (`min_samples_leaf`)."""
        return len(self.row) / max(len(np.unique(self.row)), 1)


def weighted_rows(X: Data, D: Data, *, min_degree: float = 0.0) -> WeightedRows:
    """Rows copied once per label, with their degrees as weights, for any classifier that takes `sample_weight`.

    `FromClassifier` does this inside; use the function where you call `fit` yourself. For the log loss, the minimum
    over all functions is p(x) = E[d | x], as with soft targets. What a classifier counts in rows, such as the least
    number in a leaf, counts copies here: multiply it by `copies_per_row`. (`FromClassifier` does.)

    Parameters
    ----------
    X : (n, d)
        Features: an array, a sparse matrix, a frame or a list.
    D : (n, q)
        Degrees, rows on the simplex: an array or a frame.
    min_degree : float, default=0.0
        Smaller degrees make no copy; the others of the row are divided by their sum. Fewer copies where there are
        many labels.

    Returns
    -------
    WeightedRows
        `X` (m, d), `y` (m,), `sample_weight` (m,) and `row` (m,), in the order of the rows, and `copies_per_row`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> copies = weighted_rows([[-1.0], [0.0], [1.0]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    >>> copies.sample_weight.tolist()
    [0.9, 0.1, 0.5, 0.5, 0.1, 0.9]
    >>> model = GaussianNB().fit(copies.X, copies.y, sample_weight=copies.sample_weight)
    >>> model.predict_proba([[0.5]]).round(2).tolist()
    [[0.2, 0.8]]
    """
    if not isinstance(min_degree, Real) or not 0 <= min_degree < 1:
        raise ArgumentError(f"weighted_rows: min_degree must be from 0 to below 1; got {min_degree!r}.", "min_degree")
    checked = np.asarray(check_distributions(D))
    if not (getattr(X, "shape", ()) or isinstance(X, Sequence)) or isinstance(X, str):
        raise InputTypeError(f"weighted_rows: X must have rows, as a table or a list has; got {type(X).__name__}.")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(checked):
        raise ShapeError(f"weighted_rows: X has {n} rows and D has {len(checked)}. Pass the same rows in both.")
    check_column_names(X, "weighted_rows: X")
    if "sparse" in str(getattr(X, "layout", "")):
        raise InputTypeError("weighted_rows: X is a sparse tensor, whose rows cannot be picked: pass X.to_dense().")
    row, label, weight = copies_by_weight(checked, float(min_degree))
    names = getattr(D, "columns", None)
    return WeightedRows(_copied(X, row), label if names is None else np.asarray(names)[label], weight, row)


def _copied(X: Data, row: np.ndarray) -> Data:
    """Rows of X, some of them several times, in the kind of container it came in."""
    frame = as_frame(X)
    if frame is not None:
        return nw.to_native(frame[row])
    if hasattr(X, "tocsr") and not hasattr(X, "__getitem__"):  # a sparse format without rows to pick
        X = X.tocsr()
    return X[row] if hasattr(X, "shape") else np.asarray(X)[row]


def copies_by_weight(D: np.ndarray, min_degree: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, label and weight of every copy, (m,) each: one per degree of D (n, q) that is positive and not too small.

    The weights of a row sum to 1. A row whose degrees are all too small keeps its largest.
    """
    kept = (D > 0) & (np.minimum(min_degree, D.max(axis=1, keepdims=True)) <= D)
    row, label = np.nonzero(kept)
    return row, label, normalise_rows(np.where(kept, D, 0.0))[row, label]


def copies_by_count(D: np.ndarray, n_copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and label of every copy, (n * n_copies,) each: whole numbers nearest to n_copies D, by largest remainders."""
    n, q = D.shape
    row, label = np.divmod(np.repeat(np.arange(n * q), shared_out(D, n_copies).astype(int).ravel()), q)
    return row, label

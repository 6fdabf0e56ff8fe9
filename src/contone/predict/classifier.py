"""A classifier of any kind as a label distribution learner.

A classifier that minimises sum_i loss(x_i, y_i), y_i one class, learns from degrees d_i through

    min  sum_i sum_j d_ij loss(x_i, j),

which needs no new code: every row becomes one copy per label, of class j and weight d_ij. For the log loss, whose
minimum over all functions is p(x) = E[d | x], that is maximum likelihood for soft labels. A classifier without weights
gets a fixed number of copies per row instead, divided among the labels in the proportions of d_i.

Reference: X. Geng. Label Distribution Learning. IEEE TKDE 28(7), 2016 ("problem transformation", there by drawing).
"""

from contextlib import nullcontext
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from contone.base import COUNT, DistributionLearner, HasMethods, Interval, estimator, parameter
from contone.exceptions import InputError, MemoryEstimateError
from contone.numerics.simplex import normalise_rows
from contone.numerics.solution import Solution
from contone.predict.copies import copies_by_count, copies_by_weight
from contone.predict.inner import named_errors
from contone.runtime import machine
from contone.runtime.machine import one_blas_thread
from contone.typing import Array, EstimatorLike

COUNTS_ROWS = {
    "min_samples_leaf": 1,
    "min_samples_split": 2,
    "min_child_samples": 1,
    "min_data_in_leaf": 1,
    "n_neighbors": 0,
}
"""Parameters of classifiers that count rows, and the number that asks for nothing: copies of one row stay together, so
that one copy in a leaf is one row."""


@estimator
class FromClassifier(DistributionLearner):
    """A scikit-learn classifier that learns label distributions; `predict` is its `predict_proba`.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Anything with ``fit(X, y)`` and ``predict_proba(X)``; None is logistic regression on z-scores. It is cloned.
        Wrap a classifier without probabilities in `sklearn.calibration.CalibratedClassifierCV`.
    targets : {"auto", "weights", "counts", "native"}, default="auto"
        How degrees reach the classifier. "weights": one copy of a row per label with a positive degree, and the degree
        as `sample_weight`. "counts": `n_copies` copies of a row, divided among the labels by largest remainders, for
        classifiers without `sample_weight`. "native": ``fit(X, D)``, for classifiers that take probabilities as
        targets. "auto": "native" where the classifier says ``accepts_soft_targets = True``, "weights" where its `fit`
        has `sample_weight` (in a pipeline, that of the last step), else "counts".
    n_copies : int, default=10
        Copies of a row with "counts": degrees are rounded to multiples of 1 / n_copies.
    min_degree : float, default=0.0
        With "weights", smaller degrees make no copy; the others of the row are divided by their sum. Fewer copies
        where there are many labels.
    floor : float, default=1e-4
        The least degree of a prediction, before rows are renormalised. It keeps the KL of an unexpected label finite:
        trees and neighbours give probabilities of 0.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone; None where one label has all the mass, and there is nothing to learn.

    Notes
    -----
    Search parameters around this learner, not inside it: copies of one row would be on both sides of an inner split.
    What a classifier counts in rows (`min_samples_leaf`, `min_samples_split`, `min_child_samples`, `min_data_in_leaf`,
    `n_neighbors`, as whole numbers) means rows here too: it is multiplied by the mean number of copies per row.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, D = [[-1.0], [0.0], [1.0]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> FromClassifier(GaussianNB()).fit(X, D).predict([[0.0], [0.5]]).round(2).tolist()
    [[0.5, 0.5], [0.2, 0.8]]
    """

    reference = "Geng, Label Distribution Learning, IEEE TKDE 28(7), 2016"
    estimator: EstimatorLike = parameter(None, HasMethods(["fit", "predict_proba"]), default=None, kw_only=False)
    targets: str = parameter({"auto", "weights", "counts", "native"}, default="auto")
    n_copies: int = parameter(COUNT, default=10)
    min_degree: float = parameter(Interval(Real, 0, 1, closed="left"), default=0.0)
    floor: float = parameter(Interval(Real, 0, 1, closed="left"), default=1e-4)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        self._mass = D.sum(axis=0)
        if np.count_nonzero(self._mass) == 1:  # classifiers refuse a single class
            self.estimator_ = None
            return Solution(None)
        default = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        estimator: EstimatorLike = default if self.estimator is None else clone(self.estimator)
        weight_name = weight_parameter(estimator)
        self.targets_ = self._choice(estimator, weight_name)
        if self.targets_ == "native":
            with named_errors(self, estimator):
                self.estimator_ = estimator.fit(X, D)
            return Solution(self.estimator_)
        if self.targets_ == "counts":
            (row, label), weights = copies_by_count(D, self.n_copies), {}
        else:
            row, label, weight = copies_by_weight(D, self.min_degree)
            weights = {str(weight_name): weight}
        self._check_copies(len(row), X)
        if counts := counts_of_copies(estimator, len(row) / len(X)):
            estimator.set_params(**counts)
        # Some classifiers want their classes to be 0, 1, 2, ... without gaps, where a label may have no mass.
        self._present, code = np.unique(label, return_inverse=True)
        if len(self._present) == 1:  # small degrees were left out
            self.estimator_ = None
            return Solution(None)
        # The default makes products whose inner dimension is the number of rows: BLAS's threads wait in them.
        with named_errors(self, estimator), one_blas_thread() if self.estimator is None else nullcontext():
            self.estimator_ = estimator.fit(X[row], code, **weights)
        return Solution(self.estimator_, info={"copies": len(row)})

    def _choice(self, estimator: EstimatorLike, weight_name: str | None) -> str:
        """How degrees reach this classifier."""
        if self.targets == "weights" and weight_name is None:
            raise InputError(f'{type(estimator).__name__}.fit takes no sample_weight: use targets="counts".')
        if self.targets != "auto":
            return self.targets
        if getattr(estimator, "accepts_soft_targets", False):
            return "native"
        return "counts" if weight_name is None else "weights"

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        return 0.0  # what counts are the copies, whose number is known later (`_check_copies`)

    def _check_copies(self, n_copies: int, X: np.ndarray) -> None:
        """Refuse, before any work, copies that would not fit into memory."""
        needed, available = 8.0 * n_copies * (X.shape[1] + 3), machine.available_bytes()
        if needed > available:
            raise MemoryEstimateError(
                f"FromClassifier would make {n_copies:,} copies of {len(X):,} rows, about {machine.shown(needed)}; "
                f"{machine.shown(available)} are available. Raise min_degree, use fewer copies (n_copies), or fit on a "
                f"sample of the rows. If the estimate is wrong, set {machine.LIMIT_VARIABLE}."
            )

    def _predict(self, X: np.ndarray) -> Array:
        q = len(self._mass)
        P = np.zeros((len(X), q))
        if self.estimator_ is None:
            P[:, np.argmax(self._mass)] = 1.0
        elif self.targets_ == "native":
            P = np.asarray(self.estimator_.predict_proba(X), dtype=float).reshape(len(X), q)
        else:
            known = self._present[np.asarray(self.estimator_.classes_, dtype=int)]
            P[:, known] = self.estimator_.predict_proba(X)
        return normalise_rows(np.maximum(P, self.floor if q > 1 else 0.0))


def weight_parameter(estimator: EstimatorLike) -> str | None:
    """How `fit` calls the weights of the rows; None where it has none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def counts_of_copies(estimator: EstimatorLike, n_copies: float) -> dict[str, int]:
    """Parameters that count rows, at any depth, for a classifier that sees every row `n_copies` times in the mean.

    Without it a leaf of 20 copies may be a single row of 20 labels. Newton steps on such leaves diverge where a degree
    is large and its label rare.
    """
    found = {}
    for name, value in estimator.get_params(deep=True).items():
        least = COUNTS_ROWS.get(name.rpartition("__")[2])
        if least is not None and isinstance(value, Integral) and int(value) > least:
            found[name] = round(least + (int(value) - least) * n_copies)
    return found

"""The contracts: what an enhancer and a label distribution learner are.

The public template (validate, compute, check the answer, store, wrap) is written here once; a method's file holds the
method only, as a hook that maps plain arrays to a `Solution`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace, is_dask_array, is_torch_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from contone.backends.dask.rows import by_rows, gathered, large_graphs
from contone.backends.numpy.neighbours import GOOD_RECALL
from contone.exceptions import AnswerError, ApproximationWarning, InputError, MemoryEstimateError
from contone.numerics.simplex import kl_divergence
from contone.numerics.solution import Solution
from contone.runtime import memory
from contone.runtime.warnings import warn
from contone.validation import (
    check_features,
    check_learning,
    check_new_labels,
    check_training,
    check_truth,
    open_border,
)
from contone.validation_dask import check_new_rows, check_solver_memory


class _Estimator(BaseEstimator):
    """What enhancers and learners share: tags, presets, parameter domains as data."""

    reference: ClassVar[str] = ""
    accept_sparse: ClassVar[bool] = False
    array_api: ClassVar[bool] = False
    """Whether the method computes with torch tensors where they lie; others compute with NumPy and convert back."""
    out_of_core: ClassVar[bool] = False
    """Whether the method fits dask arrays, whose rows need not fit into memory. All predict them."""
    when_short: ClassVar[str] = "raise max_iter or tol"
    """What to do where the method stopped before its end, as the warning says it."""
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """An instance with the documented settings of that name, e.g. ``GLLE.preset("paper")``."""
        if name not in cls.PRESETS:
            known = ", ".join(sorted(cls.PRESETS)) or "none"
            raise InputError(f"{cls.__name__} has no preset {name!r}; it has: {known}.")
        return cls(**{**cls.PRESETS[name], **overrides})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = self.accept_sparse
        return tags


def can_enhance_new_rows(method: Any) -> bool:
    """Whether a method (class or instance) has `enhance`, for rows that it was not fitted on."""
    cls = method if isinstance(method, type) else type(method)
    return cls._enhance is not Enhancer._enhance


class Enhancer(_Estimator, ABC):
    """Recovers label distributions from features and logical labels.

    A method implements `_fit_enhance`. After `fit`:

    Attributes
    ----------
    label_distributions_ : (n, q)
        The recovered distributions, rows on the simplex.
    solution_ : Solution
        What the solver says: objective, residual, n_iter, converged, info.
    label_names_ : list of str
        Names of the q labels.
    """

    baseline: ClassVar[bool] = False

    def fit(self, X: Any, Y: Any) -> Self:
        """Recover the distributions of these rows and keep what `predict` needs.

        Parameters
        ----------
        X : (n, d)
            Features: array, pandas or polars frame (sparse where the method allows it), torch tensor, dask array.
        Y : (n, q) or (n,)
            Logical labels in {0, 1}, at least one 1 a row; or confidences, rows on the simplex; or one class a row.
        """
        self.fit_enhance(X, Y)
        return self

    def fit_enhance(self, X: Any, Y: Any) -> Any:
        """Recover the distributions of these rows and return them in the kind of container that Y came in."""
        self._validate_params()
        X_checked, L, border = check_training(self, X, Y, accept_sparse=self.accept_sparse)
        self.label_names_ = border.label_names
        if isinstance(X_checked, np.ndarray) or is_torch_array(X_checked):
            self._check_memory(X_checked.shape[0], X_checked.shape[1], L.shape[1], memory.available_beside(X_checked))
        elif is_dask_array(X_checked) and hasattr(self, "n_neighbors"):
            check_solver_memory(self, *L.shape)
        with large_graphs(X_checked):
            solution = self._fit_enhance(X_checked, L)
        self.label_distributions_ = _on_simplex(solution.value, L.shape, self)
        self.solution_ = solution
        _warn_if_short(solution, self)
        _warn_if_approximate(solution, self)
        return border.wrap(self.label_distributions_)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        """Estimated memory of a fit beyond X (n, d) and L (n, q); methods that hold more than this override it."""
        k = getattr(self, "n_neighbors", 0)
        return memory.fit_bytes(n, d, q, k if isinstance(k, int) else q + 1)

    def _check_memory(self, n: int, d: int, q: int, available: float | None = None) -> None:
        """Refuse, before any work, what would not fit into memory."""
        needed, available = self._fit_bytes(n, d, q), memory.available_bytes() if available is None else available
        if needed > available:
            raise MemoryEstimateError(
                f"{type(self).__name__} on {n:,} rows with {d} features and {q} labels needs about "
                f"{memory.shown(needed)} of memory; {memory.shown(available)} are available. Use a setting that grows "
                'with n and not with its square (a "knn" graph, an "exact" solver), fit on a sample of the rows and '
                "predict the others, or stream the file: contone enhance --stream. If the estimate is wrong, set "
                f"{memory.LIMIT_VARIABLE}, to a size such as 64GB or to off."
            )

    @available_if(can_enhance_new_rows)
    def enhance(self, X: Any, Y: Any) -> Any:
        """Recover the distributions (m, q) of new rows that have labels, in the kind of container that Y came in.

        Parameters
        ----------
        X : (m, d)
            Features, with the columns of `fit`.
        Y : (m, q)
            Labels, as in `fit`. Methods whose answer depends on the features alone answer as `predict` does.
        """
        check_is_fitted(self)
        if is_dask_array(X) or is_dask_array(Y):
            X_checked, L = check_new_rows(self, X, Y, self.label_names_)
            border = open_border(X_checked, self.label_names_)
        else:
            X_checked = check_features(self, X, reset=False, accept_sparse=self.accept_sparse)
            L = check_new_labels(self, X_checked, Y, self.label_names_)
            border = open_border(Y, self.label_names_)
        answer = self._enhance(X_checked, L)
        return border.wrap(_on_simplex(answer, L.shape, self))

    @abstractmethod
    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        """X (n, d) and L (n, q), checked and read-only, to a `Solution` whose value is D^ (n, q)."""

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> np.ndarray:
        """X (m, d) and L (m, q) of new rows, checked, to D^ (m, q); methods that can tell them override it."""
        raise NotImplementedError


class InductiveMixin:
    """For methods that can tell the distribution of new rows from their features alone."""

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> np.ndarray:
        """The labels of new rows say nothing beyond their features, unless the method knows better."""
        return self._predict(X)

    def predict(self, X: Any) -> Any:
        """Label distributions (m, q) of new rows; a frame in gives a frame out."""
        return _predict(self, X)

    @abstractmethod
    def _predict(self, X: np.ndarray) -> np.ndarray:
        """X (m, d), checked, to D^ (m, q)."""


class DistributionLearner(_Estimator, ABC):
    """Learns the map from features to label distributions: ``fit(X, D)``, then ``predict(X)``.

    The second argument is called y, as scikit-learn passes it to `score` by name; it holds the distributions D.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from features X (n, d) and label distributions y (n, q), or one class a row, (n,)."""
        self._validate_params()
        X_checked, D_checked, border = check_learning(self, X, y, accept_sparse=self.accept_sparse)
        self.label_names_ = border.label_names
        self.solution_ = self._fit(X_checked, D_checked)
        _warn_if_short(self.solution_, self)
        return self

    def predict(self, X: Any) -> Any:
        """Label distributions (m, q) of new rows; a frame in gives a frame out."""
        return _predict(self, X)

    def score(self, X: Any, y: Any) -> float:
        """Minus the mean KL(y || predicted), so that more is better; y as in `fit`."""
        check_is_fitted(self)
        X_checked = check_features(self, X, reset=False, accept_sparse=self.accept_sparse)
        truth = check_truth(self, y, self.label_names_)
        return -float(np.mean(kl_divergence(truth, np.asarray(self._predict(X_checked)))))

    @abstractmethod
    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        """X (n, d) and D (n, q), checked and read-only, to a `Solution` whose value is the fitted parameters."""

    @abstractmethod
    def _predict(self, X: np.ndarray) -> np.ndarray:
        """X (m, d), checked, to D^ (m, q)."""


def _predict(estimator: Any, X: Any) -> Any:
    check_is_fitted(estimator)
    X_checked = check_features(estimator, X, reset=False, accept_sparse=estimator.accept_sparse)
    shape = (X_checked.shape[0], len(estimator.label_names_))
    if is_dask_array(X_checked) and not estimator.out_of_core:
        answer = by_rows(estimator._predict, X_checked, columns=shape[1])
    else:
        answer = estimator._predict(X_checked)
    answer = answer if is_dask_array(X) else gathered(answer)
    return open_border(X, estimator.label_names_).wrap(_on_simplex(answer, shape, estimator))


def _on_simplex(D: Any, shape: tuple[int, ...], estimator: Any) -> Any:
    """The answer, checked on the way out for every method; rounding is repaired, anything worse is a defect."""
    name = type(estimator).__name__
    if D.shape != tuple(shape):
        raise AnswerError(f"{name} gave an answer of shape {D.shape} (expected {tuple(shape)}).")
    return by_rows(partial(_repaired, name=name), D, columns=shape[1])


def _repaired(D: Any, name: str) -> Any:
    xp = array_namespace(D)
    if not bool(xp.all(xp.isfinite(D))):
        raise AnswerError(f"{name} gave an answer with NaN in it.")
    rounding = 1e-6 if D.dtype == xp.float64 else 1e-4
    total = xp.sum(D, axis=1)
    if float(xp.min(D)) < -1e-3 * rounding or float(xp.max(xp.abs(total - 1.0))) > rounding:
        raise AnswerError(
            f"{name} gave rows that are not distributions; this is a defect in the method, please report it."
        )
    D = xp.clip(D, min=0.0)
    return D / xp.sum(D, axis=1, keepdims=True)


def _warn_if_short(solution: Solution, estimator: Any) -> None:
    if not solution.converged:
        warn(
            f"{type(estimator).__name__} stopped after {solution.n_iter} iterations with residual "
            f"{solution.residual:.3g}, above its tolerance; {estimator.when_short}.",
            ConvergenceWarning,
        )


def _warn_if_approximate(solution: Solution, estimator: Any) -> None:
    recall = solution.info.get("neighbours", {}).get("recall", 1.0)
    if recall < GOOD_RECALL:
        warn(
            f"{type(estimator).__name__}: the neighbour search found only {recall:.0%} of the true neighbours (on a "
            "sample). The features are hard to search: reduce them first (e.g. by PCA), or use fewer rows, which are "
            "searched exactly.",
            ApproximationWarning,
        )

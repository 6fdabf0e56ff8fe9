"""The contract of an enhancer, and the template of every call, written once: validate, compute, check, store, wrap.

A method's file holds the method only, as a hook that maps plain arrays to a `Solution`. A public call checks its data
once. A step inside another method is fitted by `fit_checked`, to data that has been checked already.
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self
from warnings import WarningMessage

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from contone.backends import get_backend, like, to_numpy
from contone.base import words
from contone.exceptions import AnswerError, ApproximationWarning, InputError, LabelError, LabelWarning
from contone.numerics.graphs import GOOD_RECALL
from contone.numerics.label_score import label_score
from contone.numerics.solution import Solution
from contone.runtime import machine
from contone.runtime.machine import threads_for
from contone.runtime.progress import LOG
from contone.runtime.warnings import held, issue, warn
from contone.typing import Array, Data, Domains, EstimatorLike, Presets, Record
from contone.validation.containers import Border, open_border
from contone.validation.domains import InvalidParameterError
from contone.validation.training import Training, check_features, check_new_rows, examine_training, silent_rows


class FewWarnings:
    """Around a public fit: what it warns of is said at its end, by `warnings.issue`; fits inside it say nothing."""

    def __enter__(self) -> None:
        self.kept: list[WarningMessage] = []
        self.is_outermost = held.get() is None
        if self.is_outermost:
            held.set(self.kept)

    def __exit__(self, *_: object) -> None:
        if self.is_outermost:
            held.set(None)
            if self.kept:
                issue(self.kept)


class CheckedEstimator(BaseEstimator):
    """An estimator that needs targets, and whose numbers are numbers: in Python True is one, and libraries differ."""

    _parameter_constraints: ClassVar[Domains] = {}
    kinds: ClassVar[frozenset[str]] = frozenset()
    """What a fit computes with, beside dense NumPy arrays, as it comes: "torch" (tensors, where they lie; others are
    converted to NumPy and back), "dask" (rows that need not fit into memory; others fetch them for `fit`, where they
    fit; all of them predict them by blocks), "sparse" (sparse features; others refuse them), "unasked" (labels with
    NaN, an entry that nobody asked about; others refuse them), "unlabelled" (rows without any label, all 0 or all NaN;
    otherwise such rows are left out of the fit and predicted, and refused where the method has no `predict`)."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = "sparse" in self.kinds
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, allowed in self._parameter_constraints.items():
            # The domain of a parameter that scikit-learn does not check is the bare text "no_validation".
            named = {allowed} if isinstance(allowed, str) else {entry for entry in allowed if isinstance(entry, str)}
            if isinstance(getattr(self, name, None), bool) and not named & {"boolean", "verbose", "no_validation"}:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must not be {getattr(self, name)}: give a number."
                )


class Estimator(CheckedEstimator):
    """What enhancers and learners share: tags, presets, and the container that answers leave in."""

    reference: ClassVar[str] = ""
    when_short: ClassVar[str] = "raise max_iter or tol"
    """What to do where the method stopped before its end, as the warning says it."""
    _shares_rows: ClassVar[bool] = False
    """Whether the method shares out rows to threads itself, and leaves one to linear algebra."""
    PRESETS: ClassVar[Presets] = {}
    SEARCH: ClassVar[Domains] = {}
    """What may be worth trying for each parameter, for `contone.Tuned`; a temperature on the answer is added there."""

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """An instance with the documented settings of that name, e.g. ``GLLE.preset("paper")``."""
        if name not in cls.PRESETS:
            known = ", ".join(sorted(cls.PRESETS)) or "none"
            raise InputError(f"{cls.__name__} has no preset {name!r}; it has: {known}.")
        return cls(**{**cls.PRESETS[name], **overrides})

    def set_output(self, *, transform: str | None = None) -> Self:
        """The container of all answers: "pandas" or "polars" frames, or "default", the kind that came in.

        Named as in scikit-learn, whose pipelines call it; None changes nothing.
        """
        if transform not in (None, "default", "pandas", "polars"):
            raise InputError(f'set_output: transform must be "default", "pandas" or "polars"; got {transform!r}.')
        if transform is not None:  # under scikit-learn's own name, because `clone` carries it over
            self._sklearn_output_config = {"transform": transform}
        return self

    def wrapped(self, border: Border, X: Data, D: Array) -> Data:
        """D (n, q) of the rows X on its way out: through the border, or as `set_output` asks."""
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return border.wrap(D) if wanted == "default" else border.as_frame(D, wanted, X)

    def _predict_wrapped(self, X: Data) -> Data:
        """The template of `predict`."""
        check_is_fitted(self)
        D = self._predict_checked(check_features(self, X, reset=False))
        return self.wrapped(open_border(X, self.label_names_), X, D)

    def _predict_checked(self, X: Array) -> Array:
        """Distributions (m, q) of checked features X (m, d), checked themselves."""
        return self._answer(self._predict, X)

    def _answer(self, function: Callable[..., Array], *rows: Array) -> Array:
        """Distributions (m, q) by a function of checked arrays with m rows, lazily where these are lazy; checked."""
        shape, backend = (rows[0].shape[0], len(self.label_names_)), get_backend(rows[0])
        if backend.in_memory or "dask" in self.kinds:
            with threads_for(*rows, shares_rows=self._shares_rows):
                answer = function(*rows)
        else:
            answer = backend.map_rows(function, *rows, columns=shape[1])
        return on_simplex(answer, shape, self)


def can_enhance_new_rows(method: EstimatorLike) -> bool:
    """Whether a method (class or instance) has `enhance`, for rows that it was not fitted on."""
    cls: EstimatorLike = method if isinstance(method, type) else type(method)
    return bool(cls._enhance is not Enhancer._enhance)


class Enhancer(Estimator, ABC):
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
    unlabelled_get: ClassVar[str] = "what their features predict"
    """What rows without any label get, as the warning says it; empty where the method says it itself."""

    def fit(self, X: Data, Y: Data) -> Self:
        """Recover the distributions of these rows and keep what `predict` needs.

        Parameters
        ----------
        X : (n, d)
            Features: array, pandas or polars frame (sparse where the method allows it), torch tensor, dask array.
        Y : (n, q) or (n,)
            Logical labels in {0, 1}, NaN (None, missing) for an entry that nobody asked about, where the method takes
            it; or confidences, rows on the simplex; or one class per row. Rows without any label are left out of the
            fit, with a warning, and get what can be said of them.
        """
        self.fit_enhance(X, Y)
        return self

    def fit_enhance(self, X: Data, Y: Data) -> Data:
        """Recover the distributions of these rows and return them in the kind of container that Y came in."""
        return self._check_and_fit(X, Y)

    def _check_and_fit(self, X: Data, Y: Data, read_evidence: Callable[[Training], Record] | None = None) -> Data:
        """The template of `fit_enhance`; `read_evidence` checks what else is given and names it for `_fit_enhance`."""
        with FewWarnings():
            self._validate_params()
            training, found = examine_training(self, X, Y)
            X_checked, L, border = training
            evidence = {} if read_evidence is None else read_evidence(training)
            refuse_too_large(self, X_checked, L.shape[1])
            X_checked, L = in_its_kind(self, X_checked, L)
            left_out = found.n_empty > 0 and found.is_logical and "unlabelled" not in self.kinds
            if found.n_empty and found.is_logical:
                counted = f"rows without any label ({found.n_empty} of {found.n}, first row {found.empty})"
                if left_out and not hasattr(self, "predict"):
                    raise words.silent_rows_refused(self, counted)
                if self.unlabelled_get:
                    warn(f"Y has {counted}: they are left out of the fit and get {self.unlabelled_get}.", LabelWarning)
            if left_out:
                solution = fit_labelled(self, X_checked, L, border.label_names)
            else:
                solution = fit_checked(self, X_checked, L, border.label_names, **evidence)
            warn_if_short(solution, self)
            return self.wrapped(border, X, self.label_distributions_)

    def __sklearn_is_fitted__(self) -> bool:
        # By its trailing underscore scikit-learn would take a parameter such as `lambda_` for the result of a fit.
        return any(name.endswith("_") for name in vars(self).keys() - self._get_param_names())

    def summary(self) -> str:
        """What a fit found, in a few lines for people."""
        check_is_fitted(self)
        return "\n".join(self._summary_lines())

    def _summary_lines(self) -> list[str]:
        """The lines of `summary`; methods that can say more add theirs."""
        n, q = self.label_distributions_.shape
        ended = "" if self.solution_.converged else "; it stopped before its end"
        lines = [f"{type(self).__name__}: {n:,} rows, {q} labels; {self.solution_.n_iter} iterations{ended}"]
        if get_backend(self.label_distributions_).in_memory:
            D = get_backend(self.label_distributions_).to_numpy(self.label_distributions_)
            order = np.argsort(-D.mean(axis=0), kind="stable")[:5]
            shown = ", ".join(f"{self.label_names_[j]} {D[:, j].mean():.0%}" for j in order)
            lines.append(f"largest mean degrees: {shown}{', ...' if q > 5 else ''}")
        return lines

    def _repr_mimebundle_(self, **kwargs: object) -> Record:
        """For notebooks: what a fit found, above the parameters."""
        bundle: Record = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "label_distributions_"):
            bundle["text/html"] = f"<pre>{html.escape(self.summary())}</pre>{bundle['text/html']}"
        return bundle

    def takes_levels(self) -> bool:
        """Whether Y may hold whole numbers beyond 0 and 1, of which the order within a row counts."""
        return False

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        """Estimated memory of a fit beyond X (n, d) and L (n, q); methods that hold more than this override it."""
        k = getattr(self, "n_neighbors", 0)
        return machine.fit_bytes(n, d, q, min(k if isinstance(k, int) else q + 1, n - 1))

    @available_if(can_enhance_new_rows)
    def enhance(self, X: Data, Y: Data) -> Data:
        """Recover the distributions (m, q) of new rows that have labels, in the kind of container that Y came in.

        Parameters
        ----------
        X : (m, d)
            Features, with the columns of `fit`.
        Y : (m, q)
            Labels, as in `fit`. Methods whose answer depends on the features alone answer as `predict` does.
        """
        check_is_fitted(self)
        X_checked, L, border = check_new_rows(self, X, Y, self.label_names_)
        function = self._enhance if "unlabelled" in self.kinds else partial(_enhance_or_predict, self)
        return self.wrapped(border, X, self._answer(function, X_checked, L))

    @available_if(lambda self: hasattr(self, "predict"))
    def score(self, X: Data, y: Data) -> float:
        """How well the degrees that are predicted for rows X (m, d) predict their labels y (m, q); more is better.

        The share of the labels' entropy that the predicted degrees explain: 0 where they say no more than how frequent
        labels are, 1 where they predict every label (`contone.numerics.label_score`). It means the same for all
        methods, and scikit-learn's cross-validation uses it. Labels say which degrees are larger and nothing about
        their scale; `contone.Tuned`, which chooses parameters on rehearsed data, sees the scale as well.
        """
        check_is_fitted(self)
        X_checked, L, _ = check_new_rows(self, X, y, self.label_names_)
        return label_score(to_numpy(L), to_numpy(self._predict_checked(X_checked)))

    @abstractmethod
    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        """X (n, d) and L (n, q), checked and read-only, to a `Solution` whose value is D^ (n, q)."""

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> np.ndarray:
        """X (m, d) and L (m, q) of new rows, checked, to D^ (m, q); methods that take new rows override it."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # mypy would take every attribute for granted

        def __getattr__(self, name: str) -> Any:
            """Say why an enhancer lacks a method; `hasattr` is still False."""
            found = getattr(type(self), name, None)
            if isinstance(found, property):  # which raised an AttributeError with its own words
                return found.fget(self)
            if name in words.MISSING_METHODS:
                raise AttributeError(words.MISSING_METHODS[name].format(type(self).__name__))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class InductiveMixin:
    """For methods that predict the distribution of new rows from their features alone."""

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> np.ndarray:
        """The labels of new rows say nothing beyond their features, unless the method knows better."""
        return self._predict(X)

    def predict(self, X: Data) -> Data:
        """Label distributions (m, q) of new rows; a frame in gives a frame out."""
        return Estimator._predict_wrapped(self, X)  # type: ignore[arg-type]

    @abstractmethod
    def _predict(self, X: np.ndarray) -> np.ndarray:
        """X (m, d), checked, to D^ (m, q)."""


def fit_checked(method: Enhancer, X: Array, L: Array, label_names: list[str], **evidence: Any) -> Solution:
    """Fit a method to features (n, d) and labels (n, q) that have been checked: the step of another method, or itself.

    Nothing is checked again and nothing is warned of; the caller reports what the `Solution` says.
    """
    method.n_features_in_ = X.shape[1]
    method.label_names_ = label_names
    X, L = in_its_kind(method, X, L)
    with threads_for(X, L, shares_rows=method._shares_rows):
        solution = method._fit_enhance(X, L, **evidence)
    if not isinstance(solution, Solution):
        raise AnswerError(f"{type(method).__name__}._fit_enhance gave {type(solution).__name__} (expected a Solution).")
    method.label_distributions_ = on_simplex(solution.value, (X.shape[0], L.shape[1]), method)
    method.solution_ = solution
    said = "%s: %d rows, %d features, %d labels, %d iterations%s"
    short = "" if solution.converged else ", not converged"
    LOG.info(said, type(method).__name__, *X.shape, L.shape[1], solution.n_iter, short)
    return solution


def in_its_kind(method: EstimatorLike, *arrays: Array) -> tuple[Array, ...]:
    """Checked arrays as a method computes with them: NumPy arrays in place of tensors and lazy rows, if need be."""
    backend = get_backend(*arrays)
    as_they_are = backend.name not in ("torch", "dask") or backend.name in getattr(method, "kinds", ())
    return arrays if as_they_are else tuple(map(to_numpy, backend.compute(*arrays)))


def fit_labelled(method: Enhancer, X: Array, L: Array, label_names: list[str]) -> Solution:
    """The same for an inductive method where rows have no label at all: fitted to the others, it predicts these."""
    silent = np.asarray(to_numpy(silent_rows(L)))
    rows = np.flatnonzero(~silent)
    if len(rows) < 2:
        raise LabelError(f"Y has {len(rows)} rows with a label (of {len(silent)}), and at least 2 are needed.")
    backend = get_backend(X)
    solution = fit_checked(method, backend.take_rows(X, rows), backend.take_rows(L, rows), label_names)
    predicted = on_simplex(method._predict(X), L.shape, method)
    # Where a row is among those that were fitted; any place will do for the others.
    place = np.maximum(np.cumsum(~silent) - 1, 0)
    fitted, is_silent = backend.take_rows(method.label_distributions_, place), like(silent[:, None] * 1.0, L) > 0
    xp = array_namespace(predicted, fitted)
    method.label_distributions_ = xp.where(xp.asarray(is_silent), predicted, fitted)
    whole: Solution = solution.with_value(method.label_distributions_)
    method.solution_ = whole
    return whole


def _enhance_or_predict(method: EstimatorLike, X: Array, L: Array) -> Array:
    """Degrees of new rows from features and labels, and from features alone where there is no label."""
    silent, backend = silent_rows(L), get_backend(X)
    if type(method)._enhance is InductiveMixin._enhance or (backend.in_memory and not bool(silent.any())):
        return method._enhance(X, L)
    if not hasattr(method, "predict"):
        if not backend.in_memory:  # what is in lazy rows is not known yet
            return method._enhance(X, L)
        raise words.silent_rows_refused(method, f"rows without any label ({int(silent.sum())} of {len(L)})")
    # Other labels do as well in rows whose answer is not used.
    xp = array_namespace(L)
    filled = xp.where(silent[:, None], xp.ones_like(L), L)
    return xp.where(silent[:, None], method._predict(X), method._enhance(X, filled))


def on_simplex(D: Array, shape: tuple[int, ...], estimator: EstimatorLike) -> Array:
    """The answer, checked on the way out for every method; rounding is repaired, anything worse is a defect."""
    name = type(estimator).__name__
    if D.shape != tuple(shape):
        raise AnswerError(f"{name} gave an answer of shape {D.shape} (expected {tuple(shape)}).")
    return get_backend(D).map_rows(partial(_repaired, name=name), D, columns=shape[1])


def _repaired(D: Array, name: str) -> Array:
    xp = array_namespace(D)
    if not bool(xp.all(xp.isfinite(D))):
        raise AnswerError(f"{name} gave an answer with NaN in it.")
    rounding = 1e-6 if D.dtype == xp.float64 else 1e-4
    total = xp.sum(D, axis=1)
    if float(xp.min(D)) < -1e-3 * rounding or float(xp.max(xp.abs(total - 1.0))) > rounding:
        raise AnswerError(f"{name} gave rows that are not distributions: a defect in the method, please report it.")
    D = xp.clip(D, min=0.0)
    return D / xp.sum(D, axis=1, keepdims=True)


def refuse_too_large(estimator: EstimatorLike, X: Array, q: int) -> None:
    """Refuse, before any work, what would not fit into memory."""
    (n, d), backend = X.shape, get_backend(X)
    if backend.name == "sparse":  # what is stored, and some hundred dense columns made from it
        d = min(d, X.nnz // n + 100)
    needed, available = estimator._fit_bytes(n, d, q), backend.available_bytes(X)
    if not backend.in_memory:  # all rows come here, unless the method works block by block
        needed = 0.0 if "dask" in estimator.kinds else needed + 8.0 * n * (d + q)
    if needed > available:
        raise words.too_large(estimator, X, q, needed, available)


def warn_if_short(solution: Solution, estimator: EstimatorLike) -> None:
    """Warn where a solver stopped before its end, or a neighbour search missed many neighbours."""
    recall = solution.info.get("neighbours", {}).get("recall", 1.0)
    if not solution.converged:
        warn(words.stopped_short(estimator, solution), ConvergenceWarning)
    if recall < GOOD_RECALL:
        warn(words.poor_search(estimator, recall), ApproximationWarning)

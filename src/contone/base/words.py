"""What estimators say where they refuse, warn, or lack a method: what was wrong, and what to do instead."""

from contone.backends import get_backend
from contone.exceptions import LabelError, MemoryEstimateError
from contone.numerics.solution import Solution
from contone.runtime import machine
from contone.typing import Array, EstimatorLike
from contone.validation.training import able_methods

MISSING_METHODS = {
    "predict": "{0} has no `predict`: it recovers the degrees of rows from their labels, and says nothing of rows "
    "without. Use a method that does (Inversion, GLLE, LCdr), or fit a learner such as contone.MaxEnt to what "
    "`fit_enhance` gives.",
    "enhance": "{0} has no `enhance`: it recovers the degrees of all rows together, and its answer says nothing of "
    "other rows. Give all rows to `fit_enhance`, or use a method that takes new ones (Inversion, GLLE, LCdr).",
    "score": "{0} has no `score`, because it has no `predict`: it gives no degrees without labels.",
    "intervals": "{0} gives no intervals; Inversion does.",
}
"""Methods that some estimators lack, and why."""


def too_large(estimator: EstimatorLike, X: Array, q: int, needed: float, available: float) -> MemoryEstimateError:
    """A fit that would not fit into memory."""
    (n, d), name, limit = X.shape, type(estimator).__name__, machine.LIMIT_VARIABLE
    needs, has = f"needs about {machine.shown(needed)} of memory", f"{machine.shown(available)} are available"
    if_wrong = f"If the estimate is wrong, set {limit}, to a size such as 64GB or to off."
    if get_backend(X).in_memory:
        return MemoryEstimateError(
            f"{name} on {n:,} rows with {d} features and {q} labels {needs}; {has}. Use a setting that grows with n "
            'and not with its square (a "knn" graph, an "exact" solver), fit on a sample of the rows and predict the '
            f"others, or stream the file: contone enhance --stream. {if_wrong}"
        )
    return MemoryEstimateError(
        f"{name} on {n:,} rows of a dask array with {d} features and {q} labels {needs} in this process, because it "
        f"computes with all rows together; {has}. Use Inversion, which answers block by block; or fit on a sample of "
        f"the rows and predict the others (dask arrays will do). {if_wrong}"
    )


def silent_rows_refused(estimator: EstimatorLike, counted: str) -> LabelError:
    """Rows without any label for a method that can do nothing with them."""
    return LabelError(
        f"Y has {counted}, and {type(estimator).__name__} says nothing of them. Drop these rows, or give them "
        f"their labels, or use one of {able_methods('unlabelled', inductive=True)}."
    )


def stopped_short(estimator: EstimatorLike, solution: Solution) -> str:
    """A solver that stopped before its end."""
    return (
        f"{type(estimator).__name__} stopped after {solution.n_iter} iterations with residual "
        f"{solution.residual:.3g}, above its tolerance; {estimator.when_short}."
    )


def poor_search(estimator: EstimatorLike, recall: float) -> str:
    """A neighbour search that missed many neighbours."""
    return (
        f"{type(estimator).__name__}: the neighbour search found only {recall:.0%} of the true neighbours (on a "
        "sample). The features are hard to search: reduce them first (e.g. by PCA), or use fewer rows, which are "
        "searched exactly."
    )


def refuse_unasked(estimator: EstimatorLike, L: Array) -> None:
    """Refuse labels with NaN for a step that does not take them."""
    if bool(get_backend(L).compute((L != L).any())[0]):
        able = able_methods("unasked")
        raise LabelError(f"{type(estimator).__name__} does not take labels with NaN; these methods do: {able}.")

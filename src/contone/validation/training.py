"""The checks of a call's data: features X and labels Y are opened, examined where they lie, and judged.

A public call checks once; steps inside a method call each other's hooks. `containers` opens what came in, `examine`
looks into it in one pass over the rows, and what cannot be used is refused in the same words for every kind of array.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_dask_array, is_torch_array
from sklearn.utils.validation import validate_data

from contone.backends import get_backend, to_numpy
from contone.exceptions import FeatureError, InputTypeError, LabelError, LabelWarning, MissingExtraError, ShapeError
from contone.runtime import machine
from contone.runtime.warnings import warn
from contone.typing import Array, Data, EstimatorLike, Record
from contone.validation import containers
from contone.validation.containers import Border, default_names, infinite_label, open_labels, read_only

SIMPLEX_TOLERANCE = 1e-6
"""Row sums may be off by this much (files store rounded degrees); such rows are renormalised."""
SINGLE_TOLERANCE = 1e-4
"""The same for tensors in single precision."""
ADVICE = {
    "Input X contains": "\nX must be finite: impute or drop such rows (e.g. with sklearn.impute.SimpleImputer).",
    "could not convert string": "\nX must hold numbers only: drop or encode text columns.",
    "0 sample(s)": " X is empty: pass at least two rows.",
    "minimum of 2 is required": " (n_samples = 1): nothing can be learnt from one row; pass more rows.",
    "0 feature(s)": " X has no columns: pass at least one feature.",
}
"""What scikit-learn says of X, and what to do then."""
ONE_ROW = "X has one row (n_samples = 1): nothing can be learnt from one row; pass more rows."


class Training(NamedTuple):
    """Checked input of a fit: X (n, d), labels (n, q), and the way out."""

    X: Array
    labels: Array
    border: Border


def check_training(estimator: EstimatorLike, X: Data, Y: Data) -> Training:
    """Check features and labels for an enhancer's fit: see `Enhancer.fit` for what Y may hold."""
    return examine_training(estimator, X, Y)[0]


def examine_training(estimator: EstimatorLike, X: Data, Y: Data) -> tuple[Training, Findings]:
    """The same with what was found: rows without any label are left to the caller."""
    training, found = _open_training(estimator, X, Y)
    judge_labels(found, training.border.label_names, **_takes(estimator))
    return training, found


def check_supervision(estimator: EstimatorLike, X: Data, Y: Data) -> Training:
    """Check features and any finite targets Y (n, q), or one class per row, (n,), for a supervised estimator."""
    training, found = _open_training(estimator, X, Y)
    if max(found.bad_labels, found.unasked) >= 0:
        raise infinite_label("Y", found.bad_labels if found.bad_labels >= 0 else found.unasked)
    return training


def _open_training(estimator: EstimatorLike, X: Data, Y: Data) -> tuple[Training, Findings]:
    """X and Y as arrays of one kind with as many rows, X finite; what is in Y is left to be judged."""
    if Y is None:
        raise containers.missing_labels("Y", estimator)
    containers.refuse_other_index(X, Y)
    if is_dask_array(X) or is_dask_array(Y):
        X_checked, labels = _align_lazily(X, Y)
        _count_features(estimator, X_checked, reset=True)
        if X_checked.shape[0] < 2:
            raise FeatureError(ONE_ROW)
        border = Border(default_names(labels.shape[1]), model=X_checked)
        found = examine(X_checked, labels)
        _judge_features(found)
    else:
        X_checked = check_features(estimator, X, reset=True)
        labels, border = open_labels(Y, name="Y", estimator=estimator)
        same_rows(X_checked, labels, "Y")
        labels = containers.place_beside(X_checked, labels)
        found = examine(None, labels)
    return Training(X_checked, labels, border), found


def check_new_rows(estimator: EstimatorLike, X: Data, Y: Data, label_names: Sequence[str]) -> Training:
    """Features (m, d) and labels (m, q) of new rows for a fitted enhancer, as in `check_training`.

    What is in lazy rows is checked when they are used.
    """
    if is_dask_array(X) or is_dask_array(Y):
        X_lazy, Y_lazy = _align_lazily(X, Y)
        _count_features(estimator, X_lazy, reset=False)
        _same_labels(Y_lazy, label_names)
        judge = partial(_judge_block_of_labels, names=list(label_names), **_takes(estimator))
        later = get_backend(X_lazy).check_later
        border = Border(list(label_names), model=X_lazy)
        return Training(later(X_lazy, _judge_block_of_features), later(Y_lazy, judge), border)
    containers.refuse_other_index(X, Y)
    X_checked = check_features(estimator, X, reset=False)
    labels = check_new_labels(estimator, X_checked, Y, label_names)
    return Training(X_checked, labels, containers.open_border(Y, label_names))


def check_new_labels(estimator: EstimatorLike, X: Array, Y: Data, label_names: Sequence[str]) -> Array:
    """Labels (m, q) of new rows X, checked against the names of the labels; see `check_new_rows`."""
    labels, border = open_labels(Y, name="Y", estimator=estimator)
    same_rows(X, labels, "Y")
    _same_labels(labels, label_names)
    labels = containers.place_beside(X, labels)
    judge_labels(examine(None, labels), border.label_names, constant=False, **_takes(estimator))
    return labels


def check_features(estimator: EstimatorLike, X: Data, *, reset: bool) -> Array:
    """X as a finite matrix; on `reset` the feature names and count are remembered on the estimator.

    The class attribute `kinds` of the estimator says what it computes with: for "torch", a tensor stays one, in its
    precision and on its device; for "sparse", a sparse matrix becomes a CSR array. Otherwise X becomes float64 NumPy. A
    dask array stays lazy: whether it is finite is checked when it is used.
    """
    kinds: frozenset[str] = getattr(estimator, "kinds", frozenset())
    if is_dask_array(X):
        backend = get_backend(X)
        X = backend.check_matrix(X, "X")
        _count_features(estimator, X, reset=reset)
        return backend.check_later(X.astype(np.float64), _judge_block_of_features)
    if is_torch_array(X):
        X = get_backend(X).check_matrix(X, "X")
        if "torch" in kinds:
            if X.shape[0] < 1 + reset:
                raise FeatureError(ONE_ROW if X.shape[0] else "X is empty: it has 0 sample(s).")
            _judge_features(examine(X, None))
            _count_features(estimator, X, reset=reset)
            return X
        X = get_backend(X).to_numpy(X)
    containers.check_columns(X, "X")
    containers.refuse_odd_arrays(X, "X")
    sparse, least = "csr" if "sparse" in kinds else False, 2 if reset else 1
    how = {"accept_sparse": sparse, "dtype": np.float64, "order": "C", "ensure_min_samples": least}
    try:
        return read_only(validate_data(estimator, X, reset=reset, **how))
    except TypeError as error:
        if sp.issparse(X):
            size = machine.shown(8.0 * X.shape[0] * X.shape[1])
            raise InputTypeError(
                f"{error} {type(estimator).__name__} needs dense features: pass X.toarray(), which takes {size} ("
                f"{machine.shown(machine.available_bytes())} are available); make fewer features of them first, e.g. "
                "with sklearn.decomposition.TruncatedSVD; or use Inversion, which takes sparse features as they are."
            ) from error
        raise InputTypeError(f"{error} X must hold numbers only.") from error
    except ValueError as error:
        advice = next((advice for said, advice in ADVICE.items() if said in str(error)), "")
        raise FeatureError(f"{error}{advice}") from error


def _align_lazily(X: Data, Y: Data) -> tuple[Array, Array]:
    """Both as lazy float64 matrices with the same blocks of rows: those of X, or of Y where X is in memory."""
    try:
        backend = get_backend(X, Y)
    except ImportError as error:  # an array of dask's without dask itself
        raise MissingExtraError("dask.array cannot be imported: pip install 'contone[scale]'.") from error
    blocks_of_X = is_dask_array(X)
    X, Y = (backend.check_matrix(A, name).astype(np.float64) for A, name in ((X, "X"), (Y, "Y")))
    same_rows(X, Y, "Y")
    rows = (X if blocks_of_X else Y).chunks[0]
    return X.rechunk((rows, X.shape[1])), Y.rechunk((rows, Y.shape[1]))


def _count_features(estimator: EstimatorLike, X: Array, *, reset: bool) -> None:
    """Remember the number of features on `reset`, refuse another one later."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        raise FeatureError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input.")


def _takes(estimator: EstimatorLike) -> Record:
    """What labels an estimator takes, for `judge_labels`: levels, of which the order counts, and unasked entries."""
    levels = getattr(estimator, "takes_levels", None)
    return {"levels": levels is not None and levels(), "unasked": "unasked" in getattr(estimator, "kinds", ())}


def _same_labels(labels: Array, label_names: Sequence[str]) -> None:
    if labels.shape[1] != len(label_names):
        raise ShapeError(f"Y has {labels.shape[1]} labels; the enhancer was fitted with {len(label_names)}.")


def same_rows(X: Array, labels: Array, name: str) -> None:
    """Refuse features and labels with other numbers of rows."""
    if X.shape[0] != labels.shape[0]:
        raise ShapeError(
            f"X and {name} must have the same number of rows; they have {X.shape[0]} and {labels.shape[0]} "
            "(inconsistent numbers of samples)."
        )


@dataclass(frozen=True)
class Findings:
    """What an examination of features X (n, d) and labels Y (n, q) found; the sum is that of rows one after the other.

    Row numbers are those of the first row of its kind; -1 stands for none.
    """

    n: int
    bad_features: int = -1
    """X has an entry that is NaN or infinite."""
    bad_labels: int = -1
    """Y has an infinite entry."""
    unasked: int = -1
    """Y has an entry that is NaN."""
    not_whole: int = -1
    """Y has an entry that is neither a whole number nor NaN."""
    empty: int = -1
    """There is no label at all: all 0, or all NaN."""
    n_empty: int = 0
    """How many rows are empty."""
    is_logical: bool = True
    """Whether every entry of Y is 0, 1 or NaN."""
    off: int = -1
    """A row of Y is not a distribution; among rows of 0 and 1, the first that is neither."""
    off_label: int = -1
    """The first label there that is not 0 or 1."""
    off_value: float = 0.0
    """Its value; the sum of the row where there is none."""
    lowest: Array = np.inf
    """(q,) the smallest entry of every label; inf where all are NaN."""
    highest: Array = -np.inf
    """(q,) the largest; -inf where all are NaN."""

    def __add__(self, later: Findings) -> Findings:
        rows = {}
        for name in ("bad_features", "bad_labels", "unasked", "not_whole", "empty"):
            first, second = getattr(self, name), getattr(later, name)
            rows[name] = self.n + second if first < 0 <= second else first
        # A row that is neither logical nor a distribution says more than a row of 0 and 1 among confidences.
        if later.off >= 0 and (self.off < 0 or self.off_label < 0 <= later.off_label):
            rows |= {"off": self.n + later.off, "off_label": later.off_label}
        return replace(
            self,
            n=self.n + later.n,
            n_empty=self.n_empty + later.n_empty,
            is_logical=self.is_logical and later.is_logical,
            off_value=later.off_value if "off" in rows else self.off_value,
            lowest=np.minimum(self.lowest, later.lowest),
            highest=np.maximum(self.highest, later.highest),
            **rows,
        )


def examine(X: Array | None, Y: Array | None) -> Findings:
    """What is found in features X (n, d) and labels Y (n, q), in one pass; either may be left out."""
    given = [A for A in (X, Y) if A is not None]
    look = partial(_examine, has_X=X is not None, has_Y=Y is not None)
    found: Findings = reduce(add, get_backend(*given).each_block(look, *given))
    return found


def _examine(*arrays: Array, has_X: bool, has_Y: bool) -> Findings:
    """The same in one memory; nothing but single numbers and a few of size q leave the device of the arrays."""
    X, Y, n = arrays[0], arrays[-1], arrays[0].shape[0]
    bad_features = _first(~_all_rows(array_namespace(X).isfinite(X))) if has_X else -1
    if not has_Y:
        return Findings(n, bad_features)
    xp = array_namespace(Y)
    unasked = xp.isnan(Y)
    logical = (Y == 0) | (Y == 1) | unasked
    total = xp.sum(Y, axis=1, dtype=xp.float64)
    tolerance = SINGLE_TOLERANCE if Y.dtype.itemsize == 4 else SIMPLEX_TOLERANCE
    off = xp.any(Y < 0, axis=1) | ~(xp.abs(total - 1.0) <= tolerance)
    row = _first(off & ~_all_rows(logical))  # among rows of 0 and 1, name the one that is different
    row = row if row >= 0 else _first(off)
    label = -1 if row < 0 else _first(~logical[row, :])
    empty = silent_rows(Y)
    return Findings(
        n,
        bad_features,
        bad_labels=_first(xp.any(xp.isinf(Y), axis=1)),
        unasked=_first(xp.any(unasked, axis=1)),
        not_whole=_first(~_all_rows((xp.round(Y) == Y) | unasked)),
        empty=_first(empty),
        n_empty=int(xp.sum(xp.astype(empty, xp.int64))),
        is_logical=bool(xp.all(logical)),
        off=row,
        off_label=label,
        off_value=0.0 if row < 0 else float(total[row] if label < 0 else Y[row, label]),
        lowest=to_numpy(xp.min(xp.where(unasked, xp.full_like(Y, xp.inf), Y), axis=0)),
        highest=to_numpy(xp.max(xp.where(unasked, xp.full_like(Y, -xp.inf), Y), axis=0)),
    )


def silent_rows(Y: Array) -> Array:
    """Which rows of Y (n, q) have no label at all, bool (n,): every entry is 0, or every entry is NaN."""
    return _all_rows(Y == 0) | _all_rows(array_namespace(Y).isnan(Y))


def _all_rows(condition: Array) -> Array:
    return array_namespace(condition).all(condition, axis=1)


def _first(condition: Array) -> int:
    """Where the condition (n,) holds first; -1 where it does not."""
    xp = array_namespace(condition)
    return int(xp.argmax(xp.astype(condition, xp.int8))) if bool(xp.any(condition)) else -1


def _judge_features(found: Findings) -> None:
    if found.bad_features >= 0:
        raise FeatureError(
            f"X contains NaN or infinity in row {found.bad_features}: impute or drop it "
            "(e.g. with sklearn.impute.SimpleImputer)."
        )


def _judge_block_of_features(X: Array, first_row: int) -> None:
    """The same for a block of rows, when it is computed."""
    _judge_features(Findings(first_row) + examine(X, None))


def _judge_block_of_labels(Y: Array, first_row: int, **how: Any) -> None:
    judge_labels(Findings(first_row) + examine(None, Y), constant=False, **how)


def judge_labels(
    found: Findings, names: Sequence[str], *, constant: bool = True, levels: bool = False, unasked: bool = True
) -> None:
    """Refuse what is neither logical labels nor confidences; warn of labels that say nothing, if `constant` asks.

    With `levels`, labels are whole numbers, of which the order within a row counts. NaN is an entry that nobody asked
    about, where `unasked` ones are taken.
    """
    if found.bad_labels >= 0:
        raise infinite_label("Y", found.bad_labels)
    if found.unasked >= 0 and not unasked:
        raise LabelError(
            f"Y has a missing (NaN) entry in row {found.unasked}: say 0 or 1 for every label, or use a method that "
            f"takes NaN as unasked: {able_methods('unasked')}."
        )
    if levels:
        if found.not_whole < 0 or found.off < 0:
            return
        raise LabelError(
            f"Y must hold whole numbers, larger where the degree is larger (counts, ranks, levels, or 0 and 1); row "
            f"{found.not_whole} has others. Round them, or number the levels 0, 1, 2, ..."
        )
    if found.unasked >= 0 and not found.is_logical:
        raise LabelError(
            f"Y has a missing (NaN) entry in row {found.unasked} beside numbers other than 0 and 1: only 0/1 labels "
            "can be unasked. Turn the labels into 0 and 1, or give complete rows of confidences."
        )
    if not found.is_logical and found.off >= 0:
        value = found.off_value
        what = f"label {names[found.off_label]!r} is {value:g}" if found.off_label >= 0 else f"the sum is {value:g}"
        scales = ' For a level of every label use Inversion(degradation="levels"), for ranks "order".'
        scales = scales if found.not_whole < 0 else ""
        raise LabelError(
            f"Y must hold 0 and 1 only (or confidences: rows that are not negative and sum to 1); in row {found.off}, "
            f"{what}. Turn the labels into 0 and 1, or divide each row of confidences by its sum.{scales}"
        )
    if not constant:
        return
    never = [repr(names[j]) for j in np.flatnonzero(found.lowest > found.highest).tolist()]
    same = np.flatnonzero((found.lowest == found.highest) & ((found.lowest == 0) | (found.lowest == 1))).tolist()
    always = [f"{names[j]!r} (always {found.lowest[j]:g})" for j in same]
    for labels, what in (
        (never, "unasked (NaN) in every row, so the data say nothing of them"),
        (always, "the same in every row, so the data cannot say how they vary"),
    ):
        if labels:
            counted, shown = f"{len(labels)} of {len(names)} labels are", ", ".join(labels[:5])
            warn(f"{counted} {what}: {shown}. Consider dropping them.", LabelWarning)


def able_methods(kind: str, *, inductive: bool = False) -> str:
    """The public enhancers with this kind (see `contone.base`), named; `inductive` ones as well where asked for.

    Estimators around others are left out, as they do what those do.
    """
    package = sys.modules["contone"]
    public = (getattr(package, name) for name in package.__all__)
    methods = [cls for cls in public if hasattr(cls, "_fit_enhance")]
    able = [cls for cls in methods if kind in cls.kinds or (inductive and hasattr(cls, "predict"))]
    return ", ".join(sorted(cls.__name__ for cls in able if not {"enhancer", "methods"} & {*cls._get_param_names()}))

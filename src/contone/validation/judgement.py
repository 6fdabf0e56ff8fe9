"""What an examination found, judged: an error or a warning, in the same words for every kind of array."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from contone.backends import Findings
from contone.exceptions import FeatureError, LabelError, LabelWarning
from contone.runtime.warnings import warn
from contone.typing import Array
from contone.validation.containers import infinite_label

SIMPLEX_TOLERANCE = 1e-6
"""Row sums may be off by this much (files store rounded degrees); such rows are renormalised."""
SINGLE_TOLERANCE = 1e-4
"""The same for tensors in single precision."""


SMALLEST_FEATURE = 1e-150
"""Features whose largest entry is below this, or above its inverse, have squares that floating point cannot hold."""
SMALLEST_SINGLE = 1e-16
"""The same in single precision."""


def refuse_beyond_squares(name: str, largest: np.ndarray) -> None:
    """Refuse features with a column whose largest entry, (d,), is so small or large that its square is lost."""
    smallest = SMALLEST_SINGLE if largest.dtype.itemsize == 4 else SMALLEST_FEATURE
    for column, entry in enumerate(map(float, largest)):
        if entry and not smallest <= entry <= 1.0 / smallest:
            raise FeatureError(
                f"{name}: the largest entry of X in column {column} is {entry:.3g}; its square, or the coefficient "
                "that it needs, is beyond floating point. Scale the features, e.g. with "
                "sklearn.preprocessing.StandardScaler."
            )


def judge_features(found: Findings) -> None:
    if found.bad_features >= 0:
        raise FeatureError(
            f"X contains NaN or infinity in row {found.bad_features}: impute or drop it "
            "(e.g. with sklearn.impute.SimpleImputer)."
        )


def judge_finite(found: Findings) -> None:
    if found.bad_labels >= 0:
        raise infinite_label("Y", found.bad_labels)
    if found.unasked >= 0:
        raise infinite_label("Y", found.unasked)


def judge_labels(
    found: Findings,
    names: Sequence[str],
    *,
    constant: bool = True,
    levels: bool = False,
    kinds: Collection[str] = ("unasked",),
) -> None:
    """Refuse what is neither logical labels nor confidences; warn of labels that say nothing, if `constant` asks.

    With `levels`, labels are whole numbers, of which the order within a row counts. NaN is an entry that nobody asked
    about: `kinds` says whether the estimator takes it.
    """
    if found.bad_labels >= 0:
        raise infinite_label("Y", found.bad_labels)
    if found.unasked >= 0 and "unasked" not in kinds:
        raise LabelError(
            f"Y has a missing (NaN) entry in row {found.unasked}: say 0 or 1 for every label, or use a method that "
            f"takes NaN as unasked: {able_methods('unasked')}."
        )
    if levels and (found.not_whole < 0 or found.off < 0):
        return
    if levels:
        raise LabelError(
            f"Y must hold whole numbers, larger where the degree is larger (ranks, levels, or 0 and 1); row "
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
        raise LabelError(
            f"Y must hold 0 and 1 only (or confidences: rows that are not negative and sum to 1); in row {found.off}, "
            f"{what}. Turn the labels into 0 and 1, or divide each row of confidences by its sum.{_if_levels(found)}"
        )
    never = np.flatnonzero(found.lowest > found.highest)
    if constant and never.size:
        shown = ", ".join(repr(names[j]) for j in never[:5])
        warn(
            f"{never.size} of {len(names)} labels are unasked (NaN) in every row, so the data say nothing of them: "
            f"{shown}. Consider dropping them.",
            LabelWarning,
        )
    same = np.flatnonzero((found.lowest == found.highest) & ((found.lowest == 0) | (found.lowest == 1)))
    if constant and same.size:
        shown = ", ".join(f"{names[j]!r} (always {found.lowest[j]:g})" for j in same[:5])
        warn(
            f"{same.size} of {len(names)} labels are the same in every row, so the data cannot say how they vary: "
            f"{shown}. Consider dropping them.",
            LabelWarning,
        )


def _if_levels(found: Findings) -> str:
    if found.not_whole >= 0:
        return ""
    return ' For ranks or levels (larger means more), use Inversion(degradation="order").'


def able_methods(kind: str, *, inductive: bool = False) -> str:
    """The public enhancers with this kind (see `contone.base`), named; `inductive` ones as well where asked for.

    An estimator around others is left out: it does what those do.
    """
    package = sys.modules["contone"]
    public: list[Any] = [getattr(package, name) for name in package.__all__]
    methods = [cls for cls in public if hasattr(cls, "fit_enhance") and hasattr(cls, "kinds")]
    able = [cls for cls in methods if kind in cls.kinds or (inductive and hasattr(cls, "predict"))]
    return ", ".join(sorted(cls.__name__ for cls in able if not {"enhancer", "methods"} & {*cls._get_param_names()}))


def tolerance_of(labels: Array) -> float:
    return SINGLE_TOLERANCE if labels.dtype.itemsize == 4 else SIMPLEX_TOLERANCE

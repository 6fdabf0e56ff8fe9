"""(D, D^) -> numbers: the measures of the field, with their direction and formula as data.

Every measure maps two label distributions (n, q) to one value per instance; calling it averages them. KL is as in
textbooks, KL(D || D^). The label enhancement literature mostly reports the reverse under the same name, in two variants
that differ in what happens at zeros; they exist here by name, so that published numbers can be compared with the
convention they used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils import Bunch

from contone.exceptions import InputError
from contone.numerics.simplex import kl_divergence
from contone.typing import Array
from contone.validation import check_pair

RowMeasure = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Measure:
    """A measure of how close recovered distributions are to the truth.

    Calling it gives the mean over instances; `per_instance` gives one value per row (NaN where the convention
    drops the row).
    """

    name: str
    title: str
    formula: str
    greater_is_better: bool
    rows: RowMeasure

    def per_instance(self, D: Any, D_hat: Any) -> np.ndarray:
        """One value per row, (n,)."""
        return self.rows(*check_pair(D, D_hat))

    def __call__(self, D: Any, D_hat: Any) -> float:
        """The mean over instances; rows that the convention drops are left out."""
        return _mean(self.per_instance(D, D_hat))

    @property
    def __name__(self) -> str:
        """What scikit-learn calls the measure when it prints a scorer."""
        return self.name

    @property
    def arrow(self) -> str:
        """The direction of improvement, for table heads."""
        return "↑" if self.greater_is_better else "↓"


def _mean(values: np.ndarray) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if kept.size else float("nan")


def _relative_difference(D: np.ndarray, R: np.ndarray) -> Array:
    """|d - r| / (d + r) elementwise, with 0/0 = 0."""
    total = D + R
    return np.divide(np.abs(D - R), total, out=np.zeros_like(total), where=total > 0)


def _chebyshev(D: np.ndarray, R: np.ndarray) -> Array:
    return np.abs(D - R).max(axis=1)


def _clark(D: np.ndarray, R: np.ndarray) -> Array:
    return np.sqrt((_relative_difference(D, R) ** 2).sum(axis=1))


def _canberra(D: np.ndarray, R: np.ndarray) -> Array:
    return _relative_difference(D, R).sum(axis=1)


def _cosine(D: np.ndarray, R: np.ndarray) -> Array:
    return (D * R).sum(axis=1) / (np.linalg.norm(D, axis=1) * np.linalg.norm(R, axis=1))


def _intersection(D: np.ndarray, R: np.ndarray) -> Array:
    return np.minimum(D, R).sum(axis=1)


def _sorensen(D: np.ndarray, R: np.ndarray) -> Array:
    return np.abs(D - R).sum(axis=1) / (D + R).sum(axis=1)


def _kl_reversed_drop(D: np.ndarray, R: np.ndarray) -> np.ndarray:
    values = kl_divergence(R, D)
    return np.where(np.isinf(values), np.nan, values)


def _kl_reversed_clip(D: np.ndarray, R: np.ndarray) -> Array:
    return kl_divergence(R, np.maximum(D, 1e-12))


chebyshev = Measure("chebyshev", "Chebyshev", "max_j |d_j - r_j|", False, _chebyshev)
clark = Measure("clark", "Clark", "sqrt(sum_j (d_j - r_j)^2 / (d_j + r_j)^2)", False, _clark)
canberra = Measure("canberra", "Canberra", "sum_j |d_j - r_j| / (d_j + r_j)", False, _canberra)
kl = Measure("kl", "KL", "sum_j d_j log(d_j / r_j)", False, kl_divergence)
cosine = Measure("cosine", "Cosine", "sum_j d_j r_j / (|d| |r|)", True, _cosine)
intersection = Measure("intersection", "Intersection", "sum_j min(d_j, r_j)", True, _intersection)
sorensen = Measure("sorensen", "Sorensen", "sum_j |d_j - r_j| / sum_j (d_j + r_j)", False, _sorensen)
kl_reversed_drop = Measure(
    "kl_reversed_drop",
    "KL, reversed, infinite rows dropped",
    "sum_j r_j log(r_j / d_j); rows with d_j = 0 < r_j are left out",
    False,
    _kl_reversed_drop,
)
kl_reversed_clip = Measure(
    "kl_reversed_clip",
    "KL, reversed, truth clipped",
    "sum_j r_j log(r_j / max(d_j, 1e-12))",
    False,
    _kl_reversed_clip,
)

MEASURES: dict[str, Measure] = {m.name: m for m in (chebyshev, clark, canberra, kl, cosine, intersection, sorensen)}
"""The measures that `evaluate` reports, in the order of the field's tables."""

CONVENTIONS: dict[str, Measure] = {
    "kl_forward": kl,
    kl_reversed_drop.name: kl_reversed_drop,
    kl_reversed_clip.name: kl_reversed_clip,
}
"""The readings of "KL" in the literature."""


def get(name: str) -> Measure:
    """The measure of that name, conventions included."""
    known = {**MEASURES, **CONVENTIONS}
    if name not in known:
        raise InputError(f"There is no measure {name!r}; there are: {', '.join(known)}.")
    return known[name]


def evaluate(D: Any, D_hat: Any) -> Bunch:
    """All measures of D^ against the truth D as one record, readable by key and by attribute.

    Parameters
    ----------
    D, D_hat : (n, q)
        The truth and the answer: arrays, frames or tensors, rows on the simplex.

    Examples
    --------
    >>> evaluate([[0.5, 0.5]], [[0.75, 0.25]]).chebyshev
    0.25
    """
    truth, answer = check_pair(D, D_hat)
    return Bunch(**{name: _mean(measure.rows(truth, answer)) for name, measure in MEASURES.items()})


def scorer(name: str) -> Any:
    """A scikit-learn scorer, signed so that more is better: ``cross_val_score(model, X, D, scoring=scorer("kl"))``."""
    measure = get(name)
    return make_scorer(measure, greater_is_better=measure.greater_is_better)

"""(D, D^) -> numbers: the measures of the field, with their direction and formula as data.

Every measure maps two label distributions (n, q) to one value per instance; calling it averages them. The seven of the
field's tables are what `evaluate` reports; further ones are asked for by name. KL is as in textbooks, KL(D || D^). The
label enhancement literature mostly reports the reverse under the same name, in two variants that differ in what happens
at zeros; they exist here by name, so that published numbers can be compared with the convention they used.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import make_scorer
from sklearn.utils import Bunch

from contone.exceptions import InputError
from contone.numerics.simplex import kl_divergence
from contone.typing import Array, Data, Matrix
from contone.validation.distributions import check_pair, check_shares

RowMeasure = Callable[[Matrix, Matrix], Array]

PAIRS_AT_ONCE = 1 << 22
"""Pairs of labels, over all rows, that Kendall's tau compares in one go: 32 MB each of several arrays."""


@dataclass(frozen=True)
class Measure:
    """A measure of how close recovered distributions are to the truth.

    Calling it gives the mean over instances; `per_instance` gives one value per row (NaN where the convention
    drops the row). Where `counts` is true, rows of D may also be counts: they are divided by their sums, and a row
    without any is dropped.
    """

    name: str
    title: str
    formula: str
    greater_is_better: bool
    rows: RowMeasure
    counts: bool = False

    def per_instance(self, D: Data, D_hat: Data) -> Array:
        """One value per row, (n,)."""
        return self.rows(*_checked(D, D_hat, counts=self.counts))

    def __call__(self, D: Data, D_hat: Data) -> float:
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


def _checked(D: Data, D_hat: Data, *, counts: bool) -> tuple[Matrix, Matrix]:
    """The truth and the answer; a row of counts as shares, NaN where it has none."""
    if not counts:
        return check_pair(D, D_hat)
    truth = check_shares(D, name="D")
    _, answer = check_pair(np.full(truth.shape, 1.0 / truth.shape[1]), D_hat)
    return truth, answer


def _mean(values: Matrix) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if kept.size else float("nan")


def _relative_difference(D: Matrix, R: Matrix) -> Array:
    """|d - r| / (d + r) elementwise, with 0/0 = 0."""
    total = D + R
    return np.divide(np.abs(D - R), total, out=np.zeros_like(total), where=total > 0)


def measure(
    title: str, formula: str, *, greater_is_better: bool = False, counts: bool = False
) -> Callable[[RowMeasure], Measure]:
    """Make a measure of a function that gives one value per row; it is called as the function is."""

    def made(rows: RowMeasure) -> Measure:
        name = rows.__name__
        rows.__qualname__ = f"{name}.rows"  # where pickle finds the function, since the measure has its name
        return Measure(name, title, formula, greater_is_better, rows, counts)

    return made


@measure("Chebyshev", "max_j |d_j - r_j|")
def chebyshev(D: Matrix, R: Matrix) -> Array:
    return np.abs(D - R).max(axis=1)


@measure("Clark", "sqrt(sum_j (d_j - r_j)^2 / (d_j + r_j)^2)")
def clark(D: Matrix, R: Matrix) -> Array:
    return np.sqrt((_relative_difference(D, R) ** 2).sum(axis=1))


@measure("Canberra", "sum_j |d_j - r_j| / (d_j + r_j)")
def canberra(D: Matrix, R: Matrix) -> Array:
    return _relative_difference(D, R).sum(axis=1)


@measure("KL", "sum_j d_j log(d_j / r_j)")
def kl(D: Matrix, R: Matrix) -> Array:
    return kl_divergence(D, R)


@measure("Cosine", "sum_j d_j r_j / (|d| |r|)", greater_is_better=True)
def cosine(D: Matrix, R: Matrix) -> Array:
    return (D * R).sum(axis=1) / (np.linalg.norm(D, axis=1) * np.linalg.norm(R, axis=1))


@measure("Intersection", "sum_j min(d_j, r_j)", greater_is_better=True)
def intersection(D: Matrix, R: Matrix) -> Array:
    return np.minimum(D, R).sum(axis=1)


@measure("Sorensen", "sum_j |d_j - r_j| / sum_j (d_j + r_j)")
def sorensen(D: Matrix, R: Matrix) -> Array:
    return np.abs(D - R).sum(axis=1) / (D + R).sum(axis=1)


@measure("Euclidean", "sqrt(sum_j (d_j - r_j)^2)")
def euclidean(D: Matrix, R: Matrix) -> Array:
    return np.sqrt(((D - R) ** 2).sum(axis=1))


@measure("Squared chi2", "sum_j (d_j - r_j)^2 / (d_j + r_j)")
def squared_chi2(D: Matrix, R: Matrix) -> Array:
    return (_relative_difference(D, R) * np.abs(D - R)).sum(axis=1)


@measure("Fidelity", "sum_j sqrt(d_j r_j)", greater_is_better=True)
def fidelity(D: Matrix, R: Matrix) -> Array:
    return np.sqrt(D * R).sum(axis=1)


@measure("Jensen-Shannon", "(KL(d || m) + KL(r || m)) / 2 with m = (d + r) / 2")
def jensen_shannon(D: Matrix, R: Matrix) -> Array:
    middle = (D + R) / 2
    return np.maximum(kl_divergence(D, middle) + kl_divergence(R, middle), 0.0) / 2  # rounding may go below 0


@measure("Total variation", "sum_j |d_j - r_j| / 2")
def total_variation(D: Matrix, R: Matrix) -> Array:
    return np.abs(D - R).sum(axis=1) / 2


@measure("Cross entropy", "-sum_j d_j log r_j; rows of d may be counts, divided by their sums", counts=True)
def cross_entropy(D: Matrix, R: Matrix) -> Array:
    with np.errstate(divide="ignore"):
        return -np.where(D == 0, 0.0, D * np.log(np.where(D == 0, 1.0, R))).sum(axis=1)


@measure("Wasserstein", "sum_j |(d_1 + ... + d_j) - (r_1 + ... + r_j)|, labels in order, one step apart")
def wasserstein(D: Matrix, R: Matrix) -> Array:
    return np.abs(np.cumsum(D - R, axis=1)[:, :-1]).sum(axis=1)


@measure("Spearman", "correlation of the ranks of d and r; 0 where all r_j are equal", greater_is_better=True)
def spearman(D: Matrix, R: Matrix) -> Array:
    first, second = (rankdata(A, axis=1) - (A.shape[1] + 1) / 2 for A in (D, R))
    return _correlation((first * second).sum(axis=1), (first**2).sum(axis=1), (second**2).sum(axis=1))


@measure("Kendall", "tau-b of the orders of d and r; 0 where all r_j are equal", greater_is_better=True)
def kendall(D: Matrix, R: Matrix) -> Array:
    size = max(1, PAIRS_AT_ONCE // D.shape[1] ** 2)
    return np.concatenate([_kendall_of_few(D[i : i + size], R[i : i + size]) for i in range(0, len(D), size)])


def _kendall_of_few(D: Matrix, R: Matrix) -> Array:
    first, second = (np.sign(A[:, :, None] - A[:, None, :]) for A in (D, R))
    return _correlation(*((a * b).sum(axis=(1, 2)) for a, b in ((first, second), (first, first), (second, second))))


def _correlation(product: Matrix, truth: Matrix, answer: Matrix) -> Array:
    """product / sqrt(truth answer); 0 for an answer without order, NaN for a truth without one: nothing to recover."""
    found = np.divide(product, np.sqrt(truth * answer), out=np.zeros_like(product), where=truth * answer > 0)
    return np.where(truth > 0, found, np.nan)


@measure("KL, reversed, infinite rows dropped", "sum_j r_j log(r_j / d_j); rows with d_j = 0 < r_j are left out")
def kl_reversed_drop(D: Matrix, R: Matrix) -> Array:
    values = kl_divergence(R, D)
    return np.where(np.isinf(values), np.nan, values)


@measure("KL, reversed, truth clipped", "sum_j r_j log(r_j / max(d_j, 1e-12))")
def kl_reversed_clip(D: Matrix, R: Matrix) -> Array:
    return kl_divergence(R, np.maximum(D, 1e-12))


def top_k(k: int) -> Measure:
    """The measure "is the label of the highest degree among the k highest of the answer?".

    Ties are in random order: the value of a row is the chance, so that the order of the labels does not matter.
    """
    formula = f"chance that argmax_j d_j is among the {k} largest r_j"
    return Measure(f"top{k}", f"Top {k}", formula, True, partial(_among_the_first, k=k))


def _among_the_first(D: Matrix, R: Matrix, k: int) -> Array:
    first = D.max(axis=1, keepdims=True) == D
    above = rankdata(-R, method="min", axis=1) - 1
    tied = rankdata(-R, method="max", axis=1) - above
    return (np.clip((k - above) / tied, 0.0, 1.0) * first).sum(axis=1) / first.sum(axis=1)


MEASURES: dict[str, Measure] = {m.name: m for m in (chebyshev, clark, canberra, kl, cosine, intersection, sorensen)}
"""The measures that `evaluate` reports, in the order of the field's tables."""

_ORDERS = (spearman, kendall, top_k(1), top_k(3))
_DISTANCES = (euclidean, squared_chi2, fidelity, jensen_shannon, total_variation, cross_entropy, wasserstein)
FURTHER: dict[str, Measure] = {m.name: m for m in (*_DISTANCES, *_ORDERS)}
"""The measures that are reported where they are named."""

CONVENTIONS: dict[str, Measure] = {"kl_forward": kl, **{m.name: m for m in (kl_reversed_drop, kl_reversed_clip)}}
"""The readings of "KL" in the literature."""


def get(name: str) -> Measure:
    """The measure of that name, further ones and conventions included."""
    known = {**MEASURES, **FURTHER, **CONVENTIONS}
    if name not in known:
        raise InputError(f"There is no measure {name!r}; there are: {', '.join(known)}.")
    return known[name]


def chosen(measures: str | Measure | Iterable[str | Measure] | None) -> dict[str, Measure]:
    """Measures by name: the seven for None, the further ones too for "all", or those that are named."""
    if measures is None or (isinstance(measures, str) and measures == "all"):
        return MEASURES if measures is None else {**MEASURES, **FURTHER}
    listed = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    if not listed:
        raise InputError("measures: name at least one measure, or 'all'.")
    return {m.name: m for m in (get(m) if isinstance(m, str) else m for m in listed)}


def evaluate(D: Data, D_hat: Data, measures: str | Measure | Iterable[str | Measure] | None = None) -> Bunch:
    """Measures of D^ against the truth D as one record, readable by key and by attribute.

    Parameters
    ----------
    D, D_hat : (n, q)
        The truth and the answer: arrays, frames or tensors, rows on the simplex. Where every measure asked for can
        be taken to counts ("cross_entropy"), rows of D may be counts.
    measures : "all", a name, or names
        What to report; the seven of the field's tables where nothing is given.

    Examples
    --------
    >>> evaluate([[0.5, 0.5]], [[0.75, 0.25]]).chebyshev
    0.25
    >>> evaluate([[0.75, 0.25]], [[1.0, 0.0]], measures=["total_variation", "top1"])
    {'total_variation': 0.25, 'top1': 1.0}
    """
    asked = chosen(measures)
    truth, answer = _checked(D, D_hat, counts=all(m.counts for m in asked.values()))
    return Bunch(**{name: _mean(measure.rows(truth, answer)) for name, measure in asked.items()})


def scorer(name: str) -> Any:
    """A scikit-learn scorer, signed so that more is better: ``cross_val_score(model, X, D, scoring=scorer("kl"))``."""
    measure = get(name)
    return make_scorer(measure, greater_is_better=measure.greater_is_better)

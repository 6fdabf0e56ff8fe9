"""A strong reference for recovery: the score that learners reach which were trained on the truth.

A recovery score means little without its two ends. The lower end is the uniform distribution, which knows nothing. The
upper end is the *limit*: out-of-fold predictions of D from (X, L) by learners that are shown the true D of the other
folds. No enhancer is, and the share of the way between the two ends,

    recovered = (KL_uniform - KL) / (KL_uniform - KL_limit),

can be compared between data sets. The limit is what these learners reach, not a bound: a better learner would lower its
KL, and a method may pass 100 %.

The inputs are L, |L| and X, standardised (its first 40 principal components when d > 60). Predictions are clipped at
1e-4 and renormalised. These learners compete, and the best one in KL(D || D^) is the limit:

    ridge, trees                        ridge regression (with products of labels), and extremely randomised trees
    inversion + ridge, inversion + trees    the same two, shown what `Inversion` makes of (X, L), and predicting what is
                                        left of D after it: they correct an answer that has not seen the truth

`PLAIN` are the first two, the definition of all shares in the documentation; `STRONG` are all four, which the reports
use. The best is chosen by the score that is reported, so that the limit is slightly optimistic.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from contone import measures
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.numerics.simplex import kl_divergence, normalise_rows
from contone.predict.regressor import centred_log_ratio
from contone.typing import Array, Data
from contone.validation.distributions import check_distributions

FLOOR = 1e-4
"""Predictions are clipped here before they are renormalised."""

MAX_FEATURES, N_COMPONENTS = 60, 40
"""With more features than the first, X enters as its second number of principal components."""

MAX_LABELS_WITH_PRODUCTS = 7
"""Up to this many labels, ridge also sees the pairwise products of L."""

ALPHAS = np.logspace(-1, 4, 11)
N_TREES = 200


PLAIN = ("ridge", "trees")
"""The learners that see features and labels."""

STRONG = (*PLAIN, "inversion + ridge", "inversion + trees")
"""All learners: those that correct Inversion's answer, too."""


@dataclass(frozen=True)
class LimitResult:
    """The limit of one data set.

    Attributes
    ----------
    distributions : (n, q)
        Out-of-fold predictions of the best learner, rows on the simplex.
    name : str
        Which one that is.
    scores : dict
        All measures of `distributions` against the truth, by name.
    candidates : dict
        KL(D || D^) of every learner that was tried, by name.
    """

    distributions: np.ndarray
    name: str
    scores: dict[str, float]
    candidates: dict[str, float]


def limit(
    X: Data,
    L: Array,
    D: Data,
    *,
    learners: Sequence[str] = PLAIN,
    n_splits: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LimitResult:
    """The best out-of-fold prediction of D (n, q) from X (n, d) and L (n, q), trained on the truth.

    Parameters
    ----------
    X, L, D : arrays
        Features (n, d), logical labels (n, q) and true distributions (n, q).
    learners : sequence of str, default=("ridge", "trees")
        Names of the learners that compete: `PLAIN`, `STRONG`, or a choice of your own.
    n_splits, seed : int, default=10, 0
        Number of shuffled folds, and the seed of the shuffling, of the trees and of Inversion.
    n_jobs : int or None, default=None
        Threads, as scikit-learn counts them, that grow the trees, which take nearly all of the time. The answer does
        not depend on it, but for rounding.
    """
    unknown = [name for name in learners if name not in STRONG]
    if unknown or not learners:
        raise InputError(f"learners={tuple(learners)!r}: choose from {', '.join(map(repr, STRONG))}.")
    D, L, inputs = check_distributions(D), np.asarray(L, dtype=float), design_matrix(X, L)
    start = _inversion(X, L, seed) if any(name.startswith("inversion") for name in learners) else np.zeros_like(D)
    folds = KFold(min(n_splits, len(D)), shuffle=True, random_state=seed)

    def predict(name: str) -> np.ndarray:
        """Out-of-fold predictions (n, q) of one learner, which may correct Inversion's answer."""
        regressor: Any = ExtraTreesRegressor(
            n_estimators=N_TREES, min_samples_leaf=3, max_features=0.5, random_state=seed, n_jobs=n_jobs
        )
        shown, base = [inputs], np.zeros_like(D)
        if name.endswith("ridge"):
            regressor, shown = RidgeCV(alphas=ALPHAS), [inputs, label_products(L)]
        if name.startswith("inversion"):
            base, shown = start, [*shown, start, centred_log_ratio(start, FLOOR)]
        # scikit-learn wants a vector where there is one target.
        target = D - base if D.shape[1] > 1 else (D - base)[:, 0]
        found = cross_val_predict(regressor, np.hstack(shown), target, cv=folds)
        return np.asarray(to_distributions(found.reshape(len(D), -1) + base))

    answers = {name: predict(name) for name in learners}
    candidates = {name: float(np.mean(kl_divergence(D, answer))) for name, answer in answers.items()}
    best = min(candidates, key=candidates.__getitem__)
    return LimitResult(answers[best], best, dict(measures.evaluate(D, answers[best])), candidates)


def _inversion(X: Data, L: np.ndarray, seed: int) -> np.ndarray:
    """What Inversion makes of X and L, (n, q). It sees no truth, so that every row may be given to every fold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its doubts are said where it stands as a method of its own
        return np.asarray(Inversion(random_state=seed).fit_enhance(X, L), dtype=float)


def mean_of_truth(D: Data) -> np.ndarray:
    """The mean of the true distributions in every row, (n, q): an oracle that knows no instance."""
    D = check_distributions(D)
    return np.tile(D.mean(axis=0), (len(D), 1))


def recovered(kl: float, kl_uniform: float, kl_limit: float) -> float:
    """The share of the way from uniform (0) to the limit (1); NaN where there is no way to go.

    Examples
    --------
    >>> recovered(0.04, kl_uniform=0.10, kl_limit=0.02)
    0.75
    """
    way = kl_uniform - kl_limit
    return (kl_uniform - kl) / way if way > 0 else float("nan")


def design_matrix(X: Data, L: Array) -> np.ndarray:
    """(L, |L|, X standardised), with X as its principal components when it has more than 60 features.

    Scaling and components use all rows: they look at X only, which every enhancer sees in full.
    """
    L = np.asarray(L, dtype=float)
    Z = StandardScaler().fit_transform(X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float))
    if Z.shape[1] > MAX_FEATURES:
        Z = PCA(min(N_COMPONENTS, *Z.shape), random_state=0).fit_transform(Z)
    return np.hstack([L, L.sum(axis=1, keepdims=True), Z])


def label_products(L: np.ndarray) -> Array:
    """Products of all pairs of columns of L (n, q): (n, q (q - 1) / 2), or (n, 0) when q is above 7."""
    q = L.shape[1]
    if q < 2 or q > MAX_LABELS_WITH_PRODUCTS:
        return np.empty((len(L), 0))
    return PolynomialFeatures(2, interaction_only=True, include_bias=False).fit_transform(L)[:, q:]


def to_distributions(prediction: np.ndarray) -> Array:
    """Predictions of a regressor (n, q), or (n,) for one label, clipped at 1e-4 and renormalised."""
    return normalise_rows(np.maximum(prediction.reshape(len(prediction), -1), FLOOR))

"""The predictive experiment: how well does a learner that was trained on recovered distributions predict unseen rows?

On every training fold: degrade the true D to L, enhance (X, L) to R, fit the learner on (X, R), predict the test fold,
and score that against its truth. Beside it stand the same learner trained on the truth and the mean of the training
fold's truth. Of the test fold, nothing but its features is used before the scores are taken.

The *floor* is what the best of several regularised learners reaches that were trained on the truth, measure by measure,
with the standard error of its mean over the folds. A learner without regularisation is no floor: on few rows with many
features (SJAFFE), training it on smoother, recovered distributions gives better predictions than training it on the
truth.
"""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from contone import measures
from contone.base import DistributionLearner, Enhancer
from contone.measurements import CumulativeMass, IntervalRule
from contone.predict import AAKNN, FromRegressor, MaxEnt
from contone.typing import Data, Record

MEASURES = {**measures.MEASURES, measures.kl_reversed_drop.name: measures.kl_reversed_drop}
"""What is reported: the usual measures, and KL as the literature of label enhancement computes it."""


def folds(n: int, n_splits: int = 10, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shuffled folds of n rows: the rows to train on, and those to test on."""
    return list(KFold(n_splits, shuffle=True, random_state=seed).split(np.empty(n)))


def predict_fold(
    X: Data,
    D: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    learner: DistributionLearner,
    enhancer: Enhancer | None = None,
    degradation: IntervalRule | None = None,
    *,
    trained_on: str = "recovered",
) -> np.ndarray:
    """Predictions (m, q) for the test rows.

    By a learner trained on what the enhancer recovers ("recovered") or on D ("truth"), or the mean of D ("mean"). Only
    the rows `train` of D (n, q) are looked at. Estimators are cloned; `degradation` is `CumulativeMass()` where none is
    given.
    """
    known = D[train]
    if trained_on == "mean":
        return np.tile(known.mean(axis=0), (len(test), 1))
    if enhancer is not None and trained_on == "recovered":
        known = clone(enhancer).fit_enhance(X[train], (degradation or CumulativeMass()).apply(known))
    return np.asarray(clone(learner).fit(X[train], known).predict(X[test]))


def predict(
    X: Data,
    D: np.ndarray,
    learner: DistributionLearner,
    enhancer: Enhancer | None = None,
    degradation: IntervalRule | None = None,
    *,
    trained_on: str = "recovered",
    n_splits: int = 10,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Every measure against the truth, fold by fold; see `predict_fold`."""
    answers = []
    for train, test in folds(len(D), n_splits, seed):
        R = predict_fold(X, D, train, test, learner, enhancer, degradation, trained_on=trained_on)
        answers.append((D[test], R))
    return {name: np.array([float(measure(*pair)) for pair in answers]) for name, measure in MEASURES.items()}


class Floor(NamedTuple):
    """The best mean score over the folds by measure, its standard error, and the learner that reached it."""

    scores: dict[str, float]
    standard_errors: dict[str, float]
    learners: dict[str, str]


def floor_learners(seed: int = 0) -> Record:
    """The learners that compete for the floor, by name: linear, local and tree-based, all but one regularised."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ridge = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-1, 4, 11)))
    trees = ExtraTreesRegressor(n_estimators=100, min_samples_leaf=3, max_features=0.5, random_state=seed, n_jobs=1)
    return {
        "MaxEnt": MaxEnt(),
        "MaxEnt, l2 = 0.01": MaxEnt(l2=0.01),
        "ridge": FromRegressor(ridge),
        "ridge of log-ratios": FromRegressor(ridge, target="logratio"),
        "trees": FromRegressor(trees),
        "AA-kNN, k = 20": AAKNN(n_neighbors=20),
    }


def floor(X: Data, D: np.ndarray, *, n_splits: int = 10, seed: int = 0) -> Floor:
    """The floor of X (n, d) and D (n, q), on the same folds as `predict`."""
    by_learner = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that does not converge will not be the best
        for name, learner in floor_learners(seed).items():
            by_learner[name] = predict(X, D, learner, trained_on="truth", n_splits=n_splits, seed=seed)
    found = Floor({}, {}, {})
    for m, measure in MEASURES.items():
        means = {name: float(values[m].mean()) for name, values in by_learner.items()}
        best = (max if measure.greater_is_better else min)(means, key=means.__getitem__)
        found.scores[m], found.learners[m] = means[best], best
        found.standard_errors[m] = float(np.std(by_learner[best][m], ddof=1) / np.sqrt(n_splits))
    return found

"""The predictive experiment: how well does a learner that was trained on recovered distributions predict unseen rows?

On every training fold: degrade the true D to L, enhance (X, L) to R, fit the learner on (X, R), predict the test fold.
What comes out is scored

- against the truth of the test fold, and
- against what the same learner predicts when it is trained on the true D (the paper does not say which of the two it
  reports; the second can come close to zero where the first cannot).

Beside it stand the same learner trained on the truth, the uniform distribution, and the mean of the training fold's
truth. Of the test fold, nothing but its features is used before the scores are taken.

The *floor* is what the best of several regularised learners reaches that were trained on the truth, measure by measure,
with the standard error of its mean over the folds. A learner without regularisation is no floor: on few rows with many
features (SJAFFE), training it on smoother, recovered distributions gives better predictions than training it on the
truth.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
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
"""What a record reports: the usual measures, and KL as the literature of label enhancement computes it."""


def folds(n: int, n_splits: int = 10, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shuffled folds of n rows: the rows to train on, and those to test on."""
    return list(KFold(n_splits, shuffle=True, random_state=seed).split(np.empty(n)))


def predict_fold(
    X: Data,
    D: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    enhancer: Enhancer,
    learner: DistributionLearner,
    degradation: IntervalRule | None = None,
) -> dict[str, np.ndarray]:
    """Predictions for the test rows, (m, q) each, by what they were made from.

    "recovered": the learner trained on the enhancer's answer; "truth": the learner trained on D; "mean": the mean of D;
    "uniform". Only the rows `train` of D (n, q) are looked at. Estimators are cloned; `degradation` is
    `CumulativeMass()` where none is given.
    """
    X_train, D_train = X[train], D[train]
    L = (degradation or CumulativeMass()).apply(D_train)
    R = clone(enhancer).fit_enhance(X_train, L)
    shape = (len(test), D.shape[1])
    return {
        "recovered": clone(learner).fit(X_train, R).predict(X[test]),
        "truth": clone(learner).fit(X_train, D_train).predict(X[test]),
        "mean": np.broadcast_to(D_train.mean(axis=0), shape),
        "uniform": np.full(shape, 1.0 / shape[1]),
    }


def score_fold(D_test: np.ndarray, predictions: dict[str, np.ndarray]) -> list[Record]:
    """One record per prediction and yardstick: the truth, and the learner trained on the truth."""
    yardsticks = {"truth": D_test, "learner_on_truth": predictions["truth"]}
    return [
        {"trained_on": source, "against": against}
        | {name: measure(yardstick, answer) for name, measure in MEASURES.items()}
        for against, yardstick in yardsticks.items()
        for source, answer in predictions.items()
        if not (against == "learner_on_truth" and source == "truth")
    ]


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
    """The floor of X (n, d) and D (n, q): the same folds as `predictive_folds`."""
    by_learner: dict[str, list[dict[str, float]]] = {name: [] for name in floor_learners()}
    for train, test in folds(len(D), n_splits, seed):
        for name, learner in floor_learners(seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that does not converge will not be the best
                answer = learner.fit(X[train], D[train]).predict(X[test])
            by_learner[name].append({m: float(measure(D[test], answer)) for m, measure in MEASURES.items()})
    found = Floor({}, {}, {})
    for m, measure in MEASURES.items():
        values = {name: np.array([scores[m] for scores in scored]) for name, scored in by_learner.items()}
        means = {name: float(of_folds.mean()) for name, of_folds in values.items()}
        best = (max if measure.greater_is_better else min)(means, key=means.__getitem__)
        error = float(np.std(values[best], ddof=1) / np.sqrt(n_splits)) if n_splits > 1 else float("nan")
        found.scores[m], found.standard_errors[m], found.learners[m] = means[best], error, best
    return found


def predictive_folds(
    X: Data,
    D: np.ndarray,
    enhancer: Enhancer,
    learner: DistributionLearner,
    degradation: IntervalRule | None = None,
    *,
    n_splits: int = 10,
    seed: int = 0,
) -> list[Record]:
    """The whole experiment for one enhancer and one learner on X (n, d) and D (n, q): plain records.

    Every record has `fold`, `n_test`, `trained_on` ("recovered", "truth", "mean" or "uniform"), `against` ("truth" or
    "learner_on_truth") and one entry per measure.
    """
    records: list[Record] = []
    for fold, (train, test) in enumerate(folds(len(D), n_splits, seed)):
        predictions = predict_fold(X, D, train, test, enhancer, learner, degradation)
        records += [{"fold": fold, "n_test": len(test), **scored} for scored in score_fold(D[test], predictions)]
    return records


def mean_scores(
    records: Iterable[Record], *, trained_on: str = "recovered", against: str = "truth"
) -> dict[str, float]:
    """The mean of every measure over the folds and repetitions of one kind of record."""
    chosen = [r for r in records if r["trained_on"] == trained_on and r["against"] == against]
    return {name: float(np.mean([r[name] for r in chosen])) for name in MEASURES}

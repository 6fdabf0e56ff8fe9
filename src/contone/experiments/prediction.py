"""The predictive experiment: how well does a learner that was trained on recovered distributions predict unseen rows?

On every training fold: degrade the true D to L, enhance (X, L) to R, fit the learner on (X, R), predict the test fold.
What comes out is scored

- against the truth of the test fold, and
- against what the same learner predicts when it is trained on the true D (the paper does not say which of the two it
  reports; the second can come close to zero where the first cannot).

Beside it stand the learner trained on the truth (the *floor*: what the features allow this learner), the uniform
distribution, and the mean of the training fold's truth. Of the test fold, nothing but its features is used before the
scores are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from contone import measures
from contone.base import DistributionLearner, Enhancer
from contone.degrade import CumulativeMass, Degradation

MEASURES = {**measures.MEASURES, measures.kl_reversed_drop.name: measures.kl_reversed_drop}
"""What a record reports: the usual measures, and KL as the literature of label enhancement computes it."""

Record = dict[str, Any]


class Split(NamedTuple):
    """One fold of one repetition: row numbers."""

    repeat: int
    fold: int
    train: np.ndarray
    test: np.ndarray


def splits(n: int, n_splits: int = 10, n_repeats: int = 1, seed: int = 0) -> Iterator[Split]:
    """Shuffled folds of n rows; repetition r is shuffled with seed + r."""
    for repeat in range(n_repeats):
        folds = KFold(n_splits, shuffle=True, random_state=seed + repeat)
        for fold, (train, test) in enumerate(folds.split(np.empty(n))):
            yield Split(repeat, fold, train, test)


def predict_fold(
    X: Any,
    D: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    enhancer: Enhancer,
    learner: DistributionLearner,
    degradation: Degradation | None = None,
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
    """One record a prediction and yardstick: the truth, and the learner trained on the truth."""
    yardsticks = {"truth": D_test, "learner_on_truth": predictions["truth"]}
    return [
        {"trained_on": source, "against": against}
        | {name: measure(yardstick, answer) for name, measure in MEASURES.items()}
        for against, yardstick in yardsticks.items()
        for source, answer in predictions.items()
        if not (against == "learner_on_truth" and source == "truth")
    ]


def predictive_folds(
    X: Any,
    D: np.ndarray,
    enhancer: Enhancer,
    learner: DistributionLearner,
    degradation: Degradation | None = None,
    *,
    n_splits: int = 10,
    n_repeats: int = 1,
    seed: int = 0,
) -> list[Record]:
    """The whole experiment for one enhancer and one learner on X (n, d) and D (n, q): plain records.

    Every record has `repeat`, `fold`, `n_test`, `trained_on` ("recovered", "truth", "mean" or "uniform"), `against`
    ("truth" or "learner_on_truth") and one entry a measure.
    """
    records: list[Record] = []
    for split in splits(len(D), n_splits, n_repeats, seed):
        predictions = predict_fold(X, D, split.train, split.test, enhancer, learner, degradation)
        head = {"repeat": split.repeat, "fold": split.fold, "n_test": len(split.test)}
        records += [head | record for record in score_fold(D[split.test], predictions)]
    return records


def mean_scores(
    records: Iterable[Record], *, trained_on: str = "recovered", against: str = "truth"
) -> dict[str, float]:
    """The mean of every measure over the folds and repetitions of one kind of record."""
    chosen = [r for r in records if r["trained_on"] == trained_on and r["against"] == against]
    return {name: float(np.mean([r[name] for r in chosen])) for name in MEASURES}

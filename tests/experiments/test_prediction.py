"""The predictive experiment: nothing leaks from the test fold, and the floor is the known one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from contone import AAKNN, Logical, MaxEnt, Temperature, TopK, Uniform, measures
from contone.experiments.prediction import floor, floor_learners, folds, predict, predict_fold

FLOOR = {
    "spoem": (0.0869, 0.1293, 0.1799, 0.0262),
    "alpha": (0.0134, 0.2101, 0.6819, 0.0056),
    "spo5": (0.0915, 0.1843, 0.2831, 0.0315),
    "cdc": (0.0162, 0.2159, 0.6476, 0.0073),
    "cold": (0.0511, 0.1395, 0.2402, 0.0124),
    "diau": (0.0370, 0.2006, 0.4306, 0.0137),
    "dtt": (0.0360, 0.0983, 0.1690, 0.0064),
    "elu": (0.0163, 0.1990, 0.5831, 0.0063),
    "heat": (0.0423, 0.1827, 0.3643, 0.0130),
    "spo": (0.0584, 0.2499, 0.5137, 0.0261),
}
"""Chebyshev, Clark, Canberra and KL(D^ || D) without its infinite rows, of BFGS-LDL with a bias trained on the true D,
10 folds; measured independently."""


@pytest.mark.parametrize("trained_on", ["recovered", "truth", "mean"])
def test_poisoned_test_rows_change_nothing(small, trained_on):
    """NaN in place of the test fold's truth: every prediction is made, and is the same to the last bit."""
    X, _, D = small
    for train, test in folds(len(D), n_splits=4):
        poisoned = D.copy()
        poisoned[test] = np.nan
        clean, dirty = (
            predict_fold(X, truth, train, test, MaxEnt(), Temperature(), trained_on=trained_on)
            for truth in (D, poisoned)
        )
        np.testing.assert_array_equal(clean, dirty)


@pytest.mark.parametrize("trained_on", ["recovered", "truth"])
def test_training_does_not_see_the_test_features(small, trained_on):
    """Poisoned test features change the prediction of the poisoned row, and of no other."""
    X, _, D = small
    train, test = folds(len(D), n_splits=4)[0]
    poisoned = X.copy()
    poisoned[test[0]] += 10.0
    clean, dirty = (
        predict_fold(features, D, train, test, MaxEnt(), Temperature(), trained_on=trained_on)
        for features in (X, poisoned)
    )
    assert np.abs(clean[0] - dirty[0]).max() > 1e-3
    np.testing.assert_allclose(clean[1:], dirty[1:], rtol=1e-12)


def test_every_prediction_written_out(small):
    X, _, D = small
    train, test = np.arange(40), np.arange(40, 60)
    recovered, truth, mean = (
        predict_fold(X, D, train, test, AAKNN(), Logical(), TopK(2), trained_on=name)
        for name in ("recovered", "truth", "mean")
    )
    L = TopK(2).apply(D[:40])
    np.testing.assert_array_equal(recovered, AAKNN().fit(X[:40], L / 2).predict(X[40:]))
    np.testing.assert_array_equal(truth, AAKNN().fit(X[:40], D[:40]).predict(X[40:]))
    np.testing.assert_allclose(mean, np.tile(D[:40].mean(axis=0), (20, 1)))


def test_scores_are_the_mean_over_the_folds_against_the_truth(small):
    X, _, D = small
    answers = [
        (D[test], predict_fold(X, D, train, test, AAKNN(), Temperature())) for train, test in folds(len(D), 3, 1)
    ]
    found = predict(X, D, AAKNN(), Temperature(), n_splits=3, seed=1)
    assert {"kl", "cosine", "kl_reversed_drop"} <= set(found)
    for name, value in found.items():
        assert value == pytest.approx([measures.get(name)(*pair) for pair in answers]), name


def test_an_enhancer_that_says_nothing_gives_uniform_predictions(small):
    X, _, D = small
    tests = [D[test] for _, test in folds(len(D), 3)]
    expected = np.mean([measures.kl(truth, np.full_like(truth, 1 / D.shape[1])) for truth in tests])
    assert predict(X, D, MaxEnt(), Uniform(), n_splits=3)["kl"].mean() == pytest.approx(expected, abs=1e-6)


def test_the_floor_is_the_best_of_its_learners_measure_by_measure(small):
    X, _, D = small
    found = floor(X, D, n_splits=4)
    alone = {name: [] for name in floor_learners()}
    for train, test in folds(len(D), 4):
        for name, learner in floor_learners().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                alone[name].append(learner.fit(X[train], D[train]).predict(X[test]))
    tests = [test for _, test in folds(len(D), 4)]
    for measure in (measures.kl, measures.cosine):
        values = {n: [measure(D[t], R) for t, R in zip(tests, answers, strict=True)] for n, answers in alone.items()}
        best = (max if measure.greater_is_better else min)(values, key=lambda n: np.mean(values[n]))
        assert found.learners[measure.name] == best
        assert found.scores[measure.name] == pytest.approx(np.mean(values[best]))
        expected = np.std(values[best], ddof=1) / 2  # four folds
        assert found.standard_errors[measure.name] == pytest.approx(expected)


def test_folds_partition_the_rows_and_follow_the_seed():
    first, again, other = (folds(23, n_splits=5, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in first])), np.arange(23))
    assert all(not set(train) & set(test) for train, test in first)
    np.testing.assert_array_equal(first[0][1], again[0][1])
    assert set(first[0][1]) != set(other[0][1])


@pytest.mark.parametrize(
    "name", [pytest.param(s, marks=pytest.mark.exhaustive if k % 3 else ()) for k, s in enumerate(FLOOR)]
)
def test_floor_is_the_known_one(real, name):
    X, D = real(f"Yeast_{name}")
    scores = predict(X, D, MaxEnt(), trained_on="truth")
    measured = [scores[m].mean() for m in ("chebyshev", "clark", "canberra", "kl_reversed_drop")]
    np.testing.assert_allclose(measured, FLOOR[name], rtol=0.02)

"""Boosting on degrees gives the trees of weighted copies of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from contone import weighted_rows
from contone.exceptions import InputError
from contone.train import SMALLEST, lightgbm_objective, xgboost_objective

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)).round(1)
D = softmax(X @ RNG.normal(size=(3, 4)) + 0.5 * RNG.normal(size=(400, 4)), axis=1)


@pytest.mark.parametrize("make", [lightgbm_objective, xgboost_objective])
def test_gradient_and_second_derivatives_are_those_of_the_cross_entropy(make):
    scores, weight, step = RNG.normal(size=(5, 4)), np.append(RNG.random(4), 0.0), 1e-5

    def loss(F):
        return -(weight[:, None] * D[:5] * log_softmax(F, axis=1)).sum()

    gradient, second = make(D[:5], weight)(scores, object())
    unit = make(np.full((1, 4), 0.25))(np.zeros((1, 4)), object())[1][0, 0] / (0.25 * 0.75)  # the library's number
    for i, j in np.ndindex(5, 4):
        moved = np.zeros_like(scores)
        moved[i, j] = step
        up, down = loss(scores + moved), loss(scores - moved)
        assert gradient[i, j] == pytest.approx((up - down) / (2 * step), abs=1e-8)
        assert second[i, j] == pytest.approx(unit * (up - 2 * loss(scores) + down) / step**2, abs=1e-4)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_second_derivatives_have_the_factor_of_the_library(q):
    """q / (q - 1) in LightGBM, 2 in XGBoost, of p (1 - p); a single label has none, and the smallest in its place."""
    even = np.full((1, q), 1 / q)
    for make, factor in ((lightgbm_objective, q / (q - 1) if q > 1 else 1.0), (xgboost_objective, 2.0)):
        expected = max(factor * (1 - 1 / q) / q, SMALLEST)
        np.testing.assert_allclose(make(even)(np.zeros((1, q)), object())[1], expected)


def test_labels_first_or_scores_first():
    objective, scores = lightgbm_objective(D[:5]), RNG.normal(size=(5, 4))
    assert np.array_equal(objective(scores, object())[0], objective(np.zeros(5), scores)[0])


@pytest.mark.parametrize("scores", [np.zeros((6, 4)), np.zeros((5, 3)), np.zeros(20)])
def test_other_rows_or_labels_are_refused(scores):
    with pytest.raises(InputError, match="num_class to 4"):
        lightgbm_objective(D[:5])(scores, object())


@pytest.mark.parametrize("weight", [[1.0], [-1.0] * 5, [np.nan] * 5])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(InputError, match="sample_weight"):
        xgboost_objective(D[:5], weight)


def test_lightgbm_has_the_trees_of_weighted_copies():
    lightgbm = pytest.importorskip("lightgbm")
    shared = {
        "num_class": 4, "verbose": -1, "num_leaves": 7, "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 1.1,
        "boost_from_average": False, "num_threads": 1, "deterministic": True, "min_data_in_bin": 1,
    }  # fmt: skip
    copies = weighted_rows(X, D)
    data = lightgbm.Dataset(copies.X, copies.y, weight=copies.sample_weight)
    expected = lightgbm.train({**shared, "objective": "multiclass"}, data, num_boost_round=8).predict(X)
    data = lightgbm.Dataset(X, D.argmax(axis=1))
    booster = lightgbm.train({**shared, "objective": lightgbm_objective(D)}, data, num_boost_round=8)
    np.testing.assert_allclose(softmax(booster.predict(X), axis=1), expected, atol=1e-6)


def test_xgboost_has_the_trees_of_weighted_copies():
    xgboost = pytest.importorskip("xgboost")
    shared = {"num_class": 4, "max_depth": 3, "nthread": 1, "base_score": 0.0, "tree_method": "exact"}
    copies = weighted_rows(X, D)
    data = xgboost.DMatrix(copies.X, copies.y, weight=copies.sample_weight)
    booster = xgboost.train({**shared, "objective": "multi:softprob"}, data, num_boost_round=8)
    expected = booster.predict(xgboost.DMatrix(X))
    data = xgboost.DMatrix(X, D.argmax(axis=1))
    booster = xgboost.train(shared, data, num_boost_round=8, obj=xgboost_objective(D))
    scores = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(softmax(scores, axis=1), expected, atol=1e-5)

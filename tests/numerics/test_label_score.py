"""The score of degrees by 0/1 labels: its ends, what it does not see, and that it is proper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from contone import CumulativeMass, TopK
from contone.numerics.label_score import fit_map, label_score, levels_as_confidences, standardized_logs
from contone.numerics.simplex import softmax


@pytest.fixture(scope="module")
def data():
    """Z (400, 5) and labels that have the chance sigmoid(Z - 0.5)."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 5))
    Z -= Z.mean(axis=1, keepdims=True)
    return Z, (rng.random(Z.shape) < expit(1.5 * Z - 0.5)).astype(float)


@pytest.mark.parametrize("rule", [CumulativeMass(), TopK(2)])
def test_its_ends_are_uniform_degrees_and_a_perfect_order(rule):
    D = softmax(np.random.default_rng(1).normal(size=(100, 4)))
    L = rule.apply(D).astype(float)
    assert label_score(L, np.full_like(D, 0.25)) == 0.0
    assert label_score(L, 1.0 / D / (1.0 / D).sum(axis=1, keepdims=True)) == 0.0  # the wrong order: b >= 0
    assert label_score(L, softmax(3.0 * L)) == pytest.approx(1.0, abs=1e-6)
    assert 0.3 < label_score(L, D) < 1.0


def test_no_temperature_changes_it(data):
    Z, L = data
    found = [label_score(L, softmax(t * Z)) for t in (0.01, 0.3, 1.0, 4.0)]
    np.testing.assert_allclose(found, found[0], rtol=1e-5)


def test_it_is_the_share_of_entropy_that_a_logistic_regression_explains(data):
    Z, L = data
    p = LogisticRegression(C=1e9, tol=1e-8).fit(Z.reshape(-1, 1), L.ravel()).predict_proba(Z.reshape(-1, 1))
    expected = 1.0 - log_loss(L.ravel(), p) / log_loss(L.ravel(), np.full(L.size, L.mean()))
    assert label_score(L, softmax(Z)) == pytest.approx(expected, abs=1e-6)


def test_nothing_scores_better_than_what_made_the_labels(data):
    Z, L = data
    rng = np.random.default_rng(2)
    assert all(
        label_score(L, softmax(Z + 0.5 * rng.normal(size=Z.shape))) < label_score(L, softmax(Z)) for _ in range(9)
    )


def test_a_weak_order_scores_little_but_not_nothing():
    """b is far below 1 for z of unit size, and the score is the gain of a logistic regression all the same."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(3000, 4))
    Z -= Z.mean(axis=1, keepdims=True)
    L = (rng.random(Z.shape) < expit(0.3 * Z)).astype(float)
    assert 0.005 < label_score(L, softmax(Z)) < 0.05


def test_entries_without_a_label_do_not_count(data):
    Z, L = data
    half = np.where(np.arange(len(L))[:, None] < 200, L, np.nan)
    assert label_score(half, softmax(Z)) == pytest.approx(label_score(L[:200], softmax(Z[:200])), abs=1e-7)
    assert label_score(np.full_like(L, np.nan), softmax(Z)) == 0.0
    assert label_score(np.ones_like(L), softmax(Z)) == 0.0


def test_one_line_is_fitted_to_logs_of_unit_mean_square(data):
    Z, _ = data
    asked = np.random.default_rng(3).random(Z.shape) < 0.5
    z = standardized_logs(softmax(0.01 * Z), asked)
    assert np.mean(z**2) == pytest.approx(1.0)
    np.testing.assert_allclose(z, Z[asked] / np.sqrt(np.mean(Z[asked] ** 2)), atol=1e-9)
    np.testing.assert_array_equal(standardized_logs(np.full((3, 4), 0.25), np.ones((3, 4), dtype=bool)), 0.0)
    np.testing.assert_array_equal(standardized_logs(softmax(Z), np.zeros(Z.shape, dtype=bool)), np.zeros(0))


@pytest.mark.parametrize("pull", [0.0, 2.0])
def test_the_map_is_the_best_of_its_kind(data, pull):
    """Against a penalised regression of scikit-learn: two imagined entries at z = 0, and a ridge of pull / 100 on b."""
    Z, L = data
    z, labels = Z[:40].ravel() / Z.std(), L[:40].ravel()
    a, b, surprise = fit_map(z, labels, pull=pull)

    def objective(a, b):
        p, n = expit(a + b * z), len(z)
        imagined = pull * (-np.log(expit(a)) - np.log(expit(-a)) + 0.005 * b * b) / n
        return -np.mean(labels * np.log(p) + (1 - labels) * np.log1p(-p)) + imagined

    assert surprise == pytest.approx(objective(a, b), rel=1e-12)
    for step in ((1e-2, 0.0), (-1e-2, 0.0), (0.0, 1e-2), (0.0, -1e-2)):
        assert objective(a + step[0], b + step[1]) > surprise
    if pull:  # what is imagined keeps both finite, for labels of one kind, too
        a, b, _ = fit_map(z, np.ones_like(z), pull=pull)
        assert a == pytest.approx(np.log((len(z) + pull) / pull), rel=1e-3)
        assert b < 1.0


def test_levels_count_by_their_place_between_the_least_and_the_largest():
    L = np.array([[1.0, 3.0, 5.0], [7.0, 7.0, 7.0], [np.nan, -1.0, 0.0]])
    np.testing.assert_array_equal(levels_as_confidences(L), [[0, 0.5, 1], [np.nan] * 3, [np.nan, 0, 1]])
    L, D = L[::2], softmax(np.nan_to_num(L[::2]))
    assert label_score(L, D) == label_score(levels_as_confidences(L), D)
    assert label_score(L[:1], D[:1]) > label_score(L[:1], D[:1, ::-1]) == 0.0

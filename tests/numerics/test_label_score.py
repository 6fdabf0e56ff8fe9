"""The score of degrees by 0/1 labels: its ends, what it does not see, and that it is proper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from contone import CumulativeMass, TopK
from contone.numerics.label_score import label_score
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


def test_entries_without_a_label_do_not_count(data):
    Z, L = data
    half = np.where(np.arange(len(L))[:, None] < 200, L, np.nan)
    assert label_score(half, softmax(Z)) == pytest.approx(label_score(L[:200], softmax(Z[:200])), abs=1e-7)
    assert label_score(np.full_like(L, np.nan), softmax(Z)) == 0.0
    assert label_score(np.ones_like(L), softmax(Z)) == 0.0

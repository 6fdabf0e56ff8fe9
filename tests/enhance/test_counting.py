"""Counting: shares of the votes, and what a prior makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.linear_model import LogisticRegression

from contone.enhance import counting


@pytest.fixture
def votes():
    """40 items, 3 labels, 6 votes each, from degrees that X explains in part: X (40, 2) and labels (40, 6)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Z = X @ rng.normal(size=(2, 3)) * 1.5 + rng.normal(size=(40, 3))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, np.array([rng.choice(3, size=6, p=d) for d in D])


def counts_of(votes, number):
    """Counts (40, 3) of the first votes of every item."""
    return np.eye(3)[votes[1][:, :number]].sum(axis=1)


def likelihood(counts, a):
    """The log likelihood of counts under Dirichlet priors, up to a constant."""
    whole, total = np.sum(a, axis=-1), counts.sum(axis=1)
    return np.sum(gammaln(whole) - gammaln(whole + total)) + np.sum(gammaln(a + counts) - gammaln(a))


def test_counting_and_the_dirichlet_multinomial(votes):
    counts = counts_of(votes, 4)
    np.testing.assert_allclose(counting.shares(counts), (counts + 1 / 3) / 5)
    found = counting.dirichlet_multinomial(counts)
    # R_ij = (c_ij + a_j) / (4 + s): two rows with different counts of a label give s, and then a.
    i, j = np.argmin(counts[:, 0]), np.argmax(counts[:, 0])
    total = (counts[j, 0] - counts[i, 0]) / (found[j, 0] - found[i, 0])
    a = found[0] * total - counts[0]
    np.testing.assert_allclose(found, (counts + a) / total, atol=1e-9)
    assert a.sum() == pytest.approx(total - 4)
    best = max(likelihood(counts, w * a / a.sum()) for w in np.linspace(0.05, 20, 4000))
    assert likelihood(counts, a) >= best - 1e-6
    for label in range(3):
        for factor in (0.9, 1.1):
            other = a.copy()
            other[label] *= factor
            assert likelihood(counts, other) < likelihood(counts, a)


def test_a_mean_of_its_own_for_every_item_has_the_weight_of_greatest_likelihood(votes):
    counts = counts_of(votes, 4)
    mean = counting.regressed(votes[0], counts)
    found = counting.dirichlet_multinomial(counts, mean)
    # R = (c + s m) / (4 + s), so s = (c - 4 R) / (R - m) in every entry.
    weights = (counts - 4 * found) / (found - mean)
    s = float(np.median(weights))
    np.testing.assert_allclose(weights, s, rtol=1e-6)
    assert all(likelihood(counts, s * mean) >= likelihood(counts, t * s * mean) for t in (0.9, 0.98, 1.02, 1.1))


def test_with_one_answer_per_item_the_weight_of_the_prior_is_said_not_found(votes):
    counts = counts_of(votes, 1)
    shares = (counts.sum(axis=0) + 0.5) / 41.5
    np.testing.assert_allclose(counting.dirichlet_multinomial(counts), (counts + shares) / 2)
    mean = counting.regressed(votes[0], counts)
    np.testing.assert_allclose(counting.dirichlet_multinomial(counts, mean), (counts + 2 * mean) / 3)


def test_a_logistic_regression_tells_an_item_from_the_others(votes):
    counts = counts_of(votes, 3)
    left = counts_of(votes, 6) - counts
    found = counting.regressed(votes[0], counts)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (left * np.log(found)).sum() > (left * np.log(1 / 3)).sum()
    other = counts.copy()
    other[7] = 3, 0, 0
    np.testing.assert_array_equal(counting.regressed(votes[0], other)[7], found[7])


def test_a_regression_is_fitted_to_the_other_folds(votes):
    """By scikit-learn, fold by fold: row i is in fold i mod 5; a label that no other row has keeps the pseudo count."""
    X, counts = votes[0][:12], counts_of(votes, 3)[:12]
    counts[:, 2] = 0.0
    counts[3, 2] = 2.0
    found = counting.regressed(X, counts)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for k in range(5):
        train = np.arange(12) % 5 != k
        rows, labels = np.nonzero(counts[train])
        model = LogisticRegression(max_iter=1000)
        model.fit(scaled[train][rows], labels, sample_weight=counts[train][rows, labels])
        P = np.full((12, 3), 0.01)
        P[:, model.classes_] += model.predict_proba(scaled)
        expected = P / P.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[~train], expected[~train], atol=1e-9)
    one = np.zeros((4, 3))
    one[:, 1] = 2.0  # no fold has seen another label, and there are as many folds as rows
    np.testing.assert_allclose(counting.regressed(X[:4], one), np.tile([0.01, 1.01, 0.01], (4, 1)) / 1.03)


def test_counting_is_an_enhancer_of_votes_and_of_levels(votes):
    X, counts = votes[0], counts_of(votes, 4)
    np.testing.assert_allclose(counting.Counting().fit_enhance(X, counts), counting.shares(counts))
    np.testing.assert_allclose(counting.Counting(lowest=1.0).fit_enhance(X, counts + 1), counting.shares(counts))
    np.testing.assert_allclose(
        counting.Counting("dirichlet").fit_enhance(X, counts), counting.dirichlet_multinomial(counts)
    )
    mean = counting.regressed(X, counts)
    np.testing.assert_allclose(
        counting.Counting("regression").fit_enhance(X, counts), counting.dirichlet_multinomial(counts, mean)
    )


def test_two_votes_about_one_item_tell_the_weight_of_the_prior(votes):
    counts = counts_of(votes, 1)
    counts[0] = 2, 0, 0
    found = counting.dirichlet_multinomial(counts)
    shares = (counts.sum(axis=0) + 0.5) / 42.5
    assert np.abs(found - (counts + shares) / (counts.sum(axis=1, keepdims=True) + 1)).max() > 0.01

"""Counting: shares of the votes, and what a prior makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

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

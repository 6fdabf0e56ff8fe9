"""Features whose mean shares are given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from contone.enhance.inversion.people.matching import SPREADS, MatchedShares
from contone.numerics.simplex import kl_divergence, softmax


@pytest.mark.parametrize(("spread", "loss"), [(SPREADS[1], 1e-6), (1.0, 1.8e-4), (2.5, 6e-3)])
def test_the_mean_shares_around_features_are_those_that_were_given(spread, loss):
    """By integration: softmax of the features and a normal number per label. What is lost is the approximation's."""
    M = np.array([[0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [0.2, 0.3, 0.5], [0.98, 0.01, 0.01], [1 / 3, 1 / 3, 1 / 3]])
    Z = MatchedShares(M).at(spread)
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(25)
    E = spread * np.array(list(itertools.product(nodes, repeat=3)))
    weight = np.prod(list(itertools.product(weights / weights.sum(), repeat=3)), axis=1)
    means = np.stack([weight @ softmax(z + E) for z in Z])
    assert kl_divergence(M, means).max() < loss
    np.testing.assert_allclose(means[-1], 1 / 3, atol=1e-9)
    np.testing.assert_allclose(MatchedShares(7.0 * M).at(spread), Z, atol=1e-12)  # shares of any sum
    assert (np.diff(MatchedShares(M[:1]).at(spread + 0.1) - Z[:1])[0, 0] < 0) == (Z[0, 0] > Z[0, 1])

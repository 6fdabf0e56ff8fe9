"""Features whose mean shares are given."""

from __future__ import annotations

import numpy as np
import pytest

from contone.enhance.inversion.people.matching import MatchedShares
from contone.numerics.simplex import softmax


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.5])
def test_the_mean_shares_around_features_are_those_that_were_given(spread):
    """By simulation: softmax of the features and a normal number per label, on the average."""
    M = np.array([[0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [1 / 3, 1 / 3, 1 / 3]])
    Z = MatchedShares(M).at(spread)
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-9)
    E = spread * np.random.default_rng(0).standard_normal((20_000, 1, 3))
    np.testing.assert_allclose(softmax(Z + np.concatenate([E, -E])).mean(axis=0), M, atol=0.03)
    np.testing.assert_allclose(MatchedShares(7.0 * M).at(spread), Z, atol=1e-12)  # shares of any sum
    assert (np.diff(MatchedShares(M[:1]).at(spread + 0.1) - Z[:1])[0, 0] < 0) == (Z[0, 0] > Z[0, 1])

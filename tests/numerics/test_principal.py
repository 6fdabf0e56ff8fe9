"""The feature map of a linear Gaussian model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from contone import Inversion
from contone.exceptions import LabelWarning
from contone.numerics.principal import principal_map


@pytest.fixture
def X():
    """Four directions, of which rows vary along two: one column is constant, one is the sum of two others."""
    A = np.random.default_rng(0).normal(size=(40, 2))
    return np.column_stack([A, A.sum(axis=1), np.full(40, 3.0)])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_directions_in_which_rows_do_not_vary_are_no_features(X, kind):
    features = principal_map(kind(X), n_components=60)
    assert features.components.shape == (4, 2)
    scores = features(kind(X))
    np.testing.assert_allclose(np.square(scores).sum(axis=1).mean(), 1.0)
    np.testing.assert_allclose(features(kind(X + np.array([0, 0, 0, 1e6]))), scores, atol=1e-9)


def test_rows_that_are_all_alike_have_no_features():
    features = principal_map(np.ones((5, 3)), n_components=2)
    assert features(np.arange(6.0).reshape(2, 3)).shape == (2, 0)


def test_a_feature_without_variance_tells_nothing_of_a_row_far_away():
    X, Y = np.array([[0.0], [9e18], [0.0]]), np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    method = Inversion()
    with pytest.warns(LabelWarning):
        method.fit(X, Y)
    here, far = method.predict([[0.0], [9e18]])
    np.testing.assert_array_equal(here, far)

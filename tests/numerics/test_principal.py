"""The feature map of a linear Gaussian model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from contone import Inversion
from contone.exceptions import LabelWarning
from contone.numerics.scaling import principal_map


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("exact", [True, False])
def test_it_is_the_leading_part_of_the_singular_value_decomposition(kind, exact, monkeypatch):
    """Of the z-scores, with one weight for all; whichever of the ways to it is taken."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(50, 12)) * np.geomspace(1, 30, 12) @ rng.normal(size=(12, 12)), 1)
    X[rng.random(X.shape) < 0.3] = 0.0
    monkeypatch.setattr("contone.numerics.scaling.EXACT", 100 if exact else 0)
    scores = principal_map(kind(X), n_components=4)(kind(X))
    U, s, _ = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0), full_matrices=False)
    expected = (U * s)[:, :4] * np.sqrt(50 / np.sum(s[:4] ** 2))
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), atol=1e-3)
    for unit in (2.0**-560, 2.0**515):  # squares leave floating point
        moved = kind(X * np.where(np.arange(12) % 2, unit, 1.0))
        np.testing.assert_allclose(np.abs(principal_map(moved, n_components=4)(moved)), np.abs(scores), atol=1e-6)
    if exact:  # to rounding, however flat the spectrum is
        flat = rng.normal(size=(90, 60))
        values = np.linalg.eigvalsh(np.corrcoef(flat.T))[::-1][:4]
        found = np.square(principal_map(kind(flat), n_components=4)(kind(flat))).mean(axis=0)
        np.testing.assert_allclose(found, values / values.sum(), rtol=1e-9)
    wide = rng.normal(size=(12, 4)) * [8, 4, 2, 1] @ rng.normal(size=(4, 40)) + 5.0  # fewer rows than columns
    U, s, _ = np.linalg.svd((wide - wide.mean(axis=0)) / wide.std(axis=0), full_matrices=False)
    expected = (U * s)[:, :3] * np.sqrt(12 / np.sum(s[:3] ** 2))
    np.testing.assert_allclose(np.abs(principal_map(kind(wide), 3)(kind(wide))), np.abs(expected), atol=1e-9)
    every = principal_map(kind(X[:8]), n_components=60)  # more columns than rows: all that vary
    assert every.components.shape == (12, 7)
    Q = every(kind(X[:8]))
    Z = (X[:8] - X[:8].mean(axis=0)) / np.where(X[:8].std(axis=0) > 0, X[:8].std(axis=0), 1.0)
    np.testing.assert_allclose(Q @ Q.T * np.sum(Z**2) / 8, Z @ Z.T, atol=1e-8)


def test_entries_of_a_sparse_matrix_that_come_twice_are_one_and_it_stays_as_it_is():
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((30, 5)) < 0.5, rng.normal(size=(30, 5)), 0.0)
    rows, columns = np.nonzero(dense)
    values, both = dense[rows, columns], (np.tile(rows, 2), np.tile(columns, 2))
    twice = sparse.coo_array((np.concatenate([values - 1.0, np.ones(len(values))]), both), shape=dense.shape)
    order = np.argsort(both[0], kind="stable")
    first = np.searchsorted(both[0][order], np.arange(31))
    X = sparse.csr_array((twice.data[order], both[1][order], first), shape=dense.shape)
    assert X.nnz == 2 * len(values)
    found, expected = principal_map(X, 3), principal_map(sparse.csr_array(dense), 3)
    assert X.nnz == 2 * len(values)
    np.testing.assert_allclose(found.scaling, expected.scaling, atol=1e-12)
    np.testing.assert_allclose(np.abs(found.components), np.abs(expected.components), atol=1e-9)

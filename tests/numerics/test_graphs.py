"""Neighbour graphs: weights, normalisation and their edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics.graphs import edge_graph, gaussian_weights, nearest_neighbours, normalize_graph


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def test_neighbours_are_the_nearest_others(X):
    found = nearest_neighbours(X, 5)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(distance, axis=1)[:, :5], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(distance, found.indices, axis=1), found.distances, atol=1e-12)


def test_k_is_cut_and_duplicates_count(X):
    assert nearest_neighbours(X[:4], 10).indices.shape == (4, 3)
    twice = nearest_neighbours(np.vstack([X, X]), 1)
    np.testing.assert_array_equal(twice.indices.ravel(), np.roll(np.arange(80), 40))
    np.testing.assert_array_equal(twice.distances, 0.0)


def test_gaussian_weights_and_their_limit():
    distance = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(gaussian_weights(distance, 2.0), np.exp([-0.0, -0.25, -1.0]))
    np.testing.assert_array_equal(gaussian_weights(distance, 0.0), [1.0, 0.0, 0.0])


def test_normalised_graph_is_the_dense_formula_with_its_spectrum(X):
    found = nearest_neighbours(X, 4)
    W = edge_graph(found, gaussian_weights(found.distances, 1.0)).symmetrize(by="sum")
    graph, degree = normalize_graph(W)
    dense, S = W.matrix.toarray(), graph.matrix
    np.testing.assert_allclose(degree, dense.sum(axis=1))
    np.testing.assert_allclose(S.toarray(), dense / np.sqrt(np.outer(degree, degree)))
    values = np.linalg.eigvalsh(S.toarray())
    assert values.min() >= -1 - 1e-12
    assert values[-1] == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(S @ np.sqrt(degree), np.sqrt(degree), atol=1e-12)  # the null space of I - S


def test_isolated_points_have_no_row_and_no_degree(X):
    found = nearest_neighbours(np.vstack([X, [[1e3, 0, 0]], [[0, 1e9, 0]]]), 3)
    W = edge_graph(found, gaussian_weights(found.distances, 1.0)).symmetrize(by="sum")
    graph, degree = normalize_graph(W)
    S = graph.matrix
    assert (degree[-2:] == 0).all()
    assert S[[40, 41]].nnz == 0
    assert np.isfinite(S.data).all()

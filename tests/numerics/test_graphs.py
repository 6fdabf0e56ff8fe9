"""Neighbour graphs: weights, normalisation and their edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics import graphs
from contone.numerics.graphs import (
    edge_graph,
    gaussian_weights,
    in_order,
    nearest_neighbours,
    neighbour_affinity,
    normalize_graph,
    put_back,
)


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
    # a degree by which one cannot divide without losing all digits is none
    tiny = edge_graph(found, np.full(found.indices.shape, 1e-300)).symmetrize(by="sum")
    assert not normalize_graph(tiny).degree.any()


@pytest.mark.parametrize("sigma", [0.7, "auto"])
def test_another_order_of_the_rows_is_the_same_graph(X, sigma, monkeypatch):
    """A_ij = exp(-d^2 / (2 sigma^2)) where i is near j or j near i, in whichever order neighbours are near."""
    A, width, _, order = neighbour_affinity(X, 4, sigma)
    V = np.random.default_rng(1).normal(size=(40, 2))
    assert in_order(V, order) is put_back(V, order) is V
    found = nearest_neighbours(X, 4)
    near = np.zeros((40, 40), dtype=bool)
    np.put_along_axis(near, found.indices, True, axis=1)
    squares = np.square(X[:, None] - X[None]).sum(axis=2)
    expected = np.where(near | near.T, np.exp(-squares / (2 * width**2)), 0.0) @ V
    np.testing.assert_allclose(A.matmul(V), expected, atol=1e-12)
    shuffled = found._replace(order=np.random.default_rng(2).permutation(40))
    monkeypatch.setattr(graphs, "nearest_neighbours", lambda X, k: shuffled)
    B, same, _, order = neighbour_affinity(X, 4, sigma, local=True)
    assert same == pytest.approx(width)
    np.testing.assert_allclose(put_back(B.matmul(in_order(V, order)), order), expected, atol=1e-12)

"""LLE weights: against the textbook problem, one row at a time; invariance; degenerate rows."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics import lle
from contone.numerics.lle import lle_matrix, lle_weights


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def textbook_weights(X: np.ndarray, i: int, neighbours: np.ndarray, regularization: float) -> np.ndarray:
    """min w^T (G + r trace(G) I) w s.t. sum w = 1, by its KKT system."""
    Z = X[neighbours] - X[i]
    G = Z @ Z.T
    k = len(neighbours)
    kkt = np.ones((k + 1, k + 1))
    kkt[:k, :k] = G + regularization * np.trace(G) * np.eye(k)
    kkt[k, k] = 0.0
    return np.linalg.solve(kkt, np.append(np.zeros(k), 1.0))[:k]


@pytest.mark.parametrize("k", [2, 6])  # fewer neighbours than dimensions, and more
def test_weights_solve_the_textbook_problem(X, k):
    W = lle_weights(X, k, regularization=1e-3).toarray()
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    for i in range(len(X)):
        neighbours = np.argsort(distance[i])[:k]
        np.testing.assert_allclose(W[i, neighbours], textbook_weights(X, i, neighbours, 1e-3), rtol=1e-9)


def test_rows_sum_to_one_and_have_no_self_loop(X):
    W = lle_weights(X, 5)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    assert np.abs(W.diagonal()).max() == 0


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_shift_scale_and_rotation_change_nothing(X, scale):
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    moved = scale * (X @ rotation + 3.0)
    np.testing.assert_allclose(lle_weights(moved, 4).toarray(), lle_weights(X, 4).toarray(), atol=1e-4)


def test_blocks_change_nothing(X, monkeypatch):
    whole = lle_weights(X, 4).toarray()
    monkeypatch.setattr(lle, "BLOCK_ENTRIES", 50)
    np.testing.assert_array_equal(lle_weights(X, 4).toarray(), whole)


def test_affine_functions_of_the_features_are_in_the_null_space():
    # Points in the plane, six neighbours: the unregularised weights reconstruct any affine function.
    X = np.random.default_rng(2).normal(size=(60, 2))
    M = lle_matrix(lle_weights(X, 6, regularization=1e-12))
    U = X @ [[1.0, 2.0], [-3.0, 0.5]] + 4.0
    assert np.abs(M @ U).max() < 1e-6
    assert np.linalg.eigvalsh(M.toarray()).min() > -1e-10


def test_many_neighbours_make_a_dense_matrix_of_the_same_entries(X):
    few, many = lle_weights(X, 6), lle_weights(X, 7)  # 6^2 < 40 < 7^2
    assert not isinstance(lle_matrix(few), np.ndarray)
    A = np.eye(len(X)) - many.toarray()
    M = lle_matrix(many)
    assert isinstance(M, np.ndarray)
    np.testing.assert_allclose(M, A.T @ A, atol=1e-12)


def test_duplicates_and_constant_features_stay_bounded():
    X = np.repeat(np.random.default_rng(3).normal(size=(4, 3)), 5, axis=0)
    W = lle_weights(X, 6)
    assert np.isfinite(W.data).all()
    assert np.abs(W.data).max() < 100
    np.testing.assert_allclose(lle_weights(np.ones((5, 2)), 3).data, 1 / 3)
    assert lle_weights(X[:2], 6).shape == (2, 2)  # k is cut to n - 1

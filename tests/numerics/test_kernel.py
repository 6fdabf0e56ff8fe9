"""The Gaussian kernel in tiles against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from contone.numerics import kernel
from contone.numerics.kernel import (
    gaussian_kernel,
    gaussian_matrix,
    gaussian_operator,
    knn_width,
    mean_pairwise_distance,
)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(57, 4)) + 100.0


@pytest.mark.parametrize("sigma", [0.3, 2.0, 50.0])
def test_kernel_is_its_definition(X, sigma):
    Y = X[:9] + 0.5
    expected = np.exp(-cdist(X, Y, "sqeuclidean") / (2 * sigma**2))
    np.testing.assert_allclose(gaussian_kernel(X, Y, sigma), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("zero_diagonal", [True, False])
@pytest.mark.parametrize("tile", [8, 19, 57, 100])
def test_tiles_give_the_product_with_the_whole_matrix(X, zero_diagonal, tile):
    V = np.random.default_rng(1).normal(size=(57, 3))
    K = gaussian_matrix(X, 1.7, zero_diagonal=zero_diagonal)
    assert np.all(np.diag(K) == (0.0 if zero_diagonal else 1.0))
    tiled = gaussian_operator(X, 1.7, zero_diagonal=zero_diagonal, keep_rows=0, tile=tile)
    kept = gaussian_operator(X, 1.7, zero_diagonal=zero_diagonal)
    np.testing.assert_allclose(tiled(V), K @ V, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kept(V), K @ V)


def test_kept_tiles_change_no_bit(X):
    again = gaussian_operator(X, 1.7, keep_rows=0, tile=5)
    kept = gaussian_operator(X, 1.7, keep_rows=0, keep_tiles_rows=len(X), tile=5)
    for V in np.random.default_rng(4).normal(size=(3, len(X), 2)):
        np.testing.assert_array_equal(kept(V), again(V))


def test_what_may_be_kept_is_computed_once(X, monkeypatch):
    """The matrix up to `keep_rows`, beyond them the tiles up to `keep_tiles_rows`, and else nothing."""
    computed, compute = [], kernel._exp_of_product
    monkeypatch.setattr(
        kernel, "_exp_of_product", lambda left, right: computed.append(len(right)) or compute(left, right)
    )
    n, V = len(X), np.ones((57, 1))
    for keep_rows, keep_tiles_rows, expected in (
        (n, 0, [n]),
        (n - 1, n, [32, 25, 25]),
        (n - 1, n - 1, [32, 25, 25] * 2),
    ):
        product = gaussian_operator(X, 1.7, keep_rows=keep_rows, keep_tiles_rows=keep_tiles_rows, tile=32)
        product(V), product(V)
        assert sorted(computed) == sorted(expected)
        computed.clear()


def test_tiny_affinities_keep_their_digits():
    # exp(-200) is lost in 1 + exp(-200) - 1; setting the diagonal instead of subtracting it keeps it.
    X = np.array([[0.0], [20.0]])
    for keep_rows in (0, 10):
        degree = gaussian_operator(X, 1.0, zero_diagonal=True, keep_rows=keep_rows)(np.ones((2, 1)))
        np.testing.assert_allclose(degree[:, 0], np.exp(-200.0), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_duplicates_have_kernel_one_at_any_scale(scale):
    X = scale * np.random.default_rng(2).normal(size=(5, 3))[[0, 1, 1, 2, 3, 4, 4]]
    K = gaussian_kernel(X, X, scale)
    np.testing.assert_allclose(K[1, 2], 1.0)
    assert K.max() <= 1.0


@pytest.mark.parametrize("tile", [5, 20, 1000])
def test_mean_distance_matches_pdist(X, tile):
    assert mean_pairwise_distance(X, tile=tile) == pytest.approx(pdist(X).mean(), rel=1e-10)


def test_mean_distance_of_equal_rows_is_zero():
    assert mean_pairwise_distance(np.full((4, 2), 3.0)) == 0.0
    assert mean_pairwise_distance(np.zeros((1, 2))) == 0.0


def test_width_is_the_mean_last_distance_and_never_zero():
    assert knn_width(np.array([[1.0, 2.0], [0.0, 4.0]])) == 3.0
    assert knn_width(np.array([[0.0, 0.0], [0.0, 0.0]])) == 1.0


@pytest.mark.parametrize("unit", [2.0**-1030, 2.0**-565, 2.0**513, 2.0**1000])
def test_features_and_width_in_another_unit_have_the_same_kernel(X, unit):
    """Also where squares of the features are beyond floating point."""
    rows = X[:7] - 100.0
    width = mean_pairwise_distance(rows)
    assert mean_pairwise_distance(rows * unit) == pytest.approx(width * unit, rel=1e-9)
    expected = gaussian_kernel(rows, rows[:2], width)
    np.testing.assert_allclose(gaussian_kernel(rows * unit, rows[:2] * unit, width * unit), expected, rtol=1e-6)
    V = np.ones((7, 1))
    tiled = gaussian_operator(rows * unit, width * unit, keep_rows=0)(V)
    np.testing.assert_allclose(tiled, gaussian_operator(rows, width)(V), rtol=1e-6)


@pytest.mark.parametrize("sigma", [1e-300, 5e-324])
def test_a_width_of_nothing_leaves_every_row_alone(X, sigma):
    np.testing.assert_array_equal(gaussian_matrix(X, sigma), np.eye(57))
    np.testing.assert_array_equal(gaussian_kernel(X, X[:1] + 1e300, sigma), 0.0)

"""The thin generalised eigenproblem against SciPy's dense one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from contone.numerics.eigen import fix_signs, thin_generalised_eigen, whitening


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 7)), rng.normal(size=(7, 3))
    return C, 0.3 * X.T @ X + 0.7 * np.eye(7), X.T @ X


def test_agrees_with_the_dense_problem_and_is_b_orthonormal(problem):
    C, B, G = problem
    pairs = thin_generalised_eigen(C, B, G)
    values, vectors = eigh(C @ C.T, B)
    np.testing.assert_allclose(pairs.values, np.maximum(values[::-1], 0.0), atol=1e-12)
    assert pairs.rank == 3
    np.testing.assert_array_equal(pairs.values[3:], 0.0)
    np.testing.assert_allclose(pairs.vectors[:, :3], fix_signs(vectors[:, ::-1][:, :3]), atol=1e-10)
    np.testing.assert_allclose(pairs.vectors.T @ B @ pairs.vectors, np.eye(7), atol=1e-12)


def test_null_part_is_ordered_by_the_second_matrix(problem):
    C, B, G = problem
    V = thin_generalised_eigen(C, B, G).vectors[:, 3:]
    inner = V.T @ G @ V
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), atol=1e-10)
    assert (np.diff(np.diag(inner)) <= 1e-12).all()
    np.testing.assert_allclose(C.T @ V, 0.0, atol=1e-10)


def test_singular_b_and_empty_c(problem):
    C, B, G = problem
    projector = np.diag([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    pairs = thin_generalised_eigen(C, projector @ B @ projector, G)
    assert pairs.vectors.shape == (7, 4)
    assert thin_generalised_eigen(np.zeros((7, 2)), B, G).rank == 0
    K = whitening(B)
    np.testing.assert_allclose(K.T @ B @ K, np.eye(7), atol=1e-12)


def test_signs_make_the_largest_entry_positive():
    V = np.array([[1.0, -3.0, -2.0], [-2.0, 1.0, 2.0]])  # of two as large, the first
    np.testing.assert_array_equal(fix_signs(V), [[-1.0, 3.0, 2.0], [2.0, -1.0, -2.0]])


def test_whitening_takes_no_rounding_of_a_tiny_shift_for_a_direction():
    rng = np.random.default_rng(0)
    for _ in range(50):
        A = rng.normal(size=(5, 3))
        B, b = A.T @ A + np.eye(3), 1e-17 * rng.normal(size=3)
        K = whitening(B, b)
        assert K.shape == (3, 3)
        np.testing.assert_allclose(whitening(B, 1e-200 * b), whitening(B), atol=1e-12)
        np.testing.assert_allclose(K.T @ (B + np.outer(b, b)) @ K, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("reached", ["wholly", "partly", "not at all"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_whitening_with_a_shift_beside_a_singular_matrix(reached, size):
    """K^T (B + b b^T) K = I, with as many columns as B + b b^T has rank, wherever b lies."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 5))
    B = A.T @ A  # of rank 3
    inside, outside = A.T @ rng.normal(size=3), np.linalg.svd(A)[2][4]
    b = size * {"wholly": inside, "partly": inside + outside, "not at all": outside}[reached]
    K = whitening(B, b)
    assert K.shape == (5, 3 if reached == "wholly" else 4)
    np.testing.assert_allclose(K.T @ (B + np.outer(b, b)) @ K, np.eye(K.shape[1]), atol=1e-8)


def test_units_of_rows_do_not_decide_what_is_singular():
    rng = np.random.default_rng(2)
    A, units = rng.normal(size=(30, 4)), np.array([1e-9, 1.0, 1e5, 1e9])
    K = whitening((A * units).T @ (A * units))
    assert K.shape == (4, 4)
    np.testing.assert_allclose((K * units[:, None]).T @ A.T @ A @ (K * units[:, None]), np.eye(4), atol=1e-9)

"""Conjugate gradients and Lanczos quadrature against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics.lanczos import quadrature
from contone.numerics.linear import conjugate_gradient
from contone.runtime import machine


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(40, 40))
    A = M @ M.T / 40 + np.diag(rng.uniform(0.5, 50.0, size=40))
    return A, rng.normal(size=(40, 5))


@pytest.mark.parametrize("preconditioned", [False, True])
def test_solves_all_columns(problem, preconditioned):
    A, B = problem
    solution = conjugate_gradient(lambda V: A @ V, B, diagonal=np.diag(A) if preconditioned else None, tol=1e-12)
    assert solution.converged
    np.testing.assert_allclose(solution.value, np.linalg.solve(A, B), rtol=1e-8, atol=1e-10)


def test_zero_columns_and_finished_columns_stay_put(problem):
    A, B = problem
    B = B.copy()
    B[:, 1] = 0.0
    B[:, 2] = A[:, 7] * 1e9  # columns of very different scale
    solution = conjugate_gradient(lambda V: A @ V, B, tol=1e-12)
    assert np.all(solution.value[:, 1] == 0.0)
    nothing = conjugate_gradient(lambda V: A @ V, 0 * B, tol=0.0)  # what is exact is done, whatever is asked for
    assert (nothing.converged, nothing.residual, nothing.n_iter) == (True, 0.0, 0)
    scale = np.array([1.0, 1.0, 1e9, 1.0, 1.0])
    np.testing.assert_allclose(solution.value / scale, np.linalg.solve(A, B) / scale, atol=1e-10)


def test_too_few_steps_are_reported(problem):
    (A, B), products = problem, []
    solution = conjugate_gradient(lambda V: products.append(1) or A @ V, B, tol=1e-12, max_iter=3)
    assert not solution.converged
    assert solution.n_iter == len(products) == 3
    true = np.linalg.norm(B - A @ solution.value, axis=0) / np.linalg.norm(B, axis=0)
    assert solution.residual == pytest.approx(true.max(), rel=1e-8)


def test_quadrature_gives_quadratic_forms_of_any_function(problem):
    A, B = problem
    values, vectors = np.linalg.eigh(A)
    for f in (np.ones_like, lambda t: t, lambda t: 1.0 / (1.0 + t), np.sqrt):
        expected = np.sum((vectors.T @ B) ** 2 * f(values)[:, None], axis=0)
        np.testing.assert_allclose(quadrature(lambda V: A @ V, B, steps=25)(f), expected, rtol=1e-6)


def test_quadrature_is_exact_where_the_space_is_exhausted():
    A = np.diag([1.0, 2.0, 3.0])
    B = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    forms = quadrature(lambda V: A @ V, B, steps=10)(lambda t: t**2)
    np.testing.assert_allclose(forms, [5.0, 0.0], atol=1e-12)


def test_a_quadrature_ends_when_it_is_enough(problem):
    A, B = problem
    sizes = []

    def enough(found):
        sizes.append(found.nodes.shape)
        return len(sizes) == 4

    found = quadrature(lambda V: A @ V, B, enough=enough)
    assert sizes == [(5, r) for r in (1, 2, 3, 4)]
    np.testing.assert_array_equal(found.nodes, quadrature(lambda V: A @ V, B, steps=4).nodes)


def test_a_quadrature_takes_many_functions_at_once(problem):
    A, B = problem
    forms, powers = quadrature(lambda V: A @ V, B), np.array([1.0, 2.0])
    both = forms(lambda t: t[..., None] ** powers)
    np.testing.assert_allclose(both, np.stack([forms(lambda t, p=p: t**p) for p in powers], axis=1))


def test_large_problems_are_solved_in_pieces_with_the_same_answer(problem, monkeypatch):
    A, B = problem
    whole = conjugate_gradient(lambda V: A @ V, B, diagonal=np.diag(A), tol=1e-12)
    forms = quadrature(lambda V: A @ V, B, steps=8)
    monkeypatch.setattr(machine, "PIECE_ROWS", 7)
    parts = conjugate_gradient(lambda V: A @ V, B, diagonal=np.diag(A), tol=1e-12)
    assert parts.n_iter == whole.n_iter
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-9)
    np.testing.assert_allclose(quadrature(lambda V: A @ V, B, steps=8)(np.sqrt), forms(np.sqrt), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_residuals_are_relative_whatever_the_unit(problem, unit):
    A, B = problem
    expected, found = (conjugate_gradient(lambda V: A @ V, s * B, tol=1e-6) for s in (1.0, unit))
    assert found.n_iter == expected.n_iter
    assert found.residual == pytest.approx(expected.residual)
    np.testing.assert_allclose(found.value, unit * expected.value)

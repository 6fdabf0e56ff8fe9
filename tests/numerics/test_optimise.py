"""Adam by its first steps and its limit, and parameters that go into one vector and come back."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics.optimise import adam, join, lbfgs, split


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    gradient = np.array([3.0, -1e-3, 200.0])
    moved = adam(lambda w: (0.0, gradient), np.zeros(3), learning_rate=0.1, max_iter=1).value
    np.testing.assert_allclose(moved, -0.1 * np.sign(gradient), rtol=1e-4)


def test_adam_is_the_recursion_in_print():
    """Kingma and Ba, Algorithm 1, on a quadratic."""
    target = np.array([1.0, -2.0])
    w, m, v = np.zeros(2), np.zeros(2), np.zeros(2)
    for step in range(1, 31):
        g = w - target
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.05 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    found = adam(lambda w: (0.0, w - target), np.zeros(2), learning_rate=0.05, max_iter=30)
    np.testing.assert_allclose(found.value, w, rtol=1e-12)
    assert found.n_iter == 30


def test_adam_finds_the_minimum_of_a_quadratic():
    target = np.array([[1.0, -2.0], [0.5, 3.0]])
    found = adam(
        lambda w: (float(np.sum((w - target) ** 2)), 2 * (w - target)), 0 * target, learning_rate=0.05, max_iter=2000
    )
    np.testing.assert_allclose(found.value, target, atol=1e-4)
    assert found.residual < 1e-3


def test_lbfgs_finds_the_minimum_and_says_where_it_ran_out_of_steps():
    rng = np.random.default_rng(0)
    A, B = np.diag(np.geomspace(1.0, 1e4, 6)), rng.normal(size=(6, 2))
    quadratic = lambda W: (0.5 * float(np.sum(W * (A @ W))) - float(np.sum(B * W)), A @ W - B)  # noqa: E731
    found = lbfgs(quadratic, np.zeros((6, 2)), tol=1e-9, max_iter=500)
    assert found.converged
    np.testing.assert_allclose(found.value, np.linalg.solve(A, B), atol=1e-8)
    assert found.objective == pytest.approx(-0.5 * float(np.sum(B * np.linalg.solve(A, B))))
    assert found.residual == pytest.approx(np.abs(A @ found.value - B).max(), abs=1e-12)
    short = lbfgs(quadratic, np.zeros((6, 2)), tol=1e-9, max_iter=2)
    assert (short.converged, short.n_iter) == (False, 2)


def test_split_undoes_join():
    parts = [np.arange(6.0).reshape(2, 3), np.array([7.0]), np.zeros((0, 4)), np.arange(3.0)]
    again = split(join(parts), [part.shape for part in parts])
    for part, copy in zip(parts, again, strict=True):
        np.testing.assert_array_equal(part, copy)

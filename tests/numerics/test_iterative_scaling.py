"""Improved iterative scaling: the series against plain sums, the roots against their equation, the objective's fall."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics.iterative_scaling import (
    Anderson,
    Moments,
    improved_iterative_scaling,
    series_order,
    softmax_and_log_partition,
    solve_steps,
)


def problem(kind: str, n: int = 40, d: int = 5, q: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d), D (n, q) of a kind that has caused trouble elsewhere."""
    rng = np.random.default_rng(3)
    X, D = rng.normal(size=(n, d)), rng.dirichlet(np.ones(q), size=n)
    if kind == "positive":
        X = np.abs(X)
    elif kind == "zero feature and zero row":
        X[:, 2], X[7] = 0.0, 0.0
    elif kind == "all zero":
        X[:] = 0.0
    elif kind == "rows of very different size":
        X *= np.exp(3 * rng.normal(size=(n, 1)))
    elif kind == "tiny":
        X *= 1e-8
    elif kind == "huge":
        X *= 1e8
    elif kind == "one class a row":
        D = np.eye(q)[rng.integers(q, size=n)]
    elif kind == "a label without mass":
        X, D = np.abs(X), np.hstack([D[:, :-1] / D[:, :-1].sum(axis=1, keepdims=True), np.zeros((n, 1))])
    return X, D


KINDS = (
    "either sign",
    "positive",
    "zero feature and zero row",
    "all zero",
    "rows of very different size",
    "tiny",
    "huge",
    "one class a row",
    "a label without mass",
)


def expected_directly(X: np.ndarray, P: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """1/n sum_i p_ij x_ik exp(delta_kj sgn(x_ik) s_i) for all k, j, written out."""
    s = np.abs(X).sum(axis=1)
    growth = np.exp(delta[None] * np.sign(X)[:, :, None] * s[:, None, None])
    return np.einsum("ij,ik,ikj->kj", P, X, growth) / len(X)


@pytest.mark.parametrize("kind", ["either sign", "positive", "rows of very different size", "huge"])
def test_series_equals_the_sum_of_exponentials(kind):
    X, D = problem(kind)
    moments = Moments(X.T)
    delta = np.random.default_rng(0).uniform(-1, 1, size=(X.shape[1], D.shape[1])) * moments.max_delta
    value, slope = moments.expected(moments.of(D.T), delta)
    now, _ = moments.expected(moments.of(D.T), np.zeros((X.shape[1], D.shape[1])))
    np.testing.assert_allclose(now, X.T @ D / len(X), atol=1e-15 * np.abs(X).max())
    scale = np.abs(X).mean() * np.e**2
    np.testing.assert_allclose(value, expected_directly(X, D, delta), atol=1e-11 * scale)
    h = 1e-5 * moments.max_delta
    change = expected_directly(X, D, delta + h) - expected_directly(X, D, delta - h)
    np.testing.assert_allclose(slope, change / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.05, 0.5, 1.0])
def test_series_order_bounds_the_tail(radius):
    order = series_order(radius)
    tail, term = 0.0, 1.0
    for m in range(1, 40):
        term *= radius / m
        tail += term if m >= order else 0.0
    assert tail <= 2e-12
    assert order <= 15


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_roots_or_stop_at_the_bound_on_the_side_of_the_root(kind, penalty):
    X, D = problem(kind)
    Theta = np.random.default_rng(1).normal(size=(X.shape[1], D.shape[1])) / max(np.abs(X).max(), 1e-300)
    P, _ = softmax_and_log_partition(Theta.T @ X.T)
    moments, target = Moments(X.T), X.T @ D / len(X)
    delta = solve_steps(moments.of(P), moments, target, Theta, penalty, start=np.zeros_like(Theta))
    excess = expected_directly(X, P.T, delta) + penalty * (Theta + delta) - target
    scale = np.abs(X).mean() + penalty * np.abs(Theta).max()
    root = np.abs(excess) <= 1e-8 * scale
    bound = moments.max_delta
    assert np.all(root | ((delta == bound) & (excess < 0)) | ((delta == -bound) & (excess > 0)))


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("start", ["zeros", "eye"])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_never_rises(kind, penalty, start, accelerate):
    X, D = problem(kind)
    Theta = np.zeros((5, 3)) if start == "zeros" else np.eye(5, 3)
    solution = improved_iterative_scaling(X, D, Theta, penalty=penalty, accelerate=accelerate, max_iter=60, tol=0.0)
    path = np.array(solution.info["objective"])
    assert np.isfinite(path).all()
    assert np.diff(path).max(initial=0.0) <= 1e-12 * max(1.0, np.abs(path).max())


def test_a_feature_that_is_zero_everywhere_keeps_its_weight():
    X, D = problem("zero feature and zero row")
    solution = improved_iterative_scaling(X, D, np.eye(5, 3), max_iter=20)
    np.testing.assert_allclose(solution.value[2], [-1 / 3, -1 / 3, 2 / 3])  # of (0, 0, 1), up to a common shift


def test_without_features_the_penalty_alone_counts():
    """f is then log q + l2 / 2 |Theta|^2: the weights, which nothing holds, go to zero."""
    X, D = problem("all zero")
    solution = improved_iterative_scaling(X, D, np.eye(5, 3), penalty=0.5)
    assert solution.converged
    np.testing.assert_allclose(solution.value, 0.0, atol=1e-12)
    assert solution.objective == pytest.approx(np.log(3))
    exact = improved_iterative_scaling(X, D, np.zeros((5, 3)), tol=0.0)  # what is exact is done, whatever is asked for
    assert (exact.converged, exact.residual, exact.n_iter) == (True, 0.0, 0)
    start = improved_iterative_scaling(X, D, np.eye(5, 3), penalty=0.5, max_iter=0)
    assert start.residual == pytest.approx(0.5 * 2 / 3)  # a feature without a size counts as one of size 1


def test_converged_moments_of_model_and_data_agree_with_and_without_acceleration():
    X, D = problem("either sign")
    plain, accelerated = (
        improved_iterative_scaling(X, D, np.zeros((5, 3)), accelerate=accelerate, max_iter=5000, tol=1e-9)
        for accelerate in (False, True)
    )
    for solution in (plain, accelerated):
        assert solution.converged
        P, _ = softmax_and_log_partition(solution.value.T @ X.T)
        np.testing.assert_allclose(P @ X / 40, D.T @ X / 40, atol=1e-8)
    np.testing.assert_allclose(accelerated.value, plain.value, atol=1e-6)
    assert accelerated.n_iter < plain.n_iter / 3


@pytest.mark.parametrize("d", [1, 4])
def test_anderson_solves_an_affine_fixed_point_one_step_after_the_dimensions(d):
    rng = np.random.default_rng(0)
    A, b = 0.9 * np.linalg.qr(rng.normal(size=(d, d)))[0], rng.normal(size=d)
    x, extrapolation = np.zeros((d, 1)), Anderson()
    for _ in range(d + 1):
        x = extrapolation.next(x, A @ x + b[:, None])
    np.testing.assert_allclose(x[:, 0], np.linalg.solve(np.eye(d) - A, b), rtol=1e-8)


def test_residual_above_tolerance_is_reported_as_not_converged():
    X, D = problem("either sign")
    solution = improved_iterative_scaling(X, D, np.zeros((5, 3)), max_iter=2, tol=1e-9)
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.residual > 1e-9

"""Low-rank representation: the reduced iteration against the textbook one, the gap, and both closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from contone.numerics.lowrank import (
    beta_interval,
    dual_bound,
    inexact_alm,
    low_rank_representation,
    lrr_objective,
    middle_beta,
    row_space,
    shrink_rows,
    shrink_singular_values,
)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)) @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(30, 6))


def textbook_alm(X: np.ndarray, beta: float, n_iter: int) -> tuple[np.ndarray, float]:
    """The ALM of Liu et al. on columns, n x n throughout, with full SVDs; and by how much constraints are violated."""
    A = X.T
    d, n = A.shape
    C, E, Y1, Y2, mu = np.zeros((n, n)), np.zeros((d, n)), np.zeros((d, n)), np.zeros((n, n)), 1e-6
    inverse = np.linalg.inv(A.T @ A + np.eye(n))
    for _ in range(n_iter):
        U, s, Vt = np.linalg.svd(C + Y2 / mu)
        J = U @ np.diag(np.maximum(s - 1 / mu, 0)) @ Vt
        C = inverse @ (A.T @ (A - E) + J + (A.T @ Y1 - Y2) / mu)
        R = A - A @ C + Y1 / mu
        norms = np.linalg.norm(R, axis=0)
        E = R * np.maximum(1 - beta / mu / norms, 0)
        Y1 += mu * (A - A @ C - E)
        Y2 += mu * (C - J)
        mu *= 1.1
    T = np.linalg.svd(A)[0].T @ A
    return C, max(np.abs(A - A @ C - E).max() / np.abs(T).max(), np.abs(C - J).max())


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
def test_reduced_alm_is_the_textbook_alm(X, beta):
    solution = inexact_alm(X, beta)
    Q, Z = solution.value
    expected, left = textbook_alm(X, beta, solution.n_iter)
    np.testing.assert_allclose(Q @ Z.T, expected, atol=1e-6)
    assert solution.converged
    assert 0.2 < left / solution.residual < 5.0  # largest entries in another basis
    assert 1e-10 < solution.residual < 1e-8  # it ends at the first step that is near enough
    assert 0 <= solution.info["gap"] < 1
    V, S = row_space(X)
    minimum = low_rank_representation(X, beta, tol=1e-6, max_iter=20_000).objective
    assert solution.objective == pytest.approx(lrr_objective(V * S, S, Z, beta))
    assert solution.objective * (1 - solution.info["gap"]) <= minimum * (1 + 1e-6)


@pytest.mark.parametrize("position", [0.2, 0.5, 0.8])
def test_the_minimum_is_certified_and_nothing_nearby_is_lower(X, position):
    V, S = row_space(X)
    lowest, highest = beta_interval(V, S)
    beta = lowest ** (1 - position) * highest**position
    solution = low_rank_representation(X, beta, tol=1e-6, max_iter=20_000)
    assert solution.converged
    assert solution.residual <= 1e-6
    T, Z = V * S, solution.value.Z
    assert solution.objective == pytest.approx(lrr_objective(T, S, Z, beta))
    rng = np.random.default_rng(1)
    for step in (1e-3, 1e-1):
        moved = Z + step * rng.normal(size=Z.shape)
        assert lrr_objective(T, S, moved, beta) >= solution.objective * (1 - 1e-6)


@pytest.mark.parametrize("position", [0.2, 0.7])
def test_one_direction_leaves_a_problem_in_one_number_per_row(position):
    """min |z| + beta sum |t_i - s z_i|, whose minimum is below 1: rows follow up to a common bound."""
    t = np.random.default_rng(2).normal(size=12)
    V, S = row_space(t[:, None])
    lowest, highest = beta_interval(V, S)
    beta = lowest ** (1 - position) * highest**position
    found = low_rank_representation(t[:, None], beta, tol=1e-6, max_iter=20_000)
    # Where a row is not reached, its subgradient is beta s: all such |z_i| / |z| are alike.
    bounds = np.linspace(0, np.abs(V).max(), 20_001)
    Z = np.minimum(np.abs(V), bounds)  # (n, bounds)
    values = np.sqrt((Z**2).sum(axis=0)) + beta * S[0] * (np.abs(V) - Z).sum(axis=0)
    assert found.converged
    assert found.objective == pytest.approx(values.min(), rel=1e-5)
    assert values.min() < 1


def test_two_solvers_meet_when_the_penalty_grows_slowly(X):
    beta = 2 * middle_beta(X)
    exact = low_rank_representation(X, beta, tol=1e-7, max_iter=20_000)
    alm = inexact_alm(X, beta, rho=1.003, max_iter=20_000)
    assert exact.objective <= alm.objective * (1 + 1e-7)
    assert alm.objective == pytest.approx(exact.objective, rel=1e-3)


def test_closed_forms_beyond_the_interval(X):
    lowest, highest = beta_interval(*row_space(X))
    assert (low_rank_representation(X, 0.99 * lowest).value.Z == 0).all()
    Q, Z = low_rank_representation(X, 1.01 * highest).value
    V, _ = row_space(X)
    np.testing.assert_allclose(Q @ Z.T, V @ V.T, atol=1e-12)
    np.testing.assert_allclose(Q @ (Z.T @ X), X, atol=1e-10)
    # The interval is tight: inside it, neither is optimal.
    V, S = row_space(X)
    inside = low_rank_representation(X, 1.3 * lowest, tol=1e-8, max_iter=20_000).objective
    assert inside < lrr_objective(V * S, S, 0 * V, 1.3 * lowest) - 1e-6
    inside = low_rank_representation(X, 0.6 * highest, tol=1e-8, max_iter=20_000).objective
    assert inside < lrr_objective(V * S, S, V, 0.6 * highest) - 1e-6


def test_alm_reaches_the_closed_form_for_large_beta(X):
    Q, Z = inexact_alm(X, 100.0).value
    V, _ = row_space(X)
    np.testing.assert_allclose(Q @ Z.T, V @ V.T, atol=1e-3)


def test_dual_bound_is_below_the_objective(X):
    V, S = row_space(X)
    rng = np.random.default_rng(0)
    for _ in range(5):
        bound = dual_bound(V * S, S, rng.normal(size=V.shape), 0.1)
        assert bound <= lrr_objective(V * S, S, rng.normal(size=V.shape), 0.1)


def test_shrinkage_is_the_proximal_operator():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 4))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(shrink_singular_values(A, 1.5), (U * np.maximum(s - 1.5, 0)) @ Vt, atol=1e-12)
    E = shrink_rows(A, 1.0)
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), np.maximum(np.linalg.norm(A, axis=1) - 1.0, 0.0))
    assert (shrink_rows(np.zeros((2, 3)), 1.0) == 0).all()


@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.ones((2, 1)), np.eye(4)[:, :2]])
def test_degenerate_features(X):
    for solution in (low_rank_representation(X, 0.5), inexact_alm(X, 0.5)):
        assert np.isfinite(solution.value.Z).all()
        assert solution.converged
        if not X.any():
            assert solution.objective == 0.0
            assert solution.info.get("gap", 0.0) == 0.0


@pytest.mark.parametrize(("position", "most"), [(0.2, 120), (0.5, 60), (0.8, 380)])
def test_balancing_the_penalty_pays_and_units_do_not_matter(X, position, most):
    """Without it, 170, 40 and 490 iterations are needed; with it 90, 40 and 280."""
    needed = []
    for unit in (1e-3, 1.0, 30.0):
        lowest, highest = beta_interval(*row_space(unit * X))
        found = low_rank_representation(unit * X, lowest ** (1 - position) * highest**position, tol=1e-5, max_iter=5000)
        assert found.converged
        needed.append(found.n_iter)
    assert max(needed) <= most
    assert min(needed) == max(needed)

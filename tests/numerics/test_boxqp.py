"""Bound-constrained QPs: against two reference solvers, the KKT conditions, and the limits that have closed forms."""

from __future__ import annotations

import clarabel
import numpy as np
import proxsuite
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear

from contone.numerics import boxqp
from contone.numerics.boxqp import solve_box_qp


def problem(n: int, q: int, seed: int, condition: float = 1e3):
    rng = np.random.default_rng(seed)
    A = sp.csr_array(rng.random((n, n)) * (rng.random((n, n)) < 6 / n))
    H = sp.csr_array(A.T @ A + sp.diags_array(np.full(n, 1.0 / condition)))
    B = rng.normal(size=(n, q))
    centre = rng.normal(size=(n, q))
    lower, upper = centre - rng.uniform(0, 1, (n, q)), centre + rng.uniform(0, 1, (n, q))
    lower[rng.random((n, q)) < 0.3] = -np.inf
    upper[rng.random((n, q)) < 0.3] = np.inf
    return H, B, lower, upper


def kkt_residual(H, B: np.ndarray, lower: np.ndarray, upper: np.ndarray, U: np.ndarray) -> float:
    """max |U - clip(U - (H U - B)/h)| over the size of the problem's data: 0 exactly at the minimiser."""
    h = H.diagonal().max()
    finite = np.abs(np.concatenate([lower, upper]))
    size = max(finite[np.isfinite(finite)].max(initial=0.0), np.abs(B).max() / h) or 1.0
    return float(np.abs(U - np.clip(U - (H @ U - B) / h, lower, upper)).max(initial=0.0) / size)


@pytest.mark.parametrize(("dense_limit", "sparse_row"), [(0, -1), (1000, -1), (0, 1000)], ids=["cg", "dense", "sparse"])
@pytest.mark.parametrize("n", [1, 7, 120])
@pytest.mark.parametrize("seed", range(4))
def test_kkt_conditions_hold(n, seed, dense_limit, sparse_row, monkeypatch):
    monkeypatch.setattr(boxqp, "DENSE_LIMIT", dense_limit)
    monkeypatch.setattr(boxqp, "SPARSE_ROW", sparse_row)
    H, B, lower, upper = problem(n, 3, seed)
    solution = solve_box_qp(H, B, lower, upper, tol=1e-9)
    U = solution.value
    assert solution.converged
    columns = [[A[:, [j]] for A in (B, lower, upper, U)] for j in range(3)]
    assert solution.residual == pytest.approx(max(kkt_residual(H, *column) for column in columns), rel=1e-6, abs=1e-15)
    assert solution.objective == pytest.approx(np.trace(U.T @ (H @ U)) / 2 - np.trace(B.T @ U))
    assert (lower <= U).all()
    assert (upper >= U).all()
    multiplier = H @ U - B
    inside = (lower < U) & (upper > U)
    size = np.abs(B).max()
    assert np.abs(multiplier[inside]).max(initial=0) < 1e-7 * size
    assert multiplier[(lower == U) & (lower < upper)].min(initial=0) > -1e-7 * size
    assert multiplier[(upper == U) & (lower < upper)].max(initial=0) < 1e-7 * size


def test_two_reference_solvers_meet():
    n = 40
    H, B, lower, upper = problem(n, 2, seed=5)
    U = solve_box_qp(H, B, lower, upper).value
    for j in range(2):
        prox = proxsuite.proxqp.dense.QP(n, 0, n)
        prox.settings.eps_abs = 1e-10
        bound_below, bound_above = np.maximum(lower[:, j], -1e20), np.minimum(upper[:, j], 1e20)
        prox.init(H.toarray(), -B[:, j], None, None, np.eye(n), bound_below, bound_above)
        prox.solve()
        np.testing.assert_allclose(U[:, j], prox.results.x, atol=1e-6)
        np.testing.assert_allclose(U[:, j], by_clarabel(H, B[:, j], lower[:, j], upper[:, j]), atol=1e-5)


def by_clarabel(H, b, lower, upper):
    eye = np.eye(len(b))
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    A = sp.csc_matrix(np.vstack([eye[has_upper], -eye[has_lower]]))
    right = np.concatenate([upper[has_upper], -lower[has_lower]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(right))]
    solver = clarabel.DefaultSolver(sp.csc_matrix(sp.triu(sp.csc_matrix(H))), -b, A, right, cones, settings)
    return np.array(solver.solve().x)


def test_bounded_least_squares_by_scipy():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 12)), rng.normal(size=30)
    lower, upper = np.full(12, -0.05), np.full(12, 0.1)
    expected = lsq_linear(A, y, (lower, upper), tol=1e-14).x
    U = solve_box_qp(sp.csr_array(A.T @ A), (A.T @ y)[:, None], lower[:, None], upper[:, None]).value[:, 0]
    np.testing.assert_allclose(U, expected, atol=1e-8)


def test_without_bounds_it_is_a_linear_system_and_with_equal_bounds_a_constant():
    H, B, lower, _ = problem(20, 3, seed=1)
    free = np.full_like(lower, np.inf)
    np.testing.assert_allclose(solve_box_qp(H, B, -free, free).value, np.linalg.solve(H.toarray(), B), rtol=1e-8)
    pinned = np.ones_like(B)
    held = solve_box_qp(H, B, pinned, pinned, tol=0.0)
    np.testing.assert_array_equal(held.value, pinned)
    assert (held.converged, held.residual, held.n_iter) == (
        True,
        0.0,
        0,
    )  # what is exact is done, whatever is asked for
    nothing = solve_box_qp(0 * H, 0 * B, -free, free)
    assert (nothing.converged, nothing.objective) == (True, 0.0)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scaling_data_and_bounds_scales_the_answer(scale):
    H, B, lower, upper = problem(50, 2, seed=2)
    U = solve_box_qp(H, B, lower, upper).value
    np.testing.assert_allclose(solve_box_qp(H, scale * B, scale * lower, scale * upper).value, scale * U, rtol=1e-6)
    np.testing.assert_allclose(solve_box_qp(scale * H, scale * B, lower, upper).value, U, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_ill_conditioned_problems_terminate(seed):
    H, B, lower, upper = problem(80, 4, seed=seed, condition=1e9)
    solution = solve_box_qp(H, B, np.maximum(lower, -5.0), np.minimum(upper, 5.0))
    assert solution.converged
    assert solution.n_iter < 100


def test_too_few_iterations_are_reported():
    H, B, lower, upper = problem(120, 1, seed=0)
    solution = solve_box_qp(H, B, lower, upper, max_iter=1)
    assert not solution.converged
    assert solution.residual > 1e-9
    assert (solution.value >= lower).all()


def test_a_smooth_surface_with_few_neighbours_is_solved_to_the_end():
    # Exchanging what has the wrong sign, entry by entry, would take hundreds of steps here.
    from contone import datasets
    from contone.numerics.lle import lle_matrix, lle_weights

    data = datasets.artificial()
    X, relevant = data.X[::2], data.D[::2] > 1 / 3
    H = sp.csr_array(2.0 * lle_matrix(lle_weights(X, 4)) + 2e-6 * sp.eye_array(len(X)))
    lower, upper = np.where(relevant, 0.1, -np.inf), np.where(relevant, np.inf, -0.1)
    solution = solve_box_qp(H, np.zeros(lower.shape), lower, upper)
    assert solution.converged
    assert solution.n_iter < 250
    assert kkt_residual(H, np.zeros(lower.shape), lower, upper, solution.value) <= 1e-9


def test_a_dense_matrix_gives_the_same_answer():
    H, B, lower, upper = problem(90, 7, seed=3)
    expected = solve_box_qp(H, B, lower, upper)
    solution = solve_box_qp(H.toarray(), B, lower, upper)
    assert solution.converged
    assert kkt_residual(H, B, lower, upper, solution.value) <= 1e-9
    assert (lower <= solution.value).all()
    assert (upper >= solution.value).all()
    np.testing.assert_allclose(solution.value, expected.value, atol=1e-6)

"""The QP on masked simplices: certificates, reference solvers, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from contone.augment import simplex_qp as qp
from contone.augment.simplex_qp import Programme, _certificate, _half_gradient, _Point, minimise_on_simplices
from contone.backends.numpy.graph import NumpyGraph
from contone.runtime import machine


def random_programme(seed: int, n: int = 60, q: int = 4, density: float = 0.6, pull: float = 0.3) -> Programme:
    """A symmetric S with spectral radius 1, a random mask and a random linear term."""
    rng = np.random.default_rng(seed)
    W = sp.csr_array(rng.random((n, n)) * (rng.random((n, n)) < 0.15))
    W = (W + W.T + sp.diags_array(np.full(n, 1e-3))).tocsr()
    root = 1.0 / np.sqrt(W.sum(axis=1))
    S = sp.csr_array(sp.diags_array(root) @ W @ sp.diags_array(root))
    mask = rng.random((n, q)) < density
    mask[np.arange(n), rng.integers(0, q, n)] = True
    return Programme(NumpyGraph(S), pull * rng.normal(size=(n, q)), mask, 7.0)


def equal_shares(programme: Programme) -> np.ndarray:
    return programme.mask / programme.mask.sum(axis=1, keepdims=True)


class CountedGraph(NumpyGraph):
    """A graph that notes every product."""

    def __init__(self, matrix, calls: list[int]) -> None:
        super().__init__(matrix)
        self.calls = calls

    def over_rows(self, *arguments, **options):
        self.calls.append(1)
        return super().over_rows(*arguments, **options)


def reference(programme: Programme, solver: str) -> np.ndarray:
    """F by a general QP solver, from the standard form min 1/2 x^T P x + c^T x, A x = 1, x >= 0."""
    n, q = programme.mask.shape
    rows, labels = np.nonzero(programme.mask)
    T = 2.0 * (np.eye(n) - programme.S.matrix.toarray())
    P = T[np.ix_(rows, rows)] * (labels[:, None] == labels[None, :])
    c, m = -2.0 * programme.C[rows, labels], rows.size
    A = (rows[None, :] == np.arange(n)[:, None]).astype(float)
    if solver == "proxqp":
        proxsuite = pytest.importorskip("proxsuite")
        problem = proxsuite.proxqp.dense.QP(m, n, m)
        problem.settings.eps_abs, problem.settings.eps_rel, problem.settings.max_iter = 1e-11, 0.0, 100_000
        problem.init(P, c, A, np.ones(n), np.eye(m), np.zeros(m), np.full(m, 1e20))
        problem.solve()
        x = problem.results.x
    else:
        clarabel = pytest.importorskip("clarabel")
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
        x = np.asarray(
            clarabel.DefaultSolver(
                sp.csc_matrix(np.triu(P)),
                c,
                sp.csc_matrix(np.vstack([A, -np.eye(m)])),
                np.concatenate([np.ones(n), np.zeros(m)]),
                [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(m)],
                settings,
            )
            .solve()
            .x
        )
    F = np.zeros((n, q))
    F[rows, labels] = x
    return F


def optimality(programme: Programme, F: np.ndarray) -> tuple[float, float]:
    """The objective at F and the gap that certifies it."""
    return _certificate(programme, _Point(F, _half_gradient(programme, F)))


def kkt_residual(programme: Programme, F: np.ndarray) -> float:
    """Largest violation of: the gradient is one constant on the support of a row, and no less elsewhere on its mask."""
    H = F - programme.S.matmul(F) - programme.C
    multiplier = np.where(programme.mask, H, np.inf).min(axis=1, keepdims=True)
    return float(np.max(F * (H - multiplier), where=programme.mask, initial=0.0))


@pytest.mark.parametrize("seed", range(6))
def test_kkt_feasibility_and_certificate(seed):
    programme = random_programme(seed, pull=[0.05, 0.3, 2.0][seed % 3])
    found = minimise_on_simplices(programme, equal_shares(programme), tol=1e-12)
    F = found.value
    assert found.converged
    assert kkt_residual(programme, F) < 1e-9
    assert (F >= 0).all()
    assert not F[~programme.mask].any()
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-12)
    objective = float(np.sum(F * (F - programme.S.matmul(F))) - 2 * np.sum(F * programme.C)) + 7.0
    assert found.objective == pytest.approx(objective, abs=1e-11)
    assert optimality(programme, F)[0] == pytest.approx(found.objective, abs=1e-11)


@pytest.mark.parametrize("solver", ["proxqp", "clarabel"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_general_solvers(seed, solver):
    programme = random_programme(seed, n=40)
    found = minimise_on_simplices(programme, equal_shares(programme), tol=1e-14)
    F = reference(programme, solver)
    objective = float(np.sum(F * (F - programme.S.matmul(F))) - 2 * np.sum(F * programme.C)) + 7.0
    assert found.objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(found.value, F, atol=1e-6)


def test_gap_bounds_the_error_of_any_feasible_point():
    programme = random_programme(3)
    best = minimise_on_simplices(programme, equal_shares(programme)).objective
    rng = np.random.default_rng(0)
    for _ in range(20):
        F = rng.dirichlet(np.ones(4), size=60) * programme.mask
        F /= F.sum(axis=1, keepdims=True)
        objective, gap = optimality(programme, F)
        assert -1e-12 <= objective - best <= gap


def test_fista_alone_finds_the_same_minimum(monkeypatch):
    programme = random_programme(4, pull=1.0)
    both = minimise_on_simplices(programme, equal_shares(programme), tol=1e-13)
    monkeypatch.setattr(qp, "_descend_on_face", lambda programme, point, *rest: (point, 0, False))
    alone = minimise_on_simplices(programme, equal_shares(programme), tol=1e-13)
    assert alone.converged
    np.testing.assert_allclose(alone.value, both.value, atol=1e-6)
    assert alone.objective == pytest.approx(both.objective, rel=1e-12)
    # Runs that get longer and longer end where the iterations do.
    assert minimise_on_simplices(programme, equal_shares(programme), tol=0.0, max_iter=100).n_iter == 100


def test_a_graph_of_loops_makes_the_programme_linear():
    """With S = I all that counts is the pull: the mass of a row goes to its largest."""
    programme = random_programme(7)
    n = len(programme.C)
    found = minimise_on_simplices(programme._replace(S=NumpyGraph(sp.eye_array(n))), equal_shares(programme))
    best = np.where(programme.mask, programme.C, -np.inf).argmax(axis=1)
    np.testing.assert_allclose(found.value, np.eye(programme.C.shape[1])[best], atol=1e-9)
    assert found.objective == pytest.approx(7.0 - 2.0 * programme.C[np.arange(n), best].sum())


@pytest.mark.parametrize("length", [1.0, 0.25])
def test_a_part_of_the_way_ends_on_the_face(length):
    programme = random_programme(8)
    uneven = programme.mask * (1.0 + np.random.default_rng(0).random((2, *programme.mask.shape)))
    start, inside = uneven / uneven.sum(axis=2, keepdims=True)
    out = np.empty_like(start)
    qp._project_part_way(out, start, inside, length)
    np.testing.assert_allclose(out, start + length * (inside - start), atol=1e-14)
    qp._project_part_way(out, start, start + programme.C, 1.0)
    np.testing.assert_allclose(out.sum(axis=1), 1.0)
    assert (out[start == 0] == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_momentum_pays_and_never_lets_the_objective_rise_for_long(seed):
    """30 steps with momentum come at least ten times nearer than 30 without; momentum that leads uphill is dropped."""
    programme = random_programme(seed, pull=0.02)
    start = qp._Point(equal_shares(programme), qp._half_gradient(programme, equal_shares(programme)))
    plain = start
    for _ in range(30):
        plain = qp._fista(programme, plain, 1)
    gaps = [qp._certificate(programme, qp._fista(programme, start, n))[1] for n in (30, 60, 120)]
    assert gaps[0] < 0.1 * qp._certificate(programme, plain)[1]
    assert gaps[2] < 1e-3 * gaps[1] < 1e-6 * gaps[0]


@pytest.mark.parametrize("pull", [0.02, 2.0])
def test_the_number_of_products_is_bounded(pull):
    """Iterations are products with S: no more than asked for, but for the last steps of a round."""
    programme = random_programme(6, pull=pull)
    for most in (1, 2, 5, 10, 20, 40, 200, 300):
        calls = []
        counted = CountedGraph(programme.S.matrix, calls)
        found = minimise_on_simplices(programme._replace(S=counted), equal_shares(programme), tol=0.0, max_iter=most)
        assert found.n_iter == len(calls)
        assert found.n_iter <= most + 8


def minimum_on_the_face(programme: Programme, F: np.ndarray) -> np.ndarray:
    """The minimiser with the support of F, rows that sum to 1 and entries of any sign, by its normal equations."""
    rows, labels = np.nonzero(F > 0)
    n, m = len(F), len(rows)
    T = np.eye(n) - programme.S.matrix.toarray()
    Q = T[np.ix_(rows, rows)] * (labels[:, None] == labels[None, :])
    A = (rows[None, :] == np.arange(n)[:, None]).astype(float)
    system = np.block([[Q, A.T], [A, np.zeros((n, n))]])
    solved = np.linalg.solve(system, np.concatenate([programme.C[rows, labels], np.ones(n)]))
    out = np.zeros_like(F)
    out[rows, labels] = solved[:m]
    return out


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_conjugate_gradients_reach_the_minimum_on_a_face(unit):
    """To the share of the first residual that is asked for, and not further; F - E and C may have any unit."""
    programme = random_programme(3)
    start = equal_shares(programme)
    programme = programme._replace(C=unit * programme.C)
    point = qp._Point(start, qp._half_gradient(programme, start))
    expected = minimum_on_the_face(programme, start)
    F, H, products = qp._conjugate_gradients(programme.S, point, 0.0, 1e-11, 500)
    np.testing.assert_allclose(F, expected, atol=1e-8 * max(1.0, np.abs(expected).max()))
    np.testing.assert_allclose(H, qp._half_gradient(programme, F), atol=1e-9 * unit + 1e-9)
    support, size = (start > 0).astype(float), (start > 0).sum(axis=1)
    lengths = [float(np.linalg.norm(qp._onto_face(-point.H, support, size)))]
    for most in range(1, products + 1):
        F, H, used = qp._conjugate_gradients(programme.S, point, 0.0, 1e-11, most)
        assert used == most
        lengths.append(float(np.linalg.norm(qp._onto_face(-H, support, size))))
    coarse = qp._conjugate_gradients(programme.S, point, 0.0, 1e-3, 500)[2]
    assert lengths[coarse] <= 1.001e-3 * lengths[0] < lengths[coarse - 1]
    to_target = qp._conjugate_gradients(programme.S, point, 0.1 * lengths[0], 1e-11, 500)[2]
    assert lengths[to_target] <= 0.1001 * lengths[0] < lengths[to_target - 1]


@pytest.mark.parametrize("pull", [0.02, 0.3, 2.0])
def test_a_face_is_left_at_a_lower_point_or_not_at_all(pull):
    """The minimum on the face where it is feasible; else the first of the projected points that lowers f."""
    programme = random_programme(9, pull=pull)
    rng, ends = np.random.default_rng(0), []
    for _ in range(12):
        F = rng.dirichlet(np.ones(4), size=60) * programme.mask
        F /= F.sum(axis=1, keepdims=True)
        point = qp._Point(F, qp._half_gradient(programme, F))
        free = qp._conjugate_gradients(programme.S, point, 0.0, 1e-3, 30)[0]
        tried = [np.empty_like(F) for _ in qp.PROJECTED_LENGTHS]
        for out, length in zip(tried, qp.PROJECTED_LENGTHS, strict=True):
            qp._project_part_way(out, F, free, length)
        lower = [T for T in tried if optimality(programme, T)[0] < optimality(programme, F)[0]]
        found, _, inside = qp._descend_on_face(programme, point, 0.0, 1e-3, 30)
        assert inside == (free >= 0).all()
        np.testing.assert_array_equal(found.F, free if inside else [*lower, F][0])
        np.testing.assert_allclose(found.H, qp._half_gradient(programme, found.F), atol=1e-12)
        ends.append(inside)
    assert any(ends) == (pull == 0.02)


def test_conjugate_gradients_get_what_is_left_of_the_iterations(monkeypatch):
    """On a long chain they would take hundreds of products."""
    n = 400
    W = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    root = 1.0 / np.sqrt(W.sum(axis=1))
    S = sp.csr_array(sp.diags_array(root) @ W @ sp.diags_array(root))
    mask, asked, alone = np.ones((n, 2), dtype=bool), [], qp._conjugate_gradients
    pull = np.column_stack([np.linspace(-1e-6, 1e-6, n), np.zeros(n)])
    programme = Programme(NumpyGraph(S), pull, mask)
    monkeypatch.setattr(qp, "_conjugate_gradients", lambda *a: asked.append(a[2:]) or alone(*a))
    found = minimise_on_simplices(programme, equal_shares(programme), tol=0.0, max_iter=60)
    assert asked[0] == (0.0, qp.FACE_REDUCTION, 59)
    assert found.n_iter <= 60 + 8
    asked.clear()
    objective = minimise_on_simplices(programme._replace(constant=50.0), equal_shares(programme), tol=1e-9).objective
    # a residual R on the face leaves a gap of 2 <R, F - F*>, and no row of F - F* is much longer than 1
    assert asked[0][0] * 2 * math.sqrt(n) == pytest.approx(1e-9 * objective, rel=1e-3)


@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_a_problem_in_pieces_has_the_same_answer(monkeypatch, n_threads):
    programme = random_programme(4, n=90)
    whole = minimise_on_simplices(programme, equal_shares(programme))
    monkeypatch.setattr(machine, "PIECE_ROWS", 16)
    monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
    programme = programme._replace(S=NumpyGraph(programme.S.matrix))  # cut into the new pieces
    parts = minimise_on_simplices(programme, equal_shares(programme))
    np.testing.assert_allclose(parts.value, whole.value, atol=1e-7)
    assert parts.objective == pytest.approx(whole.objective, rel=1e-12)


def test_identity_graph_is_flat_and_no_graph_is_a_projection():
    programme = random_programme(5)
    n = programme.mask.shape[0]
    none = programme._replace(S=NumpyGraph(sp.csr_array((n, n))), constant=0.0)
    from contone.numerics.simplex import project_masked_simplex

    found = minimise_on_simplices(none, equal_shares(none), tol=1e-14)
    np.testing.assert_allclose(found.value, project_masked_simplex(programme.C, programme.mask), atol=1e-10)
    flat = Programme(NumpyGraph(sp.eye_array(n)), np.zeros_like(programme.C), programme.mask)
    start = equal_shares(flat)
    np.testing.assert_array_equal(minimise_on_simplices(flat, start).value, start)


def test_running_out_of_iterations_is_reported():
    programme = random_programme(6)
    found = minimise_on_simplices(programme, equal_shares(programme), tol=1e-15, max_iter=3)
    assert not found.converged
    assert found.residual > 1e-15
    np.testing.assert_allclose(found.value.sum(axis=1), 1.0, atol=1e-12)


def test_torch_tensors_give_the_same_answer():
    torch = pytest.importorskip("torch")
    programme = random_programme(7)
    S = programme.S.matrix
    from contone.backends.torch.graph import from_rows

    parts = (torch.from_numpy(part) for part in (S.indptr, S.indices, S.data))
    moved = Programme(from_rows(*parts), torch.from_numpy(programme.C), torch.from_numpy(programme.mask), 7.0)
    found = minimise_on_simplices(moved, torch.from_numpy(equal_shares(programme)), tol=1e-12)
    expected = minimise_on_simplices(programme, equal_shares(programme), tol=1e-12)
    np.testing.assert_allclose(found.value.numpy(), expected.value, atol=1e-8)

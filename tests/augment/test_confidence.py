"""Label confidence: the paper's QP, its edge cases and its definition where the minimiser is not unique."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from contone import CumulativeMass, LabelConfidence
from contone.augment.confidence import _settle_flat_directions, confidence_graph, solve_confidence
from contone.exceptions import LabelWarning
from contone.numerics.graphs import nearest_neighbours


def dense_objective(X, F, k, sigma):
    """1/2 sum_ij w_ij ||f_i / sqrt(d_i) - f_j / sqrt(d_j)||^2, written out as in Eq. 2."""
    n = len(X)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    order = np.argsort(distance + np.diag(np.full(n, np.inf)), axis=1)[:, :k]
    W = np.zeros((n, n))
    np.put_along_axis(W, order, np.exp(-(np.take_along_axis(distance, order, axis=1) ** 2) / sigma**2), axis=1)
    W = W + W.T
    G = F / np.sqrt(W.sum(axis=1))[:, None]
    return 0.5 * float(np.sum(W * np.sum((G[:, None] - G[None]) ** 2, axis=2)))


def random_labels(rng, n, q, density):
    L = (rng.random((n, q)) < density).astype(float)
    L[np.arange(n), rng.integers(0, q, n)] = 1.0
    return L


def test_objective_is_the_papers_and_the_answer_is_feasible(small):
    X, L, _ = small
    found = LabelConfidence(n_neighbors=5, sigma=1.3).fit(X, L)
    F, solution = found.label_distributions_, found.solution_
    assert solution.objective == pytest.approx(dense_objective(X, F, 5, 1.3), rel=1e-10)
    assert solution.converged
    assert solution.residual <= 1e-12
    assert not F[L == 0].any()
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-12)
    one = L.sum(axis=1) == 1
    np.testing.assert_array_equal(F[one], L[one])
    assert solution.info["single_label_rows"] == one.sum()


def test_gradient_conditions_on_the_whole_problem(small):
    X, L, _ = small
    F = LabelConfidence().fit_enhance(X, L)
    neighbours = nearest_neighbours(X, 10)
    S = confidence_graph(neighbours, neighbours.distances[:, -1].mean()).S
    H = F - S.matmul(F)
    lowest = np.where(L > 0, H, np.inf).min(axis=1, keepdims=True)
    assert np.max(F * (H - lowest), where=L > 0, initial=0.0) < 1e-9


def test_no_feasible_direction_improves(small):
    X, L, _ = small
    found = LabelConfidence(n_neighbors=4).fit(X, L)
    rng = np.random.default_rng(0)
    for step in (1e-1, 1e-3, 1e-5):
        G = rng.dirichlet(np.ones(4), size=60) * L
        G = (1 - step) * found.label_distributions_ + step * G / G.sum(axis=1, keepdims=True)
        neighbours = nearest_neighbours(X, 4)
        S = confidence_graph(neighbours, neighbours.distances[:, -1].mean()).S
        assert np.sum(G * (G - S.matmul(G))) >= found.solution_.objective - 1e-12


@pytest.mark.parametrize("name", ["Yeast_spo5", "SJAFFE"])
def test_agrees_with_clarabel_on_real_data(real, name):
    clarabel = pytest.importorskip("clarabel")
    import scipy.sparse as sp

    X, D = real(name)
    X, D = X[:200], D[:200]
    L = CumulativeMass().apply(D).astype(float)
    found = LabelConfidence(tol=1e-14).fit(X, L)
    neighbours = nearest_neighbours(X, 10)
    S = confidence_graph(neighbours, neighbours.distances[:, -1].mean()).S.matrix.toarray()
    rows, labels = np.nonzero(L)
    m = rows.size
    P = 2.0 * (np.eye(200) - S)[np.ix_(rows, rows)] * (labels[:, None] == labels[None, :])
    A = (rows[None, :] == np.arange(200)[:, None]).astype(float)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.ZeroConeT(200), clarabel.NonnegativeConeT(m)]
    G, h = sp.csc_matrix(np.vstack([A, -np.eye(m)])), np.concatenate([np.ones(200), np.zeros(m)])
    answer = clarabel.DefaultSolver(sp.csc_matrix(np.triu(P)), np.zeros(m), G, h, cones, settings).solve()
    assert found.solution_.objective == pytest.approx(answer.obj_val, rel=1e-9)
    assert found.solution_.info["flat_directions"] == 0
    np.testing.assert_allclose(found.label_distributions_[rows, labels], answer.x, atol=1e-6)


def test_permuting_rows_and_labels_permutes_the_answer(small):
    X, L, _ = small
    rng = np.random.default_rng(1)
    rows, labels = rng.permutation(60), rng.permutation(4)
    F = LabelConfidence(tol=1e-14).fit_enhance(X, L)
    G = LabelConfidence(tol=1e-14).fit_enhance(X[rows], L[rows][:, labels])
    np.testing.assert_allclose(G, F[rows][:, labels], atol=1e-8)


def test_scale_and_shift_of_features_do_not_matter(small):
    X, L, _ = small
    F = LabelConfidence(tol=1e-14).fit_enhance(X, L)
    np.testing.assert_allclose(LabelConfidence(tol=1e-14).fit_enhance(1e3 * X + 5.0, L), F, atol=1e-7)


def test_confidences_as_labels_count_by_their_support(small):
    X, L, D = small
    soft = L * D
    soft /= soft.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(LabelConfidence().fit_enhance(X, soft), LabelConfidence().fit_enhance(X, L))


def test_more_neighbours_than_rows_duplicates_and_identical_rows():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(4, 2)), 3, axis=0)
    L = random_labels(rng, 12, 3, 0.6)
    F = LabelConfidence(n_neighbors=50).fit_enhance(X, L)
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-12)
    same = LabelConfidence().fit(np.zeros((6, 2)), random_labels(np.random.default_rng(0), 6, 3, 0.4))
    assert same.solution_.info["sigma"] == 0.0
    assert np.isfinite(same.label_distributions_).all()


def test_isolated_rows_share_equally_and_are_counted():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(20, 2)), [[1e6, 0.0]]])
    L = random_labels(rng, 21, 3, 0.5)
    L[-1] = [1, 1, 0]
    found = LabelConfidence(n_neighbors=3, sigma=1.0).fit(X, L)
    np.testing.assert_array_equal(found.label_distributions_[-1], [0.5, 0.5, 0.0])
    assert found.solution_.info["isolated_rows"] == 1
    alone = LabelConfidence(n_neighbors=3, sigma=1.0).fit_enhance(X[:-1], L[:-1])
    np.testing.assert_allclose(found.label_distributions_[:-1], alone, atol=1e-6)


def test_flat_directions_are_counted_and_settled_nearest_to_equal_shares():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(15, 2)), rng.normal(size=(15, 2)) + 100.0])
    L = np.zeros((30, 4))
    L[:15, :2] = 1.0  # labels 0 and 1 are relevant to all of the first component: one flat direction
    L[:15, 2] = rng.random(15) < 0.5
    L[15:, 3] = 1.0
    L[15:, 0] = rng.random(15) < 0.5
    neighbours = nearest_neighbours(X, 4)
    graph = confidence_graph(neighbours, float(neighbours.distances[:, -1].mean()))
    found = solve_confidence(graph, L > 0, tol=1e-13, max_iter=10_000)
    assert found.info["components"] == 2
    assert found.info["flat_directions"] == 1
    F, equal, root = found.value, L / L.sum(axis=1, keepdims=True), np.sqrt(graph.degree)
    # Moving along sqrt(d) (e_0 - e_1) leaves the objective alone and leads away from equal shares.
    for step in (-1e-3, 1e-3):
        moved = F.copy()
        moved[:15, :2] += step * np.outer(root[:15], [1.0, -1.0])
        assert np.sum(moved * (moved - graph.S.matmul(moved))) == pytest.approx(found.objective, abs=1e-12)
        assert np.sum((moved - equal) ** 2) > np.sum((F - equal) ** 2)
    # By symmetry of the two labels, the nearest minimiser treats them alike.
    np.testing.assert_allclose(F[:15, 0], F[:15, 1], atol=1e-7)
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-12)
    # Whichever minimiser a solver stops at, the one that is returned is the same.
    component = np.repeat([0, 1], 15)
    for step in (0.5, -1.0):  # as far as the bound F >= 0 lets it go
        moved = F.copy()
        along = step * np.outer(root[:15], [1.0, -1.0]) * (F[:15, :2] / root[:15, None]).min()
        moved[:15, :2] += along
        settled = moved.copy()
        assert _settle_flat_directions(settled, equal, root, L > 0, component, np.ones(30, dtype=bool)) == 1
        np.testing.assert_allclose(settled, F, atol=1e-12)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_all_labels_relevant_everywhere_gives_equal_shares():
    X = np.random.default_rng(5).normal(size=(20, 2))
    found = LabelConfidence().fit(X, np.ones((20, 3)))
    np.testing.assert_allclose(found.label_distributions_, 1 / 3, atol=1e-12)
    assert found.solution_.info["flat_directions"] == 2


def test_one_label_and_few_iterations():
    X = np.random.default_rng(6).normal(size=(10, 2))
    with pytest.warns(LabelWarning):
        np.testing.assert_array_equal(LabelConfidence().fit_enhance(X, np.ones((10, 1))), 1.0)
    L = random_labels(np.random.default_rng(7), 10, 3, 0.6)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LabelConfidence(max_iter=1).fit(X, L)


def test_sigma_rules(small):
    X, L, _ = small
    distances = nearest_neighbours(X, 10).distances[:, -1]
    assert LabelConfidence().fit(X, L).solution_.info["sigma"] == pytest.approx(distances.mean())
    median = LabelConfidence(sigma="median_knn").fit(X, L)
    assert median.solution_.info["sigma"] == pytest.approx(np.median(distances))

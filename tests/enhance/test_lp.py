"""LP: the linear solve against the iteration it replaces, its limits, and the published rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from contone import CumulativeMass, measures
from contone.enhance.lp import LP, build_affinity, propagate
from contone.numerics.graphs import nearest_neighbours
from contone.numerics.kernel import gaussian_operator
from contone.numerics.simplex import normalise_rows, softmax

MEASURES = ("chebyshev", "clark", "canberra", "kl_reversed_clip", "cosine")
# The LP rows of the LCdr paper: Chebyshev, Clark, Canberra, KL, cosine.
PUBLISHED = {
    "spoem": (0.1286, 0.2062, 0.2803, 0.0449, 0.9664),
    "alpha": (0.0243, 0.8226, 3.3451, 0.0668, 0.9445),
    "spo5": (0.1040, 0.2453, 0.3617, 0.0363, 0.9740),
    "cdc": (0.0297, 0.7369, 2.7223, 0.0645, 0.9465),
    "cold": (0.1002, 0.3524, 0.6619, 0.0566, 0.9546),
    "diau": (0.0625, 0.4669, 1.1169, 0.0533, 0.9578),
    "dtt": (0.1017, 0.3799, 0.7267, 0.0651, 0.9470),
    "elu": (0.0309, 0.7119, 2.5437, 0.0640, 0.9471),
    "heat": (0.0699, 0.4321, 0.9872, 0.0558, 0.9547),
    "spo": (0.0698, 0.3971, 0.8897, 0.0482, 0.9611),
}


def textbook(X, L, alpha, sigma):
    """F <- alpha P F + (1 - alpha) L, as printed, until it rests."""
    A = np.exp(-cdist(X, X, "sqeuclidean") / (2 * sigma**2))
    np.fill_diagonal(A, 0.0)
    s = A.sum(axis=1)
    P = A / np.sqrt(np.outer(s, s))
    F = L
    for _ in range(2000):
        F = alpha * P @ F + (1 - alpha) * L
    return F


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_solve_is_the_limit_of_the_iteration(small, alpha):
    X, L, _ = small
    lp = LP(alpha=alpha, sigma=1.3, standardize=False, output="sum").fit(X, L)
    F = textbook(X, L, alpha, 1.3)
    np.testing.assert_allclose(lp.scores_, F, atol=1e-9)
    np.testing.assert_allclose(lp.label_distributions_, normalise_rows(F), atol=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_recomputed_tiles_give_the_same_as_the_kept_matrix(small, alpha):
    X, L, _ = small
    kept = gaussian_operator(X, 1.0, zero_diagonal=True)
    tiled = gaussian_operator(X, 1.0, zero_diagonal=True, keep_rows=0, tile=16)
    a = propagate(kept, L, alpha, tol=1e-12, max_iter=500).value
    b = propagate(tiled, L, alpha, tol=1e-12, max_iter=500).value
    np.testing.assert_allclose(a, b, atol=1e-11)


def test_knn_graph_with_all_neighbours_is_the_dense_graph(small):
    X, L, _ = small
    dense = LP(sigma=1.0, tol=1e-12).fit_enhance(X, L)
    sparse = LP(sigma=1.0, tol=1e-12, graph="knn", n_neighbors=59).fit_enhance(X, L)
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


def test_objective_is_the_minimum(small):
    X, L, _ = small
    affinity, *_ = build_affinity(X, "dense", 1.0, 10)
    solution = propagate(affinity, L, 0.4, tol=1e-12, max_iter=500)
    A = affinity(np.eye(60))
    s = A.sum(axis=1)
    smoothness = np.eye(60) - A / np.sqrt(np.outer(s, s))

    def objective(F):
        return 0.4 * np.trace(F.T @ smoothness @ F) + 0.6 * np.sum((F - L) ** 2)

    assert solution.objective == pytest.approx(objective(solution.value), rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert objective(solution.value + 1e-3 * rng.normal(size=L.shape)) > solution.objective


@pytest.mark.parametrize("alpha", [0.0, 1e-9])
def test_without_propagation_the_labels_remain(small, alpha):
    X, L, _ = small
    np.testing.assert_allclose(LP(alpha=alpha).fit_enhance(X, L), softmax(L), atol=1e-8)


@pytest.mark.parametrize("graph", ["dense", "knn"])
def test_answer_does_not_depend_on_the_unit_of_the_features(small, graph):
    X, L, _ = small
    expected = LP(graph=graph, standardize=False).fit_enhance(X, L)
    np.testing.assert_allclose(LP(graph=graph, standardize=False).fit_enhance(1e6 * X, L), expected, atol=1e-8)


def test_row_without_neighbours_keeps_its_labels():
    X = np.array([[0.0], [0.1], [1e6]])
    L = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    lp = LP(sigma=1.0, standardize=False).fit(X, L)
    np.testing.assert_allclose(lp.scores_[2], L[2], atol=1e-12)


def test_confidences_are_propagated_as_they_are(small):
    X, L, _ = small
    F = normalise_rows(L)
    np.testing.assert_allclose(LP(sigma=1.0, standardize=False).fit(X, F).scores_, textbook(X, F, 0.5, 1.0), atol=1e-9)


def test_default_width_is_the_mean_distance_to_the_last_neighbour(small):
    X, L, _ = small
    lp = LP(n_neighbors=7, standardize=False).fit(X, L)
    assert lp.solution_.info["sigma"] == pytest.approx(nearest_neighbours(X, 7).distances[:, -1].mean())


@pytest.mark.parametrize("name", PUBLISHED)
def test_paper_preset_gives_the_published_row(real, name):
    X, D = real(f"Yeast_{name}")
    R = LP.preset("paper").fit_enhance(X, CumulativeMass().apply(D))
    measured = [getattr(measures, m)(D, R) for m in MEASURES]
    np.testing.assert_allclose(measured, PUBLISHED[name], atol=1.5e-4)


def test_glle_paper_preset_gives_that_papers_row(real):
    X, D = real("Yeast_alpha")
    R = LP.preset("glle_paper").fit_enhance(X, CumulativeMass().apply(D))
    measured = [getattr(measures, m)(D, R) for m in (*MEASURES[:3], "kl_reversed_drop", "cosine")]
    np.testing.assert_allclose(measured, [0.0400, 1.1847, 4.5441, 0.1208, 0.9110], atol=1.5e-4)

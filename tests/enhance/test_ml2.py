"""ML2: against a reference QP solver, its homogeneity and symmetries, the published rows."""

from __future__ import annotations

import numpy as np
import proxsuite
import pytest

from contone import CumulativeMass, measures
from contone.enhance.ml2 import ML2
from contone.numerics.lle import lle_matrix, lle_weights

# Chebyshev, Clark, Canberra, KL(R || D) with infinite rows dropped, cosine: the ML2 row of Kou et al.,
# "Data Augmentation for Label Enhancement", recovery table.
PUBLISHED = {
    "spoem": (0.3024, 0.6195, 0.7892, 0.2410, 0.8741),
    "spo5": (0.2670, 0.7556, 1.0781, 0.2447, 0.8782),
    "cold": (0.2795, 1.0435, 1.8913, 0.3896, 0.8044),
}
PUBLISHED_ON_ALPHA = (0.6264, 3.4836, 14.1515, 1.8433, 0.4002)
MEASURES = (measures.chebyshev, measures.clark, measures.canberra, measures.kl_reversed_drop, measures.cosine)


def reference_solution(M: np.ndarray, y: np.ndarray, margin: float, ridge: float) -> np.ndarray:
    """One label as printed: min mu^T (M + ridge I) mu s.t. y mu >= margin, by ProxQP."""
    n = len(y)
    solver = proxsuite.proxqp.dense.QP(n, 0, n)
    solver.settings.eps_abs = 1e-11
    solver.init(2 * (M + ridge * np.eye(n)), np.zeros(n), None, None, np.diag(y), np.full(n, margin), np.full(n, 1e20))
    solver.solve()
    return solver.results.x


@pytest.mark.parametrize("k", [5, 20])  # a sparse matrix and a dense one
def test_numerical_labels_meet_a_reference_solver(small, k):
    X, L, _ = small
    M = lle_matrix(lle_weights(X, k))
    assert isinstance(M, np.ndarray) == (k == 20)
    U = ML2(margin=1.0, ridge=1e-4)._numerical_labels(M, L > 0).value
    for j in range(L.shape[1]):
        expected = reference_solution(M if k == 20 else M.toarray(), 2 * L[:, j] - 1, 1.0, 1e-4)
        np.testing.assert_allclose(U[:, j], expected, atol=1e-6)


def test_kkt_residual_is_the_certificate(small):
    X, L, _ = small
    model = ML2().fit(X, L)
    assert model.solution_.converged
    assert model.solution_.residual <= 1e-8


def test_signs_and_margin_hold(small):
    X, L, _ = small
    U = ML2(margin=0.3, ridge=1e-6)._numerical_labels(lle_matrix(lle_weights(X, 5)), L > 0).value
    assert U[L > 0].min() == 0.3
    assert U[L == 0].max() == -0.3


def test_the_margin_is_a_scale(small):
    # So softmax(U) at margin m is softmax(m U) at margin 1.
    X, L, _ = small
    M = lle_matrix(lle_weights(X, 5))
    one = ML2(margin=1.0, ridge=1e-6)._numerical_labels(M, L > 0).value
    tenth = ML2(margin=0.1, ridge=1e-6)._numerical_labels(M, L > 0).value
    np.testing.assert_allclose(tenth, 0.1 * one, rtol=1e-6)


def test_a_label_that_all_rows_share_stays_at_the_margin():
    X = np.random.default_rng(0).normal(size=(30, 4))
    U = ML2(margin=1.0, ridge=1e-6)._numerical_labels(lle_matrix(lle_weights(X, 5)), np.ones((30, 1), dtype=bool)).value
    np.testing.assert_allclose(U, 1.0, atol=1e-6)


def test_order_of_rows_and_labels_does_not_matter(small):
    X, L, _ = small
    rows, labels = np.random.default_rng(0).permutation(len(X)), [2, 0, 3, 1]
    D = ML2().fit_enhance(X, L)
    np.testing.assert_allclose(ML2().fit_enhance(X[rows], L[rows][:, labels]), D[rows][:, labels], atol=1e-6)


@pytest.mark.parametrize("output", ["softmax", "sigmoid", "sum"])
def test_relevant_labels_come_out_ahead(small, output):
    X, L, _ = small
    D = ML2(output=output).fit_enhance(X, L)
    assert (np.where(L > 0, D, np.inf).min(axis=1) > np.where(L > 0, -np.inf, D).max(axis=1))[
        (L == 0).any(axis=1)
    ].all()


def test_confidences_count_through_their_support(small):
    X, L, _ = small
    np.testing.assert_array_equal(ML2().fit_enhance(X, L / L.sum(axis=1, keepdims=True)), ML2().fit_enhance(X, L))


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_degenerate_data(q):
    rng = np.random.default_rng(0)
    L = np.ones((12, q))
    L[::2, 1:] = 0
    for X in (np.repeat(rng.normal(size=(3, 2)), 4, axis=0), np.ones((12, 3)), rng.normal(size=(12, 40))):
        for rows in (slice(None), slice(0, 2)):  # n < k too
            D = ML2.preset("paper").fit_enhance(X[rows], L[rows])
            np.testing.assert_allclose(D.sum(axis=1), 1.0)
            assert q > 1 or (D == 1).all()


@pytest.mark.parametrize("name", sorted(PUBLISHED))
@pytest.mark.parametrize("regularization", [1e-3, 1e-5])
def test_published_rows_within_six_percent(real, name, regularization):
    X, D = real(f"Yeast_{name}")
    R = ML2.preset("paper", regularization=regularization).fit_enhance(X, CumulativeMass().apply(D))
    np.testing.assert_allclose([m(D, R) for m in MEASURES], PUBLISHED[name], rtol=0.06)


@pytest.mark.exhaustive  # the other published rows are checked above
def test_alpha_is_published_with_hardly_any_regularisation(real):
    X, D = real("Yeast_alpha")
    L = CumulativeMass().apply(D)
    clark = {r: measures.clark(D, ML2.preset("paper", regularization=r).fit_enhance(X, L)) for r in (1e-3, 1e-5)}
    assert clark[1e-5] == pytest.approx(PUBLISHED_ON_ALPHA[1], rel=0.06)
    assert clark[1e-3] < 0.75 * PUBLISHED_ON_ALPHA[1]

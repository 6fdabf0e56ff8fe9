"""FCM: fuzzy c-means against loops and its own optimality conditions; compositions; limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from contone.enhance.fcm import FCM, association, compose, fuzzy_c_means, memberships, squared_distances
from contone.numerics.simplex import normalise_rows, softmax


@pytest.mark.parametrize("beta", [1.5, 2.0, 3.0])
def test_memberships_are_the_printed_formula(small, beta):
    X, _, _ = small
    V = X[:5] + 0.1
    d = cdist(X, V)
    expected = np.array([[1 / np.sum((d[i, c] / d[i]) ** (2 / (beta - 1))) for c in range(5)] for i in range(60)])
    np.testing.assert_allclose(memberships(squared_distances(X, V), beta), expected, atol=1e-12)


def test_row_on_a_centre_belongs_to_it_alone():
    M = memberships(np.array([[0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]), 2.0)
    np.testing.assert_allclose(M, [[1, 0, 0], [0.5, 0.5, 0]])


def test_converged_clusters_satisfy_both_conditions(small):
    X, _, _ = small
    solution = fuzzy_c_means(X, X[:4], 2.0, tol=1e-12, max_iter=5000)
    M, V = solution.value
    assert solution.converged
    np.testing.assert_allclose(M, memberships(cdist(X, V, "sqeuclidean"), 2.0), atol=1e-10)
    np.testing.assert_allclose(V, (M**2).T @ X / (M**2).sum(axis=0)[:, None], atol=1e-9)
    assert solution.objective == pytest.approx(np.sum(M**2 * cdist(X, V, "sqeuclidean")))


def test_rounds_never_raise_the_objective(small):
    X, _, _ = small
    values = [fuzzy_c_means(X, X[:6], 2.0, tol=1e-12, max_iter=t).objective for t in range(1, 15)]
    assert np.all(np.diff(values) <= 1e-9)


@pytest.mark.parametrize(("composition", "t"), [("max-min", min), ("max-product", lambda a, b: a * b)])
def test_composition_is_its_definition(small, composition, t):
    X, L, _ = small
    M = memberships(squared_distances(X, X[:5] + 0.1), 2.0)
    A = association(M, L)
    expected = [[max(t(M[i, c], A[j, c]) for c in range(5)) for j in range(4)] for i in range(60)]
    np.testing.assert_allclose(compose(M, A, composition), expected)
    fcm = FCM(composition=composition, n_clusters=5, output="softmax").fit(X, L)
    np.testing.assert_allclose(fcm.label_distributions_, softmax(fcm.scores_))


def test_association_rows_sum_to_one_or_are_empty(small):
    X, L, _ = small
    M = memberships(squared_distances(X, X[:5] + 0.1), 2.0)
    A = association(M, np.hstack([L, np.zeros((60, 1))]))
    np.testing.assert_allclose(A.sum(axis=1), [1, 1, 1, 1, 0])


def test_hard_and_far_clusters_pass_on_their_own_labels_only():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 2)) + 1e4 * group[:, None]
    L = np.eye(2)[group]
    np.testing.assert_allclose(FCM(n_clusters=2).fit_enhance(X, L), L, atol=1e-3)


def test_seed_decides(small):
    X, L, _ = small
    first, again = FCM(n_clusters=7).fit_enhance(X, L), FCM(n_clusters=7).fit_enhance(X, L)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("beta", [1.01, 2.0, 50.0])
def test_more_clusters_than_rows_duplicates_and_constant_features(beta):
    X = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    L = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    fcm = FCM(fuzzifier=beta).fit(X, L)
    assert fcm.memberships_.shape == (4, 2)
    assert np.isfinite(fcm.label_distributions_).all()


def test_confidences_weigh_the_association(small):
    X, L, _ = small
    F = normalise_rows(L)
    fcm = FCM(n_clusters=6).fit(X, F)
    expected = compose(fcm.memberships_, association(fcm.memberships_, F), "max-min")
    np.testing.assert_allclose(fcm.scores_, expected)

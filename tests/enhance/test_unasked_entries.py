"""Entries that nobody asked about and rows without any label, in the methods that take them: by their own equations."""

from __future__ import annotations

import numpy as np
import pytest

from contone import GLLE, LEMLL, LP, CumulativeMass, Logical, Temperature, Uniform
from contone.enhance import glle, lemll
from contone.exceptions import LabelWarning
from contone.measurements import asked_frequencies
from contone.numerics.kernel import gaussian_matrix
from contone.numerics.simplex import softmax


def data(n=30, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, CumulativeMass().apply(softmax(X @ rng.normal(size=(3, q)) + rng.normal(size=(n, q)))).astype(float)


def partly_asked(L):
    return np.where(np.random.default_rng(1).random(L.shape) < 0.25, np.nan, L)


def test_baselines_are_neutral_where_nobody_asked():
    X, L = data()
    M = partly_asked(L)
    M[0] = [1.0, np.nan, 0.0, np.nan]
    f = asked_frequencies(M)
    np.testing.assert_allclose(Temperature(c=0.7).fit_enhance(X, M)[0], softmax(0.7 * np.array([1.0, f[1], 0.0, f[3]])))
    expected = np.array([1.0, f[1], 0.0, f[3]])
    np.testing.assert_allclose(Logical().fit_enhance(X, M)[0], expected / expected.sum())
    M[1] = np.nan
    for method in (Uniform(), Temperature(), Logical()):
        with pytest.warns(LabelWarning, match="uniform"):
            np.testing.assert_allclose(method.fit_enhance(X, M)[1], 0.25)


@pytest.mark.parametrize("duplicates", [False, True])
def test_masked_glle_is_stationary(duplicates):
    X, L = data()
    if duplicates:
        X[10:15] = X[:5]
    M = partly_asked(L)
    M[4] = np.nan
    asked = (~np.isnan(M)).astype(float)
    A, *_ = glle.neighbour_affinity(X, 5, "knn")
    f = asked_frequencies(M)
    filled = np.where(asked > 0, M, f)
    found = GLLE(tol=1e-12)._smooth(A, filled, 0.7, (len(X), None), asked, f)
    gradient = glle.objective(found.value, A, filled, 0.7, asked)[1]
    if duplicates:
        gradient = np.concatenate([gradient[:5] + gradient[10:15], gradient[5:10], gradient[15:]])
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_glle_gives_a_row_without_labels_the_mean_of_its_neighbours():
    X, L = data()
    L[7] = 0.0
    method = GLLE(n_neighbors=5, standardize=False).fit(X, L)
    A = glle.neighbour_affinity(X, 5, "knn")[0]
    weights = A.matmul(np.eye(30))[7]
    np.testing.assert_allclose(method.scores_[7], weights @ method.scores_ / weights.sum(), atol=1e-6)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_lp_propagates_to_rows_without_labels_as_zeros():
    X, L = data()
    L[7] = 0.0
    method = LP(graph="dense", standardize=False, sigma=1.0, alpha=0.4).fit(X, L)
    A = gaussian_matrix(X, 1.0) - np.eye(30)
    root = 1 / np.sqrt(A.sum(axis=1))
    F = 0.6 * np.linalg.solve(np.eye(30) - 0.4 * root[:, None] * A * root, L)
    np.testing.assert_allclose(method.scores_, F, atol=1e-8)


def test_lemll_is_stationary_where_entries_are_unasked():
    X, L = data()
    method = LEMLL(tol=1e-7, max_iter=2000).fit(X, partly_asked(L))
    assert method.solution_.converged


def test_gradient_of_masked_lemll():
    X, L = data(8, 3)
    asked = np.random.default_rng(2).random(L.shape) < 0.7
    weights = lemll.lle_matrix(lemll.lle_weights(X, 3))
    problem = lemll.Problem(np.hstack([X, np.ones((8, 1))]), 2 * L - 1, weights, 0.1, 1.0, 1.0, 1.0, asked)
    rng = np.random.default_rng(0)
    U, Theta, V = rng.normal(size=(8, 3)), rng.normal(size=(4, 3)), rng.normal(size=(8, 3))
    step = 1e-6
    ahead, behind = (lemll.objective(problem, U + sign * step * V, Theta)[0] for sign in (1, -1))
    np.testing.assert_allclose(
        (lemll.objective(problem, U, Theta)[1] * V).sum(), (ahead - behind) / (2 * step), rtol=1e-6
    )


@pytest.mark.parametrize("duplicates", [False, True])
def test_masked_glle_is_a_dense_solve_for_every_label(duplicates):
    """(M + lambda G) p = M l, equal rows sharing one p; where no row of a component was asked, the frequency stands."""
    X, L = data()
    if duplicates:
        X[10:15] = X[:5]
    M = partly_asked(L)
    method = GLLE(lambda_=0.7, n_neighbors=5, sigma=1.3, standardize=False, tol=1e-13).fit(X, M)
    A = glle.neighbour_affinity(X, 5, 1.3)[0].matmul(np.eye(30))
    G = np.diag(A.sum(axis=1)) - A
    member = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    E = np.eye(member.max() + 1)[member]
    for j in range(4):
        asked = np.diag(~np.isnan(M[:, j]) * 1.0)
        p = E @ np.linalg.solve(E.T @ (asked + 0.7 * G) @ E, E.T @ asked @ np.nan_to_num(M[:, j]))
        np.testing.assert_allclose(method.scores_[:, j], p, atol=1e-8)
    value = np.nansum((method.scores_ - M) ** 2) + 0.7 * np.trace(method.scores_.T @ G @ method.scores_)
    assert method.solution_.objective == pytest.approx(value)
    far = np.vstack([X, X + 1e6])  # two components, of which one was never asked about the first label
    both = np.vstack([L, L])
    both[30:, 0] = np.nan
    apart = GLLE(lambda_=0.7, n_neighbors=5, sigma=1.3, standardize=False).fit(far, both)
    np.testing.assert_allclose(apart.scores_[30:, 0], asked_frequencies(both)[0], atol=1e-9)


def test_new_rows_of_glle_are_the_mean_of_their_labels_and_their_neighbours():
    """p = (l + lambda sum_j a_j p_j) / (1 + lambda sum_j a_j); neighbours alone where nobody asked, however far."""
    X, L = data()
    method = GLLE(lambda_=0.4, n_neighbors=3, sigma=0.9, standardize=False, output="sum").fit(X[:25], L[:25])
    new, labels = X[25:].copy(), L[25:].copy()
    new[4] = 300.0
    expected, alone = np.zeros((5, 4)), np.zeros((5, 4))
    for i, x in enumerate(new):
        square = np.square(X[:25] - x).sum(axis=1)
        near = np.argsort(square)[:3]
        a = np.exp(-square[near] / (2 * 0.9**2))
        expected[i] = (labels[i] + 0.4 * a @ method.scores_[near]) / (1 + 0.4 * a.sum())
        relative = np.exp(-(square[near] - square[near].min()) / (2 * 0.9**2))
        alone[i] = relative @ method.scores_[near] / relative.sum()
    answer = method.enhance(new, labels)
    np.testing.assert_allclose(
        answer, np.maximum(expected, 0) / np.maximum(expected, 0).sum(axis=1, keepdims=True), atol=1e-9
    )
    labels[:, 1] = np.nan
    softened = GLLE(lambda_=0.4, n_neighbors=3, sigma=0.9, standardize=False).fit(X[:25], L[:25])
    answer = softened.enhance(new, labels)
    expected[:, 1] = alone[:, 1]
    np.testing.assert_allclose(answer, softmax(expected), atol=1e-9)

"""DLDL: gradients, optimality, the problem it becomes without its penalties, and limits of each weight."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from contone.enhance.dldl import DLDL, Smoothness, objective, recover
from contone.exceptions import FeatureError
from contone.numerics.graphs import affinity_graph, nearest_neighbours
from contone.numerics.simplex import softmax


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    P = softmax(X @ rng.normal(size=(3, 4)))
    mask = np.sort(P, axis=1)[:, [1]] <= P  # the upper three labels of each row
    mask[:5] = P[:5] == P[:5].max(axis=1, keepdims=True)  # rows with one label
    return X, mask


def form(X, alpha, beta):
    return Smoothness(affinity_graph(nearest_neighbours(X, 5), 1.0), alpha, beta)


def laplacian(X):
    return Smoothness(affinity_graph(nearest_neighbours(X, 5), 1.0), 0.5, 0.0).slope(np.eye(len(X)))


def equal(mask):
    return mask / mask.sum(axis=1, keepdims=True)


def test_the_slope_is_that_of_the_quadratic_form(problem):
    X, mask = problem
    D = equal(mask)
    G = laplacian(X)
    np.testing.assert_allclose(G.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(G, G.T, atol=1e-12)
    assert np.linalg.eigvalsh(G).min() > -1e-10
    np.testing.assert_allclose(form(X, 0.7, 0.3).slope(D), 1.4 * G @ D + 0.6 * D, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 3.0, 300.0])
def test_recovered_rows_meet_the_optimality_conditions_and_a_general_solver(problem, alpha):
    X, mask = problem
    Z = X @ np.random.default_rng(1).normal(size=(3, 4))
    smoothness = form(X, alpha, 0.2)
    found = recover(Z, mask, smoothness, equal(mask))
    assert found.converged
    D = found.value
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-12)
    assert np.all(D[~mask] == 0.0)
    gradient = np.where(mask, np.log(np.where(mask, D, 1.0)) - Z + smoothness.slope(D), np.nan)
    np.testing.assert_allclose(np.nanmax(gradient, axis=1), np.nanmin(gradient, axis=1), atol=1e-6)
    # As a problem without constraints in logits of the marked labels, by SciPy.
    H = 2 * alpha * laplacian(X) + 0.4 * np.eye(len(X))

    def value(t):
        T = np.full(mask.shape, -np.inf)
        T[mask] = t
        T -= logsumexp(T, axis=1, keepdims=True)
        D, g = np.exp(T), np.where(mask, T - Z, 0.0)
        by_D = g + 1.0 + H @ D
        by_t = D * (by_D - (D * by_D).sum(axis=1, keepdims=True))
        return np.sum(D * g) + 0.5 * np.sum(D * (H @ D)), by_t[mask]

    other = minimize(value, np.zeros(mask.sum()), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "maxiter": 5000})
    assert found.objective == pytest.approx(value(np.log(D[mask]))[0], abs=1e-9)
    assert found.objective <= other.fun + 1e-9
    assert found.objective == pytest.approx(other.fun, rel=1e-5)


def test_the_gradient_of_the_profile_is_that_of_finite_differences(problem):
    X, mask = problem
    smoothness, gamma, rng = form(X, 0.3, 0.1), 0.2, np.random.default_rng(2)
    W, step = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))

    def profile(W):
        D = recover(X @ W, mask, smoothness, equal(mask)).value
        return objective(D, X @ W, W, smoothness, gamma), X.T @ (softmax(X @ W) - D) + 2 * gamma * W

    h = 1e-5
    numeric = (profile(W + h * step)[0] - profile(W - h * step)[0]) / (2 * h)
    assert np.vdot(profile(W)[1], step) == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_at_the_answer_neither_d_nor_w_can_be_improved(problem, fit_intercept):
    X, mask = problem
    smoothness, gamma = form(X, 0.3, 0.1), 0.2
    found = DLDL(gamma=gamma, fit_intercept=fit_intercept, tol=1e-9)._minimise(X + 1.0, mask, smoothness)
    D, W, b = found.value
    Z = (X + 1.0) @ W + b
    slope = softmax(Z) - D
    np.testing.assert_allclose((X + 1.0).T @ slope + 2 * gamma * W, 0.0, atol=1e-5)
    if fit_intercept:
        np.testing.assert_allclose(slope.sum(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(recover(Z, mask, smoothness, equal(mask)).value, D, atol=1e-7)
    assert found.objective == pytest.approx(objective(D, Z, W, smoothness, gamma))
    rng = np.random.default_rng(3)
    for _ in range(20):
        E = 0.5 * D + 0.5 * np.where(mask, rng.dirichlet(np.ones(4), len(D)), 0.0)
        E /= E.sum(axis=1, keepdims=True)
        assert objective(E, Z, W, smoothness, gamma) > found.objective
        V = W + 0.1 * rng.normal(size=W.shape)
        assert objective(D, (X + 1.0) @ V + b, V, smoothness, gamma) > found.objective


def test_without_alpha_and_beta_it_is_the_likelihood_of_one_of_the_marked_labels(problem):
    X, mask = problem
    gamma = 0.3
    method = DLDL(gamma=gamma, fit_intercept=False, tol=1e-9)
    found = method._minimise(X, mask, Smoothness(None, 0.0, 0.0))
    D, W, _ = found.value
    P = softmax(X @ W) * mask
    np.testing.assert_allclose(D, P / P.sum(axis=1, keepdims=True), atol=1e-9)

    def likelihood(w):
        W = w.reshape(3, 4)
        Z = X @ W
        marked = np.where(mask, Z, -np.inf)
        value = np.sum(logsumexp(Z, axis=1) - logsumexp(marked, axis=1)) + gamma * np.sum(W**2)
        return value, (X.T @ (softmax(Z) - softmax(marked)) + 2 * gamma * W).ravel()

    other = minimize(likelihood, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert found.objective == pytest.approx(other.fun, abs=1e-7)
    np.testing.assert_allclose(W.ravel(), other.x, atol=1e-4)


def test_limits_of_the_weights(small):
    X, L, _ = small
    shares = L / L.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(DLDL(beta=1e6).fit_enhance(X, L), shares, atol=1e-4)
    # Nothing can be learnt: the scores are constants, and without a graph so is the preference between labels.
    strong = DLDL(gamma=1e9, alpha=0.0, beta=0.0, fit_intercept=False).fit(X, L)
    np.testing.assert_allclose(strong.predict(X), 0.25, atol=1e-6)
    np.testing.assert_allclose(strong.label_distributions_, shares, atol=1e-6)


def test_a_large_alpha_gives_the_smoothest_sharing_out(problem):
    X, mask = problem
    G = laplacian(X)
    D = recover(np.zeros(mask.shape), mask, form(X, 1e6, 0.0), equal(mask)).value
    by_D = 2 * G @ D  # on the simplex, no direction lowers tr D^T G D by more than what the entropy is worth
    gap = np.sum(D * by_D) - np.where(mask, by_D, np.inf).min(axis=1).sum()
    assert gap <= 1e-4
    assert np.sum(D * (G @ D)) < 0.9 * np.sum(equal(mask) * (G @ equal(mask)))


def test_unmarked_labels_get_nothing_and_new_rows_get_every_label(small):
    X, L, _ = small
    method = DLDL().fit(X, L)
    assert np.all(method.label_distributions_[L == 0] == 0.0)
    assert np.all(method.label_distributions_[L == 1] > 0.0)
    assert method.predict(X[:3] + 0.1).min() > 0.0
    np.testing.assert_allclose(method.predict(X), softmax(X @ method.coef_ + method.intercept_))


def test_new_rows_with_labels_are_recovered_as_rows_of_the_fit_without_neighbours(small):
    X, L, _ = small
    method = DLDL(alpha=0.0).fit(X, L)
    np.testing.assert_allclose(method.enhance(X, L), method.label_distributions_, atol=1e-8)


def test_an_entry_that_nobody_asked_about_is_open(small):
    X, L, _ = small
    L = L.astype(float)
    L[3, :2] = np.nan
    D = DLDL().fit_enhance(X, L)
    assert np.all(D[3, :2] > 0.0)


def test_labels_and_rows_in_another_order(small):
    X, L, _ = small
    D = DLDL(tol=1e-8).fit_enhance(X, L)
    labels, rows = np.array([2, 0, 3, 1]), np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(DLDL(tol=1e-8).fit_enhance(X, L[:, labels]), D[:, labels], atol=1e-5)
    np.testing.assert_allclose(DLDL(tol=1e-8).fit_enhance(X[rows], L[rows]), D[rows], atol=1e-5)


def test_units_and_offsets_of_the_features_do_not_matter_unless_taken_as_they_are(small):
    X, L, _ = small
    scaled = X * np.array([1.0, 100.0, 0.01, 3.0, 1e6][: X.shape[1]] + [1.0] * (X.shape[1] - 5)) + 5.0
    np.testing.assert_allclose(DLDL().fit_enhance(scaled, L), DLDL().fit_enhance(X, L), atol=1e-4)
    paper = DLDL.preset("paper")
    assert np.abs(paper.fit_enhance(scaled, L) - paper.fit_enhance(X, L)).max() > 1e-3


def test_published_settings_and_what_is_said_where_they_stop_early(small):
    X, L, _ = small
    paper = DLDL.preset("paper").fit(X, L)
    assert paper.solution_.info["sigma"] == 20.0
    assert (paper.alpha, paper.beta, paper.gamma, paper.n_neighbors) == (0.1, 0.001, 0.01, 20)
    np.testing.assert_array_equal(paper.intercept_, 0.0)
    with pytest.warns(ConvergenceWarning, match="DLDL stopped after 1 iterations"):
        DLDL(max_iter=1).fit(X, L)


@pytest.mark.parametrize("standardize", [True, False])
def test_features_whose_coefficients_floating_point_cannot_hold_are_refused(problem, standardize):
    X, mask = problem
    with pytest.raises(FeatureError, match="column 0"):
        DLDL(standardize=standardize).fit(1e-310 * X, mask)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alpha", [1e6, 1e30, 1e300])
def test_rows_that_must_agree_leave_only_what_all_of_them_have_marked(alpha):
    """Degrees of other labels go to 0, also where that is below every number; weights may be beyond all squares."""
    X = np.full((3, 5), 1e12)
    X[2, 0] = -(2.0**63)
    L = np.array([[1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 1, 1]])
    D = DLDL(max_iter=30, alpha=alpha, gamma=1e-9).fit_enhance(X, L)
    np.testing.assert_allclose(D, [[0.0, 0.0, 0.5, 0.5]] * 3, atol=1e-5)
    D = DLDL(max_iter=30, beta=alpha).fit_enhance(X, L)
    np.testing.assert_allclose(D, L / L.sum(axis=1, keepdims=True), atol=1e-5)

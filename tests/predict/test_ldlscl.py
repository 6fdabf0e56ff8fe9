"""LDL-SCL: the printed objective, its gradient, the best codes, the limit without codes, symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from contone import LDLSCL, MaxEnt, measures
from contone.numerics.optimise import join, split
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax
from contone.predict.ldlscl import Problem, cluster_centres, objective
from contone.predict.maxent import entropy
from contone.runtime import machine


@pytest.fixture
def problem(small):
    X, _, D = small
    return Problem(X, D, cluster_centres(D, 3, 0), locality=0.7, barrier=0.4, l2=0.1)


def random_parameters(problem, seed=0):
    rng = np.random.default_rng(seed)
    return [0.5 * rng.normal(size=shape) for shape in problem.shapes]


def test_the_objective_is_the_printed_one(problem):
    Theta, b, W, gamma = parameters = random_parameters(problem)
    c = np.exp(gamma)
    P = softmax(problem.X @ Theta + b + c @ W)
    distance = ((P[:, None, :] - problem.centres) ** 2).sum(axis=2)
    expected = measures.kl(problem.D, P) + 0.7 * np.mean(c * distance) + 0.4 * np.mean(1 / c)
    expected += 0.05 * (np.sum(Theta**2) + np.sum(W**2))
    assert objective(parameters, problem)[0] - entropy(problem.D) == pytest.approx(expected)


def test_gradient_against_finite_differences(problem):
    def at(w):
        return objective(split(w, problem.shapes), problem)

    w = join(random_parameters(problem))
    assert check_grad(lambda w: at(w)[0], lambda w: at(w)[1], w) < 1e-6


def test_pieces_and_threads_change_nothing(problem, monkeypatch):
    parameters = random_parameters(problem)
    whole, whole_gradient = objective(parameters, problem)
    monkeypatch.setattr(machine, "PIECE_NUMBERS", 1)
    monkeypatch.setattr(machine, "FEWEST_ROWS", 13)  # 60 rows in five pieces
    found = []
    for n in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", n)
        value, gradient = objective(parameters, problem)
        assert value == pytest.approx(whole, rel=1e-12)
        np.testing.assert_allclose(gradient, whole_gradient, atol=1e-12)
        found.append(np.append(gradient, value))
    np.testing.assert_array_equal(*found)


def test_the_best_codes_where_they_do_not_enter_the_prediction(problem):
    """c^2 = barrier / (locality ||p - P||^2) where W = 0."""
    Theta, b, W, gamma = random_parameters(problem)
    W = 0 * W

    def at(flat):
        value, gradient = objective([Theta, b, W, flat.reshape(gamma.shape)], problem)
        return value, split(gradient, problem.shapes)[3].ravel()

    found = minimize(at, gamma.ravel(), jac=True, method="L-BFGS-B", options={"gtol": 1e-12, "ftol": 0.0})
    P = softmax(problem.X @ Theta + b)
    distance = ((P[:, None, :] - problem.centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.exp(found.x.reshape(gamma.shape)), np.sqrt(0.4 / (0.7 * distance)), rtol=1e-4)


def test_without_codes_it_is_maximum_entropy(small):
    """A large weight of the distances and no barrier take the codes to 0."""
    X, _, D = small
    model = LDLSCL(locality=1e5, barrier=0.0, l2=0.05, max_iter=3000, tol=1e-9).fit(X, D)
    assert model.codes_.max() < 0.01
    scaled = standardisation(X)(X)
    np.testing.assert_allclose(model.predict(X), MaxEnt(l2=0.05).fit(scaled, D).predict(scaled), atol=1e-3)


def test_more_iterations_never_raise_the_objective(small):
    X, _, D = small
    values = [LDLSCL(max_iter=k).fit(X, D).solution_.objective for k in (1, 5, 20, 80)]
    assert max(np.diff(values)) <= 0.0


def test_order_of_labels_and_units_of_features_do_not_matter(small):
    X, _, D = small
    labels = [3, 0, 2, 1]
    model = LDLSCL(max_iter=10)
    plain = model.fit(X, D).predict(X)
    np.testing.assert_allclose(model.fit(X, D[:, labels]).predict(X), plain[:, labels], atol=1e-5)
    np.testing.assert_allclose(model.fit(1e3 * X + 7, D).predict(1e3 * X + 7), plain, atol=1e-5)


def test_far_away_rows_keep_codes_that_were_seen(small):
    X, _, D = small
    model = LDLSCL().fit(X, D)
    answer = model.predict(1e6 * X)
    assert np.isfinite(answer).all()


def test_fewer_distinct_rows_than_clusters():
    X, D = np.arange(6.0)[:, None], np.array([[0.3, 0.7], [0.6, 0.4]])[[0, 0, 0, 1, 1, 1]]
    model = LDLSCL(n_clusters=5).fit(X, D)
    np.testing.assert_allclose(np.sort(model.centres_[:, 0]), [0.3, 0.6])
    assert measures.kl(D, model.predict(X)) < measures.kl(D, np.tile(D.mean(axis=0), (6, 1)))

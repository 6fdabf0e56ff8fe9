"""DRAM: the prior of rankings, gradients, EM, its limits, and the scores of the authors' program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import gammaln
from scipy.stats import dirichlet

from contone import DRAM, measures
from contone.enhance import dram
from contone.exceptions import LabelError
from contone.numerics.optimise import lbfgs

SHORT = {"max_iter": 3, "max_steps": 5, "n_draws": 5}


def ranked(D):
    """Rankings 1, ..., q of degrees, the largest last."""
    return np.argsort(np.argsort(D, axis=1), axis=1) + 1.0


@pytest.fixture
def tiny():
    """theta, phi, log draws (4, 6, 3) and labels (6, 3)."""
    rng = np.random.default_rng(0)
    L = rng.permuted(np.tile([1.0, 2.0, 3.0], (6, 1)), axis=1)
    phi = np.concatenate([np.ones((6, 1)), rng.normal(size=(6, 2))], axis=1)
    draws = np.log([dram.draw_degrees(L, rng) for _ in range(4)])
    return 0.3 * rng.normal(size=(3, 2, 4)), phi, draws, L


@pytest.mark.parametrize("m", [2, 6])
def test_scores_of_a_ranking_are_sorted_uniform_numbers_with_gaps(m):
    L = np.zeros((20_000, m + 2))
    L[:, 1 : m + 1] = np.arange(1, m + 1)
    y = dram.draw_degrees(L, np.random.default_rng(0))
    np.testing.assert_allclose(y.sum(axis=1), 1.0)
    assert (np.diff(y[:, 1 : m + 1], axis=1) > 0).all()
    # Only ratios are left of the scores: the gaps are in units of the smallest one's least value.
    g = m / (m + 1) ** 2
    scores = y[:, 1 : m + 1] * (dram.LEAST / y[:, :1])
    assert scores[:, 0].min() >= g * (1 - 1e-9)
    c = (scores - g * np.arange(1, m + 1)) / (1 - m * g)
    np.testing.assert_allclose(np.clip(c, 0, 1).mean(axis=0), np.arange(1, m + 1) / (m + 1), atol=0.01)


def test_mean_of_a_ranking_of_six():
    # Measured with the authors' table of draws.
    L = np.tile(np.arange(1.0, 7.0), (20_000, 1))
    mean = dram.draw_degrees(L, np.random.default_rng(0)).mean(axis=0)
    np.testing.assert_allclose(mean, [0.0475, 0.0950, 0.1426, 0.1904, 0.2383, 0.2862], atol=0.001)


def test_ties_are_ordered_at_random_and_one_label_takes_all():
    rng = np.random.default_rng(0)
    tied = dram.draw_degrees(np.tile([0.0, 1.0, 1.0], (4000, 1)), rng)
    assert np.mean(tied[:, 1] > tied[:, 2]) == pytest.approx(0.5, abs=0.03)
    single = dram.draw_degrees(np.array([[0.0, 1.0, 0.0]]), rng)
    np.testing.assert_allclose(single, [[1e-4, 1.0, 1e-4]], atol=2e-4)


def test_gradient(tiny):
    theta, phi, draws, _ = tiny
    G = dram.respond(theta, phi, draws)
    sums = dram.sums_of_draws(G, draws, np.array([1, 1, 1, 1, 1, 0], dtype=bool))
    value, gradient = dram.objective(theta, phi, sums, 0.1)
    assert np.isfinite(value)
    numeric = approx_fprime(theta.ravel(), lambda t: dram.objective(t.reshape(theta.shape), phi, sums, 0.1)[0], 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=2e-5)
    theta = theta.copy()
    theta[0, :, 0] = [0.0, -14.0][: theta.shape[1]]  # a component with a weight like the floor
    gradient = dram.objective(theta, phi, sums, 0.1)[1][0, 1, 0]
    around = [theta + step * np.eye(theta.size)[1 + theta.shape[2] - 1].reshape(theta.shape) for step in (1e-5, -1e-5)]
    slope = np.subtract(*(dram.objective(at, phi, sums, 0.1)[0] for at in around)) / 2e-5
    assert gradient == pytest.approx(slope, rel=1e-4)


def likelihood(theta, phi, log_draws, penalty):
    """What EM maximises: mean log density of the draws (J, n, q), less the penalty; by SciPy's densities."""
    log_weights, alpha = dram.mixture(theta, phi)
    weights, mean = np.exp(log_weights) + dram.FLOOR, 0.0
    for draw in np.exp(log_draws):
        for i, y in enumerate(draw):
            mean += np.log(sum(w * dirichlet.pdf(y, a) for w, a in zip(weights[i], alpha[i], strict=True)))
    return mean / log_draws[..., 0].size - penalty * theta.shape[1] * np.square(theta[:, :, 1:]).sum()


def test_em_never_lowers_its_objective_while_the_draws_stay(tiny):
    theta, phi, draws, _ = tiny
    values = [likelihood(theta, phi, draws, 0.01)]
    everyone = np.ones(len(phi), dtype=bool)
    for _ in range(6):
        sums = dram.sums_of_draws(dram.respond(theta, phi, draws), draws, everyone)
        theta = lbfgs(lambda t: dram.objective(t, phi, sums, 0.01), theta, tol=1e-9, max_iter=5).value  # noqa: B023
        values.append(likelihood(theta, phi, draws, 0.01))
    assert (np.diff(values) >= -1e-10).all()
    assert values[-1] > values[0] + 1e-3


def test_one_component_and_a_constant_feature_is_the_likeliest_dirichlet(tiny):
    L = tiny[3]
    method = DRAM(n_components=1, penalty=0.0, max_iter=1, max_steps=300, n_draws=4).fit(np.zeros((6, 1)), L)
    rng = dram.generator(0)
    rng.standard_normal((2, 1, 4))
    rng.uniform(0.9, 1.1, (4, 6, 1))
    logs = np.log([dram.draw_degrees(L, rng) for _ in range(4)]).mean(axis=(0, 1))

    def surprise(log_alpha):
        alpha = np.exp(log_alpha)
        return -(gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ logs)

    alpha = np.exp(minimize(surprise, np.zeros(3), tol=1e-12).x)
    np.testing.assert_allclose(method.label_distributions_[0], alpha / alpha.sum(), atol=1e-4)


def test_rows_without_a_relevant_label_say_nothing(small):
    X, _, D = small
    L = ranked(D)
    odd = np.concatenate([L, np.zeros((1, 4))])
    # The draws of a row depend on how many rows there are; with one component and many steps they hardly matter.
    settings = {"n_components": 1, "penalty": 1e-2, "max_steps": 100, "n_draws": 200, "max_iter": 1}
    first = DRAM(**settings).fit(X, L).predict(X)
    second = DRAM(**settings).fit(np.concatenate([X, 3.0 + X[:1]]), odd).predict(X)
    assert np.abs(first - second).max() < 0.02


def test_answers_follow_the_rankings_and_new_rows_are_predicted(small):
    X, L, D = small
    for preset in (DRAM(), DRAM.preset("original_code")):
        method = preset.fit(X, ranked(D))
        uniform = np.full_like(D, 0.25)
        assert measures.cosine(D, method.label_distributions_) > measures.cosine(D, uniform)
        np.testing.assert_array_equal(method.predict(X), method.label_distributions_)
        np.testing.assert_array_equal(method.enhance(X, ranked(D)), method.label_distributions_)
        assert 0.0 < method.score(X, ranked(D)) < 1.0
    assert DRAM(**SHORT).fit_enhance(X, L).shape == D.shape
    with pytest.raises(LabelError, match="whole numbers"):
        DRAM(**SHORT).fit(X, ranked(D) / 3)


def test_faces(real):
    # The authors' program on standardised features, full rankings, in sample: .0481.
    X, D = real("SJAFFE")
    assert measures.kl(D, DRAM().fit_enhance(X, ranked(D))) == pytest.approx(0.0481, rel=0.15)


@pytest.mark.slow
def test_faces_as_published(real):
    # The authors' program on features as they are: .0774.
    X, D = real("SJAFFE")
    assert measures.kl(D, DRAM.preset("original_code").fit_enhance(X, ranked(D))) == pytest.approx(0.0774, rel=0.15)

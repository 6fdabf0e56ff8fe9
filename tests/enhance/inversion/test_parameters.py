"""Conditional distributions of the parameters and what the numbers of labels tell of the spread: their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, lognorm, norm
from told import Told

from contone import CumulativeMass, Threshold
from contone.enhance.inversion import logistic_normal as model
from contone.enhance.inversion.covariance import FactorCovariance
from contone.enhance.inversion.logistic_normal import Flips, Parameters, Spread
from contone.measurements import Order
from contone.numerics.simplex import softmax

Q, P = 4, 3


def centred_covariance(seed=0, q=Q):
    A, C = np.random.default_rng(seed).normal(size=(q, q)), model.centring(q)
    return C @ (A @ A.T + 0.2 * np.eye(q)) @ C


@pytest.mark.parametrize("q", [2, Q])
def test_precision_is_the_pseudo_inverse_and_the_mean_variance_along_the_shift(q):
    Sigma, C = centred_covariance(q=q), model.centring(q)
    found = model.precision(Sigma)
    np.testing.assert_allclose(C @ found @ C, np.linalg.pinv(Sigma, rcond=1e-10), atol=1e-9)
    assert 1 / found.sum() == pytest.approx(
        np.trace(Sigma) / (q - 1) / q
    )  # 1' P 1 = q over the variance of 1' z / q^.5
    assert 0 < model.precision(np.zeros((1, 1)))[0, 0] < math.inf
    np.testing.assert_allclose(model.square_root(Sigma) @ model.square_root(Sigma).T, Sigma, atol=1e-12)
    np.testing.assert_allclose(model.colour(Sigma, np.eye(q)).T @ model.colour(Sigma, np.eye(q)), Sigma, atol=1e-12)
    assert model.total_variance(Sigma) == pytest.approx(np.trace(Sigma))


@pytest.mark.parametrize("q", [2, Q])
def test_a_prior_of_sigma_is_worth_so_many_rows_that_are_equal_and_unrelated(q):
    """As if that many rows with the mean square of all, spread evenly, stood beside those that are there."""
    E = np.random.default_rng(0).normal(size=(20, q))
    E -= E.mean(axis=1, keepdims=True)
    more = math.sqrt(np.mean(E**2) * q / (q - 1)) * model.centring(q)  # q rows with unit directions each
    weighed = np.vstack([E, math.sqrt(5.0) * more])
    np.testing.assert_allclose(model.covariance_mode(E.T @ E, 20, 5.0), weighed.T @ weighed / 25.0)
    singular = model.covariance_mode(E[:1].T @ E[:1], 1, 0.0)
    assert np.linalg.eigvalsh(singular)[1] > 0  # with no prior at all a direction would have none
    assert np.isfinite(model.covariance_mode(np.zeros((1, 1)), 5, 0.0)).all()


@pytest.mark.parametrize("factors", [False, True])
def test_coefficients_are_drawn_from_their_normal_distribution(factors):
    """A draw is less likely than the most likely one by half the squares of its normal numbers, however they fall."""
    rng = np.random.default_rng(1)
    phi, Z = np.vstack([np.ones(30), rng.normal(size=(P - 1, 30))]), rng.normal(size=(Q, 30))
    Z -= Z.mean(axis=0)
    Sigma = FactorCovariance(rng.normal(size=(Q, 2)), np.ones(Q)) if factors else centred_covariance()
    now = Parameters(np.zeros((P, Q)), Sigma, 0.4)
    inside = np.linalg.pinv(Sigma.dense() if factors else Sigma, rcond=1e-10)

    def log_density(B):
        E, held = Z - B.T @ phi, np.array([1 / model.FLAT, 1 / 0.4, 1 / 0.4])
        return -0.5 * np.einsum("jn,jk,kn->", E, inside, E) - 0.5 * np.einsum("p,pj,jk,pk->", held, B, inside, B)

    best = model.draw_coefficients(phi @ phi.T, phi @ Z.T, now, Told(np.zeros(P * Q)))
    lengths = []
    for k in range(P * Q):
        B = model.draw_coefficients(phi @ phi.T, phi @ Z.T, now, Told(1.5 * np.eye(P * Q)[k]))
        np.testing.assert_allclose(B.sum(axis=1), 0.0, atol=1e-7)
        lengths.append(2 * (log_density(best) - log_density(B)) / 1.5**2)
    # Of q numbers per feature q - 1 count: the squares of what is left of all directions sum to p (q - 1).
    assert np.sum(lengths) == pytest.approx(P * (Q - 1))
    assert np.max(lengths) < 1 + 1e-9


def test_the_weight_of_features_is_inverse_gamma():
    """Shape 1 and scale 0.1 before; every coefficient a normal number of q - 1 coordinates, the constant left out."""
    rng = np.random.default_rng(2)
    B = rng.normal(size=(P, Q)) @ model.centring(Q)
    for Sigma in (centred_covariance(), FactorCovariance(rng.normal(size=(Q, 2)), np.ones(Q))):
        dense = Sigma if isinstance(Sigma, np.ndarray) else Sigma.dense()
        told = Told()
        theta = model.draw_theta(B, Sigma, told)
        size = np.einsum("kj,jl,kl->", B[1:], np.linalg.pinv(dense, rcond=1e-10), B[1:])
        assert told.asked["standard_gamma"] == 1 + (P - 1) * (Q - 1) / 2
        assert theta * told.asked["standard_gamma"] == pytest.approx(0.1 + size / 2)


def test_a_shape_at_another_scale():
    given = Parameters(np.ones((2, 3)), np.eye(3), 0.7)
    found = given.scaled(3.0)
    assert (found.coefficients == 3).all()
    assert (found.covariance == 9 * np.eye(3)).all()
    assert found.theta == 0.7
    assert model.variance_factor(math.inf) == 1.0
    assert model.variance_factor(6.0) == 1.5


def test_scores_of_a_row_are_those_of_its_mid_ranks():
    """A tie stands in the middle of its places, a label without a level in the middle of all; ends are finite."""
    alone = [np.nan, 2.0, np.nan, np.nan]  # in the middle as well
    levels = np.array([[3.0, np.nan, 0.0, 1.0], [1.0, 1.0, 5.0, 1.0], alone]).T  # (q, n): 4 labels of 3 rows
    places = np.array([[2.5 / 3, 0.5, 0.5 / 3, 1.5 / 3], [1.5 / 4, 1.5 / 4, 3.5 / 4, 1.5 / 4], [0.5] * 4])
    scores = model.ndtri(places) @ model.centring(4)
    mean, covariance = model.level_moments(levels)
    np.testing.assert_allclose(mean, scores.mean(axis=0))
    E = scores - scores.mean(axis=0)
    np.testing.assert_allclose(covariance, model.covariance_mode(E.T @ E, 3, 4.0))
    assert np.isfinite(model.level_moments(np.full((2, 3), np.nan))[0]).all()


# ------------------------------------------------------------------------------------------------------- the spread


@pytest.mark.parametrize(("mean", "deviation"), [(0.5, 0.1), (2.0, 3.0)])
def test_a_spread_is_log_normal_with_its_mean_and_deviation(mean, deviation):
    spread = Spread(mean, deviation)
    s = math.log(spread.at(1.0) / spread.at(0.0))
    believed = lognorm(s, scale=spread.at(0.0))
    assert (believed.mean(), believed.std()) == pytest.approx((mean, deviation))
    assert spread.at(-1.7) == pytest.approx(believed.ppf(ndtr(-1.7)))
    assert Spread(0.0, 0.0).at(1.0) == 0.0
    assert not Spread(0.0, 0.0).at_edge()


def test_a_spread_is_at_the_edge_where_a_deviation_takes_it_there():
    low, high = model.RANGE
    inner = low * model.NEAR_EDGE, high / model.NEAR_EDGE
    assert [Spread(x + 1.01 * d, d).at_edge() for x, d in [(inner[0], 0.1)]] == [False]
    assert [Spread(x + 0.99 * d, d).at_edge() for x, d in [(inner[0], 0.1)]] == [True]
    assert [Spread(x - 1.01 * d, d).at_edge() for x, d in [(inner[1], 0.1)]] == [False]
    assert [Spread(x - 0.99 * d, d).at_edge() for x, d in [(inner[1], 0.1)]] == [True]


def log_prior(log_spread, prior):
    """Normal within PULL deviations of the middle; beyond, a straight line of the same slope."""
    x = abs(log_spread - math.log(prior[0])) / prior[1]
    return -0.5 * x**2 if x < model.PULL else -0.5 * model.PULL**2 - model.PULL * (x - model.PULL)


@pytest.mark.parametrize("rule", [CumulativeMass(), Order()], ids=str)
def test_without_labels_the_spread_has_the_moments_of_its_prior(rule):
    low, high = np.log(model.RANGE)
    total, first, second = (
        quad(lambda t, k=k: math.exp(log_prior(t, rule.spread_prior) + k * t), low, high, limit=200)[0]
        for k in range(3)
    )
    found, mean = model.spread_prior(rule), first / total
    assert found.mean == pytest.approx(mean, rel=2e-3)
    assert found.deviation == pytest.approx(math.sqrt(second / total - mean**2), rel=5e-3)
    grid = np.geomspace(*model.RANGE, 50)
    expected = [log_prior(math.log(s), rule.spread_prior) for s in grid]
    np.testing.assert_allclose(model._log_prior(grid, rule.spread_prior), expected, atol=1e-12)


@pytest.mark.parametrize("flips", [Flips(), Flips(0.2, 0.1)])
@pytest.mark.parametrize("rule", [CumulativeMass(0.6), Threshold(0.3, at_least_one=False)], ids=str)
def test_the_numbers_of_labels_have_the_likelihood_of_simulated_ones(rule, flips):
    """Half a count beside each number that may occur; what the rule never marks is not counted."""
    Z, least = np.random.default_rng(3).normal(size=(900, Q)), int(rule.at_least_one)
    counts = np.array([3.0, 11.0, 0.0, 20.0, 6.0])[least:]
    turned = np.array([[_chance(a, b, flips) for b in range(Q + 1)] for a in range(Q + 1)])
    np.testing.assert_allclose(flips.numbers(Q), turned, atol=1e-12)

    def expected(spread):
        made = np.bincount(rule._apply(softmax(spread * Z)).sum(axis=1), minlength=Q + 1) @ turned
        share = (made[least:] + 0.5) / (made[least:] + 0.5).sum()
        return counts @ np.log(share)

    spreads = np.array([0.3, 1.0, 4.0])
    found = model._likelihood(Z, counts, rule.cardinality, flips)(spreads)
    np.testing.assert_allclose(found, [expected(s) for s in spreads], rtol=1e-9)


def _chance(a, b, flips):
    """P(b labels of Q are marked | a are positive), by the sum over how many positive ones are."""
    return sum(
        binom.pmf(k, a, 1 - flips.missed) * binom.pmf(b - k, Q - a, flips.false) for k in range(min(a, b) + 1) if b >= k
    )


@pytest.mark.parametrize("deviation", [0.004, 0.03, 0.3])
def test_the_spread_has_the_moments_of_a_narrow_peak_wherever_it_lies(deviation):
    """Also where it lies in the middle between two points of the grid, which are then as likely as each other."""
    rule = CumulativeMass()
    for centre in np.linspace(-1.0, 0.7, 23):
        grid, score = model._integrate(rule, lambda s, c=centre: -0.5 * ((np.log(s) - c) / deviation) ** 2)
        found = model._moments(grid, score)
        fine = np.exp(np.linspace(centre - 8 * deviation, centre + 8 * deviation, 401))
        prior = [log_prior(math.log(s), rule.spread_prior) for s in fine]
        expected = model._moments(fine, prior - 0.5 * ((np.log(fine) - centre) / deviation) ** 2)
        assert found.mean == pytest.approx(expected.mean, abs=0.01 * expected.deviation)
        assert found.deviation == pytest.approx(expected.deviation, rel=0.02)


def test_posterior_and_evidence_of_the_spread_are_integrals():
    """Over a fine grid of log s, of the prior times the likelihood of the numbers of labels."""
    rule = CumulativeMass()
    Z = np.random.default_rng(4).normal(size=(4000, 6))
    counts = np.bincount(rule._apply(softmax(0.7 * Z[:300])).sum(axis=1), minlength=7)[1:].astype(float)
    grid = np.geomspace(*model.RANGE, 2001)
    prior = np.array([log_prior(math.log(s), rule.spread_prior) for s in grid])
    likelihood = model._likelihood(Z, counts, rule.cardinality, Flips())(grid)
    joint = np.exp(prior + likelihood - (prior + likelihood).max())
    weight, mean = joint / joint.sum(), joint @ grid / joint.sum()
    found = model.spread_posterior(rule, Z, counts)
    assert found.mean == pytest.approx(mean, rel=5e-3)
    assert found.deviation == pytest.approx(math.sqrt(weight @ (grid - mean) ** 2), rel=0.05)
    evidence = math.log(joint.sum() / np.exp(prior).sum()) + (prior + likelihood).max()
    assert model.spread_evidence(rule, Z, counts) == pytest.approx(evidence, abs=0.02)
    assert model.spread_posterior(Order(), Z, counts) == model.spread_prior(Order())


def test_the_start_has_the_tetrachoric_correlations_of_bonett_and_price():
    """Pair by pair: cos(pi / (1 + w^c)), w the odds ratio with half a count in each cell, c by the margins."""
    L = (np.random.default_rng(0).random((25, 3)) < [0.9, 0.4, 0.15]).astype(float)
    R, n = np.eye(3), 25
    for j, k in ((0, 1), (0, 2), (1, 2)):
        a, b = L[:, j] > 0, L[:, k] > 0
        odds = ((a & b).sum() + 0.5) * ((~a & ~b).sum() + 0.5) / (((a & ~b).sum() + 0.5) * ((~a & b).sum() + 0.5))
        p, q = (a.sum() + 0.5) / (n + 1), (b.sum() + 0.5) / (n + 1)
        c = (1 - abs(p - q) / 5 - (0.5 - min(p, q, 1 - p, 1 - q)) ** 2) / 2
        R[j, k] = R[k, j] = math.cos(math.pi / (1 + odds**c))
    assert np.linalg.eigvalsh(R)[0] > 0.02
    mean, covariance = model.moments(L.T @ L, n)
    np.testing.assert_allclose(covariance, model.centring(3) @ R @ model.centring(3), atol=1e-12)
    np.testing.assert_allclose(mean, model.centring(3) @ norm.ppf((L.sum(axis=0) + 0.5) / (n + 1)))


def test_labels_that_contradict_each_other_start_from_correlations_all_the_same():
    """Two pairs always meet and a third never does: no such variables exist; the nearest have the variance one."""
    n, pairs = 100, np.array([[50.0, 50, 0], [50, 50, 50], [0, 50, 50]])
    mean, covariance = model.moments(pairs, n)
    both, alone = pairs + 0.5, 50.5 - pairs
    odds, share = both * (n - 100 + pairs + 0.5) / alone**2, 50.5 / 101
    R = np.cos(np.pi / (1 + odds ** (0.5 * (1 - (0.5 - share) ** 2))))
    np.fill_diagonal(R, 1.0)
    values, vectors = np.linalg.eigh(R)
    assert values[0] < 0
    nearest = (vectors * np.maximum(values, 0.02)) @ vectors.T
    nearest /= np.sqrt(np.outer(np.diag(nearest), np.diag(nearest)))
    np.testing.assert_allclose(covariance, model.centring(3) @ nearest @ model.centring(3), atol=1e-9)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)

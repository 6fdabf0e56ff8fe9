"""Steps of the chain against the one joint density, whatever they make of it."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from told import Told

from contone.enhance.inversion.people import chain as module
from contone.enhance.inversion.people.answers import VOTES
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.fit import sort_responses
from contone.enhance.inversion.people.priors import Prior

N, W = 10, 4


class Feature:
    """One that grows with the log of the width."""

    def __init__(self, values):
        self.values = values - values.mean(axis=1, keepdims=True)

    def at(self, width):
        return self.values * (1.0 + 0.3 * math.log(width))


@pytest.fixture
def chain():
    """Every person's votes on every item, two features, and two items whose log weights are known."""
    rng = np.random.default_rng(0)
    features = [Feature(rng.normal(size=(N, 3))) for _ in range(2)]
    known = np.full((N, 3), np.nan)
    known[:2] = [[0.5, -0.5, 0.0], [1.0, 0.5, -1.5]]
    item, person = np.repeat(np.arange(N), W), np.tile(np.arange(1, W + 1), N)
    votes = rng.multinomial(1, [0.5, 0.3, 0.2], size=N * W).astype(float)
    responses = sort_responses(VOTES, votes, N, item, person)
    chain = Chain(responses, features, Prior(), rng, n_persons=W, known=known)
    for _ in range(3):
        chain.sweep()
    return chain


def log_joint(chain, **changed):
    """Log density of answers, items, persons and parameters, but for the shapes' own and a constant."""
    chain = copy.copy(chain)
    for name, value in changed.items():
        setattr(chain, name, value)
    mean, prior, basis = chain.mean_at(chain.spread, chain.tau), chain.prior, chain.basis
    E = np.sqrt(chain.weight)[:, None] * (chain.Z - mean) @ basis
    b, a = chain.offsets()[1:] @ basis, np.log(chain.traits.sharpness[1:])
    away = np.concatenate([chain.intercept, chain.coefficients - 1 / max(len(chain.coefficients), 1)])
    return (
        chain.likelihood(chain.Z)
        + stats.multivariate_normal(np.zeros(2), chain.spread**2 * chain.shape).logpdf(E).sum()
        + stats.multivariate_normal(np.zeros(2), chain.tau**2 * chain.offset_shape).logpdf(b).sum()
        + stats.norm(0, chain.kappa).logpdf(a).sum()
        + stats.norm(0, prior.coefficient).logpdf(away).sum()
        + prior.spread.log_density(math.log(chain.spread))
        + prior.offset.log_density(math.log(chain.tau))
        + prior.sharpness.log_density(math.log(chain.kappa))
    )


@pytest.mark.parametrize("n_features", [0, 1, 2])
def test_coefficients_are_drawn_from_their_normal_distribution(chain, n_features):
    """A draw is less likely than the most likely one by half the squares of its standard normal numbers."""
    found = []
    chain.features, chain.coefficients = chain.features[:n_features], chain.coefficients[:n_features]
    for normals in ([0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.3, -1.0, 2.0, 0.5]):
        normals = normals[: 2 + n_features]
        chain.rng = Told(normals)
        chain.draw_coefficients()
        np.testing.assert_allclose(chain.mean, chain.mean_at(chain.spread, chain.tau))
        found.append(log_joint(chain) + 0.5 * np.square(normals).sum())
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


def test_the_level_is_drawn_from_its_normal_distribution_and_no_answer_sees_it(chain):
    found, start, told = [], copy.copy(chain), chain.likelihood(chain.Z)
    for normals in ([0.0, 0.0], [1.5, 0.0], [-0.4, 1.0]):
        chain = copy.copy(start)
        chain.rng = Told(normals)
        chain.draw_level()
        assert chain.likelihood(chain.Z) == pytest.approx(told, rel=1e-9)
        assert (chain.traits.offset[0] == 0).all()
        np.testing.assert_allclose(chain.mean, chain.mean_at(chain.spread, chain.tau))
        np.testing.assert_allclose(chain.Z - chain.mean, start.Z - start.mean)
        np.testing.assert_allclose(chain.mode - chain.mean, start.mode - start.mean)
        found.append(log_joint(chain) + 0.5 * np.square(normals).sum())
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


@pytest.mark.parametrize(("step", "name"), [("draw_spread", "spread"), ("draw_tau", "tau"), ("draw_kappa", "kappa")])
def test_scales_have_the_density_of_everything_that_they_scale(chain, monkeypatch, step, name):
    """Given the values themselves; V, which is drawn before tau, as it is then."""
    seen = []

    def look(log_density, x, width, rng):
        at = np.array([-0.7, 0.0, 0.4])
        state = copy.copy(chain)
        seen.append(([log_density(v) for v in at], [log_joint(state, **{name: math.exp(v)}) for v in at]))
        return x

    monkeypatch.setattr(module, "slice_step", look)
    getattr(chain, step)()
    ((found, expected),) = seen
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)


@pytest.mark.parametrize("name", ["tau", "kappa"])
@pytest.mark.parametrize("normal", [2.0, -2.0])
def test_scales_with_what_they_scale_are_taken_by_the_ratio_of_densities(chain, name, normal):
    """Of offsets / tau, log sharpness / kappa and e, which stay: their own density does not change."""
    prior, go = {
        "tau": (chain.prior.offset.log_density, Chain._with_tau),
        "kappa": (chain.prior.sharpness.log_density, Chain._with_kappa),
    }[name]

    def log_density(chain):  # the Jacobian of b = tau b', log a = kappa x and z = mu + e
        more = W * 2 * math.log(chain.tau) if name == "tau" else W * math.log(chain.kappa)
        return log_joint(chain) + more

    there = copy.copy(chain)
    go(there, getattr(chain, name) * math.exp(normal * chain.steps[name]))
    np.testing.assert_allclose(there.Z[:2], chain.Z[:2])
    np.testing.assert_allclose((there.Z - there.mean)[2:], (chain.Z - chain.mean)[2:])
    ratio = math.exp(log_density(there) - log_density(chain))
    for uniform in (min(0.999 * ratio, 1.0), 1.001 * ratio):
        state = copy.copy(chain)
        state.rng, state.adapting = Told([normal], uniform), False
        told = state._scale(name, prior, lambda value, state=state: go(state, value))
        taken = uniform < ratio
        assert getattr(state, name) == pytest.approx(getattr(there if taken else chain, name))
        assert told == pytest.approx(state.likelihood(state.Z))
        np.testing.assert_allclose(state.Z, (there if taken else chain).Z)


def test_steps_grow_where_they_are_taken_and_shrink_where_not(chain):
    for uniform, grows in ((1e-300, True), (1.0 - 1e-12, False)):
        state = copy.copy(chain)
        state.rng, state.steps = Told([3.0], uniform), dict(chain.steps)
        state._scale("kappa", lambda x, grows=grows: 0.0 if grows else -1e3 * x, state._with_kappa)
        assert (state.steps["kappa"] > chain.steps["kappa"]) == grows


def test_tails_have_the_chance_of_the_residuals_and_weights_their_own(chain):
    chain.rng = Told()
    chain.draw_tails()
    E = (chain.Z - chain.mean) @ chain.basis
    S = chain.spread**2 * chain.shape
    tails = chain.prior.tails
    shape, scale = chain.rng.asked["gamma"]
    Q = np.einsum("ij,jk,ik->i", E, np.linalg.inv(S), E)
    nu = tails[-1]
    # Gamma(nu / 2, nu / 2) before, and a normal density of e / w^(1/2) seen: r / 2 and Q / 2 more
    np.testing.assert_allclose(shape, nu / 2 + 1)
    np.testing.assert_allclose(1 / scale, (nu + Q) / 2)
    chain.prior = Prior(tails=tails[1:3])
    seen = []
    chain.rng.choice = lambda values, p=None: seen.append(p) or values[0]
    chain.draw_tails()
    log_p = np.array([stats.multivariate_t(np.zeros(2), S, df=nu).logpdf(E).sum() for nu in tails[1:3]])
    p = np.exp(log_p - log_p.max())
    np.testing.assert_allclose(seen[0], p / p.sum(), rtol=1e-9)


@pytest.mark.parametrize("way", [-1, 1])
def test_tails_turn_with_the_ranks_of_weights_by_the_ratio_of_densities(chain, way):
    tails, before = chain.prior.tails, 2
    chain.tail = before
    nu, after = tails[before], tails[before + way]
    Q = chain.squares() / chain.spread**2
    rank = stats.gamma(nu / 2, scale=2 / nu).cdf(chain.weight)
    weight = stats.gamma(after / 2, scale=2 / after).ppf(rank)
    Z = chain.mean + np.sqrt(chain.weight / weight)[:, None] * (chain.Z - chain.mean)
    Z[:2] = chain.Z[:2]
    # e and the ranks have no part of it; the known items have their density
    ratio = chain.likelihood(Z) - chain.likelihood(chain.Z)
    ratio += np.sum((np.log(weight / chain.weight) - 0.5 * (weight - chain.weight) * Q)[:2])
    for uniform in (min(0.999 * math.exp(ratio), 1.0), 1.001 * math.exp(ratio)):
        state = copy.copy(chain)
        state.rng = Told(uniform=uniform)
        state.rng.choice = lambda values: way
        state._turn_tails(Q)
        taken = uniform < math.exp(ratio)
        assert state.tail == (before + way if taken else before)
        np.testing.assert_allclose(state.weight, weight if taken else chain.weight, rtol=1e-6)
        np.testing.assert_allclose(state.Z, Z if taken else chain.Z, rtol=1e-6, atol=1e-9)
    ends = copy.copy(chain)
    ends.tail, ends.rng = (0 if way < 0 else len(tails) - 1), state.rng
    ends._turn_tails(Q)  # there is no other beyond
    assert ends.weight is chain.weight


def test_the_share_along_the_order_has_the_chance_of_the_shapes(chain):
    """A shape is an inverse Wishart matrix without its size, over which its density is integrated."""
    chain.rng = Told()
    n0, r = 1 + chain.prior.shape, 2

    def chance(R, B):
        return quad(lambda c: stats.invwishart(n0, B).pdf(c * R) * c ** (r * (r + 1) / 2 - 1), 0, np.inf)[0]

    chain.draw_axis()
    axes, p = chain.rng.asked["choice"]
    np.testing.assert_array_equal(axes, chain.prior.axes)
    expected = [math.prod(chance(R, chain.belief(axis)) for R in (chain.shape, chain.offset_shape)) for axis in axes]
    np.testing.assert_allclose(p, expected / np.sum(expected), rtol=1e-6)
    np.testing.assert_allclose(chain.believed, chain.belief(axes[-1]))
    for axis in axes:
        assert np.trace(chain.belief(axis)) == pytest.approx(2.0)
    away = chain.basis.T @ [-1.0, 0.0, 1.0]
    np.testing.assert_allclose(chain.belief(1.0) @ away, 2.0 * away)


def test_shapes_are_drawn_from_what_they_scale(chain, monkeypatch):
    """R from the residuals with the weights of items, in units of s^2; V from the offsets, in units of tau^2."""
    seen = []
    monkeypatch.setattr(module, "draw_shape_of", lambda S, n, R, worth, rng, B: seen.append((S, n, R, worth, B)) or R)
    E, b = (chain.Z - chain.mean) @ chain.basis, chain.offsets()[1:] @ chain.basis
    scatter = sum(w * np.outer(e, e) for w, e in zip(chain.weight, E, strict=True))
    expected = (
        (scatter / chain.spread**2, N, chain.shape),
        (b.T @ b / chain.tau**2, W, chain.offset_shape),
    )
    chain.draw_shape()
    chain.draw_tau()
    for (S, n, R, worth, B), (squares, rows, now) in zip(seen, expected, strict=True):
        np.testing.assert_allclose(S, squares)
        assert (n, worth) == (rows, chain.prior.shape)
        np.testing.assert_array_equal(R, now)
        np.testing.assert_array_equal(B, chain.believed)


@pytest.mark.parametrize(
    ("votes", "n_persons", "steps"),
    [
        (1, 0, "items tails shape spread"),  # one vote has told its features all it knows of the mean
        (3, 0, "items tails shape spread coefficients together"),
        (1, W, "items tails shape spread coefficients together persons tau kappa level"),
    ],
)
def test_a_sweep_takes_every_step_that_answers_call_for(monkeypatch, votes, n_persons, steps):
    rng, taken = np.random.default_rng(0), []
    item, person = np.arange(N), np.arange(N) % W + 1
    responses = sort_responses(
        VOTES, votes * np.eye(3)[rng.integers(3, size=N)], N, item, person if n_persons else None
    )
    made = Chain(responses, [Feature(rng.normal(size=(N, 3)))], Prior(), rng, n_persons=n_persons)
    for name in ("items", "tails", "shape", "spread", "coefficients", "persons", "tau", "kappa", "level"):
        monkeypatch.setattr(made, f"draw_{name}", lambda name=name: taken.append(name))
    monkeypatch.setattr(made.together, "step", lambda: taken.append("together"))
    made.sweep()
    assert " ".join(taken) == steps
    taken.clear()
    made.free[0] = False  # a level that is known, or that nobody in particular sees, is no longer free
    made.sweep()
    assert "level" not in taken
    made.free[0], made.by_person = True, made.by_person._replace(first=made.by_person.first + 1)
    made.sweep()
    assert "level" not in taken


def test_a_spread_that_votes_leave_open_stays_where_persons_are_known():
    rng = np.random.default_rng(0)
    responses = sort_responses(VOTES, np.eye(3)[rng.integers(3, size=N)], N, np.arange(N), np.arange(N) % W + 1)
    made = Chain(responses, [], Prior(), rng, n_persons=W)
    before = made.shape
    made.draw_spread()
    assert made.spread == Prior().spread.median
    assert not np.array_equal(made.shape, before)
    made.rng = Told()
    made.draw_tails()
    assert made.tail == len(made.prior.tails) - 1  # nearly normal, as what features are matched to


def test_precision_and_squares_are_those_of_the_covariance(chain):
    covariance = chain.spread**2 * chain.basis @ chain.shape @ chain.basis.T
    # the level, along which nothing is known, has the variance 1
    np.testing.assert_allclose(np.linalg.inv(chain.precision()), covariance + 1 / 3, atol=1e-12)
    E = chain.Z - chain.mean
    expected = np.einsum("ij,jk,ik->i", E, np.linalg.pinv(covariance), E)
    np.testing.assert_allclose(chain.squares() / chain.spread**2, expected)


def test_items_go_along_with_another_spread_and_shape(chain):
    """e = A^-1 (z - mu) stays."""
    before = np.linalg.solve(chain.spread * np.linalg.cholesky(chain.shape), ((chain.Z - chain.mean) @ chain.basis).T)
    chain._go(1.7, np.array([[1.5, 0.2], [0.2, 0.5]]))
    after = np.linalg.solve(1.7 * np.linalg.cholesky(chain.shape), ((chain.Z - chain.mean) @ chain.basis).T)
    np.testing.assert_allclose(after, before)
    np.testing.assert_allclose(chain.mean, chain.mean_at(1.7, chain.tau))


def test_people_have_the_offsets_and_the_sharpness_of_the_model(chain):
    normals = np.random.default_rng(0).standard_normal((20_000, 4))
    people = chain.people(normals)
    b = people.offset - (1 - people.sharpness)[:, None] * chain.usual
    covariance = chain.tau**2 * chain.basis @ chain.offset_shape @ chain.basis.T
    np.testing.assert_allclose(np.cov(b.T), covariance, atol=0.05 * np.trace(covariance))
    np.testing.assert_allclose(np.log(people.sharpness), chain.kappa * normals[:, 3])
    again = chain.with_offsets(chain.traits.sharpness, chain.offsets())
    np.testing.assert_allclose(again.offset, chain.traits.offset)


def test_a_shape_is_taken_by_the_ratio_of_target_and_proposal(monkeypatch):
    """Both are densities of a matrix without its size: the proposal's rows are all n, the target's those of belief."""
    rng = np.random.default_rng(0)
    S, B, n, worth = np.array([[9.0, 2.0], [2.0, 4.0]]), np.diag([1.2, 0.8]), 7, 3.0
    n0 = 1 + worth
    R, other = (A * 2 / np.trace(A) for A in stats.invwishart.rvs(6, np.eye(2), size=2, random_state=rng))
    monkeypatch.setattr(module.invwishart, "rvs", lambda N, T, random_state: 3.7 * other)

    def log_density(R, n, T):
        return math.log(quad(lambda c: stats.invwishart(n, T).pdf(c * R) * c**2, 0, np.inf)[0])

    def log_target(R):
        likelihood = -0.5 * n * np.linalg.slogdet(R)[1] - 0.5 * np.trace(np.linalg.solve(R, S))
        return log_density(R, n0, B) + likelihood

    def log_weight(R):
        return log_target(R) - log_density(R, n0 + n, S + n0 * B)

    ratio = math.exp(log_weight(other) - log_weight(R))
    for uniform, first in itertools.product((0.999, 1.001), (True, False)):
        start, end, chance = (R, other, ratio) if first else (other, R, 1 / ratio)
        monkeypatch.setattr(module.invwishart, "rvs", lambda N, T, random_state, end=end: 3.7 * end)
        found = module.draw_shape_of(S, n, start, worth, Told(uniform=min(uniform * chance, 1.0)), B)
        np.testing.assert_allclose(found, end if min(uniform * chance, 1.0) < chance else start)

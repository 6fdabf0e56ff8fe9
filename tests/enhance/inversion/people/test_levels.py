"""Levels: chances that sum to one, draws that agree with integrals on a grid, limits that collapse into each other."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import invwishart

from contone.enhance.inversion.people.answers import LEVELS, Responses, Traits
from contone.enhance.inversion.people.levels import (
    add_terms_of_levels,
    log_chance_by_anybody,
    log_chance_of_level,
    log_chance_of_levels,
    mean_levels,
)
from contone.enhance.inversion.people.levels_chain import LevelsChain
from contone.enhance.inversion.people.likelihood import MARK
from contone.enhance.inversion.people.priors import LevelsPrior, LogNormal
from contone.enhance.inversion.people.rows import draw_items
from contone.enhance.inversion.people.traits import bits_of

CUTS = np.array([0.0, 0.7, 2.5])


def test_chances_of_all_levels_sum_to_one():
    for m, cuts in itertools.product([-30.0, -1.0, 0.3, 5.0, 30.0], [CUTS, CUTS[:1], np.linspace(0, 4, 20)]):
        chances = [math.exp(log_chance_of_level(y, m, cuts)) for y in range(len(cuts) + 1)]
        assert sum(chances) == pytest.approx(1.0, abs=1e-13)


def test_chance_of_a_level_is_a_difference_of_logistic_functions():
    F = [1.0, *(1 / (1 + np.exp(-(0.4 - CUTS)))), 0.0]
    assert [math.exp(log_chance_of_level(y, 0.4, CUTS)) for y in range(4)] == pytest.approx(-np.diff(F), rel=1e-13)


def test_gradient_and_information_are_derivatives():
    z, levels, b = np.array([0.3, -1.2, 2.0]), np.array([0.0, 3.0, 1.0]), np.array([0.1, 0.5, -0.3])
    gradient, information = np.zeros(3), np.zeros((3, 3))
    add_terms_of_levels(z, levels, 1.3, b, CUTS, gradient, information)
    h = 1e-4
    for j, e in enumerate(np.eye(3) * h):
        low, middle, high = (log_chance_of_levels(z + s * e, levels, 1.3, b, CUTS) for s in (-1, 0, 1))
        assert gradient[j] == pytest.approx((high - low) / (2 * h), rel=1e-6)
        assert information[j, j] == pytest.approx(-(high - 2 * middle + low) / h**2, rel=1e-5)


def test_a_label_that_nobody_asked_about_says_nothing():
    z, b = np.array([0.3, -1.2]), np.zeros(2)
    assert log_chance_of_levels(z, np.array([np.nan, 2.0]), 1.0, b, CUTS) == log_chance_of_level(2, -1.2, CUTS)


def _grid(low, high, n):
    points = np.linspace(low, high, n)
    return points, points[1] - points[0]


def test_items_are_drawn_as_an_integral_over_a_grid_says():
    """Three labels, two persons, one label not asked: means and second moments of z."""
    values = np.array([[0.0, 3.0, 1.0], [1.0, np.nan, 0.0]])
    traits = Traits(np.array([1.0, 1.4]), np.array([[0.0, 0.0, 0.0], [0.5, -0.4, 1.0]]), np.stack([CUTS, 0.6 * CUTS]))
    P = np.linalg.inv(np.array([[1.5, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 2.0]]))
    mean = np.array([0.2, -0.5, 0.4])
    x, _ = _grid(-7, 7, 57)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    log_p = -0.5 * np.einsum("ij,jk,ik->i", grid - mean, P, grid - mean)
    for j in range(3):
        for r, w in ((0, 0), (1, 1)):
            if not np.isnan(values[r, j]):
                m = traits.sharpness[w] * x + traits.offset[w, j]
                along = np.array([log_chance_of_level(int(values[r, j]), v, traits.cuts[w]) for v in m])
                log_p += along[np.searchsorted(x, grid[:, j])]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    centre = p @ grid
    spread = np.einsum("i,ij,ik->jk", p, grid - centre, grid - centre)

    n = 40_000
    first = np.arange(0, 2 * n + 1, 2)
    responses = Responses(LEVELS, first, np.tile([0, 1], n), np.tile(values, (n, 1)))
    Z, mode, means = np.zeros((n, 3)), np.zeros((n, 3)), np.tile(mean, (n, 1))
    for seed in range(12):
        draw_items(0, n, seed, Z, mode, means, np.ones(n), P, responses, traits, np.ones(n, bool))
    error = np.sqrt(np.diag(spread) / n)
    assert np.abs(Z.mean(axis=0) - centre).max() < 4 * error.max()
    assert np.abs(np.cov(Z.T) - spread).max() < 0.05 * np.diag(spread).max()


class Nothing:
    """A feature that is zero."""

    def __init__(self, n, q):
        self.n, self.q = n, q

    def at(self, spread):
        return np.zeros((self.n, self.q))


def make_chain(values, n_persons, n_cuts, seed=0, person=None, first=None, prior=None):
    first = np.arange(len(values) + 1) if first is None else first
    person = np.zeros(len(values), int) if person is None else person
    responses = Responses(LEVELS, first, person, np.ascontiguousarray(values, dtype=float))
    n = len(first) - 1
    features = [Nothing(n, values.shape[1])]
    rng = np.random.default_rng(seed)
    worth = np.arange(n_cuts + 1.0)
    return LevelsChain(responses, features, prior or LevelsPrior(), rng, worth=worth, n_persons=n_persons)


def test_traits_of_a_person_are_drawn_as_an_integral_says():
    """One label, people with the same three answers each: offset, log sharpness and log stretch at known z."""
    values, Z, n = np.array([[0.0], [2.0], [1.0]]), np.array([[-1.0], [1.5], [0.3]]), 500
    person = np.tile(np.arange(1, n + 1), 3)
    chain = make_chain(np.repeat(values, n, axis=0), n, 2, person=person, first=np.arange(0, 3 * n + 1, n))
    chain.Z, chain.tau, chain.kappa, chain.gamma = Z, 0.8, 0.4, 0.5
    chain.gaps = np.array([1.2])
    chain.traits = chain.traits._replace(cuts=chain.cuts())
    b, log_a, log_g = (np.linspace(-5 * s, 5 * s, 61) for s in (0.8, 0.4, 0.5))
    B, A, G = np.meshgrid(b, log_a, log_g, indexing="ij")
    log_p = -0.5 * ((B / 0.8) ** 2 + (A / 0.4) ** 2 + (G / 0.5) ** 2)
    for y, z in zip(values[:, 0].astype(int), Z[:, 0], strict=True):
        m = np.exp(A) * z + B
        above = [np.ones_like(m), *(1 / (1 + np.exp(-(m - np.exp(G) * c))) for c in (0.0, 1.2)), np.zeros_like(m)]
        log_p += np.log(above[y] - above[y + 1])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    draws = []
    for k in range(60):
        chain.draw_persons()
        if k >= 15:
            draws.append([chain.traits.offset[1:, 0], np.log(chain.traits.sharpness[1:]), chain.log_stretch[1:]])
    draws = np.concatenate(draws, axis=1).T
    assert chain.traits.sharpness[0] == 1.0
    for k, T in enumerate((B, A, G)):
        mean = float((p * T).sum())
        deviation = math.sqrt(float((p * (T - mean) ** 2).sum()))
        assert draws[:, k].mean() == pytest.approx(mean, abs=0.05 * deviation)
        assert draws[:, k].std() == pytest.approx(deviation, rel=0.05)


def test_cut_points_are_drawn_as_an_integral_says():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(25, 1))
    values = (Z + rng.logistic(size=(25, 3)) > 0).sum(axis=1, keepdims=True).astype(float)
    chain = make_chain(values, 0, 3)
    chain.Z = Z
    c2, c3 = np.meshgrid(np.linspace(0.01, 8, 240), np.linspace(0.01, 12, 240), indexing="ij")
    ok = c3 > c2
    typical = math.log(chain.prior.range_of_cuts / 2)
    gap2, gap3 = c2, np.where(ok, c3 - c2, 1.0)
    log_p = -0.5 * (np.log(gap2) - typical) ** 2 - np.log(gap2) - 0.5 * (np.log(gap3) - typical) ** 2 - np.log(gap3)
    for y, z in zip(values[:, 0].astype(int), Z[:, 0], strict=True):
        above = [np.ones_like(c2), *(1 / (1 + np.exp(-(z - c))) for c in (0.0 * c2, c2, c3)), np.zeros_like(c2)]
        log_p += np.log(np.where(ok, above[y] - above[y + 1], 1.0))
    p = np.where(ok, np.exp(log_p - log_p[ok].max()), 0.0)
    p /= p.sum()
    draws = []
    for _ in range(8000):
        chain.draw_cuts()
        draws.append(chain.traits.cuts[0, 1:])
    draws = np.array(draws)
    for k, T in enumerate((c2, c3)):
        mean = float((p * T).sum())
        deviation = math.sqrt(float((p * (T - mean) ** 2).sum()))
        assert draws[:, k].mean() == pytest.approx(mean, abs=0.1 * deviation)
        assert draws[:, k].std() == pytest.approx(deviation, rel=0.1)


WORTH = np.array([0.0, 0.5, 0.8, 1.0])
PEOPLE = Traits(np.array([1.0, 1.5]), np.array([[0.0, 0.0], [0.4, -0.2]]), np.stack([CUTS, 2 * CUTS]), WORTH[None, :])


def _chances(z, w):
    """P(level) (q, K + 1) by person w."""
    m = PEOPLE.sharpness[w] * z + PEOPLE.offset[w]
    return np.exp([[log_chance_of_level(y, x, PEOPLE.cuts[w]) for y in range(4)] for x in m])


def test_means_and_chances_are_sums_over_levels_and_people():
    z = np.array([0.3, -1.0])
    level, marked = np.empty(2), np.empty(2)
    mean_levels(z, PEOPLE, PEOPLE.worth[0], level)
    mean_levels(z, PEOPLE, MARK, marked)
    both = np.mean([_chances(z, 0), _chances(z, 1)], axis=0)
    assert level == pytest.approx(both @ WORTH, rel=1e-12)
    assert marked == pytest.approx(1 - both[:, 0], rel=1e-12)


def test_an_answer_by_anybody_is_one_persons_answer_about_all_labels():
    """Labels of one answer go together, since one person gave them: the mean of products, no product of means."""
    z, levels = np.array([0.3, -1.0]), np.array([2.0, 0.0])
    products = [_chances(z, w)[0, 2] * _chances(z, w)[1, 0] for w in range(2)]
    assert math.exp(log_chance_by_anybody(z, levels, PEOPLE)) == pytest.approx(np.mean(products), rel=1e-12)


def test_bits_of_one_label_are_mutual_information():
    Z = np.array([[-2.0], [0.0], [3.0]])
    joint = np.stack([_chances(z, 0)[0] for z in Z]) / 3
    expected = (joint * np.log2(joint / (joint.sum(axis=0) / 3))).sum()
    found = bits_of(Z, Traits(PEOPLE.sharpness[:1], PEOPLE.offset[:1, :1], PEOPLE.cuts[:1]))
    assert found[0] == pytest.approx(expected, rel=1e-10)
    assert bits_of(Z, Traits(np.zeros(1), np.zeros((1, 1)), CUTS[None, :]))[0] == pytest.approx(0.0, abs=1e-12)


def test_few_persons_are_all_people_each_as_often_as_they_answered():
    values = np.zeros((40, 2))
    chain = make_chain(values, 2, 1, person=np.repeat([1, 2], [30, 10]))
    chain.traits.offset[1:] = [[1.0, 1.0], [5.0, 5.0]]
    found = chain.people(np.zeros((64, 3)))
    assert sorted(found.offset[:, 0].tolist()) == [1.0] * 48 + [5.0] * 16


def test_sharpness_and_stretch_have_deviations_of_their_own(monkeypatch):
    """Each given the logs of everybody but nobody in particular."""
    chain = make_chain(np.array([[2.0, 0], [0, 1], [1, 1]]), 2, 2, person=np.array([1, 2, 1]))
    chain.log_stretch = np.array([9.0, 0.3, -0.2])
    chain.traits = chain.traits._replace(sharpness=np.exp([9.0, 0.5, 0.1]))
    monkeypatch.setattr(chain, "_scale", lambda *_: None)
    seen = []
    monkeypatch.setattr(chain, "draw_deviation", lambda now, x, prior: seen.append((now, x, prior)) or now + 1)
    before = chain.kappa, chain.gamma
    chain.draw_kappa()
    assert (chain.kappa, chain.gamma) == (before[0] + 1, before[1] + 1)
    for (now, x, prior), value, expected, of in zip(
        seen, before, ([0.5, 0.1], [0.3, -0.2]), (chain.prior.sharpness, chain.prior.stretch), strict=True
    ):
        assert (now, prior) == (value, of)
        np.testing.assert_allclose(x, expected)


def test_marks_have_no_stretch():
    """With a single cut point there is nothing between cut points that could be stretched."""
    chain = make_chain(np.array([[1.0, 0], [0, 1], [1, 1]]), 2, 1, person=np.array([1, 2, 1]))
    chain.draw_persons()
    np.testing.assert_array_equal(chain.log_stretch, 0.0)
    assert (chain.traits.sharpness[1:] != 1.0).all()


LONG = [(1, 0), (3, 0), (1, 6), (3, 6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_cuts", "n_persons", "n_draws", "n_sweeps"),
    [(3, 6, 10, 120), *(pytest.param(*case, 40, 400, marks=pytest.mark.exhaustive) for case in LONG)],
)
def test_ranks_of_true_parameters_are_uniform(n_cuts, n_persons, n_draws, n_sweeps):
    """Simulation-based calibration (Talts et al. 2018): parameters from the prior, answers from them, the chain.

    With 40 draws a mean rank that is off by 0.2 (where uniform ranks vary by 0.046) is found with a power of 0.85.
    """
    prior = LevelsPrior(
        spread=LogNormal(1.5, 0.3), coefficient=0.7, shape=8.0, tails=np.array([10.0]), offset=LogNormal(0.7, 0.3)
    )
    ranks = np.array([_rank(seed, prior, n_cuts, n_persons, n_sweeps) for seed in range(n_draws)])
    assert np.abs(ranks.mean(axis=0) - 0.5).max() < 3.3 * 0.289 / math.sqrt(n_draws)
    assert ranks.std(axis=0).min() > 0.1
    if n_draws > 10:
        assert 0.2 < ranks.std(axis=0).min() <= ranks.std(axis=0).max() < 0.37


def _rank(seed, prior, n_cuts, n_persons, n_sweeps, n=60, k=3, q=3):
    rng = np.random.default_rng(seed)
    intercept, spread = prior.coefficient * rng.standard_normal(q), prior.spread.draw(rng)
    shape = _draw_shape(rng, q, prior.shape)
    Z = intercept + spread * rng.standard_normal((n, q)) @ np.linalg.cholesky(shape).T * _tail(rng, n, 10.0)
    gaps = np.exp(math.log(prior.range_of_cuts / max(n_cuts - 1, 1)) + rng.standard_normal(n_cuts - 1))
    common = np.concatenate([[0.0], np.cumsum(gaps)])
    person = np.zeros(n * k, int)
    a, b, g, tau = np.ones(n_persons + 1), np.zeros((n_persons + 1, q)), np.ones(n_persons + 1), 0.0
    if n_persons:
        person = np.concatenate([1 + rng.permutation(n_persons)[:k] for _ in range(n)])
        tau, kappa, gamma = (p.draw(rng) for p in (prior.offset, prior.sharpness, prior.stretch))
        T = np.linalg.cholesky(_draw_shape(rng, q, prior.shape))
        b[1:] = tau * rng.standard_normal((n_persons, q)) @ T.T
        a[1:] = np.exp(kappa * rng.standard_normal(n_persons))
        g[1:] = np.exp(gamma * rng.standard_normal(n_persons)) if n_cuts > 1 else 1.0
    item = np.repeat(np.arange(n), k)
    m = a[person, None] * Z[item] + b[person]
    noise = rng.logistic(size=m.shape)
    values = (m[:, :, None] + noise[:, :, None] > (g[person, None] * common)[:, None, :]).sum(axis=2).astype(float)
    chain = make_chain(values, n_persons, n_cuts, seed, person, np.arange(0, n * k + 1, k), prior)
    # What is asked is what the answers see: the mean chance of an average person, not where z and b split it.
    truth = _quantities(Z, a, b, g[:, None] * common, spread, tau, np.bincount(person, minlength=n_persons + 1))
    draws = []
    for t in range(n_sweeps):
        chain.adapting = t < n_sweeps // 4
        chain.sweep()
        if not chain.adapting:
            traits = chain.traits
            counts = np.bincount(person, minlength=n_persons + 1)
            draws.append(
                _quantities(chain.Z, traits.sharpness, traits.offset, traits.cuts, chain.spread, chain.tau, counts)
            )
    return (np.array(draws) < truth).mean(axis=0)


def _draw_shape(rng, q, worth):
    R = invwishart.rvs(q - 1 + worth, np.eye(q), random_state=rng)
    return R * q / np.trace(R)


def _tail(rng, n, nu):
    return rng.gamma(nu / 2, 2 / nu, size=(n, 1)) ** -0.5


def _quantities(Z, a, b, cuts, spread, tau, counts):
    above = expit(a[:, None, None, None] * Z[..., None] + b[:, None, :, None] - cuts[:, None, None, :])
    level, chance = (np.tensordot(counts / counts.sum(), P, 1) for P in (above.sum(axis=3), above[..., 0]))
    share = level / level.sum(axis=1, keepdims=True)
    found = [spread, level[0, 0], share[1, 1], chance[2, 2], level.mean()]
    return np.array(found + [tau] * (len(a) > 1) + [cuts[0, -1]] * (cuts.shape[1] > 1))

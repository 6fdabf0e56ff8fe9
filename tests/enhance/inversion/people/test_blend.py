"""Items of other kinds than the chain's: their likelihoods, their answers, and when there are none."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import helmert
from scipy.special import gammaln, logit
from scipy.stats import beta, norm
from three_labels import COVARIANCE, precision

from contone import Inversion
from contone.enhance.counting import log_chances
from contone.enhance.inversion.people import blend
from contone.enhance.inversion.people.answers import VOTES, Traits
from contone.enhance.inversion.people.blend import Blend
from contone.enhance.inversion.people.fit import BLENDED_POINTS
from contone.enhance.inversion.people.matching import MatchedShares
from contone.enhance.inversion.people.model import Draw, PeopleFit, simulate_answers, sort_responses
from contone.numerics.simplex import softmax

WAYS = np.array([w for w in itertools.product(range(5), repeat=3) if sum(w) == 4], dtype=float)
COEFFICIENT = gammaln(5) - gammaln(WAYS + 1).sum(axis=1)


@pytest.mark.parametrize("nu", [6.0, 60.0, 1e6])
def test_there_are_points_enough_for_eight_labels(nu):
    """With 64 the chances of all ways to vote sum to .95: two thousand items are then a hundred nats less likely."""
    drawn = itertools.combinations_with_replacement(range(8), 3)
    ways, nobody = np.array([np.bincount(w, minlength=8) for w in drawn], float), Traits(np.ones(1), np.zeros((1, 8)))
    P = helmert(8).T @ helmert(8) / 0.8**2 + 1 / 8
    draws = (Draw(np.linspace(1.5, -1.5, 8), np.zeros(0), 1.0, P, nu, nobody, nobody),) * 4
    fit = PeopleFit.__new__(PeopleFit)
    object.__setattr__(fit, "draws", draws)
    object.__setattr__(fit, "kind", VOTES)
    log_chances = fit.chain_alone(sort_responses(VOTES, ways, len(ways)), [], draws, VOTES, n_points=BLENDED_POINTS)[1]
    log_chances += gammaln(4) - gammaln(ways + 1).sum(axis=1)
    assert_allclose(np.exp(log_chances).sum(), 1.0, atol=0.01)


@pytest.mark.parametrize("nu", [6.0, 1e6])
def test_the_chances_of_all_ways_to_vote_sum_to_one(nu):
    nobody = Traits(np.ones(1), np.zeros((1, 3)))
    draw = Draw(np.array([0.7, -0.2, -0.5]), np.zeros(0), 1.0, precision(COVARIANCE), nu, nobody, nobody)
    fit = PeopleFit.__new__(PeopleFit)
    object.__setattr__(fit, "draws", (draw,))
    object.__setattr__(fit, "kind", VOTES)
    responses = sort_responses(VOTES, WAYS, len(WAYS))
    evidence = fit.chain_alone(responses, [], (draw,) * 8, VOTES, n_points=64)[1]
    assert_allclose(np.exp(evidence + COEFFICIENT).sum(), 1.0, atol=0.01)
    assert_allclose(np.exp(log_chances(WAYS, np.array([0.3, 1.0, 2.0])) + COEFFICIENT).sum(), 1.0)


def made(n, k, drawn):
    """Features, votes and shares of n items; features tell P, and shares are drawn from P."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    P = softmax(X @ rng.normal(size=(2, 3)) + [1.0, 0.0, -1.0])
    D = np.stack([drawn(p, rng) for p in P])
    return X, rng.multinomial(k, D).astype(float), D, P


def dirichlet(p, rng):
    return rng.dirichlet(2.0 * p)


def test_shares_of_a_dirichlet_distribution_are_answered_as_such():
    """As well as by who knows P and c; draws of all kinds agree with the answer, and new rows with training rows."""
    X, Y, D, P = made(600, 6, dirichlet)
    method = Inversion(degradation="votes", n_sweeps=120, n_burn=40, n_samples=80, random_state=0)
    answer, best = method.fit_enhance(X, Y), (Y + 2.0 * P) / 8.0
    found = method.fit_.blend
    assert found.weights[0] < 0.4
    assert 1.0 <= np.average(found.concentrations, weights=found.weights[1:]) <= 4.0

    def loss(A):
        return float((D * np.log(np.maximum(D, 1e-12) / A)).sum(axis=1).mean())

    assert loss(answer) < 1.04 * loss(best)
    assert np.abs(method.samples_.mean(axis=0) - answer).mean() < 0.02
    assert np.abs(method.enhance(X, Y) - answer).mean() < 0.01
    assert 0.8 < method.expected_error_.mean / loss(answer) < 1.25
    lower, upper = method.intervals(level=0.9)
    assert 0.84 < ((lower <= np.maximum(D, 1e-8)) & (upper >= D)).mean() < 0.95
    features = [MatchedShares(np.tile([0.6, 0.3, 0.1], (4000, 1)))]
    rng, like = np.random.default_rng(0), np.ones((4000, 3))
    drawn = np.concatenate([simulate_answers(method.fit_, d, features, like, rng)[0] for d in method.fit_.draws[:6]])
    assert_allclose(drawn.mean(axis=0), [0.6, 0.3, 0.1], atol=0.05)
    assert_allclose(drawn.var(axis=0), [0.08, 0.07, 0.03], atol=0.015)  # m (1 - m) / 3


def test_there_are_none_among_normal_shares_nor_where_votes_say_nothing_of_it():
    short = {"degradation": "votes", "n_sweeps": 60, "n_burn": 20, "random_state": 0}
    X, Y, _, _ = made(400, 6, lambda p, rng: softmax(np.log(p) + rng.normal(size=3)))
    assert Inversion(**short).fit(X, Y).fit_.blend is None
    X, Y, _, _ = made(200, 1, dirichlet)
    assert Inversion(**short).fit(X, Y).fit_.blend is None


def test_another_kind_must_gain_what_a_number_costs(monkeypatch):
    """Half the log of how many items have several votes: with evidence that all items lack, just above and below it."""
    monkeypatch.setattr(blend, "CONCENTRATIONS", np.array([2.0]))
    n, once = 100, 60
    features = [MatchedShares(np.full((n + once, 3), 1 / 3))]
    rng = np.random.default_rng(0)
    counts = np.vstack([rng.multinomial(3, rng.dirichlet(np.full(3, 2 / 3), n)[k]) for k in range(n)]
                       + [np.eye(3)[k % 3] for k in range(once)])  # fmt: skip
    alike = log_chances(counts, np.full(3, 2 / 3))
    for lack, found in ((0.5 * np.log(n) + 0.1, True), (0.5 * np.log(n) - 0.1, False), (-5.0, False)):
        evidence = alike - lack / n
        evidence[n:] = alike[n:] - 7.0  # one vote tells nothing of it
        made = Blend.of(evidence, counts, features)
        assert (made is not None) == found
        if found:
            np.testing.assert_array_equal(made.concentrations, [2.0])
            assert_allclose(made.weights, [0.0, 1.0], atol=0.3)
    far = alike + np.where(np.arange(n + once) % 2, -800.0, 800.0)  # every other item is the chain's alone
    assert_allclose(Blend.of(far, counts, features).weights, [0.5, 0.5], atol=0.02)


def test_kinds_are_taken_one_after_the_other_as_long_as_they_gain():
    """Shares next to one label and even ones, in equal parts: two concentrations, and nothing of the chain."""
    rng, n = np.random.default_rng(0), 400
    D = np.concatenate([rng.dirichlet(np.full(3, 0.5 / 3), n), rng.dirichlet(np.full(3, 100.0), n)])
    counts = np.stack([rng.multinomial(30, d) for d in D])
    features = [MatchedShares(np.full((2 * n, 3), 1 / 3))]
    made = Blend.of(np.full(2 * n, -1e4), counts, features)
    assert made.weights[0] < 0.01
    low = made.concentrations < 8.0
    assert made.weights[1:][low].sum() == pytest.approx(0.5, abs=0.05)
    assert made.concentrations[low].min() <= 1.0
    assert made.concentrations.max() > 60.0


def test_a_row_with_labels_that_were_not_on_offer_is_the_chains():
    made = Blend(np.array([0.5, 0.5]), np.array([2.0]))
    features = [MatchedShares(np.full((4, 3), 1 / 3))]
    counts = np.array([[3.0, 0.0, 1.0], [3.0, 0.0, np.nan], [np.nan] * 3, [0.0] * 3])
    evidence = log_chances(np.nan_to_num(counts), np.full(3, 2.0 / 3.0)) + np.log([2.0, 1.0, 1.0, 1.0])
    kinds = made.kinds(evidence, counts, made.beliefs(features))
    assert_allclose(kinds[0], [2 / 3, 1.0, 0.5, 0.5])
    chain = np.full((3, 4, 3), 0.25)
    D, centre, width = made.mixed(chain, evidence, counts, features)
    assert_allclose(D[0], 0.25 * 2 / 3 + (counts[0] + 2 / 3) / 6 / 3)
    assert_allclose(np.stack([centre[1], width[1]]), 0.25)
    a = counts[0] + 2 / 3  # of the others the middle and the width of the 90 % interval of their Dirichlet distribution
    low, high = (logit(beta(a, a.sum() - a).ppf(p)) for p in (0.05, 0.95))
    assert_allclose(centre[0], 0.25 * 2 / 3 + 0.5 * (low + high) / 3)
    assert_allclose(width[0], 0.25 * 2 / 3 + (high - low) / (norm.ppf(0.95) - norm.ppf(0.05)) / 3)


def test_items_of_other_kinds_are_drawn_again_and_the_chains_stay():
    kinds, D = np.tile([[0.3], [0.5], [0.2]], 5000), np.full((2, 5000, 3), 7.0)
    a = np.tile(np.array([[50.0, 1, 1], [1, 1, 50.0]])[:, None], (1, 5000, 1))
    Blend(np.ones(3), np.ones(2)).redraw(D, kinds, a, np.random.default_rng(0))
    stays = (D == 7.0).all(axis=2)
    assert stays.mean() == pytest.approx(0.3, abs=0.02)
    assert_allclose(D[~stays].sum(axis=1), 1.0)
    for label, share in ((0, 0.5), (2, 0.2)):
        of_kind = ~stays & (D[:, :, label] > 0.5)
        assert of_kind.mean() == pytest.approx(share, abs=0.02)
        assert D[of_kind][:, label].mean() == pytest.approx(50 / 52, abs=0.01)
    assert np.corrcoef(stays)[0, 1] == pytest.approx(0.0, abs=0.05)  # every draw by itself


def test_votes_are_counted_item_by_item():
    values = np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 1], [1, np.nan, 0]])
    found = blend.votes_of(sort_responses(VOTES, values, 4, np.array([0, 0, 2, 3])))
    assert_allclose(found, [[1, 2, 0], [0, 0, 0], [0, 0, 1], [1, np.nan, 0]])

"""What more votes are expected to bring: against Dirichlet distributions, where it is known in closed form."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multinomial

from contone.enhance.inversion.people import next_answers as module
from contone.enhance.inversion.people.next_answers import (
    NextAnswer,
    Person,
    counting_losses,
    entropy,
    expected_losses,
    gains_of_persons,
    next_answers,
)


@pytest.fixture(scope="module")
def dirichlet():
    """Draws of three items with known parameters (3, 3)."""
    alpha = np.array([[2.0, 1.0, 1.0], [8.0, 4.0, 0.5], [0.4, 0.3, 0.3]])
    rng = np.random.default_rng(0)
    return alpha, np.stack([rng.dirichlet(a, size=20_000) for a in alpha], axis=1)


def conjugate(alpha, k):
    """L_k by Polya's urn, one vote after the other."""
    if k == 0:
        return entropy(alpha / alpha.sum())
    m = alpha / alpha.sum()
    return sum(m[j] * conjugate(alpha + np.eye(len(m))[j], k - 1) for j in range(len(m)))


def test_expected_losses_of_a_dirichlet_distribution(dirichlet):
    alpha, D = dirichlet
    expected = np.array([[conjugate(a, k) for a in alpha] for k in (0, 1, 2, 4)])
    np.testing.assert_allclose(expected_losses(D, (0, 1, 2, 4)), expected, rtol=0.01)
    assert (np.diff(expected, axis=0) < 0).all()


@pytest.mark.parametrize("k", [1, 2])
def test_votes_that_are_drawn_are_weighed_by_all_draws_but_their_own(k, monkeypatch):
    """The mean of -sum d_s log m_c over draws s and the ways c to vote, m_c without d_s; by enumeration."""
    few, n = np.random.default_rng(1).dirichlet([1.0, 0.7, 0.4], size=4), 3000
    ways = [np.array(c) for c in itertools.product(range(k + 1), repeat=3) if sum(c) == k]
    expected = 0.0
    for s, d in enumerate(few):
        others = np.delete(few, s, axis=0)
        for c in ways:
            weight = (others**c).prod(axis=1)
            expected -= multinomial(k, d).pmf(c) * d @ np.log(weight @ others / weight.sum()) / len(few)
    monkeypatch.setattr(module, "MOST_WAYS", 0)
    found = expected_losses(np.repeat(few[:, None], n, axis=1), (k,))
    assert found.mean() == pytest.approx(expected, abs=5 * found.std() / math.sqrt(n))
    assert found.std() < 0.5
    # Of two draws each other one is all that is left, however many votes there were.
    pair = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    many = expected_losses(np.repeat(pair[:, None], 5, axis=1), (5000,))
    np.testing.assert_allclose(many, -pair[0] @ np.log(pair[1]))


def test_somebody_like_all_tells_what_anybody_tells_and_who_does_not_look_tells_nothing(dirichlet):
    _, D = dirichlet
    losses = expected_losses(D, (0, 1))
    persons = [
        Person("all", 1.0, np.zeros(3)),
        Person("blind", 0.0, np.array([3.0, 0, 0])),
        Person("sharp", 2.0, np.zeros(3)),
    ]
    alike, blind, sharp = gains_of_persons(D, persons)
    np.testing.assert_allclose(alike, losses[0] - losses[1], atol=1e-9)
    np.testing.assert_allclose(blind, 0.0, atol=1e-12)
    assert (sharp[1:] > alike[1:]).all()


@pytest.mark.parametrize("far", [0.0, 2000.0])
def test_a_persons_vote_tells_as_much_as_its_chances_do(far):
    """H(m) - sum_j p_j H(m_j), draw by draw, with chances softmax(a log d + b); labels of any size."""
    D, b = np.random.default_rng(0).dirichlet([1.0, 0.7, 0.4], size=(6, 2)), np.array([0.5, -1.0, 0.2])
    (found,) = gains_of_persons(D, [Person("x", 1.7, b + far)])
    for item, d in enumerate(D.swapaxes(0, 1)):
        p = np.array([np.exp(b) * row**1.7 / (np.exp(b) * row**1.7).sum() for row in d])
        after = sum(p[:, j].mean() * entropy(p[:, j] @ d / p[:, j].sum()) for j in range(3))
        assert found[item] == pytest.approx(entropy(d.mean(axis=0)) - after)


def test_answers_go_where_most_is_open_and_to_who_tells_most(dirichlet):
    _, D = dirichlet
    known = np.broadcast_to([0.5, 0.3, 0.2], (len(D), 1, 3))  # nothing to learn
    D = np.concatenate([D, known], axis=1)[:500]
    found = next_answers(D, 5)
    assert [a.gain for a in found] == sorted((a.gain for a in found), reverse=True)
    assert 3 not in [a.item for a in found]
    assert found[0] == NextAnswer(2, "", pytest.approx(found[0].gain))
    persons = [Person("dull", 0.5, np.zeros(3)), Person("sharp", 2.0, np.zeros(3))]
    asked = next_answers(D, 6, persons, [set(), set(), {"sharp"}, set()])
    assert {a.person for a in asked if a.item == 2} <= {"dull", ""}
    pairs = [(a.item, a.person) for a in asked if a.person]
    assert len(set(pairs)) == len(pairs)


def test_counting_needs_many_votes(dirichlet):
    D = np.tile(dirichlet[1][:2000], (1, 100, 1))
    losses = counting_losses(D, [1, 10, 1000])
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] == pytest.approx(entropy(D).mean(), abs=0.03)


@pytest.mark.parametrize("a", [[2.0, 1.0, 0.5], [0.3, 0.2, 0.1]])
def test_counting_has_the_pseudo_votes_of_the_items(a):
    """Of Dirichlet degrees, one vote for j leaves the mean (a + e_j) / (a_0 + 1), and its entropy is the loss."""
    a = np.array(a)
    D = np.random.default_rng(0).dirichlet(a, size=(20, 4000))
    after = (a + np.eye(3)) / (a.sum() + 1)
    prior = a / a.sum()
    expected = [entropy(prior), prior @ entropy(after)]
    np.testing.assert_allclose(counting_losses(D, [0, 1]), expected, atol=5e-3)

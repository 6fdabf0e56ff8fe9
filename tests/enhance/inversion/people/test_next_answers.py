"""What more votes are expected to bring: against Dirichlet distributions, where it is known in closed form."""

import numpy as np
import pytest

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


def test_drawn_ways_to_vote_agree_with_all_of_them(dirichlet, monkeypatch):
    alpha, _ = dirichlet
    rng = np.random.default_rng(1)
    D = np.stack([rng.dirichlet(alpha[0], size=400) for _ in range(400)], axis=1)
    summed = expected_losses(D, (3,)).mean()
    monkeypatch.setattr("contone.enhance.inversion.people.next_answers.MOST_WAYS", 0)
    assert expected_losses(D, (3,)).mean() == pytest.approx(summed, rel=0.01)


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


def test_counting_has_the_pseudo_votes_of_the_items():
    """Of Dirichlet degrees, one vote for j leaves the mean (a + e_j) / (a_0 + 1), and its entropy is the loss."""
    a = np.array([2.0, 1.0, 0.5])
    D = np.random.default_rng(0).dirichlet(a, size=(20, 4000))
    after = (a + np.eye(3)) / (a.sum() + 1)
    prior = a / a.sum()
    expected = [entropy(prior), prior @ entropy(after)]
    np.testing.assert_allclose(counting_losses(D, [0, 1]), expected, atol=5e-3)

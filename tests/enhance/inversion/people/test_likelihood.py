"""Answers of people: their likelihood and its derivatives, and the small compiled parts that draws are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_softmax, logsumexp

from contone.enhance.inversion.people import small, streams
from contone.enhance.inversion.people.answers import LEVELS, MARKED, VOTES, Responses, Traits
from contone.enhance.inversion.people.likelihood import add_terms, answer, log_chance, log_likelihood
from contone.enhance.inversion.people.persons import likelihood_of_person, sort_by_person
from contone.enhance.inversion.people.rows import half_square, likelihood_of_items, slopes_of_items
from contone.numerics.simplex import softmax

Q = 4
WORTH = np.array([[0.0, 1.0, 4.0]])
TRAITS = Traits(
    np.array([1.0, 0.6, 1.7]),
    np.array([[0.0] * Q, [0.5, -1.0, 0.2, 0.3], [0.0, 0.4, -0.4, 1.0]]),
    np.array([[0.2, 1.2], [-0.3, 0.8], [0.0, 2.0]]),
    WORTH,
)
VOTES_GIVEN = np.array([[2, 0, 1, 3], [np.nan, 1, 0, 4], [0, 0, 0, 0], [np.nan, 2, np.nan, 0], [0, 5, 0, 0.0]])
LEVELS_GIVEN = np.array([[2, 0, 1, 0], [np.nan, 1, 0, 2], [np.nan] * Q, [np.nan, 2, np.nan, 0], [0, 1, 2, 0.0]])
PERSON = np.array([0, 1, 2, 2, 1])


def responses_of(kind):
    return Responses(kind, np.array([0, 2, 2, 5]), PERSON, VOTES_GIVEN if kind == VOTES else LEVELS_GIVEN)


def log_chances(kind, z, w):
    """Log chances of answers to an item with log weights z: (q,) of votes on the labels, (q, 3) of levels."""
    seen = TRAITS.sharpness[w] * z + TRAITS.offset[w]
    if kind == VOTES:
        return seen
    above = np.column_stack([np.ones(Q), expit(seen[:, None] - TRAITS.cuts[w]), np.zeros(Q)])
    return np.log(-np.diff(above, axis=1))


def expected_likelihood(kind, z, r):
    values = responses_of(kind).values[r]
    asked, chances = ~np.isnan(values), log_chances(kind, z, PERSON[r])
    if kind == VOTES:
        return float(values[asked] @ log_softmax(chances[asked])) if asked.any() else 0.0
    return float(sum(chances[j, int(values[j])] for j in np.flatnonzero(asked)))


@pytest.mark.parametrize("kind", [VOTES, LEVELS])
def test_an_answer_has_the_chance_of_its_formula_and_terms_are_derivatives(kind):
    rng, given = np.random.default_rng(0), responses_of(kind)
    for r in range(5):
        z, room = rng.normal(size=Q), np.empty(Q)
        gradient, information = np.zeros(Q), np.zeros((Q, Q))
        value = log_likelihood(z, r, given, TRAITS)
        assert value == pytest.approx(expected_likelihood(kind, z, r))
        assert add_terms(z, r, given, TRAITS, room, gradient, information) == pytest.approx(value)
        alone = np.zeros(Q)
        add_terms(z, r, given, TRAITS, room, alone, np.empty((0, 0)))
        np.testing.assert_array_equal(alone, gradient)
        full = np.tril(information) + np.tril(information, -1).T
        steps = 1e-4 * np.eye(Q)
        at = lambda *moves: expected_likelihood(kind, z + sum(moves), r)  # noqa: B023, E731
        np.testing.assert_allclose(gradient, [(at(e) - at(-e)) / 2e-4 for e in steps], atol=1e-6)
        second = [[(at(e, f) - at(e, -f) - at(-e, f) + at(-e, -f)) / 4e-8 for f in steps] for e in steps]
        np.testing.assert_allclose(full, -np.array(second), atol=1e-5)


@pytest.mark.parametrize("kind", [VOTES, LEVELS])
def test_log_weights_of_any_size_leave_numbers(kind):
    """Of a thousand and more, whose exponentials are none; whoever is asked."""
    given, traits = responses_of(kind), TRAITS._replace(offset=TRAITS.offset + np.outer([0.0, 3e3, -4e3], np.ones(Q)))
    for r in range(5):
        for z in (np.array([2e3, 1.9e3, 0.0, -2e3]), np.array([-3e3, 0.0, 1.0, 2.5e3])):
            gradient, information, out = np.zeros(Q), np.zeros((Q, Q)), np.empty(Q)
            terms = add_terms(z, r, given, traits, np.empty(Q), gradient, information)
            assert math.isfinite(terms)
            assert terms == pytest.approx(log_likelihood(z, r, given, traits), rel=1e-9)
            assert np.isfinite(gradient).all()
            assert np.isfinite(information).all()
            answer(z, kind, traits, np.zeros(Q), out)
            assert out.sum() == pytest.approx(1.0)


def test_nobody_in_particular_is_one_of_the_people_in_the_mean():
    """The share of votes is the mean of chances; all levels of one answer are by one person."""
    z, room = np.array([0.4, -0.3, 1.0, 0.2]), np.empty(Q)
    votes, levels = responses_of(VOTES), responses_of(LEVELS)
    share = np.mean([softmax(log_chances(VOTES, z, w)) for w in range(3)], axis=0)
    assert log_chance(z, 0, votes, TRAITS, TRAITS, room) == pytest.approx(VOTES_GIVEN[0] @ np.log(share))
    of_levels = [sum(log_chances(LEVELS, z, w)[j, int(y)] for j, y in enumerate(LEVELS_GIVEN[0])) for w in range(3)]
    assert log_chance(z, 0, levels, TRAITS, TRAITS, room) == pytest.approx(logsumexp(of_levels) - math.log(3))
    for given in (votes, levels):  # somebody who is known is that person
        assert log_chance(z, 1, given, TRAITS, TRAITS, room) == log_likelihood(z, 1, given, TRAITS)


def test_people_give_an_item_the_mean_of_what_each_of_them_would():
    z, out, offered = np.array([0.4, -0.3, 1.0, 0.2]), np.empty(Q), np.array([0.0, np.nan, 0, 0])
    answer(z, VOTES, TRAITS, offered, out)
    few = [0, 2, 3]
    np.testing.assert_allclose(out[few], np.mean([softmax(log_chances(VOTES, z, w)[few]) for w in range(3)], axis=0))
    assert out[1] == 0.0
    chances = np.exp([log_chances(LEVELS, z, w) for w in range(3)]).mean(axis=0)
    answer(z, MARKED, TRAITS, np.zeros(Q), out)
    np.testing.assert_allclose(out, 1 - chances[:, 0])
    answer(z, LEVELS, TRAITS, np.zeros(Q), out)
    np.testing.assert_allclose(out, chances @ WORTH[0] / (chances @ WORTH[0]).sum())
    answer(z, LEVELS, TRAITS._replace(worth=0 * WORTH), np.zeros(Q), out)
    np.testing.assert_allclose(out, 1 / Q)  # levels that are worth nothing


@pytest.mark.parametrize("kind", [VOTES, LEVELS])
def test_sums_go_over_the_responses_of_items_and_of_persons(kind):
    given, Z = responses_of(kind), np.random.default_rng(1).normal(size=(3, Q))
    item = [0, 0, 2, 2, 2]
    each = [expected_likelihood(kind, Z[i], r) for r, i in enumerate(item)]
    assert likelihood_of_items(0, 3, Z, given, TRAITS) == pytest.approx(sum(each))
    assert likelihood_of_items(0, 2, Z, given, TRAITS) == pytest.approx(sum(each[:2]))
    slope = np.full((3, Q), 9.0)
    assert slopes_of_items(0, 3, Z, given, TRAITS, slope) == pytest.approx(sum(each))
    np.testing.assert_array_equal(slope[1], 0.0)
    gradient = np.zeros(Q)
    for r in (2, 3, 4):
        add_terms(Z[2], r, given, TRAITS, np.empty(Q), gradient, np.empty((0, 0)))
    np.testing.assert_allclose(slope[2], gradient)
    by_person = sort_by_person(given, 3)
    assert [sorted(by_person.order[a:b]) for a, b in zip(by_person.first[:-1], by_person.first[1:], strict=True)] == [
        [0], [1, 4], [2, 3], []]  # fmt: skip
    np.testing.assert_array_equal(by_person.item, item)
    for w in (1, 2):
        told = sum(e for e, person in zip(each, PERSON, strict=True) if person == w)
        assert likelihood_of_person(w, Z, given, TRAITS, by_person) == pytest.approx(told)


# ---------------------------------------------------------------------------------------------------- small matrices


@pytest.mark.parametrize("q", [1, 2, 5])
def test_small_matrices_are_factorised_and_solved(q):
    rng = np.random.default_rng(q)
    A = rng.normal(size=(q, q))
    A = A @ A.T + 0.1 * np.eye(q)
    L, x = A.copy(), rng.normal(size=q)
    assert small.factorise(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A))
    lower, upper = x.copy(), x.copy()
    small.solve_lower(L, lower)
    small.solve_upper(L, upper)
    np.testing.assert_allclose(np.tril(L) @ lower, x)
    np.testing.assert_allclose(np.tril(L).T @ upper, x)
    assert not small.factorise(-A)
    assert not small.factorise(np.zeros((q, q)))
    mean = rng.normal(size=q)
    assert half_square(x, mean, A, 0.3) == pytest.approx(0.15 * (x - mean) @ A @ (x - mean))


# --------------------------------------------------------------------------------------------------- random numbers


def test_streams_are_uniform_and_normal_and_their_own():
    n, rows = 200, 100
    numbers, normals, state = np.empty((rows, n)), np.empty((rows, n + 1)), np.zeros(1, np.uint64)
    for row in range(rows):
        streams.start_stream(state, 7, row)
        numbers[row] = [streams.uniform(state) for _ in range(n)]
        streams.start_stream(state, 8, row)
        streams.fill_normal(state, normals[row])  # of an odd number
    assert 0 < numbers.min() < numbers.max() < 1
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
    for A in (numbers, normals[:, :n]):
        # neither numbers next to each other nor those of the same place in other streams go together
        assert np.abs(np.corrcoef(A[:, :-1].ravel(), A[:, 1:].ravel())[0, 1]) < 0.03
        assert np.abs(np.corrcoef(A[:-1].ravel(), A[1:].ravel())[0, 1]) < 0.03
    streams.start_stream(state, 7, 3)
    assert streams.uniform(state) == numbers[3, 0]
    streams.start_stream(state, 6, 3)
    assert streams.uniform(state) != numbers[3, 0]
    few = np.empty(1)
    streams.fill_normal(state, few)
    assert np.isfinite(few).all()

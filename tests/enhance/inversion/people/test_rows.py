"""Draws of items and persons against numerical integration at three labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import invwishart
from three_labels import BASIS, COVARIANCE, integrate, of_counts, precision

from contone.enhance.inversion.people.answers import VOTES, Responses, Traits
from contone.enhance.inversion.people.chain import draw_shape_of
from contone.enhance.inversion.people.persons import draw_persons, sort_by_person
from contone.enhance.inversion.people.rows import draw_items
from contone.numerics.simplex import softmax

N_ROWS, N_DRAWS = 400, 200
USUAL = np.array([0.6, -0.1, -0.5])
"""What somebody chooses who does not look."""


def sampled(mean, weight, responses, traits):
    """Mean over draws of N_ROWS chains of the same item."""
    Z = np.tile(mean, (N_ROWS, 1))
    mode, means, free = Z.copy(), Z.copy(), np.ones(N_ROWS, bool)
    shares, first = 0.0, 0.0
    for k in range(N_DRAWS + 10):
        given = (means, np.full(N_ROWS, weight), precision(COVARIANCE), responses, traits, free)
        draw_items(0, N_ROWS, k, Z, mode, *given)
        if k >= 10:
            shares = shares + softmax(Z).mean(0) / N_DRAWS
            first = first + (Z - Z.mean(1, keepdims=True))[:, 0].mean() / N_DRAWS
    return shares, first


NOBODY = Traits(np.ones(1), np.zeros((1, 3)))


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize(
    "counts", [[1, 0, 0], [0, 0, 3], [4, 2, 0], [40, 9, 1], [np.nan, 2, 1], [0, np.nan, 5], [0, 0, 0]]
)
def test_draws_of_counts_follow_their_posterior(counts, weight):
    counts = np.array(counts, dtype=float)
    mean = np.array([0.7, -0.2, -0.5])
    responses = Responses(VOTES, np.arange(N_ROWS + 1), np.zeros(N_ROWS, np.intp), np.tile(counts, (N_ROWS, 1)))
    shares, first = sampled(mean, weight, responses, NOBODY)
    expected, expected_first = integrate(mean, COVARIANCE / weight, of_counts(counts))
    # 80,000 draws, nearly independent: 0.005 is more than four standard errors
    np.testing.assert_allclose(shares, expected, atol=0.005)
    assert first == pytest.approx(expected_first, abs=0.02)


def test_draws_of_answers_by_persons_follow_their_posterior():
    mean = np.array([0.0, 0.4, -0.4])
    traits = Traits(np.array([1.0, 0.3, 1.7]), np.array([[0.0, 0.0, 0.0], [0.5, -1.0, 0.5], [-0.2, 0.0, 0.2]]))
    person, values = [1, 2, 2], np.eye(3)[[0, 1, 1]]
    responses = Responses(VOTES, np.arange(N_ROWS + 1) * 3, np.tile(person, N_ROWS), np.tile(values, (N_ROWS, 1)))

    def log_likelihood(Z):
        chances = [np.log(softmax(traits.sharpness[w] * Z + traits.offset[w])) for w in person]
        return sum(c[:, j] for c, j in zip(chances, [0, 1, 1], strict=True))

    shares, _ = sampled(mean, 1.0, responses, traits)
    np.testing.assert_allclose(shares, integrate(mean, COVARIANCE, log_likelihood)[0], atol=0.005)


def test_draws_of_persons_follow_their_posterior():
    """400 persons with the same two answers: offsets and sharpness against integration over three dimensions."""
    Z = np.array([[1.0, 0.0, -1.0], [0.0, 0.5, -0.5]])
    tau, kappa = 0.8, 0.5
    person = np.tile(np.arange(1, N_ROWS + 1), 2)
    first = np.array([0, N_ROWS, 2 * N_ROWS])
    values = np.repeat(np.eye(3)[[2, 1]], N_ROWS, axis=0)
    responses = Responses(VOTES, first, person, values)
    traits = Traits(np.ones(N_ROWS + 1), np.zeros((N_ROWS + 1, 3)))
    by_person = sort_by_person(responses, N_ROWS)
    offset, log_sharpness = 0.0, 0.0
    for k in range(60 + N_DRAWS):
        draw_persons(k, tau * BASIS, kappa, USUAL, Z, responses, traits, by_person)
        if k >= 60:
            offset = offset + traits.offset[1:].mean(0) / N_DRAWS
            log_sharpness += np.log(traits.sharpness[1:]).mean() / N_DRAWS
    assert traits.sharpness[0] == 1.0
    x = np.linspace(-4, 4, 81)
    u = np.array(list(itertools.product(x, x, x)))
    b, log_a = tau * u[:, :2] @ BASIS.T, kappa * u[:, 2]
    b = b + (1 - np.exp(log_a))[:, None] * USUAL
    log_p = -0.5 * (u**2).sum(1)
    for z, j in zip(Z, [2, 1], strict=True):
        log_p += np.log(softmax(np.exp(log_a)[:, None] * z + b))[:, j]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    np.testing.assert_allclose(offset, p @ b, atol=0.02)
    assert log_sharpness == pytest.approx(p @ log_a, abs=0.02)


def test_pieces_and_their_order_make_no_difference():
    rng = np.random.default_rng(0)
    responses = Responses(VOTES, np.arange(51), np.zeros(50, np.intp), rng.integers(0, 4, (50, 3)).astype(float))
    whole, parts = (rng.normal(size=(50, 3)) * 0 for _ in range(2))
    for Z, ends in ((whole, [(0, 50)]), (parts, [(30, 50), (0, 30)])):
        mode = np.zeros((50, 3))
        for start, stop in ends:
            given = (np.zeros((50, 3)), np.ones(50), precision(COVARIANCE), responses, NOBODY, np.ones(50, bool))
            draw_items(start, stop, 7, Z, mode, *given)
    np.testing.assert_array_equal(whole, parts)


def test_the_shape_is_drawn_around_what_is_believed():
    """Without rows the prior: an inverse Wishart with scale B, brought to its trace; its mean points along the axis."""
    rng, r = np.random.default_rng(0), 3
    v = np.array([1.0, 2.0, 2.0]) / 3.0
    B = 0.4 * np.eye(r) + 0.6 * r * np.outer(v, v)
    R, drawn = np.eye(r), []
    for _ in range(4000):
        R = draw_shape_of(np.zeros((r, r)), 0, R, 12.0, rng, B)
        drawn.append(R)
    direct = invwishart.rvs(r - 1 + 12.0, B, size=4000, random_state=rng)
    direct *= r / np.trace(direct, axis1=1, axis2=2)[:, None, None]
    np.testing.assert_allclose(np.mean(drawn, axis=0), direct.mean(axis=0), atol=0.04)
    assert np.trace(R) == pytest.approx(r)

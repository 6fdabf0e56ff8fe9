"""Degrees that are shares of a few votes: their intervals, their expected error, and how they are recognised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from contone import CumulativeMass, Inversion
from contone.enhance.inversion.expected_error import draw_votes, find_votes
from contone.enhance.inversion.posterior import vote_shares
from contone.numerics.simplex import kl_divergence, softmax
from contone.trust.model_checks import lattice_finding


def voted(m, n=300, q=5, spread=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = 0.5 * X @ rng.normal(size=(3, q)) + 0.8 * rng.normal(size=(n, q))
    Z -= Z.mean(axis=1, keepdims=True)
    D = rng.multinomial(m, softmax(spread * Z / Z.std())) / m
    return X, CumulativeMass().apply(D).astype(float), D


def test_intervals_of_votes_are_quantiles_of_a_mixture_of_binomials():
    """Exactly binomial where the degree is known; otherwise what simulated votes say."""
    centre, level = np.array([[-2.0, 0.0, 3.0]]), 0.9
    known = vote_shares(centre, np.zeros_like(centre), level, 10)
    for end, share in zip(known, (0.05, 0.95), strict=True):
        np.testing.assert_allclose(end[0], binom.ppf(share, 10, expit(centre[0])) / 10)
    width, rng = np.full_like(centre, 0.7), np.random.default_rng(0)
    lower, upper = vote_shares(centre, width, level, 10)
    drawn = rng.binomial(10, expit(centre + width * rng.standard_normal((200_000, 1)))) / 10
    for end, share in ((lower, 0.05), (upper, 0.95)):
        np.testing.assert_allclose(end[0], np.quantile(drawn, share, axis=0, method="inverted_cdf"), atol=0.101)
        np.testing.assert_allclose(end[0] * 10, np.round(end[0] * 10), atol=1e-12)


def test_votes_give_the_labels_of_their_rows():
    _, L, D = voted(10)
    rng = np.random.default_rng(1)
    drawn = draw_votes(CumulativeMass(), np.clip(D, 0.01, None), L, 10, rng)
    assert (CumulativeMass().agrees(drawn, L)).mean() > 0.9
    np.testing.assert_allclose(drawn * 10, np.round(drawn * 10))


@pytest.mark.parametrize(("m", "spread"), [(10, 0.5), (20, 1.5)])
def test_resolution_makes_intervals_and_the_expected_error_those_of_shares(m, spread):
    X, L, D = voted(m, spread=spread)
    short = {"n_sweeps": 60, "n_burn": 30}
    plain, told = Inversion(**short).fit(X, L), Inversion(resolution=m, **short).fit(X, L)
    np.testing.assert_array_equal(told.label_distributions_, plain.label_distributions_)
    error = kl_divergence(D, told.label_distributions_).mean()
    assert told.expected_error_.mean == pytest.approx(error, rel=0.4)
    assert plain.expected_error_.mean < 0.75 * error

    def coverage(method):
        lower, upper = method.intervals()
        return np.mean((lower <= D + 1e-9) & (upper + 1e-9 >= D))

    assert coverage(plain) < 0.85 < 0.9 <= coverage(told)


def test_a_lattice_is_found_where_there_is_one():
    X, L, D = voted(12)
    assert find_votes(D[:10]) == 12
    assert find_votes(np.round(D[:10], 2)) == 12
    rng = np.random.default_rng(0)
    assert find_votes(rng.dirichlet(np.ones(5), 10)) is None
    assert find_votes(np.eye(5)) is None  # one vote, or none at all: nothing to tell
    near = rng.multinomial(40, np.full(5, 0.2), 10) + 0.15 * np.array([1, -1, 1, -1, 0])
    assert find_votes(near / 40) is None  # hundredths are within a tenth of a vote
    whole = rng.multinomial(7, np.full(3, 1 / 3), 5) / 7
    assert whole.min(axis=1).max() < 1
    assert find_votes(whole) == 7  # of fifteen degrees
    assert find_votes(whole[:4]) is None
    assert find_votes(np.vstack([whole[:4], np.eye(3)])) is None  # rows of zeros and a one tell nothing
    assert find_votes(rng.multinomial(2, np.full(4, 0.25), 30) / 2) == 2
    assert find_votes(rng.multinomial(40, np.full(5, 0.2), 10) / 40) == 40
    assert find_votes(rng.multinomial(41, np.full(5, 0.2), 10) / 41) is None
    degrees = np.full_like(D, np.nan)
    degrees[:10] = D[:10]
    short = {"n_sweeps": 20, "n_burn": 10}
    (found,) = lattice_finding(Inversion(**short).fit(X, L, degrees=degrees))
    assert found.verdict == "doubtful"
    assert "resolution=12" in found.sentence
    assert lattice_finding(Inversion(resolution=12, **short).fit(X, L, degrees=degrees))[0].verdict == "fine"
    assert not lattice_finding(Inversion(**short).fit(X, L))

"""Wrong labels: the number of marks that they leave, and the spread that is read from it."""

from __future__ import annotations

import numpy as np
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion.chain import count_labels
from contone.enhance.inversion.flips import NO_FLIPS, Flips
from contone.enhance.inversion.logistic_normal import spread_posterior
from contone.numerics.simplex import softmax


def unit_draws(n, q=6, seed=0):
    Z = np.random.default_rng(seed).normal(size=(n, q))
    Z -= Z.mean(axis=1, keepdims=True)
    return Z / np.sqrt(np.mean(np.square(Z)))


def test_one_number_means_both():
    assert Flips.of(0.1) == Flips(0.1, 0.1)
    assert Flips.of((0.3, 0.0)) == Flips(0.3, 0.0)
    assert not NO_FLIPS.any()
    assert Flips(0.3, 0.0).any()
    np.testing.assert_array_equal(NO_FLIPS.numbers(4), np.eye(5))


def test_the_number_of_marks_is_that_of_simulated_flips():
    flips, rng = Flips(0.3, 0.1), np.random.default_rng(0)
    expected = flips.numbers(5)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0)
    for a in (0, 2, 5):
        positive = np.broadcast_to(np.arange(5) < a, (20_000, 5))
        share = np.bincount(flips.applied(positive, rng).sum(axis=1), minlength=6) / 20_000
        np.testing.assert_allclose(share, expected[a], atol=0.015)


@pytest.mark.parametrize("flips", [Flips(0.1, 0.1), Flips(0.3, 0.0)])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_the_spread_is_that_of_the_labels_before_they_were_spoilt(flips, hidden):
    rng, rule = np.random.default_rng(1), CumulativeMass()
    L = flips.applied(rule.apply(softmax(0.5 * unit_draws(3000, seed=2))) > 0, rng).astype(float)
    L[rng.random(L.shape) < hidden] = np.nan
    counts, Z = count_labels(L, rule), unit_draws(8000)
    found = spread_posterior(Z, counts, rule.cardinality, rule.spread_prior, flips)
    blind = spread_posterior(Z, counts, rule.cardinality, rule.spread_prior)
    assert found.mean == pytest.approx(0.5, abs=max(3 * found.deviation, 0.03))
    assert abs(found.mean - 0.5) < abs(blind.mean - 0.5)


def test_a_fit_reads_the_spread_through_the_noise():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    Z = X @ rng.normal(size=(2, 5)) + unit_draws(500, 5, seed=4)
    Z -= Z.mean(axis=1, keepdims=True)
    L = CumulativeMass().apply(softmax(0.5 * Z / Z.std())) > 0
    spoilt = Flips(0.1, 0.1).applied(L, rng).astype(float)
    spoilt = np.where(spoilt.any(axis=1, keepdims=True), spoilt, L)
    short = {"n_sweeps": 40, "n_burn": 20}
    assert Inversion(noise=0.1, **short).fit(X, spoilt).spread_ == pytest.approx(0.5, abs=0.08)

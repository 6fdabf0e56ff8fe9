"""Labels that pass a bar: the spread, and how well it is known."""

from __future__ import annotations

import numpy as np
import pytest

from contone import Inversion, Threshold
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.chain import count_labels
from contone.numerics.simplex import softmax


def unlike_rows(seed, q, spread, n=800):
    """Features, log degrees (n, q) of labels that are marked unlike often."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    B, mean = 0.4 * rng.standard_normal((4, q)), 1.5 * rng.standard_normal(q)
    Z = mean + X @ B + rng.standard_normal((n, q))
    Z -= Z.mean(axis=1, keepdims=True)
    return X, Z * spread / np.sqrt(np.mean(np.square(Z)))


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
@pytest.mark.parametrize(
    ("seed", "q", "tau", "spread"),
    [(0, 8, 0.1, 0.15), (0, 8, 0.1, 0.5), (1, 5, 0.1, 0.5), (1, 5, 0.1, 1.5), (0, 5, 0.2, 1.5), (0, 5, 0.2, 0.5)],
)
def test_the_spread_is_known_as_well_as_it_is_said(seed, q, tau, spread):
    """With the shape held, the third and the last were 2.6 and 5 deviations off: label scales took up the spread."""
    X, Z = unlike_rows(seed, q, spread)
    found = Inversion(degradation=Threshold(tau)).fit(X, Threshold(tau).apply(softmax(Z)).astype(float))
    assert abs(found.spread_ - spread) < 2 * found.spread_deviation_
    assert found.spread_deviation_ < 0.5 * found.spread_


def test_a_narrow_peak_beside_a_wide_one_is_seen():
    """Two of eight labels above 0.2 now and then: so at a spread of 0.5, and again at 10, where a coarse grid ended."""
    rng, rule = np.random.default_rng(0), Threshold(0.2)
    counts = count_labels(rule.apply(softmax(0.5 * rng.standard_normal((800, 8)))).astype(float), rule)
    found = logistic_normal.spread_posterior(rule, rng.standard_normal((4000, 8)), counts)
    assert found.mean == pytest.approx(0.5, abs=0.05)
    assert 0.003 < found.deviation < 0.1


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_a_spread_at_the_end_of_its_range_is_known_as_the_prior_knows_it():
    """Labels that are marked more than half of the time at a bar of 1 / q ask for a spread below zero."""
    rng = np.random.default_rng(1)
    L = (rng.random((300, 6)) < 0.75).astype(float)
    found = Inversion(degradation=Threshold(1 / 6), n_sweeps=60, n_burn=30).fit(rng.standard_normal((300, 2)), L)
    assert found.fit_.spread.at_edge()
    assert found.spread_deviation_ > 0.1

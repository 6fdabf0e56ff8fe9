"""The interval that L leaves for one label: inside it the row degrades to L, outside it does not."""

from __future__ import annotations

import numpy as np
import pytest
from others import others_of

from contone import CumulativeMass, Threshold, TopK
from contone.measurements import Order
from contone.measurements.order import has_levels, level_interval
from contone.numerics.simplex import softmax

RULES = [
    *(CumulativeMass(t) for t in (0.0, 0.3, 0.5, 0.8)),
    *(TopK(k) for k in (1, 2, 4)),
    *(Threshold(tau) for tau in (0.0, 0.1, 0.2, 0.45)),
]
MORE = [Threshold(0.5), CumulativeMass(0.95), *(Threshold(tau, at_least_one=False) for tau in (0.15, 0.5))]
BESIDE = 1e-7
"""How far from an end the rule is asked: ends themselves are ties."""


def rows(seed, n=300, spread=1.0, ties=False):
    """Log weights (n, 5); with ties, small multiples of log 2, so that sums of weights tie with each other too."""
    Z = np.random.default_rng(seed).normal(size=(n, 5)) * spread
    return np.round(Z) * np.log(2.0) if ties else Z


def degraded(rule, Z):
    return rule.apply(softmax(Z)).astype(float)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
def test_inside_gives_back_the_labels_and_outside_does_not(rule, spread, ties):
    Z = rows(0, spread=spread, ties=ties)
    L = degraded(rule, Z)
    for j in range(Z.shape[1]):
        lower, upper = rule.interval(others_of(Z, L, j), L[:, j] > 0)
        assert (lower <= Z[:, j] + 1e-12).all()
        assert (Z[:, j] <= upper + 1e-12).all()
        low, high = np.maximum(lower, -30.0), np.minimum(upper, 30.0)
        for share in (0.0, 0.2, 0.5, 0.9, 1.0):
            inside = np.clip(low + share * (high - low), low + BESIDE, high - BESIDE)
            wide = high - low > 4 * BESIDE
            moved = Z.copy()
            moved[:, j] = inside
            np.testing.assert_array_equal(degraded(rule, moved)[wide], L[wide])
        for end, outside in (
            (lower, lower - BESIDE),
            (lower, lower - 2.0),
            (upper, upper + BESIDE),
            (upper, upper + 2.0),
        ):
            moved = Z.copy()
            moved[:, j] = np.where(np.isfinite(end), outside, Z[:, j])
            changed = (degraded(rule, moved) != L).any(axis=1)
            assert changed[np.isfinite(end)].all()


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_scan_over_one_weight_finds_the_same_interval(rule):
    Z = rows(1, n=25)
    L = degraded(rule, Z)
    grid = np.linspace(-6.0, 6.0, 1201)
    for j in range(Z.shape[1]):
        lower, upper = rule.interval(others_of(Z, L, j), L[:, j] > 0)
        for i in range(len(Z)):
            scan = np.tile(Z[i], (len(grid), 1))
            scan[:, j] = grid
            same = (degraded(rule, scan) == L[i]).all(axis=1)
            clear = (np.abs(grid - lower[i]) > 1e-9) & (np.abs(grid - upper[i]) > 1e-9)
            np.testing.assert_array_equal(same[clear], ((grid > lower[i]) & (grid < upper[i]))[clear])


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_interval_moves_with_a_common_shift(rule):
    Z = rows(2)
    L = degraded(rule, Z)
    before = rule.interval(others_of(Z, L, 3), L[:, 3] > 0)
    after = rule.interval(others_of(Z + 5.0, L, 3), L[:, 3] > 0)
    np.testing.assert_allclose(after[0], before[0] + 5.0, atol=1e-9)
    np.testing.assert_allclose(after[1], before[1] + 5.0, atol=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_cardinality_counts_the_labels(rule):
    D = softmax(rows(3))
    ranked = -np.sort(-D, axis=1)
    np.testing.assert_array_equal(rule.cardinality(ranked), rule.apply(D).sum(axis=1))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_every_pattern_that_the_rule_makes_has_a_start(rule, spread):
    L = degraded(rule, rows(4, spread=spread))
    Z, impossible = rule.start(L)
    assert not impossible.any()
    np.testing.assert_array_equal(degraded(rule, Z), L)


@pytest.mark.parametrize("rule", [CumulativeMass(), Threshold(0.3), TopK(2)], ids=str)
def test_impossible_patterns_are_found(rule):
    L = np.array([[1.0, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(rule.start(L)[1], [True, True, False])


@pytest.mark.parametrize("q", [1, 2, 3, 6])
@pytest.mark.parametrize("rule", [*RULES, *MORE], ids=str)
def test_a_start_is_found_wherever_there_is_one(rule, q):
    """All marked labels weigh the same, all others the same: a pattern is possible where some ratio gives it."""
    for m in range(0 if not rule.at_least_one else 1, q + 1):
        L = (np.arange(q) < m).astype(float)[None, :]
        ratios = np.concatenate([[1.0], np.geomspace(1e-4, 1.0, 2001)])
        W = np.where(L > 0, 1.0, ratios[:, None])
        there_is_one = (rule._apply(W / W.sum(axis=1, keepdims=True)) == (L > 0)).all(axis=1).any()
        Z, impossible = rule.start(L)
        assert bool(impossible[0]) == (not there_is_one)
        if there_is_one:
            np.testing.assert_array_equal(rule._apply(softmax(Z)), L > 0)


@pytest.mark.parametrize("levels", [[0, 1, 2], [3, 7], [0, 1]])
def test_levels_leave_room_between_lower_and_higher_ones(levels):
    rng = np.random.default_rng(5)
    L = rng.choice(levels, size=(200, 5)).astype(float)
    assert has_levels(L) == (levels != [0, 1])
    Z, impossible = Order().start(L)
    assert not impossible.any()
    above = L[:, :, None] > L[:, None, :]
    assert (Z[:, :, None] > Z[:, None, :])[above].all()
    L[:, 4] = np.where(rng.random(200) < 0.3, np.nan, L[:, 4])
    for j in range(5):
        lower, upper = level_interval(Z.T, L.T, j)
        for i in range(50):
            others = [k for k in range(5) if k != j]
            below = [Z[i, k] for k in others if L[i, k] < L[i, j]]
            above = [Z[i, k] for k in others if L[i, k] > L[i, j]]
            assert lower[i] == max(below, default=-np.inf)
            assert upper[i] == min(above, default=np.inf)


def test_compiled_sweeps_know_every_rule_but_a_share_of_nothing():
    assert CumulativeMass(0.3).region == ("mass", 0.3)
    assert Threshold(0.3).region == ("bar", 0.3)
    assert Threshold(0.3, at_least_one=False).region == ("any bar", 0.3)
    assert TopK(3).region == Order().region == ("order", 0.0)
    assert [rule.region.number for rule in (Order(), CumulativeMass(), Threshold(), Threshold(0.1, False))] == [
        0,
        1,
        2,
        3,
    ]
    assert CumulativeMass(0.0).region is None
    assert Threshold(0.0).region is None
    for rule in (CumulativeMass, Threshold, TopK, Order):  # a rule of somebody else's may cut elsewhere
        assert type("Other", (rule,), {})().region is None


def test_a_pattern_that_needs_a_tie_is_possible():
    """Two labels, both marked at t = .5: only .5/.5 gives it, and it comes back exactly."""
    Z, impossible = CumulativeMass().start(np.ones((1, 2)))
    assert not impossible.any()
    np.testing.assert_array_equal(softmax(Z), [[0.5, 0.5]])

"""Wrong labels: the number of marks that they leave, and the spread that is read from it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from contone import CumulativeMass, Inversion, TopK
from contone.enhance.inversion import rules
from contone.enhance.inversion.chain import count_labels, settle_noise
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips, spread_posterior
from contone.enhance.inversion.rules import choose_rule, rank_rules
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import InputError, LabelError, LabelWarning
from contone.numerics.simplex import kl_divergence, softmax
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees


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
    L = flips.applied(rule.apply(softmax(0.5 * unit_draws(20_000, seed=2))) > 0, rng).astype(float)
    L[rng.random(L.shape) < hidden] = np.nan
    counts, Z = count_labels(L, rule), unit_draws(8000)
    found = spread_posterior(rule, Z, counts, flips)
    blind = spread_posterior(rule, Z, counts)
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


@pytest.mark.parametrize("flips", [Flips(0.3, 0.0), Flips(0.0, 0.2), Flips(0.3, 0.1)], ids=str)
def test_rows_under_noise_have_their_posterior(flips):
    """Every pattern of three labels, the empty one too: the chain against draws of the prior, weighed by likelihood."""
    rng, rule, q = np.random.default_rng(0), CumulativeMass(), 3
    mean, root = np.array([0.6, 0.0, -0.6]), np.array([[0.8, 0.0, 0.0], [0.3, 0.7, 0.0], [0.0, -0.2, 0.6]])
    D = softmax(mean + rng.normal(size=(200_000, q)) @ root.T)
    positive = rule._apply(D)
    patterns = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]) > 0
    many = np.repeat(patterns, 300, axis=0)
    rows, total = Rows(rule, many.astype(float), flips), 0.0
    for k in range(300):
        rows.sweep(np.repeat(mean[:, None], len(many), axis=1), np.linalg.inv(root @ root.T), rng, reflect=k % 2 == 1)
        total = total + (softmax(rows.Z.T) if k >= 60 else 0.0)
    found = (total / 240).reshape(8, 300, q).mean(axis=1)
    for pattern, answer in zip(patterns, found, strict=True):
        chance = np.where(positive, 1 - flips.missed, flips.false)
        weight = np.where(pattern, chance, 1 - chance).prod(axis=1)
        if weight.mean() > 1e-3:
            np.testing.assert_allclose(answer, weight @ D / weight.sum(), atol=0.015, err_msg=str(pattern))


def spoilt(flips, n=400, spread=0.5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = X @ rng.normal(size=(2, 6)) + unit_draws(n, 6, seed=seed + 1)
    Z -= Z.mean(axis=1, keepdims=True)
    D = softmax(spread * Z / Z.std())
    return X, flips.applied(CumulativeMass().apply(D) > 0, rng).astype(float), D


def test_marks_that_were_missed_are_no_statement():
    """Positive and unlabelled: rows without a mark take part, and a fit that is told beats one that is not."""
    X, L, D = spoilt(Flips(0.3, 0.0))
    empty = L.sum(axis=1) == 0
    assert empty.any()
    short = {"n_sweeps": 60, "n_burn": 30}
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelWarning)  # no row is left out
        told = Inversion(noise=(0.3, 0.0), **short).fit(X, L)
        alone = Inversion(noise="auto", **short).fit(X, L)
    error = kl_divergence(D, told.label_distributions_).mean()
    assert error < 0.6 * kl_divergence(D, np.full_like(D, 1 / 6)).mean()
    assert told.expected_error_.mean == pytest.approx(error, rel=0.5)
    assert np.abs(told.label_distributions_[empty] - told.predict(X)[empty]).max() > 0.01  # more than its features say
    assert told.noise_ == (0.3, 0.0)
    assert alone.noise_[0] == pytest.approx(0.3, abs=0.1)
    assert alone.noise_[1] == pytest.approx(0.0, abs=0.03)
    with pytest.warns(LabelWarning, match="without any label"):
        untold = Inversion(**short).fit(X, L)
    found = kl_divergence(D, alone.label_distributions_).mean()
    assert found < 0.6 * kl_divergence(D, untold.label_distributions_).mean()


def test_without_wrong_labels_none_are_found():
    X, L, D = spoilt(Flips())
    short = {"n_sweeps": 60, "n_burn": 30}
    found, exact = Inversion(noise="auto", **short).fit(X, L), Inversion(**short).fit(X, L)
    assert max(found.noise_) < 0.03
    assert (
        kl_divergence(D, found.label_distributions_).mean() < 1.1 * kl_divergence(D, exact.label_distributions_).mean()
    )


def test_shares_that_do_not_come_to_rest_are_refused():
    moving, still = np.linspace(0.0, 1.0, 100), np.zeros(100)
    for drift in ([0.4 * moving, still, still], [still, still, moving]):
        with pytest.raises(LabelError, match="do not tell"):
            settle_noise(np.column_stack(drift))
    assert settle_noise(np.full((10, 3), 0.2)) == pytest.approx((0.2, 0.2))
    for wrong in ((0.3,), (0.6, 0.5), (-0.1, 0.0)):
        with pytest.raises(InputError, match="noise"):
            Inversion(noise=wrong).fit(*spoilt(Flips(), n=20)[:2])


@pytest.mark.parametrize("flips", [Flips(0.3, 0.0), pytest.param(Flips(0.1, 0.1), marks=pytest.mark.exhaustive)])
def test_missed_labels_of_nearly_equal_degrees_are_found(flips):
    """Missed marks pass for uneven degrees: the share was .24 at a spread of .36, and the answer behind uniform."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    Z = 0.5 * X @ rng.normal(size=(3, 6)) + unit_draws(600, seed=1)
    D = softmax(0.15 * Z / np.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True)))))
    L = flips.applied(CumulativeMass().apply(D) > 0, rng).astype(float)
    found = Inversion(noise="auto").fit(X, L)
    assert found.noise_ == pytest.approx(flips, abs=0.05)
    assert kl_divergence(D, found.label_distributions_).mean() < 0.7 * kl_divergence(D, np.full_like(D, 1 / 6)).mean()


@pytest.mark.parametrize("flips", [Flips(0.3, 0.0), Flips(0.1, 0.1)], ids=str)
def test_the_rule_is_chosen_through_the_noise(flips):
    """Rules differ in how many labels rows have, which errors change: "main" passed for another share or a bar."""
    L = spoilt(flips, n=300, spread=0.6)[1]
    assert rank_rules(L, shares=(0.7, 0.9), thresholds=(1.0,), noise=flips)[0][0] == CumulativeMass()
    with pytest.raises(InputError, match="rule by name"):
        Inversion(degradation="auto", noise="auto").fit(np.zeros((300, 1)), L)
    best = flips.applied(np.tile(np.arange(6) < 3, (300, 1)), np.random.default_rng(0)).astype(float)
    best[0, 0] = np.nan
    assert choose_rule("best", best, noise=flips) == TopK(3)


def test_graded_rows_weigh_rules_by_the_chance_of_their_labels():
    """A rule that would have marked a further label needs it to have been missed."""
    L, degrees = np.tile([1.0, 0, 0], (40, 1)), np.array([[0.45, 0.35, 0.2]])
    known = KnownDegrees(np.array([0]), degrees)
    score = {tau: [rules._evidence(CumulativeMass(tau), L, k, Flips(0.2, 0.0)) for k in (NOTHING_KNOWN, known)]
             for tau in (0.4, 0.5)}  # fmt: skip
    says = np.diff(score[0.4])[0] - np.diff(score[0.5])[0]
    assert says == pytest.approx(-np.log(0.2))

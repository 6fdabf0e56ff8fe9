"""Models and rows drawn from a fit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import multivariate_t, norm
from told import Told

from contone import CumulativeMass, Inversion, TopK
from contone.enhance.inversion import fit as fits
from contone.enhance.inversion import simulate
from contone.enhance.inversion.assessment import simulate_labels
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.logistic_normal import FLAT, NO_FLIPS, Flips, Parameters, Spread, spread_prior
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.simulate import even_scores
from contone.measurements import Order
from contone.numerics.scaling import PrincipalMap, Scaling
from contone.numerics.simplex import softmax

RULE, QUICK = CumulativeMass(), {"n_sweeps": 20, "n_burn": 10}


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_scores_are_evenly_spaced_quantiles_of_variance_1(k):
    for seed in range(3):
        scores = even_scores(k, np.random.default_rng(seed))
        even = norm.ppf((np.arange(k) + 0.5) / k)
        np.testing.assert_allclose(np.sort(scores), even / (even.std() or 1.0), atol=1e-12)
    assert k < 5 or (even_scores(k, np.random.default_rng(3)) != scores).any()


def test_simulated_labels_have_the_tails_of_the_fit():
    """The numbers of labels per row are those of draws from a t distribution, which normal rows do not make."""
    X, L = np.zeros((2000, 1)), RULE.apply(softmax(np.random.default_rng(0).normal(size=(60, 6)))).astype(float)
    model, _ = fits.fit(X[:60], L, RULE, Settings(features=False, **QUICK), np.random.default_rng(0))
    Sigma = 0.25 * (np.eye(6) - 1 / 6)
    model = replace(model, parameters=Parameters(np.zeros((1, 6)), Sigma, 0.5))

    def share_of_few(labels):
        return np.mean(labels.sum(axis=1) < 3)

    normal, heavy = (share_of_few(simulate_labels(replace(model, tail=tail), X, np.random.default_rng(1), 2000))
                     for tail in (np.inf, 2.0))  # fmt: skip
    drawn = multivariate_t(shape=Sigma + 1e-9, df=2).rvs(100_000, random_state=2)
    assert heavy == pytest.approx(share_of_few(RULE.apply(softmax(drawn))), abs=0.03)
    assert heavy > normal + 0.1


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_every_sample_of_a_row_without_labels_has_a_weight_of_its_own(monkeypatch):
    """Else the samples of such a row would be normal, and its tails a matter of which row it is."""
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(60, 2)), softmax(rng.normal(size=(60, 3)))
    L, G = RULE.apply(D).astype(float), np.full_like(D, np.nan)
    L[20:], G[:10] = np.nan, D[:10]
    monkeypatch.setattr(fits, "closest_step", lambda labels, found, *_: found._replace(tail=3.0))
    method = Inversion(n_samples=150, n_sweeps=400, n_burn=100).fit(X, L, degrees=G)
    assert method.fit_.tail == 3
    Z = np.log(method.samples_[:, 20:])
    Z -= Z.mean(axis=2, keepdims=True)
    E = Z - method.fit_.mean(X[20:]).T
    distance = np.einsum("sij,jk,sik->si", E, np.linalg.pinv(method.covariance_), E)
    # Farther than three medians: (1 + 9 m / 3)^(-3/2) = .063 of the draws in two dimensions, .002 of normal ones.
    far = (distance > 9 * np.median(distance, axis=0)).mean()
    assert far == pytest.approx(0.063, abs=0.015)


# ------------------------------------------------------------------------------------- information, and draws from it


def fitted(mean, covariance, n_rows=1000):
    """A fit whose features are all that a mean has: x is the mean of z, (n, q)."""
    q = len(covariance)
    identity = PrincipalMap(Scaling(np.zeros(q), np.ones(q)), np.eye(q))
    parameters = Parameters(np.vstack([np.zeros(q), np.eye(q)]), covariance, 0.3)
    size = math.sqrt(np.mean(np.square(mean)) + np.trace(covariance) / q)
    settings = Settings(n_sweeps=40, n_burn=10)
    directions = np.zeros((1, q))
    return Fit(TopK(1), identity, parameters, Spread(size, 0.1 * size), settings, directions, n_rows, 0, 100.0, 1.0)


def two_labels(n=4000, deviation=0.8):
    """One label of two is marked: which one says on which side of 0 their difference is, and no more."""
    half = np.linspace(-1.0, 1.5, n)
    mean = np.column_stack([half, -half])
    fit = fitted(mean, 0.25 * deviation**2 * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    first = half + 0.5 * deviation * np.random.default_rng(0).standard_normal(n) > 0
    return fit, mean, np.column_stack([first, ~first]).astype(float)


def test_scores_of_labels_have_the_products_of_truncated_normals():
    """E[e | l] = +-phi / Phi and E[e^2 - 1 | l] = -t times it, with the distance t of the mean in deviations."""
    fit, mean, L = two_labels()
    found = simulate._score_products(fit, mean, L, np.random.default_rng(1))
    side = np.where(L[:, 0] > 0, 1.0, -1.0)
    t = side * mean[:, 0] / 0.4
    e = side * norm.pdf(t) / norm.cdf(t)  # of the difference of both, whose sign a whitened residual may have or not
    b = 2 * 0.5 * e * mean[:, 0] / 0.4  # z_j = +-0.4 e: each label has half of the slope of the other's mirror image
    scores = np.stack([e, -t * side * e / math.sqrt(2), 0.5 * b, 0.5 * b])
    sign = np.sign(found[0, 2]) * np.sign(scores[0] @ scores[2])
    scores[0] *= sign
    expected = scores @ scores.T
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=0.06)


def test_products_are_of_the_averages_over_both_halves_of_a_chain_without_its_start(monkeypatch):
    """So that the noise of averages, which is each half's own, has no part in them; a common shift says nothing."""
    fit, mean, L = two_labels(5)
    _, H = simulate._whitening(fit.parameters.covariance)
    rng = np.random.default_rng(0)
    draws, at = rng.normal(size=(simulate.N_SWEEPS, 1, 5)), iter(range(simulate.N_SWEEPS))

    def sweep(rows, *_):
        rows.Z = mean.T + H @ draws[next(at)] + 7.0

    monkeypatch.setattr(simulate.Rows, "sweep", sweep)
    found = simulate._score_products(fit, mean, L, rng)
    assert next(at, None) is None
    start = simulate.N_SWEEPS // 5
    e = draws[start:, 0]
    pulls = [(np.linalg.pinv(H).T @ x[None]) * mean.T for x in e]
    scores = np.concatenate([e[:, None], (e[:, None] ** 2 - 1) / math.sqrt(2), pulls], axis=1)
    first, second = (half.mean(axis=0) for half in np.split(scores, 2))
    np.testing.assert_allclose(found, (first @ second.T + second @ first.T) / 2)


def test_information_is_that_of_a_probit_where_one_of_two_is_marked():
    (fit, mean, L), rng = two_labels(), np.random.default_rng(1)
    found = simulate.learn_information(fit, mean, L, rng)
    t = np.where(L[:, 0] > 0, 1.0, -1.0) * mean[:, 0] / 0.4
    hazard = norm.pdf(t) / norm.cdf(t)
    assert found.mean[0, 0] == pytest.approx(np.mean(hazard**2), rel=0.05)
    assert found.shape[0, 0] == pytest.approx(np.sum((t * hazard) ** 2) / 2, rel=0.1)
    phi = np.vstack([np.ones(len(mean)), mean.T])
    np.testing.assert_allclose(found.gram, phi @ phi.T)
    # as many rows as the parameters were estimated on say which share is the least
    far, marked = np.tile([9.0, -9.0], (40, 1)), np.tile([1.0, 0.0], (40, 1))
    for n_rows, least in ((100, 100), (20, 40)):
        found = simulate.learn_information(replace(fit, n_rows=n_rows), far, marked, rng)
        assert found.mean[0, 0] == pytest.approx(simulate.rarest_share(least))


def test_a_symmetric_matrix_is_cut_in_its_own_directions():
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    found = simulate._clipped((Q * [-1.0, 0.2, 0.8, 3.0]) @ Q.T, 0.0, 1.0)
    np.testing.assert_allclose(found, (Q * [0.0, 0.2, 0.8, 1.0]) @ Q.T, atol=1e-12)


def test_whitening_is_a_root_with_a_column_less():
    C = np.eye(4) - 0.25
    A = np.random.default_rng(0).normal(size=(4, 4))
    Sigma = C @ A @ A.T @ C
    values, H = simulate._whitening(Sigma)
    assert H.shape == (4, 3)
    np.testing.assert_allclose(H @ H.T, Sigma, atol=1e-12)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(Sigma)[1:])
    np.testing.assert_allclose(H.T @ H, np.diag(values), atol=1e-12)
    flat, _ = simulate._whitening(np.diag([0.0, 0.0, 0.0, 2.0]))
    np.testing.assert_allclose(flat, [2e-12, 2e-12, 2.0])  # directions without variance get next to none
    few, many = simulate._pairs(simulate.MAX_LABELS - 1), simulate._pairs(simulate.MAX_LABELS)
    assert len(few[0]) == 24 * 25 // 2
    assert (few[0] <= few[1]).all()
    np.testing.assert_array_equal(many, [np.arange(25)] * 2)


@pytest.mark.parametrize("r", [3, simulate.MAX_LABELS])
def test_shapes_are_drawn_with_the_precision_of_labels_and_prior(r):
    """Sigma* = H exp(A) H': entries of A, diagonal ones over root 2, have the precision I + k; what is not looked at,
    that of the others in the mean."""
    s, strength = len(simulate._pairs(r)[0]), 5.0
    root = np.random.default_rng(0).normal(size=(s, s))
    information = root @ root.T
    told = Told(0.1 * np.random.default_rng(1).normal(size=r * (r + 1) // 2))
    normals = np.array(told.normals)
    drawn = simulate._draw_shape(information, strength, r, told)
    np.testing.assert_allclose(drawn, drawn.T, atol=1e-12)
    values, vectors = np.linalg.eigh(drawn)
    A = (vectors * np.log(values)) @ vectors.T
    x = np.where(np.eye(r) > 0, A / math.sqrt(2), A)[simulate._pairs(r)]
    assert x @ (information + strength * np.eye(s)) @ x == pytest.approx(np.square(normals[:s]).sum())
    if s == r:
        level = np.trace(information) / s + strength
        np.testing.assert_allclose(A[np.triu_indices(r, 1)], normals[s:] / math.sqrt(level))
    np.testing.assert_allclose(simulate._draw_shape(information, strength, r, Told(0 * normals)), np.eye(r), atol=1e-12)


@pytest.mark.parametrize("theta", [0.5, 0.0])
def test_means_are_drawn_with_the_precision_of_labels_and_ridge(theta):
    """A draw d (p, r) of B has sum d' (R x Phi Phi' + I x ridge) d = the squares of its normal numbers."""
    rng = np.random.default_rng(0)
    root, phi = rng.normal(size=(2, 2)), np.vstack([np.ones(9), rng.normal(size=(2, 9))])
    information = simulate.Information(0.3 * root @ root.T, np.eye(3), phi @ phi.T)
    normals = rng.normal(size=6)
    d = simulate._draw_mean(information, theta, Told(normals))
    ridge = np.diag([1 / FLAT, *([1 / theta if theta else 1e12] * 2)])
    whole = np.einsum("pr,pq,rs,qs->", d, information.gram, information.mean, d) + np.einsum("pr,pq,qr->", d, ridge, d)
    assert whole == pytest.approx(np.square(normals).sum())
    if theta == 0.0:
        assert np.abs(d[1:]).max() < 1e-5  # features that tell nothing


def test_graded_rows_keep_all_of_their_information():
    rng = np.random.default_rng(0)
    A, B, gram = rng.normal(size=(2, 2)), rng.normal(size=(3, 3)), np.eye(4)
    given = simulate.Information(A @ A.T, B @ B.T, gram)
    none, some, every = (simulate.with_graded_rows(given, 8, m) for m in (0, 2, 8))
    for name in ("mean", "shape"):
        np.testing.assert_allclose(getattr(none, name), getattr(given, name))
        between = 0.75 * getattr(none, name) + 0.25 * getattr(every, name)
        np.testing.assert_allclose(getattr(some, name), between)
    np.testing.assert_allclose(every.mean, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(every.shape, 8 * np.eye(3), atol=1e-12)
    assert some.gram is gram


@pytest.mark.parametrize("tail", [np.inf, 6.0])
def test_drawn_models_have_the_spread_that_is_believed(tail):
    fit, mean, _ = two_labels(500)
    fit = replace(fit, tail=tail)
    information = simulate.Information(np.eye(1), 50 * np.eye(1), np.cov(mean.T, ddof=0)[:1, :1] * np.eye(3) * 500)
    for score in (-1.0, 0.0, 2.0):
        drawn = simulate.draw_parameters(fit, information, mean, np.random.default_rng(3), score)
        m = replace(fit, parameters=drawn).mean(mean)
        wide = 1.5 if tail == 6.0 else 1.0  # the variance of t_6
        size = math.sqrt(np.mean(m**2) + wide * np.trace(drawn.covariance) / 2)
        assert size == pytest.approx(fit.believed_spread.at(score))
    first, second = (simulate.draw_parameters(fit, information, mean, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first.covariance, second.covariance)


def test_labels_are_those_of_the_rule_but_for_wrong_ones_and_no_row_loses_all():
    D = softmax(np.random.default_rng(0).normal(size=(3000, 4)))
    rng, flips = np.random.default_rng(1), Flips(0.6, 0.05)
    right = RULE.apply(D).astype(bool)
    np.testing.assert_array_equal(simulate.draw_labels(RULE, D, NO_FLIPS, rng), right)
    kept, lost = (simulate.draw_labels(RULE, D, flips, rng, given) for given in (right.astype(float), 0.0 * D))
    assert (kept.sum(axis=1) > 0).all()
    assert 1 - lost[right].mean() == pytest.approx(0.6, abs=0.03)
    assert lost[~right].mean() == pytest.approx(0.05, abs=0.01)
    assert (lost.sum(axis=1) == 0).mean() > 0.05
    levels = np.tile([2.0, 0.0, 1.0, 1.0], (3000, 1))
    ordered = simulate.draw_labels(Order(), D, NO_FLIPS, rng, levels)
    np.testing.assert_array_equal(np.sort(ordered, axis=1), np.sort(levels, axis=1))
    assert Order().agrees(D, ordered).all()


def test_the_deviation_of_the_spread_knows_of_shape_and_means(monkeypatch):
    """g' (I + P)^-1 g, g the slope of the log spread by finite differences, P a prior of everything but the size."""
    q, n = 4, 50
    C = np.eye(q) - 0.25
    rng = np.random.default_rng(0)
    A = rng.normal(size=(q, q))
    fit = fitted(mean := rng.normal(size=(n, q)) @ C, C @ A @ A.T @ C, n_rows=200)
    fit = replace(fit, spread=Spread(fit.spread.mean, 1e-3))
    first, second = simulate._pairs(q - 1)
    s = (q - 1) + len(first) + q
    root = 0.4 * rng.normal(size=(s, 40))
    monkeypatch.setattr(simulate, "_score_products", lambda *_: root @ root.T)
    _, H = simulate._whitening(fit.parameters.covariance)

    def log_spread(x):
        """Changes of the mean (no size), of the shape in units of its scores, and of the labels' means."""
        S = np.zeros((q - 1, q - 1))
        S[first, second] = S[second, first] = np.where(first == second, math.sqrt(2.0), 1.0) * x[q - 1 : -q]
        moved = mean * np.exp(x[-q:])
        return 0.5 * math.log(np.mean(moved**2) + np.trace(H @ expm(S) @ H.T) / q)

    slope = np.array([(log_spread(e) - log_spread(-e)) / 2e-5 for e in 1e-5 * np.eye(s)])
    worth, diagonal = fit.settings.worth(q), np.zeros(s)
    diagonal[q - 1 : -q] = first == second
    prior = np.zeros((s, s))
    prior[q - 1 : -q, q - 1 : -q] = worth * np.eye(len(first))
    prior -= worth * np.outer(diagonal, diagonal) / (q - 1)  # nothing is believed of the whole scale
    known = root @ root.T * 200 / n + prior + 0.5 * np.eye(s)
    found = simulate.free_spread(fit, mean, np.ones((n, q)))
    assert found.mean == fit.spread.mean
    expected = fit.spread.mean * math.sqrt(slope @ np.linalg.solve(known, slope))
    assert found.deviation == pytest.approx(expected, rel=1e-5)
    certain = replace(fit, spread=Spread(fit.spread.mean, 5.0 * expected))
    assert simulate.free_spread(certain, mean, np.ones((n, q))).deviation == 5.0 * expected  # never better known
    # No direction tells less than nothing: as far as one of them does, chance reaches in all.
    monkeypatch.setattr(simulate, "_score_products", lambda *_: np.diag([-1.0] + [0.5] * (s - 1)))
    silent = simulate.free_spread(fit, mean, np.ones((n, q)))
    none = math.sqrt(slope @ np.linalg.solve(prior + 0.5 * np.eye(s), slope))
    assert silent.deviation == pytest.approx(fit.spread.mean * min(none, fit.rule.spread_prior[1]))
    edge = replace(fit, spread=Spread(12.0, 0.1))
    assert simulate.free_spread(edge, mean, np.ones((n, q))).deviation == spread_prior(fit.rule).deviation

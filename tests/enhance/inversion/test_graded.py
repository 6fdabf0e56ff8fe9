"""Graded rows: the mathematics of the calibration, what it gains on model data, and bad input."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import helmert
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from contone import CumulativeMass, Inversion, Threshold
from contone.enhance.inversion import evidence, fit
from contone.enhance.inversion.logistic_normal import Parameters, precision
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import InputTypeError, LabelError, LabelWarning, ShapeError
from contone.numerics.simplex import kl_divergence, softmax

SHORT = {"n_sweeps": 60, "n_burn": 30}


def simulated(seed=0, n=400, q=5, spread=0.5, scales=1.0, rule=None):
    """Data from the model, the labels on scales of their own: X (n, 3), L (n, q), D (n, q)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = (0.5 * X @ rng.normal(size=(3, q)) + rng.normal(size=(n, q))) * scales
    Z -= Z.mean(axis=1, keepdims=True)
    D = softmax(spread * Z / Z.std())
    return X, (rule or CumulativeMass()).apply(D).astype(float), D


def graded(D, m, seed=0):
    rows = np.random.default_rng(seed).permutation(len(D))[:m]
    G = np.full_like(D, np.nan)
    G[rows] = D[rows]
    return G, np.sort(rows)


def mean_kl(D, answer, rows):
    rest = np.setdiff1d(np.arange(len(D)), rows)
    return float(np.mean(kl_divergence(D[rest], answer[rest])))


# ---------------------------------------------------------------------------------------------------- mathematics


def problem(m=40, q=4, tail=math.inf, seed=0):
    rng = np.random.default_rng(seed)
    basis = helmert(q).T
    H = rng.normal(size=(q, q))
    centred = basis @ basis.T
    covariance = centred @ (H @ H.T / q + np.eye(q)) @ centred
    Y = rng.multivariate_normal(np.zeros(q - 1), basis.T @ covariance @ basis, size=m)
    if math.isfinite(tail):
        Y /= np.sqrt(rng.chisquare(tail, size=(m, 1)) / tail)
    return Y, basis, covariance


def rows_of(Y, basis, covariance, mean=0.0):
    """Graded rows with residuals Y (m, q - 1) around a mean (m, q)."""
    mean = np.broadcast_to(mean, (len(Y), len(basis)))
    return evidence.Graded(Y @ basis.T + mean, mean, basis, covariance)


@pytest.mark.parametrize("tail", [3, math.inf])
def test_the_gradient_of_the_scales_is_that_of_the_objective(tail):
    mean = np.random.default_rng(5).normal(size=(40, 4))
    a, inverse = np.array([0.3, -0.2, 0.1, 0.0]), np.linalg.inv(0.04 * np.eye(4) + 0.01)
    given = (rows_of(*problem(), mean), tail, 0.1, inverse)
    gradient, _ = evidence.scales_slope(a, *given)
    for j, step in enumerate(1e-6 * np.eye(4)):
        up, down = (evidence.scales_objective(a + sign * step, *given) for sign in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("tail", [6, math.inf])
def test_the_information_is_the_expected_curvature(tail):
    mean = np.random.default_rng(5).normal(size=(200_000, 4))
    a, inverse = np.zeros(4), 1e-9 * np.eye(4)
    given = (rows_of(*problem(m=200_000, tail=tail), mean), tail, 0.0, inverse)
    _, information = evidence.scales_slope(a, *given)
    rows = [evidence.scales_slope(a + s, *given)[0] - evidence.scales_slope(a - s, *given)[0] for s in 1e-4 * np.eye(4)]
    curvature = -np.array(rows) / 2e-4
    assert np.abs(information - curvature).max() < 0.02 * np.abs(curvature).max()


@pytest.mark.parametrize("q", [2, 4, 12])
def test_the_common_scale_of_a_t_distribution_is_known_as_its_radius_is(q):
    """y' S^-1 y / p has an F distribution, which tells 2 p nu / (nu + p + 2) per row about the log of a scale."""
    Y, basis, covariance = problem(q=q)
    for tail in (3.0, 40.0, math.inf):
        _, information = evidence.scales_slope(np.zeros(q), rows_of(Y, basis, covariance), tail, 0.0, np.zeros((q, q)))
        p = q - 1
        known = 2 * p * (1.0 if math.isinf(tail) else tail / (tail + p + 2))
        assert information.sum() == pytest.approx(len(Y) * known)


@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0])
def test_a_scale_that_is_too_large_comes_down_however_large_the_mean_is(strength):
    """Labels gave mean and deviation twice as large as they are; held at its size, the mean would widen the scale."""
    Y, basis, covariance = problem(m=60)
    mean = strength * np.random.default_rng(6).normal(size=(60, 4))
    graded = rows_of(0.5 * Y, basis, covariance, 0.5 * mean)._replace(mean=mean)
    found = evidence._fit_scales(graded, math.inf, evidence.Spread(1.0, 0.5))
    assert found.log_scales.mean() == pytest.approx(math.log(0.5), abs=0.1)


def test_shape_and_mean_move_as_far_as_the_rows_bear_out():
    """Rows from the reference itself leave it nearly alone; rows from another distribution are believed."""
    Y, basis, covariance = problem(m=300)
    reference = basis.T @ covariance @ basis
    same, shift, worth = evidence.fit_shape(Y, np.ones(300), reference)
    assert np.abs(same - reference).max() < 0.1 * np.abs(reference).max()
    assert np.abs(shift).max() < 0.1
    assert 300 + min(evidence.ROWS_OF_SHAPE) < worth < 300 + max(evidence.ROWS_OF_SHAPE)
    other = np.diag([4.0, 0.25, 1.0])
    moved = np.random.default_rng(1).multivariate_normal([1.0, 0, 0], other, size=300)
    found, shift, _ = evidence.fit_shape(moved, np.ones(300), np.eye(3))
    sample = np.cov(moved.T, bias=True)
    assert np.abs(found - sample).max() < 0.1
    assert shift == pytest.approx(moved.mean(axis=0), abs=0.05)


def test_strengths_are_weighed_by_the_chance_of_the_rows(monkeypatch):
    """Which is the product of the chances of each row given those before it: t distributions."""
    Y, reference, p = np.random.default_rng(2).normal(0.5, 1.2, size=(7, 3)), np.diag([1.0, 2.0, 3.0]), 3
    shapes, means = (4.0, 9.0), (0.5, 6.0)
    monkeypatch.setattr(evidence, "ROWS_OF_SHAPE", shapes)
    monkeypatch.setattr(evidence, "ROWS_OF_MEAN", means)
    chances, shifts, covariances = [], [], []
    for k, strength in itertools.product(shapes, means):
        centre, number, freedom, scale, log_chance = np.zeros(p), strength, k + p + 1, k * reference, 0.0
        for y in Y:
            left = freedom - p + 1
            told = multivariate_t(centre, scale * (number + 1) / (number * left), df=left)
            log_chance += told.logpdf(y)
            scale = scale + number / (number + 1) * np.outer(y - centre, y - centre)
            centre, number, freedom = (number * centre + y) / (number + 1), number + 1, freedom + 1
        chances.append(log_chance)
        shifts.append(centre)
        covariances.append(scale / (freedom - p - 1))
    share = np.exp(chances) / np.exp(chances).sum()
    found = evidence.fit_shape(Y, np.ones(7), reference)
    np.testing.assert_allclose(found.shift, share @ shifts)
    np.testing.assert_allclose(found.covariance, np.tensordot(share, covariances, 1))
    assert found.worth == pytest.approx(1 / (share @ [1 / (k + 7) for k in shapes for _ in means]))


@pytest.mark.parametrize(("mean", "deviation"), [(0.7, 0.2), (-0.7, 0.2), (0.1, 0.2), (0.3, 1e-9), (0.0, 0.2)])
def test_the_least_change_has_the_largest_gain_less_its_deviation(mean, deviation):
    x = np.linspace(-1, 1, 20_001)
    worth = 2 * x * mean - x**2 - 2 * np.abs(x) * deviation
    found = evidence.least_change(mean, abs(mean) / deviation)
    assert found == pytest.approx(x[np.argmax(worth)], abs=2e-4)
    assert abs(found) <= abs(mean)


def test_the_least_change_of_several_parameters_has_the_largest_gain_less_its_deviation():
    """By a general solver: theta ~ N(mean, C) gains 2 x' H theta - x' H x from the move x, in the metric H = C^-1."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    C, mean = root @ root.T + 0.1 * np.eye(3), np.array([0.9, -1.2, 2.0])
    H = np.linalg.inv(C)

    def loss(x):
        return x @ H @ x - 2 * x @ H @ mean + 2 * math.sqrt(x @ H @ C @ H @ x)

    best = minimize(loss, mean, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000})
    found = evidence.least_change(mean, math.sqrt(mean @ H @ mean))
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_scales_of_labels_and_shape_stay_where_rows_do_not_deny_them_and_go_where_they_do():
    rng = np.random.default_rng(3)
    covariance, basis = (np.eye(4) - 0.25), helmert(4).T
    truth = np.array([1.0, 2.5, 0.4, 1.0])
    shares = []
    for scale in (np.ones(4), truth):
        E = rng.multivariate_normal(np.zeros(4), scale[:, None] * np.eye(4) * scale, size=60)
        Y = (E - E.mean(axis=1, keepdims=True)) @ basis
        free = evidence._fit_scales(rows_of(Y, basis, covariance), math.inf, evidence.Spread(1.0, 0.3))
        held, withheld = evidence._hold_scales(free, None)
        assert withheld == 0.0  # nothing is held to what labels do not say
        moves = np.ptp(held), np.ptp(free.log_scales)
        assert moves[0] <= moves[1]
        np.testing.assert_allclose(np.diff(held) * moves[1], np.diff(free.log_scales) * moves[0], atol=1e-12)
        shares.append(moves[0] / moves[1])
        found = evidence.fit_shape(Y, np.ones(60), np.eye(3))
        near = evidence._hold_shape(found.covariance, np.eye(3), found.worth)
        shares.append(np.linalg.norm(near - np.eye(3)) / np.linalg.norm(found.covariance - np.eye(3)))
    assert max(shares[:2]) < 0.5 < 0.8 < min(shares[2:]) < 1


@pytest.mark.parametrize(("tail", "low", "high"), [(math.inf, math.inf, math.inf), (3, 3, 8)])
def test_tails_stay_normal_unless_rows_deny_it(tail, low, high):
    graded = rows_of(*problem(m=200, tail=tail))
    candidates = [evidence._fit_scales(graded, nu, evidence.Spread(1.0, 0.3)) for nu in evidence.TAILS]
    of_graded, of_all = evidence._choose_tails(candidates)
    assert low <= of_all <= high
    assert of_graded <= of_all
    assert math.isinf(of_all) or of_all == round(of_all)


def test_one_row_far_out_does_not_move_the_others():
    """Ten rows as the labels said, and the same with one of them seven deviations away along one label."""
    Y, basis, covariance = problem(m=10, q=8, seed=1)
    parameters = Parameters(np.zeros((1, 8)), covariance, 0.0)
    far = Y.copy()
    far[0] += 7 * np.sqrt(covariance[2, 2]) * basis[2]
    plain, moved = (
        evidence.calibrate(parameters, rows_of(rows, basis, covariance), lambda _: evidence.Spread(1.0, 0.05))[0]
        for rows in (Y, far)
    )
    variances = np.diag(moved.parameters.covariance) / np.diag(plain.parameters.covariance)
    assert np.all((variances > 0.6) & (variances < 1.7))
    assert moved.tail > 10  # one row does not tell of the tails of all


def test_the_common_scale_stays_where_rows_do_not_deny_it_and_goes_where_they_do():
    Y, basis, covariance = problem(m=30)
    Y /= np.sqrt(np.mean(np.linalg.solve(np.linalg.cholesky(basis.T @ covariance @ basis), Y.T) ** 2))
    said = evidence.Spread(1.0, 0.3)
    own = 1 / math.sqrt(2 * 30 * 3 + 1 / 0.3**2)  # deviation of the log scale that 30 rows of 3 dimensions know
    for factor in (0.4, 1.03, 3.0):
        free = evidence._fit_scales(rows_of(factor * Y, basis, covariance), math.inf, said)
        held, withheld = evidence._hold_scales(free, said)
        moved = held.mean()
        apart = evidence._hold_scales(free, None)[0]  # what labels are beside the common scale does not depend on it
        np.testing.assert_allclose(held - held.mean(), apart - apart.mean(), atol=1e-12)
        assert moved == pytest.approx(0.0 if factor == 1.03 else math.log(factor), abs=2.5 * own)
        assert abs(moved) <= abs(free.log_scales.mean())
        assert moved + withheld == pytest.approx(free.log_scales.mean(), abs=1e-12)
        assert free.deviation >= 0.9 * own
        larger = free._replace(log_scales=free.log_scales + 0.7)  # all in another unit
        again, of_more = evidence._hold_scales(larger, evidence.Spread(math.exp(0.7), 0.3))
        np.testing.assert_allclose(again, held + 0.7)
        assert of_more == pytest.approx(withheld)


@pytest.mark.usefixtures("few_simulated")
def test_intervals_and_beliefs_know_of_what_was_withheld():
    """Labels of four degrees say little of a small spread, the prior a large one: rows bring it down, in part."""
    X, L, D = simulated(n=150, q=4, spread=0.08)
    G, _ = graded(D, 10)
    fit = Inversion(**SHORT).fit(X, L, degrees=G).fit_
    assert fit.withheld < 0
    believed = fit.believed_spread
    assert believed.mean == pytest.approx(fit.spread.mean * math.exp(fit.withheld))
    assert abs(math.log(believed.mean / 0.08)) < abs(math.log(fit.spread.mean / 0.08))
    assert math.hypot(believed.deviation / believed.mean, fit.withheld) == pytest.approx(fit.spread_deviation)


@pytest.mark.usefixtures("few_simulated")
def test_the_labels_are_learnt_from_as_without_graded_rows(monkeypatch):
    """What graded rows change is the calibration alone: it starts from the very parameters of the fit without them."""
    X, L, D = simulated(n=80, q=4)
    plain = Inversion(**SHORT).fit(X, L)
    seen, calibrate_parameters = [], fit.calibrate_parameters

    def spy(phi, rows, parameters, *rest):
        seen.append((parameters, rows))
        return calibrate_parameters(phi, rows, parameters, *rest)

    monkeypatch.setattr(fit, "calibrate_parameters", spy)
    G, known = graded(D, 10)
    told = Inversion(**SHORT).fit(X, L, degrees=G)
    assert (plain.fit_.n_graded, told.fit_.n_graded) == (0, 10)
    assert (told.fit_.shape_shares < plain.fit_.shape_shares).all()  # graded rows tell of Sigma
    ((parameters, rows),) = seen
    np.testing.assert_array_equal(parameters.covariance, plain.covariance_)
    np.testing.assert_array_equal(parameters.coefficients, plain.coefficients_)
    np.testing.assert_allclose(softmax(rows.Z.T)[known], D[known], rtol=1e-12)
    assert CumulativeMass().agrees(softmax(rows.Z.T), L).all()


def test_weights_of_rows_give_the_tails_that_they_are_meant_to():
    """Without constraints the chain draws from t_6 itself: its variance and its share of far rows."""
    n, q, tail = 4000, 3, 6
    L = np.ones((n, q))
    covariance = np.eye(q) - 1 / q
    rows, rng, kept = Rows(Threshold(0.0), L, tail=tail), np.random.default_rng(0), []
    rows._interval = lambda j, weights: (weights.without(j), (np.full(n, -np.inf), np.full(n, np.inf)))[1]
    for k in range(40):
        rows.sweep(np.zeros((q, n)), precision(covariance), rng)
        if k >= 10:
            kept.append(rows.Z - rows.Z.mean(axis=0))
    Z = np.stack(kept)
    assert np.mean(Z**2) == pytest.approx(tail / (tail - 2) * np.trace(covariance) / q, rel=0.05)
    assert np.mean(Z**4) / np.mean(Z**2) ** 2 == pytest.approx(3 * (tail - 2) / (tail - 4), rel=0.25)


def test_the_likelihood_is_that_of_a_t_distribution_and_weights_are_its_pull():
    """A weight is what the normal pull -S^-1 y is multiplied by."""
    Y, basis, covariance = problem(m=9, q=4)
    S = basis.T @ covariance @ basis
    for tail in (5.0, math.inf):
        t = multivariate_normal(np.zeros(3), S) if math.isinf(tail) else multivariate_t(np.zeros(3), S, df=tail)
        assert evidence._log_likelihood(Y, S, tail) == pytest.approx(t.logpdf(Y).sum())
        weight, pull = evidence._row_weights(Y, S, tail), -np.linalg.solve(S, Y.T).T
        for k, step in enumerate(1e-6 * np.eye(3)):
            slope = (t.logpdf(Y + step) - t.logpdf(Y - step)) / 2e-6
            np.testing.assert_allclose(slope, weight * pull[:, k], atol=1e-6)


@pytest.mark.parametrize("tail", [4.0, math.inf])
def test_scales_have_the_evidence_and_the_moments_of_an_integral(tail):
    """Over both log scales of two labels and all tau; the mean is that of the scale, and not of its logarithm."""
    Y, basis, covariance = problem(m=150, q=2, seed=2)
    graded, said = rows_of(1.3 * Y, basis, covariance, np.array([0.4, -0.4])), evidence.Spread(1.1, 0.3)
    found = evidence._fit_scales(graded, tail, said)
    width = math.log1p((0.3 / 1.1) ** 2)
    centre, common = math.log(1.1) - 0.5 * width, math.hypot(0.3 / 1.1, evidence.MODEL_DEVIATION)
    grid = np.linspace(-1.5, 2.0, 57)
    scales = np.array(list(itertools.product(grid, grid)))
    likelihood = np.array([evidence.scales_objective(a, graded, tail, 0.0, np.zeros((2, 2))) for a in scales])
    priors = [multivariate_normal(np.full(2, centre), t**2 * np.eye(2) + common**2) for t in evidence.LABEL_SCALES]
    prior = np.exp([p.logpdf(scales) for p in priors]).sum(axis=0)
    log_p = likelihood + np.log(prior)
    area = (grid[1] - grid[0]) ** 2
    p = np.exp(log_p - logsumexp(log_p))
    mean = p @ scales
    covariance = (scales - mean).T @ (p[:, None] * (scales - mean))
    assert found.evidence == pytest.approx(logsumexp(log_p) + math.log(area), abs=0.15)
    np.testing.assert_allclose(found.log_scales, mean + 0.5 * covariance.mean(), atol=0.01)
    np.testing.assert_allclose(found.covariance, covariance, atol=0.1 * covariance.max())
    assert found.deviation == pytest.approx(math.sqrt(covariance.mean()), rel=0.1)


def test_scales_without_a_row_are_those_that_were_believed():
    """log s ~ N(centre, common^2) and N(0, tau^2) for each label; s has the mean that was said, its median is less."""
    q, said = 3, evidence.Spread(1.4, 0.5)
    Y, basis, covariance = problem(m=5, q=q)
    found = evidence._fit_scales(rows_of(Y[:0], basis, covariance, np.zeros((0, q))), math.inf, said)
    relative = 0.5 / 1.4
    common = math.hypot(relative, evidence.MODEL_DEVIATION)
    expected = common**2 + np.mean(np.square(evidence.LABEL_SCALES)) * np.eye(q)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6)
    mean = math.log(1.4) - 0.5 * math.log1p(relative**2) + 0.5 * expected.mean()
    np.testing.assert_allclose(found.log_scales, mean, rtol=1e-6)
    assert found.evidence == pytest.approx(math.log(len(evidence.LABEL_SCALES)))


def test_tails_have_the_posterior_mean_of_one_over_nu_and_its_least_change():
    scales = np.zeros(3), np.eye(3)
    log_chance = {math.inf: -1.0, 12: 0.0, 6: -0.5, 3: 1.0}
    candidates = [evidence._Scales(v, *scales, nu) for nu, v in log_chance.items()]
    weight = np.array([evidence.TAILS[nu] * math.exp(v) for nu, v in log_chance.items()])
    weight /= weight.sum()
    inverse = np.array([0.0, 1 / 12, 1 / 6, 1 / 3])
    mean = weight @ inverse
    deviation = math.sqrt(weight @ (inverse - mean) ** 2)
    held = mean * (1 - deviation / mean)
    assert evidence._choose_tails(candidates) == (round(1 / mean), round(1 / held) if held > 1 / 30 else math.inf)
    certain = [evidence._Scales(0.0 if nu == 6 else -1e4, *scales, nu) for nu in evidence.TAILS]
    assert evidence._choose_tails(certain) == (6.0, 6.0)
    assert evidence._whole_tail(1 / 30) == 30.0
    assert evidence._whole_tail(0.033) == math.inf


@pytest.mark.parametrize("x", [0.5, 0.1, -0.4])
def test_a_shape_is_held_by_what_it_is_known_from(x):
    """A covariance (1 + x) times the reference, known from n rows, is sqrt(n p / 2) |x| deviations away."""
    root = np.random.default_rng(0).normal(size=(3, 3))
    reference, worth = root @ root.T, 40.0
    length = math.sqrt(worth * 3 / 2) * abs(x)
    expected = 1 + x * max(1 - 1 / length, 0.0)
    np.testing.assert_allclose(evidence._hold_shape((1 + x) * reference, reference, worth), expected * reference)


def test_many_rows_move_the_model_to_where_they_are():
    """The scale, an offset of the mean and the tails that made them; the spread in units of the labels' own."""
    rng, m = np.random.default_rng(0), 3000
    C, basis = np.eye(4) - 0.25, helmert(4).T
    labels = C @ np.diag([1.0, 2.0, 0.5, 1.0]) @ C
    B = rng.normal(size=(3, 4)) @ C
    phi = np.column_stack([np.ones(m), rng.normal(size=(m, 2))])
    shift, scale = C @ [0.4, -0.2, 0.1, -0.3], 1.6
    truth = scale**2 * labels
    E = rng.multivariate_normal(np.zeros(3), basis.T @ truth @ basis, size=m) @ basis.T
    Z = scale * phi @ B + shift + E
    graded = evidence.Graded.of(Z, phi @ B, labels)
    given = Parameters(B, labels, 0.3)
    found, log_scales = evidence.calibrate(given, graded, lambda tail: evidence.Spread(1.0, 0.5))
    assert math.isinf(found.tail)
    np.testing.assert_allclose(log_scales, math.log(scale), atol=0.05)
    np.testing.assert_allclose(found.parameters.covariance, truth, atol=0.12)
    np.testing.assert_allclose(found.parameters.coefficients[1:], scale * B[1:], atol=0.1)
    np.testing.assert_allclose(found.parameters.coefficients[0], scale * B[0] + shift, atol=0.1)
    np.testing.assert_allclose(found.parameters.coefficients.sum(axis=1), 0.0, atol=1e-9)
    trace = np.trace(found.parameters.covariance)
    assert found.spread.mean == pytest.approx(math.sqrt(trace / np.trace(labels)))
    assert found.spread.deviation / found.spread.mean < 0.06
    heavy = E / np.sqrt(rng.chisquare(3, (m, 1)) / 3)
    of_t, _ = evidence.calibrate(given, graded._replace(Z=Z - E + heavy), lambda tail: evidence.Spread(1.0, 0.5))
    assert of_t.tail == 3
    trace = np.trace(of_t.parameters.covariance)
    assert of_t.spread.mean == pytest.approx(math.sqrt(3 * trace / np.trace(labels)))  # the variance of t_3


@pytest.mark.parametrize("told", [True, False])
def test_the_common_scale_is_that_of_all_rows_and_the_rest_is_read_in_units_of_the_graded_ones(monkeypatch, told):
    """Graded rows have tails, all rows have none: residuals at their own scales, brought to the common one."""
    Y, basis, labels = problem(m=30)
    rng = np.random.default_rng(0)
    mean, B = rng.normal(size=(30, 4)), rng.normal(size=(2, 4))
    graded, said, seen = rows_of(Y, basis, labels, mean), evidence.Spread(1.1, 0.3), []
    scales = {5.0: np.array([0.5, 0.1, 0.3, -0.1]), math.inf: np.array([0.4, 0.6, 0.2, 0.8])}
    shift, larger = np.array([0.2, -0.1, 0.3]), 1.2
    monkeypatch.setattr(evidence, "_choose_tails", lambda _: (5.0, math.inf))
    monkeypatch.setattr(evidence, "_hold_shape", lambda covariance, reference, worth: larger * reference)

    def hold(found, spread):
        seen.append(spread)
        return scales[found.tail], 0.07

    def fit_shape(residuals, weight, reference):
        own, common = (scales[tail].mean() for tail in (5.0, math.inf))
        held = scales[5.0] - own + common
        np.testing.assert_allclose(residuals, graded.residuals(scales[5.0]) / math.exp(own - common))
        np.testing.assert_allclose(reference, graded.scatter(held))
        return evidence.Shape(reference, shift, 40.0)

    monkeypatch.setattr(evidence, "_hold_scales", hold)
    monkeypatch.setattr(evidence, "fit_shape", fit_shape)
    given = Parameters(B, labels, 0.3)
    found, held = evidence.calibrate(given, graded, lambda tail: said, labels_tell_scale=told)
    assert seen == [said if told else None] * 2
    unit = math.exp(0.2 - 0.5)
    np.testing.assert_allclose(held, scales[5.0] + 0.3)
    scaled = B * np.exp(held) @ (np.eye(4) - 0.25)
    scaled[0] += unit * basis @ shift
    np.testing.assert_allclose(found.parameters.coefficients, scaled)
    np.testing.assert_allclose(found.parameters.covariance, larger * basis @ graded.scatter(held) @ basis.T)
    factor = math.sqrt(np.trace(found.parameters.covariance) / np.trace(labels))
    free = evidence._fit_scales(graded, math.inf, said)
    assert found.spread == pytest.approx((factor, factor * math.hypot(free.deviation, 0.07)))
    assert (found.tail, found.withheld) == (math.inf, 0.07)


def test_degrees_have_logs_with_zeros_at_half_of_what_could_have_been_given():
    L = np.ones((4, 3))
    grades = evidence.place_grades(np.array([2, 0]), np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1]]), L)
    assert grades.bound == 0.05
    np.testing.assert_array_equal(grades.known, [True, False, True, False])
    np.testing.assert_allclose(grades.degrees[[1, 3]], 1 / 3)
    expected = np.log([[0.2, 0.7, 0.1], [1, 1, 1], [0.5, 0.5, 0.025], [1, 1, 1]])
    np.testing.assert_allclose(grades.log_weights(), expected)
    some = grades[np.array([2, 3])]
    np.testing.assert_allclose(some.log_weights(), expected[2:])
    assert evidence.place_grades(np.zeros(0, int), np.zeros((0, 3)), L) is None
    tiny = np.finfo(np.float64).tiny
    below, above = (
        evidence.place_grades(np.array([0]), np.array([[1.0, k * tiny, 0.0]]), L[:, :3]).degrees[0, 1] for k in (7, 9)
    )
    assert (below, above) == (0.0, 9 * tiny)


def test_zeros_are_drawn_below_what_the_grader_could_have_given():
    L = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    degrees = np.array([[0.7, 0.3, 0.0]])
    grades = evidence.place_grades(np.array([1]), degrees, L)
    assert grades.bound == 0.15
    rows, rng = Rows(CumulativeMass(), L), np.random.default_rng(0)
    rows.hold(grades)
    for _ in range(20):
        rows.sweep(np.zeros((3, 2)), np.eye(3), rng)
        ratios = np.exp(rows.Z[:, 1] - rows.Z[0, 1])
        assert ratios[1] == pytest.approx(3 / 7)
        assert ratios[2] < 0.15 / 0.7


# ---------------------------------------------------------------------------------------------------------- judged


def calibration(scale, tail=math.inf):
    covariance = scale**2 * (np.eye(3) - 1 / 3)
    return evidence.Calibration(
        Parameters(np.zeros((1, 3)), covariance, 0.0), evidence.Spread(scale, 0.1 * scale), tail
    )


def test_the_step_is_the_one_whose_answers_are_closest_to_the_graded_degrees():
    """Answers that grow with the scale, and degrees as they are halfway between the labels and the calibration."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(40, 3))

    def answer(parameters, tail):
        return softmax(math.sqrt(parameters.covariance[0, 0] * 1.5) * directions)

    labels, found = calibration(1.0), calibration(3.0, tail=6)
    wanted = fit.between(labels, found, 0.5, 6)
    truth = answer(wanted.parameters, 6)
    chosen = fit.closest_step(labels, found, truth, answer)
    np.testing.assert_allclose(chosen.parameters.covariance, wanted.parameters.covariance)
    assert fit.closest_step(labels, found, answer(found.parameters, 6), answer) is found
    assert fit.closest_step(labels, found, answer(labels.parameters, 6), answer) is labels
    assert fit.closest_step(labels, found, truth[:4], answer) is found  # too few rows to judge
    noisy = softmax(np.log(answer(found.parameters, 6)) + rng.normal(size=(40, 3)))
    assert fit.closest_step(labels, found, noisy, lambda *_: softmax(directions)) is found  # no difference to see


def test_between_has_both_ends():
    labels, found = calibration(1.0), calibration(2.0, tail=6)
    assert fit.between(labels, found, 1.0, 6).spread == pytest.approx(found.spread)
    assert fit.between(labels, found, 0.0, math.inf).spread.mean == pytest.approx(labels.spread.mean)
    normal = fit.between(labels, found, 1.0, math.inf).spread.mean
    assert normal == pytest.approx(2.0 * math.sqrt(4 / 6))  # without the tails, whose variance is 6 / 4 of the scale


# ---------------------------------------------------------------------------------------------------------- gains


@pytest.mark.usefixtures("few_simulated")
def test_ten_rows_repair_a_spread_that_the_labels_overstate():
    """Degrees that stay away from 0 and 1, of which nearly always one passes the half: labels ask for a large spread.

    The features carry most of it. With the mean held at its size, ten rows made the answer worse.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    Z = 1.5 * X @ rng.normal(size=(4, 5)) + rng.normal(size=(500, 5))
    D = 0.6 * softmax(1.5 * Z) + 0.4 / 5
    L = CumulativeMass().apply(D).astype(float)
    G, rows = graded(D, 10)
    plain = mean_kl(D, Inversion(**SHORT).fit_enhance(X, L), rows)
    assert mean_kl(D, Inversion(**SHORT).fit_enhance(X, L, degrees=G), rows) < 0.9 * plain


@pytest.mark.usefixtures("few_simulated")
def test_graded_rows_come_back_as_given_and_do_no_harm():
    X, L, D = simulated()
    G, rows = graded(D, 20)
    method = Inversion(**SHORT, n_samples=2)
    answer = method.fit_enhance(X, L, degrees=G)
    np.testing.assert_allclose(answer[rows], D[rows], rtol=1e-12)
    np.testing.assert_allclose(method.samples_[:, rows], np.stack([D[rows]] * 2), rtol=1e-12)
    assert method.solution_.info["graded_rows"] == 20
    plain = Inversion(**SHORT).fit_enhance(X, L)
    assert mean_kl(D, answer, rows) < 1.05 * mean_kl(D, plain, rows)
    lower, upper = method.intervals(level=0.9)
    np.testing.assert_allclose(lower[rows], D[rows])
    np.testing.assert_allclose(upper[rows], D[rows])


def test_graded_rows_tell_the_scale_where_the_labels_do_not():
    """The order alone says nothing of the spread: 30 graded rows do."""
    X, L, D = simulated(spread=1.0)
    G, rows = graded(D, 30)
    plain, taught = (Inversion(degradation="topk", **SHORT) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # rows with another number of labels than the rule makes
        without, with_grades = plain.fit_enhance(X, L), taught.fit_enhance(X, L, degrees=G)
    assert taught.spread_ == pytest.approx(1.0, rel=0.25)
    assert mean_kl(D, with_grades, rows) < 0.6 * mean_kl(D, without, rows)


def test_graded_rows_tell_the_scales_of_single_labels():
    X, L, D = simulated(n=300, q=6, spread=0.3, scales=[2.0, 0.5, 1.0, 1.0, 0.5, 1.5])
    G, rows = graded(D, 60)
    plain = mean_kl(D, Inversion(**SHORT).fit_enhance(X, L), rows)
    assert mean_kl(D, Inversion(**SHORT).fit_enhance(X, L, degrees=G), rows) < 0.97 * plain


@pytest.mark.parametrize("spread", [0.15, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in (0.5, 2.0))])
def test_intervals_cover_with_graded_rows(spread):
    covered = []
    for seed in (1, 2) if spread < 0.5 else range(1, 7):
        X, L, D = simulated(seed, n=300, q=6, spread=spread)
        G, rows = graded(D, 30)
        rest = np.setdiff1d(np.arange(len(D)), rows)
        lower, upper = Inversion(n_sweeps=120, n_burn=60).fit(X, L, degrees=G).intervals(level=0.9)
        covered.append(np.mean(((lower <= D) & (upper >= D))[rest]))
    assert 0.87 < np.mean(covered) < 0.93


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.parametrize("m", [1, 150])
def test_one_graded_row_and_all_of_them(m):
    X, L, D = simulated(n=150)
    G, rows = graded(D, m)
    method = Inversion(**SHORT)
    np.testing.assert_allclose(method.fit_enhance(X, L, degrees=G)[rows], D[rows], rtol=1e-12)
    assert np.isfinite(method.predict(X)).all()


@pytest.mark.usefixtures("few_simulated")
def test_a_label_that_is_never_graded_above_zero():
    X, L, D = simulated(n=150)
    G, rows = graded(D, 30)
    G[rows, 2] = 0.0
    G[rows] /= G[rows].sum(axis=1, keepdims=True)
    with pytest.warns(LabelWarning, match="graded rows have labels"):
        answer = Inversion(**SHORT).fit_enhance(X, L, degrees=G)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    assert (answer[rows, 2] == 0).all()


@pytest.mark.usefixtures("few_simulated")
def test_nothing_known_is_as_without():
    X, L, D = simulated(n=100)
    expected = Inversion(**SHORT).fit_enhance(X, L)
    np.testing.assert_array_equal(Inversion(**SHORT).fit_enhance(X, L, degrees=np.full_like(D, np.nan)), expected)


@pytest.mark.usefixtures("few_simulated")
def test_graded_rows_beyond_max_rows():
    X, L, D = simulated()
    G, rows = graded(D, 30)
    method = Inversion(**SHORT, max_rows=100)
    np.testing.assert_allclose(method.fit_enhance(X, L, degrees=G)[rows], D[rows], rtol=1e-12)


# ----------------------------------------------------------------------------------------------------- containers


@pytest.mark.usefixtures("few_simulated")
def test_a_shorter_frame_is_aligned_by_its_index():
    X, L, D = simulated(n=100, q=3)
    brief = {"n_sweeps": 20, "n_burn": 10}
    names, index = ["a", "b", "c"], [f"row{i}" for i in range(100)]
    Y = pd.DataFrame(L, columns=names, index=index)
    few = pd.DataFrame(D, columns=names, index=index).loc[["row7", "row3", "row50"], ["c", "a", "b"]]
    G = np.full_like(D, np.nan)
    G[[7, 3, 50]] = D[[7, 3, 50]]
    expected = Inversion(**brief).fit_enhance(X, L, degrees=G)
    answer = Inversion(**brief).fit_enhance(X, Y, degrees=few)
    assert list(answer.index) == index
    np.testing.assert_allclose(answer.to_numpy(), expected, atol=1e-9)
    numbered = few.set_axis([7, 3, 50])
    np.testing.assert_allclose(
        Inversion(**brief).fit_enhance(X, pd.DataFrame(L, columns=names), degrees=numbered).to_numpy(),
        expected,
        atol=1e-9,
    )
    with pytest.raises(LabelError, match="'row999' that is not in the index of Y"):
        Inversion().fit(X, Y, degrees=few.rename(index={"row3": "row999"}))
    with pytest.raises(LabelError, match="no column 'b'"):
        Inversion().fit(X, Y, degrees=few[["a", "c"]])


@pytest.mark.usefixtures("few_simulated")
def test_tensors_and_lazy_arrays_say_the_same():
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    X, L, D = simulated(n=120, q=4)
    G, rows = graded(D, 20)
    brief = {"n_sweeps": 20, "n_burn": 10}  # enough to be the same
    expected = Inversion(**brief).fit_enhance(X, L, degrees=G)
    answer = Inversion(**brief).fit_enhance(*(torch.tensor(A) for A in (X, L)), degrees=torch.tensor(G))
    np.testing.assert_allclose(answer.numpy(), expected, atol=1e-6)
    lazy = [da.from_array(A, chunks=(60, -1)) for A in (X, L, G)]
    answer = Inversion(**brief).fit_enhance(lazy[0], lazy[1], degrees=lazy[2])
    np.testing.assert_allclose(answer.compute(scheduler="synchronous"), expected, atol=1e-9)
    sampled = Inversion(**brief, max_rows=80).fit_enhance(lazy[0], lazy[1], degrees=G).compute(scheduler="synchronous")
    np.testing.assert_allclose(sampled[rows], D[rows], rtol=1e-12)
    assert np.abs(sampled - expected).mean() < 0.03


@pytest.mark.usefixtures("few_simulated")
def test_bad_degrees_get_an_answer_in_words():
    X, L, D = simulated(n=50, q=3)
    G, rows = graded(D, 5)
    first = rows[0]

    def spoilt(row, value):
        broken = G.copy()
        broken[row] = value
        return broken

    with pytest.raises(LabelError, match=rf"row {first} has 0.5, 0.2, 0.2, which sum to 0.9 "):
        Inversion().fit(X, L, degrees=spoilt(first, [0.5, 0.2, 0.2]))
    with pytest.raises(LabelError, match="not negative"):
        Inversion().fit(X, L, degrees=spoilt(first, [1.2, -0.1, -0.1]))
    with pytest.raises(LabelError, match=rf"row {first} but for 'label_1'"):
        Inversion().fit(X, L, degrees=spoilt(first, [0.5, np.nan, 0.5]))
    with pytest.raises(ShapeError, match="2 columns"):
        Inversion().fit(X, L, degrees=G[:, :2])
    for words in (
        np.full(G.shape, "much"),
        pd.DataFrame(np.full(G.shape, "much"), columns=["label_0", "label_1", "label_2"]),
    ):
        with pytest.raises(InputTypeError, match="degrees must hold numbers"):
            Inversion().fit(X, L, degrees=words)
    with pytest.raises(ShapeError, match="20 rows, X has 50"):
        Inversion().fit(X, L, degrees=G[:20])
    contradicting = spoilt(first, np.where(L[first] > 0, 0.1, 0.9) / np.where(L[first] > 0, 0.1, 0.9).sum())
    with pytest.warns(LabelWarning, match=rf"1 of 5 graded rows .* \(rows {first}\)"):
        answer = Inversion(**SHORT).fit_enhance(X, L, degrees=contradicting)
    np.testing.assert_allclose(answer[first], contradicting[first])


@pytest.mark.usefixtures("few_simulated")
def test_graded_rows_name_the_rule():
    """Two shares of mass that make the same numbers of labels differ in the rows that are known."""
    X, L, D = simulated(n=300, rule=CumulativeMass(0.7), spread=0.8)
    G, _ = graded(D, 30)
    assert Inversion(degradation="auto", **SHORT).fit(X, L, degrees=G).degradation_ == CumulativeMass(0.7)


# ------------------------------------------------------------------------------------------------------ intervals


@pytest.mark.usefixtures("few_simulated")
def test_intervals_of_any_rows_in_their_container():
    X, L, D = simulated(n=900, q=4)
    names = list("abcd")
    method = Inversion().fit(X[:600], pd.DataFrame(L[:600], columns=names))
    new = D[600:]
    for given in ((X[600:],), (X[600:], L[600:])):
        lower, upper = method.intervals(*given, level=0.9)
        assert 0.87 < np.mean((lower <= new) & (new <= upper)) < 0.93
    narrow, wide = method.intervals(X[600:], L[600:]), method.intervals(X[600:])
    assert np.mean(narrow[1] - narrow[0]) < np.mean(wide[1] - wide[0])
    frame = pd.DataFrame(L[600:], columns=names, index=range(600, 900))
    lower, upper = method.intervals(X[600:], frame)
    assert list(lower.index) == list(upper.index) == list(range(600, 900))
    np.testing.assert_array_equal(lower.to_numpy(), narrow[0])


@pytest.mark.usefixtures("few_simulated")
def test_intervals_of_tensors_and_lazy_rows():
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    X, L, _ = simulated(n=200, q=4)
    method = Inversion(**SHORT).fit(X, L)
    expected = method.intervals(X), method.intervals(X, L)
    tensors = torch.tensor(X), torch.tensor(L)
    for found, wanted in zip((method.intervals(tensors[0]), method.intervals(*tensors)), expected, strict=True):
        np.testing.assert_allclose(found[0].numpy(), wanted[0], atol=1e-6)
    lazy = da.from_array(X, chunks=(60, -1)), da.from_array(L, chunks=(60, -1))
    lower, upper = (end.compute(scheduler="synchronous") for end in method.intervals(lazy[0]))
    np.testing.assert_allclose(lower, expected[0][0], atol=1e-9)
    lower, upper = (end.compute(scheduler="synchronous") for end in method.intervals(*lazy))
    assert np.abs(upper - expected[1][1]).mean() < 0.03


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_degrees_below_what_the_precision_holds_count_as_zeros(dtype):
    torch = pytest.importorskip("torch")
    tiny = np.array([[1e-27, 1.0], [1e-82, 1.0], [5e-324, 1.0]])
    X, L = np.array([[1.2], [-1.3], [6.4]]), np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    tensors = (torch.tensor(A, dtype=getattr(torch, dtype)) for A in (X, L))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        D = Inversion(n_sweeps=6, n_burn=2).fit_enhance(*tensors, degrees=tiny)
    np.testing.assert_allclose(D.numpy(), tiny, atol=1e-6)

"""The expected error: its formula, its limits, and the actual error on data from the model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import entr, expit, ndtr, ndtri

from contone import CumulativeMass, Inversion, TopK
from contone.enhance.inversion import expected_error, simulate
from contone.enhance.inversion.assessment import ErrorSample
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.logistic_normal import Flips, Parameters, Spread
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.posterior import Posterior
from contone.exceptions import AnswerError
from contone.numerics.simplex import kl_divergence, softmax


def model_data(spread, n=300, q=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = 0.5 * X @ rng.normal(size=(2, q)) + rng.normal(size=(n, q))
    Z -= Z.mean(axis=1, keepdims=True)
    D = softmax(spread * Z / Z.std())
    return X, CumulativeMass().apply(D).astype(float), D


@pytest.fixture(scope="module")
def fitted():
    X, L, D = model_data(0.6)
    return Inversion(n_sweeps=80, n_burn=30).fit(X, L), D


def test_the_actual_error_is_within_what_is_expected(fitted):
    method, D = fitted
    found = method.expected_error_
    actual = float(np.mean(kl_divergence(D, method.label_distributions_)))
    assert found.lower < actual < found.upper
    assert 0.6 < found.mean / actual < 1.6
    assert found.lower < found.mean < found.upper
    assert float(found) == found.mean
    assert "90 % interval" in str(found)


def test_rows_have_the_mean_and_the_same_answer_comes_twice(fitted):
    method, D = fitted
    found = method.expected_error_
    assert found is method.expected_error_
    assert found.rows.shape == (len(D),)
    assert (found.rows >= 0).all()
    assert found.rows.mean() == pytest.approx(found.mean)
    again = expected_error.expect_error(method.fit_, method._error_sample, method.posterior_)
    assert again == found


def test_rows_that_are_all_graded_leave_no_error():
    X, L, D = model_data(0.6, n=12)
    found = Inversion(n_sweeps=60, n_burn=20).fit(X, L, degrees=D).expected_error_
    assert (found.lower, found.mean, found.upper) == (0.0, 0.0, 0.0)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_one_label_leaves_no_error():
    method = Inversion(n_sweeps=10, n_burn=2).fit(np.zeros((4, 1)), np.ones((4, 1)))
    assert method.expected_error_.mean == method.expected_error_.upper == 0.0
    assert method.fit_.spread == Spread(0.0, 0.0)
    parameters = method.fit_.parameters
    assert not parameters.coefficients.any()
    assert (parameters.covariance, parameters.theta) == ([[0.0]], 0.0)
    fit = method.fit_
    assert (fit.n_rows, fit.n_relaxed, fit.effective_sample_size, fit.split_r_hat) == (4, 0, 10.0, 1.0)


def test_the_interval_has_the_error_of_the_mean_over_rows_and_models(fitted, monkeypatch):
    """Models that agree leave the chance of the rows alone; and models that differ add theirs, in logs."""
    method, _ = fitted
    rows = np.random.default_rng(0).gamma(2.0, 0.01, size=50)
    n = method._error_sample.n
    chance = rows.std() / rows.mean() / math.sqrt(n)
    for logs in (np.zeros(12), np.linspace(-0.3, 0.3, 12)):
        errors = np.exp(logs)[:, None] * rows
        monkeypatch.setattr(expected_error, "errors_under_models", lambda *_, errors=errors: errors)
        found = expected_error.expect_error(method.fit_, method._error_sample, method.posterior_)
        assert found.mean == pytest.approx(errors.mean())
        reach = ndtri(0.95) * math.sqrt(logs.var(ddof=1) + chance**2)
        centre = np.log(rows.mean()) + logs.mean()
        assert np.log([found.lower, found.upper]) == pytest.approx([centre - reach, centre + reach])


def test_the_second_order_is_right_where_posteriors_are_narrow():
    rng = np.random.default_rng(0)
    centre, width = rng.normal(size=(1, 4)), 0.01
    Z = centre + width * rng.normal(size=(20000, 4))
    D = softmax(Z)
    logit = np.log(D) - np.log1p(-D)
    posterior = Posterior(D.mean(axis=0)[None], logit.mean(axis=0)[None], logit.std(axis=0)[None])
    exact = np.mean(kl_divergence(D, np.broadcast_to(posterior.mean, D.shape)))
    assert expected_error.second_order(posterior)[0] == pytest.approx(exact, rel=0.03)


def test_stretched_parameters_stay_centred_and_keep_mean_over_deviation():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    C = np.eye(4) - 0.25
    given = Parameters(rng.normal(size=(3, 4)) @ C, C @ A @ A.T @ C, 0.1)
    found = expected_error._stretch(given, np.array([1.5, 1.0, 0.7, 1.1]))
    np.testing.assert_allclose(found.covariance.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.coefficients.sum(axis=1), 0.0, atol=1e-12)
    same = expected_error._stretch(given, np.full(4, 2.0))
    np.testing.assert_allclose(same.coefficients, 2 * given.coefficients)
    np.testing.assert_allclose(same.covariance, 4 * given.covariance)


@pytest.mark.parametrize("tail", [math.inf, 5.0])
def test_models_have_the_spread_of_its_posterior(fitted, monkeypatch, tail):
    """Over normal scores, the root mean square of log degrees is log-normal with the moments of the posterior.

    Tails are in it: a t distribution with nu degrees of freedom has nu / (nu - 2) times the variance of its scale.
    """
    method, _ = fitted
    fit, sample = method.fit_, method._error_sample
    believed = Spread(0.7, 0.2)
    monkeypatch.setattr(expected_error, "spread_posterior", lambda *_: believed)

    def spread(parameters):
        mean = replace(fit, parameters=parameters).mean(sample.X)
        wide = 1.0 if math.isinf(tail) else tail / (tail - 2)
        return math.sqrt(np.mean(np.square(mean)) + wide * np.trace(parameters.covariance) / len(parameters.covariance))

    def at(score):
        rng = np.random.default_rng(0)
        return expected_error._with_spread(fit, fit.parameters, tail, score, sample, rng)

    found = np.array([spread(at(score)) for score in ndtri((np.arange(200) + 0.5) / 200)])
    assert found.mean() == pytest.approx(0.7, rel=0.01)
    assert found.std() == pytest.approx(0.2, rel=0.03)
    model, scale = at(0.0), spread(at(0.0)) / spread(fit.parameters)
    np.testing.assert_allclose(model.covariance, scale**2 * fit.parameters.covariance)
    np.testing.assert_allclose(model.coefficients, scale * fit.parameters.coefficients)


def test_one_tail_for_every_model():
    assert len(expected_error.TAILS) == expected_error.N_MODELS
    assert sum(map(math.isinf, expected_error.TAILS)) == expected_error.N_MODELS // 2


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_labels_that_are_never_marked_do_not_make_the_error_explode():
    """Three labels of five are never marked: models drawn from the flat prior of their means expected 11 times it."""
    rng = np.random.default_rng(18)
    X = rng.normal(size=(300, 20))
    F = X @ rng.normal(size=(20, 5))
    Z = math.sqrt(0.5) * (F / F.std() + rng.normal(size=(300, 5))) + 2.5 * rng.normal(size=5)
    Z -= Z.mean(axis=1, keepdims=True)
    D = softmax(5 * Z / Z.std())
    L = CumulativeMass().apply(D).astype(float)
    assert (L.sum(axis=0) == 0).sum() == 3
    method = Inversion(n_sweeps=60, n_burn=30).fit(X, L)
    actual = float(np.mean(kl_divergence(D, method.label_distributions_)))
    assert 0.5 < method.expected_error_.mean / actual < 2


def test_half_a_mark_is_the_information_of_a_probit():
    """The Fisher information of a label with the probability p = Phi(t) about t, at half a mark in n rows."""
    n, step = 100, 1e-4
    t = ndtri(0.5 / n)
    slope = (ndtr(t + step) - ndtr(t - step)) / (2 * step)
    assert simulate.rarest_share(n) == pytest.approx(slope**2 / (ndtr(t) * ndtr(-t)), rel=1e-4)
    assert simulate.rarest_share(1) == pytest.approx(2 / math.pi)  # at one half
    assert 0 < simulate.rarest_share(100_000) < simulate.rarest_share(10) < simulate.rarest_share(1) <= 1


def test_models_beyond_floating_point_are_left_out_or_refused_in_words():
    errors = np.array([[0.1, 0.2], [0.3, np.nan], [0.2, 0.2], [np.inf, 0.1]])
    np.testing.assert_array_equal(expected_error.finite_models(errors), errors[[0, 2]])
    with pytest.raises(AnswerError, match=r"3 of 4 models .* standardise the features"):
        expected_error.finite_models(np.where(np.arange(4)[:, None] == 0, errors, np.nan))


@pytest.mark.exhaustive
@pytest.mark.parametrize("own", [0.0, 0.4])
def test_actual_errors_are_inside_on_data_from_the_model(own):
    """Labels on one scale, and labels on scales of their own: the interval has both."""
    inside = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        q, spread = int(rng.choice([3, 5, 8, 10])), float(rng.choice([0.15, 0.5, 1.5]))
        X = rng.normal(size=(200, 2))
        Z = (X @ rng.normal(size=(2, q)) + rng.normal(size=(200, q))) * np.exp(own * rng.normal(size=q))
        Z -= Z.mean(axis=1, keepdims=True)
        D = softmax(spread * Z / Z.std())
        method = Inversion().fit(X, CumulativeMass().apply(D).astype(float))
        found, actual = method.expected_error_, float(np.mean(kl_divergence(D, method.label_distributions_)))
        inside += found.lower <= actual <= found.upper
    assert inside >= 27


# ------------------------------------------------------------------------------------------------- model by model


def fit_of_two(mean, deviation, n):
    """Two labels of which one is marked, the first: z_1 - z_2 ~ N(mean, deviation^2) above 0; n rows like that."""
    half = 0.5 * mean * np.array([1.0, -1.0])
    Sigma = 0.25 * deviation**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    spread = Spread(0.5 * math.hypot(mean, deviation), 0.05)
    parameters = Parameters(half[None], Sigma, 0.5)
    made = Fit(TopK(1), None, parameters, spread, Settings(), np.zeros((1, 2)), n, 0, 99.0, 1.0)
    L = np.tile([1.0, 0.0], (n, 1))
    D = np.tile([0.8, 0.2], (n, 1))
    numbers = np.arange(n)
    return made, ErrorSample(np.zeros((n, 1)), L, D, np.array([n, 0.0]), n, numbers, numbers < n // 4)


@pytest.mark.parametrize("tail", [math.inf, 4.0])
def test_the_error_under_a_model_is_an_integral(tail):
    """Of d log(d / .8) + (1 - d) log((1 - d) / .2) over what the labels leave of the only difference of two labels."""
    fit, sample = fit_of_two(0.3, 1.2, 1500)
    found = expected_error._expected_kl(fit, fit.parameters, tail, sample, np.random.default_rng(0))
    density = stats.norm(0.3, 1.2).pdf if math.isinf(tail) else stats.t(tail, 0.3, 1.2).pdf

    def loss(x):
        d = expit(x)
        return d * math.log(d / 0.8) + (1 - d) * (-np.logaddexp(0, x) - math.log(0.2))

    top = 40.0
    expected = quad(lambda x: density(x) * loss(x), 0, top)[0] / quad(density, 0, top)[0]
    assert found.shape == (1500,)
    assert (found >= 0).all()
    assert found.mean() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("flips", [Flips(), Flips(0.2, 0.1)])
def test_the_error_of_shares_of_votes_is_a_sum_over_the_votes(flips):
    """Votes bind the labels of their row; those that may be wrong bind degrees only as likely as they are."""
    made, sample = fit_of_two(0.3, 1.2, 1500)
    fit = replace(made, settings=Settings(resolution=3, noise=flips))
    found = expected_error._expected_kl(fit, fit.parameters, math.inf, sample, np.random.default_rng(0))
    right, wrong = (1 - flips.missed) * (1 - flips.false), flips.missed * flips.false
    x = np.linspace(-8, 8, 4001)
    p = stats.norm(0.3, 1.2).pdf(x) * np.where(x > 0, right, wrong)
    chance = stats.binom.pmf(np.arange(4)[:, None], 3, expit(x))
    if not flips.any():
        chance[:2] = 0.0  # the first label was chosen most often
        chance /= chance.sum(axis=0)
    share = np.arange(4) / 3
    loss = entr(share) + entr(1 - share) + share * math.log(0.8) + (1 - share) * math.log(0.2)
    assert found.mean() == pytest.approx(-loss @ chance @ p / p.sum(), rel=0.04)


def test_models_are_those_of_the_posterior_and_the_prior(monkeypatch):
    """Information grows to all rows; own scales, tails and scores cover their priors; what is graded has no error."""
    fit, sample = fit_of_two(0.3, 1.2, 40)
    fit, seen = replace(fit, n_rows=120), []
    wide = np.eye(3) - 1 / 3
    parameters = Parameters(np.zeros((1, 3)), wide, 0.5)
    sample = replace(sample, L=np.ones((40, 3)))
    known = simulate.Information(np.eye(2), 5.0 * np.eye(3), 7.0 * np.eye(1))
    monkeypatch.setattr(simulate, "learn_information", lambda *_: known)

    def draw(fit, information, X, rng):
        np.testing.assert_array_equal(information.mean, known.mean)  # a share: that of a row
        seen.append([information.shape[0, 0] / 5.0, information.gram[0, 0] / 7.0])
        return parameters

    monkeypatch.setattr(simulate, "draw_parameters", draw)
    monkeypatch.setattr(expected_error, "_with_spread", lambda fit, shape, tail, score, *_: seen[-1].append(score))

    def kl(fit, model, tail, sample, rng):
        seen[-1].append(tail)
        return np.full(40, 0.1)

    monkeypatch.setattr(expected_error, "_expected_kl", kl)
    E = expected_error.errors_under_models(fit, sample, np.random.default_rng(0))
    np.testing.assert_array_equal(E, np.where(sample.graded, 0.0, 0.1) * np.ones((12, 1)))
    shape, gram, scores, tails = zip(*seen, strict=True)
    assert set(shape) == set(gram) == {3.0}
    np.testing.assert_allclose(sorted(scores), ndtri((np.arange(12) + 0.5) / 12))
    assert sorted(tails) == sorted(expected_error.TAILS)
    seen.clear()
    expected_error.errors_under_models(replace(fit, n_graded=10, tail=6.0, n_rows=7), sample, np.random.default_rng(0))
    assert {t for *_, t in seen} == {6.0}
    assert {entry[0] for entry in seen} == {1.0}  # the sample is all there is


def test_scales_of_labels_have_the_deviation_that_is_believed_and_graded_rows_narrow_it(monkeypatch):
    """Log scales are normal; their deviation goes evenly from 0 to root 3 times OWN_SCALE, but for graded rows."""
    fit, sample = fit_of_two(0.3, 1.2, 40)
    q = 4000
    monkeypatch.setattr(simulate, "learn_information", lambda *_: simulate.Information(np.eye(2), np.eye(3), np.eye(1)))
    monkeypatch.setattr(simulate, "draw_parameters", lambda *_: None)
    monkeypatch.setattr(expected_error, "_with_spread", lambda *_: None)
    monkeypatch.setattr(expected_error, "_expected_kl", lambda *_: np.ones(40))
    for n_graded in (0, 50):
        own = []
        monkeypatch.setattr(expected_error, "_stretch", lambda _, scales, own=own: own.append(np.log(scales).std()))
        expected_error.errors_under_models(
            replace(fit, n_graded=n_graded), replace(sample, L=np.ones((40, q))), np.random.default_rng(0)
        )
        believed = math.sqrt(3) * expected_error.OWN_SCALE * (np.arange(12) + 0.5) / 12
        expected = (believed**-2 + 2 * n_graded) ** -0.5
        np.testing.assert_allclose(sorted(own), expected, rtol=0.05)
    assert math.sqrt(np.mean(believed**2)) == pytest.approx(expected_error.OWN_SCALE, rel=0.01)


def test_another_answer_costs_its_divergence_and_rows_have_the_level_of_the_models(fitted, monkeypatch):
    """E KL(d || a) = E KL(d || d^) + KL(d^ || a), row by row."""
    method, _ = fitted
    posterior, sample = method.posterior_, method._error_sample
    monkeypatch.setattr(expected_error, "errors_under_models", lambda *_: np.full((12, sample.n), 0.2))
    answer = np.full_like(posterior.mean, 1 / posterior.mean.shape[1])
    found = expected_error.expect_error(method.fit_, sample, posterior, answer=answer)
    rows = expected_error.second_order(posterior) + kl_divergence(posterior.mean, answer)
    np.testing.assert_allclose(found.rows, rows * 0.2 / rows.mean())
    np.testing.assert_allclose([found.mean, found.lower, found.upper], 0.2)


def test_graded_rows_say_the_spread_of_models_with_their_tails(fitted, monkeypatch):
    """t_6 has 1.5 times the variance of its scale: the believed spread is that of such rows."""
    method, _ = fitted
    fit, sample = replace(method.fit_, n_graded=9), method._error_sample
    monkeypatch.setattr(expected_error, "spread_posterior", lambda *_: pytest.fail("the labels were asked"))
    model = expected_error._with_spread(fit, fit.parameters, 6.0, 1.3, sample, np.random.default_rng(0))
    mean = replace(fit, parameters=model).mean(sample.X)
    size = math.sqrt(np.mean(mean**2) + 1.5 * np.trace(model.covariance) / len(model.covariance))
    assert size == pytest.approx(fit.believed_spread.at(1.3))


def test_what_is_judged_by_numbers_of_labels_has_spread_one_and_the_tails(fitted, monkeypatch):
    method, _ = fitted
    fit, sample, seen = method.fit_, method._error_sample, []
    monkeypatch.setattr(expected_error, "spread_posterior", lambda rule, Z, *_: seen.append(Z) or Spread(1.0, 0.1))
    for tail in (math.inf, 8.0):
        expected_error._with_spread(fit, fit.parameters, tail, 0.0, sample, np.random.default_rng(0))
    normal, heavy = seen
    assert np.mean(normal**2) == pytest.approx(1.0, rel=0.05)
    assert np.mean(heavy**2) == pytest.approx(1.0, rel=0.05)
    assert np.mean(heavy**4) > 1.1 * np.mean(normal**4)


def test_votes_that_give_other_labels_are_drawn_again_and_the_last_ones_kept():
    D, votes = np.tile([0.5, 0.3, 0.2], (4000, 1)), 5
    first = np.tile([1.0, 0.0, 0.0], (4000, 1))
    found = expected_error.draw_votes(TopK(1), D, first, votes, np.random.default_rng(0))
    every = np.random.default_rng(1).multinomial(votes, D[0], 100_000) / votes
    right = TopK(1).agrees(every, np.tile(first[0], (100_000, 1)))
    left = (1 - right.mean()) ** expected_error.VOTE_TRIALS
    assert 1 - TopK(1).agrees(found, first).mean() == pytest.approx(left, abs=0.005)
    np.testing.assert_allclose(found.mean(axis=0), every[right].mean(axis=0), atol=0.02)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)

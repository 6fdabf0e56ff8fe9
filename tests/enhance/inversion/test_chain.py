"""The chain of the parameters: weights, what is simulated, and parameters that come back."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

from contone import CumulativeMass, Inversion, Threshold
from contone.enhance.inversion import chain, fit, logistic_normal
from contone.enhance.inversion.chain import Settings, Simulation, averaging_weight
from contone.enhance.inversion.covariance import FactorCovariance
from contone.enhance.inversion.evidence import Calibration, place_grades
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips, Parameters, Spread
from contone.enhance.inversion.model import with_tails
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import InputError
from contone.measurements import Order
from contone.numerics.simplex import softmax
from contone.runtime import progress

C = np.eye(3) - 1 / 3


def test_sigma_follows_the_latest_draw_and_is_then_averaged():
    weights = Settings(n_sweeps=60).weights
    assert len(weights) == 60
    assert set(weights[: chain.SWEEPS_BEFORE_AVERAGING]) == {1.0}
    later = np.arange(chain.SWEEPS_BEFORE_AVERAGING, 60)
    np.testing.assert_allclose([averaging_weight(int(k)) for k in later], (later - 19.0) ** -0.7)
    assert Settings().worth(7) == 7.0
    assert Settings(strength=2.5).worth(7) == 2.5
    for wrong in ({"n_sweeps": 5, "n_burn": 5}, {"noise": Flips(0.1, 0.0)}):
        with pytest.raises(InputError):
            Settings(**wrong).check(takes_numbers=True)
    Settings(noise=Flips(0.1, 0.0)).check(takes_numbers=False)
    Settings(n_sweeps=6, n_burn=5).check(takes_numbers=True)


@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("tail", [math.inf, 5.0])
def test_what_is_simulated_has_the_size_that_is_said(monkeypatch, tail, factors):
    """The root mean square of z under parameters and tails; it is judged at size one, with the model's moments."""
    rng, n = np.random.default_rng(0), 4000
    phi = np.vstack([np.ones(n), rng.normal(size=(2, n))])
    loadings = rng.normal(size=(3, 2))
    Sigma = (
        FactorCovariance(loadings, np.full(3, 0.5)) if factors else C @ (loadings @ loadings.T + 0.5 * np.eye(3)) @ C
    )
    dense = Sigma.dense() if factors else Sigma
    now = Parameters(rng.normal(size=(3, 3)) @ C, Sigma, 0.5)
    simulation = Simulation.of(CumulativeMass(), np.ones(3), phi, 3, rng)
    wide = 5 / 3 if tail == 5.0 else 1.0
    f = simulation.features
    size = math.sqrt((np.square(now.coefficients.T @ f).sum(axis=0).mean() + wide * np.trace(dense)) / 3)
    assert simulation.size(now, tail) == pytest.approx(size)
    seen = []
    monkeypatch.setattr(logistic_normal, "spread_posterior", lambda rule, Z, *rest: seen.append(Z))
    simulation.spread(now, NO_FLIPS, tail)
    E = seen[0] * size - (now.coefficients.T @ f).T
    np.testing.assert_allclose(np.cov(E.T), wide * dense, atol=0.15 * wide * np.trace(dense))
    assert f.shape == (3, chain.simulated_rows(3))
    np.testing.assert_array_equal(f[0], 1.0)
    pair = Simulation.of(CumulativeMass(), np.ones(3), phi[:, :2], 3, rng).features[
        1
    ]  # of all rows, the first and last
    assert np.mean(pair == phi[1, 0]) == pytest.approx(0.5, abs=0.05)


def test_tails_are_quantiles_of_their_weights_in_random_order():
    m = 400
    found = with_tails(np.ones((m, 2)), 5.0)
    weights = found[:, 0] ** -2
    np.testing.assert_allclose(np.sort(weights), chi2.ppf((np.arange(m) + 0.5) / m, 5) / 5)
    assert abs(np.corrcoef(weights, np.arange(m))[0, 1]) < 0.2
    normals = np.ones((3, 2))
    assert with_tails(normals, math.inf) is normals


def test_parameters_of_many_rows_are_those_that_made_them():
    """Two labels that go together, means far apart, and one feature that tells; no label says how large all that is."""
    rng, n = np.random.default_rng(0), 3000
    C4 = np.eye(4) - 0.25
    root = np.array([[1.0, 0, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    Sigma = 0.3 * C4 @ root @ root.T @ C4
    mean, slope = C4 @ [0.5, 0.0, -0.2, -0.3], C4 @ [0.6, -0.6, 0.0, 0.0]
    X = rng.normal(size=(n, 1))
    Z = mean + X * slope + rng.multivariate_normal(np.zeros(4), Sigma, size=n)
    L = Threshold(0.3, at_least_one=False).apply(softmax(Z)).astype(float)
    method = Inversion(degradation=Threshold(0.3, at_least_one=False), n_sweeps=60, n_burn=30).fit(X, L)
    scale = math.sqrt(np.trace(Sigma) / np.trace(method.covariance_))
    np.testing.assert_allclose(scale**2 * method.covariance_, Sigma, atol=0.05)
    np.testing.assert_allclose(scale * method.coefficients_[0], mean, atol=0.08)
    across = method.coefficients_[1] * (1 if method.coefficients_[1, 0] > 0 else -1)
    np.testing.assert_allclose(scale * across, slope, atol=0.08)
    assert method.spread_ == pytest.approx(math.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True)))), rel=0.15)
    size = math.sqrt(np.mean(np.square(method.fit_.mean(X))) + np.trace(method.covariance_) / 4)
    assert size == pytest.approx(method.spread_, rel=0.03)


def test_graded_rows_are_as_wide_as_if_they_had_had_no_part():
    """A residual that drew the mean to itself by its leverage h is short by root 1 - h, at most by a factor of 4.5."""
    rng = np.random.default_rng(0)
    phi = np.vstack([np.ones(12), rng.normal(size=(2, 12))])
    phi[1, 3] = 1e3  # all that tells of this feature
    Z, parameters = rng.normal(size=(3, 12)), Parameters(rng.normal(size=(3, 3)), np.eye(3), 4.0)
    known = np.array([1, 3, 7])
    found = chain._graded_rows(phi, phi @ phi.T, SimpleNamespace(Z=Z), parameters, known)
    ridge = np.diag([1 / logistic_normal.FLAT, 0.25, 0.25])
    h = np.diag(phi.T @ np.linalg.inv(phi @ phi.T + ridge) @ phi)[known]
    widened = 1 / np.sqrt(np.maximum(1 - h, 0.05))
    assert h[1] > 0.95
    np.testing.assert_allclose(found.Z, (Z[:, known] * widened).T)
    np.testing.assert_allclose(found.mean, (parameters.coefficients.T @ phi[:, known] * widened).T)


def test_graded_rows_are_asked_twice_and_the_mean_is_drawn_again_at_the_scales_that_they_gave(monkeypatch):
    """What was drawn at these scales is taken back to those of the labels' covariance before the second question."""
    rng = np.random.default_rng(0)
    phi, known = np.vstack([np.ones(9), rng.normal(size=(1, 9))]), np.array([1, 4, 6])
    grades = place_grades(known, softmax(rng.normal(size=(3, 3))), np.ones((9, 3)))
    rows = SimpleNamespace(Z=rng.normal(size=(3, 9)), grades=grades, rule=CumulativeMass(), tail=math.inf)
    labels = Parameters(rng.normal(size=(2, 3)) @ C, 0.3 * C, 0.5)
    given, asked, answers = [], [], iter(rng.normal(size=(2, 2, 3)))
    taken = np.array([0.2, -0.3, 0.1])
    redrawn = []

    def calibrate(start, graded, spread_under, *, labels_tell_scale):
        given.append((start, graded))
        asked.append((*(tuple(spread_under(tail)) for tail in (math.inf, 6.0)), labels_tell_scale))
        found = Parameters(rng.normal(size=(2, 3)), 2.0 * C, 0.5)
        return Calibration(found, Spread(1.5, 0.2), 7.0, 0.1), taken

    def redraw(phi, gram, rows, parameters, *_):
        assert rows.tail == 7.0
        np.testing.assert_array_equal(parameters.covariance, 2.0 * C)
        redrawn.append(next(answers))
        return redrawn[-1]

    monkeypatch.setattr(chain.evidence, "calibrate", calibrate)
    monkeypatch.setattr(chain, "_redraw_coefficients", redraw)
    monkeypatch.setattr(Simulation, "size", lambda self, parameters, tail: 4.0 if tail == 6.0 else 2.0)
    monkeypatch.setattr(Simulation, "spread", lambda *_: Spread(3.0, 0.4))
    found = chain.calibrate_parameters(phi, rows, labels, Spread(0.8, 0.1), np.ones(3), Settings(), rng)
    means = [labels.coefficients, redrawn[0] / np.exp(taken)]
    for (start, graded), B in zip(given, means, strict=True):
        np.testing.assert_allclose(start.coefficients, B @ C)
        np.testing.assert_array_equal(start.covariance, labels.covariance)
        expected = chain._graded_rows(phi, phi @ phi.T, rows, labels._replace(coefficients=B), known)
        np.testing.assert_allclose(graded.mean, expected.mean)
    assert asked == [((1.5, 0.2), (0.75, 0.1), True)] * 2
    np.testing.assert_array_equal(found.parameters.coefficients, redrawn[1])
    assert found.spread == pytest.approx((0.8 * 1.5, 0.8 * 0.2))
    assert (found.tail, found.withheld) == (7.0, 0.1)


def test_coefficients_are_averaged_over_the_second_half_of_some_sweeps():
    """Of rows that stay and a Sigma of next to nothing every draw is the ridge regression."""
    rng = np.random.default_rng(0)
    phi, Z = np.vstack([np.ones(20), rng.normal(size=(1, 20))]), C @ rng.normal(size=(3, 20))
    sweeps = []

    class Still:
        def __init__(self):
            self.Z = Z + 7.0  # a common shift says nothing

        def sweep(self, mean, precision, draws):
            sweeps.append(mean)
            self.Z = Z * min(len(sweeps), 6) / 6 + 7.0

    parameters = Parameters(np.zeros((2, 3)), 1e-16 * C, 0.5)
    found = chain._redraw_coefficients(phi, phi @ phi.T, Still(), parameters, Settings(n_burn=12), rng)
    assert len(sweeps) == 12
    expected = np.linalg.solve(phi @ phi.T + np.diag([1 / logistic_normal.FLAT, 2.0]), phi @ Z.T)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(sweeps[-1], expected.T @ phi, atol=1e-6)


def test_where_labels_say_nothing_of_the_scale_graded_rows_start_it():
    D = softmax(np.random.default_rng(0).normal(size=(6, 3)))
    rows = Rows(Order(), np.eye(3)[[0, 1, 2, 0, 1, 2]])
    assert chain._starting_spread(rows) is None
    rows.hold(place_grades(np.arange(4), D[:4], np.ones((6, 3))))
    logs = np.log(D[:4]) - np.log(D[:4]).mean(axis=1, keepdims=True)
    prior = logistic_normal.spread_prior(Order())
    found = chain._starting_spread(rows)
    assert found.mean == pytest.approx(math.sqrt(np.mean(logs**2)))
    assert found.deviation == prior.deviation
    rows.hold(place_grades(np.arange(4), np.full((4, 3), 1 / 3), np.ones((6, 3))))
    assert chain._starting_spread(rows).mean == pytest.approx(0.1 * prior.mean)  # degrees that are all alike


# ------------------------------------------------------------------------------------------------ rows and steps


def test_rows_are_chosen_at_random_graded_ones_first_in_their_order():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(fit.choose_rows(5, 5, rng), np.arange(5))
    found = fit.choose_rows(1000, 40, rng, np.array([7, 500, 999]))
    assert len(set(found)) == 40
    assert (np.diff(found) > 0).all()
    assert {7, 500, 999} <= set(found)
    assert fit.choose_rows(1000, 2, rng, np.array([7, 500, 999])).tolist() == [7, 500]
    counts = np.bincount(np.concatenate([fit.choose_rows(10, 4, rng) for _ in range(2000)]))
    np.testing.assert_allclose(counts / 2000, 0.4, atol=0.05)


def test_between_two_calibrations_everything_is_in_proportion():
    rng = np.random.default_rng(0)
    B, A = rng.normal(size=(2, 2, 3)), np.diag([1.0, 2.0, 3.0])
    labels = Calibration(Parameters(B[0], A, 0.7), Spread(1.0, 0.3), math.inf)
    found = Calibration(Parameters(B[1], 4 * A, 0.7), Spread(2.0, 0.5), 6.0, withheld=0.2)
    step = fit.between(labels, found, 0.25, 6.0)
    np.testing.assert_allclose(step.parameters.coefficients, 0.25 * B[1] + 0.75 * B[0])
    np.testing.assert_allclose(step.parameters.covariance, (0.25 * 4 + 0.75) * A)
    assert step.spread == pytest.approx((math.sqrt(0.25 * 4 + 0.75), math.sqrt(0.25 * 4 + 0.75) / 4))
    assert (step.tail, step.withheld) == (6.0, 0.05)
    normal = fit.between(labels, found, 0.25, math.inf)  # without tails, whose variance is 1.5 times the scale
    assert normal.spread.mean == pytest.approx(math.sqrt(0.25 * 4 / 1.5 + 0.75))
    nothing = fit.between(labels, found._replace(spread=Spread(0.0, 0.0)), 1.0, 6.0)
    assert nothing.spread == (0.0, 0.0)


def test_five_graded_rows_are_enough_to_judge_and_a_step_has_to_gain_more_than_its_error():
    labels, found = (
        Calibration(Parameters(np.zeros((1, 2)), s * np.eye(2), 0.0), Spread(s, 0.1), math.inf) for s in (1.0, 2.0)
    )
    truth = np.tile([0.5, 0.5], (5, 1))

    def answer(parameters, tail):
        return softmax(np.outer([1, 1.1, 0.9, 1, 1.05][: len(truth)], [parameters.covariance[0, 0] - 1.0, 0.0]))

    assert fit.closest_step(labels, found, truth, answer) is labels
    assert fit.closest_step(labels, found, truth[:4], answer) is found

    def doubtful(parameters, tail):  # one row gains a lot, the others lose
        return softmax(np.outer([5, 0, 0, 0, 0], [parameters.covariance[0, 0] - 1.0, 0.0]))

    assert fit.closest_step(labels, found, truth, doubtful) is found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("few_simulated")
@pytest.mark.parametrize("noise", [0.0, "auto"])
def test_every_sweep_is_reported_and_a_bar_is_for_long_work_alone(noise, monkeypatch):
    heard, asked, seen, show = [], [], [], chain.show_progress
    rng = np.random.default_rng(0)
    monkeypatch.setattr(chain, "SWEEPS_OF_NOISE", 6)
    monkeypatch.setattr(chain, "show_progress", lambda *given: seen.append(given[2]) or show(*given))
    X, L = rng.normal(size=(30, 1)), CumulativeMass().apply(rng.dirichlet(np.ones(3), 30)).astype(float)
    with progress.listening(heard.append):
        Inversion(noise=noise, n_sweeps=8, n_burn=4).fit(X, L)
    sweeps = [report for report in heard if report.name == "Inversion"]
    n = 14 if noise == "auto" else 8
    assert seen[0] == n * 30 * 3  # numbers that are drawn
    assert [(report.done, report.total) for report in sweeps] == [(k + 1, n) for k in range(n)]
    monkeypatch.setattr(progress, "show_progress", lambda steps, *rest: asked.append(rest) or steps)
    work = chain.DRAWS_WORTH_A_BAR
    for verbose, amount, shown in ((None, 0.5 * work, 0), (None, 2 * work, 1), (True, 1.0, 1), (False, 2 * work, 0)):
        asked.clear()
        assert list(show(range(3), 3, amount, verbose)) == [0, 1, 2]
        assert len(asked) == shown


def test_parameters_are_means_over_the_sweeps_that_are_kept(monkeypatch):
    """Of what the rows are drawn with: from the mean and the precision that each sweep is given."""
    rng = np.random.default_rng(0)
    n = 60
    L = Threshold(0.3, at_least_one=False).apply(softmax(rng.normal(size=(n, 3)))).astype(float)
    rows, given, sweep = Rows(Threshold(0.3, at_least_one=False), L), [], Rows.sweep

    spreads, scatters, scaled, ask, mode = [], [], [], Simulation.spread, logistic_normal.covariance_mode

    def look_at_spread(self, *about):
        spreads.append((said := ask(self, *about)).mean)
        return said

    def look_at_scatter(scatter, n, strength):
        coefficients = drawn[-1]
        residual = (rows.Z - rows.Z.mean(axis=0)) - coefficients.T @ phi
        scatters.append((residual @ residual.T, scatter.copy()))
        Sigma = mode(scatter, n, strength)
        scaled.append(math.sqrt((coefficients[0] @ coefficients[0] + np.trace(Sigma)) / 3))
        return Sigma

    drawn, draw = [], logistic_normal.draw_coefficients
    monkeypatch.setattr(Simulation, "spread", look_at_spread)
    monkeypatch.setattr(logistic_normal, "covariance_mode", look_at_scatter)
    monkeypatch.setattr(logistic_normal, "draw_coefficients", lambda *about: drawn.append(draw(*about)) or drawn[-1])

    def look(self, mean, precision, draws, **how):
        given.append((mean[:, 0].copy(), np.linalg.pinv(C @ precision @ C), how["reflect"]))
        sweep(self, mean, precision, draws, **how)

    monkeypatch.setattr(Rows, "sweep", look)
    settings, averages = Settings(n_sweeps=31, n_burn=10), Averages(rows.Z, 0, 21)
    phi = np.ones((1, n))
    counts = chain.count_labels(L, rows.rule)
    found, spread, factors = chain.learn_parameters(phi, rows, averages, counts, settings, rng)
    assert factors is None
    assert averages.n == 21
    # the draw of sweep k is what sweep k + 1 starts from; the last of them is not looked at
    means, covariances = (np.array([entry[i] for entry in given[11:]]) for i in (0, 1))
    assert len(means) == 20
    last = 21 * found.coefficients[0] - means.sum(axis=0)
    assert np.abs(last - means[-1]).max() < 0.5 * np.abs(means).max() + 0.2
    np.testing.assert_allclose(21 * found.covariance - covariances.sum(axis=0), covariances[-1], rtol=0.5, atol=0.05)
    assert found.theta == pytest.approx(0.5)  # there are no features that could have a weight
    # The shape is a draw, its size that of the labels: asked for at the start, after sweeps 0, 5, 10 and every 20th.
    sizes = [math.sqrt((m @ m + np.trace(S)) / 3) for m, S, _ in given]
    asked = [0] + [1] * 5 + [2] * 5 + [3] * 10 + [4] * 10
    np.testing.assert_allclose(sizes, [spreads[k] for k in asked], rtol=1e-9)
    assert len(spreads) == 5
    assert spread.mean == spreads[-1]
    # Sigma is that of scatter which follows the latest residuals with falling weights, in the scale of each sweep.
    scatter = 0.0
    for k, ((e, told), size) in enumerate(zip(scatters, sizes[1:], strict=False)):
        weight = averaging_weight(k)
        scatter = (1 - weight) * scatter + weight * e
        np.testing.assert_allclose(told, scatter, rtol=1e-9, atol=1e-9)
        scatter = scatter * (size / scaled[k]) ** 2
    assert [entry[2] for entry in given] == [k > 10 and (k - 10) % 2 == 1 for k in range(31)]

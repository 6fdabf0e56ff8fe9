"""The fitted model as a value: it travels, and what it says depends on nothing else."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import FrozenInstanceError, replace

import dask.array as da
import numpy as np
import pytest
from scipy.special import logit

from contone import CumulativeMass, Inversion, Threshold, TopK
from contone.enhance.inversion import blocks
from contone.enhance.inversion import fit as fits
from contone.enhance.inversion.assessment import (
    ErrorSample,
    RuleReport,
    report_rule,
    simulate_labels,
    warn_of_contradictions,
    warn_of_denied_labels,
)
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.covariance import FactorCovariance
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.fit import fit
from contone.enhance.inversion.logistic_normal import Flips, Parameters, Spread
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import LabelWarning
from contone.measurements import Order
from contone.numerics.scaling import PrincipalMap, Scaling
from contone.numerics.simplex import softmax
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

SHORT = {"n_sweeps": 40, "n_burn": 20}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    D = softmax(0.5 * X @ rng.normal(size=(3, 4)) + 0.4 * rng.normal(size=(200, 4)))
    return X, CumulativeMass().apply(D).astype(float)


def test_the_estimator_is_the_function(data):
    X, L = data
    method = Inversion(**SHORT).fit(X, L)
    found, posterior = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(0))
    np.testing.assert_allclose(posterior.mean, method.label_distributions_, rtol=1e-12)
    np.testing.assert_array_equal(found.parameters.covariance, method.covariance_)
    np.testing.assert_allclose(found.prior_mean(X), method.predict(X), rtol=1e-12)
    again = found.posterior(X, L, np.random.default_rng(0))
    np.testing.assert_allclose(again.mean, method.enhance(X, L), rtol=1e-12)
    assert (found.n_rows, found.n_relaxed, found.n_graded, found.withheld) == (200, 0, 0, 0.0)
    assert found.settings == Settings(**SHORT)
    part, _ = fit(X[:9], L[:9], CumulativeMass(), Settings(n_sweeps=4, n_burn=2, max_rows=6), np.random.default_rng(0))
    assert part.n_rows == 6


@pytest.mark.usefixtures("few_simulated")
def test_as_many_rows_as_may_be_are_all_rows():
    """And so their samples are kept; with one row more the others follow, and there are none."""
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(20, 2)), rng.dirichlet(np.ones(3), 20)
    L, short = CumulativeMass().apply(D).astype(float), {"n_sweeps": 8, "n_burn": 4, "n_samples": 2}
    for grades in (None, place_grades(np.array([3, 4]), D[3:5], L)):
        answers = [fit(X, L, CumulativeMass(), Settings(**short, max_rows=most), np.random.default_rng(0), grades)[1]
                   for most in (19, 20, 21)]  # fmt: skip
        np.testing.assert_array_equal(answers[1].mean, answers[2].mean)
        assert [answer.samples is not None for answer in answers] == [False, True, True]


@pytest.mark.usefixtures("few_simulated")
def test_the_shape_is_looked_at_where_there_is_one_and_the_spread_under_a_bar(monkeypatch):
    rng, seen = np.random.default_rng(0), []
    X, D, short = rng.normal(size=(25, 1)), rng.dirichlet(np.ones(3), 25), Settings(n_sweeps=6, n_burn=3)
    monkeypatch.setattr(fits, "free_spread", lambda model, X, L: seen.append((X, L)) or Spread(0.5, 0.4))
    for q, has_shape in ((2, False), (3, True)):
        L = TopK(1).apply(D[:, :q] / D[:, :q].sum(axis=1, keepdims=True)).astype(float)
        assert (fit(X, L, TopK(1), short, rng)[0].shape_shares is not None) == has_shape
    assert not seen
    L = Threshold(0.3, at_least_one=False).apply(D).astype(float)
    model, _ = fit(X, L, Threshold(0.3, at_least_one=False), short, rng)
    assert model.spread == Spread(0.5, 0.4)
    np.testing.assert_array_equal(seen[0][0], X)
    np.testing.assert_array_equal(seen[0][1], L)
    fit(X, L, Threshold(0.3, at_least_one=False), short, rng, place_grades(np.arange(6), D[:6], L))
    assert len(seen) == 1  # graded rows tell it


def test_a_fit_travels_and_says_the_same(data):
    X, L = data
    found, _ = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    other = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(found.prior_mean(X), other.prior_mean(X))
    answers = [model.posterior(X, L, np.random.default_rng(2)) for model in (found, other)]
    np.testing.assert_array_equal(answers[0].mean, answers[1].mean)
    with pytest.raises(FrozenInstanceError):
        found.n_rows = 3


def test_the_prior_mean_of_a_row_does_not_depend_on_the_rows_beside_it(data):
    X, L = data
    found, _ = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    np.testing.assert_allclose(found.prior_mean(X)[7:9], found.prior_mean(X[7:9]), rtol=1e-12)


def test_intervals_widen_with_what_is_not_known_of_the_spread(data):
    X, L = data
    _, posterior = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    widths = [np.subtract(*posterior.intervals(0.9, deviation)[::-1]) for deviation in (0.0, 0.3)]
    assert (widths[1] > widths[0]).all()
    narrow, wide = (posterior.intervals(level, 0.1) for level in (0.5, 0.9))
    assert ((wide[0] < narrow[0]) & (narrow[1] < wide[1])).all()


def test_samples_are_there_only_where_they_were_asked_for(data):
    X, L = data
    method = Inversion(**SHORT, n_samples=2).fit(X, L)
    assert method.samples_.shape == (2, *L.shape)
    method.set_params(n_samples=0).fit(X, L)
    assert not hasattr(method, "samples_")


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_far_outside_have_intervals(kind):
    """A degree that is 0 in floating point has a logit too."""
    rows = np.array([[0.1, 1.0], [-0.1, 0.5], [0.3, -1.0]])
    method = Inversion(n_sweeps=6, n_burn=2).fit(rows, [[1, 0], [1, 1], [0, 1]])
    for far in (1e12, 1e300):
        X = far * rows[:1]
        if kind == "torch":
            X = pytest.importorskip("torch").tensor(X)
        for labels in (None, [[1, 0]]):
            low, high = (np.asarray(end) for end in method.intervals(X, labels))
            assert ((low >= 0) & (low <= high) & (high <= 1)).all()


@pytest.mark.parametrize("rule", ["main", "everything", "threshold:0.3", "best"])
def test_intervals_stay_within_what_the_rule_says(rule):
    """Under "main" a class that is marked alone has more than half in every row; ends keep their order."""
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(150, 2)), softmax(3.0 * rng.normal(size=(150, 3)))
    L = np.eye(3)[truth.argmax(axis=1)]
    if rule == "everything":
        L = CumulativeMass(0.9).apply(truth).astype(float)
    L[:3] = [[1, 1, 1], [0, np.nan, 1], [0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = Inversion(degradation=rule, n_sweeps=40, n_burn=20, max_rows=100).fit(X, L)
        found = [(*method.intervals(), method.label_distributions_)]
        for data in (X, L), (da.from_array(X), da.from_array(L)):
            found.append((*method.intervals(*data), method.enhance(*data)))
    for ends_and_answer in found:
        lower, upper, D = (np.asarray(part)[3:] for part in ends_and_answer)
        assert (lower <= upper).all()
        for end in (lower, upper):
            np.testing.assert_array_equal(method.degradation_.confine(end, L[3:]), end)
        assert ((lower <= D) & (upper >= D)).mean() > 0.99
        assert (upper - lower).mean() > 0.02
        if rule == "main":
            assert lower[L[3:] > 0].min() >= 0.5


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
@pytest.mark.parametrize("q", [1, 2])
def test_new_rows_of_one_or_two_labels(data, q):
    """One label is certain; of two, new rows with the labels of a fit have its degrees, but for other draws."""
    X, L = data
    Y = np.column_stack([L[:, 0], 1 - L[:, 0]])[:, :q] if q == 2 else np.ones((len(L), 1))
    method = Inversion(**SHORT).fit(X, Y)
    new = method.enhance(X, Y)
    np.testing.assert_allclose(new, method.label_distributions_, atol=0.3)
    assert np.abs(new - method.label_distributions_).mean() < 0.05
    assert (new == 1.0).all() == (q == 1)
    silent = method.enhance(X[:5], np.zeros((5, q))) if q == 2 else np.ones((5, 1))
    np.testing.assert_allclose(silent, method.predict(X[:5]))


# -------------------------------------------------------------------------------------- a model that is made by hand


def by_hand(rule=None, q=3, **changed):
    """Log weights around (1, 0, -1) x / 2, one feature that is taken as it is."""
    C = np.eye(q) - 1 / q
    root = np.random.default_rng(3).normal(size=(q, q))
    Sigma = C @ (0.3 * root @ root.T + 0.2 * np.eye(q)) @ C
    identity = PrincipalMap(Scaling(np.zeros(1), np.ones(1)), np.eye(1))
    parameters = Parameters(np.vstack([np.zeros(q), np.linspace(0.5, -0.5, q)]), Sigma, 0.5)
    directions = np.random.default_rng(4).normal(size=(600, q))
    made = Fit(rule or CumulativeMass(), identity, parameters, Spread(0.8, 0.1), Settings(n_sweeps=100, n_burn=40),
               directions, 50, 2, 25.0, 1.1)  # fmt: skip
    return replace(made, **changed)


X_FEW = np.array([[-1.0], [0.0], [2.0]])


def test_the_prior_of_a_row_has_the_moments_of_a_logistic_normal_variable():
    model = by_hand()
    Z = np.random.default_rng(5).multivariate_normal(np.zeros(3), model.parameters.covariance, size=200_000)
    found = model.prior(X_FEW)
    for row, x in enumerate(X_FEW[:, 0]):
        D = softmax(Z + np.array([0.5, 0.0, -0.5]) * x)
        y = logit(D)
        np.testing.assert_allclose(found.mean[row], D.mean(axis=0), atol=0.01)
        np.testing.assert_allclose(found.logit_centre[row], y.mean(axis=0), atol=0.05)
        np.testing.assert_allclose(found.logit_width[row], y.std(axis=0), rtol=0.06)
    np.testing.assert_allclose(model.mean(X_FEW), np.outer([0.5, 0.0, -0.5], X_FEW[:, 0]))
    alone = by_hand(q=1).prior(X_FEW)
    np.testing.assert_array_equal(alone.mean, 1.0)
    assert np.isinf(alone.logit_centre).all()
    assert not alone.logit_width.any()


@pytest.mark.parametrize("tail", [np.inf, 6.0])
def test_rows_are_drawn_around_their_means_with_the_tails(tail):
    model = by_hand(tail=tail)
    Z = model.draw(np.repeat(X_FEW, 20_000, axis=0), np.random.default_rng(0)).reshape(3, 20_000, 3)
    np.testing.assert_allclose(Z.mean(axis=1), model.mean(X_FEW).T, atol=0.03)
    wide = 1.5 if tail == 6.0 else 1.0
    for rows in Z:
        np.testing.assert_allclose(np.cov(rows.T), wide * model.parameters.covariance, atol=0.12)


def test_rows_without_labels_get_the_prior_and_others_a_posterior_between():
    model = by_hand(Threshold(0.3, at_least_one=False))
    L = np.array([[1, 0, 0.0], [np.nan, np.nan, np.nan], [0, 0, 1]])
    found = model.posterior(X_FEW, L, np.random.default_rng(0), n_samples=3)
    prior = model.prior(X_FEW)
    np.testing.assert_allclose(found.mean[1], prior.mean[1])
    assert np.isnan(found.labels[1]).all()
    np.testing.assert_array_equal(found.labels[[0, 2]], L[[0, 2]])
    silent = model.posterior(X_FEW, np.full((3, 3), np.nan), np.random.default_rng(0))
    np.testing.assert_array_equal(silent.mean, prior.mean)


@pytest.mark.parametrize(
    ("q", "n_sweeps", "expected"), [(3, 10, (20, 5)), (3, 100, (47, 9)), (3, 400, (159, 9)), (70, 100, (50, 12))]
)
def test_a_chain_at_known_parameters_keeps_three_quarters_of_half_the_sweeps(q, n_sweeps, expected):
    """And of few labels leaves out no more than what it needs to forget its start; twice as many beside graded rows."""
    model = by_hand(q=q, settings=Settings(n_sweeps=n_sweeps))
    assert model._chain_length() == expected
    twice = by_hand(q=q, settings=Settings(n_sweeps=2 * n_sweeps))
    assert replace(model, n_graded=5)._chain_length() == twice._chain_length()
    assert replace(model, n_graded=5, settings=Settings(n_sweeps=n_sweeps, max_rows=50))._chain_length() == expected


def test_what_a_model_says_of_itself():
    model = by_hand(withheld=-0.05, n_graded=4)
    assert model.spread_deviation == pytest.approx(0.125)
    believed = model.believed_spread
    assert believed.mean == pytest.approx(0.8 * np.exp(-0.05))
    assert believed.deviation / believed.mean == pytest.approx(np.sqrt(0.125**2 - 0.05**2))
    assert by_hand(spread=Spread(0.0, 0.0)).spread_deviation == 0.0
    found = model.solution(model.prior(X_FEW), 2, 4)
    assert (found.converged, found.n_iter) == (True, 100)
    assert found.residual == pytest.approx(0.2)
    told = {"spread": 0.8, "spread_deviation": 0.1, "relaxed_rows": 2, "sample_rows": 50, "graded_rows": 4}
    assert told.items() <= found.info.items()
    assert not replace(model, effective_sample_size=9.0).solution(model.prior(X_FEW), 0, 0).converged
    alone = by_hand(q=1, effective_sample_size=0.0)
    said = alone.solution(alone.prior(X_FEW), 0, 0)
    assert said.converged  # nothing is open
    assert said.residual == pytest.approx(1e6)  # a number where no draw counts
    few = [replace(model, effective_sample_size=size).solution(model.prior(X_FEW), 0, 0) for size in (10.0, 0.25)]
    assert [s.converged for s in few] == [True, False]
    assert few[1].residual == pytest.approx(2.0)
    assert by_hand(withheld=-0.3).believed_spread.deviation == 0.0  # all that was not known was withheld


def test_sigma_is_taken_by_its_factors_as_long_as_they_make_it():
    factors = FactorCovariance(np.random.default_rng(0).normal(size=(3, 2)), np.full(3, 0.5))
    model = by_hand(factors=factors)
    assert model._covariance() is model.parameters.covariance
    made = replace(model, parameters=model.parameters._replace(covariance=factors.dense()))
    assert made._covariance() is factors
    for Sigma in (1.001 * factors.dense(), factors.dense() + 1e-6):  # in proportion, and entry by entry
        other = replace(model, parameters=model.parameters._replace(covariance=Sigma))
        assert other._covariance() is Sigma
    assert replace(made, factors=None)._covariance() is made.parameters.covariance


def test_a_chain_at_known_parameters_averages_what_it_keeps_and_mirrors_every_other_sweep(monkeypatch):
    model, sweep, seen = by_hand(Threshold(0.3, at_least_one=False)), Rows.sweep, []

    def look(rows, *given, **how):
        sweep(rows, *given, **how)
        seen.append((how["reflect"], softmax(rows.Z.T)))

    monkeypatch.setattr(Rows, "sweep", look)
    L = np.array([[1, 0, 0.0], [1, 1, 0], [0, 0, 1]])
    found = model.posterior(X_FEW, L, np.random.default_rng(0), n_samples=2)
    n_sweeps, n_burn = model._chain_length()
    assert [mirrored for mirrored, _ in seen] == [k % 2 == 1 for k in range(n_sweeps)]
    kept = np.array([D for _, D in seen[n_burn:]])
    np.testing.assert_allclose(found.mean, kept.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.samples, kept[[len(kept) // 2 - 1, -1]], rtol=1e-9)


def test_means_beyond_all_numbers_are_shortened_in_their_direction():
    model = by_hand()
    far = model.mean(np.array([[1e300], [1.0]]))
    assert np.isfinite(np.exp(far)).all()
    assert np.exp(far[:, 0]).max() > 1e100
    np.testing.assert_allclose(far[:, 0] / far[0, 0], [1.0, 0.0, -1.0])
    np.testing.assert_allclose(far[:, 1], [0.5, 0.0, -0.5])


# -------------------------------------------------------------------------------------------------- what is reported


@pytest.mark.parametrize("flips", [Flips(), Flips(0.3, 0.0), Flips(0.0, 0.2)])
def test_a_rule_explains_the_overlap_of_two_histograms(flips):
    """Of numbers of labels, as given and as the model makes them of these rows, wrong ones and rows without any so."""
    rng, rule = np.random.default_rng(0), CumulativeMass(0.8)
    X = rng.normal(size=(300, 1))
    model = by_hand(rule, settings=Settings(noise=flips))
    L = (rng.random((300, 3)) < 0.6).astype(float)
    L[L.sum(axis=1) == 0, 0] = 1.0
    L[:20] = 0.0 if flips.missed else L[:20]
    D = rng.dirichlet(np.ones(3), 300)
    found = report_rule(model, X, L, D)
    made = simulate_labels(model, X, np.random.default_rng(0)).sum(axis=1)
    if flips.any() and not flips.missed:
        made = made[made > 0]
    given, expected = (np.bincount(k.astype(int), minlength=4) / len(k) for k in (L.sum(axis=1), made))
    assert found.explained == pytest.approx(np.minimum(given, expected).sum())
    told = L.sum(axis=1) > 0
    assert found.yes_weight == pytest.approx((D * L).sum(axis=1)[told].mean())
    assert found.scale_from == "labels"
    edge = replace(model, spread=Spread(12.0, 0.1))
    assert [report_rule(edge, X, L, D, is_graded=g).scale_from for g in (False, True)] == ["edge", "labels"]
    order = replace(model, rule=Order(), settings=Settings())
    levels = rng.integers(0, 4, (300, 3)).astype(float)
    report = report_rule(order, X, levels, D, is_graded=True)
    assert (report.explained, report.scale_from, report.levels) == (None, "graded rows", True)
    top = levels == levels.max(axis=1, keepdims=True)
    told = levels.any(axis=1)  # a row of zeros says nothing
    assert report.yes_weight == pytest.approx((D * top)[told].sum(axis=1).mean())
    assert report_rule(order, X, L, D).scale_from == "prior"


def test_unasked_labels_are_hidden_in_what_is_simulated_and_have_no_weight():
    rng = np.random.default_rng(1)
    X, model = rng.normal(size=(200, 1)), by_hand(CumulativeMass(0.8))
    L = CumulativeMass(0.8).apply(softmax(model.draw(X, rng))).astype(float)
    L[::2, 1] = np.nan
    L[0] = np.nan
    L[1] = 0.0
    D = rng.dirichlet(np.ones(3), 200)
    found = report_rule(model, X, L, D)
    told = (L > 0).any(axis=1)
    weight = np.where(L > 0, D, 0.0)[told].sum() / np.where(np.isnan(L), 0.0, D)[told].sum()
    assert found.yes_weight == pytest.approx(weight)
    made = (simulate_labels(model, X, np.random.default_rng(0)) & ~np.isnan(L)).sum(axis=1)
    sizes = (L > 0).sum(axis=1)[~((L == 0).all(axis=1) | np.isnan(L).all(axis=1))]
    given, expected = np.bincount(sizes, minlength=4) / len(sizes), np.bincount(made, minlength=4) / 200
    assert found.explained == pytest.approx(np.minimum(given, expected).sum())
    assert 0.85 < found.explained < 1
    certain = report_rule(by_hand(q=1), X, np.ones((200, 1)), np.ones((200, 1)))
    assert (certain.explained, certain.yes_weight, certain.scale_from) == (None, 1.0, "labels")
    one = report_rule(model, X[:1], np.array([[1.0, np.nan, 0.0]]), np.array([[0.2, 0.7, 0.1]]))
    assert one.yes_weight == pytest.approx(2 / 3)


def test_errors_are_estimated_on_some_rows_in_their_order():
    rng, q = np.random.default_rng(0), 3
    X, D = rng.normal(size=(700, 1)), rng.dirichlet(np.ones(q), 700)
    L = CumulativeMass().apply(D).astype(float)
    sample = ErrorSample.of(by_hand(), X, L, D, graded=np.array([3, 8, 650]), numbers=np.arange(700) + 1000)
    assert len(sample.numbers) == 500
    assert (np.diff(sample.numbers) > 0).all()
    rows = sample.numbers - 1000
    np.testing.assert_array_equal(sample.D, D[rows])
    np.testing.assert_array_equal(sample.counts, np.bincount(L.sum(axis=1).astype(int), minlength=4)[1:])
    assert sample.n == 700
    assert not sample.graded.any()
    again = ErrorSample.of(by_hand(), X, L, D, graded=rows[:2])
    np.testing.assert_array_equal(again.graded, np.arange(500) < 2)
    wide = np.tile(L, (1, 70))  # 210 labels: so many entries are 95 rows, and a hundred are always looked at
    assert len(ErrorSample.of(by_hand(q=210), X, wide, np.tile(D, (1, 70)) / 70).numbers) == 100
    assert len(ErrorSample.of(by_hand(q=60), X, wide[:, :60], np.tile(D, (1, 20)) / 20).numbers) == 333


def test_warnings_say_which_rows_and_how_many():
    D = np.array([[0.8, 0.1, 0.1]] * 8)
    L = np.tile([0.0, 1.0, 0.0], (8, 1))
    known = KnownDegrees(np.arange(8) + 10, D)
    with pytest.warns(LabelWarning, match=r"8 of 8 graded rows .* \(rows 10, 11, 12, 13, 14, \.\.\.\)"):
        warn_of_contradictions(known, L, CumulativeMass())
    with pytest.warns(LabelWarning, match=r"5 of 5 graded rows .* \(rows 10, 11, 12, 13, 14\)"):
        warn_of_contradictions(KnownDegrees(known.rows[:5], D[:5]), L[:5], CumulativeMass())
    report = RuleReport(CumulativeMass(), 0.9, 0.4)
    with pytest.warns(LabelWarning, match=r"60%.*degrees are nearly equal"):
        warn_of_denied_labels(report)
    with pytest.warns(LabelWarning, match="a weak assumption decided it"):
        warn_of_denied_labels(replace(report, explained=None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_contradictions(known, CumulativeMass().apply(D).astype(float), CumulativeMass())
        warn_of_denied_labels(replace(report, yes_weight=0.5))
        warn_of_denied_labels(replace(report, levels=True))


def test_blocks_of_lazy_rows_know_their_graded_rows_by_number():
    """The first and the last of every block, wherever the block lies; others have the posterior of their own stream."""
    model = by_hand(Threshold(0.3, at_least_one=False), settings=Settings(n_sweeps=10, n_burn=5, max_rows=4))
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(10, 1)), rng.dirichlet(np.ones(3), 10)
    L = Threshold(0.3, at_least_one=False).apply(D).astype(float)
    number = 100 + np.arange(10)[:, None]
    every = KnownDegrees(number[:, 0], D)
    np.testing.assert_allclose(blocks._moments(model, 7, every, X, L, number)[:, :3], D)
    none = blocks._moments(model, 7, NOTHING_KNOWN, X, L, number)
    assert none.shape == (10, 12)
    for row in (3, 4, 9):
        one = KnownDegrees(np.array([100 + row]), D[[row]])
        found = blocks._moments(model, 7, one, X, L, number)
        np.testing.assert_allclose(found[row, :3], D[row])
        np.testing.assert_array_equal(np.delete(found, row, axis=0), np.delete(none, row, axis=0))
    parts = np.concatenate([blocks._moments(model, 7, NOTHING_KNOWN, X[s], L[s], number[s]) for s in
                            (slice(6), slice(6, 10))])  # fmt: skip
    np.testing.assert_allclose(parts, none, atol=1e-12)  # however rows are cut

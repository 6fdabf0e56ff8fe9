"""Parts of a fit to answers, each by itself: what the chain starts from, how rows are weighed, what is reported."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, logit, logsumexp
from scipy.stats import halfnorm, lognorm, norm
from told import Told

from contone import Votes
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.people import fit as fits
from contone.enhance.inversion.people import levels_chain, next_answers, regression
from contone.enhance.inversion.people.answers import LEVELS, SMALLEST, VOTES, Persons, Responses, Traits
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.matching import NODES, SPREADS, WEIGHTS, MatchedChances, MatchedShares
from contone.enhance.inversion.people.model import Draw, PeopleFit, only, simulate_answers, sort_responses
from contone.enhance.inversion.people.new_rows import even_directions, even_normals
from contone.enhance.inversion.people.priors import LevelsPrior, LogNormal, Prior
from contone.enhance.inversion.people.report import AnswersReport, expect_answer_error, tell_persons
from contone.enhance.inversion.people.slices import slice_step
from contone.enhance.inversion.people.traits import Watch
from contone.enhance.inversion.posterior import Posterior
from contone.exceptions import LabelError, LabelWarning
from contone.measurements.levels import Levels
from contone.numerics.simplex import softmax

NAN = np.nan

# ------------------------------------------------------------------------------------------------ before the chain


def test_responses_are_sorted_by_item_and_some_are_taken():
    L, item = np.arange(15.0).reshape(5, 3), np.array([0, 0, 2, 3, 3])
    found = sort_responses(VOTES, L, 5, item, np.array([4, 1, 2, 4, 3]))
    np.testing.assert_array_equal(found.first, [0, 2, 2, 3, 5, 5])
    np.testing.assert_array_equal(found.person, [4, 1, 2, 4, 3])
    some = fits._of_items(found, np.array([0, 1, 3]))
    np.testing.assert_array_equal(some.first, [0, 2, 2, 4])
    np.testing.assert_array_equal(some.person, [4, 1, 4, 3])
    np.testing.assert_array_equal(some.values, L[[0, 1, 3, 4]])
    np.testing.assert_array_equal(sort_responses(VOTES, L, 5).first, np.arange(6))
    assert not sort_responses(VOTES, L, 5).person.any()


def test_nobody_answered_is_said_by_item():
    with pytest.raises(LabelError, match="no answer about any item"):
        fits._check_answered(np.zeros(3, bool), by_answer=True)
    with pytest.warns(LabelWarning, match="answered 2 of 4 items .first: item number 1, from 0"):
        fits._check_answered(np.array([True, False, True, False]), by_answer=True)
    fits._check_answered(np.array([True, False]), by_answer=False)


def test_regressions_are_told_counts_marks_and_what_levels_are_worth():
    values = np.array([[0, 2, NAN], [1, 0, 2.0]])
    (counts,) = fits._told(Votes(), values)
    assert counts is values
    rule = Levels((0, 10)).suited_to(np.array([[0, 5, 10.0]]))
    marks, worth = fits._told(rule, values)
    np.testing.assert_array_equal(marks, [[0, 1, NAN], [1, 0, 1]])
    np.testing.assert_allclose(worth, np.append((rule.worth - rule.worth[0]) / np.ptp(rule.worth), NAN)[
        [[0, 2, 3], [1, 0, 2]]])  # fmt: skip
    assert len(fits._told(Levels((0, 1)).suited_to(values[:, :1]), values[:, :1])) == 1


def test_a_spread_is_believed_half_way_to_what_features_tell():
    usual, rng = LogNormal(1.3, 0.4), np.random.default_rng(0)
    shares = softmax(2.0 * rng.normal(size=(5000, 4)))
    found = fits._believed_spread(usual, [MatchedShares(shares)])
    centred = np.log(shares) - np.log(shares).mean(axis=1, keepdims=True)
    told = np.square(centred - centred.mean(axis=0)).sum() / 5000 / 3  # per coordinate, of which there are three
    assert found.median**2 == pytest.approx((1.3**2 + told) / 2)
    assert fits._believed_spread(usual, []) is usual
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])  # of two labels there is one coordinate, root 2 either way
    assert fits._believed_spread(usual, [MatchedShares(softmax(pair))]).median ** 2 == pytest.approx((1.3**2 + 2.0) / 2)


def test_known_degrees_are_log_weights_with_sum_zero():
    grades = place_grades(np.array([1]), np.array([[0.2, 0.5, 0.3]]), np.ones((3, 3)))
    Z = fits._log_weights(grades)
    assert np.isnan(Z[[0, 2]]).all()
    np.testing.assert_allclose(softmax(Z[1]), [0.2, 0.5, 0.3])
    assert Z[1].sum() == pytest.approx(0.0, abs=1e-12)


# -------------------------------------------------------------------------------------------------------- the chain


def responses_with(values, first=None, kind=VOTES):
    values = np.asarray(values, dtype=float)
    first = np.arange(len(values) + 1) if first is None else np.asarray(first)
    return Responses(kind, first, np.zeros(len(values), np.intp), values)


@pytest.mark.parametrize(
    ("values", "first", "kind", "is_open"),
    [
        (np.eye(3)[[0] * 10], None, VOTES, True),  # one vote each
        (np.eye(3)[[0] * 10] + np.eye(3)[[1] * 10] * (np.arange(10)[:, None] < 2), None, VOTES, True),  # two of ten
        (np.eye(3)[[0] * 10] + np.eye(3)[[1] * 10] * (np.arange(10)[:, None] < 3), None, VOTES, False),
        (np.eye(3)[[0] * 10], [0, 2, 4, 6, 8, 10], VOTES, False),  # two answers each
        (np.zeros((10, 3)), None, VOTES, False),  # nothing at all
        (np.eye(3)[[0] * 10], None, LEVELS, True),  # one answer about all labels
        (np.eye(3)[[0] * 10], [0, 2, 4, 6, 8, 10], LEVELS, False),
        (np.vstack([np.full((8, 3), NAN), np.eye(3)[:2]]), [0, 5, 8, 10], LEVELS, False),  # the only item has two
    ],
)
def test_the_spread_is_open_where_hardly_any_item_has_two_answers(values, first, kind, is_open):
    found = Chain(responses_with(values, first, kind), [], Prior(), np.random.default_rng(0), centred=kind == VOTES)
    assert found.spread_is_open == is_open
    assert found.shape_is_open == (is_open and kind == VOTES)


def test_a_chain_starts_from_its_prior_and_from_what_is_known():
    known = np.array([[NAN] * 3, [1.0, -0.4, -0.6], [NAN] * 3])
    feature = MatchedShares(np.array([[0.6, 0.3, 0.1]] * 3))
    made = Chain(responses_with(np.ones((3, 3))), [feature, feature], Prior(), np.random.default_rng(0), known=known)
    assert made.spread == Prior().spread.median
    assert made.tau == made.kappa == 0.0
    np.testing.assert_array_equal(made.free, [True, False, True])
    np.testing.assert_allclose(made.Z[1], known[1])
    np.testing.assert_allclose(made.Z[0], feature.at(made.spread)[0])  # two coefficients of one half
    alone = Chain(responses_with(np.ones((3, 3))), [feature], Prior(), np.random.default_rng(0))
    np.testing.assert_array_equal(alone.coefficients, 1.0)
    np.testing.assert_allclose(made.usual, made.mean.mean(axis=0))
    np.testing.assert_allclose(made.basis.T @ made.basis, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(made.basis.sum(axis=0), 0.0, atol=1e-12)
    assert np.trace(made.along) == pytest.approx(2.0)
    assert not made.spread_is_open  # an item that is known tells it
    several = Chain(responses_with(np.ones((3, 3))), [], Prior(), np.random.default_rng(0), n_persons=2)
    assert (several.tau, several.kappa) == (Prior().offset.median, Prior().sharpness.median)
    assert several.traits.offset.shape == (3, 3)


def test_a_prior_is_a_mixture_of_a_log_normal_and_a_half_normal_number():
    prior, x = LogNormal(1.3, 0.4, small=0.1), np.linspace(-6.0, 3.0, 40)
    value = np.exp(x)
    density = 0.9 * lognorm(0.4, scale=1.3).pdf(value) + 0.1 * halfnorm(scale=1.3).pdf(value)
    found = [prior.log_density(float(v)) - 0.5 * math.log(2 * math.pi) for v in x]
    np.testing.assert_allclose(found, np.log(density * value), rtol=1e-9)
    slope = [(prior.log_density(float(v) + 1e-6) - prior.log_density(float(v) - 1e-6)) / 2e-6 for v in x]
    np.testing.assert_allclose([prior.slope(float(v)) for v in x], slope, atol=1e-6)
    usual = LogNormal(1.3, 0.4)
    np.testing.assert_allclose([usual.slope(float(v)) for v in x], -(x - math.log(1.3)) / 0.16)


def test_where_votes_leave_the_spread_open_it_is_drawn_from_its_prior_and_e_stays():
    made = Chain(responses_with(np.eye(3)[[0] * 20]), [], Prior(), np.random.default_rng(0))
    made.Z = np.random.default_rng(1).normal(size=(20, 3)) @ (np.eye(3) - 1 / 3)
    before = np.linalg.solve(made.spread * np.linalg.cholesky(made.shape), (made.Z @ made.basis).T)
    made.draw_spread()
    after = np.linalg.solve(made.spread * np.linalg.cholesky(made.shape), (made.Z @ made.basis).T)
    np.testing.assert_allclose(after, before)
    assert made.spread != Prior().spread.median
    assert np.trace(made.shape) == pytest.approx(2.0)


def test_chances_of_tails_and_axes_are_numbers_whatever_the_densities():
    """Of thousands of items, and of shapes next to singular, densities are far below what floating point holds."""
    made = Chain(responses_with(2 * np.ones((3000, 3))), [], Prior(), np.random.default_rng(0), n_persons=2)
    made.Z = 5.0 * np.random.default_rng(1).normal(size=(3000, 3)) @ (np.eye(3) - 1 / 3)
    made.shape, seen = np.diag([2.0, 1e-150]), []
    made.rng = Told()
    made.rng.choice = lambda values, p=None: seen.append(p) or values[-1]
    made.draw_axis()
    made.shape = np.eye(2)
    made.draw_tails()
    for p in seen[:2]:
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1.0)


def test_votes_of_all_people_are_those_of_one_in_the_middle():
    """E F(z + b) of a normal offset is about F(c z) with c = (1 + pi v / 8)^-1/2: two offsets differ by twice tau^2."""
    made = Chain(responses_with(np.eye(2)[[0] * 9]), [], Prior(), np.random.default_rng(0), n_persons=3)
    made.tau = 1.1
    middle, nodes = made.middle(), norm.ppf((np.arange(4000) + 0.5) / 4000)
    for z in (0.3, 1.5):
        exact = expit(z + math.sqrt(2) * 1.1 * nodes).mean()
        assert softmax(middle.sharpness[0] * np.array([z, 0.0]) + middle.offset[0])[0] == pytest.approx(exact, abs=0.01)
    levels = levels_chain.LevelsChain(
        responses_with(np.ones((9, 1)), kind=LEVELS), [], LevelsPrior(), np.random.default_rng(0),
        worth=np.arange(3.0), n_persons=3,
    )  # fmt: skip
    levels.tau = 1.1
    middle = levels.middle()
    for cut, own in zip(levels.traits.cuts[0], middle.cuts[0], strict=True):
        exact = expit(0.7 + 1.1 * nodes - cut).mean()
        assert expit(middle.sharpness[0] * 0.7 - own) == pytest.approx(exact, abs=0.01)


def test_first_cut_points_fit_how_often_each_level_was_given():
    levels = np.repeat([0.0, 1, 2, NAN], [50, 30, 20, 7])[:, None]
    gaps = levels_chain._first_gaps(levels, 2)
    above = np.array([30.5 + 20.5, 20.5]) / 101.5  # with half a count of each level
    np.testing.assert_allclose(gaps, [-1.4 * (logit(above[1]) - logit(above[0]))])
    even = np.repeat([0.0, 1, 2], [5000, 200, 4800])[:, None]  # a level that is hardly given takes little room
    (gap,) = levels_chain._first_gaps(even, 2)
    assert gap == pytest.approx(1.4 * (logit(5001 / 10001.5) - logit(4800.5 / 10001.5)))
    assert (levels_chain._first_gaps(np.zeros((3, 1)), 4) >= 1e-2).all()


def test_answers_about_single_labels_are_sorted_by_level():
    values = np.array([[2, 0, NAN], [0, 1, 1.0], [NAN, 2, 0]])
    given = Responses(LEVELS, np.array([0, 1, 3]), np.array([1, 2, 1]), values)
    person, label, item, level, first = levels_chain._sort_by_level(given, 2)
    np.testing.assert_array_equal(level, [0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(first, [0, 3, 5, 7])
    found = sorted(zip(person, label, item, level, strict=True))
    assert found == sorted(
        [(1, 0, 0, 2), (1, 1, 0, 0), (2, 0, 1, 0), (2, 1, 1, 1), (2, 2, 1, 1), (1, 1, 1, 2), (1, 2, 1, 0)]
    )


def test_slice_steps_keep_their_density():
    """A normal one that is cut at -1."""
    rng, x, drawn = np.random.default_rng(0), 0.5, []
    for _ in range(4000):
        x = slice_step(lambda v: -0.125 * v * v if v > -1 else -math.inf, x, 1.5, rng)
        drawn.append(x)
    ends = norm.cdf(-0.5), 1.0
    expected = 2.0 * norm.ppf(ends[0] + np.array([0.1, 0.5, 0.9]) * (1 - ends[0]))
    np.testing.assert_allclose(np.quantile(drawn, [0.1, 0.5, 0.9]), expected, atol=0.12)


# ------------------------------------------------------------------------------------------------------- new rows


def test_points_are_even_and_their_directions_mirrored_with_heavy_tails():
    normals = even_normals(64, 3)
    np.testing.assert_allclose(normals.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(np.cov(normals.T), np.eye(3), atol=0.15)
    points = even_directions(512, 2)
    np.testing.assert_array_equal(points[:256], -points[256:])
    assert np.mean(points**2) == pytest.approx(8 / 6, rel=0.1)  # the variance of t_8
    assert not np.array_equal(even_directions(8, 2, 1), even_directions(8, 2))


@pytest.mark.parametrize("spread", [*SPREADS[[0, 5, 8]], 0.9])
def test_mean_shares_of_two_labels_are_those_that_were_given(spread):
    """Their difference is normal: one integral. Between the points of the map it is interpolated."""
    M = np.array([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7]])
    matched = MatchedShares(M)
    mu = matched.at(spread)
    x, weight = np.polynomial.hermite_e.hermegauss(61)
    found = expit((mu[:, :1] - mu[:, 1:]) + math.sqrt(2) * spread * x) @ weight / weight.sum()
    np.testing.assert_allclose(found, M[:, 0], atol=2e-3 if spread in SPREADS else 6e-3)
    np.testing.assert_allclose(np.exp(matched.told), M)
    np.testing.assert_allclose(np.square(NODES) @ WEIGHTS, sum(WEIGHTS))
    low, high = SPREADS[5], SPREADS[6]
    between = matched.at(math.exp(0.25 * math.log(low) + 0.75 * math.log(high)))
    np.testing.assert_allclose(between, 0.25 * matched.at(low) + 0.75 * matched.at(high), atol=1e-9)
    np.testing.assert_array_equal(matched.at(1e-3), matched.at(SPREADS[0]))
    np.testing.assert_array_equal(matched.at(50.0), matched.at(SPREADS[-1]))


@pytest.mark.parametrize("spread", [0.4, 2.0])
def test_mean_chances_of_marks_are_those_that_were_given(spread):
    M = np.array([[0.9, 0.1, 0.5]])
    x = norm.ppf((np.arange(4000) + 0.5) / 4000)
    found = expit(MatchedChances(M).at(spread)[..., None] + spread * x).mean(axis=-1)
    np.testing.assert_allclose(found, M, atol=0.012)
    ends = MatchedChances(np.array([[0.0, 1.0]])).told
    np.testing.assert_allclose(ends, [[logit(SMALLEST), -logit(SMALLEST)]])


PEOPLE = Traits(np.array([1.0, 0.5]), np.array([[0.0, 0, 0], [1.0, 0, -1.0]]))


def test_a_draw_has_what_a_row_needs():
    made = Chain(responses_with(np.ones((6, 3)), [0, 3, 6]), [], Prior(), np.random.default_rng(0), n_persons=2)
    made.spread, made.tau = 0.6, 0.8
    draw = Draw.of(made, PEOPLE)
    assert draw.width == pytest.approx(1.0)  # an answer sees items and persons
    assert draw.tail == made.prior.tails[made.tail]
    assert len(draw.traits.sharpness) == 3
    np.testing.assert_array_equal(draw.traits.sharpness[0], made.middle().sharpness[0])
    assert not draw.trusts_features
    assert draw._replace(coefficients=np.ones(1), intercept=np.zeros(3)).trusts_features
    assert not draw._replace(coefficients=np.ones(1), intercept=np.array([0.1, 0, -0.1])).trusts_features
    feature = MatchedShares(np.array([[0.6, 0.3, 0.1]]))
    told = draw._replace(coefficients=np.array([0.5, 2.0]), intercept=np.array([0.1, 0.0, -0.1]))
    np.testing.assert_allclose(told.mean([feature, feature]), told.intercept + 2.5 * feature.at(told.width))
    np.testing.assert_array_equal(draw.mean([]), draw.intercept)
    alone = only(PEOPLE._replace(cuts=np.array([[0.0], [3.0]])), 1)
    assert (alone.sharpness, alone.cuts) == ([0.5], [[3.0]])
    np.testing.assert_array_equal(only(PEOPLE, 1).cuts, PEOPLE.cuts)


def bare_fit(rule, kind):
    nothing = Draw(np.zeros(3), np.zeros(0), 1.0, np.diag([1.0, 4.0, 0.25]), 6.0, PEOPLE, PEOPLE)
    return PeopleFit(
        rule, kind, (), (nothing,) * 6, Parameters(np.zeros((1, 3)), np.eye(3), 0.0), Spread(1.0, 0.2),
        Settings(n_sweeps=50), 10, 30.0, 1.01, (0.1, 0.05, 0.2), 6.0, annotator_deviation=0.4,
    )  # fmt: skip


def test_simulated_answers_are_those_of_the_model():
    fit, rng, n = bare_fit(Votes(), VOTES), np.random.default_rng(0), 20_000
    draw = fit.draws[0]._replace(intercept=np.array([0.5, 0.0, -0.5]))
    D, votes = simulate_answers(fit, draw, [], np.tile([1.0, 2, 0], (n, 1)), rng)
    Z = draw.intercept + rng.normal(size=(n, 3)) / np.sqrt([1.0, 4.0, 0.25]) / np.sqrt(rng.chisquare(6, (n, 1)) / 6)
    expected = np.mean([softmax(a * Z + b) for a, b in zip(PEOPLE.sharpness, PEOPLE.offset, strict=True)], axis=0)
    np.testing.assert_allclose(D.mean(axis=0), expected.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(D.std(axis=0), expected.std(axis=0), atol=0.01)
    np.testing.assert_array_equal(votes.sum(axis=1), 3)
    np.testing.assert_allclose((votes / 3).mean(axis=0), D.mean(axis=0), atol=0.01)
    rule = Levels((0, 2)).suited_to(np.array([[0.0, 1.0, 2.0]]))
    people = PEOPLE._replace(cuts=np.array([[0.0, 1.0], [0.0, 3.0]]), worth=np.array([[0.0, 1, 2]]))
    fit = bare_fit(rule, LEVELS)
    given = np.tile([0.0, NAN, 2.0], (n, 1))
    _, levels = simulate_answers(fit, draw._replace(people=people), [], given, rng)
    assert np.isnan(levels[:, 1]).all()
    above = np.mean([expit(a * Z[:, 0] + b - cuts[:, None]).mean(axis=1) for a, b, cuts in
                     zip(people.sharpness, people.offset[:, 0], people.cuts, strict=True)], axis=0)  # fmt: skip
    np.testing.assert_allclose([(levels[:, 0] >= 1).mean(), (levels[:, 0] >= 2).mean()], above, atol=0.012)


def test_a_fit_says_how_it_ended():
    fit = bare_fit(Votes(), VOTES)
    posterior = Posterior(np.full((10, 3), 1 / 3), np.zeros((10, 3)), np.ones((10, 3)))
    found = fit.solution(posterior, 0, 2)
    assert found.converged
    assert found.residual == pytest.approx(30**-0.5)
    assert found.n_iter == 50
    told = {"spread": 1.0, "spread_deviation": 0.2, "annotator_deviation": 0.4, "graded_rows": 2, "sample_rows": 10}
    assert told.items() <= found.info.items()
    few = [replace(fit, effective_sample_size=size).solution(posterior, 0, 0) for size in (10.0, 9.9, 0.25, 0.0)]
    assert [said.converged for said in few] == [True, False, False, False]
    np.testing.assert_allclose([said.residual for said in few[2:]], [2.0, 1e6])
    assert fit.believed_spread == fit.spread
    assert fit.n_labels == 3


# ------------------------------------------------------------------------------------------------------- judgement


def test_errors_of_draws_are_those_of_their_mean():
    rng = np.random.default_rng(0)
    seen = rng.dirichlet(np.ones(3), (400, 5))
    mean = seen.mean(axis=0)
    errors = (seen * np.log(seen / mean)).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(fits._judge(seen), [errors.mean(), *np.quantile(errors, [0.05, 0.95])])
    assert fits._judge(np.empty((4, 0, 3))) == (0.0, 0.0, 0.0)
    fit = replace(bare_fit(Votes(), VOTES), error=(0.3, 0.2, 0.5))
    posterior = Posterior(mean, np.zeros((5, 3)), rng.uniform(0.1, 1.0, (5, 3)))
    found = expect_answer_error(fit, posterior)
    rows = 0.5 * (mean * (1 - mean) ** 2 * posterior.logit_width**2).sum(axis=1)
    assert (found.mean, found.lower, found.upper) == (0.3, 0.2, 0.5)
    np.testing.assert_allclose(found.rows, 0.3 * rows / rows.mean())


def test_persons_are_watched_on_some_items_and_told_with_their_ends(monkeypatch):
    given = Responses(VOTES, np.array([0, 2, 4]), np.array([1, 2, 1, 1]), np.eye(3)[[0, 1, 0, 2]])
    made = Chain(given, [], Prior(), np.random.default_rng(0), n_persons=2)
    watch = Watch(made)
    assert watch.persons() is None
    rng = np.random.default_rng(1)
    kept = []
    for k in range(1, 30):
        made.traits = Traits(rng.uniform(0.5, 2.0, 3), rng.normal(size=(3, 3)))
        watch.look(k)
        if k % 4 == 1:
            kept.append(made.traits)
    persons = watch.persons()
    np.testing.assert_array_equal(persons.answers, [3, 1])
    offset, sharpness = (np.stack([getattr(t, name)[1:] for t in kept]) for name in ("offset", "sharpness"))
    np.testing.assert_allclose(persons.offset, offset.mean(axis=0))
    np.testing.assert_allclose(persons.offset_deviation, offset.std(axis=0))
    np.testing.assert_allclose(
        persons.sharpness, [sharpness.mean(axis=0), *np.quantile(sharpness, [0.05, 0.95], axis=0)]
    )


def test_who_leans_to_a_label_is_named_by_the_most_certain_one():
    """At a chance of 5 % that somebody who leans to none is named: of three labels, each at a third of that."""
    limit = norm.ppf(1 - 0.05 / 3)
    offset = np.array([[limit * 1.01, 0, 0], [limit * 0.99, 0, 0], [0.0, 4.0, 6.0]])
    deviation = np.array([[1.0, 1, 1], [1.0, 1, 1], [1.0, 1.0, 2.0]])
    bits = np.array([[0.2, 0.5, 0.3], [0.1, 0.4, 0.2], [0.3, 0.6, 0.4]])
    persons = Persons(np.array([7, 8, 9]), offset, deviation, 1 + bits, bits)
    told = tell_persons(replace(bare_fit(Votes(), VOTES), persons=persons), ["x", "y", "z"], ["a", "b", "c"])
    assert told["annotator"] == ["y", "z", "x"]
    assert told["answers"] == [8, 9, 7]
    assert told["too_often"] == ["", "b", "a"]
    assert told["bits_lower"] == [0.4, 0.2, 0.1]
    assert told["sharpness_upper"] == [1.6, 1.4, 1.3]
    assert tell_persons(bare_fit(Votes(), VOTES), [], []) == {}


def test_a_report_counts_answers_items_and_what_was_chosen():
    L = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [NAN, 1, 0]])
    D = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [1 / 3] * 3])
    posterior, item = Posterior(D, 0 * D, 0 * D), np.array([0, 0, 1, 1])
    found = AnswersReport.of(bare_fit(Votes(), VOTES), L, posterior, item)
    assert (found.n_items, found.n_answers, found.n_persons, found.n_several) == (2, 4, 0, 2)
    assert found.yes_weight == pytest.approx((0.5 + 0.3 + 0.7 + 0.2) / 4)
    counted = AnswersReport.of(bare_fit(Votes(), VOTES), np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0.0]]), posterior, None)
    assert (counted.n_items, counted.n_answers, counted.n_several) == (2, 3, 1)
    assert counted.yes_weight == pytest.approx((0.5 + 0.2 + 0.7) / 3)
    assert "1 of which have several" in str(counted)
    one = AnswersReport.of(bare_fit(Votes(), VOTES), np.eye(3)[:1], posterior[:1], None)
    assert (one.n_items, one.n_several, one.yes_weight) == (1, 0, 0.5)
    assert "one each" in str(one)
    assert AnswersReport.of(bare_fit(Votes(), VOTES), np.zeros((1, 3)), posterior[:1], None).yes_weight == 0.0


# ---------------------------------------------------------------------------------------------------- next answers


@pytest.mark.parametrize(("k", "q"), [(0, 3), (1, 4), (3, 3), (4, 2)])
def test_ways_to_vote_are_all_counts_with_their_sum(k, q):
    ways = next_answers._ways(k, q)
    assert len({tuple(way) for way in ways}) == len(ways) == math.comb(k + q - 1, q - 1)
    assert next_answers._n_ways(k, q) == pytest.approx(len(ways))
    assert (ways >= 0).all()
    np.testing.assert_array_equal(ways.sum(axis=1), k)


def test_answers_are_shared_out_by_gain_and_nobody_is_asked_too_often():
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.full(3, 0.7), (60, 8))
    persons = [next_answers.Person(str(k), 1.0 + 0.5 * k, np.zeros(3)) for k in range(4)]
    answered = [{"3"} if i % 2 else set() for i in range(8)]
    found = next_answers.next_answers(D, 16, persons, answered)
    assert len(found) == 16
    load = [sum(a.person == str(k) for a in found) for k in range(4)]
    assert max(load) <= math.ceil(next_answers.LOAD * 16 / 4)
    gains = next_answers.gains_of_persons(D, persons)
    for a in found:
        if a.person:
            assert a.person not in answered[a.item]
            assert a.gain == pytest.approx(gains[int(a.person), a.item])
    anybody = next_answers.next_answers(D, 20)
    losses = next_answers.expected_losses(D, range(4))
    assert len(next_answers.next_answers(D, 30)) == 8 * next_answers.AHEAD  # no further ahead
    (best,) = next_answers.next_answers(D, 1)
    assert best == anybody[0]
    busy = next_answers.next_answers(D, 8, persons)  # the sharpest, as often as may be
    assert sum(a.person == "3" for a in busy) == math.ceil(next_answers.LOAD * 8 / 4)
    assert not [a for a in next_answers.next_answers(D, 1, persons * 9) if not a.person]
    for item in range(8):  # further votes about one item bring less and less
        of_item = [a.gain for a in anybody if a.item == item]
        np.testing.assert_allclose(of_item, np.minimum.accumulate(-np.diff(losses[:, item]))[: len(of_item)])


def test_many_items_are_looked_at_in_blocks(monkeypatch):
    D = np.random.default_rng(0).dirichlet(np.ones(3), (30, 20))
    whole = next_answers.expected_losses(D, (0, 2))
    monkeypatch.setattr(next_answers, "BLOCK", 30 * 6 * 7)
    np.testing.assert_allclose(next_answers.expected_losses(D, (0, 2)), whole)


# ------------------------------------------------------------------------------------------------------ regressions


@pytest.mark.parametrize("n", [40, 150])
def test_closeness_has_the_kernel_as_its_inner_product_and_variances_that_sum_to_one(n):
    rng = np.random.default_rng(0)
    U = 0.1 * rng.normal(size=(n, 2))
    found = regression.Closeness.of(U, rng)
    K = found(U)
    np.testing.assert_allclose(K.mean(axis=0), 0.0, atol=1e-9)
    assert K.var(axis=0).sum() == pytest.approx(1.0)
    squares = cdist(U, U, "sqeuclidean")
    if n <= regression.N_LANDMARKS:  # with a landmark at every row it is exact
        assert found.sharpness == pytest.approx(1 / np.median(squares[np.triu_indices(n, 1)]))
        kernel, J = np.exp(-found.sharpness * squares), np.eye(n) - 1 / n
        np.testing.assert_allclose(K @ K.T, J @ kernel @ J * n / np.trace(J @ kernel @ J), atol=1e-4)
    else:
        assert len(found.landmarks) == regression.N_LANDMARKS
    alone = regression.Closeness.of(U[:1], rng)
    assert alone.sharpness == 1.0
    assert regression.Closeness.of(U[:2], rng).sharpness == pytest.approx(1 / squares[0, 1])


@pytest.mark.parametrize("kind", [VOTES, LEVELS])
def test_regressions_are_at_the_minimum_of_their_penalised_loss(kind):
    """By finite differences, with entries that were not asked; the constant is held by a hundredth."""
    rng = np.random.default_rng(0)
    phi = np.column_stack([np.ones(40), rng.normal(size=(40, 2)) * [1.0, 30.0]])
    counts = rng.multinomial(3, [0.5, 0.3, 0.2], size=40).astype(float) if kind == VOTES else rng.random((40, 3))
    counts[::4, 2] = NAN

    def loss(W):
        Z = phi @ W
        if kind == VOTES:
            Z = np.where(np.isnan(counts), -np.inf, Z)
            value = -np.nansum(np.where(counts > 0, counts * (Z - logsumexp(Z, axis=1, keepdims=True)), 0.0))
        else:
            value = np.nansum(np.logaddexp(0, Z) - counts * Z)
        return value + 0.5 * np.sum(np.array([[1e-2], [2.0], [2.0]]) * W**2)

    W = regression._fit(phi, counts, 2.0, np.zeros((3, 3)), kind)
    best = minimize(lambda w: loss(w.reshape(3, 3)), W.ravel(), options={"gtol": 1e-7}).x.reshape(3, 3)
    np.testing.assert_allclose(phi @ W, phi @ best, atol=0.02)
    assert loss(W) <= loss(best) + 1e-4
    if kind == VOTES:
        np.testing.assert_allclose(W.sum(axis=1), 0.0, atol=1e-12)
    Z = rng.normal(size=(40, 3))
    value, slope = (regression._loss if kind == VOTES else regression._loss_of_marks)(Z, counts)
    for j, e in enumerate(1e-6 * np.eye(3)):
        of = regression._loss if kind == VOTES else regression._loss_of_marks
        change = (of(Z + e, counts)[0] - of(Z - e, counts)[0]) / 2e-6
        assert slope[:, j].sum() == pytest.approx(change, abs=1e-4)
    assert math.isfinite(value)


def test_the_penalty_is_the_one_that_tells_left_out_answers_best():
    rng = np.random.default_rng(0)
    phi = np.column_stack([np.ones(90), rng.normal(size=(90, 4))])
    fold = rng.permutation(90) % regression.N_FOLDS
    for strength in (0.0, 3.0):
        votes = np.stack([rng.multinomial(1, p) for p in softmax(strength * phi[:, 1:])]).astype(float)
        losses = []
        for penalty in regression.PENALTIES:
            Z = np.zeros((90, 4))
            for k in range(regression.N_FOLDS):
                W = regression._fit(phi[fold != k], votes[fold != k], penalty, np.zeros((5, 4)), VOTES)
                Z[fold == k] = phi[fold == k] @ W
            losses.append(regression.find_mixture([softmax(Z)], votes)[0])
        found = regression._choose_penalty(phi, votes, np.arange(90), fold, VOTES)
        # from the strongest on, until two in a row are no better
        worse = (k for k in range(2, len(losses)) if min(losses[k - 1 : k + 1]) >= min(losses[: k - 1]))
        stop = next(worse, len(losses))
        assert losses[list(regression.PENALTIES).index(found)] == pytest.approx(min(losses[:stop]), abs=0.02)
        assert (found > 1) == (strength == 0.0)


@pytest.mark.parametrize("kind", [VOTES, LEVELS])
def test_own_answers_do_not_tell_the_feature_of_an_item(kind, monkeypatch):
    """But by way of lambda and the mixture: with these held, another answer to an item leaves its own shares."""
    rng, held = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    monkeypatch.setattr(regression, "_choose_penalty", lambda *_: 1.0)
    monkeypatch.setattr(regression, "MORE_FOLDS", 5)
    monkeypatch.setattr(regression, "find_mixture", lambda *_: (0.0, held))
    X = rng.normal(size=(50, 2))
    counts = rng.multinomial(1, [0.5, 0.3, 0.2], size=50).astype(float)
    other = counts.copy()
    other[7] = np.roll(counts[7], 1)
    (_, before), (_, after) = (
        regression.fit_regression(X, Y, np.arange(50), 5, np.random.default_rng(1), kind) for Y in (counts, other)
    )
    np.testing.assert_allclose(after[7], before[7], atol=1e-5)  # where a fit starts is not where it ends
    assert (np.abs(after - before).max(axis=1) > 1e-4).mean() > 0.7
    fitted, shares = regression.fit_regression(X, counts, np.arange(50), 5, np.random.default_rng(1), kind)
    assert np.abs(fitted(X) - shares).mean() < 0.1  # the same models, of all items
    Z = rng.normal(size=(5, 3))
    np.testing.assert_allclose(regression._chances(Z, kind), softmax(Z) if kind == VOTES else expit(Z))
    mixed = regression._mixed([counts, other], held)
    np.testing.assert_allclose(mixed, 0.5 * counts + 0.3 * other + 0.2 / 3)


def test_where_some_shares_are_asked_for_one_fit_to_the_others_tells_them(monkeypatch):
    """And the fit to all is what it is; nobody's own answers tell the share of an item."""
    rng, some = np.random.default_rng(0), np.array([3, 7, 20, 21])
    monkeypatch.setattr(regression, "_choose_penalty", lambda *_: 1.0)
    X, counts = rng.normal(size=(50, 2)), rng.multinomial(2, [0.5, 0.3, 0.2], size=50).astype(float)
    item, others = np.arange(50), np.setdiff1d(np.arange(50), some)
    whole, shares = regression.fit_regression(X, counts, item, 5, np.random.default_rng(1), VOTES, some)
    same, _ = regression.fit_regression(X, counts, item, 5, np.random.default_rng(1), VOTES)
    np.testing.assert_allclose(whole.weights[1], same.weights[1], atol=1e-6)
    phi = np.column_stack([np.ones(50), whole.feature_map(X)])
    bent = np.hstack([phi, whole.closeness(phi[:, 1:])])
    fits = (regression._fit(P[others], counts[others], 1.0, np.zeros((P.shape[1], 3)), VOTES) for P in (phi, bent))
    told = [softmax(P @ W) for P, W in zip((phi, bent), fits, strict=True)]
    np.testing.assert_allclose(shares[some], regression._mixed(told, whole.mixture)[some], atol=1e-4)
    expected = regression.find_mixture([A[some] for A in told], counts[some])[1]
    np.testing.assert_allclose(whole.mixture, expected, atol=1e-2)


def test_lambda_is_chosen_on_some_answers_and_grows_with_the_root_of_how_many_there_are(monkeypatch):
    rng, seen, fit = np.random.default_rng(0), [], regression._fit
    monkeypatch.setattr(regression, "_choose_penalty", lambda phi, counts, item, *_: seen.append(len(item)) or 0.5)
    monkeypatch.setattr(regression, "_fit", lambda phi, counts, penalty, *rest: seen.append(penalty) or fit(
        phi, counts, penalty, *rest))  # fmt: skip
    X, item = rng.normal(size=(30, 2)), np.repeat(np.arange(30), 3)
    counts = rng.multinomial(1, [0.5, 0.3, 0.2], size=90).astype(float)
    counts[:2] = 0.0  # no answer
    monkeypatch.setattr(regression, "MORE_FOLDS", 3)
    for most, expected in ((1000, 0.5), (22, 1.0)):
        monkeypatch.setattr(regression, "MOST_TRIED", most)
        regression.fit_regression(X, counts, item, 5, rng)
        sizes = [entry for entry in seen if isinstance(entry, int)]
        assert sizes == [min(88, most)] * 2
        np.testing.assert_allclose([entry for entry in seen if not isinstance(entry, int)], expected)
        seen.clear()


def test_a_mixture_for_marks_has_no_part_that_chooses_anything():
    rng = np.random.default_rng(0)
    P = rng.uniform(0.05, 0.95, (2, 4000, 2))
    marks = (rng.random((4000, 2)) < 0.7 * P[0] + 0.3 * P[1]).astype(float)
    marks[:50, 0] = NAN
    loss, mixture = regression.find_mixture(list(P), marks, LEVELS)
    np.testing.assert_allclose(mixture, [0.7, 0.3, 0.0], atol=0.06)
    assert mixture[2] == 0.0
    p = mixture[0] * P[0] + mixture[1] * P[1]
    assert loss == pytest.approx(-np.nansum(marks * np.log(p) + (1 - marks) * np.log1p(-p)))


def test_where_a_chain_has_passed_is_its_mean_and_covariance():
    made = Chain(responses_with(np.ones((6, 3)), [0, 3, 6]), [MatchedShares(np.full((2, 3), 1 / 3))], Prior(),
                 np.random.default_rng(0))  # fmt: skip
    made.spread, made.intercept, made.shape = 0.5, np.array([0.3, -0.1]), np.array([[1.5, 0.2], [0.2, 0.5]])
    spread, tau, tail, mean, covariance = fits.parameters_of(made)
    np.testing.assert_allclose(mean, [made.basis @ [0.3, -0.1], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(covariance, 0.25 * made.basis @ made.shape @ made.basis.T)
    assert (spread, tau, tail) == (0.5, 0.0, made.prior.tails[made.tail])


@pytest.mark.parametrize("n_kept", [10, 80])
def test_a_run_says_where_the_chain_has_passed_after_its_burn_in(monkeypatch, n_kept):
    """Of a chain whose sweep k sets everything by k; of many sweeps some draws are kept, the last among them."""
    made = Chain(responses_with(2 * np.ones((6, 3))), [MatchedShares(np.full((6, 3), 1 / 3))], Prior(),
                 np.random.default_rng(0))  # fmt: skip
    adapting = []

    def sweep(chain):
        k = len(adapting)
        adapting.append(chain.adapting)
        chain.spread, chain.intercept = 1 + 0.1 * k, np.array([0.01 * k, 0.0])
        chain.coefficients, chain.tail = np.array([1 + 0.02 * k]), k % 6

    monkeypatch.setattr(Chain, "sweep", sweep)
    settings = Settings(n_sweeps=n_kept + 4, n_burn=4, n_samples=5)
    model, draws, samples = fits._run(made, (), Votes(), settings)
    assert adapting == [True] * 4 + [False] * n_kept
    kept = np.arange(4, n_kept + 4)
    spreads = 1 + 0.1 * kept
    assert model.spread == pytest.approx((spreads.mean(), spreads.std()))
    looked_at = (
        spreads if n_kept <= fits.N_DRAWS else spreads[np.linspace(80, 0, 32, endpoint=False).round().astype(int) - 1]
    )
    np.testing.assert_allclose([draw.width for draw in draws], np.sort(looked_at))
    np.testing.assert_allclose([draw.width for draw in model.draws], np.sort(looked_at)[::2])
    assert draws[-1].width == pytest.approx(spreads[-1])
    mean = np.vstack([made.basis @ [0.01 * kept.mean(), 0.0], np.full(3, 1 + 0.02 * kept.mean())])
    np.testing.assert_allclose(model.parameters.coefficients, mean)
    assert model.parameters.theta == pytest.approx(np.square(mean[1]).sum())
    expected = np.mean([s**2 for s in spreads]) * made.basis @ made.shape @ made.basis.T
    np.testing.assert_allclose(model.parameters.covariance, expected)
    assert model.tail == np.median(made.prior.tails[kept % 6])
    assert (model.n_rows, model.n_graded, model.persons, model.annotator_deviation) == (6, 0, None, 0.0)
    assert samples.shape == (5, 6, 3)
    np.testing.assert_allclose(samples[0], softmax(made.Z))
    assert model.error == pytest.approx((0.0, 0.0, 0.0))

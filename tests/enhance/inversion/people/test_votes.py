"""Votes through `Inversion`: the contract of answers of people, exactness at three labels, persons, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare, invwishart, ks_2samp, kstest
from three_labels import COVARIANCE, integrate, of_counts, precision

from contone import Inversion, Votes
from contone.enhance.inversion.people.answers import VOTES, Traits
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.model import Draw, PeopleFit, sort_responses
from contone.enhance.inversion.people.priors import LogNormal, Prior
from contone.enhance.inversion.people.regression import find_mixture, fit_regression
from contone.exceptions import InputError, LabelError, LabelWarning
from contone.models import load_model, save_model
from contone.numerics.simplex import softmax

SHORT = {"n_sweeps": 60, "n_burn": 20}


def make(n=200, k=3, q=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = softmax(X @ rng.normal(size=(4, q)) + rng.normal(size=(n, q)))
    return X, rng.multinomial(k, truth).astype(float), truth


@pytest.fixture(scope="module")
def fitted():
    X, Y, truth = make()
    return Inversion(degradation="votes", **SHORT).fit(X, Y), X, Y, truth


def test_rows_at_given_parameters_have_the_posterior_of_integration():
    """Importance sampling against a grid, normal prior (nu = 1e6), with unasked labels and without votes."""
    counts = np.array([[1, 0, 0], [0, 0, 3], [4, 2, 0], [40, 9, 1], [np.nan, 2, 1], [0, 0, 0]], dtype=float)
    mean, nobody = np.array([0.7, -0.2, -0.5]), Traits(np.ones(1), np.zeros((1, 3)))
    draw = Draw(mean, np.zeros(0), 1.0, precision(COVARIANCE), 1e6, nobody, nobody)
    fit = PeopleFit.__new__(PeopleFit)
    object.__setattr__(fit, "draws", (draw,) * 12)
    object.__setattr__(fit, "kind", VOTES)
    found = fit.weigh(sort_responses(VOTES, counts, len(counts)), [], (draw,) * 12)
    for row, asked in enumerate(counts):
        assert_allclose(found.mean[row], integrate(mean, COVARIANCE, of_counts(asked))[0], atol=0.012)


def test_answers_are_better_than_shares_and_expect_their_own_error(fitted):
    method, X, Y, truth = fitted

    def kl(D):
        return float((truth * np.log(truth / D)).sum(axis=1).mean())

    smoothed = (Y + 1 / 3) / (Y + 1 / 3).sum(axis=1, keepdims=True)
    D = method.label_distributions_
    assert kl(D) < 0.7 * kl(smoothed)
    assert 0.5 < method.expected_error_.mean / kl(D) < 2.0
    lower, upper = method.intervals(level=0.9)
    assert 0.84 < np.mean((lower < truth) & (truth < upper)) < 0.96
    assert kl(method.predict(X)) > kl(method.enhance(X, Y))


def test_new_rows_depend_on_nothing_but_themselves(fitted):
    method, X, Y, _ = fitted
    whole = method.enhance(X, Y)
    order = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(method.enhance(X[order], Y[order]), whole[order])
    assert_array_equal(method.enhance(X[7:9], Y[7:9]), whole[7:9])
    assert_array_equal(method.predict(X[:3]), method.enhance(X[:3], 0 * Y[:3]))


def test_rows_beyond_max_rows_and_lazy_ones_get_the_answer_of_new_rows():
    dask = pytest.importorskip("dask.array")
    X, Y, _ = make()
    whole = Inversion(degradation="votes", max_rows=100, **SHORT).fit(X, Y)
    assert_array_equal(whole.label_distributions_, whole.enhance(X, Y))
    lazy = Inversion(degradation="votes", max_rows=100, **SHORT)
    answer = lazy.fit_enhance(dask.from_array(X, chunks=(70, -1)), dask.from_array(Y, chunks=(70, -1)))
    assert_allclose(answer.compute(), lazy.enhance(X, Y), atol=1e-12)


def test_tensors_and_files_and_frames(fitted, tmp_path):
    method, X, Y, _ = fitted
    save_model(method, tmp_path / "model.zip")
    assert_array_equal(load_model(tmp_path / "model.zip").enhance(X, Y), method.enhance(X, Y))
    torch = pytest.importorskip("torch")
    again = Inversion(degradation=Votes(), **SHORT).fit_enhance(torch.from_numpy(X), torch.from_numpy(Y))
    assert isinstance(again, torch.Tensor)
    assert_allclose(again.numpy(), method.label_distributions_, atol=1e-6)


def test_known_degrees_stay_and_labels_that_were_not_on_offer_get_one():
    X, Y, truth = make(120)
    degrees = np.full_like(truth, np.nan)
    degrees[:20] = truth[:20]
    Y[:, 0] += 1
    Y[:, 2] = np.where(np.arange(120) % 2, np.nan, Y[:, 2])
    method = Inversion(degradation="votes", n_samples=40, **SHORT)
    D = method.fit_enhance(X, Y, degrees=degrees)
    assert_allclose(D[:20], truth[:20])
    assert (D > 0).all()
    assert method.samples_.shape == (40, 120, 3)
    assert np.abs(method.samples_.mean(axis=0) - D).mean() < 0.02


def test_a_spammer_among_twelve_is_last_and_one_who_leans_is_named():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    Z = 1.5 * X @ rng.normal(size=(3, 3)) + 0.7 * rng.normal(size=(150, 3))
    item, person = np.repeat(np.arange(150), 4), np.concatenate([rng.permutation(12)[:4] for _ in range(150)])
    offset = np.zeros((12, 3))
    offset[3, 1] = 3.0
    logits = np.where((person == 7)[:, None], 0.0, Z[item] + offset[person])
    votes = np.stack([rng.multinomial(1, p) for p in softmax(logits)])
    frame = pd.DataFrame(votes, columns=["a", "b", "c"])
    method = Inversion(degradation="votes").fit(X[item], frame, groups=item, annotators=[f"p{w}" for w in person])
    told = method.annotators_
    assert told["annotator"].iloc[-1] == "p7"
    assert told.set_index("annotator").loc["p3", "too_often"] == "b"
    assert (told["bits_lower"] <= told["bits"]).all()
    assert (told["bits"] <= told["bits_upper"]).all()
    assert told["answers"].sum() == len(item)
    assert "12 people" in method.summary()


def test_single_answers_are_their_counts():
    """Without persons, one row per answer says what the counts say."""
    X, Y, _ = make(100, k=2)
    item = np.repeat(np.arange(100), 2)
    rows = np.concatenate([np.repeat(np.eye(3), row.astype(int), axis=0) for row in Y])
    counted = Inversion(degradation="votes", **SHORT).fit_enhance(X, Y)
    single = Inversion(degradation="votes", **SHORT).fit_enhance(X[item], rows, groups=item)
    assert np.abs(single - counted).mean() < 0.04


def test_one_class_per_row_is_one_vote_and_the_spread_is_not_in_the_data():
    X, Y, _ = make(150, k=1)
    with pytest.warns(LabelWarning, match="one vote per row"):
        method = Inversion(degradation="auto", **SHORT).fit(X, Y.argmax(axis=1))
    assert method.degradation_ == Votes()
    assert "not in the data" in method.summary()


@pytest.mark.parametrize("k", [1, 5])
def test_one_vote_per_item_leaves_the_spread_to_its_prior(k):
    _, Y, _ = make(n=400, k=k)
    chain, prior = Chain(sort_responses(VOTES, Y, len(Y)), [], Prior(), np.random.default_rng(0)), Prior().spread
    drawn = []
    for _ in range(150):
        chain.sweep()
        drawn.append(np.log(chain.spread))
    if k == 1:
        assert ks_2samp(drawn, np.log([prior.draw(chain.rng) for _ in range(2000)])).pvalue > 1e-3
    else:
        assert np.std(drawn[50:]) < 0.5 * prior.deviation


def test_small_spreads_are_believed_in_and_the_density_is_that_of_the_draws():
    prior = LogNormal(1.3, 0.4, small=0.1)
    grid = np.linspace(-12.0, 4.0, 4001)
    density = np.exp([prior.log_density(x) for x in grid])
    cumulated = np.cumsum(density) / density.sum()
    drawn = np.log([prior.draw(np.random.default_rng(seed)) for seed in range(2000)])
    assert kstest(drawn, lambda x: np.interp(x, grid, cumulated)).pvalue > 1e-3
    slope = np.gradient(np.log(density), grid)
    assert_allclose([prior.slope(x) for x in grid[1:-1]], slope[1:-1], atol=1e-2)


def test_features_that_tell_everything_leave_no_spread():
    """The votes of items whose shares are a function of X: with a log-normal prior alone it stayed at .35."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    Y = rng.multinomial(3, softmax(X @ rng.normal(size=(4, 4))))
    assert Inversion(degradation="votes").fit(X, Y).solution_.info["spread"] < 0.3


def test_one_vote_per_item_predicts_what_the_regression_tells():
    """Matching by two moments and sixteen points made shares sharper, a KL of .002."""
    X, Y, _ = make(300, k=1)
    method = Inversion(degradation="votes", **SHORT).fit(X, Y)
    told = method.fit_.maps[0](X)
    assert (told * np.log(told / method.predict(X))).sum(axis=1).mean() < 3e-4


def test_the_mixture_is_found_that_made_the_votes():
    """Of two models and people who choose anything; also where the last label is not on offer."""
    rng = np.random.default_rng(0)
    models = [softmax(3.0 * rng.normal(size=(20_000, 4))) for _ in range(2)]
    truth = 0.6 * models[0] + 0.3 * models[1] + 0.1 / 4
    votes = rng.multinomial(1, truth).astype(float)
    assert_allclose(find_mixture(models, votes)[1], [0.6, 0.3, 0.1], atol=0.02)
    votes = rng.multinomial(1, truth[:, :3] / truth[:, :3].sum(axis=1, keepdims=True)).astype(float)
    votes = np.pad(votes, ((0, 0), (0, 1)), constant_values=np.nan)
    assert_allclose(find_mixture(models, votes)[1], [0.6, 0.3, 0.1], atol=0.04)
    assert find_mixture(models[:1], rng.multinomial(1, models[0]).astype(float))[1][-1] < 0.01


def test_what_is_not_linear_is_told_by_closeness():
    """One vote per item on a ring: a linear model tells nothing there, and the mixture leaves it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    inside = (X**2).sum(axis=1) < 1.4
    votes = np.where(rng.random(600)[:, None] < 0.8, np.eye(2)[inside.astype(int)], np.eye(2)[1 - inside.astype(int)])
    regression, shares = fit_regression(X, votes, np.arange(600), 60, rng)
    assert regression.mixture[1] > 0.8
    assert ((shares[:, 1] > 0.5) == inside).mean() > 0.85


@pytest.mark.parametrize("bad", [-1.0, 0.5, 1e12])
def test_what_is_no_count_is_refused(bad, fitted):
    X, Y, _ = make(30)
    Y[4, 1] = bad
    with pytest.raises(LabelError, match="Y"):
        Inversion(degradation="votes", **SHORT).fit(X, Y)
    with pytest.raises(LabelError):
        fitted[0].enhance(X, Y)


def test_odd_answers_are_counted_in_sentences():
    X, Y, _ = make(60)
    Y[:5] = 0
    with pytest.warns(LabelWarning, match="5 of 60"):
        D = Inversion(degradation="votes", **SHORT).fit_enhance(X, Y)
    assert_allclose(D.sum(axis=1), 1.0)
    item, rows = np.repeat(np.arange(30), 2), np.tile(np.eye(3), (20, 1))
    method = Inversion(degradation="votes", **SHORT)
    with pytest.warns(LabelWarning, match="answered the same item before"):
        method.fit(X[item], rows, groups=item, annotators=item % 3)
    with pytest.warns(LabelWarning, match="one person only"):
        method.fit(X, rows, groups=np.arange(60), annotators=["a"] * 60)
    rows[4] = [1, 0, 1]
    with pytest.warns(LabelWarning, match='1 of 60 rows hold several votes .* .first: row number 4, .* use "marks"'):
        method.fit(X[item][::-1], rows, groups=item[::-1], annotators=np.arange(60))
    rows[4] = [0, 1, 0]
    with pytest.raises(LabelError, match="no answer about any item"):
        method.fit(X, 0 * Y, groups=np.arange(60))
    with pytest.warns(LabelWarning, match="Nobody answered 1 of 30 items .first: item number 0"):
        method.fit(X[item], rows * (item > 0)[:, None], groups=item)
    with pytest.raises(InputError, match="annotators needs groups"):
        method.fit(X, Y, annotators=item)
    with pytest.raises(InputError, match="orders of several people"):
        Inversion(degradation="order").fit(X, rows, groups=item, annotators=item)


def test_what_answers_leave_to_beliefs_is_said():
    X, Y = np.random.default_rng(0).normal(size=(20, 2)), np.tile([[2.0, 1.0, 0.0]], (20, 1))
    with pytest.warns(LabelWarning, match="Nobody ever chose 1 of 3 labels .first: label number 2"):
        D = Inversion(degradation="votes", **SHORT).fit_enhance(X, Y)
    assert (D[:, 2] > 0).all()
    assert (D[:, 2] < D[:, 1]).all()
    with pytest.warns(LabelWarning, match="one item only"):
        D = Inversion(degradation="votes", **SHORT).fit_enhance(X[[0, 0, 0]], np.eye(3), groups=["a"] * 3)
    assert D.shape == (1, 3)


@pytest.mark.parametrize(("reading", "rows"), [("votes", np.eye(3)), ("marks", 1.0 - np.eye(3))])
def test_labels_of_several_people_are_answers_whatever_the_rule(reading, rows):
    item = np.repeat(np.arange(30), 2)
    X = np.random.default_rng(0).normal(size=(30, 2))[item]
    Y = np.random.default_rng(1).permutation(np.tile(rows, (20, 1)))
    expected = Inversion(degradation=reading, **SHORT).fit_enhance(X, Y, groups=item)
    with pytest.warns(LabelWarning, match=f'"{reading}" says the same'):
        found = Inversion(**SHORT).fit_enhance(X, Y, groups=item)
    assert_allclose(found, expected)


CASES = [(n, k, w, 100, 360) for n in (100, 300, 1000) for k in (1, 3, 10) for w in (0, 12)]
LONG = [pytest.param(*case, marks=pytest.mark.exhaustive) for case in CASES]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k", "n_persons", "n_draws", "n_sweeps"), [(60, 3, 8, 24, 80), *LONG])
def test_ranks_of_the_truth_are_uniform(n, k, n_persons, n_draws, n_sweeps):
    """Simulation-based calibration (Talts et al. 2018) of a degree, the spread and tau: chi-square over five bins.

    With 100 draws a mean rank of .67 in place of .5 (ranks with the density 2 r) is found with a power of .98 at the
    level .001; with 24 of .1, so that the short one sees only what is far off. With one vote per item and persons the
    spread is held at the median of its prior, so that it has no rank.
    """
    ranks = np.array([_rank(seed, n, k, n_persons, n_sweeps) for seed in range(n_draws)])
    for column in ranks.T:
        counts = np.histogram(column, np.linspace(0.0, 1.0, 6))[0]
        assert chisquare(counts).pvalue > 1e-3, counts


def _rank(seed, n, k, n_persons, n_sweeps):
    """Ranks of one share, the spread and tau of a set that is drawn from the prior, among draws of the chain."""
    rng, prior = np.random.default_rng(seed), Prior()
    spread, tail, axis = prior.spread.draw(rng), float(rng.choice(prior.tails)), float(rng.choice(prior.axes))
    if k == 1:  # what one vote leaves open, and the chain does not draw
        spread, tail = spread if n_persons == 0 else prior.spread.median, float(prior.tails[-1])
        axis = axis if n_persons else 0.0
    start = Chain(sort_responses(VOTES, np.zeros((1, 3)), 1), [], prior, rng)
    basis, believed = start.basis, start.belief(axis)
    intercept = prior.coefficient * rng.standard_normal(2)
    weight = rng.gamma(tail / 2, 2 / tail, size=(n, 1))
    E = rng.normal(size=(n, 2)) @ np.linalg.cholesky(_shape(believed, prior, rng)).T
    Z = (intercept + spread * E / weight**0.5) @ basis.T
    tau, kappa = prior.offset.draw(rng), prior.sharpness.draw(rng)
    if n_persons == 0:
        responses = sort_responses(VOTES, np.stack([rng.multinomial(k, p) for p in softmax(Z)]).astype(float), n)
    else:
        item = np.repeat(np.arange(n), k)
        person = np.concatenate([rng.permutation(n_persons)[:k] for _ in range(n)])
        root = tau * basis @ np.linalg.cholesky(_shape(believed, prior, rng))
        b, a = rng.normal(size=(n_persons, 2)) @ root.T, np.exp(kappa * rng.standard_normal(n_persons))
        votes = np.stack([rng.multinomial(1, p) for p in softmax(a[person, None] * Z[item] + b[person])])
        responses = sort_responses(VOTES, votes.astype(float), n, item, person + 1)
    chain = Chain(responses, [], prior, rng, n_persons=n_persons)
    seen = []
    for sweep in range(n_sweeps):
        chain.adapting = sweep < n_sweeps // 3
        chain.sweep()
        if not chain.adapting:
            seen.append((softmax(chain.Z[:1])[0, 0], chain.spread, chain.tau))
    asked = [0] + [1] * (k > 1 or n_persons == 0) + [2] * (n_persons > 0)
    return (np.array(seen) < (softmax(Z[:1])[0, 0], spread, tau)).mean(axis=0)[asked]


def _shape(believed, prior, rng):
    R = invwishart.rvs(1 + prior.shape, believed, random_state=rng)
    return R * 2 / np.trace(R)

"""Rehearsals: data like the user's, by the mathematics of the model that makes them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from contone import CumulativeMass, Inversion, Rehearsal, TopK
from contone.enhance.inversion import simulate
from contone.enhance.inversion.logistic_normal import Flips, Spread
from contone.exceptions import ArgumentError, LabelWarning
from contone.numerics.simplex import kl_divergence, softmax
from contone.trust import rehearsal as rehearsing
from contone.trust.rehearsal import Replicate


@pytest.fixture(scope="module")
def model_data():
    """X (250, 3), L and D (250, 5) drawn from the model."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 3))
    Z = X @ rng.normal(size=(3, 5)) * 0.3 + 0.4 * rng.normal(size=(250, 5))
    D = softmax(Z)
    return X, CumulativeMass().apply(D).astype(float), D


QUICK = Inversion(n_sweeps=80, n_burn=30)


@pytest.fixture(scope="module")
def rehearsal(model_data):
    X, L, _ = model_data
    return Rehearsal(X, L, QUICK, n_replicates=8)


def shares(L):
    return np.bincount(L.sum(axis=1).astype(int), minlength=L.shape[1] + 1) / len(L)


def test_every_replicate_obeys_the_rule_for_the_same_features(model_data, rehearsal):
    np.testing.assert_array_equal(rehearsal.X, model_data[0])
    for replicate in rehearsal.replicates:
        np.testing.assert_allclose(replicate.distributions.sum(axis=1), 1.0)
        np.testing.assert_array_equal(CumulativeMass().apply(replicate.distributions), replicate.labels)


def test_cardinalities_and_frequencies_are_those_of_the_data_in_expectation(model_data, rehearsal):
    L = model_data[1]
    labels = [r.labels for r in rehearsal.replicates]
    assert 0.5 * np.abs(np.mean([shares(M) for M in labels], axis=0) - shares(L)).sum() < 0.06
    assert np.abs(np.mean([M.mean(axis=0) for M in labels], axis=0) - L.mean(axis=0)).max() < 0.06
    assert rehearsal.misfit < 0.06
    assert rehearsal.warnings == ()


def spread(D):
    """Root mean square of the centred logarithms."""
    Z = np.log(D)
    return np.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True))))


def test_replicates_differ_in_their_parameters_and_a_seed_repeats_them(model_data, rehearsal):
    spreads = [spread(r.distributions) for r in rehearsal.replicates]
    assert len(set(spreads)) == len(spreads)
    again = Rehearsal(*model_data[:2], QUICK, n_replicates=8)
    for one, other in zip(rehearsal.replicates, again.replicates, strict=True):
        np.testing.assert_array_equal(one.distributions, other.distributions)


def test_the_limit_is_ahead_of_the_fitted_model_and_of_uniform(rehearsal):
    truth, best = rehearsal.replicates[0].distributions, rehearsal.limits[0]
    own = rehearsal.model.fit_.posterior_of_block(
        rehearsal.X, rehearsal.replicates[0].labels, np.random.default_rng(0)
    ).mean
    kl = [float(kl_divergence(truth, answer).mean()) for answer in (best, own, np.full_like(truth, 0.2))]
    assert kl[0] < kl[1] < kl[2]


def test_information_grows_with_the_rows_and_is_less_than_that_of_the_degrees(model_data):
    X, L, _ = model_data
    fit = clone(QUICK).fit(X, L).fit_
    half, whole = (
        simulate.learn_information(fit, X[:n], L[:n], np.random.default_rng(0)) for n in (len(X) // 2, len(X))
    )
    assert np.linalg.eigvalsh(whole.mean).max() < 1.0
    assert np.trace(whole.shape) / len(L) < len(whole.shape)  # z itself would give 1 per row and entry
    assert 1.5 < np.trace(whole.shape) / np.trace(half.shape) < 2.7


def test_directions_that_labels_leave_open_are_drawn_from_the_prior():
    """Without information, exp(A) has log variances with the variance 2 / strength, and correlations 1 / strength."""
    rng, strength = np.random.default_rng(0), 400.0
    draws = np.stack([simulate._draw_shape(np.zeros((6, 6)), strength, 3, rng) for _ in range(4000)])
    np.testing.assert_allclose(np.log(draws[:, 0, 0]).var(), 2 / strength, rtol=0.1)
    np.testing.assert_allclose(draws[:, 0, 1].var(), 1 / strength, rtol=0.1)


def test_spread_draws_have_the_moments_of_its_posterior(rehearsal):
    fit, rng = rehearsal.model.fit_, np.random.default_rng(0)
    draws = np.array([fit.believed_spread.at(rng.standard_normal()) for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(), fit.spread.mean, rtol=0.01)
    np.testing.assert_allclose(draws.std(), fit.spread.deviation, rtol=0.1)


@pytest.mark.parametrize("k", [2, 5, 8])
def test_replicates_share_out_the_posterior_of_the_spread(k, rehearsal):
    """The normal scores have mean 0 and variance 1; so the spreads straddle their posterior."""
    scores = simulate.even_scores(k, np.random.default_rng(0))
    fit = rehearsal.model.fit_
    logs = np.log([fit.believed_spread.at(score) for score in scores])
    np.testing.assert_allclose(logs.var(), np.log1p(fit.spread_deviation**2), rtol=1e-9)
    np.testing.assert_allclose(logs.mean() + 0.5 * logs.var(), np.log(fit.spread.mean), rtol=1e-9)


def test_wrong_labels_are_imitated():
    D = softmax(np.random.default_rng(0).normal(size=(4000, 6)))
    L = simulate.draw_labels(CumulativeMass(), D, Flips(0.1, 0.1), np.random.default_rng(1))
    assert np.mean(CumulativeMass().apply(D) != L) == pytest.approx(0.1, abs=0.01)
    assert L.sum(axis=1).min() >= 1


def test_where_only_the_order_counts_every_row_keeps_its_number_of_labels(model_data):
    X, L, _ = model_data
    found = Rehearsal(X, L, Inversion(degradation="order", n_sweeps=40, n_burn=10), n_replicates=1).replicates[0]
    np.testing.assert_array_equal(found.labels.sum(axis=1), L.sum(axis=1))
    lowest = np.where(found.labels > 0, found.distributions, np.inf).min(axis=1)
    assert (lowest >= np.where(found.labels > 0, -np.inf, found.distributions).max(axis=1)).all()


def test_graded_rows_say_how_wide_the_degrees_are_spread():
    """Three labels, one marked per row: labels leave the spread to its prior, which is far too narrow here."""
    rng = np.random.default_rng(2)
    D = softmax(1.5 * rng.normal(size=(200, 3)))
    L, X = TopK(1).apply(D), rng.normal(size=(200, 2))
    degrees = np.where(np.arange(200)[:, None] < 15, D, np.nan)
    model = Inversion(degradation=TopK(1), n_sweeps=60, n_burn=20)
    blind, told = (Rehearsal(X, L, model, degrees=known, n_replicates=4) for known in (None, degrees))
    drawn = ([spread(replicate.distributions) for replicate in found.replicates] for found in (blind, told))
    error = [abs(np.log(np.mean(spreads) / spread(D))) for spreads in drawn]
    assert error[1] < 0.35 < error[0]
    for replicate in told.replicates:
        np.testing.assert_array_equal(replicate.degrees[:15], replicate.distributions[:15])
        assert np.isnan(replicate.degrees[15:]).all()


def test_a_sample_of_the_rows(model_data):
    X, L, _ = model_data
    few = Rehearsal(X, L, QUICK, n_replicates=1, max_rows=50)
    np.testing.assert_array_equal(few.X, X[few.rows])
    np.testing.assert_array_equal(few.labels, L[few.rows])
    assert few.replicates[0].labels.shape == (50, 5)


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.parametrize("kind", ["torch", "dask"])
def test_other_kinds_of_arrays_are_rehearsed_in_memory(model_data, kind):
    module = pytest.importorskip("torch" if kind == "torch" else "dask.array")
    convert = module.from_numpy if kind == "torch" else lambda A: module.from_array(A, chunks=(100, -1))
    X, L, _ = model_data
    one, other = (Rehearsal(*data, QUICK, n_replicates=1) for data in ((X, L), (convert(X), convert(L))))
    np.testing.assert_allclose(other.replicates[0].distributions, one.replicates[0].distributions, atol=1e-6)


def test_a_model_that_does_not_fit_is_said_to():
    """All labels of a row, or one: no distribution of this kind degrades so."""
    rng = np.random.default_rng(0)
    L = np.where(rng.random((200, 1)) < 0.5, 1.0, np.eye(5)[rng.integers(0, 5, 200)])
    with pytest.warns(LabelWarning):
        rehearsal = Rehearsal(rng.normal(size=(200, 2)), L, QUICK, n_replicates=2)
    assert rehearsal.warnings


def test_one_label_and_three_rows():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.warns(LabelWarning):
        one = Rehearsal(X, np.ones((3, 1)), QUICK, n_replicates=2)
    np.testing.assert_array_equal(one.replicates[1].distributions, 1.0)
    three = Rehearsal(X, np.eye(3), QUICK, n_replicates=2)
    assert all(np.isfinite(r.distributions).all() for r in three.replicates)


def test_arguments_are_refused_by_name(model_data):
    X, L, _ = model_data
    with pytest.raises(ArgumentError, match="n_replicates"):
        Rehearsal(X, L, n_replicates=0)
    with pytest.raises(ArgumentError, match="model"):
        Rehearsal(X, L, model="inversion")


def test_degrees_at_an_edge_are_remarked():
    """Five labels, one marked in every row: nothing says how uneven degrees are, only that they are very uneven."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    L = np.eye(5)[(3.0 * X @ rng.normal(size=(4, 5))).argmax(axis=1)]
    short = Inversion(n_sweeps=40, n_burn=20)
    rehearsal = Rehearsal(X, L, model=short, n_replicates=2)
    assert "edge" in rehearsal.remarks[0]
    even = CumulativeMass().apply(np.exp(0.3 * X) / np.exp(0.3 * X).sum(axis=1, keepdims=True)).astype(float)
    assert not any("edge" in text for text in Rehearsal(X, even, model=short, n_replicates=2).remarks)


# ---------------------------------------------------------------------------------------------- its parts by hand


def made(L, D=None, degrees=None):
    return Replicate(L if D is None else D, L, None, degrees)


def test_cardinalities_are_compared_by_total_variation_and_chance_is_that_between_replicates():
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, np.nan, 0.0]])
    np.testing.assert_allclose(rehearsing.cardinality_shares(rows), [0, 0.75, 0.25, 0])
    np.testing.assert_allclose(rehearsing.cardinality_shares(rows + 2.0, lowest=2.0), [0, 0.75, 0.25, 0])
    real = np.ones((100, 3))  # all three labels
    some = np.where(np.arange(100)[:, None] < 60, real, np.eye(3)[[0] * 100])  # 60 % of the rows have all, 40 % one
    less = np.where(np.arange(100)[:, None] < 20, real, np.eye(3)[[0] * 100])
    misfit, chance = rehearsing._compare_cardinalities(real, (made(some), made(less)), CumulativeMass())
    assert misfit == pytest.approx(0.6)  # 40 % of the rows in the mean have all
    assert chance == pytest.approx(0.4)  # between the two
    misfit, chance = rehearsing._compare_cardinalities(real, (made(some), made(some)), CumulativeMass())
    assert (misfit, chance) == (pytest.approx(0.4), pytest.approx(np.sqrt(2 / 100)))  # two numbers occur

    class Levels:
        lowest = 1.0

    assert rehearsing._compare_cardinalities(1 + real, (made(1 + some),) * 2, Levels())[0] == pytest.approx(0.4)


def test_a_rehearsal_warns_beyond_chance_and_beyond_its_bounds():
    def doubts(*how):
        return len(rehearsing._reasons_to_doubt(*how))

    assert [doubts(misfit, 0.05, 0.0) for misfit in (0.0, 0.1, 0.101, 0.9)] == [0, 0, 1, 1]
    assert [doubts(0.3, chance, 0.0) for chance in (0.2, 0.3, 0.4)] == [1, 0, 0]
    assert [doubts(0.0, 0.0, relaxed) for relaxed in (0.05, 0.051)] == [0, 1]
    assert doubts(0.9, 0.0, 0.5) == 2
    assert "30% of the rows have other numbers of labels" in rehearsing._reasons_to_doubt(0.3, 0.1, 0.0)[0]


@pytest.mark.parametrize(
    ("mean", "deviation", "edge", "said"),
    [
        (1.0, 0.2, False, ""),  # known well enough: a fifth of it
        (1.0, 0.21, False, "hardly say how uneven"),
        (2.0, 0.41, False, "hardly say how uneven"),
        (3.0, 0.1, False, ""),
        (3.01, 0.1, False, "lie at an edge: the largest one of a row is 0.75 in the mean (spread 3)"),
        (0.5, 0.0, True, "lie at an edge"),
        (0.0, 0.5, False, ""),  # no spread at all is known exactly
    ],
)
def test_what_labels_leave_open_is_remarked(mean, deviation, edge, said):
    class Known(Spread):
        def at_edge(self):
            return edge

    D = np.array([[0.7, 0.3], [0.8, 0.2]])
    remarks = rehearsing._remarks(Known(mean, deviation), (made(D), made(D)))
    assert len(remarks) == bool(said)
    assert all(said in text for text in remarks)
    assert rehearsing._remarks(Known(9.0, 0.1), (made(np.ones((2, 1))),) * 2) == ()  # one label has no spread


def test_answers_are_judged_by_the_rows_that_are_not_given():
    D = np.full((3, 2), 0.5)
    graded = np.array([[0.5, 0.5], [np.nan, np.nan], [0.5, 0.5]])
    assert made(D).judged.tolist() == [True] * 3
    assert made(D, degrees=graded).judged.tolist() == [False, True, False]
    assert made(D, degrees=D).judged.tolist() == [True] * 3  # all are given: all judge
    np.testing.assert_array_equal(rehearsing._graded(D, np.array([0, 2])), graded)
    assert rehearsing._graded(D, np.array([], dtype=int)) is None

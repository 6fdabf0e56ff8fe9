"""Rows under their labels, and what is counted of labels that were asked in part: closed forms and second ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from contone import CumulativeMass, Threshold, TopK
from contone.enhance.inversion import chain, logistic_normal, sampler, unasked
from contone.enhance.inversion.chain import count_labels
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.logistic_normal import Flips, level_moments, moments
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows, draw_weights
from contone.measurements import Order
from contone.numerics.simplex import softmax

NAN = np.nan


@pytest.mark.parametrize("tail", [3, 12])
def test_weights_of_rows_are_gamma_given_their_distance(tail):
    """Shape (nu + q - 1) / 2 and rate (nu + distance^2) / 2, in q - 1 dimensions, whatever the common shift."""
    rng = np.random.default_rng(0)
    A, C = rng.normal(size=(4, 4)), np.eye(4) - 0.25
    Sigma = C @ A @ A.T @ C
    e = C @ rng.normal(size=4)
    distance = e @ np.linalg.pinv(Sigma, rcond=1e-10) @ e
    precision = np.linalg.inv(Sigma + 0.7)
    found = draw_weights(np.tile(e[:, None] + 5.0, (1, 20_000)), precision, tail, np.random.default_rng(1))
    assert stats.kstest(found, stats.gamma((tail + 3) / 2, scale=2 / (tail + distance)).cdf).pvalue > 1e-3


def rows_with(flips, L, rule=None):
    return Rows(rule or CumulativeMass(), np.asarray(L, dtype=float), flips)


@pytest.mark.parametrize("flips", [Flips(0.3, 0.1), Flips(0.0, 0.2)])
def test_labels_without_error_have_the_likelihood_of_what_was_marked(flips):
    """Up to a constant of the row: differences between two patterns; an entry that nobody asked about says nothing."""
    L = np.array([[1, 0, 1], [0, 0, 1], [1, NAN, 0]])
    rows = rows_with(flips, L)
    patterns = np.random.default_rng(0).random((2, 3, 3)) < 0.5
    missed, false = (max(x, logistic_normal.IMPOSSIBLE) for x in flips)

    def expected(positive):
        chance = np.where(positive, 1 - missed, false)
        return np.nansum(np.log(np.where(L > 0, chance, 1 - chance)) * np.where(np.isnan(L), np.nan, 1.0), axis=1)

    found = [flips.log_likelihood(p.T, rows.given, rows.asked) for p in patterns]
    np.testing.assert_allclose(found[0] - found[1], expected(patterns[0]) - expected(patterns[1]), rtol=1e-6)


def test_shares_of_wrong_entries_are_drawn_from_beta_distributions():
    """Those of the prior, and one more for each entry among positive labels, and among the others, that was asked."""
    rows = rows_with(Flips(0.1, 0.1), [[1, 0, 1, NAN], [0, 0, 1, 1]])
    rows.positive = np.array([[1, 1, 0, 1], [1, 0, 1, 0]]).T > 0
    asked = []

    class Betas:
        def beta(self, a, b):
            asked.append((a, b))
            return a / (a + b)

    rows.draw_noise(Betas())
    (a, b), (c, d) = sampler.PRIOR_OF_NOISE
    # positive: 1 and 0 marked (a miss), then 0 (a miss) and 1; negative: 1 (false), then 0 and 1 (false)
    assert asked == [(a + 2, b + 2), (c + 2, d + 1)]
    assert rows.noise == pytest.approx([x / (x + y) for x, y in asked])


@pytest.mark.parametrize("rule", [CumulativeMass(), TopK(2), Threshold(0.3, at_least_one=False), Order()], ids=str)
def test_rows_start_where_their_labels_are_and_say_which(rule):
    D = softmax(np.random.default_rng(0).normal(size=(50, 5)))
    L = (TopK(2) if isinstance(rule, Order) else rule)._apply(D).astype(float)
    rows = Rows(rule, L)
    assert rows.n_relaxed == 0
    assert rule.agrees(softmax(rows.Z.T), L).all()
    np.testing.assert_array_equal(rows.exact_labels(), L)
    mean, covariance = rows.moments()
    expected = moments(L.T @ L, 50)
    np.testing.assert_allclose(mean, expected[0])
    np.testing.assert_allclose(covariance, expected[1])
    if not isinstance(rule, Order):
        assert Rows(rule, L, Flips(0.1, 0.1)).exact_labels() is None


def test_levels_start_from_their_scores_and_what_a_rule_cannot_make_from_its_order():
    levels = np.random.default_rng(0).integers(0, 4, (40, 5)).astype(float)
    rows = Rows(Order(), levels)
    assert rows.exact_labels() is None
    for found, expected in zip(rows.moments(), level_moments(levels.T), strict=True):
        np.testing.assert_allclose(found, expected)
    odd = np.array([[1, 1, 1, 1.0], [1, 1, 0, 0], [1, NAN, 1, 1]])  # never more than half of four labels
    rows = Rows(CumulativeMass(), odd[:2])
    assert rows.relaxed.tolist() == [True, False]
    assert np.isnan(rows.exact_labels()[0]).all()
    np.testing.assert_array_equal(rows.exact_labels()[1], odd[1])
    noisy = Rows(CumulativeMass(), odd[:2], Flips(0.1, 0.1))
    assert noisy.n_relaxed == 0  # other labels may have been near


@pytest.mark.parametrize("way", ["label by label", "all at once"])
def test_what_nothing_binds_is_proposed_from_its_normal_distribution_with_the_weights_of_rows(way, monkeypatch):
    """N(m, Sigma / w) up to a common shift, whatever the rows start from."""
    n, q, m = 10_000, 3, np.array([0.5, -0.2, -0.3])
    L = np.full((n, q), NAN)
    rows, rng = Rows(Threshold(0.3, at_least_one=False), L), np.random.default_rng(0)
    A, C = np.array([[1.0, 0, 0], [0.6, 0.7, 0], [-0.3, 0.2, 0.5]]), np.eye(q) - 1 / q
    root = np.where(np.arange(n) % 2, 0.5, 2.0)
    if way == "all at once":
        rows.proposed = []
    else:
        monkeypatch.setattr(Rows, "_leap", lambda *_: None)
    for _ in range(8):
        rows._propose(np.tile(m[:, None], n), np.linalg.inv(A @ A.T), rng, root)
    np.testing.assert_array_equal(rows.positive, rows._labels(rows.Z))
    Z = rows.Z - rows.Z.mean(axis=0)
    np.testing.assert_allclose(Z.mean(axis=1), m, atol=0.05)
    for some, w in ((root == 0.5, 0.25), (root == 2.0, 4.0)):
        np.testing.assert_allclose(w * np.cov(Z[:, some]), C @ A @ A.T @ C, atol=0.05)


@pytest.mark.parametrize(
    ("n", "q", "single", "dtype"), [(5, 3, True, "f4"), (4, 3, True, "f8"), (5, 3, False, "f8"), (5, 64, False, "f8"),
                                    (5, 65, False, "f4"), (4, 65, False, "f8")])  # fmt: skip
def test_many_rows_are_kept_in_single_precision_where_that_is_wanted_or_labels_are_many(
    n, q, single, dtype, monkeypatch
):
    monkeypatch.setattr(sampler, "MANY_ROWS", 5)
    L = np.eye(q)[:n] if q >= n else np.eye(q)[np.arange(n) % q]
    assert Rows(CumulativeMass(), L, single=single).Z.dtype == dtype
    L[0, 1] = NAN  # what is redrawn beside the sweep is in double precision
    assert Rows(CumulativeMass(), L, single=single).Z.dtype == "f8"


def test_a_chain_is_one_operation_where_log_weights_are_all_that_moves():
    class Whole:
        takes_factors = False

        def run_chain(self, Z, bound, mean, precision, draws, length, sums):
            return None if draws is None else Z + 1.0

    D = softmax(np.random.default_rng(0).normal(size=(6, 3)))
    L = CumulativeMass().apply(D).astype(float)
    plain, heavy, graded, noisy = (Rows(CumulativeMass(), L, **how) for how in (
        {}, {"tail": 5.0}, {}, {"noise": Flips(0.1, 0.1)}))  # fmt: skip
    graded.hold(place_grades(np.array([0]), D[:1], L))
    for rows, possible in ((plain, True), (heavy, False), (graded, False), (noisy, False)):
        rows.sweeps, before, averages = Whole(), rows.Z.copy(), Averages(rows.Z, 0, 0)
        assert not rows.run(rows.Z, np.eye(3), None, 9, 2, averages)
        assert rows.run(rows.Z, np.eye(3), "draws", 9, 2, averages) == possible
        np.testing.assert_array_equal(rows.Z, before + possible)
        assert averages.n == (7 if possible else 0)


# ------------------------------------------------------------------------------------------------ asked in part


def test_labels_meet_as_often_as_where_both_were_asked():
    rng = np.random.default_rng(0)
    L = (rng.random((4000, 3)) < [0.6, 0.3, 0.5]).astype(float)
    L[:, 1] = np.where(rng.random(4000) < 0.5, L[:, 0], L[:, 1])
    np.testing.assert_allclose(unasked.meetings(L), L.T @ L, atol=0.5)  # half a count beside frequencies
    hidden = np.where(rng.random(L.shape) < 0.3, NAN, L)
    found = unasked.meetings(hidden)
    for j in range(3):
        assert found[j, j] == pytest.approx(4000 * np.nanmean(hidden[:, j]), abs=0.5)
        for k in set(range(3)) - {j}:
            both = ~np.isnan(hidden[:, [j, k]]).any(axis=1)
            assert found[j, k] == pytest.approx(4000 * (hidden[both, j] * hidden[both, k]).mean())
    never = L[:100].copy()
    never[:50, 0] = never[50:, 1] = NAN  # never asked together: they meet by chance
    share = np.nanmean(never, axis=0)
    assert unasked.meetings(never)[0, 1] == pytest.approx(100 * share[0] * share[1], abs=0.3)
    few = np.array([[1, 1], [1, NAN], [1, NAN], [NAN, 0.0]])  # a rate of one, where frequencies allow one half
    found = unasked.meetings(few)
    assert found[0, 1] <= found.diagonal().min() + 1e-12
    often = np.array([[1, 0]] + [[1, NAN], [NAN, 1]] * 6)  # asked together once, and not both
    # a rate of nothing, where frequencies of 7.5 and 6.5 in 8 do not allow less than 6 in 8
    assert unasked.meetings(np.array(often))[0, 1] == pytest.approx(13 * 6 / 8)
    once = np.array([[1, 1], [1, NAN], [NAN, 1], [1, NAN], [NAN, 1.0]])  # together each time: a single one
    np.testing.assert_allclose(unasked.meetings(once), 5 * 3.5 / 4)


def test_rows_start_with_as_many_labels_among_unasked_ones_as_the_asked_ones_suggest():
    """(a + 1/2) / (n + 1) of those that are open, a of n asked ones marked, the first of them; or the next number."""
    L = np.array([[1, 1, 0, NAN, NAN, NAN], [1, 0, 0, NAN, NAN, NAN], [1, 0, 0, 0, NAN, 0], [NAN] * 6])
    Z, missing, labels = unasked.start_rows(Threshold(0.05, at_least_one=False), L)
    assert not missing.any()
    open_ = [np.rint(2.5 / 4 * 3), np.rint(1.5 / 4 * 3), np.rint(1.5 / 6), np.rint(0.5 * 6)]
    np.testing.assert_array_equal((labels & np.isnan(L)).sum(axis=1), open_)
    assert labels[0].tolist() == [True, True, False, True, True, False]
    np.testing.assert_array_equal(Threshold(0.05, at_least_one=False)._apply(softmax(Z)), labels)
    for number in (1, 2, 3):  # a rule that makes one number only gets it, wherever it is
        _, missing, labels = unasked.start_rows(TopK(number), L)
        assert missing.tolist() == [number < 2, False, number > 2, False]
        assert set(labels.sum(axis=1)[~missing]) == {number}
    _, missing, labels = unasked.start_rows(TopK(1), np.array([[0.0, NAN]]))
    assert (missing.tolist(), labels.tolist()) == ([False], [[False, True]])
    exact = np.array([[1.0, 0, 0]])
    Z, missing, labels = unasked.start_rows(TopK(1), exact)
    assert (missing.tolist(), labels.tolist()) == ([False], [[True, False, False]])
    np.testing.assert_array_equal(Z, TopK(1).start(exact)[0])
    of_order = unasked.start_rows(Order(), np.array([[1.0, NAN, 0]]))[2]
    assert of_order.tolist() == [[True, False, False]]  # an order needs no number of labels


@pytest.mark.parametrize("at_least_one", [True, False])
def test_labels_are_counted_among_those_that_were_asked(at_least_one):
    L = np.array([[1, 1, 0], [1, NAN, 0], [0, NAN, 0], [NAN] * 3, [0, 0, 0], [NAN, 1, 1], [0, 0, 0], [NAN, NAN, 1]])
    found = unasked.count_among_asked(L, at_least_one=at_least_one)
    expected = np.zeros((4, 4))
    expected[3, 2], expected[2, 1], expected[2, 0], expected[2, 2], expected[1, 1] = 1, 1, 1, 1, 1
    expected[3, 0] = 0 if at_least_one else 2  # whole rows without a label say nothing where a rule marks one
    np.testing.assert_array_equal(found.counts, expected)
    np.testing.assert_array_equal(found.masks, ~np.isnan(L[[0, 1, 2, 4, 5, 6, 7]]))
    assert unasked.number_of_labels(L).tolist() == [2, 2, 1, 3, 3]  # 1 of 2 asked is 1.5 of 3: 2, the even one
    assert unasked.number_of_labels(np.array([[1, 0, 0, NAN, NAN, NAN, NAN, NAN, NAN]])).tolist() == [3]


def test_only_so_many_patterns_of_questions_are_kept(monkeypatch):
    monkeypatch.setattr(unasked, "MOST_MASKS", 7)
    L = np.where(np.random.default_rng(0).random((30, 3)) < 0.3, NAN, 1.0)
    found = unasked.count_among_asked(L, at_least_one=False)
    assert len(found.masks) == 7
    assert found.counts.sum() == (~np.isnan(L)).any(axis=1).sum()


@pytest.mark.parametrize("flips", [Flips(), Flips(0.2, 0.1)])
def test_numbers_among_asked_labels_have_the_likelihood_of_simulated_ones(flips):
    """Labels of rows from the model with entries hidden: a row with a of its entries asked has b marks so often."""
    rng = np.random.default_rng(0)
    masks = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1]]) > 0
    counts = np.zeros((5, 5))
    counts[2, :3], counts[3, :4], counts[4, 1:] = [5, 9, 4], [2, 6, 3, 1], [4, 5, 2, 1]
    partial, rule = unasked.PartialCounts(counts, masks, True), CumulativeMass(0.8)
    Z = rng.normal(size=(60_000, 4))
    labels = flips.applied(rule._apply(softmax(0.8 * Z)), rng)
    expected = 0.0
    for mask in masks:
        a = mask.sum()
        made = np.bincount(labels[:, mask].sum(axis=1), minlength=5)[: a + 1].astype(float)
        if a == 4:
            made[0] = 0.0  # a row without a label would have been left out
        seen = counts[a, : a + 1] > 0
        expected += counts[a, : a + 1][seen] @ np.log(made[seen] / made.sum())
    found = partial.likelihood(Z, rule.cardinality, flips)(np.array([0.8]))
    assert found[0] == pytest.approx(expected, abs=0.25)


@pytest.mark.parametrize("flips", [Flips(), Flips(0.2, 0.1)])
@pytest.mark.parametrize("at_least_one", [True, False])
def test_half_a_count_stands_beside_each_number_that_may_occur_among_asked_labels(flips, at_least_one):
    """Where all rows were asked the same: by counting the labels of single draws."""
    Z, mask = np.random.default_rng(0).normal(size=(30, 4)), np.array([1, 0, 1, 1]) > 0
    rule = Threshold(0.3, at_least_one)
    for asked in (mask, np.ones(4, bool)):
        a = asked.sum()
        counts = np.zeros((5, 5))
        counts[a, 1 : a + 1] = [3, 0, 1, 5][:a]
        made = np.bincount((rule._apply(softmax(1.3 * Z)) & asked).sum(axis=1), minlength=5)[: a + 1]
        made = made @ flips.numbers(int(a)) + 0.5
        if a == 4 and at_least_one:
            made[0] = 0.0  # rows without a label would have been left out
        share = made / made.sum()
        partial = unasked.PartialCounts(counts, asked[None], at_least_one)
        found = partial.likelihood(Z + 800.0, rule.cardinality, flips)(np.array([1.3]))  # a common shift says nothing
        assert found[0] == pytest.approx(counts[a, 1 : a + 1] @ np.log(share[1:]))


def test_rows_with_a_missed_mark_may_have_none():
    L = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0.0]])
    np.testing.assert_array_equal(count_labels(L, CumulativeMass()), [1, 1, 0])
    np.testing.assert_array_equal(count_labels(L, CumulativeMass(), Flips(0.1, 0.0)), [1, 1, 1, 0])
    np.testing.assert_array_equal(count_labels(L[[0, 2]], CumulativeMass(), Flips(0.1, 0.0)), [1, 1, 0])
    np.testing.assert_array_equal(count_labels(L, CumulativeMass(), Flips(0.0, 0.1)), [1, 1, 0])
    np.testing.assert_array_equal(count_labels(L, Threshold(0.3, at_least_one=False)), [1, 1, 1, 0])
    degrees, least = chain.SIMULATED
    assert [chain.simulated_rows(q) for q in (2, degrees)] == [degrees // 2, least]

"""The measures: definitions by hand, invariants by property, conventions, scorers."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon
from scipy.stats import kendalltau, spearmanr, wasserstein_distance
from sklearn.base import BaseEstimator
from sklearn.model_selection import cross_val_score

from contone import evaluate, measures
from contone.exceptions import InputError, LabelError, ShapeError

TOLERANCE = 1e-9


@st.composite
def pairs(draw):
    """Two label distributions of one shape; zeros are frequent, so that 0/0 and log 0 occur."""
    n, q = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    degree = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    return tuple(_normalise(draw(arrays(float, (n, q), elements=degree))) for _ in range(2))


def _normalise(A):
    A = A.copy()
    A[A.sum(axis=1) == 0] = 1.0
    return A / A.sum(axis=1, keepdims=True)


def rows(name, D, R):
    return measures.get(name).per_instance(D, R)


# ------------------------------------------------------------------------------------------------------ definitions


def test_every_measure_by_hand():
    D, R = [[0.5, 0.3, 0.2]], [[0.4, 0.4, 0.2]]
    found = evaluate(D, R)
    assert found.chebyshev == pytest.approx(0.1)
    assert found.clark == pytest.approx(math.sqrt((0.1 / 0.9) ** 2 + (0.1 / 0.7) ** 2))
    assert found.canberra == pytest.approx(0.1 / 0.9 + 0.1 / 0.7)
    assert found.kl == pytest.approx(0.5 * math.log(0.5 / 0.4) + 0.3 * math.log(0.3 / 0.4))
    assert found.cosine == pytest.approx((0.2 + 0.12 + 0.04) / (math.sqrt(0.38) * math.sqrt(0.36)))
    assert found.intersection == pytest.approx(0.9)
    assert found.sorensen == pytest.approx(0.1)


def test_evaluate_gives_every_measure_in_the_order_of_the_tables():
    found = evaluate([[1.0, 0.0]], [[0.5, 0.5]])
    assert list(found) == ["chebyshev", "clark", "canberra", "kl", "cosine", "intersection", "sorensen"]
    assert found["kl"] == found.kl == pytest.approx(math.log(2))


def test_a_measure_is_the_mean_of_its_rows(small):
    _, _, D = small
    R = np.roll(D, 1, axis=0)
    for measure in measures.MEASURES.values():
        per_instance = measure.per_instance(D, R)
        assert per_instance.shape == (len(D),)
        assert measure(D, R) == pytest.approx(per_instance.mean())


def test_direction_and_formula_are_data():
    better = {name for name, m in measures.MEASURES.items() if m.greater_is_better}
    assert better == {"cosine", "intersection"}
    for name, measure in measures.MEASURES.items():
        assert measure.name == name
        assert measure.formula
        assert measure.arrow == ("↑" if name in better else "↓")


def test_frames_and_lists_are_measured_as_arrays_are():
    D, R = [[0.5, 0.5]], [[0.75, 0.25]]
    assert evaluate(pd.DataFrame(D), pd.DataFrame(R)) == evaluate(np.array(D), np.array(R)) == evaluate(D, R)


# ------------------------------------------------------------------------------------------------------- invariants


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_bounds_between_measures(pair):
    D, R = pair
    q = D.shape[1]
    clark, canberra = rows("clark", D, R), rows("canberra", D, R)
    assert (clark <= canberra + TOLERANCE).all()
    assert (canberra <= math.sqrt(q) * clark + TOLERANCE).all()
    assert (clark <= math.sqrt(q) + TOLERANCE).all()
    variation = 1 - rows("intersection", D, R)  # total variation distance
    assert (rows("chebyshev", D, R) <= variation + TOLERANCE).all()
    assert (rows("kl", D, R) >= 2 * variation**2 - TOLERANCE).all()  # Pinsker
    np.testing.assert_allclose(rows("sorensen", D, R), variation, atol=TOLERANCE)


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_ranges(pair):
    D, R = pair
    for name in ("chebyshev", "cosine", "intersection", "sorensen"):
        values = rows(name, D, R)
        assert (values >= -TOLERANCE).all(), name
        assert (values <= 1 + TOLERANCE).all(), name
    for name in ("clark", "canberra", "kl"):
        assert (rows(name, D, R) >= -TOLERANCE).all(), name
        assert not np.isnan(rows(name, D, R)).any(), name


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_identity_is_best(pair):
    D, _ = pair
    for name, measure in measures.MEASURES.items():
        np.testing.assert_allclose(rows(name, D, D), 1.0 if measure.greater_is_better else 0.0, atol=1e-7)


@given(pairs(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_label_order_does_not_matter_and_all_but_kl_are_symmetric(pair, random):
    D, R = pair
    order = list(range(D.shape[1]))
    random.shuffle(order)
    for name in measures.MEASURES:
        np.testing.assert_allclose(rows(name, D[:, order], R[:, order]), rows(name, D, R), atol=TOLERANCE)
        if name != "kl":
            np.testing.assert_allclose(rows(name, R, D), rows(name, D, R), atol=TOLERANCE)


def test_with_two_labels_sorensen_is_chebyshev():
    rng = np.random.default_rng(0)
    D, R = rng.dirichlet([1, 1], 50), rng.dirichlet([1, 1], 50)
    np.testing.assert_allclose(rows("sorensen", D, R), rows("chebyshev", D, R))


# ------------------------------------------------------------------------------------------- zeros and conventions


def test_zero_over_zero_is_zero():
    D, R = [[1.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]]
    assert measures.clark(D, R) == pytest.approx(math.sqrt((1 / 3) ** 2 + 1))
    assert measures.canberra(D, R) == pytest.approx(1 / 3 + 1)


def test_kl_at_zeros():
    assert measures.kl([[1.0, 0.0]], [[0.5, 0.5]]) == pytest.approx(math.log(2))  # 0 log 0 = 0
    assert measures.kl([[0.5, 0.5]], [[1.0, 0.0]]) == math.inf


def test_the_readings_of_kl_in_the_literature():
    D = np.array([[0.6, 0.4, 0.0], [0.2, 0.3, 0.5]])
    R = np.array([[0.5, 0.25, 0.25], [0.3, 0.3, 0.4]])
    reverse = sum(r * math.log(r / d) for d, r in zip(D[1], R[1], strict=True))
    dropped = measures.get("kl_reversed_drop")
    assert np.isnan(dropped.per_instance(D, R)[0])  # infinite, so left out
    assert dropped(D, R) == pytest.approx(reverse)
    clipped = 0.5 * math.log(0.5 / 0.6) + 0.25 * math.log(0.25 / 0.4) + 0.25 * math.log(0.25 / 1e-12)
    assert measures.get("kl_reversed_clip")(D, R) == pytest.approx((clipped + reverse) / 2)
    assert measures.get("kl_forward") is measures.kl


def test_reversed_kl_where_every_row_is_dropped_is_nan():
    assert math.isnan(measures.get("kl_reversed_drop")([[1.0, 0.0]], [[0.5, 0.5]]))


@given(pairs())
@settings(max_examples=50, deadline=None)
def test_without_zeros_the_reversed_readings_agree_with_kl_of_the_swapped_pair(pair):
    D, R = (_normalise(A + 0.01) for A in pair)
    for name in ("kl_reversed_drop", "kl_reversed_clip"):
        np.testing.assert_allclose(rows(name, D, R), rows("kl", R, D), atol=TOLERANCE)


# -------------------------------------------------------------------------------------------------- further measures


def test_every_further_measure_by_hand():
    D, R = [[0.5, 0.3, 0.2]], [[0.4, 0.4, 0.2]]
    found = evaluate(D, R, measures=list(measures.FURTHER))
    assert list(found) == list(measures.FURTHER)
    assert found.euclidean == pytest.approx(math.sqrt(0.02))
    assert found.squared_chi2 == pytest.approx(0.01 / 0.9 + 0.01 / 0.7)
    assert found.fidelity == pytest.approx(math.sqrt(0.2) + math.sqrt(0.12) + 0.2)
    assert found.total_variation == pytest.approx(0.1)
    assert found.cross_entropy == pytest.approx(-0.8 * math.log(0.4) - 0.2 * math.log(0.2))
    assert found.wasserstein == pytest.approx(0.1)  # a tenth moves one step
    assert found.spearman == pytest.approx(math.sqrt(3) / 2)  # ranks 3 2 1 and 2.5 2.5 1
    assert found.kendall == pytest.approx(2 / math.sqrt(6))  # two pairs of three agree, one is a tie
    assert found.top1 == pytest.approx(0.5)  # one of two that share the first place
    assert found.top3 == 1.0


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_scipy_agrees(pair):
    D, R = pair
    steps = np.arange(D.shape[1])
    far = [wasserstein_distance(steps, steps, d, r) for d, r in zip(D, R, strict=True)]
    np.testing.assert_allclose(rows("wasserstein", D, R), far, atol=1e-12)
    with np.errstate(invalid="ignore"):  # of D and D, scipy may take the root of -1e-17
        distance = np.nan_to_num(jensenshannon(D, R, axis=1))
    np.testing.assert_allclose(rows("jensen_shannon", D, R), distance**2, atol=1e-12)
    if D.shape[1] < 2:
        return
    for name, reference in (("spearman", spearmanr), ("kendall", kendalltau)):
        found = rows(name, D, R)
        for value, d, r in zip(found, D, R, strict=True):
            if np.ptp(d) == 0:
                assert np.isnan(value)
            elif np.ptp(r) == 0:
                assert value == 0
            else:
                assert value == pytest.approx(reference(d, r).statistic, abs=1e-12)


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_identities_and_bounds_of_the_further_measures(pair):
    D, R = pair
    variation, hellinger = rows("total_variation", D, R), np.sqrt(np.maximum(0, 1 - rows("fidelity", D, R)))
    np.testing.assert_allclose(variation, 1 - rows("intersection", D, R), atol=TOLERANCE)
    np.testing.assert_allclose(variation, rows("sorensen", D, R), atol=TOLERANCE)
    assert (hellinger**2 <= variation + TOLERANCE).all()  # Le Cam
    assert (variation <= math.sqrt(2) * hellinger + 1e-7).all()
    assert (rows("euclidean", D, R) <= 2 * variation + TOLERANCE).all()
    assert (2 * variation**2 <= rows("squared_chi2", D, R) + TOLERANCE).all()  # Cauchy-Schwarz
    assert (rows("squared_chi2", D, R) <= 2 * variation + TOLERANCE).all()
    assert (rows("jensen_shannon", D, R) <= math.log(2) * variation + TOLERANCE).all()  # Lin 1991
    moved = rows("wasserstein", D, R)
    assert (variation <= moved + TOLERANCE).all()
    assert (moved <= (D.shape[1] - 1) * variation + TOLERANCE).all()
    finite = np.isfinite(rows("kl", D, R))
    entropy = rows("cross_entropy", D, D)
    np.testing.assert_allclose((rows("cross_entropy", D, R) - entropy)[finite], rows("kl", D, R)[finite], atol=1e-9)
    assert np.isinf(rows("cross_entropy", D, R)[~finite]).all()
    for name in ("spearman", "kendall"):
        found = rows(name, D, R)
        assert (np.isnan(found) | (np.abs(found) <= 1 + TOLERANCE)).all()
    assert (rows("top1", D, R) <= rows("top3", D, R)).all()


@given(pairs(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_further_measures_at_the_truth_and_under_another_order_of_labels(pair, random):
    D, R = pair
    order = list(range(D.shape[1]))
    random.shuffle(order)
    for name, measure in measures.FURTHER.items():
        if name != "wasserstein":  # labels in order: only reversing them changes nothing
            np.testing.assert_allclose(rows(name, D[:, order], R[:, order]), rows(name, D, R), atol=TOLERANCE)
        if name == "top1":  # where k labels share the first place, each of them is first in one of k orders
            np.testing.assert_allclose(rows(name, D, D), 1 / (D.max(axis=1, keepdims=True) == D).sum(axis=1))
        elif name not in ("cross_entropy", "top3"):
            best = np.where(np.isnan(rows(name, D, D)), np.nan, 1.0 if measure.greater_is_better else 0.0)
            np.testing.assert_allclose(rows(name, D, D), best, atol=1e-7)
    np.testing.assert_allclose(rows("wasserstein", D[:, ::-1], R[:, ::-1]), rows("wasserstein", D, R), atol=TOLERANCE)


def test_wasserstein_of_single_labels_is_their_distance():
    one = np.eye(5)
    for i in range(5):
        for j in range(5):
            assert measures.wasserstein(one[[i]], one[[j]]) == abs(i - j)


def test_top_k_is_the_share_of_random_orders_of_ties_that_find_the_first_label():
    D, R = [[0.1, 0.6, 0.3]], [[0.3, 0.3, 0.4]]
    assert [measures.top_k(k)(D, R) for k in (1, 2, 3, 4)] == [0.0, 0.5, 1.0, 1.0]


def test_an_answer_without_order_is_not_ahead_of_any_and_a_truth_without_order_is_left_out():
    D = [[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3]]
    uniform = np.full((2, 3), 1 / 3)
    for name in ("spearman", "kendall"):
        assert rows(name, D, uniform)[0] == 0
        assert np.isnan(rows(name, D, D)[1])
        assert measures.get(name)(D, D) == pytest.approx(1.0)


def test_kendall_in_blocks_is_kendall(monkeypatch):
    rng = np.random.default_rng(0)
    D, R = rng.dirichlet(np.ones(6), 50), rng.dirichlet(np.ones(6), 50)
    whole = rows("kendall", D, R)
    monkeypatch.setattr(measures, "PAIRS_AT_ONCE", 7 * 36)
    np.testing.assert_array_equal(rows("kendall", D, R), whole)


def test_cross_entropy_to_counts_is_the_mean_log_loss_of_the_votes():
    counts, R = np.array([[2, 1, 0], [0, 0, 0], [0, 0, 4]]), np.array([[0.5, 0.25, 0.25]] * 3)
    by_vote = [np.mean([-math.log(0.5)] * 2 + [-math.log(0.25)]), -math.log(0.25)]
    assert measures.cross_entropy(counts, R) == pytest.approx(np.mean(by_vote))  # a row without votes is left out
    assert evaluate(counts, R, measures="cross_entropy").cross_entropy == pytest.approx(np.mean(by_vote))
    with pytest.raises(LabelError, match="D must have rows that sum to 1"):
        evaluate(counts, R, measures=["cross_entropy", "kl"])
    with pytest.raises(LabelError, match="D has a negative degree in row 0"):
        measures.cross_entropy([[-1, 2]], [[0.5, 0.5]])
    with pytest.raises(ShapeError, match="same shape"):
        measures.cross_entropy([[1, 2]], [[0.5, 0.25, 0.25]])


def test_measures_are_named_or_all_or_the_seven():
    D, R = [[0.5, 0.5]], [[0.75, 0.25]]
    assert list(evaluate(D, R, measures="all")) == [*measures.MEASURES, *measures.FURTHER]
    assert list(evaluate(D, R, measures=["top3", measures.top_k(5), "kl_reversed_drop"])) == [
        "top3",
        "top5",
        "kl_reversed_drop",
    ]
    with pytest.raises(InputError, match="no measure 'kld'"):
        evaluate(D, R, measures=["kld"])
    with pytest.raises(InputError, match="name at least one measure"):
        evaluate(D, R, measures=[])


# ------------------------------------------------------------------------------------------------- errors, scorers


def test_an_unknown_measure_gets_the_list():
    with pytest.raises(InputError, match="no measure 'kld'; there are: chebyshev, .*kl_reversed_clip"):
        measures.get("kld")


def test_what_cannot_be_measured():
    good = [[0.5, 0.5]]
    with pytest.raises(ShapeError, match="same shape; they have .1, 2. and .2, 2."):
        evaluate(good, [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(LabelError, match="D_hat must have rows that sum to 1; row 0 sums to 0.9"):
        evaluate(good, [[0.5, 0.4]])
    with pytest.raises(LabelError, match="D has a negative degree in row 0"):
        evaluate([[1.5, -0.5]], good)
    with pytest.raises(LabelError, match="D_hat has NaN"):
        evaluate(good, [[np.nan, 1.0]])
    with pytest.raises(ShapeError, match="non-empty matrix"):
        evaluate([0.5, 0.5], good)


class MeanLearner(BaseEstimator):
    """Predicts the mean distribution of its training rows."""

    def fit(self, X, D):
        self.mean_ = np.asarray(D).mean(axis=0)
        return self

    def predict(self, X):
        return np.tile(self.mean_, (len(X), 1))


@pytest.mark.parametrize("name", [*measures.MEASURES, *measures.FURTHER, *measures.CONVENTIONS])
def test_every_measure_is_a_scorer_signed_so_that_more_is_better(small, name):
    X, _, D = small
    scores = cross_val_score(MeanLearner(), X, D, scoring=measures.scorer(name), cv=3)
    assert scores.shape == (3,)
    sign = 1 if measures.get(name).greater_is_better else -1
    assert (sign * scores > 0).all() or name in ("spearman", "kendall", "top1")
    # The first of three contiguous folds, by hand.
    expected = measures.get(name)(D[:20], np.tile(D[20:].mean(axis=0), (20, 1)))
    assert scores[0] == pytest.approx(sign * expected)


@pytest.mark.parametrize("name", [*measures.MEASURES, *measures.FURTHER, *measures.CONVENTIONS])
def test_a_measure_can_be_sent_to_another_process(name):
    D, R = [[0.5, 0.3, 0.2]], [[0.2, 0.5, 0.3]]
    assert pickle.loads(pickle.dumps(measures.get(name)))(D, R) == measures.get(name)(D, R)

"""The limit: what X and L allow, measured with the truth."""

from __future__ import annotations

import numpy as np
import pytest

from contone import CumulativeMass, measures
from contone.exceptions import InputError
from contone.limits import (
    PLAIN,
    STRONG,
    design_matrix,
    label_products,
    limit,
    mean_of_truth,
    recovered,
    to_distributions,
)

KNOWN = {
    "Yeast_spoem": 0.0092,
    "Yeast_alpha": 0.0023,
    "Yeast_spo5": 0.0087,
    "Yeast_cdc": 0.0031,
    "Yeast_cold": 0.0059,
    "Yeast_diau": 0.0043,
    "Yeast_dtt": 0.0030,
    "Yeast_elu": 0.0026,
    "Yeast_heat": 0.0053,
    "Yeast_spo": 0.0077,
    "SJAFFE": 0.0111,
}
"""KL(D || D^) of the limit, measured independently with the same recipe."""

ALWAYS = {"SJAFFE": ()}
"""The widest features and the fewest labels; the other sets repeat the check and cost two minutes together."""


def test_result_is_out_of_fold_scored_and_the_better_of_the_two(small, cheap_limits):
    X, L, D = small
    result = limit(X, L, D, n_splits=5)
    assert result.distributions.shape == D.shape
    np.testing.assert_allclose(result.distributions.sum(axis=1), 1.0)
    assert result.distributions.min() > 0
    assert result.name == min(result.candidates, key=result.candidates.get)
    assert result.scores["kl"] == pytest.approx(result.candidates[result.name])
    assert result.scores["kl"] == pytest.approx(measures.kl(D, result.distributions))
    assert result.scores["kl"] < measures.kl(D, np.full_like(D, 0.25))


def test_the_strong_limit_is_the_best_of_more_learners(small, cheap_limits):
    X, L, D = small
    plain, strong = (limit(X, L, D, n_splits=4, learners=learners) for learners in (PLAIN, STRONG))
    assert set(plain.candidates) == set(PLAIN) < set(strong.candidates) == set(STRONG)
    for name in PLAIN:
        assert strong.candidates[name] == plain.candidates[name]
    assert strong.scores["kl"] <= plain.scores["kl"]
    np.testing.assert_allclose(strong.distributions.sum(axis=1), 1.0)
    with pytest.raises(InputError, match="forest"):
        limit(X, L, D, learners=("forest",))


def test_learners_correct_what_inversion_says(small, cheap_limits, monkeypatch):
    """Where it says the truth there is nothing to correct; other learners do not ask it."""
    X, L, D = small
    monkeypatch.setattr("contone.limits._inversion", lambda *_: D)
    for learner in STRONG[2:]:
        np.testing.assert_allclose(limit(X, L, D, learners=(learner,)).distributions, D, atol=2e-4)
    monkeypatch.delattr("contone.limits._inversion")
    assert limit(X, L, D).scores["kl"] > 0.01


@pytest.mark.parametrize("q", [1, 2])
def test_one_or_two_labels_will_do(small, cheap_limits, q):
    X, L, D = small
    truth = D[:, :q] / D[:, :q].sum(axis=1, keepdims=True)
    result = limit(X, L[:, :q], truth)
    assert result.distributions.shape == truth.shape
    if q == 1:
        assert set(result.candidates.values()) == {0.0}
    else:  # labels in another order have the same limit, but for the trees
        turned = limit(X, L[:, 1::-1], truth[:, ::-1], learners=("ridge",))
        assert turned.scores["kl"] == pytest.approx(result.candidates["ridge"])
        assert turned.scores["kl"] < measures.kl(truth, np.full_like(truth, 0.5))


def test_what_corrects_inversion_sees_no_truth_of_its_own_row(small, cheap_limits):
    X, L, D = small
    changed = D.copy()
    changed[7] = [0.97, 0.01, 0.01, 0.01]
    for learner in STRONG[2:]:
        before, after = (limit(X, L, truth, n_splits=4, learners=(learner,)).distributions for truth in (D, changed))
        np.testing.assert_array_equal(before[7], after[7])
        assert np.abs(before - after).max() > 0


def test_same_seed_same_answer(small, cheap_limits):
    X, L, D = small
    first, second, threads = (
        limit(X, L, D, n_splits=3, n_jobs=n_jobs, learners=("trees",)).distributions for n_jobs in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, threads, rtol=1e-12)  # trees are summed in the order in which they are grown


def test_a_row_is_predicted_without_its_own_truth(small, cheap_limits):
    """Changing the truth of one row moves other rows' predictions, not its own."""
    X, L, D = small
    changed = D.copy()
    changed[7] = [0.97, 0.01, 0.01, 0.01]
    before, after = (limit(X, L, truth, n_splits=4).distributions for truth in (D, changed))
    np.testing.assert_array_equal(before[7], after[7])
    assert np.abs(before - after).max() > 0


def test_design_holds_labels_cardinality_and_standardised_features(small):
    X, L, _ = small
    Z = design_matrix(X * 100 + 3, L)
    np.testing.assert_array_equal(Z[:, :4], L)
    np.testing.assert_array_equal(Z[:, 4], L.sum(axis=1))
    np.testing.assert_allclose(Z[:, 5:].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z[:, 5:].std(axis=0), 1)


def test_wide_features_enter_as_forty_components():
    rng = np.random.default_rng(0)
    L = np.eye(3)[rng.integers(3, size=100)]
    assert design_matrix(rng.normal(size=(100, 61)), L).shape == (100, 4 + 40)
    assert design_matrix(rng.normal(size=(100, 60)), L).shape == (100, 4 + 60)


def test_label_products_are_all_pairs_and_stop_above_seven_labels():
    L = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(label_products(L), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(label_products(L[:, :2]), [[1], [0], [0]])
    assert label_products(np.ones((2, 7))).shape == (2, 21)
    assert label_products(np.ones((2, 8))).shape == (2, 0)


def test_predictions_are_clipped_then_renormalised():
    answer = to_distributions(np.array([[1.2, -0.2], [-1.0, -3.0]]))
    np.testing.assert_allclose(answer, [[1.2 / 1.2001, 1e-4 / 1.2001], [0.5, 0.5]])
    np.testing.assert_array_equal(to_distributions(np.array([0.7, 0.2])), [[1.0], [1.0]])


def test_mean_of_truth_is_the_best_constant(small):
    """Among constant answers, the mean minimises KL(D || r)."""
    _, _, D = small
    mean = mean_of_truth(D)
    best = measures.kl(D, mean)
    rng = np.random.default_rng(1)
    for shift in rng.normal(scale=0.05, size=(20, D.shape[1])):
        other = mean * np.exp(shift)
        assert measures.kl(D, other / other.sum(axis=1, keepdims=True)) > best


def test_recovered_is_zero_at_uniform_and_one_at_the_limit():
    assert recovered(0.1, 0.1, 0.02) == 0
    assert recovered(0.02, 0.1, 0.02) == 1
    assert recovered(0.2, 0.1, 0.02) < 0
    assert np.isnan(recovered(0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    "stem", [pytest.param(s, marks=ALWAYS.get(s, (pytest.mark.slow, pytest.mark.exhaustive))) for s in KNOWN]
)
def test_known_limits(real, stem):
    X, D = real(stem)
    result = limit(X, CumulativeMass().apply(D), D)
    assert result.scores["kl"] == pytest.approx(KNOWN[stem], abs=1e-4)

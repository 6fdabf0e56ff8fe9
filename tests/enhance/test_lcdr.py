"""LCdr and the model of Eq. 8: gradients, two solvers, the collapse to uniform, the published row."""

from __future__ import annotations

import csv
import time
import warnings

import numpy as np
import pytest
from scipy.optimize import check_grad

from contone import CumulativeMass, LabelConfidence, LCdr, Uniform, measures
from contone.enhance.lcdr import NEAR_UNIFORM
from contone.enhance.rectified import RectifiedSoftmax, distances_from_uniform, objective_and_gradient, recover
from contone.exceptions import LabelWarning, NearUniformWarning

YEAST = ("spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo")


@pytest.mark.parametrize(("weight", "penalty"), [(1.0, 0.0), (1 / 30, 0.1), (1.0, 0.1)])
def test_gradient_against_finite_differences(weight, penalty):
    rng = np.random.default_rng(0)
    X, F, W = rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), size=30), rng.normal(size=(3, 4))
    error = check_grad(
        lambda w: objective_and_gradient(w.reshape(3, 4), X, F, weight, penalty)[0],
        lambda w: objective_and_gradient(w.reshape(3, 4), X, F, weight, penalty)[1].ravel(),
        W.ravel(),
    )
    assert error < 1e-5


def test_objective_is_eq_8():
    rng = np.random.default_rng(1)
    X, F, W = rng.normal(size=(10, 4)), rng.dirichlet(np.ones(3), size=10), rng.normal(size=(3, 4))
    E = np.exp(np.maximum(X @ W.T, 0.0))
    expected = np.sum((F - E / E.sum(axis=1, keepdims=True)) ** 2) + 0.1 * np.sum(W**2)
    assert objective_and_gradient(W, X, F, 1.0, 0.1)[0] == pytest.approx(expected)


def test_an_unasked_label_counts_as_often_as_it_is_marked(small):
    X, L, _ = small
    L = L.copy()
    L[4:9, 2] = np.nan
    frequency = (np.nansum(L[:, 2]) + 0.5) / (np.isfinite(L[:, 2]).sum() + 1.0)
    filled = np.where(np.isnan(L), frequency, L)
    expected = RectifiedSoftmax(beta=0.01).fit_enhance(X, filled / filled.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(RectifiedSoftmax(beta=0.01).fit_enhance(X, L), expected, atol=1e-12)


def test_sum_is_mean_with_a_penalty_n_times_weaker(small):
    X, L, _ = small
    total = RectifiedSoftmax(reduction="sum", beta=0.6, weight_decay=0.0).fit(X, L)
    mean = RectifiedSoftmax(reduction="mean", beta=0.01, weight_decay=0.0).fit(X, L)
    # The two objectives are the same function up to the factor n, everywhere and to the last digit that counts. Where
    # the two runs end differs by more: the minimum is at kinks of the ReLU, which rounding reaches from other sides.
    F = L / L.sum(axis=1, keepdims=True)
    W = np.random.default_rng(1).normal(size=(4, 5))
    value, gradient = objective_and_gradient(W, X, F, 1.0, 0.6)
    mean_value, mean_gradient = objective_and_gradient(W, X, F, 1.0 / 60, 0.01)
    assert value == pytest.approx(60 * mean_value, rel=1e-14)
    np.testing.assert_allclose(gradient, 60 * mean_gradient, rtol=1e-12)
    assert total.solution_.objective == pytest.approx(60 * mean.solution_.objective, rel=1e-6)
    np.testing.assert_allclose(total.label_distributions_, mean.label_distributions_, atol=2e-3)


def test_weight_decay_is_half_a_penalty_and_starts_are_those_of_a_linear_layer(small):
    X, L, _ = small
    one, other = (RectifiedSoftmax(beta=b, weight_decay=w).fit(X, L) for b, w in ((0.01, 0.02), (0.02, 0.0)))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    start = RectifiedSoftmax(tol=1e9, random_state=3).fit(X, L)  # stops where it begins
    expected = np.random.RandomState(3).uniform(-1 / np.sqrt(5), 1 / np.sqrt(5), size=(4, 5))
    np.testing.assert_array_equal(start.weights_, expected)
    assert start.solution_.n_iter == 0
    F = L / L.sum(axis=1, keepdims=True)
    value, gradient = objective_and_gradient(expected, X, F, 1 / 60, 0.1 + 2.5e-4)
    assert start.solution_.objective == pytest.approx(value)
    largest = np.abs(gradient).max()  # of the mean, whatever the reduction
    for factor, moves in ((0.99, True), (1.01, False)):
        for reduction, beta in (("mean", 0.1), ("sum", 6.0)):
            decay = 5e-4 if reduction == "mean" else 60 * 5e-4
            settings = {"reduction": reduction, "beta": beta, "weight_decay": decay, "tol": factor * largest}
            found = RectifiedSoftmax(**settings, random_state=3).fit(X, L)
            assert (found.solution_.n_iter > 0) == moves


def test_one_label_is_not_called_nearly_uniform():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NearUniformWarning)
        warnings.filterwarnings("ignore", category=LabelWarning)
        found = LCdr().fit(np.random.default_rng(0).normal(size=(30, 3)), np.ones((30, 1)))
    assert not found.near_uniform_
    assert found.uniform_distance_ == 0.0


def test_a_heavy_penalty_gives_uniform_and_none_fits_best(small):
    X, L, _ = small
    np.testing.assert_allclose(RectifiedSoftmax(beta=1e4).fit_enhance(X, L), 0.25, atol=1e-5)
    F = L / L.sum(axis=1, keepdims=True)
    losses = [np.sum((RectifiedSoftmax(beta=b).fit_enhance(X, L) - F) ** 2) for b in (1e-4, 1e-2, 1.0)]
    assert losses[0] < losses[1] < losses[2]


def test_more_starts_never_raise_the_minimum(small):
    X, L, _ = small
    one, five = (RectifiedSoftmax(beta=1e-3, n_init=n).fit(X, L).solution_.objective for n in (1, 5))
    assert five <= one


def test_one_seed_one_answer(small):
    X, L, _ = small
    make = lambda seed: LCdr.preset("tuned", random_state=seed).fit_enhance(X, L)  # noqa: E731
    np.testing.assert_array_equal(make(3), make(3))
    assert not np.array_equal(make(3), make(4))


def test_predict_projects_and_applies_the_model(small):
    X, L, _ = small
    found = LCdr.preset("tuned").fit(X, L)
    np.testing.assert_allclose(found.predict(X), found.label_distributions_, atol=1e-12)
    steps = found.augmented_
    by_hand = recover(steps.enhancer_.weights_, steps.reducer_.transform(X[:5]))
    np.testing.assert_allclose(found.predict(X[:5]), by_hand, atol=1e-12)


def test_rescaling_the_features_does_not_matter_when_projections_are_rescaled(small):
    X, L, _ = small
    settings = {"rescale": "unit_variance", "alpha": 1.0, "n_components": 3, "beta": 0.01}
    first, second = (LCdr(**settings).fit_enhance(scale * X, L) for scale in (1.0, 50.0))
    np.testing.assert_allclose(first, second, atol=1e-3)


def test_the_papers_setting_is_said_to_be_uniform_once():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 5))
    L = CumulativeMass().apply(rng.dirichlet(np.ones(4), size=1000))
    with pytest.warns(NearUniformWarning, match='rescale="unit_variance"') as caught:
        found = LCdr.preset("paper").fit(X, L)
    assert len(caught) == 1
    assert found.near_uniform_
    assert found.uniform_distance_ < NEAR_UNIFORM
    assert found.uniform_distance_ == pytest.approx(distances_from_uniform(found.label_distributions_).max())
    assert found.solution_.info["uniform_distance"] == found.uniform_distance_


def test_a_tuned_answer_is_quiet_and_says_something(small):
    X, L, D = small
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LCdr.preset("tuned").fit(X, L)
    assert not found.near_uniform_
    assert found.uniform_distance_ > 0.1
    assert measures.kl(D, found.label_distributions_) < 0.8 * measures.kl(D, Uniform().fit_enhance(X, L))


def test_distance_from_uniform():
    np.testing.assert_array_equal(distances_from_uniform(np.full((3, 4), 0.25)), 0.0)
    np.testing.assert_array_equal(distances_from_uniform(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.5, 0.0])


def test_presets_and_defaults():
    assert LCdr.preset("paper").get_params() == LCdr().get_params()
    assert (LCdr().n_neighbors, LCdr().n_components, LCdr().alpha, LCdr().beta) == (10, 10, 0.1, 0.1)
    assert LCdr.preset("near_published").beta == 3e-3


def published() -> dict[tuple[str, str], float]:
    """LCdr's row of the paper's recovery table."""
    from importlib.resources import files

    source = files("contone") / "reproduction" / "paper" / "recovery.csv"
    with source.open(encoding="utf-8") as file:
        return {(r["measure"], r["dataset"]): float(r["value"]) for r in csv.DictReader(file) if r["method"] == "LCdr"}


@pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning")
@pytest.mark.parametrize("name", YEAST)
def test_published_row_on_yeast(real, name):
    X, D = real(f"Yeast_{name}")
    L = CumulativeMass().apply(D)
    start = time.perf_counter()
    answer = LCdr.preset("paper").fit_enhance(X, L)
    assert time.perf_counter() - start < 20.0  # seconds on a busy machine; it takes a fraction of one on an idle core
    paper = published()
    for measure in ("chebyshev", "clark", "canberra"):
        assert measures.get(measure)(D, answer) == pytest.approx(paper[measure, name], rel=0.05)
    assert measures.kl_reversed_drop(D, answer) == pytest.approx(paper["kl", name], rel=0.07)
    assert measures.cosine(D, answer) == pytest.approx(paper["cosine", name], abs=0.002)


def test_every_parameter_goes_to_the_step_that_has_it():
    """`max_iter` is the model's; the confidence problem keeps its own limit."""
    steps = LCdr(max_iter=7, confidence_tol=1e-3, n_components=2)._pipeline()
    assert steps.enhancer.max_iter == 7
    assert steps.confidence.max_iter == LabelConfidence().max_iter
    assert steps.confidence.tol == 1e-3
    assert steps.reducer.n_components == 2

"""Parameters chosen on rehearsed data, against optima that are known."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from contone import (
    GLLE,
    LP,
    Best,
    CumulativeMass,
    Inversion,
    Rehearsal,
    Rescaled,
    Temperature,
    TopK,
    Tuned,
    Uniform,
    enhance,
    evaluate,
)
from contone.base import Enhancer
from contone.exceptions import AnswerError, ArgumentError, LabelWarning
from contone.numerics.simplex import kl_divergence, softmax
from contone.numerics.solution import Solution
from contone.trust.search import best_temperature, candidates, search

QUICK = Inversion(n_sweeps=60, n_burn=20)


@pytest.fixture(scope="module")
def data():
    """X (300, 2), L and D (300, 6) drawn from the model."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    D = softmax(X @ rng.normal(size=(2, 6)) * 0.2 + 0.5 * rng.normal(size=(300, 6)))
    return X, CumulativeMass().apply(D).astype(float), D


def test_temperature_is_a_power_of_the_answer():
    X, L = np.zeros((2, 1)), np.array([[1, 0, 1], [0, 1, 0]])
    answer = Temperature(c=0.8).fit_enhance(X, L)
    for t in (0.0, 0.5, 1.0, 3.0):
        power = answer**t
        expected = power / power.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(Rescaled(Temperature(c=0.8), t=t).fit_enhance(X, L), expected)


def test_the_best_temperature_of_a_tempered_truth_undoes_it():
    truth = softmax(np.random.default_rng(0).normal(size=(50, 4)))
    t, score = best_temperature([truth, truth], [softmax(0.2 * np.log(truth)), softmax(0.2 * np.log(truth))])
    assert t == pytest.approx(5.0, rel=1e-2)
    assert score == pytest.approx(0.0, abs=1e-5)


def test_tuning_finds_the_best_temperature_of_model_data(data):
    X, L, D = data
    tuned = Tuned(Temperature(c=1.0), model=QUICK).fit(X, L)
    oracle = minimize_scalar(lambda c: kl_divergence(D, softmax(c * L)).mean(), bounds=(0.01, 5), method="bounded")
    assert tuned.best_params_["temperature"] == pytest.approx(oracle.x, rel=0.12)
    assert evaluate(D, tuned.label_distributions_).kl < 1.02 * oracle.fun


def test_temperature_by_itself(data):
    X, L, D = data
    auto = Temperature(c="auto").fit(X, L)
    oracle = minimize_scalar(lambda c: kl_divergence(D, softmax(c * L)).mean(), bounds=(0.01, 5), method="bounded")
    assert auto.c_ == pytest.approx(oracle.x, rel=0.12)
    np.testing.assert_allclose(auto.label_distributions_, softmax(auto.c_ * L))
    np.testing.assert_allclose(auto.enhance(X[:3], L[:3]), softmax(auto.c_ * L[:3]))


@pytest.fixture(scope="module")
def graded():
    """One label of three marked: the labels leave the spread to its prior, which is far too narrow here."""
    rng = np.random.default_rng(2)
    D = softmax(1.5 * rng.normal(size=(150, 3)))
    known = np.where(np.arange(150)[:, None] < 10, D, np.nan)
    return rng.normal(size=(150, 2)), TopK(1).apply(D).astype(float), D, known


def test_ten_graded_rows_repair_a_spread_that_the_labels_do_not_tell(graded):
    X, L, D, known = graded
    model = Inversion(degradation=TopK(1), n_sweeps=40, n_burn=15)
    blind = Tuned(Temperature(), model=model, n_replicates=2).fit(X, L)
    told = Tuned(Temperature(), model=model, n_replicates=2).fit(X, L, degrees=known)
    assert "how uneven" in blind.rehearsal_remarks_[0]
    assert told.rehearsal_remarks_ == ()
    np.testing.assert_allclose(told.label_distributions_[:10], D[:10])
    rest = slice(10, None)
    oracle = minimize_scalar(lambda c: kl_divergence(D[rest], softmax(c * L[rest])).mean(), bounds=(0, 9)).fun
    errors = [kl_divergence(D[rest], tuned.label_distributions_[rest]).mean() for tuned in (blind, told)]
    assert errors[1] < 1.1 * oracle < errors[0]


def test_degrees_reach_the_method_inside_and_come_back_as_they_are(graded):
    X, L, D, known = graded
    model = Inversion(degradation=TopK(1), n_sweeps=40, n_burn=15)
    inside = clone(model).fit(X, L, degrees=known).label_distributions_
    power = inside**0.5
    tempered = Rescaled(model, t=0.5).fit_enhance(X, L, degrees=known)
    np.testing.assert_allclose(tempered[10:], (power / power.sum(axis=1, keepdims=True))[10:], atol=1e-6)
    np.testing.assert_allclose(tempered[:10], D[:10])
    dask = pytest.importorskip("dask.array")
    lazy = Rescaled(Temperature(), t=0.5).fit(
        dask.from_array(X, chunks=(60, -1)), dask.from_array(L, chunks=(60, -1)), known
    )
    np.testing.assert_allclose(np.asarray(lazy.label_distributions_)[:10], D[:10])
    best = Best([Uniform(), Temperature()], model=model, n_replicates=1).fit(X, L, degrees=known)
    assert best.best_name_ == "Temperature"
    np.testing.assert_allclose(best.label_distributions_[:10], D[:10])


@pytest.mark.usefixtures("few_simulated")
def test_unasked_entries_and_rows_without_labels_are_imitated(data):
    X, L, _ = (A[:60] for A in data)
    partly = np.where(np.arange(60)[:, None] == 5, 0.0, L)
    partly[:5, 1] = np.nan
    with pytest.warns(LabelWarning, match="without any label"):
        rehearsal = Rehearsal(X, partly, QUICK, n_replicates=1)
    np.testing.assert_array_equal(np.isnan(rehearsal.replicates[0].labels), np.isnan(partly))
    np.testing.assert_array_equal(rehearsal.replicates[0].labels[5], 0.0)
    with pytest.warns(LabelWarning, match="without any label"):
        tuned = Tuned(Temperature(), model=QUICK, n_replicates=1).fit(X, partly)
    np.testing.assert_allclose(tuned.label_distributions_.sum(axis=1), 1.0)
    with pytest.raises(AnswerError, match="LP"), pytest.warns(LabelWarning):
        Tuned(LP(), model=QUICK, n_replicates=1, n_iter=1).fit(X, partly)


def test_a_budget_ends_the_search_and_the_given_setting_is_always_tried(data):
    X, L, _ = data
    tuned = Tuned(GLLE(), model=QUICK, n_replicates=2, budget=1e-9, verbose=False).fit(X, L)
    assert tuned.rehearsal_["params"][0] == {}
    assert len(tuned.rehearsal_["params"]) < 5
    assert tuned.rehearsal_["n_replicates"] == [1] * len(tuned.rehearsal_["params"])


def test_what_fails_on_one_replicate_is_out(data):
    X, L, _ = data
    rehearsal = Rehearsal(X[:40], L[:40], QUICK, n_replicates=2)
    fragile = _Fragile(fails_on=float(rehearsal.replicates[1].labels.sum()))
    assert search(fragile, rehearsal, {}).best.error == "RuntimeError: broken"
    sound = search(fragile, rehearsal, {"fails_on": [-1.0]}).best
    assert (sound.params, sound.n_replicates) == ({"fails_on": -1.0}, 2)


def test_a_bar_says_how_far_a_search_is(data, capsys):
    pytest.importorskip("rich")
    X, L, _ = data
    Tuned(Temperature(), model=QUICK, n_replicates=1, verbose=True).fit(X[:40], L[:40])
    assert "Rehearsing Temperature" in capsys.readouterr().err


def test_what_was_tried_and_what_is_passed_on(data):
    X, L, _ = data
    tuned = Tuned(GLLE(), search={"lambda_": [0.1, 1.0]}, model=QUICK, n_replicates=2).fit(X, L)
    assert tuned.rehearsal_["params"] == [{}, {"lambda_": 0.1}, {"lambda_": 1.0}]
    assert tuned.best_score_ == min(
        tuned.rehearsal_["score"][k] for k, n in enumerate(tuned.rehearsal_["n_replicates"]) if n == 2
    )
    assert not hasattr(Tuned(LP()), "enhance")
    np.testing.assert_allclose(tuned.enhance(X[:5], L[:5]).sum(axis=1), 1.0)
    again = Tuned(GLLE(), search={"lambda_": [0.1, 1.0]}, model=QUICK, n_replicates=2).fit(X, L)
    np.testing.assert_array_equal(again.label_distributions_, tuned.label_distributions_)


def test_best_takes_the_method_that_is_ahead(data):
    X, L, _ = data
    best = Best([Uniform(), Temperature(), QUICK], model=QUICK, n_replicates=2).fit(X, L)
    assert best.best_name_ == "Inversion"
    assert best.comparison_["method"][-1] == "Uniform"
    assert best.comparison_["score"][-1] == pytest.approx(1.0)
    np.testing.assert_allclose(best.predict(X[:3]).sum(axis=1), 1.0)


@pytest.mark.parametrize("cls", enhance.methods().values(), ids=lambda cls: cls.__name__)
def test_every_search_space_is_within_the_parameters_domain(cls):
    for name, values in cls.SEARCH.items():
        for value in values:
            method = cls(**{name: value})
            method._validate_params()


def test_candidates_are_all_of_a_small_space_and_some_of_a_large_one():
    assert len(candidates(LP(), {"alpha": [0.1, 0.5]}, 20, 0)) == 3
    drawn = candidates(LP(), LP.SEARCH, 8, 0)
    assert len(drawn) == 8
    assert drawn[0] == {}
    with pytest.raises(ArgumentError, match="beta"):
        candidates(LP(), {"beta": [1.0]}, 5, 0)


def test_one_label_three_rows_and_a_method_that_always_fails():
    X = np.arange(6.0).reshape(3, 2)
    three = Tuned(Temperature(), model=QUICK, n_replicates=1).fit_enhance(X, np.eye(3))
    np.testing.assert_allclose(three.sum(axis=1), 1.0)
    with pytest.raises(AnswerError, match="every rehearsed"):
        Tuned(_Broken(), model=QUICK, n_replicates=1).fit(X, np.eye(3))


class _Fragile(Enhancer):
    """Fails where the labels have this sum."""

    def __init__(self, *, fails_on=-1.0):
        self.fails_on = fails_on

    def _fit_enhance(self, X, L):
        if L.sum() == self.fails_on:
            raise RuntimeError("broken")
        return Solution(softmax(L))


class _Broken(Temperature):
    def _fit_enhance(self, X, L):
        raise RuntimeError("broken")


def test_any_number_of_jobs_gives_the_same(data):
    X, L, _ = (A[:80] for A in data)
    rehearsal = Rehearsal(X, L, QUICK, n_replicates=2)
    one = search(LP(), rehearsal, n_iter=3)
    with joblib.parallel_config("threading"):
        two = search(LP(), rehearsal, n_iter=3, n_jobs=2)
    assert [(c.params, c.temperature, c.score) for c in one.tried] == [
        (c.params, c.temperature, c.score) for c in two.tried
    ]

"""Parameters chosen on rehearsed data, against optima that are known."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import uniform
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
from contone.trust import search as searching
from contone.trust.rehearsal import Replicate
from contone.trust.search import best_temperature, candidates, search
from contone.trust.trial import Trial

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


# ------------------------------------------------------------------------------------------- a search by hand


class Known:
    """A rehearsal of three replicates whose truths are known; the second is judged by its last ten rows."""

    X = np.zeros((30, 1))

    def __init__(self, q=4):
        rng = np.random.default_rng(0)
        graded = np.where(np.arange(30)[:, None] < 20, 0.25, np.nan) * np.ones(q)
        self.replicates = tuple(
            Replicate(softmax(k * rng.normal(size=(30, q))), np.zeros((30, q)), None, graded if k == 2 else None)
            for k in (1, 2, 3)
        )


def mixed(method, replicate):
    """The truth with a share alpha of equal degrees: the larger alpha is, the worse."""
    D = replicate.distributions
    return (1 - method.alpha) * D + method.alpha / D.shape[1]


def relative(alpha, replicates):
    """Mean of KL over that of equal degrees, by definition."""
    each = [(r.distributions[r.judged], mixed(LP(alpha=alpha), r)[r.judged]) for r in replicates]
    return np.mean([kl_divergence(D, A).mean() / kl_divergence(D, np.full_like(D, 0.25)).mean() for D, A in each])


@pytest.fixture
def by_hand(monkeypatch):
    """Trials of one second each, without a fit; what failed is where alpha is 0.9."""
    now = [0.0]

    def try_all(method, X, replicates):
        now[0] += 1.0
        if method.alpha == 0.9:
            return [Trial(None, 1.0, 1.0, "E: no") for _ in replicates]
        return [Trial(mixed(method, r), 1.0 + k, 1.0) for k, r in enumerate(replicates)]

    monkeypatch.setattr(searching, "try_all", try_all)
    monkeypatch.setattr(searching.time, "perf_counter", lambda: now[0])


ALPHAS = [0.8, 0.3, 0.9, 0.2, 0.7, 0.4, 0.6, 0.1]


def test_a_third_of_the_settings_goes_on_to_all_replicates_and_the_best_of_these_is_chosen(by_hand):
    known = Known()
    found = search(LP(alpha=0.5), known, {"alpha": ALPHAS}, temperature=False, n_iter=9)
    assert [c.params.get("alpha", 0.5) for c in found.tried] == [0.5, *ALPHAS]
    assert {c.params["alpha"] for c in found.tried if c.n_replicates == 3} == {0.1, 0.2, 0.3}  # of nine
    assert found.best.params == {"alpha": 0.1}
    for candidate in found.tried:
        alpha, replicates = candidate.params.get("alpha", 0.5), known.replicates[: candidate.n_replicates]
        if alpha == 0.9:
            assert (candidate.score, candidate.error, candidate.temperature) == (np.inf, "E: no", 1.0)
        else:
            assert candidate.score == pytest.approx(relative(alpha, replicates))
        assert candidate.seconds == (1.0 if candidate.n_replicates == 1 else (1.0 + 1.0 + 2.0) / 3)
    # Two go on at the least, but none that failed; where all failed, the given setting says why.
    assert {c.n_replicates for c in search(LP(alpha=0.5), known, {"alpha": [0.4]}, temperature=False).tried} == {3}
    one = search(LP(alpha=0.9), known, {"alpha": [0.4]}, temperature=False)
    assert ([c.n_replicates for c in one.tried], one.best.params) == ([1, 3], {"alpha": 0.4})
    assert search(LP(alpha=0.9), known, {}).best.error == "E: no"
    single = search(LP(alpha=0.4), Known(q=1), {"alpha": [0.3]}).best
    assert (single.params, single.temperature, single.score) == ({}, 1.0, 0.0)  # one label: nothing to choose


@pytest.mark.parametrize(("budget", "n_tried", "n_whole"), [(0.5, 1, 0), (3.5, 4, 0), (8.5, 9, 0), (10.5, 9, 2)])
def test_no_setting_is_begun_after_the_budget_is_spent(by_hand, budget, n_tried, n_whole):
    """Nine settings of a second each on the first replicate, then three on the others."""
    found = search(LP(alpha=0.5), Known(), {"alpha": ALPHAS}, temperature=False, n_iter=9, budget=budget)
    assert len(found.tried) == n_tried
    assert sum(c.n_replicates == 3 for c in found.tried) == n_whole
    best = min((c for c in found.tried if not n_whole or c.n_replicates == 3), key=lambda c: c.score)
    assert found.best == best


def test_the_score_at_the_best_temperature_is_the_least_mean_relative_error():
    known = Known()
    truths = [r.distributions for r in known.replicates]
    answers = [mixed(LP(alpha=0.6), r) for r in known.replicates]

    def score(t):
        each = (kl_divergence(D, softmax(t * np.log(A))).mean() / kl_divergence(D, np.full_like(D, 0.25)).mean()
                for D, A in zip(truths, answers, strict=True))  # fmt: skip
        return np.mean(list(each))

    t, least = best_temperature(truths, answers)
    assert least == pytest.approx(score(t))
    assert least < min(score(0.97 * t), score(1.03 * t)) < score(1.0)
    # Zeros of an answer are as small as numbers are, and labels that are never true cost nothing.
    assert best_temperature([np.eye(3)], [np.eye(3)])[1] == pytest.approx(0.0, abs=1e-6)


def test_a_space_that_fits_is_tried_whole_and_a_larger_one_is_drawn_from():
    space = {"alpha": [0.1, 0.2], "max_iter": [5, 6]}
    whole = [{}, *({"alpha": a, "max_iter": m} for a in (0.1, 0.2) for m in (5, 6))]
    assert candidates(LP(), space, 5, 0) == whole
    drawn = candidates(LP(), space, 4, 0)
    assert len(drawn) == 4
    assert drawn[0] == {}
    assert all(one in whole for one in drawn)
    assert candidates(LP(), space, 1, 0) == candidates(LP(), {}, 5, 0) == [{}]
    assert len(candidates(LP(), space, 2, 0)) == 2
    assert len(candidates(LP(), {"alpha": uniform(0.1, 0.5)}, 6, 0)) == 6


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

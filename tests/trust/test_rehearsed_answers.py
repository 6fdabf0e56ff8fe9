"""Votes and levels in rehearsals: the order of methods is that of the truth, and answers are like those given."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from contone import GLLE, Best, Inversion, Rehearsal, Temperature, Tuned, compare
from contone.enhance.counting import Counting
from contone.exceptions import LabelError, LabelWarning
from contone.numerics.simplex import kl_divergence, softmax
from contone.trust.trial import try_method

VOTES = Inversion(degradation="votes", n_sweeps=120, n_burn=50)


def items(seed, n=200, q=4, k=3):
    """X (n, 3), D and counts (n, q) of k votes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    D = softmax(X @ rng.normal(size=(3, q)) + rng.normal(size=(n, q)))
    return X, D, np.stack([rng.multinomial(k, d) for d in D]).astype(float)


def test_the_order_of_methods_and_their_errors_are_those_of_the_truth():
    X, D, Y = items(1)
    featureless = Inversion(degradation="votes", features=False, n_sweeps=120, n_burn=50)
    found = compare(
        {"model": VOTES, "without features": featureless, "warm": Temperature()}, X, Y, model=VOTES, n_replicates=3
    )
    methods = {"model": VOTES, "without features": featureless, "Counting": Counting(),
               "Dirichlet": Counting("dirichlet"), "Dirichlet with features": Counting("regression")}  # fmt: skip
    true = {name: float(kl_divergence(D, method.fit_enhance(X, Y)).mean()) for name, method in methods.items()}
    told = {name: found[name].scores["kl"] for name in true}
    assert spearmanr(list(true.values()), list(told.values())).statistic >= 0.8
    assert true[found.best] < 1.1 * min(true.values())  # the first two are close
    assert [told[name] / true[name] for name in true] == pytest.approx([1.0] * len(true), abs=0.3)
    assert found["warm"].scores  # it was given the majority


def test_answers_are_as_many_as_those_given_and_have_the_degrees_as_means():
    X, _, Y = items(2, n=120)
    Y[3] = 0.0
    Y[4, 1] = np.nan
    with pytest.warns(LabelWarning, match="without any label"):
        found = Rehearsal(X, Y, VOTES, n_replicates=3)
    for replicate in found.replicates:
        np.testing.assert_array_equal(np.nansum(replicate.labels, axis=1), np.nansum(Y, axis=1))
        np.testing.assert_array_equal(np.isnan(replicate.labels), np.isnan(Y))
    drawn = np.nanmean([r.labels / 3 - r.distributions for r in found.replicates], axis=(0, 1))
    np.testing.assert_allclose(drawn, 0.0, atol=0.05)
    kl = [[kl_divergence(r.distributions, A).mean() for A in (best, np.full_like(best, 0.25))]
          for r, best in zip(found.replicates, found.limits, strict=True)]  # fmt: skip
    assert all(limit < 0.5 * uniform for limit, uniform in kl)


@pytest.mark.parametrize("kind", ["levels", "marks"])
def test_levels_are_drawn_by_the_cut_points_of_people(kind):
    rng = np.random.default_rng(0)
    X, D, _ = items(3, n=150)
    Y = np.clip(np.round(3 * D / D.max(axis=1, keepdims=True) + 0.5 * rng.normal(size=D.shape)), 0, 3)
    Y = Y + 1.0 if kind == "levels" else (Y > 1).astype(float)
    model = Inversion(degradation=kind, n_sweeps=80, n_burn=30)
    found = Rehearsal(X, Y, model, n_replicates=4)
    values = np.unique(Y)
    shares = [np.mean([np.mean(r.labels == v) for r in found.replicates]) for v in values]
    np.testing.assert_allclose(shares, [np.mean(v == Y) for v in values], atol=0.08)
    standings = compare([model], X, Y, rehearsal=found)
    assert standings["Inversion"].scores["kl"] < standings["Counting"].scores["kl"] < standings["Uniform"].scores["kl"]


@pytest.mark.usefixtures("few_simulated")
def test_tuned_and_best_choose_by_rehearsed_votes():
    X, D, Y = items(4, n=100)
    tuned = Tuned(VOTES, search={"features": [True, False]}, n_iter=3, n_replicates=2).fit(X, Y)
    assert tuned.best_params_.get("features", True) is True  # features say much here
    assert kl_divergence(D, tuned.predict(X)).mean() < kl_divergence(D, np.full_like(D, 0.25)).mean()
    best = Best(model=VOTES, n_replicates=2).fit(X, Y)
    assert set(best.comparison_["method"]) == {"Inversion", "Counting", "Dirichlet", "Dirichlet with features"}
    with pytest.warns(LabelWarning, match="GLLE: not for these labels"):
        assert Best([VOTES, GLLE()], model=VOTES, n_replicates=1).fit(X, Y).best_name_ == "Inversion"
    with pytest.raises(LabelError, match="only for 0 and 1"):
        Tuned(GLLE(), model=VOTES, n_replicates=1).fit(X, Y)


def test_a_method_of_0_and_1_is_given_the_majority():
    labels = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, np.nan], [0.0, 0.0, 3.0]])
    X = np.zeros((3, 1))
    seen = try_method(Counting(), X, labels).answer
    np.testing.assert_allclose(seen[0], (labels[0] + 1 / 3) / 4)
    expected = Temperature().fit_enhance(X, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, np.nan], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(try_method(Temperature(), X, labels).answer, expected)

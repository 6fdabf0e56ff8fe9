"""Comparisons on rehearsed data: the order that is known beforehand is found, and failures are told."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Rehearsal, Temperature, Uniform, compare
from contone.base import Enhancer
from contone.exceptions import ArgumentError
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.trust.hidden_labels import score_hidden_entries

QUICK = Inversion(n_sweeps=60, n_burn=20)


class Failing(Enhancer):
    """Fails on every row."""

    def _fit_enhance(self, X, L):
        raise RuntimeError("<b>no</b> way")


class Slow(Enhancer):
    """Takes a little time, and says so."""

    def _fit_enhance(self, X, L):
        import time

        time.sleep(0.05)
        return Solution(np.full_like(L, 1.0 / L.shape[1]))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    D = softmax(X @ rng.normal(size=(3, 4)) * 0.4 + 0.3 * rng.normal(size=(150, 4)))
    return X, CumulativeMass().apply(D).astype(float)


@pytest.fixture(scope="module")
def rehearsal(data):
    return Rehearsal(*data, QUICK, n_replicates=4)


@pytest.fixture(scope="module")
def comparison(data, rehearsal):
    return compare({"model": QUICK, "warm": Temperature(c=0.7), "broken": Failing()}, *data, rehearsal=rehearsal)


def test_the_order_is_that_of_how_much_a_method_knows(comparison):
    names = [s.name for s in comparison.standings]
    assert names[0] == "limit"
    assert names.index("model") < names.index("warm") < names.index("Uniform")
    assert comparison.best == "model"
    assert comparison["model"].ahead == 1.0


def test_uniform_recovers_nothing_and_the_limit_all(comparison):
    assert comparison["Uniform"].recovered == pytest.approx(0.0, abs=1e-12)
    assert comparison["limit"].recovered == pytest.approx(1.0, abs=1e-12)
    assert all(s.recovered <= 1.05 for s in comparison.standings if s.scores and s.name != "Logical")


def test_methods_are_scored_by_labels_that_they_have_not_seen(data, comparison):
    found = score_hidden_entries(QUICK, *data, n_splits=3)
    assert comparison["model"].held_out == found.explained == 1 - found.loss / found.baselines["label frequencies"]
    assert comparison["model"].hidden == "entries"
    assert comparison["Uniform"].held_out < 0.1 < comparison["model"].held_out < 1.0
    assert np.isnan([comparison[name].held_out for name in ("limit", "broken")]).all()
    assert f"{comparison['model'].held_out:.3f}" in str(comparison)


def test_a_failure_is_told_and_stands_last(comparison):
    last = comparison.standings[-1]
    assert (last.name, last.n_replicates, last.scores) == ("broken", 0, {})
    assert "RuntimeError" in last.errors[0]


def test_a_method_beyond_the_budget_is_run_on_fewer_replicates(data, rehearsal):
    found = compare([Slow()], *data, rehearsal=rehearsal, budget=0.01)["Slow"]
    assert found.n_replicates == 1
    assert "1 of 4" in found.errors[0]


def test_every_method_sees_the_same_replicates(data, rehearsal):
    twice = compare([Uniform(), Uniform()], *data, rehearsal=rehearsal)
    one, other = (s for s in twice.standings if s.name.startswith("Uniform"))
    assert one.kl == other.kl


def test_what_people_and_programs_read(comparison):
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["n_replicates"] == 4
    assert "Ahead of next" in str(comparison)
    page = comparison._repr_html_()
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "<b>no" not in page


def test_the_figure_shows_all_that_have_a_finite_score(comparison):
    pytest.importorskip("matplotlib")
    labels = [text.get_text() for text in comparison.figure().axes[0].get_yticklabels()]
    assert set(labels) == {"limit", "model", "warm", "Uniform"}


def test_names_of_methods(data, rehearsal):
    found = compare(["uniform", Temperature, Temperature(c=1.0)], *data, rehearsal=rehearsal)
    assert {s.name for s in found.standings} == {"limit", "Uniform", "Temperature()", "Temperature(c=1.0)", "Logical"}
    with pytest.raises(ArgumentError, match="nonsense"):
        compare(["nonsense"], *data, rehearsal=rehearsal)
    with pytest.raises(ArgumentError, match="methods"):
        compare([], *data, rehearsal=rehearsal)


def test_any_number_of_jobs_gives_the_same(data, rehearsal):
    one = compare(["LP"], *data, rehearsal=rehearsal, n_splits=1)
    with joblib.parallel_config("threading", n_jobs=2):  # None is one process unless such a context says otherwise
        two = compare(["LP"], *data, rehearsal=rehearsal, n_splits=1)
    assert [(s.name, s.scores, s.held_out) for s in one.standings] == [
        (s.name, s.scores, s.held_out) for s in two.standings
    ]

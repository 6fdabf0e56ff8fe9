"""Comparisons on rehearsed data: the order that is known beforehand is found, and failures are told."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pytest

from contone import CumulativeMass, Inversion, Rehearsal, Temperature, Uniform, compare
from contone.base import Enhancer
from contone.exceptions import ArgumentError
from contone.numerics.simplex import kl_divergence, softmax
from contone.numerics.solution import Solution
from contone.trust.comparison import rank, rows_for_people
from contone.trust.hidden_labels import score_hidden_entries
from contone.trust.rehearsal import Replicate
from contone.trust.trial import Trial

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


class Made:
    """A rehearsal of three replicates of two rows, with truths and limits that were made by hand."""

    warnings, remarks = ("w",), ("r",)
    labels = np.eye(2)

    def __init__(self):
        self.truths = [np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([[0.7, 0.3], [0.5, 0.5]]), np.full((2, 2), 0.5)]
        graded = np.array([[0.7, 0.3], [np.nan, np.nan]])  # the second replicate is judged by its second row
        self.replicates = tuple(
            Replicate(D, np.eye(2), None, graded if k == 1 else None) for k, D in enumerate(self.truths)
        )
        self.limits = tuple(0.5 * D + 0.5 * np.roll(D, 1, axis=0) for D in self.truths)

    def __len__(self):
        return 3


def test_standings_are_means_over_the_replicates_and_ahead_is_beside_the_next_one():
    made = Made()
    rows = [slice(None), slice(1, 2), slice(None)]

    def kl(answers):
        return [kl_divergence(D[r], A[r]).mean() for D, A, r in zip(made.truths, answers, rows, strict=False)]

    good = [0.9 * D + 0.05 for D in made.truths]
    fair = [0.1 * D + 0.45 for D in made.truths]
    fair[1] = good[1]  # a tie is not ahead
    cut = [np.full((2, 2), 0.5)] * 2
    bad = [np.array([[0.3, 0.7], [0.6, 0.4]])] * 3

    def trials(answers, error=""):
        return [Trial(A, 0.5 + k, 0.1, error, warnings=((UserWarning, "note"),)) for k, A in enumerate(answers)]

    tried = {"bad": (True, trials(bad)), "good": (False, trials(good)), "cut": (False, trials(cut)),
             "none": (False, trials([None] * 3, "E: broken\nmore")), "fair": (False, trials(fair))}  # fmt: skip
    found = rank(tried, made, {"good": (0.25, "rows"), "fair": (0.125, "entries")})
    assert [s.name for s in found.standings] == ["limit", "good", "fair", "cut", "bad", "none"]
    assert [s.kind for s in found.standings] == ["limit", "method", "method", "method", "baseline", "method"]
    assert (found.best, found.n_replicates, found.n_rows, found.n_labels) == ("good", 3, 2, 2)
    assert found.warnings == ("w", "r")
    own = found["good"]
    assert own.kl == pytest.approx(kl(good))
    assert own.scores["kl"] == pytest.approx(np.mean(kl(good)))
    assert own.deviations["kl"] == pytest.approx(np.std(kl(good), ddof=1))
    limits, uniform = kl(made.limits), kl([np.full((2, 2), 0.5)] * 3)
    share = (uniform[0] - kl(good)[0]) / (uniform[0] - limits[0])  # in the others uniform is as good as the limit
    assert own.recovered == pytest.approx(share)
    assert (own.ahead, own.held_out, own.hidden) == (pytest.approx(1 / 3), 0.25, "rows")
    assert own.seconds == pytest.approx(1.5)
    assert own.notes == ("note",)
    few = found["cut"]
    assert (few.n_replicates, few.errors) == (2, ("too slow for the budget: run on 2 of 3 replicates",))
    assert few.ahead == 1.0  # of the two that it was run on
    failed = found["none"]
    assert (failed.errors, failed.scores, failed.seconds) == (("E: broken",), {}, 1.5)
    assert np.isnan([failed.ahead, failed.recovered, failed.held_out, found["bad"].ahead]).all()
    table = {row[0]: row[1:] for row in rows_for_people(found)}
    assert table["good"] == (
        f"{100 * share:.0f} %", *(f"{v:.4f}" for v in (own.scores["kl"], own.deviations["kl"],
        own.scores["chebyshev"], own.scores["cosine"])), "33%", "0.250 †", "1.50", "",
    )  # fmt: skip
    assert table["none"] == ("failed", "", "", "", "", "", "", "1.50", "E: broken")
    assert table["bad *"][5:] == ("", "", "1.50", "")
    assert table["fair"][6] == "0.125"
    assert table["limit"][-2] == ""
    lines = str(found).splitlines()
    assert lines[0] == "Expected scores on 3 rehearsed data sets of 2 rows and 2 labels"
    assert lines[2].startswith("Method  Recovered")
    assert lines[-2:] == ["Warning: w", "Warning: r"]


def test_the_picture_has_a_dot_at_the_mean_and_a_bar_per_replicate(comparison):
    pytest.importorskip("matplotlib")
    axis = comparison.figure().axes[0]
    assert axis.get_xscale() == "log"
    shown = [s for s in comparison.standings if s.name in ("limit", "model", "warm", "Uniform")]
    bars, dots = axis.lines[::2], axis.lines[1::2]
    for height, (s, bar, dot) in enumerate(zip(reversed(shown), bars, dots, strict=True)):
        assert list(bar.get_xdata()) == list(s.kl)
        assert set(bar.get_ydata()) == {height}
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (s.scores["kl"], height)


def test_a_budget_below_zero_is_refused_and_zero_splits_hide_nothing(data, rehearsal):
    for wrong in (0, -1.0, "long"):
        with pytest.raises(ArgumentError, match="budget must be"):
            compare(["LP"], *data, rehearsal=rehearsal, budget=wrong)
    found = compare([Temperature()], *data, rehearsal=rehearsal, n_splits=0)
    assert np.isnan(found["Temperature"].held_out)
    slow = compare([Slow()], *data, rehearsal=rehearsal, n_splits=1, budget=10.0)
    assert slow["Slow"].n_replicates == 4


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

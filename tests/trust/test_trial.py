"""One trial: what it keeps; methods by name; and how many replicates fit into a budget."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from contone import GLLE, LESC, LP, Inversion, Temperature
from contone.exceptions import ArgumentError, MissingExtraError
from contone.trust import trial as trials
from contone.trust.rehearsal import Replicate
from contone.trust.trial import Trial, counting_methods, named_methods, quiet, shared_memory, trial, try_all


def test_what_is_raised_is_kept_and_warnings_are_kept_once():
    def work():
        for text in ("a", "b", "a"):
            warnings.warn(text, UserWarning, stacklevel=1)
        warnings.warn("for developers", DeprecationWarning, stacklevel=1)
        return 3

    done = trial(work)
    assert (done.answer, done.error, done.traceback, done.is_left_out) == (3, "", "", False)
    assert done.notes == ("a", "b")
    assert sum(range(10**6)) == trial(lambda: sum(range(10**6))).answer
    assert done.seconds >= 0 <= done.cpu < 5
    assert done.seconds < 5

    def fail(error):
        raise error

    failed = trial(lambda: fail(ValueError("  why  ")))
    assert (failed.answer, failed.error, failed.is_left_out) == (None, "ValueError: why", False)
    assert "in fail" in failed.traceback
    assert trial(lambda: fail(KeyError())).error == "KeyError: no message"
    assert trial(lambda: fail(MissingExtraError("x"))).is_left_out


@pytest.mark.parametrize(("budget", "n"), [(None, 5), (0.1, 1), (1.9, 1), (2.0, 2), (4.9, 2), (5.0, 3)])
def test_a_budget_is_not_passed_by_a_trial_as_long_as_the_last_one(monkeypatch, budget, n):
    """Trials of 1, 2, 3, ... seconds: after k of them k (k + 1) / 2 are spent, and another k are expected."""
    taken = iter(range(1, 9))
    monkeypatch.setattr(trials, "try_method", lambda *_: Trial(None, float(next(taken)), 0.0))
    assert len(try_all(Temperature(), np.eye(2), [Replicate(np.eye(2), np.eye(2), None)] * 5, budget)) == n


def test_methods_have_the_names_that_tell_them_apart():
    found = named_methods(["glle", "GLLE (paper)", Temperature, Temperature(c=1.0), Temperature(c=1.0), LP()])
    assert list(found) == ["GLLE", "GLLE (paper)", "Temperature()", "Temperature(c=1.0)", "Temperature(c=1.0) #2", "LP"]
    assert found["GLLE (paper)"].get_params() == GLLE.preset("paper").get_params()
    assert list(named_methods("LP")) == list(named_methods(LP)) == list(named_methods(LP())) == ["LP"]
    assert named_methods({"mine": LP(alpha=0.2)})["mine"].alpha == 0.2
    for wrong, said in (("GLLE (best)", "no preset 'best'"), ("nothing", "no method 'nothing'"), (3, "methods must")):
        with pytest.raises(ArgumentError, match=said):
            named_methods([wrong] if isinstance(wrong, str) else wrong)
    with pytest.raises(ArgumentError, match="'mine' is 3"):
        named_methods({"mine": 3})


def test_counting_starts_at_the_lowest_level_and_votes_have_two_more_baselines():
    votes = counting_methods(Inversion(degradation="votes"))
    assert list(votes) == ["Counting", "Dirichlet", "Dirichlet with features"]
    assert votes["Counting"].lowest == 0.0
    rng = np.random.default_rng(0)
    fitted = Inversion(degradation="levels", n_sweeps=20, n_burn=5).fit(np.eye(9), rng.integers(2, 6, (9, 3)) * 1.0)
    levels = counting_methods(fitted)
    assert list(levels) == ["Counting"]
    assert levels["Counting"].lowest == fitted.degradation_.lowest == 2.0


def test_a_method_is_quiet_and_keeps_what_depends_on_features_in_a_folder_of_its_own():
    assert quiet(Inversion(verbose=True)).verbose is False
    method = Temperature()
    assert quiet(method) is method
    with shared_memory(method) as able:
        assert able is method  # has nothing to keep
    with shared_memory(LESC()) as able:
        folder = Path(able.memory)
        assert folder.is_dir()
    assert not folder.exists()
    with shared_memory(LESC(memory="mine")) as able:
        assert able.memory == "mine"

"""Long work tells how far it is; what it does not change is the work."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from contone import KM, Inversion
from contone.cli import terminal
from contone.runtime.progress import Report, listener, listening, reported, show_progress


def test_every_step_is_told_once():
    heard: list[Report] = []
    with listening(heard.append):
        assert list(reported("abc", 3, "letters")) == ["a", "b", "c"]
        assert listener.get() is not None
    assert [(r.done, r.total, r.name) for r in heard] == [(k, 3, "letters") for k in (1, 2, 3)]
    assert listener.get() is None
    assert list(reported("abc", 3, "letters")) == ["a", "b", "c"]


def test_fits_and_loops_are_in_the_log(caplog):
    with caplog.at_level("INFO", logger="contone"):
        KM().fit(np.eye(4), np.tile(np.eye(2), (2, 1)))
        list(reported("abc", 3, "letters"))
        list(reported("", 0, "none"))
    first, last, none = (record.getMessage() for record in caplog.records)
    assert first.startswith("KM: 4 rows, 4 features, 2 labels")
    assert last.startswith("letters: 3 of 3 steps in ")
    assert none.startswith("none: 0 of 0 steps in ")
    assert 0 <= float(last.split()[-2]) < 60


@pytest.mark.parametrize("verbose", [None, False, True])
def test_a_bar_is_shown_where_it_was_asked_for_or_nobody_else_listens(capsys, verbose):
    """Without a word about it, on a terminal only; where somebody listens, the steps are told and not shown."""
    assert list(show_progress(iter("abc"), 3, "letters", verbose)) == list("abc")
    assert ("letters" in capsys.readouterr().err) == (verbose is True)
    heard: list[Report] = []
    with listening(heard.append):
        assert list(show_progress(iter("abc"), 3, "letters", verbose)) == list("abc")
    assert [report.done for report in heard] == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_a_loop_that_breaks_off_is_forgotten():
    heard: list[Report] = []
    with listening(heard.append):
        for step in reported(range(3), 3, "x"):
            if step == 1:
                break
        assert listener.get() is not None
    assert [r.done for r in heard] == [1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_inversion_tells_its_sweeps_and_answers_the_same():
    rng = np.random.default_rng(0)
    X, L = rng.normal(size=(20, 2)), np.eye(3)[rng.integers(0, 3, 20)]
    method, heard = Inversion(n_sweeps=6, n_burn=2), []
    with listening(heard.append):
        found = method.fit_enhance(X, L)
    assert [r.done for r in heard if r.name == "Inversion"][:6] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(found, method.fit_enhance(X, L))


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_fit_has_a_bar_on_a_terminal_only(monkeypatch, is_terminal):
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "messages", lambda: Console(file=stream, force_terminal=is_terminal, highlight=False))
    with terminal.working("enhancing with Inversion"):
        assert (listener.get() is not None) == is_terminal
        list(reported(range(8), 8, "Inversion"))
    assert ("0:00:00" in stream.getvalue()) == is_terminal
    assert stream.getvalue().endswith("enhancing with Inversion\n")

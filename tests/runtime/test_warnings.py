"""A warning points at the user's line, whichever method of contone was called."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

from contone import FCM, GLLE, LP, Inversion, Rescaled
from contone.exceptions import LabelWarning
from contone.runtime.warnings import held


@pytest.mark.parametrize("call", ["fit", "fit_enhance"])
@pytest.mark.parametrize("method", [FCM(max_iter=1), LP(max_iter=1)], ids=lambda m: type(m).__name__)
def test_a_warning_points_at_the_line_of_the_caller(small, method, call):
    X, L, _ = small
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        getattr(method, call)(X, L)
    assert caught
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


def warned_of(question):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        question()
    return [str(w.message) for w in caught]


def test_one_call_gives_three_warnings_at_most_and_counts_the_rest(small):
    """A silent row, some that the rule cannot make, graded rows that deny it, a short run."""
    X, L, _ = small
    L = L.copy()
    L[:, 0], L[30], L[5] = 1.0, 0.0, 1.0
    degrees = np.full(L.shape, np.nan)
    degrees[:5] = 0.25
    said = warned_of(lambda: Inversion(n_sweeps=6, n_burn=2).fit_enhance(X, L, degrees=degrees))
    assert len(said) == 3
    assert said[-1].endswith("more warnings are not shown.)")
    assert not any("not shown" in sentence for sentence in said[:-1])


def test_what_an_inner_method_says_again_is_said_once(small):
    X, L, _ = small
    L = L.copy()
    L[3] = 0.0
    said = warned_of(lambda: Rescaled(GLLE()).fit_enhance(X, L))
    assert len(said) == len(set(said)) == 1


def test_a_warning_that_is_not_wanted_is_not_given(small):
    X, L, _ = small
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LabelWarning)
        LP().fit(X, np.where(np.arange(len(L))[:, None] == 3, 0.0, L))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LabelWarning):
            LP().fit(X, np.where(np.arange(len(L))[:, None] == 3, 0.0, L))
    assert held.get() is None

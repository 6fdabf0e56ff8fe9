"""A warning points at the user's line, whichever method of contone was called."""

from __future__ import annotations

import inspect
import warnings

import pytest

from contone import FCM, LP


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

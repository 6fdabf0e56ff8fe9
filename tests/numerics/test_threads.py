"""Work side by side gives what work in turn gives."""

from __future__ import annotations

import threading

import joblib
import pytest

from contone.numerics.threads import n_threads, side_by_side


def test_results_come_in_the_order_of_the_pieces():
    assert list(side_by_side(lambda x: x * x, range(50))) == [x * x for x in range(50)]


def test_every_thread_is_prepared_before_it_works():
    prepared = set()
    names = side_by_side(lambda _: threading.get_ident(), range(20), lambda: prepared.add(threading.get_ident()))
    assert set(names) <= prepared


def test_an_error_in_a_piece_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda x: 1 / x, [1, 0, 2]))


@pytest.mark.parametrize(("said", "meant"), [("1", 1), ("1,2", 1), ("100000", None), ("", None), ("many", None)])
def test_threads_are_as_many_as_openmp_would_use(monkeypatch, said, meant):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert n_threads() == (meant or joblib.cpu_count())

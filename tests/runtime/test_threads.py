"""Work side by side gives what work in turn gives."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from contone import FromRegressor, Temperature
from contone.backends.numpy import take_rows
from contone.backends.protocols import invert
from contone.exceptions import InputError
from contone.runtime import machine
from contone.runtime.machine import PIECE_ROWS, for_each, n_threads, pieces_by_width, pieces_of, side_by_side, total


def test_results_come_in_the_order_of_the_pieces():
    assert list(side_by_side(lambda x: x * x, range(50))) == [x * x for x in range(50)]


def test_every_thread_is_prepared_before_it_works():
    prepared = set()
    names = side_by_side(lambda _: threading.get_ident(), range(20), lambda: prepared.add(threading.get_ident()))
    assert set(names) <= prepared


def test_pieces_cover_all_rows_of_a_large_array_and_a_small_one_is_one():
    A = np.arange(2.5 * PIECE_ROWS)
    pieces = pieces_of(len(A))
    assert len(pieces) == 3
    assert np.array_equal(np.concatenate([A[rows] for rows in pieces]), A)
    assert pieces_of(2 * PIECE_ROWS) == [slice(None)]
    for width in (1, 1000, machine.PIECE_NUMBERS):
        pieces = pieces_by_width(len(A), width)
        assert np.array_equal(np.concatenate([A[rows] for rows in pieces]), A)
    assert [rows.stop for rows in pieces_by_width(600, machine.PIECE_NUMBERS)] == [256, 512, 600]
    assert len(pieces_by_width(PIECE_ROWS, 32)) == 1


def test_a_sum_over_pieces_does_not_depend_on_the_threads(monkeypatch):
    A = np.random.default_rng(0).normal(size=5 * PIECE_ROWS)
    sums = []
    for n in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", n)
        sums.append(total(lambda rows: A[rows].sum(), pieces_of(len(A))))
    assert sums[0] == sums[1]
    assert sums[0] == pytest.approx(A.sum())


def test_work_within_work_is_done_in_turn(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    done: list[int] = []
    for_each(lambda x: for_each(done.append, [x, x]), range(8))
    assert sorted(done) == sorted([*range(8), *range(8)])


def test_rows_taken_in_an_order_and_back_are_where_they_were():
    rng = np.random.default_rng(0)
    A, order = rng.normal(size=(3 * PIECE_ROWS, 2)), rng.permutation(3 * PIECE_ROWS)
    assert np.array_equal(take_rows(A, order), A[order])
    assert np.array_equal(take_rows(take_rows(A, order), invert(order)), A)
    assert np.array_equal(take_rows(A[:10], order[:10] % 10), A[order[:10] % 10])


def test_blas_has_one_thread_inside_and_as_many_as_before_after(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(machine, "_libraries", ThreadpoolController)  # with what other tests have loaded

    def blas() -> list[int]:
        return [lib["num_threads"] for lib in threadpool_info() if lib.get("threading_layer") == "pthreads"]

    with threadpool_limits(2, "blas"):
        before = blas()
        first, second = (side_by_side(lambda _: blas(), range(3)) for _ in range(2))
        inside = [*next(first), *next(second)]
        list(first)  # the first is done while the second is not
        inside += blas()
        list(second)
        assert blas() == before
    assert set(inside) <= {1}


def test_an_error_in_a_piece_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda x: 1 / x, [1, 0, 2]))


@pytest.mark.parametrize(
    ("said", "meant"), [("1", 1), ("1,2", 1), ("100000", None), ("", None), ("many", None), ("0", None)]
)
def test_threads_are_as_many_as_openmp_would_use(monkeypatch, said, meant):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert n_threads() == (meant or joblib.cpu_count())


def test_jobs_are_counted_from_one_or_back_from_all_cores(monkeypatch):
    monkeypatch.setattr(machine, "processors", lambda: 3)
    for jobs in (None, -3, -1, 1, 12):
        machine.check_jobs(jobs)
    for jobs in (-4, 0, 13):
        with pytest.raises(InputError, match=f"workers={jobs}: give -1 for one process per core, or a number .* to 12"):
            machine.check_jobs(jobs, "workers")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    """Those of its parent are not there: work given to them would never be done."""
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    assert list(side_by_side(abs, [-1, -2, -3])) == [1, 2, 3]
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if list(side_by_side(abs, [-1, -2, -3])) == [1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def blas_threads() -> set[int]:
    """Of libraries with one count for the process; with OpenMP, as in faiss, every thread has its own."""
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in found if library.get("threading_layer") != "openmp"}


def test_overlapping_fits_leave_blas_as_it_was():
    # Two contexts of threadpoolctl that overlap without being nested restore each other's limit: the second one out
    # would leave BLAS at one thread for the rest of the process.
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = machine.one_blas_thread(), machine.one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_a_limit_that_one_thread_sets_is_restored_by_another(monkeypatch):
    monkeypatch.setattr(machine, "_libraries", ThreadpoolController)
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with machine.one_blas_thread():
            inside.set()
            leave.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        other = threading.Thread(target=first)
        other.start()
        inside.wait(10)
        assert blas_threads() == {1}
        with machine.one_blas_thread():
            leave.set()
            other.join()
            assert blas_threads() == {1}
        assert blas_threads() == before


def openmp_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}


class Watched(Temperature):
    """Looks at the threads while it is fitted."""

    def _fit_enhance(self, X, L):
        self.blas_, self.openmp_ = blas_threads(), openmp_threads()
        if hasattr(self, "barrier"):
            self.barrier.wait(10)
        if self.c == 7.0:
            raise ZeroDivisionError
        return super()._fit_enhance(X, L)

    def _enhance(self, X, L):
        self.blas_new_rows_ = blas_threads()
        return super()._enhance(X, L)


class WatchedRegressor:
    """Looks at the threads while it is fitted and while it predicts."""

    def fit(self, X, D):
        self.q_, self.blas_, self.openmp_ = D.shape[1], blas_threads(), openmp_threads()
        return self

    def predict(self, X):
        self.blas_predict_ = blas_threads()
        return np.ones((len(X), self.q_))

    def get_params(self, deep=True):
        return {}


def data(n=6):
    L = np.zeros((n, 3))
    L[np.arange(n), np.arange(n) % 3] = 1
    return np.random.default_rng(0).normal(size=(n, 2)), L


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(machine, "_libraries", ThreadpoolController)  # with what other tests have loaded
    with threadpool_limits(2):
        yield blas_threads(), openmp_threads()
        assert (blas_threads(), openmp_threads()) == ({2}, {2})


def test_a_small_fit_has_one_thread_and_a_large_one_those_there_were(two_threads, monkeypatch):
    X, L = data()
    method = Watched().fit(X, L)
    method.enhance(X, L)
    assert (method.blas_, method.openmp_, method.blas_new_rows_) == ({1}, {1}, {1})
    learner = FromRegressor(WatchedRegressor()).fit(X, L)
    learner.predict(X)
    inner = learner.estimator_
    assert (inner.blas_, inner.openmp_, inner.blas_predict_) == ({1}, {1}, {1})
    monkeypatch.setattr(machine, "FEW_NUMBERS", X.size + L.size)
    assert Watched().fit(X, L).blas_ == {1}
    monkeypatch.setattr(machine, "FEW_NUMBERS", X.size + L.size - 1)
    method = Watched().fit(X, L)
    assert (method.blas_, method.openmp_) == two_threads


def test_a_learner_that_shares_its_rows_out_leaves_one_thread_to_blas(two_threads, monkeypatch):
    X, L = data()
    monkeypatch.setattr(machine, "FEW_NUMBERS", 0)
    monkeypatch.setattr(FromRegressor, "_shares_rows", True)
    inner = FromRegressor(WatchedRegressor()).fit(X, L).estimator_
    assert (inner.blas_, inner.openmp_) == ({1}, {1})


def test_threads_return_after_an_error(two_threads):
    method = Watched(c=7.0)
    with pytest.raises(ZeroDivisionError):
        method.fit(*data())
    assert method.blas_ == {1}
    assert (blas_threads(), openmp_threads()) == two_threads


def test_threads_return_after_two_fits_that_overlap(two_threads):
    barrier, methods = threading.Barrier(2), [Watched(), Watched()]
    for method in methods:
        method.barrier = barrier
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda method: method.fit(*data()), methods))
    assert [method.blas_ for method in methods] == [{1}, {1}]
    assert blas_threads() == two_threads[0]


def test_openmp_keeps_to_one_thread_where_pieces_have_threads(two_threads, monkeypatch):
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    machine._pool.cache_clear()  # its threads know what was loaded when they began
    assert list(side_by_side(lambda _: openmp_threads(), range(4))) == [{1}] * 4
    machine._pool.cache_clear()


class Library:
    """One of the libraries that threadpoolctl finds, with two threads."""

    def __init__(self, api: str, layer: str = ""):
        self.user_api, self.threading_layer, self.n = api, layer, 2

    def get_num_threads(self) -> int:
        return self.n

    def set_num_threads(self, n: int) -> None:
        self.n = n


def test_each_context_sets_its_own_kind_of_libraries_and_puts_them_back(monkeypatch):
    """BLAS is set by one, OpenMP and a BLAS that is built on it by the other; what is neither by none."""
    known = Library("blas", "pthreads"), Library("blas", "openmp"), Library("openmp"), Library("other")
    monkeypatch.setattr(machine, "_libraries", lambda: SimpleNamespace(lib_controllers=known))

    def threads() -> list[int]:
        return [library.n for library in known]

    one = machine.one_blas_thread()
    with one:
        assert threads() == [1, 2, 2, 2]
        with one:  # within itself
            assert threads() == [1, 2, 2, 2]
        assert threads() == [1, 2, 2, 2]
        with machine._one_openmp_thread():
            assert threads() == [1, 1, 1, 2]
    assert threads() == [2, 2, 2, 2]

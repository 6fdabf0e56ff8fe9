"""Pieces of a large NumPy problem side by side, on as many threads as this process may use.

NumPy, SciPy and faiss let other threads run while they compute, so that plain threads do. They come instead of the
threads inside those libraries, which meet after every small step: on a machine with other work they wait for each
other most of the time. Pieces are small enough for a processor's cache, so that a chain of operations on one of them
reads and writes memory once; their number and order do not depend on the threads, nor does a sum over them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache, reduce
from math import prod
from operator import add
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from contone.exceptions import InputError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

NAME = "contone-piece"
PIECE_ROWS = 1 << 13
"""Rows per piece: half a megabyte of float64 with 8 columns."""
PIECE_NUMBERS = 1 << 18
"""Numbers per piece where the width of the rows is known: 2 MB of float64."""
FEWEST_ROWS = 1 << 8
"""Rows per piece at the least, however wide they are: fewer are not worth a call."""
FEW_NUMBERS = 1 << 18
"""Up to this many numbers in features and labels together (2 MB), threads inside linear algebra only wait."""
MAX_JOBS_PER_CORE = 4
"""More processes than this per core only fight for it, and for the memory."""


def check_jobs(jobs: int | None, name: str = "jobs") -> None:
    """Refuse a number of processes that makes no sense on this machine; None is one, below 0 counts from all cores."""
    cores = int(joblib.cpu_count())
    most = MAX_JOBS_PER_CORE * cores
    if jobs is not None and not (-cores <= jobs <= -1 or 1 <= jobs <= most):
        raise InputError(f"{name}={jobs}: give -1 for one process per core, or a number from 1 to {most}.")


def n_threads() -> int:
    """What OMP_NUM_THREADS allows, as for other numerical libraries, and not more than there are processors."""
    allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    processors = int(joblib.cpu_count())
    return min(int(allowed), processors) if allowed.isdigit() and int(allowed) > 0 else processors


def side_by_side(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], prepare: Callable[[], object] | None = None
) -> Iterator[Result]:
    """work(piece) of every piece, in their order. `prepare` is called once in every thread before it starts."""
    threads = n_threads()
    if prepare is not None:
        with _one_blas_thread, ThreadPoolExecutor(threads, initializer=prepare) as pool:
            yield from pool.map(work, pieces)
    elif threads == 1 or threading.current_thread().name.startswith(NAME):  # these must not wait for each other
        yield from map(work, pieces)
    else:
        with _one_blas_thread:
            yield from _pool(threads).map(work, pieces)


def pieces_of(n: int) -> list[slice]:
    """n rows in pieces of `PIECE_ROWS`; one piece where they are few."""
    if n <= 2 * PIECE_ROWS:
        return [slice(None)]
    return [slice(start, min(start + PIECE_ROWS, n)) for start in range(0, n, PIECE_ROWS)]


def pieces_by_width(n: int, width: int) -> list[slice]:
    """n rows of `width` numbers each, in pieces of `PIECE_NUMBERS` numbers but not less than `FEWEST_ROWS`."""
    rows = max(FEWEST_ROWS, PIECE_NUMBERS // max(1, width))
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def total(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Result:
    """The sum of work(piece) over the pieces, side by side where there are several."""
    return work(pieces[0]) if len(pieces) == 1 else reduce(add, side_by_side(work, pieces))


def for_each(work: Callable[[Piece], object], pieces: Sequence[Piece]) -> None:
    """work(piece) for every piece, side by side where there are several."""
    if len(pieces) == 1:
        work(pieces[0])
    else:
        for _ in side_by_side(work, pieces):
            pass


class _OneBlasThread:
    """While anybody is inside, BLAS starts no threads of its own; the last one out restores what was there before.

    The limit is one for the whole process, so that two callers must not restore each other's, and any thread must be
    able to restore what another has set. (threadpoolctl's own contexts set nothing in a second thread.)
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = _set_to_one(
                    lib for lib in _libraries().lib_controllers if lib.user_api == "blas" and not _has_own_count(lib)
                )
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _restore(self._before)


@contextmanager
def _one_openmp_thread() -> Iterator[None]:
    """The same for OpenMP, and for a BLAS that is built on it: they count threads for every thread that calls them."""
    before = _set_to_one(lib for lib in _libraries().lib_controllers if _has_own_count(lib))
    try:
        yield
    finally:
        _restore(before)


def _has_own_count(library: Any) -> bool:
    return library.user_api == "openmp" or getattr(library, "threading_layer", "") == "openmp"


def _set_to_one(libraries: Iterable[Any]) -> list[tuple[Any, int]]:
    """One thread for each of these libraries; how many they had."""
    before = [(library, library.get_num_threads()) for library in libraries]
    _restore([(library, 1) for library, _ in before])
    return before


def _restore(numbers: list[tuple[Any, int]]) -> None:
    for library, n in numbers:
        # Newer versions of threadpoolctl: `set_num_threads` does nothing in any thread but the first to call it.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which linear algebra keeps to one thread: for many products that are too small to be shared.

    Contexts may overlap, in one thread or in several: the number of threads from before returns with the last one.
    """
    return _one_blas_thread


@contextmanager
def threads_for(*arrays: Any, shares_rows: bool = False) -> Iterator[None]:
    """A context for work on these arrays: BLAS and OpenMP keep to one thread where their numbers are few.

    A method makes hundreds of products with them. Shared between threads, small ones take longer than alone, since the
    threads wait for each other after each, and a waiting thread takes a core from others all the same. What is large
    keeps the threads that it had, unless the method itself `shares_rows` out to threads.
    """
    if not shares_rows and sum(getattr(A, "nnz", prod(A.shape)) for A in arrays) > FEW_NUMBERS:
        yield
        return
    with _one_blas_thread, _one_openmp_thread():
        yield


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    # OpenMP counts its threads for every thread that calls it.
    return ThreadPoolExecutor(threads, NAME, lambda: _libraries().limit(limits=1, user_api="openmp"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of the threads

"""What the machine gives to work: memory, so that it fails before it starts and not hours later, and threads.

Estimates of memory are upper ends of what was measured (benchmarks/scale.py), not guarantees. `CONTONE_MEMORY_LIMIT` in
the environment overrides what is found on the machine: a size such as ``8GB``, or ``off`` for no limit.

Pieces of a large NumPy problem run side by side. NumPy, SciPy and faiss let other threads run while they compute, so
that plain threads do. They come instead of the threads inside those libraries, which meet after every small step: on a
machine with other work they wait for each other most of the time. Pieces are small enough for a processor's cache, so
that a chain of operations on one of them reads and writes memory once; their number and order do not depend on the
threads, nor does a sum over them.
"""

import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache, reduce
from math import prod
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from contone.exceptions import InputError, MemoryEstimateError
from contone.typing import Array

LIMIT_VARIABLE = "CONTONE_MEMORY_LIMIT"
UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def fit_bytes(n: int, d: int, q: int, n_neighbors: int = 0) -> float:
    """What a method that grows with the number of rows takes beyond X (n, d) and L (n, q).

    Two copies of X (scaled, and single precision twice for a neighbour search), about a dozen matrices of the shape of
    L in a solver, and for a graph the neighbours, the edges both ways, their normalised copy: 100 bytes per neighbour.
    """
    return float(n) * (16 * d + 100 * q + 100 * n_neighbors)


def table_bytes(n: int, n_columns: int, *, is_text: bool) -> float:
    """What a table takes that is read whole, with the arrays made from it and the table that is written.

    A cell of a text file is kept as text (16 bytes or more) and as a number. A column costs about 4 kB by itself,
    however few rows it has (measured: 20 rows of 5,000 and of 20,000 columns).
    """
    return float(n_columns) * (n * (64 if is_text else 32) + 4000)


def refuse_dense(what: object, n: int, n_columns: int) -> None:
    """Refuse a sparse table of n rows and n_columns that does not fit into memory once its zeros are written out."""
    needed, available = table_bytes(n, n_columns, is_text=False), available_bytes()
    if needed > available:
        raise MemoryEstimateError(
            f"{what} is sparse: its {n:,} rows and {n_columns:,} columns with all zeros would take about "
            f"{shown(needed)}, and {shown(available)} are available. Read it in Python (for libsvm: "
            "sklearn.datasets.load_svmlight_file) and hand the sparse matrix to contone.Inversion, which keeps it "
            f"sparse; or set {LIMIT_VARIABLE} if you know better."
        )


def user_limit() -> float | None:
    """The limit that the user has set, in bytes; None where there is none."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    return parse_size(given) if given else None


def available_bytes() -> float:
    """Memory that can be taken now without pushing others out; infinite where nothing is known.

    It is the user's limit, or the least that the machine and the process's control group (a container) leave.
    """
    limit = user_limit()
    return min(_machine(), _control_group()) if limit is None else limit


def parse_size(text: str) -> float:
    """A size in bytes from text such as 512MB, 8 GB, 8GiB, 1e9; infinite for "off".

    Examples
    --------
    >>> parse_size("1.5GB"), parse_size("2GiB"), parse_size("off")
    (1500000000.0, 2147483648.0, inf)
    """
    if text.strip().lower() in ("off", "none", "inf"):
        return math.inf
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:e\d+)?)\s*([kmgt]?i?)b?\s*", text, flags=re.IGNORECASE)
    if found is None or found[2].upper() not in UNITS:
        raise InputError(f"{LIMIT_VARIABLE}={text!r} is not a size: write for example 8GB, or off.")
    return float(found[1]) * UNITS[found[2].upper()]


def shown(size: float) -> str:
    """A size for people.

    Examples
    --------
    >>> shown(1.94e9), shown(3.2e7)
    ('1.9 GB', '32 MB')
    """
    if size >= 1e12:
        return f"{size / 1e12:,.1f} TB"
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _machine() -> float:
    """What the operating system calls available."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), flags=re.MULTILINE)
        if found:
            return float(found[1]) * 1024
    except OSError:
        pass
    try:  # not Linux: all of the memory, for want of anything better
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return math.inf


def _control_group() -> float:
    """What the container leaves; cached file pages count as free, as the kernel drops them on demand."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return math.inf
        used = float((CGROUP / "memory.current").read_text())
        cached = re.search(r"^inactive_file (\d+)", (CGROUP / "memory.stat").read_text(), flags=re.MULTILINE)
        return float(limit) - used + (float(cached[1]) if cached else 0.0)
    except (OSError, ValueError):
        return math.inf


# ------------------------------------------------------------------------------------------------------------ threads

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
    cores = processors()
    most = MAX_JOBS_PER_CORE * cores
    if jobs is not None and not (-cores <= jobs <= -1 or 1 <= jobs <= most):
        raise InputError(f"{name}={jobs}: give -1 for one process per core, or a number from 1 to {most}.")


def n_threads() -> int:
    """What OMP_NUM_THREADS allows, as for other numerical libraries, and not more than there are processors."""
    allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(int(allowed), processors()) if allowed.isdigit() and int(allowed) > 0 else processors()


@cache
def processors() -> int:
    """Processors of this process; asked for once, because a container's limits are read from files."""
    return int(joblib.cpu_count())


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
    """The sum of work(piece) over the pieces, side by side where there are several; None where it returns nothing."""
    if len(pieces) == 1:
        return work(pieces[0])
    first, *others = side_by_side(work, pieces)
    return first if first is None else reduce(add, others, first)


def for_each(work: Callable[[Piece], None], pieces: Sequence[Piece]) -> None:
    """work(piece) for every piece, side by side where there are several; it returns nothing."""
    total(work, pieces)


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
                found = _libraries().lib_controllers
                self._before = _set_to_one(lib for lib in found if lib.user_api == "blas" and not _has_own_count(lib))
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
def threads_for(*arrays: Array, shares_rows: bool = False) -> Iterator[None]:
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

"""Cells -> store: carry out what is not there yet, in parallel, and survive what goes wrong.

Cells are independent, so they run as joblib tasks, on this machine (loky processes) or on a dask cluster. A worker
sends its record back and this process alone writes it, the moment it arrives: a run that is interrupted or killed loses
only the cells under way, and the next run starts with those. A cell that raises becomes a failure with its traceback
and the others go on. A cell that takes its process down (out of memory) is found by running what is left in one process
per cell.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from contone.exceptions import InputError, MissingExtraError
from contone.experiments.cells import Cell, unique
from contone.experiments.compute import compute, record_of, versions
from contone.experiments.store import Store
from contone.runtime.machine import check_jobs
from contone.trust.trial import Trial
from contone.typing import Record

Compute = Callable[[Cell], Record]
BACKENDS = ("loky", "dask")

WATCH_SECONDS = 0.5
"""How often a worker looks whether the run that started it is still there."""

CONNECT_TIMEOUT = "10s"
"""How long a dask scheduler may take to answer."""


@dataclass
class Progress:
    """Where a run stands; handed to the observer after every cell."""

    total: int
    reused: int
    jobs: int
    done: int = 0
    failed: int = 0
    last: str = ""
    started: float = field(default_factory=time.monotonic)
    costs: dict[str, list[float]] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    """Seconds that a cell was estimated to take, by its key."""
    waiting: dict[str, str] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Cells that are not finished."""
        return len(self.waiting)

    @property
    def running(self) -> int:
        """Cells under way."""
        return min(self.jobs, self.left)

    def seconds_left(self) -> float | None:
        """Expected time to the end: as estimated, else from the mean cost of each row so far; None before both."""
        known = [value for values in self.costs.values() for value in values]
        if not known and not self.expected:
            return None
        typical = fmean(known or self.expected.values())
        expected = sum(
            self.expected[key] if key in self.expected else fmean(self.costs[row]) if row in self.costs else typical
            for key, row in self.waiting.items()
        )
        return expected / max(1, self.jobs)

    def arrived(self, cell: Cell, record: Record) -> None:
        """Count a finished cell."""
        self.waiting.pop(cell.key, None)
        self.costs.setdefault(cell.row, []).append(record["time"]["wall"])
        self.done += record["status"] == "done"
        self.failed += record["status"] == "failed"
        self.last = str(cell)


Observer = Callable[[Progress], None]


def run(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = -1,
    backend: str = "loky",
    address: str | None = None,
    observer: Observer | None = None,
    about: Record | None = None,
    expected: dict[str, float] | None = None,
    compute: Compute = compute,
) -> Progress:
    """Carry out every cell that the store does not hold yet.

    Parameters
    ----------
    cells : sequence of Cell
        The plan. Cells with one key are computed once.
    store : Store
        Where results, failures and the record of this run go.
    jobs : int, default=-1
        Processes; -1 for one per core. With dask the cluster decides.
    backend : {"loky", "dask"}
        Processes on this machine, or a dask cluster.
    address : str
        Of the dask scheduler, e.g. "tcp://host:8786".
    observer : callable
        Called with the `Progress` at the start and after every cell.
    about : dict
        Plain values to be kept with the run, e.g. the command.
    expected : dict
        Seconds that each cell was estimated to take, by its key.
    compute : callable
        What carries out one cell.
    """
    if backend not in BACKENDS:
        raise InputError(f"There is no backend {backend!r}; there are: {', '.join(BACKENDS)}.")
    if address and backend != "dask":
        raise InputError(f"address={address!r} is the scheduler of a dask cluster: choose backend='dask', too.")
    check_jobs(jobs)
    todo = [cell for cell in unique(cells) if cell.key not in store]
    identity = store.open_run({**machine(), **(about or {})}, [cell.plain() for cell in cells])
    with _backend(backend, address, jobs) as workers:
        progress = Progress(len(todo), len(unique(cells)) - len(todo), workers, expected=dict(expected or {}))
        progress.waiting = {cell.key: cell.row for cell in todo}
        tell = observer or (lambda progress: None)
        state = "interrupted"
        try:
            tell(progress)
            for cell, record in _records(todo, store, workers, compute):
                store.add(record)
                progress.arrived(cell, record)
                tell(progress)
            state = "finished"
        finally:
            store.close_run(identity, state=state, done=progress.done, failed=progress.failed, reused=progress.reused)
    return progress


def _records(todo: Sequence[Cell], store: Store, workers: int, compute: Compute) -> Iterator[tuple[Cell, Record]]:
    """Cells with their records, in the order in which they finish."""
    cells = {cell.key: cell for cell in todo}
    # Asked at the last moment: another run on the same store may have finished a cell meanwhile.
    tasks = (delayed(_keyed)(compute, cell.key, cell) for cell in todo if cell.key not in store)
    try:
        for key, record in Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)(tasks):
            yield cells[key], _same_code(cells.pop(key), record)
    except BrokenProcessPool:
        # A worker died and took the pool along; which cell did it shows when each has a process of its own.
        for cell in cells.values():
            if cell.key not in store:
                yield cell, _alone(cell, compute)


def _keyed(compute: Compute, key: str, cell: Cell) -> tuple[str, Record]:
    # The key of the plan travels along: the worker's own key differs when its code does.
    return key, compute(cell)


def leave_with(parent: int) -> None:
    """End this worker when the process `parent`, which started it, is gone; it would wait for work forever.

    Workers run it before anything else, with the run's id: one that asked for its parent itself could be too late.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)  # nothing is lost: only the parent writes

    threading.Thread(target=watch, daemon=True).start()


def _same_code(cell: Cell, record: Record) -> Record:
    """The record; a failure when the worker computed with other code than the plan was made with."""
    if record["key"] == cell.key:
        return record
    message = "The worker runs other code than this process (edited meanwhile, or another version): run again."
    return {**record, "key": cell.key, "status": "failed", "error": message, "traceback": message, "arrays": None}


def _alone(cell: Cell, compute: Compute) -> Record:
    """A cell in a process of its own, so that its death is its own."""
    began = time.perf_counter()
    try:
        with ProcessPoolExecutor(max_workers=1, initializer=leave_with, initargs=(os.getpid(),)) as pool:
            return _same_code(cell, pool.submit(compute, cell).result())
    except BrokenProcessPool:
        message = "The process that computed this cell exited unexpectedly; it may have run out of memory."
        return record_of(cell, Trial(None, time.perf_counter() - began, 0.0, message, message), time.time())


@contextmanager
def _backend(backend: str, address: str | None, jobs: int) -> Iterator[int]:
    """joblib set up for the backend; gives the number of cells that run at once."""
    if backend == "dask":
        client = _dask_client(address)
        context: AbstractContextManager[Any] = parallel_config(backend="dask", client=client, n_jobs=-1)
    else:
        client = nullcontext()
        # Each worker computes with one BLAS thread: more would oversubscribe the cores.
        loky = {"inner_max_num_threads": 1, "initializer": leave_with, "initargs": (os.getpid(),)}
        context = parallel_config(backend="loky", n_jobs=jobs, **loky)
    with client, context:
        yield effective_n_jobs(-1 if backend == "dask" else jobs)


def _dask_client(address: str | None) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "The dask backend needs dask.distributed, which is not installed: pip install 'contone[scale]'."
        ) from error
    if not address:
        raise InputError("The dask backend needs the address of a scheduler, e.g. --address tcp://host:8786.")
    try:
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except Exception as error:  # dask answers a wrong address with errors of a dozen kinds
        raise InputError(
            f"No dask scheduler answers at {address!r} ({error}): give the address of one that runs, e.g. tcp://host:8786."
        ) from error


def machine() -> Record:
    """What a run is made on: for the provenance of its numbers."""
    about = {"system": platform.system(), "release": platform.release()}
    about |= {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    return {"versions": versions(), "machine": {**about, "cores": os.cpu_count()}}

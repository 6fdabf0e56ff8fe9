"""Cells -> store: carry out what is not there yet, in parallel, and survive what goes wrong.

Cells are independent, so they run as joblib tasks, on this machine (loky processes) or on a dask cluster. A worker
sends its record back and this process alone writes it, the moment it arrives: a run that is interrupted or killed loses
only the cells under way, and the next run starts with those. A cell that raises becomes a failure with its traceback
and the others go on. A cell that takes its process down (out of memory) is found by running what is left in one process
per cell.

What a run will cost is estimated before it starts. Every row is tried on a few rows of the smallest data set, at two
sizes, which gives its time and how it grows with the number of rows; other data sets are scaled from there, in
proportion to the number of labels. What the store already knows about a row on the same data set is taken instead. The
figures are rough: they tell minutes from days.
"""

import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from contone.exceptions import InputError, missing_extra
from contone.experiments.compute import attempt, compute, record_of, versions
from contone.experiments.plan import Cell
from contone.experiments.sources import load
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

PROBE_ROWS = (120, 480)
"""Rows of the two trials."""

LONG_TRIAL = 2.0
"""Seconds: after a first trial as long as this there is no second one, and the time is taken to grow with the rows."""

EXPONENTS = (1.0, 2.5)
"""The growth with the number of rows is kept within these powers: two short trials alone could say anything."""

Growth = Callable[[int, int], float]
"""Seconds of a row, of the numbers of rows and labels."""


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
        mean = {row: fmean(costs) for row, costs in self.costs.items()}
        expected = sum(self.expected.get(key, mean.get(row, typical)) for key, row in self.waiting.items())
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
    n_asked, todo = len({cell.key for cell in cells}), list(_missing(cells, store).values())
    identity = store.open_run({**machine(), **(about or {})}, [cell.plain() for cell in cells])
    with _backend(backend, address, jobs) as workers:
        progress = Progress(len(todo), n_asked - len(todo), workers, expected=dict(expected or {}))
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


def _missing(cells: Iterable[Cell], store: Store) -> dict[str, Cell]:
    """The cells that the store does not hold, one per key."""
    return {key: cell for key, cell in {cell.key: cell for cell in cells}.items() if key not in store}


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
    return {**record, "key": cell.key, "status": "failed", "error": message, "traceback": message}


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
        raise missing_extra("The dask backend", "dask.distributed", "scale") from error
    if not address:
        raise InputError("The dask backend needs the address of a scheduler, e.g. --address tcp://host:8786.")
    try:
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except Exception as error:  # dask answers a wrong address with errors of a dozen kinds
        raise InputError(f"No dask scheduler answers at {address!r}: {error}") from error


def machine() -> Record:
    """What a run is made on: for the provenance of its numbers."""
    about = {"system": platform.system(), "release": platform.release()}
    about |= {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    return {"versions": versions(), "machine": {**about, "cores": os.cpu_count()}}


# ------------------------------------------------------------------------------------------------------------ estimate


@dataclass(frozen=True)
class Estimate:
    """Expected seconds: of every cell by its key, of the whole run, and of its longest cell.

    `unknown` are rows that failed in the trial, and whose time is taken to be the mean of the others.
    """

    cells: dict[str, float]
    seconds: float
    longest: Cell | None
    unknown: tuple[str, ...] = ()


def estimate(cells: Sequence[Cell], store: Store, *, jobs: int = 1) -> Estimate:
    """What the cells that the store does not hold yet will take with `jobs` processes."""
    todo = list(_missing(cells, store).values())
    asked = ((r["cell"], r["time"]["wall"]) for r in store.results())
    known = {(cell["experiment"], cell["row"], cell["data_hash"]): seconds for cell, seconds in asked}
    grows: dict[tuple[str, str], Growth] = {}
    costs: dict[str, float] = {}
    for cell in sorted(todo, key=lambda c: _size(c)[0]):
        place = cell.experiment, cell.row
        if (*place, cell.data_hash) in known:
            costs[cell.key] = known[*place, cell.data_hash]
            continue
        if place not in grows:
            grows[place] = _try(cell)
        costs[cell.key] = grows[place](*_size(cell))
    typical = float(np.nanmean([*costs.values()])) if not all(map(math.isnan, costs.values())) else 0.0
    whole = {key: typical if math.isnan(cost) else cost for key, cost in costs.items()}
    longest = max(todo, key=lambda c: whole[c.key], default=None)
    # No run is shorter than its longest cell, however many processes it has.
    seconds = max(math.fsum(whole.values()) / max(1, jobs), max(whole.values(), default=0.0))
    return Estimate(whole, seconds, longest, tuple(row for (_, row), grow in grows.items() if math.isnan(grow(1, 1))))


def _try(cell: Cell) -> Growth:
    """How a row's time grows, from a few rows of its data set; not a number where it fails."""
    n, q = _size(cell)
    first, last = (min(size, n) for size in PROBE_ROWS)
    least = most = seconds_on(cell, first)
    power = EXPONENTS[0]
    if least <= LONG_TRIAL and last > first:
        most = seconds_on(cell, last)
        power = float(np.clip(math.log(most / least) / math.log(last / first), *EXPONENTS)) if least > 0 else power
    else:
        last = first
    return lambda rows, labels: float(most * (rows / last) ** power * max(1.0, labels / q))


def _size(cell: Cell) -> tuple[int, int]:
    return load(cell.dataset, cell.source).D.shape


def seconds_on(cell: Cell, n_rows: int) -> float:
    """Time on the processor, as other work on the machine says nothing about this row; nan where it fails."""
    done = attempt(cell, n_rows)  # the run itself will say what is wrong
    return math.nan if done.answer is None else done.cpu

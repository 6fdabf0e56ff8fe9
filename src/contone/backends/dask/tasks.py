"""Work on blocks that stay where they are: tasks on a cluster, or plain calls where there is none.

A *handle* stands for the result of a task: a future on a cluster, whose value stays with the worker that made it and is
made again by the scheduler should that worker be lost; without a cluster, the value itself. An array that has been
persisted is a list of handles (`handles`), and a list of handles is such an array (`as_array`): both cost nothing.

A task with several results has one handle, a tuple. An *entry* of it needs a task of its own only where other workers
are to have it without the rest; the next step on the same block takes it out of the tuple by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import delayed

from contone.backends.dask.rows import FAN, persist
from contone.backends.numpy import Backend, add_parts
from contone.typing import Array, Function, Numbers, Record

Handle = Any
_HOST = Backend()


class Entry(NamedTuple):
    """One of the results of a task."""

    results: Handle
    position: int


class Blank(NamedTuple):
    """Stands for an array like `model` that `update` is to write: nothing is read, copied or sent for it."""

    model: Array


class _Unwritten(NamedTuple):
    """A block of it."""

    shape: tuple[int, ...]
    dtype: Handle


def run(function: Function, arguments: Iterable[tuple[Handle, ...]]) -> list[Handle]:
    """A handle for function(*a) for every tuple a of arguments, which may be or hold handles.

    All tasks go to the scheduler in one message: one by one they cost it, and this process, several times as much.
    """
    client, given = _client(), list(arguments)
    if client is None:
        return [function(*some) for some in given]
    found: list[Handle] = client.map(function, *map(list, zip(*given, strict=True)), pure=False) if given else []
    return found


def run_on_rows(function: Function, arrays: Sequence[Array], arguments: Iterable[tuple[Handle, ...]]) -> Handle:
    """Handles for function(rows of every lazy array, *a), block by block; what is lazy is computed and not kept."""
    task = delayed(function, pure=False)
    blocks = zip(*(A.to_delayed().ravel() for A in arrays), strict=True)
    tasks = [task(*rows, *given) for rows, given in zip(blocks, arguments, strict=True)]
    return [_value(found) for found in persist(*tasks)]


def item(handle: Handle, position: int) -> Handle:
    """Entry `position` of a tuple, where the tuple is."""
    return run(_item, [(handle, position)])[0]


def items(handles: Sequence[Handle], n: int, first: int = 0) -> list[list[Handle]]:
    """For each of n positions, from `first` on, the handles of these entries of all tuples."""
    found = run(_item, [(handle, position) for position in range(first, first + n) for handle in handles])
    return [found[i : i + len(handles)] for i in range(0, len(found), len(handles))]


def fetch(handles: Sequence[Handle]) -> list[Handle]:
    """The values, small ones, in this process."""
    client = _client()
    return list(handles) if client is None else list(client.gather(list(handles)))


def handles(A: Array) -> list[Handle]:
    """One handle for every block of rows of A, which is persisted if it is still lazy."""
    found = entries_of(A)
    return run(_item, found) if found and isinstance(found[0], Entry) else found


def entries_of(A: Array) -> list[Handle]:
    """The same, with an entry for every block that is one result of several; for tasks that pass it to `_taken`."""
    if isinstance(A, Blank):
        return [_Unwritten((m, *A.model.shape[1:]), A.model.dtype) for m in A.model.chunks[0]]
    if A.ndim > 1 and A.numblocks[1] > 1:
        A = A.rechunk((A.chunks[0], A.shape[1]))
    tail = (0,) * (A.ndim - 1)
    held = dict(A.__dask_graph__())
    keys = [(A.name, i, *tail) for i in range(A.numblocks[0])]
    if not all(_is_held(held[key], _client()) for key in keys):
        (A,) = persist(A)
        held = dict(A.__dask_graph__())
    return [_resolved(held[key]) for key in keys]


def update(
    prepare: Function | None,
    prepared: Iterable[tuple[Handle, ...]] | None,
    function: Function,
    changed: Sequence[Array],
    given: Sequence[Array],
    summed: bool,
    shared: Record,
) -> tuple[tuple[Array, ...], Array]:
    """`Backend.update`, one task per block, in which the rows go by in pieces as they do in
    memory; `prepare` makes the step on a block, one like `Graph.update` in memory, of the tuple `prepared` for it."""
    columns = [entries_of(A) for A in changed], [entries_of(A) for A in given]
    n_blocks = len((columns[0] + columns[1])[0])
    first = [()] * n_blocks if prepared is None else list(prepared)
    work = partial(_update, prepare, function, summed, shared)
    rows = ([list(some) for some in zip(*side, strict=True)] or [[] for _ in range(n_blocks)] for side in columns)
    found = run(work, zip(first, *rows, strict=True))
    several = len(changed) + summed > 1
    arrays = tuple(
        as_array([Entry(block, i) for block in found] if several else found, *_form(A)) for i, A in enumerate(changed)
    )
    numbers = run(_item, [(block, len(changed)) for block in found]) if several and summed else found
    return arrays, reduce(add, fetch(numbers)) if summed else None


def _update(
    prepare: Callable[..., Function] | None,
    function: Function,
    summed: bool,
    shared: Record,
    prepared: tuple[Handle, ...],
    changed: list[Handle],
    given: list[Handle],
) -> Handle:
    rows = [np.empty(*A) if isinstance(A, _Unwritten) else np.array(_taken(A)) for A in changed]
    others = [_taken(A) for A in given]
    step = _HOST.update if prepare is None else prepare(*prepared)
    numbers = step(function, rows, others, summed=summed, **shared)[1]
    results = (*rows, numbers) if summed else tuple(rows)
    return results[0] if len(results) == 1 else results


def sum_rows(function: Function, *arrays: Array) -> Callable[..., Numbers]:
    """`Backend.sum_rows`: a task per block, piece by piece in it, and a tree of sums."""
    blocks = list(zip(*map(entries_of, arrays), strict=True))
    work = partial(_summed, function)

    def total(*given: object) -> Numbers:
        parts = run(work, [(given, some) for some in blocks])
        while len(parts) > FAN:
            parts = run(add_parts, [(parts[i : i + FAN],) for i in range(0, len(parts), FAN)])
        return add_parts(fetch(parts))

    return total


def _summed(function: Function, given: tuple[Handle, ...], rows: tuple[Handle, ...]) -> tuple[Handle, ...]:
    return _HOST.sum_rows(function, *map(_taken, rows))(*given)


def as_array(
    handles: Sequence[Handle], rows: Iterable[int], columns: int | None = None, dtype: Handle = np.float64
) -> Array:
    """The array (n, columns), or (n,), whose blocks of rows these are."""
    name = f"rows-{uuid4().hex}"
    tail = () if columns is None else (0,)
    chunks = (tuple(int(m) for m in rows), *(() if columns is None else ((columns,),)))
    cluster = _client() is not None
    graph: dict[tuple[str | int, ...], Handle] = {}
    for i, handle in enumerate(handles):
        if isinstance(handle, Entry):
            handle = (_item, *handle) if cluster else _item(*handle)
        graph[(name, i, *tail)] = handle
    return da.Array(graph, name, chunks, dtype=dtype)


def _form(A: Array) -> tuple[Handle, ...]:
    """Rows per block, columns and type of A, for `as_array`."""
    A = A.model if isinstance(A, Blank) else A
    return A.chunks[0], A.shape[1] if A.ndim > 1 else None, A.dtype


def worker_threads() -> int | None:
    """How many tasks the workers run at a time; None without a cluster."""
    client = _client()
    return None if client is None else sum(client.nthreads().values())


def worker_bytes() -> float | None:
    """The memory that the workers may use together; None without a cluster, infinity where they have no limit."""
    client = _client()
    if client is None:
        return None
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # earlier versions of distributed tell of all workers, unasked
        info = client.scheduler_info()
    limits = [worker["memory_limit"] for worker in info["workers"].values()]
    return float(sum(limits)) if limits and all(limits) else float("inf")


def _client() -> Handle:
    """The client of the cluster that dask would use here and now; None where it would use this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "submit") and hasattr(owner, "gather") else None


def _is_held(value: Handle, client: Handle) -> bool:
    """Whether a graph holds the result for a key, or an entry of it: on the cluster, or, without one, here."""
    if isinstance(value, tuple):
        return len(value) == 3 and value[0] is _item and _is_held(value[1], client)
    return (
        isinstance(_resolved(value), np.ndarray)
        if client is None
        else hasattr(value, "key") and hasattr(value, "client")
    )


def _resolved(value: Handle) -> Handle:
    """What a graph holds for a key that has been computed: itself, or wrapped by newer versions of dask."""
    if isinstance(value, tuple) and len(value) == 3 and value[0] is _item:
        return Entry(*value[1:])
    return value.value if type(value).__name__ == "DataNode" else value


def _value(persisted: Handle) -> Handle:
    """The handle behind a persisted delayed value."""
    return _resolved(dict(persisted.__dask_graph__())[persisted.key])


def _item(values: Handle, position: int) -> Handle:
    return values[position]


def _taken(value: Handle) -> Handle:
    """What a task was given, or the entry of it that was meant."""
    return _item(*value) if isinstance(value, Entry) else value

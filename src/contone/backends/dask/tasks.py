"""Work on blocks that stay where they are: tasks on a cluster, or plain calls where there is none.

A *handle* stands for the result of a task: a future on a cluster, whose value stays with the worker that made it and is
made again by the scheduler should that worker be lost; without a cluster, the value itself. An array that has been
persisted is a list of handles (`handles`), and a list of handles is such an array (`as_array`): both cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import delayed

from contone.backends.dask.rows import persist
from contone.typing import Array

Handle = Any


def run(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Handle]:
    """A handle for function(*a) for every tuple a of arguments, which may be or hold handles."""
    client = _client()
    if client is None:
        return [function(*given) for given in arguments]
    return [client.submit(function, *given, pure=False) for given in arguments]


def run_on_rows(function: Callable[..., Any], arrays: Sequence[Array], arguments: Iterable[tuple[Any, ...]]) -> Any:
    """Handles for function(rows of every lazy array, *a), block by block; what is lazy is computed and not kept."""
    task = delayed(function, pure=False)
    blocks = zip(*(A.to_delayed().ravel() for A in arrays), strict=True)
    tasks = [task(*rows, *given) for rows, given in zip(blocks, arguments, strict=True)]
    return [_value(found) for found in persist(*tasks)]


def item(handle: Handle, position: int) -> Handle:
    """Entry `position` of a tuple, where the tuple is."""
    return run(_item, [(handle, position)])[0]


def items(handles: Sequence[Handle], n: int) -> list[list[Handle]]:
    """For each of n positions the handles of these entries of all tuples."""
    found = run(_item, [(handle, position) for position in range(n) for handle in handles])
    return [found[i : i + len(handles)] for i in range(0, len(found), len(handles))]


def fetch(handles: Sequence[Handle]) -> list[Any]:
    """The values, small ones, in this process."""
    client = _client()
    return list(handles) if client is None else list(client.gather(list(handles)))


def handles(A: Array) -> list[Handle]:
    """One handle for every block of rows of A, which is persisted if it is still lazy."""
    if A.ndim > 1 and A.numblocks[1] > 1:
        A = A.rechunk((A.chunks[0], A.shape[1]))
    tail = (0,) * (A.ndim - 1)
    held = dict(A.__dask_graph__())
    keys = [(A.name, i, *tail) for i in range(A.numblocks[0])]
    if not all(_is_held(held[key], _client()) for key in keys):
        (A,) = persist(A)
        held = dict(A.__dask_graph__())
    return [_resolved(held[key]) for key in keys]


def as_array(
    handles: Sequence[Handle], rows: Sequence[int], columns: int | None = None, dtype: Any = np.float64
) -> Array:
    """The array (n, columns), or (n,), whose blocks of rows these are."""
    name = f"rows-{uuid4().hex}"
    tail = () if columns is None else (0,)
    chunks = (tuple(int(m) for m in rows), *(() if columns is None else ((columns,),)))
    graph = {(name, i, *tail): handle for i, handle in enumerate(handles)}
    return da.Array(graph, name, chunks, dtype=dtype)


def _client() -> Any:
    """The client of the cluster that dask would use here and now; None where it would use this process."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "submit") and hasattr(owner, "gather") else None


def _is_held(value: Any, client: Any) -> bool:
    """Whether a graph holds the result for a key: on the cluster, or, without one, here."""
    return (
        isinstance(_resolved(value), np.ndarray)
        if client is None
        else hasattr(value, "key") and hasattr(value, "client")
    )


def _resolved(value: Any) -> Any:
    """What a graph holds for a key that has been computed: itself, or wrapped by newer versions of dask."""
    return value.value if type(value).__name__ == "DataNode" else value


def _value(persisted: Any) -> Handle:
    """The handle behind a persisted delayed value."""
    return _resolved(dict(persisted.__dask_graph__())[persisted.key])


def _item(values: Any, position: int) -> Any:
    return values[position]

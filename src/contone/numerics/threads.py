"""Pieces of a large NumPy problem side by side, on as many threads as this process may use.

NumPy, SciPy and faiss let other threads run while they compute, so that plain threads do. They come instead of the
threads inside those libraries, which meet after every small step: on a machine with other work they wait for each
other most of the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def n_threads() -> int:
    """What OMP_NUM_THREADS allows, as for other numerical libraries, and not more than there are processors."""
    allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(int(allowed), joblib.cpu_count()) if allowed.isdigit() and int(allowed) > 0 else joblib.cpu_count()


def side_by_side(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], prepare: Callable[[], object] | None = None
) -> Iterator[Result]:
    """work(piece) of every piece, in their order. `prepare` is called once in every thread before it starts."""
    with ThreadPoolExecutor(n_threads(), "contone", prepare or _nothing) as pool:
        yield from pool.map(work, pieces)


def _nothing() -> None: ...

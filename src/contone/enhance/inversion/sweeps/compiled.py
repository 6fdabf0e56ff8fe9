"""Sweeps of NumPy arrays as compiled loops (`loops`), rows in pieces, side by side on threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from contone.enhance.inversion.covariance import FactorPrecision, Precision
from contone.enhance.inversion.sweeps import Bound, Sums, Sweeps
from contone.measurements import Region
from contone.runtime.machine import for_each

PIECE_ROWS = 4096
"""At most how many rows one thread works on at a time."""
TILE_NUMBERS = 8192
"""About how many log weights are in a tile: with what belongs to them they fit into a processor's second cache."""
MARGIN = {8: 1e-9, 4: 1e-5}
"""How far draws stay clear of the ends of their interval, by item size."""


@cache
def _loops() -> ModuleType:
    """The compiled loops; numba is imported when they are first needed."""
    from contone.enhance.inversion.sweeps import loops

    return loops


def compile_loops() -> None:
    """Compile what the first fit would, in both precisions; it is kept on this machine."""
    for dtype in (np.float64, np.float32):
        Z = np.zeros((2, 2), dtype=dtype)
        CompiledSweeps(Region("order")).sweep(Z, Bound(Z > 0), Z, np.eye(2), Z, Z[0])
        add_draw(Z, (np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))), 1e-12, -40.0)


@dataclass(frozen=True)
class CompiledSweeps(Sweeps):
    """Sweeps within a region."""

    region: Region

    def sweep(
        self,
        Z: np.ndarray,
        bound: Bound,
        mean: np.ndarray,
        precision: Precision,
        u: np.ndarray,
        shift: np.ndarray,
        *,
        reflect: bool = False,
        root_weights: np.ndarray | None = None,
    ) -> np.ndarray:
        (q, n), dtype = Z.shape, Z.dtype
        state = np.zeros(n, dtype=np.uint8)
        is_zero, highest_zero = np.zeros((0, 0), dtype=np.uint8), np.zeros(0)
        if bound.relaxed is not None:
            state[bound.relaxed] = 1
        if bound.known is not None:
            state[bound.known.rows] = 2
            is_zero, highest_zero = _marks(bound.known.is_zero), np.asarray(bound.known.highest_zero, dtype=np.float64)
        form = _form(precision)
        found, size = np.empty((q, n), dtype=dtype), tile_rows(q)
        rows = (_marks(bound.positive), state, is_zero, highest_zero, _laid_out(mean, dtype))
        draws = (_laid_out(u, dtype), _laid_out(shift, dtype))
        roots = _laid_out(np.zeros(0) if root_weights is None else root_weights, dtype)
        how = (self.region.number, self.region.share, MARGIN[dtype.itemsize], reflect)
        Z, work = _laid_out(Z, dtype), _loops().sweep
        for_each(lambda s: work(Z, found, *rows, *form, *draws, roots, *how, s.start, s.stop, size), pieces_of(n))
        return found


def add_draw(Z: np.ndarray, sums: Sums, resolution: float, lowest: float) -> None:
    """Add the degrees of log weights Z (q, n), their logits and the squares of these to sums, each (q, n).

    1 - d is at least `resolution` in a logit, which is at least `lowest`.
    """
    Z, size, work = np.ascontiguousarray(Z), tile_rows(len(Z)), _loops().add_draw
    for_each(lambda s: work(Z, *sums, resolution, lowest, s.start, s.stop, size), pieces_of(Z.shape[1]))


def pieces_of(n: int) -> Sequence[slice]:
    """n rows in pieces of equal size, for threads."""
    edges = np.linspace(0, n, max(-(-n // PIECE_ROWS), min(2, n // 64), 1) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def tile_rows(q: int) -> int:
    """How many rows of q labels to work on at a time."""
    return min(max(TILE_NUMBERS // q // 16 * 16, 32), 256)


def _laid_out(A: Any, dtype: Any) -> np.ndarray:
    """A as the loops have it: of one kind, and one row after the other."""
    return np.ascontiguousarray(A, dtype=dtype)


def _marks(positive: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(positive, dtype=bool).view(np.uint8)


def _form(precision: Precision) -> tuple[np.ndarray, ...]:
    """Sigma^-1 = diag(own) - shared^T shared as `own` (q,), -shared^T (q, k) and an empty matrix, or as zeros, nothing
    and the matrix (q, q); and its column sums (q,) and the conditional variances (q,)."""
    if isinstance(precision, FactorPrecision):
        own, shared, matrix = precision.own, _laid_out(-precision.shared.T, np.float64), np.zeros((0, 0))
        along, diagonal = precision.along(), precision.diagonal()
    else:
        matrix = _laid_out(precision, np.float64)
        own, shared = np.zeros(len(matrix)), np.zeros((len(matrix), 0))
        along, diagonal = matrix.sum(0), matrix.diagonal()
    return own, shared, matrix, along, 1.0 / diagonal

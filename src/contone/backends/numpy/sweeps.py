"""Gibbs sweeps of log weights as compiled loops (`kernels`), where numba is installed and the work pays for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from contone.backends.protocols import FactorForm, KnownRows, Region
from contone.runtime.threads import for_each
from contone.typing import Array

KINDS = {"order": 0, "mass": 1, "bar": 2, "any bar": 3}
LEAST_WORK = 10_000_000
"""Log weights drawn in a chain from which on it pays: loading numba and the compiled loops takes about a second, and
about 0.1 microseconds are saved per draw. It is a number of the data and the settings, so that the same call always
takes the same way."""
PIECE_ROWS = 4096
"""At most how many rows one thread works on at a time."""
TILE_NUMBERS = 8192
"""About how many log weights are in a tile: with what belongs to them they fit into a processor's second cache."""
MARGIN, FAR = {8: 1e-9, 4: 1e-5}, {8: 25.0, 4: 12.0}
"""As in `enhance.inversion.numpy_sweep` and `backends.numpy.normal`."""


@cache
def is_installed() -> bool:
    """Whether numba is there and works with this NumPy."""
    if find_spec("numba") is None:
        return False
    try:
        _kernels()
    except ImportError:  # too old for this NumPy, or broken
        return False
    return True


@cache
def _kernels() -> ModuleType:
    from contone.backends.numpy import kernels

    return kernels


def compile_loops() -> None:
    """Compile what the first large fit would, in both precisions; it is kept on this machine."""
    for dtype in (np.float64, np.float32):
        Z, loops = np.zeros((2, 2), dtype=dtype), CompiledSweeps(Region("order"))
        loops.sweep(Z, Z > 0, None, Z, np.eye(2), Z, Z[0], reflect=False, root_weights=None)
        loops.add_draw(Z, (np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))), 1e-12, -40.0)


def can_sweep(Z: np.ndarray, region: Region, n_sweeps: int) -> bool:
    """Whether so many sweeps of log weights Z (q, n) within such regions are faster compiled."""
    known = region.kind == "order" or region.share > 0
    return known and len(Z) > 1 and Z.size * n_sweeps >= LEAST_WORK and is_installed()


def pieces_of(n: int) -> Sequence[slice]:
    """n rows in pieces of equal size, for threads."""
    edges = np.linspace(0, n, max(-(-n // PIECE_ROWS), min(2, n // 64), 1) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def tile_rows(q: int) -> int:
    """How many rows of q labels to work on at a time."""
    return min(max(TILE_NUMBERS // q // 16 * 16, 32), 256)


@dataclass(frozen=True)
class CompiledSweeps:
    """See `contone.backends.protocols.Sweeps` for what each method does."""

    region: Region
    knows_all = True

    def sweep(
        self,
        Z: np.ndarray,
        positive: np.ndarray,
        relaxed: np.ndarray | None,
        mean: np.ndarray,
        precision: Any,
        u: np.ndarray,
        shift: np.ndarray,
        *,
        reflect: bool,
        root_weights: np.ndarray | None,
        known: KnownRows | None = None,
    ) -> Array:
        (q, n), dtype = Z.shape, Z.dtype
        state = np.zeros(n, dtype=np.uint8)
        is_zero, highest_zero = np.zeros((0, 0), dtype=np.uint8), np.zeros(0)
        if relaxed is not None:
            state[relaxed] = 1
        if known is not None:
            state[known.rows] = 2
            is_zero, highest_zero = _marks(known.is_zero), np.asarray(known.highest_zero, dtype=np.float64)
        form = _form(precision)
        found, size = np.empty((q, n), dtype=dtype), tile_rows(q)
        rows = (_marks(positive), state, is_zero, highest_zero, _laid_out(mean, dtype))
        draws = (_laid_out(u, dtype), _laid_out(shift, dtype))
        roots = _laid_out(np.zeros(0) if root_weights is None else root_weights, dtype)
        width = dtype.itemsize
        how = (KINDS[self.region.kind], self.region.share, MARGIN[width], FAR[width], width == 4, reflect)
        Z, work = _laid_out(Z, dtype), _kernels().sweep
        for_each(lambda s: work(Z, found, *rows, *form, *draws, roots, *how, s.start, s.stop, size), pieces_of(n))
        return found

    def add_draw(
        self, Z: np.ndarray, sums: tuple[np.ndarray, np.ndarray, np.ndarray], resolution: float, lowest: float
    ) -> bool:
        Z, size, work = np.ascontiguousarray(Z), tile_rows(len(Z)), _kernels().add_draw
        for_each(lambda s: work(Z, *sums, resolution, lowest, s.start, s.stop, size), pieces_of(Z.shape[1]))
        return True


def _laid_out(A: Any, dtype: Any) -> np.ndarray:
    """A as the kernels have it: of one kind, and one row after the other."""
    return np.ascontiguousarray(A, dtype=dtype)


def _marks(positive: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(positive, dtype=bool).view(np.uint8)


def _form(precision: np.ndarray | FactorForm) -> tuple[np.ndarray, ...]:
    """Sigma^-1 = diag(own) - shared^T shared as `own` (q,), -shared^T (q, k) and an empty matrix, or as zeros, nothing
    and the matrix (q, q); and its column sums (q,) and the conditional variances (q,)."""
    if isinstance(precision, np.ndarray):
        matrix = _laid_out(precision, np.float64)
        own, shared, along, diagonal = (
            np.zeros(len(matrix)),
            np.zeros((len(matrix), 0)),
            matrix.sum(0),
            matrix.diagonal(),
        )
    else:
        matrix, own, shared = np.zeros((0, 0)), precision.own, _laid_out(-precision.shared.T, np.float64)
        along, diagonal = precision.along(), precision.diagonal()
    return own, shared, matrix, along, 1.0 / diagonal

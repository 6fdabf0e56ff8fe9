"""Sweeps of NumPy arrays as compiled loops, rows in pieces, side by side on threads; and the sums over draws.

Importing this module imports numba.
"""

# mypy: disable-error-code="no-untyped-def"

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from contone.enhance.inversion.covariance import FactorPrecision, Precision
from contone.enhance.inversion.sweeps import Bound, Move, Sums, Sweeps
from contone.enhance.inversion.sweeps.elementary import compiled, exponentials, larger, logarithms
from contone.enhance.inversion.sweeps.loops import (
    BOUND,
    MASS,
    draw,
    draw_far,
    find_ends,
    load,
    look_ahead,
    multiply,
    place,
    put,
    replace_ends,
)
from contone.measurements import Region
from contone.runtime.machine import for_each

PIECE_ROWS = 4096
"""At most how many rows one thread works on at a time."""
TILE_NUMBERS = 8192
"""About how many log weights are in a tile: with what belongs to them they fit into a processor's second cache. The
calls per label of a tile take as long as some fifty of its rows."""
MARGIN = {8: 1e-9, 4: 1e-5}
"""How far draws stay clear of the ends of their interval, by item size."""
FAR = {8: 25.0, 4: 12.5}
"""Distance from zero, in standard deviations, from which on the density in an interval is taken as exponential."""


@dataclass(frozen=True)
class CompiledSweeps(Sweeps):
    """Sweeps within a region."""

    region: Region

    def sweep(self, Z: np.ndarray, bound: Bound, mean: np.ndarray, precision: Precision, move: Move) -> np.ndarray:
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
        draws = (_laid_out(move.u, dtype), _laid_out(move.shift, dtype))
        roots = _laid_out(np.zeros(0) if move.root_weights is None else move.root_weights, dtype)
        how = (self.region.number, self.region.share, MARGIN[dtype.itemsize], FAR[dtype.itemsize], move.reflect)
        Z = _laid_out(Z, dtype)
        for_each(
            lambda s: _sweep_rows(Z, found, *rows, *form, *draws, roots, *how, s.start, s.stop, size), pieces_of(n)
        )
        return found


def add_draw(Z: np.ndarray, sums: Sums, resolution: float, lowest: float) -> None:
    """Add the degrees of log weights Z (q, n), their logits and the squares of these to sums, each (q, n).

    1 - d is at least `resolution` in a logit, which is at least `lowest`.
    """
    Z, size = np.ascontiguousarray(Z), tile_rows(len(Z))
    for_each(lambda s: _add_rows(Z, *sums, resolution, lowest, s.start, s.stop, size), pieces_of(Z.shape[1]))


@cache
def pieces_of(n: int) -> Sequence[slice]:
    """n rows in pieces of equal size, for threads."""
    edges = np.linspace(0, n, max(-(-n // PIECE_ROWS), min(2, n // 64), 1) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def tile_rows(q: int) -> int:
    """How many rows of q labels to work on at a time."""
    return min(max(TILE_NUMBERS // q // 16 * 16, 32), 1024)


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


@compiled
def _sweep_rows(
    Z_in, found, positive, state, is_zero, highest_zero, mean, own, shared, matrix, along, variances, u, shift, roots,
    kind, share, margin, far, reflect, start, stop, size,
):  # fmt: skip
    """One sweep of the rows from `start` to `stop`, `size` at a time; see `CompiledSweeps.sweep` for the arrays."""
    q, n_factors = len(Z_in), shared.shape[1]
    by_factors, of_positive, of_negative, kept = n_factors > 0, 1.0, 1.0, Z_in.dtype
    if kind == MASS:
        of_positive, of_negative = 1.0 - share, -share
    m = 0
    for a in range(start, stop, size):
        b = min(a + size, stop)
        if b - a != m:  # the first tile, and a shorter last one
            m = b - a
            Z, R, W, lows, highs = (
                np.empty((q, m)), np.empty((q, m)), np.empty((q, m)), np.empty((q, m)), np.empty((q, m))
            )  # fmt: skip
            lower, upper, left, right, below, above, centre, side, fresh, drawn = (
                np.empty(m, kept), np.empty(m, kept), np.empty(m, kept), np.empty(m, kept), np.empty(m, kept),
                np.empty(m, kept), np.empty(m, kept), np.empty(m, kept), np.empty(m, kept), np.empty(m, kept)
            )  # fmt: skip
            root, gradient = np.empty(m), np.empty(m)
            balance, count, lowest, highest = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        n_special = 0
        for i in range(m):
            root[i] = roots[a + i] if len(roots) > 0 else 1.0
            n_special += 1 if state[a + i] != BOUND else 0
        load(Z_in, mean, a, b, along, shift[a:b], root, Z, R, lowest, highest)
        look_ahead(positive, a, b, of_positive, of_negative, Z, W, lows, highs, balance, count, lowest, highest)
        rows, coefficients = R, matrix
        if by_factors:
            rows, coefficients = np.empty((n_factors, m)), shared
            for k in range(n_factors):
                for i in range(m):
                    rows[k, i] = 0.0
            for j in range(q):
                residual = R[j]
                for k in range(n_factors):
                    c, row = shared[j, k], rows[k]
                    for i in range(m):
                        row[i] -= c * residual[i]
        for j in range(q):
            here, w, marked = Z[j], W[j], positive[j, a:b]
            for i in range(m):
                drawn[i] = u[j, a + i]
            find_ends(kind, share, marked, w, lows[j], highs[j], lowest, highest, count, balance, lower, upper)
            if n_special > 0:
                zero = is_zero[j, a:b] if len(is_zero) > 0 else marked
                replace_ends(
                    state[a:b], marked, zero, highest_zero[a:b], lows[j], highs[j], lowest, highest, lower, upper
                )
            multiply(own[j], R[j], coefficients[j], rows, gradient)
            place(here, gradient, variances[j], margin, root, lower, upper, centre, left, right, side)
            draw(
                here, variances[j], drawn, reflect, far, root, lower, upper, centre, left, right, side, below, above,
                fresh,
            )  # fmt: skip
            n_far = 0
            for i in range(m):
                n_far += 1 if right[i] < -far else 0
            if n_far > 0:
                draw_far(variances[j], drawn, far, root, lower, upper, centre, left, right, side, fresh)
            follow = shared[j]
            put(
                marked, of_positive, of_negative, found[j, a:b], fresh, here, R[j], w, balance, lowest, highest, follow,
                rows,
            )  # fmt: skip


@compiled
def _add_rows(Z_in, degrees, logits, squares, resolution, lowest, start, stop, size):
    """Add the degrees, the logits and their squares of log weights (q, n) to three sums (q, n); rows as in `sweep`."""
    q = len(Z_in)
    for a in range(start, stop, size):
        m = min(size, stop - a)
        b = a + m
        W, top, total, logit = np.empty((q, m)), np.empty(m), np.empty(m), np.empty(m)
        for i in range(m):
            top[i], total[i] = -math.inf, 0.0
        for j in range(q):
            z = Z_in[j, a:b]
            for i in range(m):
                top[i] = larger(top[i], np.float64(z[i]))
        for j in range(q):
            z, w = Z_in[j, a:b], W[j]
            for i in range(m):
                w[i] = z[i] - top[i]
            exponentials(w)
            for i in range(m):
                total[i] += w[i]
        for j in range(q):
            z, w, degree, summed, square = Z_in[j, a:b], W[j], degrees[j, a:b], logits[j, a:b], squares[j, a:b]
            for i in range(m):
                logit[i] = larger(total[i] - w[i], resolution * total[i])
            logarithms(logit)
            for i in range(m):
                y = larger(z[i] - top[i] - logit[i], lowest)
                degree[i] += w[i] / total[i]
                summed[i] += y
                square[i] += y * y

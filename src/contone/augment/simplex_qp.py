"""A quadratic programme on a product of masked simplices, solved by accelerated projected gradient.

    min_F  f(F) = <F, (I - S) F> - 2 <F, C>
    s.t.   every row of F on the simplex, F = 0 where the mask is False

with S (m, m) symmetric and sparse, eigenvalues in [-1, 1], and F, C (m, q). This is the label-confidence problem (Kou
et al., Eq. 2 to 4) after its constant rows have been taken out; C is what those rows contribute.

With H = (I - S) F - C the gradient is 2 H, its Lipschitz constant 4, and F - H / 2 a gradient step: no step length to
find. Two kinds of steps alternate, each with one product S F:

- FISTA (Beck and Teboulle 2009), whose momentum is dropped whenever it points uphill (O'Donoghue and Candes 2015).
  Alone it solves the problem. Its projections find which entries of F are zero.
- Conjugate gradients on the face so found, {F : rows sum to 1, F = 0 off its support}, which is linear algebra and
  converges twice as fast. The answer is projected, and kept if it lowers the objective. Where this does not pay (the
  face keeps changing), the runs of FISTA get longer.

The stopping rule is a certificate. For every feasible G, convexity gives f(F) - f(G) <= <2 H, F - G>; the right side is
largest at a vertex, one per row, so

    gap(F) = 2 <H, F> - 2 sum_i min_{j in mask_i} H_ij  >=  f(F) - f*        (the Frank-Wolfe gap).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from array_api_compat import array_namespace

from contone.backends import Graph, get_backend
from contone.numerics.simplex import project_masked_simplex, row_maxima, row_sums
from contone.numerics.solution import Solution
from contone.runtime.threads import for_each, total
from contone.typing import Array, Operator

SMALL_OBJECTIVE = 1e-2
"""Objective per row below which the tolerance no longer shrinks with it: rounding, about 1e-16 a row, sets a floor."""
FACE_REDUCTION = 1e-3
"""Conjugate gradients stop when the residual on the face has shrunk by this: the face may still be the wrong one. Each
time the face turns out right, the next run goes ten times further."""
FACE_ITERATIONS = 1000
PROJECTED_LENGTHS = (1.0, 0.25, 0.0625)
"""Shares of the way to the minimum on the face that are tried, each followed by a projection."""


class Programme(NamedTuple):
    """min <F, (I - S) F> - 2 <F, C> + constant over rows of F on the simplex, F = 0 off the mask."""

    S: Graph
    """(m, m) symmetric, eigenvalues in [-1, 1]."""
    C: Array
    """(m, q)"""
    mask: Array
    """(m, q) bool, at least one True a row."""
    constant: float = 0.0
    """What does not depend on F; it counts in the relative tolerance."""


class _Point(NamedTuple):
    F: Array
    H: Array
    """Half the gradient at F."""


def minimise_on_simplices(
    programme: Programme, start: Array, *, tol: float = 1e-12, max_iter: int = 10_000
) -> Solution:
    """Solve the programme from the feasible point `start` (m, q).

    Stops at gap <= tol * max(f, m / 100), so that f(F) - f* is below that for certain; the residual is the gap over
    that scale, and an iteration is one product with S.
    """
    scale_floor = SMALL_OBJECTIVE * start.shape[0]
    point = _Point(start, _half_gradient(programme, start))
    objective, gap = _certificate(programme, point)
    n_iter, run, reduction = 1, 1, FACE_REDUCTION
    while gap > tol * max(objective, scale_floor) and n_iter < max_iter:
        target = tol * max(objective, scale_floor) / (2.0 * math.sqrt(start.shape[0]))  # about the residual at that gap
        allowed = min(FACE_ITERATIONS, max_iter - n_iter)
        on_face, used, inside = _descend_on_face(programme, point, target, reduction, allowed)
        rejected = on_face is point
        reduction = max(0.1 * reduction, 1e-6) if inside else FACE_REDUCTION
        point = _fista(programme, on_face, run)
        n_iter += used + run
        last_gap = gap
        objective, gap = _certificate(programme, point)
        if rejected or gap > 0.5 * last_gap:
            run = min(2 * run, max(max_iter - n_iter, 1))
    scale = max(objective, scale_floor) or 1.0  # 0 without rows
    return Solution(point.F, objective, gap / scale, n_iter, gap <= tol * scale, {"gap": gap})


def optimality(programme: Programme, F: Array) -> tuple[float, float]:
    """The objective f(F) and the gap at any feasible F: f(F) - f* <= gap, whichever solver found F."""
    return _certificate(programme, _Point(F, _half_gradient(programme, F)))


def _half_gradient(programme: Programme, F: Array) -> Array:
    """H = (I - S) F - C."""
    H = array_namespace(F).empty_like(F)

    def work(block: tuple[slice, Operator]) -> None:
        rows, multiply = block
        H[rows, :] = F[rows, :] - multiply(F) - programme.C[rows, :]

    for_each(work, programme.S.row_blocks())
    return H


def _projected(points: Callable[[slice], Array], mask: Array, like: Array) -> Array:
    """The projections of points(rows) on the masked simplices, for all rows, in an array like `like`."""
    F = array_namespace(like).empty_like(like)

    def work(rows: slice) -> None:
        F[rows, :] = project_masked_simplex(points(rows), mask[rows, :])

    for_each(work, get_backend(F).pieces(F))
    return F


def _fista(programme: Programme, point: _Point, steps: int) -> _Point:
    """Steps of FISTA with gradient-based restart; H is affine in F, so at the extrapolated point it costs nothing."""
    Y, t = point, 1.0
    for step in range(steps):
        F = _projected(partial(_gradient_step, Y), programme.mask, Y.F)
        new = _Point(F, _half_gradient(programme, F))
        if step == steps - 1:
            return new
        move = F - point.F
        uphill = _inner(Y.F - F, move) > 0.0
        t_new = 1.0 if uphill else 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        momentum = 0.0 if uphill else (t - 1.0) / t_new
        Y = new if momentum == 0.0 else _Point(F + momentum * move, new.H + momentum * (new.H - point.H))
        point, t = new, t_new
    return point


def _gradient_step(Y: _Point, rows: slice) -> Array:
    return Y.F[rows, :] - 0.5 * Y.H[rows, :]


def _part_way(start: Array, length: float, step: Array, rows: slice) -> Array:
    return start[rows, :] + length * step[rows, :]


def _descend_on_face(
    programme: Programme, point: _Point, target: float, reduction: float, max_iter: int
) -> tuple[_Point, int, bool]:
    """Conjugate gradients over {rows sum to 1, F = 0 off the support of point.F}, then back to the simplices.

    Returns the new point (the one it came from where that did not lower the objective), the number of products with S,
    and whether the new point was feasible without projection.
    """
    F, H, used = _conjugate_gradients(programme.S, point, target, reduction, max_iter)
    xp = array_namespace(F)
    if float(xp.min(F)) >= 0.0:
        return _Point(F, H), used, True
    objective, support = _objective(programme, point), point.F > 0.0
    F -= point.F
    for length in PROJECTED_LENGTHS:
        # Onto the face, not the mask: rounding must not lift entries that are zero back into the support.
        candidate = _projected(partial(_part_way, point.F, length, F), support, F)
        found = _Point(candidate, _half_gradient(programme, candidate))
        used += 1
        if _objective(programme, found) < objective:
            return found, used, False
    return point, used, False


def _conjugate_gradients(
    S: Graph, point: _Point, target: float, reduction: float, max_iter: int
) -> tuple[Array, Array, int]:
    """F, H and the number of products after minimising f on the face of point.F, its bounds F >= 0 left aside."""
    xp = array_namespace(point.F)
    F, H = xp.asarray(point.F, copy=True), xp.asarray(point.H, copy=True)
    support = xp.astype(F > 0.0, F.dtype)
    size = row_sums(support)
    R, P, Q = xp.empty_like(F), xp.empty_like(F), xp.empty_like(F)
    blocks = S.row_blocks()

    # What is done between two sums over all rows, to a block of rows.
    def start(block: tuple[slice, Operator]) -> float:
        rows, _ = block
        R[rows, :] = _onto_face(-H[rows, :], support[rows, :], size[rows])
        P[rows, :] = R[rows, :]
        return _inner(R[rows, :], R[rows, :])

    def multiply(block: tuple[slice, Operator]) -> float:
        rows, apply = block
        Q[rows, :] = P[rows, :] - apply(P)
        return _inner(P[rows, :], Q[rows, :])

    def move(block: tuple[slice, Operator], length: float) -> float:
        rows, _ = block
        change, residual = Q[rows, :], R[rows, :]
        change *= length
        F[rows, :] += length * P[rows, :]
        H[rows, :] += change
        residual -= _onto_face(change, support[rows, :], size[rows])
        return _inner(residual, residual)

    def turn(block: tuple[slice, Operator], ratio: float) -> None:
        rows, _ = block
        direction = P[rows, :]
        direction *= ratio
        direction += R[rows, :]

    square = total(start, blocks)
    goal = max(target, reduction * math.sqrt(square))
    used = 0
    while used < max_iter and math.sqrt(square) > goal:
        curvature = total(multiply, blocks)
        used += 1
        if curvature <= 0.0:  # a flat direction, up to rounding
            break
        previous, square = square, total(partial(move, length=square / curvature), blocks)
        for_each(partial(turn, ratio=square / previous), blocks)
    return F, H, used


def _onto_face(A: Array, support: Array, size: Array) -> Array:
    """A, in place, made a direction of the face: zero off the support, and rows that sum to 0.

    The support has `size` (m,) entries per row.
    """
    A *= support
    A -= (row_sums(A) / size)[:, None] * support
    return A


def _objective(programme: Programme, point: _Point) -> float:
    def work(rows: slice) -> float:
        F = point.F[rows, :]
        return _inner(F, point.H[rows, :]) - _inner(F, programme.C[rows, :])

    return total(work, get_backend(point.F).pieces(point.F)) + programme.constant


def _certificate(programme: Programme, point: _Point) -> tuple[float, float]:
    """The objective and the Frank-Wolfe gap."""
    xp = array_namespace(point.F)

    def half_gap(rows: slice) -> float:
        H = point.H[rows, :]
        lowest = -row_maxima(xp.where(programme.mask[rows, :], -H, -xp.inf))
        # Entry by entry, each at least 0: the difference of two large sums would drown a small gap in rounding.
        return _inner(point.F[rows, :], H - lowest[:, None])

    return _objective(programme, point), 2.0 * total(half_gap, get_backend(point.F).pieces(point.F))


def _inner(A: Array, B: Array) -> float:
    """<A, B> = sum_ij a_ij b_ij, without a temporary."""
    return float(A.reshape(-1) @ B.reshape(-1))

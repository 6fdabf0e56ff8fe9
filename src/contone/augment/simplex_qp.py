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

import math
from typing import NamedTuple

from array_api_compat import array_namespace

from contone.backends import Graph, get_backend
from contone.numerics.simplex import project_masked_simplex, row_maxima, row_sums
from contone.numerics.solution import Solution
from contone.typing import Array

SMALL_OBJECTIVE = 1e-2
"""Objective per row below which the tolerance no longer shrinks with it: rounding, 1e-16 per row, sets a floor."""
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
    """(m, q) bool, at least one True per row."""
    constant: float = 0.0
    """What does not depend on F; it counts in the relative tolerance."""


class _Point(NamedTuple):
    F: Array
    H: Array
    """Half the gradient at F."""


def minimise_on_simplices(programme: Programme, start: Array, *, tol: float = 1e-12, max_iter: int = 10000) -> Solution:
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


def _half_gradient(programme: Programme, F: Array) -> Array:
    """H = (I - S) F - C."""
    H = array_namespace(F).empty_like(F)
    programme.S.over_rows(F, _write_half_gradient, H, F, programme.C)
    return H


def _write_half_gradient(SF: Array, H: Array, F: Array, C: Array) -> None:
    H[...] = F - SF - C


def _fista(programme: Programme, point: _Point, steps: int) -> _Point:
    """Steps of FISTA with gradient-based restart; H is affine in F, so at the extrapolated point it costs nothing."""
    over_rows, empty_like = get_backend(point.F).over_rows, array_namespace(point.F).empty_like
    Y, t = point, 1.0
    for step in range(steps):
        F = empty_like(Y.F)
        over_rows(_project_gradient_step, F, Y.F, Y.H, programme.mask)
        new = _Point(F, _half_gradient(programme, F))
        if step == steps - 1:
            return new
        uphill = float(over_rows(_ahead, Y.F, F, point.F)) > 0.0
        t_new = 1.0 if uphill else 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        momentum = 0.0 if uphill else (t - 1.0) / t_new
        Y = new
        if momentum != 0.0:
            Y = _Point(empty_like(F), empty_like(F))
            over_rows(_extrapolate, *Y, *new, *point, momentum=momentum)
        point, t = new, t_new
    return point


def _project_gradient_step(out: Array, F: Array, H: Array, mask: Array) -> None:
    out[...] = project_masked_simplex(F - 0.5 * H, mask)


def _ahead(YF: Array, F: Array, previous: Array) -> float:
    return _inner(YF - F, F - previous)


def _extrapolate(YF: Array, YH: Array, F: Array, H: Array, last_F: Array, last_H: Array, momentum: float) -> None:
    YF[...] = F + momentum * (F - last_F)
    YH[...] = H + momentum * (H - last_H)


def _descend_on_face(
    programme: Programme, point: _Point, target: float, reduction: float, max_iter: int
) -> tuple[_Point, int, bool]:
    """Conjugate gradients over {rows sum to 1, F = 0 off the support of point.F}, then back to the simplices.

    Returns the new point (the one it came from where that did not lower the objective), the number of products with S,
    and whether the new point was feasible without projection.
    """
    over_rows = get_backend(point.F).over_rows
    F, H, used = _conjugate_gradients(programme.S, point, target, reduction, max_iter)
    if int(over_rows(_count_negative, F)) == 0:
        return _Point(F, H), used, True
    objective = _objective(programme, point)
    for length in PROJECTED_LENGTHS:
        candidate = array_namespace(F).empty_like(F)
        over_rows(_project_part_way, candidate, point.F, F, length=length)
        found = _Point(candidate, _half_gradient(programme, candidate))
        used += 1
        if _objective(programme, found) < objective:
            return found, used, False
    return point, used, False


def _count_negative(F: Array) -> int:
    xp = array_namespace(F)
    return int(xp.sum(xp.astype(F < 0.0, xp.int64)))


def _project_part_way(out: Array, start: Array, end: Array, length: float) -> None:
    # Onto the face, not the mask: rounding must not lift entries that are zero back into the support.
    out[...] = project_masked_simplex(start + length * (end - start), start > 0.0)


def _conjugate_gradients(
    S: Graph, point: _Point, target: float, reduction: float, max_iter: int
) -> tuple[Array, Array, int]:
    """F, H and the number of products after minimising f on the face of point.F, its bounds F >= 0 left aside."""
    xp, over_rows = array_namespace(point.F), get_backend(point.F).over_rows
    F, H = (xp.asarray(A, copy=True) for A in point)
    support = xp.astype(F > 0.0, F.dtype)
    face = support, row_sums(support)
    R, P, Q = (xp.empty_like(F) for _ in range(3))
    square = over_rows(_begin, R, P, H, *face)
    goal = max(target, reduction * math.sqrt(square))
    used = 0
    while used < max_iter and math.sqrt(square) > goal:
        curvature = S.over_rows(P, _multiply, Q, P)
        used += 1
        if curvature <= 0.0:  # a flat direction, up to rounding
            break
        previous = square
        square = over_rows(_move, F, H, R, P, Q, *face, length=previous / curvature)
        over_rows(_turn, P, R, ratio=square / previous)
    return F, H, used


# What is done between two sums over all rows, to some of the rows.


def _begin(R: Array, P: Array, H: Array, support: Array, size: Array) -> float:
    R[...] = _onto_face(-H, support, size)
    P[...] = R
    return _inner(R, R)


def _multiply(SP: Array, Q: Array, P: Array) -> float:
    Q[...] = P - SP
    return _inner(P, Q)


def _move(F: Array, H: Array, R: Array, P: Array, Q: Array, support: Array, size: Array, length: float) -> float:
    change = length * Q
    F += length * P
    H += change
    R -= _onto_face(change, support, size)
    return _inner(R, R)


def _turn(P: Array, R: Array, ratio: float) -> None:
    P *= ratio
    P += R


def _onto_face(A: Array, support: Array, size: Array) -> Array:
    """A, in place, made a direction of the face: zero off the support, and rows that sum to 0.

    The support has `size` (m,) entries per row.
    """
    A *= support
    A -= (row_sums(A) / size)[:, None] * support
    return A


def _objective(programme: Programme, point: _Point) -> float:
    return float(get_backend(point.F).over_rows(_value, *point, programme.C)) + programme.constant


def _value(F: Array, H: Array, C: Array) -> float:
    return _inner(F, H) - _inner(F, C)


def _certificate(programme: Programme, point: _Point) -> tuple[float, float]:
    """The objective and the Frank-Wolfe gap."""
    half_gap = get_backend(point.F).over_rows(_half_gap, *point, programme.mask)
    return _objective(programme, point), 2.0 * float(half_gap)


def _half_gap(F: Array, H: Array, mask: Array) -> float:
    lowest = -row_maxima(array_namespace(H).where(mask, -H, -math.inf))
    # Entry by entry, each at least 0: the difference of two large sums would drown a small gap in rounding.
    return _inner(F, H - lowest[:, None])


def _inner(A: Array, B: Array) -> float:
    """<A, B> = sum_ij a_ij b_ij, without a temporary."""
    return float(A.reshape(-1) @ B.reshape(-1))

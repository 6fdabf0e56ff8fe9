"""A quadratic programme on a product of masked simplices, solved by accelerated projected gradient.

    min_F  f(F) = <F, (I - S) F> - 2 <F, C>
    s.t.   every row of F on the simplex, F = 0 where the mask is False

with S (m, m) symmetric and sparse, eigenvalues in [-1, 1], and F, C (m, q). This is the label-confidence problem (Kou
et al., Eq. 2 to 4) after its constant rows have been taken out; C is what those rows contribute.

The gradient is 2 ((I - S) F - C), with Lipschitz constant 4, so a gradient step of length 1/4 is

    F - grad/4 = (F + S F + C) / 2 =: V(F),

one sparse product and no step length to find. FISTA (Beck and Teboulle 2009) adds momentum, which is dropped whenever
it points uphill (O'Donoghue and Candes 2015); V is affine, so V at the extrapolated point costs no second product.

The stopping rule is a certificate. For every feasible G, convexity gives f(F) - f(G) <= <grad f(F), F - G>; the right
side is largest at a vertex, one per row, so

    gap(F) = <grad, F> - sum_i min_{j in mask_i} grad_ij  >=  f(F) - f*        (the Frank-Wolfe gap).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from contone.numerics.simplex import project_masked_simplex
from contone.numerics.solution import Solution
from contone.numerics.sparse import lazy_walk, matmul

Array = Any
Sparse = Any

CHECK_EVERY = 5
"""Iterations between two computations of the gap, which costs about a third of an iteration."""
SMALL_OBJECTIVE = 1e-2
"""Objective per row below which the tolerance no longer shrinks with it: rounding, about 1e-16 a row, sets a floor."""


class _State(NamedTuple):
    F: Array
    V: Array
    """The gradient step from F."""
    Y: Array
    """F plus momentum."""
    V_Y: Array
    """The gradient step from Y."""
    t: float
    """FISTA's momentum counter."""


def minimise_on_simplices(
    S: Sparse, C: Array, mask: Array, start: Array, *, constant: float = 0.0, tol: float = 1e-12, max_iter: int = 10_000
) -> Solution:
    """Minimise f(F) = <F, (I - S) F> - 2 <F, C> + constant over rows of F on their masked simplices.

    Parameters
    ----------
    S : sparse, (m, m)
        Symmetric, eigenvalues in [-1, 1].
    C, start : array, (m, q)
        `start` is feasible.
    mask : bool array, (m, q)
        Every row needs at least one True.
    constant : float
        Part of the objective that does not depend on F; it counts in the relative tolerance.
    tol : float
        Stop at gap <= tol * max(f, m / 100): f(F) - f* is then below that, for certain.
    """
    M, half_C = lazy_walk(S), 0.5 * C
    scale_floor = SMALL_OBJECTIVE * mask.shape[0]
    state = _first_state(M, half_C, start)
    objective, gap = _certificate(state.F, state.V, C, mask, constant)
    n_iter = 0
    while gap > tol * max(objective, scale_floor) and n_iter < max_iter:
        for _ in range(min(CHECK_EVERY, max_iter - n_iter)):
            state = _step(M, half_C, mask, state)
            n_iter += 1
        objective, gap = _certificate(state.F, state.V, C, mask, constant)
    scale = max(objective, scale_floor)
    return Solution(
        value=state.F,
        objective=objective,
        residual=gap / scale,
        n_iter=n_iter,
        converged=gap <= tol * scale,
        info={"gap": gap},
    )


def _first_state(M: Sparse, half_C: Array, F: Array) -> _State:
    V = matmul(M, F) + half_C
    return _State(F, V, F, V, 1.0)


def _step(M: Sparse, half_C: Array, mask: Array, state: _State) -> _State:
    """One step of FISTA with gradient-based restart."""
    F = project_masked_simplex(state.V_Y, mask)
    V = matmul(M, F)
    V += half_C
    move = F - state.F
    uphill = _inner(state.Y - F, move) > 0.0
    t = 1.0 if uphill else state.t
    t_next = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
    momentum = (t - 1.0) / t_next
    if momentum == 0.0:
        return _State(F, V, F, V, t_next)
    move *= momentum
    move += F
    V_Y = V - state.V
    V_Y *= momentum
    V_Y += V
    return _State(F, V, move, V_Y, t_next)


def _certificate(F: Array, V: Array, C: Array, mask: Array, constant: float) -> tuple[float, float]:
    """The objective at F and the Frank-Wolfe gap, from V = (F + S F + C) / 2, which the iteration has at hand."""
    xp = array_namespace(F)
    half_gradient = 2.0 * (F - V)
    inner = _inner(half_gradient, F)
    lowest = xp.min(xp.where(mask, half_gradient, xp.inf), axis=-1)
    gap = 2.0 * (inner - float(xp.sum(lowest)))
    return inner - _inner(F, C) + constant, gap


def _inner(A: Array, B: Array) -> float:
    """<A, B> = sum_ij a_ij b_ij."""
    xp = array_namespace(A, B)
    return float(xp.vecdot(xp.reshape(A, (-1,)), xp.reshape(B, (-1,))))

"""Standard normal variables confined to intervals: inverse-distribution sampling that survives the far tails.

For lower < x < upper, x = Phi^-1( Phi(lower) + u (Phi(upper) - Phi(lower)) ) with u uniform. Intervals to the right of
zero are mirrored, because Phi is accurate near 0 and not near 1. Where Phi runs out of floating point, the density in
an interval is an exponential (to 0.2 % at 25 standard deviations), with rate equal to the near end, and drawn as one.
"""

from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.typing import Array

TAIL = {8: 25.0, 4: 8.0}
"""Distance from zero, in standard deviations, from which an interval is treated as exponential, by item size."""


def truncated_normal(lower: Array, upper: Array, u: Array) -> Array:
    """Standard normal draws (n,) in [lower, upper] from uniform draws u (n,); infinite ends are allowed."""
    xp = array_namespace(lower, upper, u)
    ndtr, ndtri = get_backend(u).normal_distribution()
    mirrored, left, right = _to_the_left(lower, upper)
    below, above = ndtr(left), ndtr(right)
    # In single precision a probability may round to 0 or 1, where there is no finite quantile.
    precision = xp.finfo(u.dtype)
    p = xp.clip(below + u * (above - below), float(precision.smallest_normal), 1.0 - 0.5 * float(precision.eps))
    x = ndtri(p)
    x = xp.where(mirrored, -x, x)
    far = (right < -TAIL[8 if x.dtype == xp.float64 else 4]) | ~xp.isfinite(x)
    if bool(xp.any(far)):
        tail = _tail(left[far], right[far], u[far])
        x[far] = xp.where(mirrored[far], -tail, tail)
    return xp.clip(x, lower, upper)


def reflected_normal(lower: Array, upper: Array, x: Array, u: Array) -> Array:
    """Standard normal values x (n,) in [lower, upper], reflected at the median of the interval's distribution.

    That is Phi^-1(Phi(lower) + Phi(upper) - Phi(x)).
    The reflection of a draw has the distribution of the draw, so it leaves a chain's target as it is; but it lies on
    the other side, so the mean of the two hardly varies. Where Phi runs out of floating point, a fresh draw from u.
    """
    xp = array_namespace(lower, upper, x, u)
    ndtr, ndtri = get_backend(u).normal_distribution()
    mirrored, left, right = _to_the_left(lower, upper)
    below, above = ndtr(left), ndtr(right)
    y = ndtri(xp.clip(below + above - ndtr(xp.where(mirrored, -x, x)), below, above))
    y = xp.where(mirrored, -y, y)
    # Half the tail's distance: here a difference of two Phi has to keep its digits, not one.
    far = (right < -0.5 * TAIL[8 if y.dtype == xp.float64 else 4]) | ~xp.isfinite(y)
    if bool(xp.any(far)):
        y[far] = truncated_normal(lower[far], upper[far], u[far])
    return xp.clip(y, lower, upper)


def _to_the_left(lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """Which intervals lie right of zero, and the ends of all with these mirrored."""
    xp, mirrored = array_namespace(lower, upper), lower > 0
    return mirrored, xp.where(mirrored, -upper, lower), xp.where(mirrored, -lower, upper)


def _tail(left: Array, right: Array, u: Array) -> Array:
    """Draws in [left, right], right below zero: right - x is exponential with rate |right|, cut at right - left."""
    xp = array_namespace(left)
    rate = xp.clip(-right, min=1.0)
    covered = -xp.expm1(-xp.clip(rate * (right - left), min=0.0, max=700.0))
    return right + xp.log1p(-u * covered) / rate

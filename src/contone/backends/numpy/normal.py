"""Normal variables confined to intervals, for samplers that draw many of them: in double and in single precision.

NumPy's exp and log of float32 use the vector unit of the processor, those of float64 often do not; SciPy's distribution
function and its inverse never do. In single precision they are therefore written out here. With y = |x|,
t = 1 / (1 + 0.35 y) and s = sqrt(-2 log p),

    Phi(-y) = t exp(-y^2 / 2 + P(t)),        -Phi^-1(p) = s - N(s) / D(s)   for p <= 1/2,

where the coefficients of the polynomials P (degree 7) and N, D (3 and 4) were fitted by least squares to SciPy's values
for y < 14. The first is off by 6.5e-7 of the value and the second by 2.1e-7, before rounding: a draw is off by about a
millionth of a standard deviation.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from contone.typing import Array

FAR = {8: 25.0, 4: 12.0}
"""Distance from zero, in standard deviations, from which on the density in an interval is taken as exponential, by
bytes a number (off by 1 / 144 at 12)."""
ALIKE = {8: 1e-10, 4: 1e-4}
"""Relative difference of the probabilities at two ends under which a difference from them has too few digits."""
SLOPE = 0.35
EXPONENT = (-0.191375566, 0.779113711, -1.07077574, 0.421954102, -0.065026905, 0.404015445, 0.997624059, -1.96867693)
NUMERATOR = (0.0481915617, 1.78223511, 7.71713765, 3.14154694)
DENOMINATOR = (0.00743483413, 0.4584696, 3.60244814, 4.92086896, 1.0)
SMALLEST = float(np.finfo(np.float32).tiny)


def truncated_normal(ends: Array, u: Array) -> Array:
    """Standard normal draws (n,) between the ends (2, n) from uniform draws u (n,); infinite ends are allowed.

    A draw may pass an end by rounding: the caller cuts it there.
    """
    tails = nearer_tail(ends)
    below, above = _probabilities(tails)
    above -= below
    above *= u
    above += below
    return _finish(ndtri(above), ends, tails, u)


def reflected_normal(ends: Array, x: Array, u: Array) -> Array:
    """Standard normal values x (n,) between the ends (2, n), reflected at the median of the interval's distribution.

    Where the probabilities of both ends are alike to many digits, a fresh draw from u (n,).
    """
    tails = nearer_tail(ends)
    below, above = _probabilities(tails)
    p = ndtr(x * _sign(ends))
    np.subtract(above, p, out=p)
    p += below
    np.maximum(p, below, out=p)
    np.minimum(p, above, out=p)
    alike = above - below < ALIKE[p.itemsize] * above
    if alike.any():
        p[alike] = (below + u * (above - below))[alike]
    return _finish(ndtri(p), ends, tails, u)


def nearer_tail(ends: Array) -> Array:
    """Intervals (2, n), mirrored at zero where that makes their upper end the one nearer to it (or both are)."""
    return np.minimum(ends, -ends[::-1])


def ndtr(x: Array) -> Array:
    """Phi(x); its relative error is small in the lower tail."""
    if x.dtype != np.float32:
        return special.ndtr(x)
    value = _lower_tail(x)
    return np.where(x > 0, 1.0 - value, value)


def ndtri(p: Array) -> Array:
    """Phi^-1(p); in single precision 0 and 1 stand for the smallest positive number and its mirror image."""
    if p.dtype != np.float32:
        return special.ndtri(p)
    s = np.subtract(1.0, p)
    np.minimum(s, p, out=s)
    np.maximum(s, SMALLEST, out=s)
    np.log(s, out=s)
    s *= -2.0
    np.sqrt(s, out=s)
    x = _polynomial(NUMERATOR, s)
    x /= _polynomial(DENOMINATOR, s)
    x -= s
    return np.copysign(x, p - 0.5, out=x)


def _probabilities(tails: Array) -> Array:
    """Phi (2, n) of intervals whose lower end is not positive."""
    if tails.dtype != np.float32:
        return special.ndtr(tails)
    values = _lower_tail(tails)
    values[1] = np.where(tails[1] > 0, 1.0 - values[1], values[1])
    return values


def _lower_tail(x: Array) -> Array:
    """Phi(-|x|) of float32 values."""
    y = np.abs(x)
    t = y * SLOPE
    t += 1.0
    np.reciprocal(t, out=t)
    value = _polynomial(EXPONENT, t)
    y *= y
    y *= 0.5
    value -= y
    np.exp(value, out=value)
    value *= t
    return value


def _sign(ends: Array) -> Array:
    """-1 (n,) for intervals that `nearer_tail` mirrors, 1 for the others."""
    sign = (ends[1] > -ends[0]).astype(ends.dtype)
    sign *= -2.0
    sign += 1.0
    return sign


def _finish(x: Array, ends: Array, tails: Array, u: Array) -> Array:
    far = tails[1] < -FAR[x.itemsize]
    if far.any():
        left, right = tails[:, far]
        covered = -np.expm1(-np.minimum(-right * (right - left), 80.0))
        x[far] = right - np.log1p(-u[far] * covered) / right
    x *= _sign(ends)
    return x


def _polynomial(coefficients: tuple[float, ...], t: Array) -> Array:
    value = t * coefficients[0]
    for c in coefficients[1:-1]:
        value += c
        value *= t
    value += coefficients[-1]
    return value

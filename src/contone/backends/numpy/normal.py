"""Normal variables confined to intervals, for samplers that draw many of them: in double and in single precision.

NumPy's exp and log of float32 use the vector unit of the processor, those of float64 often do not; SciPy's distribution
function and its inverse never do. In single precision they are therefore written out here. With y = |x|,
t = 1 / (1 + 0.27 y) and s = sqrt(-2 log p),

    Phi(-y) = t exp(-y^2 / 2 + P(t)),        -Phi^-1(p) = s - N(s) / D(s)   for p <= 1/2,

where the coefficients of the polynomials P (degree 6) and N, D (3 and 4) were fitted to SciPy's values for y < 14, P
for the smallest largest error and N, D by least squares. The first is off by 1.2e-6 of the value and the second by
2.1e-7, before rounding: a draw is off by about a millionth of a standard deviation.

A choice between two numbers (`np.where`) takes as long as a logarithm; signs are therefore set by their bits. Arrays of
a few hundred numbers take less time than the call for them: constants are arrays without a dimension, which NumPy
need not convert, and arrays are written over.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from contone.typing import Array

FAR = {8: 25.0, 4: 12.0}
"""Distance from zero, in standard deviations, from which on the density in an interval is taken as exponential, by
bytes a number (off by 1 / 144 at 12)."""
ALIKE = np.array(1e-4, dtype=np.float32)
"""Relative difference of the probabilities at two ends under which a difference from them has too few digits."""
WHOLE = {8: np.int64, 4: np.int32}
"""Whole numbers of as many bytes as a number has."""
SIGN = {size: np.array(-(2 ** (8 * size - 1)), dtype=kind) for size, kind in WHOLE.items()}
"""The bit that holds the sign."""


def _constants(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.array(value, dtype=np.float32) for value in values)


(SLOPE,) = _constants(0.27)
EXPONENT = _constants(0.274268295, -0.942603312, 0.934699119, -0.270742663, 0.557824408, 0.980496498, -2.22708839)
NUMERATOR = _constants(0.0481915617, 1.78223511, 7.71713765, 3.14154694)
DENOMINATOR = _constants(0.00743483413, 0.4584696, 3.60244814, 4.92086896, 1.0)
SMALLEST, ZERO, HALF, ONE, MINUS_TWO = _constants(float(np.finfo(np.float32).tiny), 0.0, 0.5, 1.0, -2.0)
LAST_BIT = {size: np.array(8 * size - 1, dtype=kind) for size, kind in WHOLE.items()}
FURTHEST = {size: np.array(-far, dtype=f"f{size}") for size, far in FAR.items()}


def bits(x: Array) -> Array:
    """The bits of numbers, as whole numbers that share their memory."""
    return x.view(WHOLE[x.itemsize])


def truncated_normal(ends: Array, u: Array) -> Array:
    """Standard normal draws (n,) between the ends (2, n) from uniform draws u (n,); infinite ends are allowed.

    A draw may pass an end by rounding: the caller cuts it there.
    """
    tails = np.empty_like(ends)
    mirrored = _put_nearer_tail(ends, tails)
    below, above = _probabilities(tails)
    above -= below
    above *= u
    above += below
    return _finish(ndtri(above), mirrored, tails, u)


def reflected_normal(ends: Array, x: Array, u: Array) -> Array:
    """Standard normal values x (n,) between the ends (2, n), reflected at the median of the interval's distribution.

    Where probabilities have too few digits for that, a fresh draw from u (n,).
    """
    points = np.empty((3, ends.shape[1]), dtype=ends.dtype)
    mirrored = _put_nearer_tail(ends, points[:2])
    np.bitwise_xor(bits(x), mirrored, out=bits(points)[2])
    below, above, p = _probabilities(points)
    np.subtract(above, p, out=p)
    p += below
    np.maximum(p, below, out=p)
    np.minimum(p, above, out=p)
    # A difference of probabilities has too few digits far out, in single precision also between ends near each other.
    # What lies so far out that its mirror image is an end, or infinite, is drawn afresh as well.
    if p.dtype == np.float32:
        alike = np.multiply(above, ALIKE) > above - below
    else:
        alike = (points[1] < -0.5 * FAR[8]) | (p <= below) | (p >= 1.0)
    if np.count_nonzero(alike):
        p[alike] = (below + u * (above - below))[alike]
    return _finish(ndtri(p), mirrored, points, u)


def ndtr(x: Array) -> Array:
    """Phi(x); its relative error is small in the lower tail."""
    return _upper_as_well(x, _lower_tail(x)) if x.dtype == np.float32 else special.ndtr(x)


def ndtri(p: Array) -> Array:
    """Phi^-1(p); in single precision 0 and 1 stand for the smallest positive number and its mirror image."""
    if p.dtype != np.float32:
        return special.ndtri(p)
    s = np.subtract(ONE, p)
    np.minimum(s, p, out=s)
    np.maximum(s, SMALLEST, out=s)
    np.log(s, out=s)
    s *= MINUS_TWO
    np.sqrt(s, out=s)
    x = _polynomial(NUMERATOR, s)
    x /= _polynomial(DENOMINATOR, s)
    np.subtract(s, x, out=x)
    _set_sign(x, np.subtract(p, HALF, out=s))
    return x


def _put_nearer_tail(ends: Array, tails: Array) -> Array:
    """Intervals (2, n), mirrored at zero where Phi has more digits on the other side.

    In double precision where the lower end is positive, as in `numerics.truncated`, whose draws these are; in single
    precision wherever the upper end is further from zero. Returns the sign bit (n,) of the mirrored ones.
    """
    np.negative(ends[::-1], out=tails)
    if ends.dtype == np.float32:
        mirrored = np.greater(ends[1], tails[1])
        np.minimum(ends, tails, out=tails)
    else:
        mirrored = ends[0] > 0
        tails[:] = np.where(mirrored, tails, ends)
    sign = mirrored.astype(WHOLE[ends.itemsize])
    sign <<= LAST_BIT[ends.itemsize]
    return sign


def _probabilities(points: Array) -> Array:
    """Phi of points (k, n), of which the first row holds none that are positive."""
    if points.dtype != np.float32:
        return special.ndtr(points)
    values = _lower_tail(points)
    _upper_as_well(points[1:], values[1:])
    return values


def _lower_tail(x: Array) -> Array:
    """Phi(-|x|) of float32 values."""
    y = np.abs(x)
    t = y * SLOPE
    t += ONE
    np.reciprocal(t, out=t)
    value = _polynomial(EXPONENT, t)
    y *= y
    y *= HALF
    value -= y
    np.exp(value, out=value)
    value *= t
    return value


def _upper_as_well(x: Array, value: Array) -> Array:
    """Phi(x) from Phi(-|x|), in place: |0 - value| below zero, |1 - value| above."""
    np.subtract(np.greater(x, ZERO).astype(np.float32), value, out=value)
    return np.abs(value, out=value)


def _set_sign(x: Array, model: Array) -> None:
    """Give x >= 0 the signs of other numbers, which are used up."""
    sign, found = bits(model), bits(x)
    sign &= SIGN[x.itemsize]
    found |= sign


def _finish(x: Array, mirrored: Array, tails: Array, u: Array) -> Array:
    far = np.less(tails[1], FURTHEST[x.itemsize])
    if np.count_nonzero(far):
        left, right = tails[:2, far]
        covered = -np.expm1(-np.minimum(-right * (right - left), 80.0))
        x[far] = right - np.log1p(-u[far] * covered) / right
    found = bits(x)
    found ^= mirrored
    return x


def _polynomial(coefficients: tuple[np.ndarray, ...], t: Array) -> Array:
    value = t * coefficients[0]
    for c in coefficients[1:-1]:
        value += c
        value *= t
    value += coefficients[-1]
    return value

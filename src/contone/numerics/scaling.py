"""Scaling of features, as plain functions of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like
from contone.typing import Array

SMALLEST, LARGEST = 1e-140, 1e140
"""Features between these have squares that can be added up; the moments of others are taken in a unit of their own."""


CONSTANT = 8.0
"""A column that varies by less than this many roundings of its largest entry is constant: the rest is not a feature.
An offset of 1e12 leaves a deviation of 1 some 10,000 roundings, so it hides nothing."""


FARTHEST = 1e15
"""New rows count as being at most this many deviations away: their squares stay in floating point, in single precision
too."""


class Standardisation(NamedTuple):
    """x -> (x - mean) / scale, column by column; a constant column becomes 0."""

    mean: Array
    scale: Array

    def __call__(self, X: Array) -> Array:
        """X (m, d), scaled."""
        with np.errstate(over="ignore"):
            return _within_reach((X - like(self.mean, X)) / like(self.scale, X))


def _within_reach(Z: Array) -> Array:
    """Scaled features, those beyond any rows that were seen at a distance that can still be computed with."""
    return array_namespace(Z).clip(Z, min=-FARTHEST, max=FARTHEST)


def standardisation(X: Array, *, ddof: int = 1) -> Standardisation:
    """The z-scores of the columns of X (n, d), with n - ddof in the variance (MATLAB's zscore has ddof 1)."""
    with np.errstate(over="ignore", invalid="ignore"):  # seen and repaired below
        mean, scale, low, high = _moments(X, ddof)
    xp = array_namespace(scale)
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    unit = extreme_unit(largest)
    if bool(xp.any(unit != 1.0)):
        mean, scale, low, high = (moment * unit for moment in _moments(X / like(unit, X), ddof))
    return Standardisation(mean, xp.where(_is_constant(scale, low, high), xp.ones_like(scale), scale))


def extreme_unit(largest: Array) -> Array:
    """A unit per column, from its largest entry: 1, or a power of two where squares would leave floating point."""
    xp = array_namespace(largest)
    extreme = (largest > LARGEST) | ((largest < SMALLEST) & (largest > 0.0))
    return xp.where(extreme, 2.0 ** xp.floor(xp.log2(xp.where(extreme, largest, xp.ones_like(largest)))), 1.0)


def _moments(X: Array, ddof: int) -> tuple[Array, ...]:
    """Mean, deviation, least and largest entry of the columns of X, in one pass."""
    xp = array_namespace(X)
    return get_backend(X).compute(
        xp.mean(X, axis=0), xp.std(X, axis=0, correction=ddof), xp.min(X, axis=0), xp.max(X, axis=0)
    )


def _is_constant(scale: Array, low: Array, high: Array) -> Array:
    """Columns whose deviation or range is of rounding size; dividing by it would turn rounding into a feature."""
    xp = array_namespace(scale)
    rounding = float(xp.finfo(scale.dtype).eps) * xp.maximum(xp.abs(low), xp.abs(high))
    return (low == high) | (scale <= CONSTANT * rounding)


class MinMax(NamedTuple):
    """x -> (x - low) / scale, column by column: [0, 1] on the rows it was made from; a constant column becomes 0."""

    low: Array
    scale: Array

    def __call__(self, X: Array) -> Array:
        """X (m, d), scaled."""
        with np.errstate(over="ignore"):
            return _within_reach((X - like(self.low, X)) / like(self.scale, X))


def min_max_scaling(X: Array) -> MinMax:
    """The map of the columns of X (n, d) to [0, 1]."""
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    scale = high - low
    return MinMax(low, xp.where(_is_constant(scale, low, high), xp.ones_like(scale), scale))

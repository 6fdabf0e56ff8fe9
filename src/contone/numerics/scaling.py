"""Scaling of features, and their principal components: the feature map of a linear Gaussian model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.sparsefuncs import mean_variance_axis

from contone.backends import get_backend, like, to_numpy
from contone.typing import Array, Data

SAFE = 0.45
"""Features between this power of the least and of the largest number of their type (1e-138 and 1e138, in single
precision 1e-17 and 1e17) have squares that can be added up; moments of others are taken in a unit of their own."""


CONSTANT = 8.0
"""A column that varies by less than this many roundings of its largest entry is constant: the rest is not a feature.
An offset of 1e12 leaves a deviation of 1 some 10,000 roundings, so it hides nothing."""


FARTHEST = 1e15
"""New rows count as being at most this many deviations away: their squares stay in floating point, in single precision
too."""

EXACT = 400
"""Up to this many rows or columns the decomposition is exact; beyond it is randomised, which is near enough for the
leading components."""

NO_VARIANCE = 1e-12
"""Of the largest variance, as good as none: what is left of it by rounding."""


class Scaling(NamedTuple):
    """x -> (x - origin) / scale, column by column; a constant column becomes 0."""

    origin: Array
    scale: Array

    def __call__(self, X: Array) -> Array:
        """X (m, d), scaled; what is far beyond any rows that were seen at a distance that can be computed with."""
        with np.errstate(over="ignore"):
            Z = (X - like(self.origin, X)) / like(self.scale, X)
        return array_namespace(Z).clip(Z, min=-FARTHEST, max=FARTHEST)

    def on_host(self) -> Scaling:
        """The same as plain arrays, so that a fitted method can go anywhere."""
        return Scaling(to_numpy(self.origin), to_numpy(self.scale))


def unscaled(X: Array) -> Array:
    """X as it is, for methods that may be told not to scale."""
    return X


def standardisation(X: Array, *, ddof: int = 1) -> Scaling:
    """The z-scores of the columns of X (n, d), with n - ddof in the variance (MATLAB's zscore has ddof 1)."""
    with np.errstate(over="ignore", invalid="ignore"):  # seen and repaired below
        mean, scale, low, high = _moments(X, ddof)
    xp = array_namespace(scale)
    unit = extreme_unit(xp.maximum(xp.abs(low), xp.abs(high)))
    if bool(xp.any(unit != 1.0)):
        mean, scale, low, high = (moment * unit for moment in _moments(X / like(unit, X), ddof))
    mean = xp.where(low == high, low, mean)  # the mean of many equal numbers may be off by rounding
    return Scaling(mean, xp.where(_is_constant(scale, low, high), xp.ones_like(scale), scale))


def extreme_unit(largest: Array) -> Array:
    """A unit per column, from its largest entry: 1, or a power of two where squares would leave floating point."""
    xp = array_namespace(largest)
    numbers = xp.finfo(largest.dtype)
    high, low = float(numbers.max) ** SAFE, float(numbers.smallest_normal) ** SAFE
    extreme = (largest > high) | ((largest < low) & (largest > 0.0))
    return xp.where(extreme, 2.0 ** xp.floor(xp.log2(xp.where(extreme, largest, xp.ones_like(largest)))), 1.0)


def _moments(X: Array, ddof: int) -> tuple[Array, ...]:
    """Mean, deviation, least and largest entry of the columns of X."""
    xp = array_namespace(X)
    return xp.mean(X, axis=0), xp.std(X, axis=0, correction=ddof), xp.min(X, axis=0), xp.max(X, axis=0)


def _is_constant(scale: Array, low: Array, high: Array) -> Array:
    """Columns whose deviation or range is of rounding size; dividing by it would turn rounding into a feature."""
    xp = array_namespace(scale)
    rounding = float(xp.finfo(scale.dtype).eps) * xp.maximum(xp.abs(low), xp.abs(high))
    return (low == high) | (scale <= CONSTANT * rounding)


def min_max_scaling(X: Array) -> Scaling:
    """The map of the columns of X (n, d) to [0, 1]."""
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    scale = high - low
    return Scaling(low, xp.where(_is_constant(scale, low, high), xp.ones_like(scale), scale))


# ------------------------------------------------------------------------------------------------ principal components


@dataclass(frozen=True)
class PrincipalMap:
    """x -> (x - mean) / scale @ components; the components (d, k) give the training rows a mean square of 1."""

    scaling: Scaling
    components: np.ndarray

    def __call__(self, X: Array) -> Array:
        """Scores (m, k) of features X (m, d); sparse ones are not made dense."""
        if get_backend(X).name == "sparse":
            mean, scale = self.scaling
            return _divided(X, scale) @ self.components - (mean / scale) @ self.components
        return self.scaling(X) @ like(self.components, X)


def principal_map(X: Array, n_components: int) -> PrincipalMap:
    """The leading principal components of the z-scores of X (n, d); one weight for all keeps their natural order.

    The scores are not whitened: in a ridge regression on them, directions in which the features vary little count
    little, as they do in a ridge regression on the features themselves.
    """
    if get_backend(X).name == "sparse":
        return _sparse_principal_map(X, n_components)
    scaling = standardisation(X, ddof=0)
    standardised = scaling(X)
    n, d = standardised.shape
    k = min(n_components, n, d)
    if d <= EXACT or k == d:
        values, vectors = np.linalg.eigh(to_numpy(standardised.T @ standardised))
        vectors = vectors[:, ::-1][:, :k]
        values = np.maximum(values[::-1][:k], 0.0)
    else:
        _, singular, rows = randomized_svd(to_numpy(standardised), k, n_iter=4, random_state=0)
        vectors, values = rows.T, np.square(singular)
    return _scaled_map(scaling, vectors, values, n)


def _scaled_map(scaling: Scaling, vectors: np.ndarray, values: np.ndarray, n: int) -> PrincipalMap:
    """The map to the directions (d, k) in which the rows vary, with sums of squares (k,), largest first.

    Nothing can be learnt of the others, and new rows may lie anywhere along them.
    """
    varies = values > NO_VARIANCE * values.max(initial=0.0)
    return PrincipalMap(scaling, vectors[:, varies] / np.sqrt(values.sum() / n))


def _sparse_principal_map(X: Data, n_components: int) -> PrincipalMap:
    """The same for a sparse X: its z-scores are products with X and with the means, never a matrix."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    unit = extreme_unit(_largest(X))
    found = _map_of_sparse(_divided(X, unit), n_components)
    mean, scale = found.scaling
    return PrincipalMap(Scaling(mean * unit, scale * unit), found.components)


def _divided(X: Array, unit: np.ndarray) -> Array:
    """A sparse X with every column in its unit, within reach of what can be computed with."""
    divided = X.copy()
    with np.errstate(over="ignore"):
        divided.data = np.clip(X.data / unit[X.indices], -FARTHEST, FARTHEST)
    return divided


def _largest(X: Array) -> Array:
    """The largest absolute entry of every column, (d,)."""
    return np.asarray(abs(X).max(axis=0).toarray()).ravel()


def _map_of_sparse(X: Data, n_components: int) -> PrincipalMap:
    n, d = X.shape
    mean, variance = mean_variance_axis(X, axis=0)
    scale = np.sqrt(variance)
    rounding = np.finfo(float).eps * _largest(X)
    scaling = Scaling(mean, np.where(scale <= CONSTANT * rounding, 1.0, scale))
    k = min(n_components, n, d)
    if d <= EXACT:
        gram = (X.T @ X).toarray() - n * np.outer(mean, mean)
        values, vectors = np.linalg.eigh(gram / np.outer(scaling.scale, scaling.scale))
        return _scaled_map(scaling, vectors[:, ::-1][:, :k], np.maximum(values[::-1][:k], 0.0), n)
    if k >= n:  # so few rows that all of them may be dense
        _, singular, rows = np.linalg.svd(scaling(X.toarray()), full_matrices=False)
        return _scaled_map(scaling, rows[:k].T, np.square(singular[:k]), n)
    offset = mean / scaling.scale
    operator = LinearOperator(
        (n, d),
        matvec=lambda v: X @ (v.ravel() / scaling.scale) - offset @ v.ravel(),
        rmatvec=lambda u: (X.T @ u.ravel()) / scaling.scale - offset * u.sum(),
        dtype=float,
    )
    _, singular, rows = svds(operator, k, v0=np.ones(min(n, d)), maxiter=50 * k)
    order = np.argsort(-singular, kind="stable")
    return _scaled_map(scaling, rows[order].T, np.square(singular[order]), n)

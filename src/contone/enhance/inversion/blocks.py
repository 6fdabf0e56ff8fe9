"""Inversion of dask arrays: parameters from a sample of the rows, then the posterior of each block by itself.

Nothing but the sample (`max_rows` rows) and the `Fit` ever comes together. A row's random numbers belong to the row
(`backends.numpy.draws`), so that its answer depends neither on the blocks nor on when, where or how often they are
computed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from contone.backends import get_backend
from contone.backends.numpy.draws import RowStream
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.posterior import Posterior
from contone.typing import Array


def take_sample(X: Array, L: Array, max_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `max_rows` rows of X (n, d) and L (n, q), drawn at random, in memory."""
    n = L.shape[0]
    if n > max_rows:
        chosen = np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False, shuffle=False))
        X, L = X[chosen], L[chosen]
    X, L = get_backend(X).compute(X, L)
    return np.ascontiguousarray(X), np.ascontiguousarray(L)


def prior_mean(fit: Fit, X: Array) -> Array:
    """E[d | x] (m, q) of rows, lazily."""
    return get_backend(X).map_rows(fit.prior_mean, X, columns=len(fit.parameters.covariance))


def posterior(fit: Fit, X: Array, L: Array, seed: int) -> Posterior:
    """The posterior of rows X (n, d), L (n, q), lazily."""
    q = L.shape[1]
    backend = get_backend(X)
    rows = backend.map_rows(partial(_moments, fit, seed), X, L, backend.row_numbers(L), columns=3 * q)
    return Posterior(rows[:, :q], rows[:, q : 2 * q], rows[:, 2 * q :])


def _moments(fit: Fit, seed: int, X: np.ndarray, L: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The three arrays of a posterior side by side (m, 3 q), for rows with the given global numbers (m, 1)."""
    first, size, parts = int(number[0, 0]), fit.settings.max_rows, []
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        found = fit.posterior_of_block(X[rows], L[rows], RowStream(seed, first + rows.start, first + rows.stop))
        parts.append(np.concatenate([found.mean, found.logit_centre, found.logit_width], axis=1))
    return np.concatenate(parts)

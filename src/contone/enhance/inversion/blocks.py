"""Inversion of dask arrays: parameters from a sample of the rows, then the posterior of each block by itself.

Nothing but the sample (`max_rows` rows) and the `Fit` ever comes together. A row's random numbers belong to the row
(`backends.numpy.draws`), so that its answer depends neither on the blocks nor on when, where or how often they are
computed.
"""

from functools import partial

import numpy as np

from contone.backends import get_backend
from contone.backends.numpy.draws import RowStream
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.people.model import PeopleFit
from contone.enhance.inversion.posterior import Posterior
from contone.typing import Array
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees


def take_sample(X: Array, L: Array, max_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `max_rows` rows of X (n, d) and L (n, q), drawn at random, in memory."""
    return take_rows(X, L, choose_rows(L.shape[0], max_rows, np.random.default_rng(seed)))


def take_rows(X: Array, L: Array, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with these numbers, in memory."""
    if len(numbers) < L.shape[0]:
        X, L = X[numbers], L[numbers]
    X, L = get_backend(X).compute(X, L)
    return np.ascontiguousarray(X), np.ascontiguousarray(L)


def prior(fit: Fit | PeopleFit, X: Array) -> Posterior:
    """What the features X (n, d) alone say of rows, lazily."""
    q = fit.n_labels
    return _apart(get_backend(X).map_rows(partial(_prior_moments, fit), X, columns=4 * q), q)


def posterior(fit: Fit | PeopleFit, X: Array, L: Array, seed: int, known: KnownDegrees = NOTHING_KNOWN) -> Posterior:
    """The posterior of rows X (n, d), L (n, q), lazily."""
    q = L.shape[1]
    backend = get_backend(X)
    moments = partial(_moments, fit, seed, known)
    return _apart(backend.map_rows(moments, X, L, backend.row_numbers(L), columns=4 * q), q)


def _apart(moments: Array, q: int) -> Posterior:
    return Posterior(*(moments[:, k * q : (k + 1) * q] for k in range(4)))


def _prior_moments(fit: Fit | PeopleFit, X: np.ndarray) -> np.ndarray:
    return np.concatenate(fit.prior(X).moments, axis=1)


def _moments(
    fit: Fit | PeopleFit, seed: int, known: KnownDegrees, X: np.ndarray, L: np.ndarray, number: np.ndarray
) -> np.ndarray:
    """The four arrays of a posterior side by side (m, 4 q), for rows with the given global numbers (m, 1)."""
    first, size, parts = int(number[0, 0]), fit.settings.max_rows, []
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        found = fit.posterior_of_block(X[rows], L[rows], RowStream(seed, first + rows.start, first + rows.stop))
        here = (known.rows >= first + rows.start) & (known.rows < first + rows.stop)
        grades = place_grades(known.rows[here] - first - rows.start, known.degrees[here], L[rows])
        parts.append(np.concatenate((found if grades is None else found.with_known(grades)).moments, axis=1))
    return np.concatenate(parts)

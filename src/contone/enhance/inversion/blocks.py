"""Inversion of rows that do not fit into memory: parameters from a sample, then the posterior of each block by itself.

Nothing but the sample (`max_rows` rows) and the parameters ever comes together. A row's random numbers belong to the
row (`numerics.streams`), so that its answer depends neither on the blocks nor on when, where or how often they are
computed.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from contone.backends.dask.draws import RowStream
from contone.backends.dask.rows import by_rows, row_numbers, settled
from contone.exceptions import LabelWarning
from contone.numerics.solution import Solution

Array = Any

FITTED = ("degradation_", "coefficients_", "covariance_", "spread_", "spread_deviation_", "n_relaxed_", "_map")
"""All that the posterior of a row depends on, besides the row."""


def fit_enhance(model: Any, X: Array, L: Array) -> Solution:
    """`Inversion._fit_enhance` for dask arrays; up to `max_rows` rows it is that of NumPy.

    Beyond, all estimates are those of a fit to the sample, `n_relaxed_` among them, and the value of the `Solution`,
    like what `intervals_` needs, is lazy.
    """
    n = L.shape[0]
    seed = int(check_random_state(model.random_state).randint(2**31))
    if n > model.max_rows:
        chosen = np.sort(np.random.default_rng(seed).choice(n, model.max_rows, replace=False, shuffle=False))
        X_sample, L_sample = settled(X[chosen], L[chosen])
    else:
        X_sample, L_sample = settled(X, L)
    fitted = clone(model)
    with warnings.catch_warnings():
        for category in (LabelWarning, ConvergenceWarning):  # said below, or by the template
            warnings.simplefilter("ignore", category)
        answer = fitted.fit_enhance(X_sample, L_sample)
    _warn_of_relaxed_rows(fitted, len(L_sample))
    for name in FITTED:
        setattr(model, name, getattr(fitted, name))
    if n > model.max_rows:
        answer, model._centre, model._width = _moments(model, X, L, seed)
    else:
        model._centre, model._width = fitted._centre, fitted._width
        if hasattr(fitted, "samples_"):
            model.samples_ = fitted.samples_
    return replace(fitted.solution_, value=answer, info={**fitted.solution_.info, "sample_rows": len(L_sample)})


def posterior_mean(model: Any, X: Array, L: Array) -> Array:
    """E[d | x, l] (m, q) of new rows, lazily."""
    return _moments(model, X, L, int(check_random_state(model.random_state).randint(2**31)))[0]


def prior_mean(model: Any, X: Array) -> Array:
    """E[d | x] (m, q) of new rows, lazily."""
    return by_rows(_essence(model)._predict, X, columns=len(model.covariance_))


def _moments(model: Any, X: Array, L: Array, seed: int) -> tuple[Array, Array, Array]:
    """Posterior mean of the degrees, mean and deviation of their logits, each (n, q)."""
    q = L.shape[1]
    if q == 1:
        return tuple(by_rows(partial(np.full_like, fill_value=v), L, columns=1) for v in (1.0, np.inf, 0.0))  # type: ignore[return-value]
    rows = by_rows(partial(_posterior, _essence(model), seed), X, L, row_numbers(L), columns=3 * q)
    return rows[:, :q], rows[:, q : 2 * q], rows[:, 2 * q :]


def _posterior(model: Any, seed: int, X: np.ndarray, L: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The three moments side by side (m, 3 q), for rows with the given global numbers (m, 1)."""
    first, parts = int(number[0, 0]), []
    for start in range(0, len(X), model.max_rows):
        rows = slice(start, min(start + model.max_rows, len(X)))
        stream = RowStream(seed, first + rows.start, first + rows.stop)
        parts.append(np.concatenate(model._posterior(X[rows], L[rows], stream)[:3], axis=1))
    return np.concatenate(parts)


def _essence(model: Any) -> Any:
    """The fitted model without what it says about its training rows: this is what travels to the workers."""
    small = copy.copy(model)
    kept = {*model.get_params(deep=False), *FITTED}
    small.__dict__ = {name: value for name, value in vars(model).items() if name in kept}
    small.verbose = False
    return small


def _warn_of_relaxed_rows(fitted: Any, n: int) -> None:
    if fitted.n_relaxed_:
        warnings.warn(
            f"{fitted.n_relaxed_} of {n} sampled rows have labels that {fitted.degradation_} cannot have made; for "
            "such rows only the order is used: marked labels above the others. Another `degradation` (or noise > 0) "
            "may fit better.",
            LabelWarning,
            stacklevel=5,
        )

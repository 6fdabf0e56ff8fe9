"""Which entries of a label matrix are probably wrong?

Where a share `noise` of the entries is wrong, the labels l* that a row would have without error are unknown, too. Given
the features and the labels l that were noted, their posterior is

    p(l* | x, l)  ~  p(l* | x) (noise / (1 - noise))^h(l, l*),   h = number of entries that differ,

with p(l* | x) from the model of `contone.Inversion`: distributions of rows like this one, and the rule that makes
labels from them. An entry is doubtful as far as it differs from l* in that posterior. So a missing label is found where
features and the other labels ask for it, and a superfluous one where they speak against it.

The probability holds for the noise that was assumed, the same for labels that are marked and that are not; the order
depends on it little.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from contone.backends import get_backend, to_numpy
from contone.degrade import Order
from contone.enhance.inversion import Inversion, logistic_normal
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.sampler import Rows
from contone.enhance.inversion.unasked import forget_silent_rows
from contone.exceptions import ArgumentError, InputError
from contone.validation import Border, check_training
from contone.validation.containers import index_of

USUAL_NOISE = 0.05
"""Share of wrong entries that is assumed where nobody says one."""


class DoubtfulLabels(NamedTuple):
    """Entries of a label matrix that are probably wrong, the most doubtful first; every array is (k,)."""

    row: np.ndarray
    """Numbers of rows; where the labels came as a pandas object, their index."""
    label: np.ndarray
    """Numbers of columns; where the labels came as a frame, their names."""
    given: np.ndarray
    """Whether the label was marked, bool: a marked entry may be superfluous, another one missing."""
    probability: np.ndarray
    """Posterior probability that the entry is wrong."""


def doubtful_labels(
    method: Inversion,
    X: Any,
    Y: Any,
    *,
    noise: float | None = None,
    min_probability: float = 0.5,
    k: int | None = None,
    n_sweeps: int = 200,
    random_state: int = 0,
) -> DoubtfulLabels:
    """The entries of Y that are probably wrong, ranked, with a probability for each.

    Parameters
    ----------
    method : Inversion
        Its model says which labels to expect. Unfitted, a clone is fitted to X and Y with the share `noise` of wrong
        entries; a fitted one is taken as it is, on its own rows or on others.
    X : (n, d)
        Features.
    Y : (n, q)
        Labels in {0, 1}, as for every enhancer. Entries that nobody asked about (NaN) and rows without any label are
        never doubted, except under a `Threshold`, where a row of zeros says something.
    noise : float or None, default=None
        Share of the entries that is assumed to be wrong, in (0, 0.5). None is the method's own, or 0.05 where that is
        0.
    min_probability : float, default=0.5
        Entries with a smaller probability of being wrong are left out; 0 ranks all of them.
    k : int or None, default=None
        The maximum number of entries to return; None returns all that reach `min_probability`.
    n_sweeps : int, default=200
        Sweeps of the sampler, a quarter of them before it counts: probabilities are shares of the others.
    random_state : int, default=0
        Seed of the sampler.

    Returns
    -------
    DoubtfulLabels
        `row`, `label`, `given` and `probability`, each (k,). ``pandas.DataFrame(found._asdict())`` is a table of them.

    Examples
    --------
    >>> from contone import TopK
    >>> X = np.linspace(-2.0, 2.0, 80)[:, None]
    >>> Y = np.hstack([X < 0, X >= 0]).astype(int)
    >>> Y[10] = [1, 1]  # a slip: the rule marks one label per row
    >>> found = doubtful_labels(Inversion(degradation=TopK(1), n_sweeps=50, n_burn=20), X, Y, n_sweeps=40)
    >>> found.row.tolist(), found.label.tolist(), found.given.tolist()
    ([10], [1], [True])
    """
    noise = _check_arguments(method, noise, min_probability, k, n_sweeps)
    fitted = method if hasattr(method, "fit_") else clone(method).set_params(noise=noise).fit(X, Y)
    _refuse_unsuited(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say about these data was said by `fit`
        X_checked, labels, border = check_training(clone(method), X, Y)
    if not get_backend(X_checked).in_memory:
        raise InputError("doubtful_labels: X must be in memory; got a dask array. Pass some of its rows (`compute`).")
    L, rng = to_numpy(labels), np.random.default_rng(random_state)
    if get_backend(X_checked).name == "torch":
        X_checked = to_numpy(X_checked)
    if L.shape[1] != len(fitted.label_names_) or X_checked.shape[1] != fitted.n_features_in_:
        raise InputError(
            f"doubtful_labels: the method was fitted to {fitted.n_features_in_} features and "
            f"{len(fitted.label_names_)} labels; X has {X_checked.shape[1]} and Y {L.shape[1]}. Pass the same columns."
        )
    P = probability_wrong(fitted.fit_, X_checked, L, noise, n_sweeps, rng)
    return _ranked(P, L, border, Y, min_probability, k)


def probability_wrong(
    fit: Fit, X: Any, L: np.ndarray, noise: float, n_sweeps: int, rng: np.random.Generator
) -> np.ndarray:
    """Posterior probability (n, q) that each entry of L (n, q) is wrong.

    NaN where nobody asked and in rows that say nothing. Parameters of the model are those of the fit; rows are
    independent given them, and taken block by block.
    """
    n, q = L.shape
    if q == 1:
        return np.zeros((n, q))
    P = np.empty((n, q))
    precision = logistic_normal.precision(fit.parameters.covariance)
    n_burn = n_sweeps // 4
    for start in range(0, n, fit.settings.max_rows):
        block = slice(start, start + fit.settings.max_rows)
        known = forget_silent_rows(fit.rule, L[block])
        mean, rows = fit.mean(X[block]), Rows(fit.rule, known, noise, tail=fit.tail)
        wrong = np.zeros(rows.given.shape)
        for sweep in range(n_sweeps):
            rows.sweep(mean, precision, rng)
            if sweep >= n_burn:
                wrong += rows.positive != rows.given
        P[block] = np.where(np.isnan(known), np.nan, wrong.T / (n_sweeps - n_burn))
    return P


def _ranked(
    P: np.ndarray, L: np.ndarray, border: Border, Y: Any, min_probability: float, k: int | None
) -> DoubtfulLabels:
    """Entries of P (n, q) in falling order, those of equal probability in the order of the rows."""
    order = np.argsort(-P, axis=None, kind="stable")
    kept = ~np.isnan(P) & ~(min_probability > P)
    order = order[kept.ravel()[order]][:k]
    row, label = np.unravel_index(order, P.shape)
    answer = border.wrap(P)
    index, names = index_of(Y), getattr(answer, "columns", border.label_names if np.ndim(Y) == 1 else None)
    return DoubtfulLabels(
        row if index is None else np.asarray(index)[row],
        label if names is None else np.asarray(names)[label],
        L[row, label] > 0,
        P[row, label],
    )


def _check_arguments(method: Any, noise: Any, min_probability: Any, k: Any, n_sweeps: Any) -> float:
    """The share of wrong entries to assume."""
    if not isinstance(method, Inversion):
        raise ArgumentError(
            "doubtful_labels: method must be an Inversion, whose model says which labels it expects; got "
            f"{type(method).__name__}.",
            "method",
        )
    if noise is None:
        noise = method.noise or USUAL_NOISE
    if not isinstance(noise, Real) or not 0 < float(noise) < 0.5:
        raise ArgumentError(f"doubtful_labels: noise must be between 0 and 0.5, or None; got {noise!r}.", "noise")
    if not isinstance(min_probability, Real) or not 0 <= float(min_probability) <= 1:
        raise ArgumentError(
            f"doubtful_labels: min_probability must be from 0 to 1; got {min_probability!r}.", "min_probability"
        )
    if k is not None and (not isinstance(k, Integral) or k < 1):
        raise ArgumentError(f"doubtful_labels: k must be a whole number of at least 1, or None; got {k!r}.", "k")
    if not isinstance(n_sweeps, Integral) or n_sweeps < 4:
        raise ArgumentError(f"doubtful_labels: n_sweeps must be at least 4; got {n_sweeps!r}.", "n_sweeps")
    return float(noise)


def _refuse_unsuited(fitted: Inversion) -> None:
    if isinstance(fitted.fit_.rule, Order):
        raise InputError(
            'doubtful_labels: the rule "order" does not say which labels degrees give, so no entry can be wrong. '
            "Use another degradation."
        )
    if fitted.fit_.annotator_deviation > 0:
        raise InputError(
            "doubtful_labels: the method was fitted with groups (several annotators). Pass an unfitted method."
        )

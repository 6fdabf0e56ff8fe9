"""A logistic regression of answers on features, cross-fitted: what the mean of z starts from.

    P(vote j | x) = softmax(W^T phi(x))_j  over the labels on offer,    penalty  lambda / 2 |W|^2

phi are the principal components of the standardised features. An item's own answers must not tell its feature, or they
would count twice: shares of training items come from a fit to the other folds. lambda is the one with which these
shares tell the left-out answers best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from contone.backends import like, to_numpy
from contone.enhance.inversion.model import mean_features
from contone.enhance.inversion.people.matching import MatchedShares
from contone.numerics.principal import PrincipalMap, principal_map
from contone.numerics.simplex import softmax
from contone.typing import Array

Matrix = NDArray[np.float64]
N_FOLDS = 5
PENALTIES = 10.0 ** np.arange(3.0, -2.5, -0.5)
"""lambda, tried from the strongest until the left-out answers are told worse again."""
MOST_TRIED = 4000
"""Answers that lambda is chosen on."""


@dataclass(frozen=True)
class Regression:
    """Shares of answers from features."""

    feature_map: PrincipalMap
    weights: Matrix
    """W (p, q), a constant first."""

    def __call__(self, X: Array) -> Array:
        """(m, q) for features X (m, d)."""
        phi = mean_features(self.feature_map, X).T
        return softmax(phi @ like(self.weights, phi))

    def features(self, X: Array) -> MatchedShares:
        """The feature of the mean of z."""
        return MatchedShares(np.asarray(to_numpy(self(X)), dtype=np.float64))


def fit_regression(
    X: Array, counts: Matrix, item: NDArray[np.intp], n_components: int, rng: np.random.Generator
) -> tuple[Regression, Matrix]:
    """The regression on features X (m, d) of items, and their cross-fitted shares (m, q).

    `counts` (n, q), NaN where a label was not on offer, are answers about the items `item` (n,).
    """
    feature_map = principal_map(X, n_components)
    phi = np.asarray(mean_features(feature_map, X)).T
    m, q = len(phi), counts.shape[1]
    fold = rng.permutation(m) % N_FOLDS
    told = np.nansum(counts, axis=1) > 0
    counts, item = counts[told], item[told]
    tried = np.sort(rng.permutation(len(item))[:MOST_TRIED])
    penalty = _choose_penalty(phi, counts[tried], item[tried], fold) * max(len(item) / len(tried), 1.0) ** 0.5
    weights = _fit(phi[item], counts, penalty, np.zeros((phi.shape[1], q)))
    shares = np.empty((m, q))
    for k in range(N_FOLDS):
        train, test = fold[item] != k, fold == k
        shares[test] = softmax(phi[test] @ _fit(phi[item[train]], counts[train], penalty, weights))
    return Regression(feature_map, weights), shares


def _choose_penalty(phi: Matrix, counts: Matrix, item: NDArray[np.intp], fold: NDArray[np.intp]) -> float:
    """lambda whose fits tell left-out answers best."""
    starts = [np.zeros((phi.shape[1], counts.shape[1]))] * N_FOLDS
    best, chosen, n_worse = np.inf, float(PENALTIES[0]), 0
    for penalty in PENALTIES:
        loss = 0.0
        for k in range(N_FOLDS):
            train, test = fold[item] != k, fold[item] == k
            if train.any() and test.any():
                starts[k] = _fit(phi[item[train]], counts[train], penalty, starts[k])
                loss += _loss(phi[item[test]] @ starts[k], counts[test])[0]
        if loss < best:
            best, chosen, n_worse = loss, float(penalty), 0
        else:
            n_worse += 1
            if n_worse == 2:
                break
    return chosen


def _fit(phi: Matrix, counts: Matrix, penalty: float, start: Matrix) -> Matrix:
    """W (p, q) with the least penalised loss; each feature in a unit in which the loss is about as curved as any."""
    squares = np.square(phi * np.sqrt(np.nansum(counts, axis=1))[:, None]).sum(axis=0)
    held = np.full(len(squares), penalty)
    held[0] = 1e-2  # the constant is free, but for labels that nobody chose
    unit = 1.0 / np.sqrt(squares / counts.shape[1] + held)
    scaled, asked = phi * unit, np.isnan(counts)
    some = asked if asked.any() else None
    ridge = (held * unit**2)[:, None]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        V = flat.reshape(start.shape)
        value, slope = _loss(scaled @ V, counts, some)
        return value + 0.5 * float((ridge * V**2).sum()), (scaled.T @ slope + ridge * V).ravel()

    found = minimize(loss, (start / unit[:, None]).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    W: Matrix = found.x.reshape(start.shape) * unit[:, None]
    W -= W.mean(axis=1, keepdims=True)
    return W


def _loss(Z: Matrix, counts: Matrix, unasked: NDArray[np.bool_] | None = None) -> tuple[float, Matrix]:
    """Minus the log likelihood of counts (n, q), and its slope by Z (n, q)."""
    if unasked is None and np.isnan(counts).any():
        unasked = np.isnan(counts)
    if unasked is not None:
        Z, counts = np.where(unasked, -np.inf, Z), np.where(unasked, 0.0, counts)
    top = Z.max(axis=1, keepdims=True)
    E = np.exp(Z - top)
    total, n = E.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
    away = np.where(counts > 0, Z - top, 0.0)
    return float((n * np.log(total)).sum() - (counts * away).sum()), n / total * E - counts

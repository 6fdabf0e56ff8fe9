"""A logistic regression of answers on features, cross-fitted: what the mean of z starts from.

    P(vote j | x) = softmax(W^T phi(x))_j  over the labels on offer,    penalty  lambda / 2 |W|^2
    P(mark of j | x) = F(W^T phi(x))_j     each label by itself

A share of the votes, the lapse, is by people who chose anything: it keeps labels that the regression rules out
possible, and is the one with which left-out votes are most likely. phi are the principal components of the
standardised features. An item's own answers must not tell its feature, or they
would count twice: shares of training items come from a fit to the other folds. lambda is the one with which these
shares tell the left-out answers best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from contone.backends import like, to_numpy
from contone.enhance.inversion.model import mean_features
from contone.enhance.inversion.people.answers import VOTES, is_on_gpu
from contone.enhance.inversion.people.matching import MatchedChances, MatchedShares
from contone.numerics.scaling import PrincipalMap, principal_map
from contone.numerics.simplex import softmax
from contone.typing import Array

Matrix = NDArray[np.float64]
Loss = Callable[[Matrix, Matrix, NDArray[np.bool_] | None], tuple[float, Matrix]]
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
    kind: int = VOTES
    lapse: float = 0.0

    def __call__(self, X: Array) -> Array:
        """(m, q) for features X (m, d)."""
        phi = mean_features(self.feature_map, X).T
        return _with_lapse(_chances(phi @ like(self.weights, phi), self.kind), self.lapse)

    def features(self, X: Array) -> MatchedShares | MatchedChances:
        """The feature of the mean of z; of votes, where X lies."""
        if self.kind == VOTES and is_on_gpu(X):
            return matched(self(X).double(), self.kind)
        return matched(np.asarray(to_numpy(self(X)), dtype=np.float64), self.kind)


def matched(M: Matrix, kind: int) -> MatchedShares | MatchedChances:
    """The feature of the mean of z with which people choose labels, or mark them, as often as M (n, q) says."""
    return MatchedShares(M) if kind == VOTES else MatchedChances(M)


def _chances(Z: Array, kind: int) -> Array:
    return softmax(Z) if kind == VOTES else 1.0 / (1.0 + array_namespace(Z).exp(-Z))


def fit_regression(
    X: Array, counts: Matrix, item: NDArray[np.intp], n_components: int, rng: np.random.Generator, kind: int = VOTES
) -> tuple[Regression, Matrix]:
    """The regression on features X (m, d) of items, and their cross-fitted shares (m, q).

    `counts` (n, q), NaN where a label was not on offer, are answers about the items `item` (n,); of
    marks and levels numbers from 0 to 1.
    """
    feature_map = principal_map(X, n_components)
    phi = np.asarray(mean_features(feature_map, X)).T
    m, q = len(phi), counts.shape[1]
    fold = rng.permutation(m) % N_FOLDS
    loss = _loss if kind == VOTES else _loss_of_marks
    told = np.nansum(counts, axis=1) > 0 if kind == VOTES else ~np.isnan(counts).all(axis=1)
    counts, item = counts[told], item[told]
    tried = np.sort(rng.permutation(len(item))[:MOST_TRIED])
    penalty = _choose_penalty(phi, counts[tried], item[tried], fold, loss) * max(len(item) / len(tried), 1.0) ** 0.5
    weights = _fit(phi[item], counts, penalty, np.zeros((phi.shape[1], q)), loss)
    shares = np.empty((m, q))
    for k in range(N_FOLDS):
        train, test = fold[item] != k, fold == k
        shares[test] = _chances(phi[test] @ _fit(phi[item[train]], counts[train], penalty, weights, loss), kind)
    lapse = _find_lapse(shares[item], counts) if kind == VOTES else 0.0
    return Regression(feature_map, weights, kind, lapse), _with_lapse(shares, lapse)


def _with_lapse(shares: Array, lapse: float) -> Array:
    return (1.0 - lapse) * shares + lapse / shares.shape[1]


def _find_lapse(shares: Matrix, counts: Matrix) -> float:
    """The share of people who chose anything with which votes (n, q) are most likely, given cross-fitted shares."""
    offered, votes = ~np.isnan(counts), np.nan_to_num(counts)
    total = votes.sum(axis=1)

    def loss(lapse: float) -> float:
        chances = np.where(offered, np.maximum(_with_lapse(shares, lapse), 1e-300), 0.0)
        chosen = np.log(np.where(offered, chances, 1.0))
        return -float((votes * chosen).sum() - total @ np.log(chances.sum(axis=1)))

    return float(minimize_scalar(loss, bounds=(0.0, 0.5), method="bounded", options={"xatol": 1e-4}).x)


def _choose_penalty(
    phi: Matrix, counts: Matrix, item: NDArray[np.intp], fold: NDArray[np.intp], loss_of: Loss
) -> float:
    """lambda whose fits tell left-out answers best."""
    starts = [np.zeros((phi.shape[1], counts.shape[1]))] * N_FOLDS
    best, chosen, n_worse = np.inf, float(PENALTIES[0]), 0
    for penalty in PENALTIES:
        loss = 0.0
        for k in range(N_FOLDS):
            train, test = fold[item] != k, fold[item] == k
            if train.any() and test.any():
                starts[k] = _fit(phi[item[train]], counts[train], penalty, starts[k], loss_of)
                loss += loss_of(phi[item[test]] @ starts[k], counts[test], None)[0]
        if loss < best:
            best, chosen, n_worse = loss, float(penalty), 0
        else:
            n_worse += 1
            if n_worse == 2:
                break
    return chosen


def _fit(phi: Matrix, counts: Matrix, penalty: float, start: Matrix, loss_of: Loss) -> Matrix:
    """W (p, q) with the least penalised loss; each feature in a unit in which the loss is about as curved as any."""
    n = np.nansum(counts, axis=1) if loss_of is _loss else np.ones(len(counts))
    squares = np.square(phi * np.sqrt(n)[:, None]).sum(axis=0)
    held = np.full(len(squares), penalty)
    held[0] = 1e-2  # the constant is free, but for labels that nobody chose
    unit = 1.0 / np.sqrt(squares / counts.shape[1] + held)
    scaled, asked = phi * unit, np.isnan(counts)
    some = asked if asked.any() else None
    ridge = (held * unit**2)[:, None]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        V = flat.reshape(start.shape)
        value, slope = loss_of(scaled @ V, counts, some)
        return value + 0.5 * float((ridge * V**2).sum()), (scaled.T @ slope + ridge * V).ravel()

    found = minimize(loss, (start / unit[:, None]).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    W: Matrix = found.x.reshape(start.shape) * unit[:, None]
    if loss_of is _loss:
        W -= W.mean(axis=1, keepdims=True)
    return W


def _loss_of_marks(Z: Matrix, marks: Matrix, unasked: NDArray[np.bool_] | None = None) -> tuple[float, Matrix]:
    """Minus the log likelihood of marks (n, q), or numbers from 0 to 1, and its slope by Z (n, q)."""
    slope = 1.0 / (1.0 + np.exp(-Z)) - marks
    value = np.logaddexp(0.0, Z) - marks * Z
    return float(np.nansum(value)), np.where(np.isnan(slope), 0.0, slope)


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

"""A logistic regression of answers on features, cross-fitted: what the mean of z starts from.

    P(vote j | x) = softmax(W^T phi(x))_j  over the labels on offer,    penalty  lambda / 2 |W|^2
    P(mark of j | x) = F(W^T phi(x))_j     each label by itself

phi are the principal components of the standardised features; a second regression has, beside them, how close a row
is to some others. Shares are a mixture of both and of people who choose anything, which keeps possible what the
regressions rule out: the one with which left-out votes are most likely. An item's own answers must not tell its
feature, or they would count twice: shares of training items come from a fit to the other folds. lambda is the one with
which these shares tell the left-out answers best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist

from contone.backends import like, to_numpy
from contone.enhance.inversion.model import mean_features
from contone.enhance.inversion.people.answers import VOTES, is_on_gpu
from contone.enhance.inversion.people.matching import MatchedChances, MatchedShares
from contone.numerics.scaling import PrincipalMap, principal_map
from contone.numerics.simplex import softmax
from contone.runtime.machine import for_each, pieces_of, total
from contone.typing import Array, Matrix

Numbers = NDArray[np.intp]
N_FOLDS = 5
"""In which lambda is chosen."""
MORE_FOLDS, MANY_ITEMS = 15, 10_000
"""In which shares are cross-fitted, up to so many items: a fit to four fifths of few answers tells visibly less than
one to all."""
MOST_STEPS, CLOSE = 1000, 0.01
"""Of the search for the mixture, which ends where the log likelihood is this close to the highest."""
N_LANDMARKS = 100
"""Rows that others are compared with, for what is not linear."""
PENALTIES = 10.0 ** np.arange(3.0, -4.0, -0.5)
"""lambda, tried from the strongest until the left-out answers are told worse again."""
MOST_TRIED = 4000
"""Answers that lambda is chosen on."""


@dataclass(frozen=True)
class Closeness:
    """How close rows are to some of them, k(x, l) = exp(-g |x - l|^2): what a linear function of x cannot tell.

    In coordinates whose inner products are k (Nystroem's approximation), with variances that sum to one.
    """

    landmarks: Matrix
    sharpness: float
    mean: Matrix
    root: Matrix

    @classmethod
    def of(cls, U: Matrix, rng: np.random.Generator) -> Closeness:
        """To rows of U (m, p) that are drawn; the typical distance of two of them is the unit."""
        landmarks = U[np.sort(rng.permutation(len(U))[:N_LANDMARKS])]
        typical = float(np.median(pdist(landmarks, "sqeuclidean"))) if len(landmarks) > 1 else 1.0
        sharpness = 1.0 / max(typical, 1e-12)
        values, vectors = np.linalg.eigh(np.exp(-sharpness * cdist(landmarks, landmarks, "sqeuclidean")))
        some = values > 1e-6 * values[-1]
        raw = cls(landmarks, sharpness, np.zeros(int(some.sum())), vectors[:, some] / np.sqrt(values[some]))
        K = raw(U)
        size = math.sqrt(max(float(K.var(axis=0).sum()), 1e-12))
        return replace(raw, mean=K.mean(axis=0) / size, root=raw.root / size)

    def __call__(self, U: Array) -> Array:
        """(m, k) of rows U (m, p)."""
        xp, landmarks = array_namespace(U), like(self.landmarks, U)
        squares = xp.sum(U**2, axis=1)[:, None] + xp.sum(landmarks**2, axis=1) - 2.0 * U @ landmarks.T
        return xp.exp(-self.sharpness * squares) @ like(self.root, U) - like(self.mean, U)


@dataclass(frozen=True)
class Regression:
    """Shares of answers from features: a mixture of a linear model, one with closeness, and choosing anything."""

    feature_map: PrincipalMap
    closeness: Closeness
    weights: tuple[Matrix, Matrix]
    """W (p, q) of both models, a constant first."""
    mixture: Matrix
    """(3,)."""
    kind: int = VOTES

    def __call__(self, X: Array) -> Array:
        """(m, q) for features X (m, d)."""
        phi = mean_features(self.feature_map, X).T
        bent = array_namespace(phi).concat([phi, self.closeness(phi[:, 1:])], axis=1)
        shares = [_chances(P @ like(W, P), self.kind) for P, W in zip((phi, bent), self.weights, strict=True)]
        return _mixed(shares, self.mixture)

    def features(self, X: Array) -> MatchedShares | MatchedChances:
        """The feature of the mean of z; of votes, where X lies."""
        M = self(X)
        there = self.kind == VOTES and is_on_gpu(X)
        return matched(M.double() if there else np.asarray(to_numpy(M), dtype=np.float64), self.kind)


def matched(M: Matrix, kind: int) -> MatchedShares | MatchedChances:
    """The feature of the mean of z with which people choose labels, or mark them, as often as M (n, q) says."""
    return MatchedShares(M) if kind == VOTES else MatchedChances(M)


def _chances(Z: Array, kind: int) -> Array:
    return softmax(Z) if kind == VOTES else 1.0 / (1.0 + array_namespace(Z).exp(-Z))


def fit_regression(
    X: Array,
    counts: Matrix,
    item: Numbers,
    k: int,
    rng: np.random.Generator,
    kind: int = VOTES,
    some: Numbers | None = None,
) -> tuple[Regression, Matrix]:
    """The regression on k components of the features X (m, d) of items, and their cross-fitted shares (m, q).

    `counts` (n, q), NaN where a label was not on offer, are answers about the items `item` (n,); of marks and levels
    numbers from 0 to 1. Where only the shares of `some` items are asked for, one fit to all others is enough.
    """
    feature_map = principal_map(X, k)
    phi = np.asarray(mean_features(feature_map, X), dtype=np.float64).T
    m, q = len(phi), counts.shape[1]
    fold, n_folds = rng.permutation(m), MORE_FOLDS if m <= MANY_ITEMS else N_FOLDS
    left_out = fold % n_folds
    if some is not None:
        left_out, n_folds = 1 - np.isin(np.arange(m), some), 1
    told = np.nansum(counts, axis=1) > 0 if kind == VOTES else ~np.isnan(counts).all(axis=1)
    counts, item = counts[told], item[told]
    tried = np.sort(rng.permutation(len(item))[:MOST_TRIED])
    closeness = Closeness.of(phi[:, 1:], rng)
    weights, shares = [], []
    for P in (phi, np.hstack([phi, closeness(phi[:, 1:])])):
        penalty = _choose_penalty(P, counts[tried], item[tried], fold % N_FOLDS, kind)
        penalty *= math.sqrt(len(item) / len(tried))
        W = _fit(P[item], counts, penalty, np.zeros((P.shape[1], q)), kind)
        M = np.zeros((m, q))

        def cross_fit(part: int, P: Matrix = P, M: Matrix = M, W: Matrix = W, penalty: float = penalty) -> None:
            train, test = left_out[item] != part, left_out == part
            M[test] = _chances(P[test] @ _fit(P[item[train]], counts[train], penalty, W, kind), kind)

        for_each(cross_fit, range(n_folds))
        weights.append(W)
        shares.append(M)
    asked = left_out[item] < n_folds
    mixture = find_mixture([M[item[asked]] for M in shares], counts[asked], kind)[1]
    return Regression(feature_map, closeness, (weights[0], weights[1]), mixture, kind), _mixed(shares, mixture)


def _mixed(shares: list[Array], mixture: Matrix) -> Array:
    """Shares (n, q) of a mixture whose last part chooses anything."""
    parts = mixture.tolist()
    return parts[-1] / shares[0].shape[1] + sum(p * M for p, M in zip(parts, shares, strict=False))


def find_mixture(shares: list[Matrix], counts: Matrix, kind: int = VOTES) -> tuple[float, Matrix]:
    """Minus the log likelihood of answers (n, q), given cross-fitted shares, and the mixture that has the least.

    Parts are the shares and, of votes, choosing anything.
    """
    parts = np.stack([*shares, np.ones(counts.shape)])
    if kind == VOTES:
        parts = np.where(np.isnan(counts), 0.0, parts)
        parts /= parts.sum(axis=2, keepdims=True)
        said = counts > 0
        P, n = parts[:, said], counts[said]
    else:
        said = ~np.isnan(counts)
        P = np.concatenate([parts[:, said], 1.0 - parts[:, said]], axis=1)
        n = np.concatenate([counts[said], 1.0 - counts[said]])
    anything = 0.01 if kind == VOTES else 0.0  # where it starts: what is nothing stays nothing
    mixture = np.append(np.full(len(shares), (1.0 - anything) / len(shares)), anything)
    return largest_likelihood(P, n, mixture)


def largest_likelihood(P: Matrix, n: Matrix, mixture: Matrix) -> tuple[float, Matrix]:
    """Minus the log likelihood of answers with the chances P (k, m), n (m,) of each, and the mixture with the least.

    Expectation maximisation from `mixture` (k,), with steps that grow.
    """
    total, length, told = max(float(n.sum()), 1e-300), 1.0, np.maximum(mixture @ P, 1e-300)
    for _ in range(MOST_STEPS):
        gain = np.where(mixture > 0.0, P @ (n / told) / total, 0.0)
        if total * (gain.max() - 1.0) < CLOSE:  # the likelihood is concave: nothing is higher by more than this
            break
        step = length * np.log(np.maximum(gain, 1e-300))
        tried = mixture * np.exp(step - step.max())
        tried /= tried.sum()
        told_then = np.maximum(tried @ P, 1e-300)
        if length > 1.0 and n @ np.log(told_then / told) < 0.0:  # a plain step of EM is never down
            length = 1.0
            continue
        mixture, told, length = tried, told_then, 1.5 * length
    return -float(n @ np.log(told)), mixture


def _choose_penalty(phi: Matrix, counts: Matrix, item: Numbers, fold: Numbers, kind: int) -> float:
    """lambda that tells left-out answers best."""
    starts = [np.zeros((phi.shape[1], counts.shape[1]))] * N_FOLDS
    best, chosen, n_worse = np.inf, float(PENALTIES[0]), 0
    for penalty in PENALTIES:
        Z = np.zeros(counts.shape)

        def cross_fit(k: int, Z: Matrix = Z, penalty: float = penalty) -> None:
            train, test = fold[item] != k, fold[item] == k
            if train.any() and test.any():
                starts[k] = _fit(phi[item[train]], counts[train], penalty, starts[k], kind)
                Z[test] = phi[item[test]] @ starts[k]

        for_each(cross_fit, range(N_FOLDS))
        loss = find_mixture([_chances(Z, kind)], counts, kind)[0]
        if loss < best:
            best, chosen, n_worse = loss, float(penalty), 0
        else:
            n_worse += 1
            if n_worse == 2:
                break
    return chosen


def _fit(phi: Matrix, counts: Matrix, penalty: float, start: Matrix, kind: int) -> Matrix:
    """W (p, q) with the least penalised loss; in coordinates in which the loss is about as curved any way."""
    loss_of = _loss if kind == VOTES else _loss_of_marks
    n = np.nansum(counts, axis=1) if kind == VOTES else np.ones(len(counts))
    held = np.full(phi.shape[1], penalty)
    held[0] = 1e-2  # the constant is free, but for labels that nobody chose
    curved = (phi * n[:, None]).T @ phi / counts.shape[1]
    curved[np.diag_indices(len(curved))] *= 1.0 + 1e-9  # whatever rounding has left of it
    root = np.linalg.cholesky(curved + np.diag(held))

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        W = solve_triangular(root, flat.reshape(start.shape), lower=True, trans="T")
        pull = held[:, None] * W

        def part(rows: slice) -> Matrix:
            value, slope = loss_of(phi[rows] @ W, counts[rows])
            return np.append(phi[rows].T @ slope, value)

        told = total(part, pieces_of(len(phi)))
        slope = solve_triangular(root, told[:-1].reshape(W.shape) + pull, lower=True)
        return float(told[-1]) + 0.5 * float(np.vdot(W, pull)), slope.ravel()

    found = minimize(loss, (root.T @ start).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    W: Matrix = solve_triangular(root, found.x.reshape(start.shape), lower=True, trans="T")
    if kind == VOTES:
        W -= W.mean(axis=1, keepdims=True)
    return W


def _loss_of_marks(Z: Matrix, marks: Matrix) -> tuple[float, Matrix]:
    """Minus the log likelihood of marks (n, q), or numbers from 0 to 1, and its slope by Z (n, q)."""
    slope = 1.0 / (1.0 + np.exp(-Z)) - marks
    value = np.logaddexp(0.0, Z) - marks * Z
    return float(np.nansum(value)), np.where(np.isnan(slope), 0.0, slope)


def _loss(Z: Matrix, counts: Matrix) -> tuple[float, Matrix]:
    """Minus the log likelihood of counts (n, q), and its slope by Z (n, q)."""
    if (unasked := np.isnan(counts)).any():
        Z, counts = np.where(unasked, -np.inf, Z), np.where(unasked, 0.0, counts)
    top = Z.max(axis=1, keepdims=True)
    E = np.exp(Z - top)
    total, n = E.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
    away = np.where(counts > 0, Z - top, 0.0)
    return float((n * np.log(total)).sum() - (counts * away).sum()), n / total * E - counts

"""How much wider intervals must be because Sigma is estimated from labels.

Labels say on which side of the middle a degree is, and little of how far. A fit settles on one Sigma all the same, and
the chain runs at it: the coefficients B are drawn along, Sigma is not. Its uncertainty reaches the logits y = log(d /
(1 - d)) of a row to first order through the slopes J = d E[y | l] / d theta. With m = B^T phi and z = m + H e of a row,
H H^T = Sigma, the parameters theta and their scores are

    A (Sigma is H exp(A) H^T): e e^T - 1,   b (m_j times e^b_j): (Sigma^-1 H e)_j m_j,   delta (added to m): e,

and by Fisher's identity the labels of a row tell E[s | l] of a score s, while J = Cov[y, s | l]. So one chain has all:

    I = sum over rows of E[s | l] E[s | l]^T,   J_A' = J_A - J_n I_nn^-1 I_nA,   V = (I_AA - I_An I_nn^-1 I_nA + P)^-1,

n for the nuisance (b, delta), as B follows a change of Sigma, and P for the prior of Sigma, worth `strength` rows.

The fitted Sigma is not at its mode, either. Sweep k moves it by the weight g_k towards the moments of the n rows as
they were just drawn, which vary by (1 - rho) / n, with the share rho of the information of z that the labels hold in a
direction; what they hold pulls back. So the chain adds  v <- (1 - g_k rho)^2 v + g_k^2 (1 - rho) / n  to V there. The
variances of the logits of label j grow by the share  mean_i (J_A' V J_A'^T)_jj / mean_i Var[y_j | l].  The overall
spread has an uncertainty of its own (`logistic_normal.Spread`), so changes of theta that change it are left out here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import helmert, solve_triangular

from contone.backends import to_numpy
from contone.numerics.simplex import softmax
from contone.typing import Array

MOST_ROWS, FEW_ROWS = 500, 100
"""At most how many rows information is taken from, and slopes J."""
MOST_LABELS = 12
"""Labels up to which all entries of A are looked at; beyond, its diagonal, and beyond `ALL_LABELS` nothing."""
ALL_LABELS = 64
BLOCK = 10
LARGEST = 1.0
"""The most that variances grow by: first order has no meaning beyond."""


class ShapeUncertainty:
    """Moments of scores and logits over the sweeps of a chain, of some of its rows.

    Sums of squares of averages would be too large by the noise of the averages; products of averages over even and over
    odd blocks of `BLOCK` sweeps are not, but for the little that neighbouring sweeps have in common.

    Parameters
    ----------
    n_rows, n_labels : int
        Shape of the chain.
    strength : float
        How many rows the prior of Sigma is worth.
    """

    def __init__(self, n_rows: int, n_labels: int, strength: float) -> None:
        self.n_rows, self.strength, r = n_rows, strength, n_labels - 1
        self.is_wanted = 2 < n_labels <= ALL_LABELS
        self.pairs = np.triu_indices(r) if n_labels <= MOST_LABELS else (np.arange(r), np.arange(r))
        self.n_shape, n_scores = len(self.pairs[0]), len(self.pairs[0]) + n_labels + r
        self.basis = helmert(n_labels) if n_labels > 1 else np.zeros((0, 1))
        self.rows = evenly(n_rows, MOST_ROWS)
        self.few = evenly(len(self.rows), FEW_ROWS if self.is_wanted else 0)
        self.count, self.counts = 0, np.zeros(2)
        self.halves = np.zeros((2, n_scores, len(self.rows) if self.is_wanted else 0))
        self.logits = np.zeros((2, n_labels, len(self.few)))  # sums, and sums of squares
        self.products = np.zeros((len(self.few), n_labels, n_scores))
        self.spread_slope = np.zeros(n_scores)

    def add(self, Z: Array, residual: Array, covariance: np.ndarray) -> None:
        """One more draw: centred log weights and residuals (q, n), and their Sigma (q, q)."""
        if not self.is_wanted:
            return
        E, z = to_numpy(residual[:, self.rows]), to_numpy(Z[:, self.rows])
        lower = np.linalg.cholesky(self.basis @ covariance @ self.basis.T)
        e = solve_triangular(lower, self.basis @ E, lower=True)
        mean = z - E
        pull = self.basis.T @ solve_triangular(lower, e, lower=True, trans="T")  # Sigma^-1 of the residual
        scores = np.concatenate([self._shape_scores(e), pull * mean, e])
        half = (self.count // BLOCK) % 2
        self.halves[half] += scores
        self.counts[half] += 1
        self.count += 1
        D = softmax(z[:, self.few].T).T
        y = np.log(D) - np.log1p(-np.minimum(D, 1.0 - 1e-12))
        self.logits[0] += y
        self.logits[1] += y * y
        self.products += y.T[:, :, None] * scores[:, self.few].T[:, None, :]
        # How the sum of squares of z changes with A (in the units of its scores) and b.
        first, second = self.pairs
        metric = (lower.T @ lower)[first, second]
        self.spread_slope[: self.n_shape] += np.where(first == second, np.sqrt(2.0), 2.0) * metric
        self.spread_slope[self.n_shape : self.n_shape + len(z)] += 2.0 * np.mean(mean * mean, axis=1)

    def _shape_scores(self, e: np.ndarray) -> np.ndarray:
        """Scores of the entries of A, of variance 1 for normal e (r, m): e_j e_k, (e_j^2 - 1) / sqrt 2."""
        first, second = self.pairs
        scores: np.ndarray = e[first] * e[second]
        same = first == second
        scores[same] = (scores[same] - 1.0) / np.sqrt(2.0)
        return scores

    def shares(self, weights: Sequence[float], n_graded: int = 0) -> np.ndarray:
        """What the uncertainty of Sigma adds to the variances of the logits of every label (q,), relative to them.

        `weights` are those of the sweeps in the average that Sigma is.
        """
        q = self.logits.shape[1]
        if not self.is_wanted or self.counts.min() == 0:
            return np.zeros(q)
        first, second = self.halves / self.counts[:, None, None]
        told = first @ second.T * (self.n_rows / len(self.rows))
        # A row whose degrees are known tells all: scores of A have variance 1.
        V, change = self._covariance(0.5 * (told + told.T), weights, n_graded)
        mean = self.halves.sum(axis=0)[:, self.few] / self.count
        centre, squares = self.logits / self.count
        J = self.products / self.count - centre.T[:, :, None] * mean.T[:, None, :]
        slopes = J @ change
        added = np.einsum("ija,ab,ijb->j", slopes, V, slopes, optimize=True)
        variance = np.maximum(squares - centre**2, 0.0).sum(axis=1)
        found: np.ndarray = np.clip(added / np.maximum(variance, 1e-300), 0.0, LARGEST)
        return found

    def _covariance(
        self, information: np.ndarray, weights: Sequence[float], n_graded: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """V of A; and how all parameters follow a change of A, (scores, entries of A)."""
        s = self.n_shape
        nuisance = _inverse(information[s:, s:] + self.strength * np.eye(len(information) - s))
        follow = np.concatenate([np.eye(s), -nuisance @ information[s:, :s]])
        profiled = information[:s, :s] - information[:s, s:] @ nuisance @ information[s:, :s]
        values, vectors = np.linalg.eigh(0.5 * (profiled + profiled.T))
        values = np.maximum(values, 0.0)
        noise = chain_noise(np.minimum((values + self.strength) / self.n_rows, 1.0), weights) / self.n_rows
        V = (vectors * (1.0 / (values + self.strength + n_graded) + noise)) @ vectors.T
        slope = self.spread_slope @ follow  # of the spread: leave out what changes it
        along = V @ slope
        return V - np.outer(along, along) / max(float(slope @ along), 1e-300), follow


def chain_noise(share: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Variances (k,) of an average of draws with these weights, in units of one row's; see the top of this file."""
    variance = np.zeros_like(share)
    for weight in weights:
        variance = (1.0 - weight * share) ** 2 * variance + weight**2 * (1.0 - share)
    return variance


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n numbers, evenly spaced."""
    return np.linspace(0, n - 1, min(most, n)).round().astype(int)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    floored: np.ndarray = (vectors / np.maximum(values, 1e-9 * max(values[-1], 1e-300))) @ vectors.T
    return floored

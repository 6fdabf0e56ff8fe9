"""Posteriors of votes at three labels by numerical integration."""

from __future__ import annotations

import itertools

import numpy as np

from contone.numerics.simplex import softmax

BASIS = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]) / np.sqrt([2.0, 6.0])
GRID = np.linspace(-9.0, 9.0, 241)
COVARIANCE = np.array([[1.4, 0.5], [0.5, 0.8]])


def integrate(mean, covariance, log_likelihood):
    """E softmax(z) and E log weight of label 0 under the posterior, z = BASIS u, on a grid of u."""
    U = mean @ BASIS + np.array(list(itertools.product(GRID, GRID))) * np.sqrt(np.diag(covariance))
    away = U - mean @ BASIS
    log_p = -0.5 * np.einsum("nr,rs,ns->n", away, np.linalg.inv(covariance), away)
    Z = U @ BASIS.T
    log_p = log_p + log_likelihood(Z)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return p @ softmax(Z), p @ Z[:, 0]


def of_counts(counts):
    offered = ~np.isnan(counts)

    def log_likelihood(Z):
        return (np.nan_to_num(counts) * np.log(np.where(offered, softmax(np.where(offered, Z, -np.inf)), 1.0))).sum(1)

    return log_likelihood


def precision(covariance):
    return BASIS @ np.linalg.inv(covariance) @ BASIS.T + 1.0 / 3.0

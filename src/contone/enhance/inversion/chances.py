"""Chances of labels: how often a label is marked in the posterior of the labels that a row would have without error.

Given the features x and the labels l that were noted, a share `noise` of which is wrong, the labels l* follow

    p(l* | x, l)  ~  p(l* | x) (noise / (1 - noise))^h(l, l*),   h = number of asked entries that differ.

p(l* | x) comes from the model: distributions of rows like this one, and the rule that makes labels from them. An entry
that nobody asked about has the chance that the features and the row's other labels give it; one that was asked has the
chance 0 or 1 where noise is 0.
"""

from typing import Any

import numpy as np

from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.logistic_normal import Flips
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.sampler import Rows


def chances(fit: Fit, X: Any, L: np.ndarray, noise: Flips, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """The chance (n, q) of every label of rows X (n, d) and L (n, q), NaN where nobody asked; block by block.

    The parameters are those of the fit; rows are independent given them. The first quarter of the sweeps is left out.
    """
    n, q = L.shape
    if q == 1:
        return np.ones((n, q))
    P = np.empty((n, q))
    precision = logistic_normal.precision(fit.parameters.covariance)
    n_burn = n_sweeps // 4
    for start in range(0, n, fit.settings.max_rows):
        block = slice(start, start + fit.settings.max_rows)
        rows = Rows(fit.rule, noise.forget_silent(fit.rule, L[block]), noise, tail=fit.tail)
        mean, marked = fit.mean(X[block]), np.zeros(rows.Z.shape)
        for sweep in range(n_sweeps):
            rows.sweep(mean, precision, rng)
            if sweep >= n_burn:
                marked += rows.positive
        P[block] = marked.T / (n_sweeps - n_burn)
    return P

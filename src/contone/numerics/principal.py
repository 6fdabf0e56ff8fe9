"""Principal components of standardised features, with a common scale: the feature map of a linear Gaussian model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from contone.backends import get_backend, like, to_numpy
from contone.numerics.scaling import Standardisation, standardisation
from contone.typing import Array

EXACT = 400
"""Up to this many rows or columns the decomposition is exact; beyond it is randomised, which is near enough for the
leading components."""


@dataclass(frozen=True)
class PrincipalMap:
    """x -> (x - mean) / scale @ components; the components (d, k) give the training rows a mean square of 1."""

    scaling: Standardisation
    components: np.ndarray

    def __call__(self, X: Array) -> Array:
        """Scores (m, k) of features X (m, d)."""
        return self.scaling(X) @ like(self.components, X)


def principal_map(X: Array, n_components: int) -> PrincipalMap:
    """The leading principal components of the z-scores of X (n, d); one weight for all keeps their natural order.

    The scores are not whitened: in a ridge regression on them, directions in which the features vary little count
    little, as they do in a ridge regression on the features themselves.
    """
    scaling = standardisation(X, ddof=0)
    standardised = scaling(X)
    n, d = standardised.shape
    k = min(n_components, n, d)
    if d <= EXACT or k == d or not get_backend(X).in_memory:
        values, vectors = np.linalg.eigh(to_numpy(standardised.T @ standardised))
        vectors = vectors[:, ::-1][:, :k]
        values = np.maximum(values[::-1][:k], 0.0)
    else:
        _, singular, rows = randomized_svd(to_numpy(standardised), k, n_iter=4, random_state=0)
        vectors, values = rows.T, np.square(singular)
    total = values.sum() / n
    return PrincipalMap(scaling, vectors / np.sqrt(total) if total > 0 else vectors)

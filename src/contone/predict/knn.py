"""AA-kNN: the mean of the neighbours' label distributions.

    p(x) = sum_{i in N_k(x)} w_i d_i / sum_{i in N_k(x)} w_i

with N_k(x) the k training rows nearest to x (Euclidean) and w_i = 1, or w_i = 1 / ||x - x_i||.

Reference: Geng, Label Distribution Learning, TKDE 2016 ("algorithm adaptation" of k nearest neighbours).
"""

from numbers import Integral

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from contone.backends.numpy.neighbours import safe_unit
from contone.base import COUNT, DistributionLearner, estimator, parameter
from contone.numerics.solution import Solution
from contone.runtime.machine import check_jobs
from contone.typing import Array

FARTHEST = 1e150
"""New rows count as being at most this many units away, so that squares stay in floating point."""


@estimator
class AAKNN(DistributionLearner):
    """Label distribution learning by the k nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=5
        k; cut to the number of training rows.
    weights : {"uniform", "distance"}, default="uniform"
        Whether all neighbours count the same, or by the inverse of their distance. In the second case training rows at
        distance 0, where there are any, are the only ones that count.
    n_jobs : int or None, default=None
        Threads that search the tree in `predict`, as scikit-learn counts them; beyond 15 features all rows are compared
        instead, on OpenMP's threads whatever this says. The answer does not depend on it.

    Examples
    --------
    >>> X, D = [[0.0], [1.0], [5.0]], [[0.2, 0.8], [0.4, 0.6], [1.0, 0.0]]
    >>> AAKNN(n_neighbors=2).fit(X, D).predict([[0.4]]).round(2).tolist()
    [[0.3, 0.7]]
    """

    reference = "Geng, Label Distribution Learning, IEEE TKDE 28(7), 2016"
    n_neighbors: int = parameter(COUNT, default=5)
    weights: str = parameter({"uniform", "distance"}, default="uniform")
    n_jobs: int | None = parameter(Integral, None, default=None)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        check_jobs(self.n_jobs, "n_jobs")
        self.unit_ = safe_unit(X)
        self.X_, self.D_ = X / self.unit_, D
        return Solution(D)

    def _predict(self, X: np.ndarray) -> Array:
        k = min(self.n_neighbors, len(self.X_))
        neighbours = KNeighborsRegressor(k, weights=self.weights, n_jobs=self.n_jobs).fit(self.X_, self.D_)
        with np.errstate(over="ignore"):  # rows so far away that all neighbours are equally near
            return neighbours.predict(np.clip(X / self.unit_, -FARTHEST, FARTHEST))

"""FCM: label enhancement by fuzzy c-means.

Rows are clustered softly, labels are associated with clusters, and a row receives a label as far as both belong to a
common cluster. With p clusters, memberships M (n, p) and association A (q, p):

    min_{M, V}  sum_ic m_ic^beta ||x_i - v_c||^2    s.t.  sum_c m_ic = 1,  m >= 0        (fuzzy c-means)
    a_lc = sum_{i : l relevant to i} m_ic,  rows divided by their sum                    (association)
    F_il = max_c min(m_ic, a_lc)   or   max_c m_ic a_lc                                  (fuzzy composition)

and D^ is F normalised row by row. Fuzzy c-means alternates its two closed forms

    m_ic = ||x_i - v_c||^(-2/(beta-1)) / sum_k ||x_i - v_k||^(-2/(beta-1)),
    v_c  = sum_i m_ic^beta x_i / sum_i m_ic^beta,

each of which lowers the objective.

References
----------
N. El Gayar, F. Schwenker, G. Palm. A study of the robustness of KNN classifiers trained using soft labels. ANNPR 2006.
J. C. Bezdek. Pattern Recognition with Fuzzy Objective Function Algorithms. 1981.
N. Xu, A. Tao, X. Geng. Label enhancement for label distribution learning. IJCAI 2018, section 3.
"""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state

from contone.backends import get_backend
from contone.base import COUNT, POSITIVE, Enhancer, Interval, estimator, parameter
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import to_distributions
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets


@estimator
class FCM(Enhancer):
    """Labels passed on through fuzzy clusters: F = M o A^T (max-min), D^ is F normalised.

    Confidences in place of L weigh the memberships that make up the association.

    Parameters
    ----------
    n_clusters : int, default=50
        Clusters p; cut to the number of distinct rows.
    fuzzifier : float > 1, default=2
        beta: near 1 the clusters are hard; the larger, the more memberships resemble each other.
    composition : {"max-min", "max-product"}, default="max-min"
        How memberships and association combine.
    standardize : bool, default=True
        Use z-scores of the features.
    output : {"sum", "softmax"}, default="sum"
        How a row of F becomes a distribution. Degrees are of the size 1/p, and so are their differences: softmax
        leaves D^ uniform to a few thousandths, division by the sum does not.
    tol : float, default=1e-4
        Stop once no membership changes by more.
    max_iter : int, default=1000
        Maximum number of rounds of fuzzy c-means.
    random_state : int, RandomState or None, default=0
        Choice of the first centres (k-means++), from the distinct rows by their sorted entries: the order in which rows
        or columns were given does not matter.

    Attributes
    ----------
    scores_ : (n, q)
        F, before normalisation.
    memberships_ : (n, p)
        M, rows on the simplex.
    centres_ : (p, d)
        V, in the units of the scaled features.

    Notes
    -----
    The preset ``paper`` uses raw features and softmax.

    Examples
    --------
    >>> fcm = FCM(n_clusters=2)
    >>> fcm.fit_enhance([[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 0], [1, 1], [0, 1]]).round(2).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.25, 0.75], [0.25, 0.75]]
    """

    reference = "El Gayar, Schwenker & Palm, ANNPR 2006; Xu, Tao & Geng, IJCAI 2018"
    PRESETS: ClassVar[Presets] = {"paper": {"standardize": False, "output": "softmax"}}
    SEARCH: ClassVar[Domains] = {
        "n_clusters": [10, 20, 50, 100],
        "fuzzifier": [1.2, 1.5, 2.0],
        "composition": ["max-min", "max-product"],
        "output": ["sum", "softmax"],
    }
    n_clusters: int = parameter(COUNT, default=50)
    fuzzifier: float = parameter(Interval(Real, 1, None, closed="neither"), default=2.0)
    composition: str = parameter({"max-min", "max-product"}, default="max-min")
    standardize: bool = parameter("boolean", default=True)
    output: str = parameter({"softmax", "sum"}, default="sum")
    tol: float = parameter(POSITIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=1000)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        if self.standardize:
            X = standardisation(X)(X)
        distinct = X[get_backend(X).group_duplicates(X).first]
        # The draw of the first centres knows no order of the rows, and none of the columns: each row's entries, sorted.
        distinct = distinct[np.lexsort([*distinct.T, *np.sort(distinct, axis=1).T])]
        p = min(self.n_clusters, len(distinct))
        start, _ = kmeans_plusplus(distinct, p, random_state=check_random_state(self.random_state))
        clusters = fuzzy_c_means(X, start, self.fuzzifier, tol=self.tol, max_iter=self.max_iter)
        self.memberships_, self.centres_ = clusters.value
        F = compose(self.memberships_, association(self.memberships_, L), self.composition)
        self.scores_ = F
        return clusters.with_value(to_distributions(F, self.output))

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        # Memberships, their powers, distances and temporaries: six matrices of rows by clusters.
        return super()._fit_bytes(n, d, q) + 6 * 8.0 * n * min(self.n_clusters, n)


def fuzzy_c_means(X: np.ndarray, start: np.ndarray, beta: float, *, tol: float, max_iter: int) -> Solution:
    """Alternate memberships and centres from the centres `start` (p, d); the value is (M (n, p), V (p, d))."""
    V = start
    squared = squared_distances(X, V)
    M = memberships(squared, beta)
    residual, n_iter = np.inf, 0
    while residual > tol and n_iter < max_iter:
        weights = M**beta
        total = weights.sum(axis=0)[:, None]
        # Near beta = 1 a centre can lose all its rows to underflow; it stays where it is.
        V = np.where(total > 0, (weights.T @ X) / np.where(total > 0, total, 1.0), V)
        squared = squared_distances(X, V)
        M, previous = memberships(squared, beta), M
        residual = float(np.abs(M - previous).max())
        n_iter += 1
    return Solution((M, V), float(np.sum(M**beta * squared)), residual, n_iter, residual <= tol)


def squared_distances(X: np.ndarray, V: np.ndarray) -> np.ndarray:
    """||x_i - v_c||^2, (n, p), from one matrix product; what is rounding only is exactly 0."""
    x, v = np.sum(X * X, axis=1)[:, None], np.sum(V * V, axis=1)[None, :]
    squared = x - 2.0 * X @ V.T + v
    return np.where(squared > 1e-14 * (x + v), squared, 0.0)


def memberships(squared: np.ndarray, beta: float) -> Array:
    """M (n, p) from squared distances; a row that lies on centres belongs to these alone, in equal parts."""
    on_centre = squared == 0
    # Distances relative to the nearest centre: powers neither overflow nor underflow all at once.
    nearest = np.min(np.where(on_centre, np.inf, squared), axis=1, keepdims=True)
    nearest = np.where(np.isfinite(nearest), nearest, 1.0)
    power = np.where(on_centre, 0.0, (nearest / np.where(on_centre, 1.0, squared)) ** (1.0 / (beta - 1.0)))
    M = np.where(on_centre.any(axis=1, keepdims=True), on_centre.astype(float), power)
    return M / M.sum(axis=1, keepdims=True)


def association(M: np.ndarray, L: np.ndarray) -> Array:
    """A (q, p): how much of label l lies in cluster c, rows sum to 1; a label without positives has a row of 0."""
    A = L.T @ M
    total = A.sum(axis=1, keepdims=True)
    return A / np.where(total > 0, total, 1.0)


def compose(M: np.ndarray, A: np.ndarray, composition: str) -> np.ndarray:
    """F (n, q) with F_il = max_c t(m_ic, a_lc), t the minimum or the product."""
    combine = np.minimum if composition == "max-min" else np.multiply
    # One label at a time: n p numbers in memory instead of n p q.
    return np.stack([combine(M, a).max(axis=1) for a in A], axis=1)

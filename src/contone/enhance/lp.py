"""LP: label propagation.

Labels spread over a graph of the rows and every row keeps a share of its own. With the affinity
A_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)), A_ii = 0, the degrees S = diag(A 1) and P = S^(-1/2) A S^(-1/2),

    F <- alpha P F + (1 - alpha) L    until it rests, at    F* = (1 - alpha) (I - alpha P)^(-1) L.

F* is also the minimiser of

    alpha tr(F^T (I - P) F) + (1 - alpha) ||F - L||^2,

and its rows are turned into distributions. The iteration is never run: I - alpha P is symmetric positive definite with
condition at most (1 + alpha) / (1 - alpha), so conjugate gradients give F* to ten digits in a handful of products with
P, and P is never formed for more than 5000 rows.

References
----------
Y.-K. Li, M.-L. Zhang, X. Geng. Leveraging implicit relative labeling-importance information for effective multi-label
learning. ICDM 2015. (RELIAB, section III-A.)
D. Zhou et al. Learning with local and global consistency. NIPS 2003.
"""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

from array_api_compat import array_namespace

from contone.base import COUNT, POSITIVE, Enhancer, Interval, estimator, parameter
from contone.numerics.graphs import in_order, nearest_neighbours, neighbour_affinity, put_back
from contone.numerics.kernel import KEEP_TILES_ROWS, gaussian_operator, knn_width, operator_bytes
from contone.numerics.linear import conjugate_gradient
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import to_distributions
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Operator, Presets, Record

DENSE_ROWS = 10_000
"""Rows up to which `graph="auto"` uses all pairs: a product then takes a second or so."""


@estimator
class LP(Enhancer):
    """Label propagation over a Gaussian graph, solved as one linear system.

    Minimises alpha tr(F^T (I - P) F) + (1 - alpha) ||F - L||^2 over F (n, q); D^ is F normalised row by row. P is the
    symmetrically normalised affinity. A row without neighbours (its affinities underflow) keeps its own labels. A row
    without any label is a row of zeros in L, as in Zhou et al.: it gets what its neighbours propagate.
    Confidences in place of L are propagated as they are.

    Parameters
    ----------
    alpha : float in [0, 1), default=0.5
        Share of the neighbours; 1 - alpha is the share of the row's own labels. The default weighs both alike. 0 gives
        D^ = softmax(L).
    graph : {"auto", "dense", "knn"}, default="auto"
        All pairs, or the union of the k nearest neighbours of each row. "dense" costs O(n^2 (d + q)) a product, "knn"
        O(n k q) after the neighbour search. "auto" is "dense" up to 10,000 rows and "knn" beyond;
        ``solution_.info["graph"]`` says which.
    sigma : float or "knn", default="knn"
        Width of the affinity. "knn" takes the mean distance to the `n_neighbors`-th neighbour, so that the answer does
        not depend on the unit of the features.
    n_neighbors : int, default=10
        Neighbours of the "knn" graph, and of the "knn" width.
    standardize : bool, default=True
        Use z-scores of the features.
    output : {"softmax", "sum"}, default="softmax"
        How a row of F becomes a distribution: softmax, or division by its sum.
    tol : float, default=1e-10
        Relative residual of the linear system.
    max_iter : int, default=1000
        Maximum number of iterations; each is one product with P.

    Attributes
    ----------
    scores_ : (n, q)
        F, before normalisation.

    Notes
    -----
    Presets: ``paper`` is the setting behind the published row of LP in the LCdr paper (raw features, sigma 1, alpha
    0.1, softmax); ``glle_paper`` the one behind the row in the GLLE paper (alpha 0.5, row sums).

    Examples
    --------
    >>> lp = LP(n_neighbors=1)
    >>> lp.fit_enhance([[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 1], [0, 1], [0, 1]]).round(2).tolist()
    [[0.66, 0.34], [0.58, 0.42], [0.27, 0.73], [0.27, 0.73]]
    """

    reference = "Li, Zhang & Geng, ICDM 2015"
    kinds = frozenset({"torch", "unlabelled"})
    unlabelled_get = "what their neighbours' labels say"
    PRESETS: ClassVar[Presets] = {
        # Paper: prints alpha = 0.01; its numbers are those of 0.1, to four digits on ten data sets.
        "paper": {"alpha": 0.1, "graph": "dense", "sigma": 1.0, "standardize": False, "output": "softmax"},
        "glle_paper": {"alpha": 0.5, "graph": "dense", "sigma": 1.0, "standardize": False, "output": "sum"},
    }
    SEARCH: ClassVar[Domains] = {
        "alpha": [0.1, 0.3, 0.5, 0.7, 0.9, 0.97],
        "n_neighbors": [5, 10, 20, 40],
        "output": ["softmax", "sum"],
    }
    alpha: float = parameter(Interval(Real, 0, 1, closed="left"), default=0.5)
    graph: str = parameter({"auto", "dense", "knn"}, default="auto")
    sigma: float | str = parameter(POSITIVE, {"knn"}, default="knn")
    n_neighbors: int = parameter(COUNT, default=10)
    standardize: bool = parameter("boolean", default=True)
    output: str = parameter({"softmax", "sum"}, default="softmax")
    tol: float = parameter(POSITIVE, default=1e-10)
    max_iter: int = parameter(COUNT, default=1000)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        if self.standardize:
            X = standardisation(X)(X)
        graph = self.graph
        if graph == "auto":
            graph = "dense" if len(X) <= DENSE_ROWS else "knn"
        affinity, sigma, search, order = build_affinity(X, graph, self.sigma, self.n_neighbors)
        solution = propagate(affinity, in_order(L, order), self.alpha, tol=self.tol, max_iter=self.max_iter)
        F = put_back(solution.value, order)
        self.scores_ = F
        info = {"sigma": sigma, "graph": graph, **({"neighbours": search} if search else {})}
        return solution.with_value(to_distributions(F, self.output), **info)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        dense = self.graph == "dense" or (self.graph == "auto" and n <= DENSE_ROWS)
        return super()._fit_bytes(n, d, q) + (operator_bytes(n) if dense else 0.0)


def build_affinity(X: Array, graph: str, sigma: float | str, k: int) -> tuple[Operator, float, Record, Any]:
    """V -> A V; the width of A; the report of the search, if there was one; the order of A."""
    if graph == "knn":
        A, width, search, order = neighbour_affinity(X, k, sigma, local=True)
        return A.matmul, width, search, order
    search = {}
    if isinstance(sigma, str):
        neighbours = nearest_neighbours(X, k)
        sigma, search = knn_width(neighbours.distances), neighbours.report()
    products = gaussian_operator(X, sigma, zero_diagonal=True, keep_tiles_rows=KEEP_TILES_ROWS)
    return products, float(sigma), search, slice(None)


def propagate(affinity: Operator, L: Array, alpha: float, *, tol: float, max_iter: int) -> Solution:
    """F* = (1 - alpha) (I - alpha P)^(-1) L as a `Solution`, from V -> A V and L (n, q)."""
    xp = array_namespace(L)
    degree = affinity(xp.ones_like(L[:, :1]))
    # Paper: says nothing of rows without neighbours; P_ii = 1 makes F_i = L_i there.
    isolated = degree <= xp.finfo(L.dtype).smallest_normal
    loop = xp.astype(isolated, L.dtype)
    root = (1.0 - loop) / xp.sqrt(xp.where(isolated, xp.ones_like(degree), degree))

    def system(V: Array) -> Array:
        return V - alpha * (root * affinity(root * V) + loop * V)

    solution = conjugate_gradient(system, (1 - alpha) * L, tol=tol, max_iter=max_iter)
    F = solution.value
    # At the minimum the objective collapses to this inner product.
    return replace(solution, objective=(1 - alpha) * float(xp.sum(L * (L - F))))

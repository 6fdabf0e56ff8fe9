"""GLLE: graph Laplacian label enhancement.

A kernel model d^_i = W^T phi(x_i) + b is to stay near the logical labels and to vary smoothly over a neighbour graph:

    min_W  ||P - L||_F^2 + lambda tr(P^T G P),    P = [K 1] W,    G = diag(A 1) - A,

with A_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)) on the union of the k-neighbourhoods, 0 elsewhere, and the Gaussian
kernel matrix K of width s = mean pairwise distance. D^ is the softmax of the rows of P.

K of distinct rows has full rank, so P ranges over *all* matrices and the minimiser needs no kernel at all: it solves

    (I + lambda G) P = L,

a sparse, well-conditioned system (``solver="exact"``). Rows that are equal share their value: they are merged, with
their number as weight. The published numbers are not those of the minimiser. They come from an L-BFGS run on W, stopped
by its iteration limit a long way before the minimum; as K is badly conditioned, the stop acts as a strong regulariser.
``solver="lbfgs"`` is that procedure, with `max_iter` as a parameter of the model.

References
----------
N. Xu, A. Tao, X. Geng. Label enhancement for label distribution learning. IJCAI 2018, eqs. (2), (6)-(9).
N. Xu, Y.-P. Liu, X. Geng. Label enhancement for label distribution learning. IEEE TKDE, 2021.
"""

from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils import check_random_state

from contone.backends import Graph, get_backend, like, to_numpy
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, InductiveMixin, estimator, parameter
from contone.measurements import asked_frequencies
from contone.numerics.graphs import in_order, neighbour_affinity, put_back, query_neighbours
from contone.numerics.kernel import gaussian_kernel, gaussian_matrix, mean_pairwise_distance
from contone.numerics.lanczos import Quadrature, quadrature
from contone.numerics.linear import conjugate_gradient
from contone.numerics.optimise import lbfgs
from contone.numerics.scaling import standardisation, unscaled
from contone.numerics.simplex import softmax, to_distributions
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Operator, Presets
from contone.validation.training import silent_rows

GRID = np.logspace(-2, 2, 41)
"""Candidates for lambda times the mean degree: from a hundredth to a hundred times as much weight as a row's labels."""
PROBES = 8
"""Random sign vectors behind an estimated trace, at 1000 rows."""
SETTLED_STEPS = 5
MAX_STEPS = 100
SCORE_TOLERANCE = 1e-4
"""The Lanczos run behind lambda ends when no candidate, moving as much again as in the last 5 steps, would be better
than the best by a ten thousandth; after 100 steps at the latest. Too few steps favour too much smoothing."""
N_PAIRS = 20
"""Pairs that L-BFGS remembers, as in the authors' code."""

EqualRows: TypeAlias = tuple[int, Operator | None]
"""How many rows are distinct, and the map that takes means over equal ones; None where all are distinct."""


@estimator
class GLLE(InductiveMixin, Enhancer):
    """Labels smoothed over a neighbour graph: min ||P - L||^2 + lambda tr(P^T G P), D^ = softmax(P).

    An entry that nobody asked about (NaN), and every one of a row without labels, has no part in ||P - L||^2: what is
    there is what neighbours say. Where no row of a connected component was asked about a label, its frequency stands.

    Confidences in place of L are smoothed as they are; as G 1 = 0, their rows keep the sum 1, so that ``output="sum"``
    returns P itself.

    Parameters
    ----------
    lambda_ : float, "gcv" or "balanced", default="gcv"
        Weight of smoothness. What counts is lambda times the degree of a row: P_i is the mean of L_i, with weight 1,
        and the neighbours' P_j, with weights lambda A_ij. "gcv" minimises the generalised cross-validation score of
        L: the better neighbours predict labels, the less is smoothed away. It looks at X and L only and costs about
        as much as one more solve. "balanced" is 1 / (mean degree), which weighs a row's own labels and its
        neighbourhood alike. 0 gives D^ = softmax(L).
    n_neighbors : int or "labels", default=10
        Neighbours k of a row, not counting itself. "labels" means q + 1.
    sigma : float or "knn", default="knn"
        Width of the graph's weights; "knn" is the mean distance to the k-th neighbour.
    standardize : bool, default=True
        Use z-scores of the features.
    solver : {"exact", "lbfgs"}, default="exact"
        The minimiser by conjugate gradients in O(n k q) a step; or `max_iter` steps of L-BFGS on the kernel weights W,
        from W uniform in [0, 1], in O(n^2 q) a step and with an n x n matrix in memory.
    output : {"softmax", "sum"}, default="softmax"
        How a row of P becomes a distribution: softmax, or division of its positive part by the sum.
    tol : float, default=1e-8
        "exact": relative residual of the linear system. "lbfgs": stop before `max_iter` once the gradient has shrunk by
        this factor.
    max_iter : int, default=1000
        "exact": most steps, with a warning if they do not suffice. "lbfgs": part of the model, no warning.
    random_state : int, RandomState or None, default=0
        Start of "lbfgs"; "exact" is deterministic.

    Attributes
    ----------
    scores_ : (n, q)
        P, before normalisation.

    Notes
    -----
    `predict` of the exact solver extends the graph: a new row has no labels, so the minimiser gives it the mean of the
    scores of its k nearest training rows with weights A_ij. That of "lbfgs" evaluates the kernel model. Neither returns
    `label_distributions_` for the training rows, because new rows come without labels.

    Presets: ``original_code`` has the graph, the scaling and the optimiser of the authors' program (k = 19, sigma 10,
    lambda 0.01, z-scores, 300 iterations); ``paper`` differs in k = q + 1, the value in print.

    Examples
    --------
    >>> glle = GLLE(n_neighbors=1, lambda_="balanced")
    >>> glle.fit_enhance([[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 1], [0, 1], [0, 1]]).round(2).tolist()
    [[0.66, 0.34], [0.58, 0.42], [0.27, 0.73], [0.27, 0.73]]
    """

    reference = "Xu, Tao & Geng, IJCAI 2018"
    kinds = frozenset({"torch", "unasked", "unlabelled"})
    unlabelled_get = "what their neighbours' labels say"
    PRESETS: ClassVar[Presets] = {
        "paper": {"lambda_": 0.01, "n_neighbors": "labels", "sigma": 10.0, "solver": "lbfgs", "max_iter": 300},
        "original_code": {"lambda_": 0.01, "n_neighbors": 19, "sigma": 10.0, "solver": "lbfgs", "max_iter": 300},
    }
    SEARCH: ClassVar[Domains] = {"lambda_": ["gcv", "balanced", 0.01, 0.1, 1.0, 10.0], "n_neighbors": [5, 10, 20, 40]}
    lambda_: float | str = parameter(NOT_NEGATIVE, {"gcv", "balanced"}, default="gcv")
    n_neighbors: int | str = parameter(COUNT, {"labels"}, default=10)
    sigma: float | str = parameter(POSITIVE, {"knn"}, default="knn")
    standardize: bool = parameter("boolean", default=True)
    solver: str = parameter({"exact", "lbfgs"}, default="exact")
    output: str = parameter({"softmax", "sum"}, default="softmax")
    tol: float = parameter(POSITIVE, default=1e-8)
    max_iter: int = parameter(COUNT, default=1000)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: Array, L: Array) -> Solution:
        exact = self.solver == "exact"
        if not exact:
            # A path that is left before its end shows every rounding: always in double precision.
            xp = array_namespace(X, L)
            X, L = (xp.astype(A, xp.float64, copy=False) for A in (X, L))
        self._scaling = standardisation(X) if self.standardize else unscaled
        X = self._scaling(X)
        self._k = L.shape[1] + 1 if self.n_neighbors == "labels" else int(self.n_neighbors)
        A, self._sigma, search, order = neighbour_affinity(X, self._k, self.sigma, local=exact)
        asked, neutral = _asked(L), asked_frequencies(L)
        if asked is not None:
            L = array_namespace(L).where(asked > 0, L, like(neutral, L)[None, :])
        local = in_order(L, order)
        lambda_ = smoothing_weight(A, local, self.lambda_)
        self._X = X
        if exact:
            masked = None if asked is None else in_order(asked, order)
            solution = self._smooth(A, local, lambda_, average_equal_rows(X[order]), masked, neutral)
            P = put_back(solution.value, order)
        else:
            self._width = mean_pairwise_distance(X) or 1.0
            start = check_random_state(self.random_state).uniform(size=(X.shape[0] + 1, L.shape[1]))
            K = gaussian_matrix(X, self._width)
            solution = self._descend(K, A, L, lambda_, start, asked)
            self._W = like(solution.value, X)
            P = model(K, self._W)
        self.scores_ = P
        info = {"lambda": lambda_, "sigma": self._sigma, "neighbours": search}
        return solution.with_value(to_distributions(P, self.output), **info)

    def _smooth(
        self, A: Graph, L: Array, lambda_: float, equal: EqualRows, asked: Array | None, neutral: Array
    ) -> Solution:
        """The minimiser P of the objective over all P that are equal on equal rows.

        `equal` has the number of distinct rows and V -> E V, which takes means over equal rows; without duplicates
        E = I. P = E P solves (I + lambda E G) P = E L. With a mask M = `asked` (n, q) a label by itself has
        (E M + lambda E G) p = E M l; as G 1 = 0, L and P are counted from the values `neutral` (q,), which stand where
        nothing was asked.
        """
        n_distinct, average = equal
        mean: Operator = average or (lambda V: V)
        degree = A.row_sums()
        origin: Array = 0.0
        if asked is None:
            system = A.diagonal_plus(1.0 + lambda_ * degree, -lambda_)
            right, own = mean(L), 1.0
        else:
            origin, laplacian = like(neutral, L)[None, :], A.diagonal_plus(lambda_ * degree, -lambda_)
            system = lambda V: asked * V + laplacian(V)  # noqa: E731
            right, own = mean(asked * (L - origin)), array_namespace(L).mean(asked, axis=1)
        jacobi = mean((own + lambda_ * degree)[:, None])[:, 0]
        jacobi = jacobi if asked is None else array_namespace(L).clip(jacobi, min=1e-6)
        apply = system if average is None else (lambda V: mean(system(V)))
        solution = conjugate_gradient(apply, right, diagonal=jacobi, tol=self.tol, max_iter=self.max_iter)
        P = mean(solution.value) + origin
        value, _ = objective(P, A, L, lambda_, asked)
        return replace(solution, value=P, objective=value, info={"n_distinct": n_distinct})

    def _descend(self, K: Array, A: Graph, L: Array, lambda_: float, start: Array, asked: Array | None) -> Solution:
        """At most `max_iter` steps of L-BFGS on W, from `start` (n + 1, q); the value is W."""

        def value_and_gradient(W: np.ndarray) -> tuple[float, np.ndarray]:
            value, g = objective(model(K, like(W, L)), A, L, lambda_, asked)
            return value, np.vstack([to_numpy(K @ g), to_numpy(g.sum(axis=0))])  # K is symmetric

        first = float(np.abs(value_and_gradient(start)[1]).max())
        tol, max_iter = self.tol * first, self.max_iter
        found = lbfgs(value_and_gradient, start, tol=tol, max_iter=max_iter, n_pairs=N_PAIRS, min_decrease=0.0)
        residual = found.residual / first if first > 0 else 0.0
        # Stopping early is the point of this mode, so that an unmet tolerance is not a failure.
        return replace(found, residual=residual, converged=True, info={"met_tol": residual <= self.tol})

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        kernel = 2 * 8.0 * n * n if self.solver == "lbfgs" else 0.0  # K, and exponents while it is made
        return super()._fit_bytes(n, d, q) + kernel

    def _predict(self, X: Array) -> Array:
        X = self._scaling(X)
        if self.solver == "lbfgs":
            P = model(gaussian_kernel(X, like(self._X, X), self._width), like(self._W, X))
            return to_distributions(P, self.output)
        neighbours = query_neighbours(like(self._X, X), X, self._k)
        scores = like(self.scores_, X)
        P = weighted_scores(neighbours.distances, neighbours.indices, scores, self._sigma)
        return to_distributions(P, self.output)

    def _enhance(self, X: Array, L: Array) -> Array:
        """The minimiser for a new row beside the training rows, whose scores stay as they are.

        p = (l + lambda sum_j a_j p_j) / (1 + lambda sum_j a_j) over its k nearest training rows.
        """
        if self.solver == "lbfgs":
            return self._predict(X)
        X = self._scaling(X)
        neighbours = query_neighbours(like(self._X, X), X, self._k)
        scores, lambda_ = like(self.scores_, X), self.solution_.info["lambda"]
        P = labelled_scores(neighbours.distances, neighbours.indices, L, scores, self._sigma, lambda_)
        return to_distributions(P, self.output)


def smoothing_weight(A: Graph, L: Array, rule: float | str) -> float:
    """lambda itself, or what the rule "balanced" or "gcv" says."""
    if rule not in ("balanced", "gcv"):
        return float(rule)
    mean_degree = float(A.row_sums().mean())
    if mean_degree == 0:
        return 0.0  # no edges, nothing to smooth over
    return 1.0 / mean_degree if rule == "balanced" else cross_validated_weight(A, L, GRID / mean_degree)


def cross_validated_weight(A: Graph, L: Array, candidates: Array) -> float:
    """The candidate lambda with the least GCV(lambda) = ||(I - H) L||^2 / (tr(I - H) / n)^2, H = (I + lambda G)^(-1).

    Both parts are sums of quadratic forms b^T (1 - h(G))^p b, over the columns of L and over random signs (Hutchinson's
    estimate of the trace). One Lanczos run gives them for every lambda at once, so that no system is solved here.
    """
    n, q = L.shape
    # The variance of the estimated trace falls with the number of rows times that of probes.
    n_probes = int(np.clip(np.ceil(PROBES * 1000 / n), 2, 64))
    signs = like(np.random.default_rng(0).choice([-1.0, 1.0], size=(n, n_probes)), L)
    scores: list[np.ndarray] = []

    def enough(forms: Quadrature) -> bool:
        """Score all candidates by what is known so far; see `SCORE_TOLERANCE`."""
        share = lambda g: (t := g[..., None] * candidates) / (1.0 + t)  # noqa: E731
        misfit = forms(lambda g: share(g) ** 2)[:q].sum(axis=0)
        freedom = forms(share)[q:].mean(axis=0)
        scores.append(misfit / freedom**2)
        if len(scores) <= 2 * SETTLED_STEPS:
            return False
        move = np.abs(scores[-1] - scores[-1 - SETTLED_STEPS])
        return bool(np.all(scores[-1] - move >= (1.0 - SCORE_TOLERANCE) * scores[-1].min()))

    system = A.diagonal_plus(A.row_sums(), -1.0)
    quadrature(system, array_namespace(L).concat([L, signs], axis=1), steps=MAX_STEPS, enough=enough)
    return float(candidates[np.argmin(scores[-1])])


def objective(P: Array, A: Graph, L: Array, lambda_: float, asked: Array | None = None) -> tuple[float, Array]:
    """||P - L||^2 + lambda tr(P^T G P) and its gradient in P (n, q); the first where `asked` (n, q) is 1, if given."""
    xp = array_namespace(P)
    residual = P - L if asked is None else asked * (P - L)
    smoothness = A.row_sums()[:, None] * P - A.matmul(P)
    value = float(xp.sum(residual * residual) + lambda_ * xp.sum(P * smoothness))
    return value, 2.0 * (residual + lambda_ * smoothness)


def average_equal_rows(X: Array) -> EqualRows:
    """How many distinct rows X (n, d) has, and the map that gives each row of V (n, q) the mean over all rows that are
    equal in X; None where no two are."""
    backend = get_backend(X)
    member, first = backend.group_duplicates(X)
    m = len(first)
    if m == len(member):
        return m, None
    count = backend.count_members(member)[:, None]
    return m, lambda V: (backend.sum_members(V, member, m) / count)[member]


def _asked(L: Array) -> Array | None:
    """1 where labels L (n, q) say something, 0 where not (NaN, and rows without a label); None where all do."""
    xp = array_namespace(L)
    asked = (L == L) & ~silent_rows(L)[:, None]
    return None if bool(xp.all(asked)) else xp.astype(asked, L.dtype)


def _squares(distances: Array, sigma: float) -> Array:
    """(distance / sigma)^2, finite for rows at any distance."""
    xp = array_namespace(distances)
    return xp.clip(distances / sigma, max=0.5 * xp.finfo(distances.dtype).max ** 0.5) ** 2


def weighted_scores(distances: Array, indices: Array, scores: Array, sigma: float) -> Array:
    """Means (m, q) of the scores of each row's neighbours, with weights exp(-distance^2 / (2 sigma^2))."""
    # Only ratios of weights count; taking the nearest as 1 keeps far-away rows from underflow.
    return (softmax(-0.5 * _squares(distances, sigma))[:, None, :] @ scores[indices])[:, 0, :]


def labelled_scores(distances: Array, indices: Array, L: Array, scores: Array, sigma: float, lambda_: float) -> Array:
    """P (m, q) of new rows with labels L (m, q), from the scores (n, q) of their neighbours (m, k)."""
    xp = array_namespace(distances)
    weights = lambda_ * xp.exp(-0.5 * _squares(distances, sigma))
    asked = _asked(L)
    around, weight = (weights[:, None, :] @ scores[indices])[:, 0, :], xp.sum(weights, axis=1, keepdims=True)
    if asked is None:
        return (L + around) / (1.0 + weight)
    # Neighbours alone where nobody asked, however far they are.
    total = asked + weight
    alone = weighted_scores(distances, indices, scores, sigma)
    mixed = (xp.where(asked > 0, L, xp.zeros_like(L)) + around) / xp.clip(total, min=1e-300)
    return xp.where((asked > 0) | (weight > 1e-200), mixed, alone)


def model(K: Array, W: Array) -> Array:
    """P = [K 1] W for K (m, n) and W (n + 1, q), the last row of W being the bias."""
    return K @ W[:-1] + W[-1]

"""Label confidence: how much each relevant label of a row is believed, given the labels of its neighbours.

Kou, Jia, Wang, Shi and Geng, "Data Augmentation for Label Enhancement", section 3.1, Eq. 1 to 4. With w_ij =
exp(-||x_i - x_j||^2 / sigma^2) where x_j is among the k nearest neighbours of x_i, W <- W + W^T and d_i = sum_j w_ij,

    min_F  1/2 sum_ij w_ij || f_i / sqrt(d_i) - f_j / sqrt(d_j) ||^2  =  tr F^T (I - S) F,    S = D^-1/2 W D^-1/2
    s.t.   every row of F on the simplex, F = 0 where L = 0.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils._param_validation import Interval, StrOptions

from contone.base import Enhancer
from contone.numerics.neighbours import (
    Neighbours,
    NormalisedGraph,
    edge_matrix,
    gaussian_weights,
    localised,
    nearest_neighbours,
    normalised_graph,
    put_back,
)
from contone.numerics.qp import Programme, minimise_on_simplices
from contone.numerics.simplex import project_masked_simplex
from contone.numerics.solution import Solution
from contone.numerics.sparse import matmul, submatrix


class LabelConfidence(Enhancer):
    """Label confidence F: the smoothest sharing-out of each row's labels on the graph of nearest neighbours.

    Solves  min_F tr F^T (I - S) F  with the rows of F on the simplex and F = 0 where L = 0, S the normalised graph of
    the k nearest neighbours with Gaussian weights. It is convex; f(F) - f* is bounded by the Frank-Wolfe gap, which is
    ``solution_.info["gap"]``, and relative to the objective ``solution_.residual``.

    Labels that are already confidences count as relevant where they are positive; their values are not used.

    A row with one relevant label is a constant. An isolated row (all its weights underflow) has no neighbour to agree
    with and shares its labels equally. The minimiser is unique unless, in some connected component, two labels are
    relevant to all rows: then moving mass between them in proportion to sqrt(d_i) changes nothing. Of all
    minimisers the answer is the one nearest to sharing equally, L / |L|; ``solution_.info["flat_directions"]`` counts
    the dimensions in which that choice was made.

    F is supervision for a later step, not an estimate of the label distribution: irrelevant labels get exactly 0.

    Parameters
    ----------
    n_neighbors : int, default=10
        k; cut to n - 1.
    sigma : float, "mean_knn" or "median_knn", default="mean_knn"
        Width of the Gaussian weights; by default the mean distance to the k-th neighbour.
    tol : float, default=1e-12
        Stop when the gap is at most tol times the objective (or times 1/100 a row, where the objective is smaller).
    max_iter : int, default=10000

    References
    ----------
    Kou, Jia, Wang, Shi, Geng: Data Augmentation for Label Enhancement, section 3.1.

    Examples
    --------
    The middle row has both labels and lies nearer to the row that has the first one only:

    >>> F = LabelConfidence(n_neighbors=2).fit_enhance([[0.0], [1.0], [3.0]], [[1, 0], [1, 1], [0, 1]])
    >>> F.round(2).tolist()
    [[1.0, 0.0], [0.58, 0.42], [0.0, 1.0]]
    """

    reference = "Kou et al., Data Augmentation for Label Enhancement, Eq. 1-4"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"n_neighbors": 10}}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="neither"), StrOptions({"mean_knn", "median_knn"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, *, n_neighbors: int = 10, sigma: float | str = "mean_knn", tol: float = 1e-12, max_iter: int = 10_000
    ) -> None:
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.tol = tol
        self.max_iter = max_iter

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        neighbours, order = localised(nearest_neighbours(X, self.n_neighbors))
        # Paper: sigma is never given. The mean distance to the k-th neighbour is what SDLPP, by the same group, uses.
        sigma = _width(neighbours, self.sigma)
        graph = confidence_graph(neighbours, sigma)
        solution = solve_confidence(graph, L[order] > 0, tol=self.tol, max_iter=self.max_iter)
        solution.info["sigma"] = sigma
        solution.info["neighbours"] = neighbours.report()
        return replace(solution, value=put_back(solution.value, order))


def confidence_graph(neighbours: Neighbours, sigma: float) -> NormalisedGraph:
    """S and degrees of W + W^T with Gaussian weights W; an edge found from both ends counts twice, as in the paper."""
    W = edge_matrix(neighbours, gaussian_weights(neighbours.distances, sigma))
    return normalised_graph((W + W.T).tocsr())


def _width(neighbours: Neighbours, sigma: float | str) -> float:
    """sigma as a number."""
    if not isinstance(sigma, str):
        return float(sigma)
    farthest = neighbours.distances[:, -1]
    return float(np.mean(farthest) if sigma == "mean_knn" else np.median(farthest))


def solve_confidence(graph: NormalisedGraph, mask: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """The label confidence F (n, q) on a graph, for the relevant labels `mask` (n, q)."""
    S, linked, count = graph.S, graph.degree > 0, mask.sum(axis=1)
    # Paper: Eq. 1 starts from F = L, whose rows do not sum to 1; equal shares are the feasible reading.
    equal = mask / count[:, None]
    free = np.flatnonzero((count > 1) & linked)
    F = equal.copy()
    F[free] = 0.0  # what is left are the constant rows
    S_F = matmul(S, F)
    constant = float(np.sum(F[linked] ** 2) - np.sum(F * S_F))
    within = S if free.size == len(mask) else submatrix(S, free, free)
    programme = Programme(within, S_F[free], mask[free], constant)
    solution = minimise_on_simplices(programme, equal[free], tol=tol, max_iter=max_iter)
    F[free] = solution.value
    n_components, component = connected_components(S, directed=False)
    flat_directions = _settle_flat_directions(F, equal, np.sqrt(graph.degree), mask, component, linked)
    info = {
        "gap": solution.info["gap"],
        "free_rows": int(free.size),
        "single_label_rows": int(np.sum(count == 1)),
        "isolated_rows": int(np.sum(~linked)),
        "components": int(n_components),
        "flat_directions": flat_directions,
    }
    return Solution(F, solution.objective, solution.residual, solution.n_iter, solution.converged, info)


def _settle_flat_directions(
    F: np.ndarray, equal: np.ndarray, root: np.ndarray, mask: np.ndarray, component: np.ndarray, linked: np.ndarray
) -> int:
    """Move F, in place, to the minimiser nearest to `equal`; returns the number of flat directions.

    In a connected component the minimisers are F + root c^T, root = sqrt(d), with c (q,) zero off the labels common to
    all its rows, sum c = 0 and F + root c^T >= 0, that is c >= low with low_l = -min_i f_il / root_i. The nearest to
    `equal` is the projection of c* = sum_i root_i (equal_i - f_i) / sum_i d_i on that set; shifted by `low` and divided
    by -sum(low), the set is a simplex.
    """
    size = np.bincount(component)
    having = np.stack([np.bincount(component, weights=column, minlength=size.size) for column in mask.T], axis=1)
    common = (having == size[:, None]) & (size[:, None] > 1)
    flat = np.flatnonzero(common.sum(axis=1) > 1)
    rows = np.flatnonzero(np.isin(component, flat) & linked)
    if rows.size == 0:
        return 0
    rows = rows[np.argsort(component[rows], kind="stable")]
    start = np.searchsorted(component[rows], flat)
    weight, common = root[rows, None], common[flat]
    target = np.add.reduceat(weight * (equal[rows] - F[rows]), start) / np.add.reduceat(weight**2, start)
    low = np.where(common, -np.minimum.reduceat(F[rows] / weight, start), 0.0)
    room = -low.sum(axis=1, keepdims=True)
    movable = room > 0
    unit = project_masked_simplex((target - low) / np.where(movable, room, 1.0), common)
    c = np.where(common & movable, low + room * unit, 0.0)
    F[rows] = np.maximum(F[rows] + weight * np.repeat(c, np.diff(np.append(start, rows.size)), axis=0), 0.0)
    return int(np.sum(common.sum(axis=1) - 1))

"""Label confidence: how much each relevant label of a row is believed, given the labels of its neighbours.

Kou, Jia, Wang, Shi and Geng, "Data Augmentation for Label Enhancement", section 3.1, Eq. 1 to 4. With w_ij =
exp(-||x_i - x_j||^2 / sigma^2) where x_j is among the k nearest neighbours of x_i, W <- W + W^T and d_i = sum_j w_ij,

    min_F  1/2 sum_ij w_ij || f_i / sqrt(d_i) - f_j / sqrt(d_j) ||^2  =  tr F^T (I - S) F,    S = D^-1/2 W D^-1/2
    s.t.   every row of F on the simplex, F = 0 where L = 0.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace

from contone.augment.simplex_qp import Programme, minimise_on_simplices
from contone.backends import Neighbours, get_backend, like, to_numpy
from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, estimator, parameter
from contone.numerics import graphs
from contone.numerics.simplex import project_masked_simplex, row_sums
from contone.numerics.solution import Solution
from contone.typing import Array, Presets
from contone.validation.training import silent_rows

ROUNDINGS = 100.0
"""The tolerance is at least this many roundings."""


@estimator
class LabelConfidence(Enhancer):
    """Label confidence F: the smoothest sharing-out of each row's labels on the graph of nearest neighbours.

    Solves  min_F tr F^T (I - S) F  with the rows of F on the simplex and F = 0 where L = 0, S the normalised graph of
    the k nearest neighbours with Gaussian weights. It is convex; f(F) - f* is bounded by the Frank-Wolfe gap, which is
    ``solution_.info["gap"]``, and relative to the objective ``solution_.residual``.

    Labels that are already confidences count as relevant where they are positive; their values are not used. A label
    that nobody asked about (NaN) may be relevant, so that nothing holds its confidence at 0; nor any of a row without
    labels.

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
        Maximum number of iterations.

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
    kinds = frozenset({"torch", "unasked", "unlabelled"})
    unlabelled_get = "what their neighbours' labels say"
    PRESETS: ClassVar[Presets] = {"paper": {"n_neighbors": 10}}
    n_neighbors: int = parameter(COUNT, default=10)
    sigma: float | str = parameter(POSITIVE, {"mean_knn", "median_knn"}, default="mean_knn")
    tol: float = parameter(NOT_NEGATIVE, default=1e-12)
    max_iter: int = parameter(COUNT, default=10_000)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        neighbours, order = graphs.local_neighbours(X, self.n_neighbors)
        # Paper: sigma is never given. The mean distance to the k-th neighbour is what SDLPP, by the same group, uses.
        sigma = _width(neighbours, self.sigma)
        graph = confidence_graph(neighbours, sigma)
        possible = (L > 0) | (L != L) | silent_rows(L)[:, None]
        solution = solve_confidence(graph, graphs.in_order(possible, order), tol=self.tol, max_iter=self.max_iter)
        solution.info["sigma"] = sigma
        solution.info["neighbours"] = neighbours.report()
        return replace(solution, value=graphs.put_back(solution.value, order))


def confidence_graph(neighbours: Neighbours, sigma: float) -> graphs.NormalizedGraph:
    """S and degrees of W + W^T with Gaussian weights W; an edge found from both ends counts twice, as in the paper."""
    W = graphs.edge_graph(neighbours, graphs.gaussian_weights(neighbours.distances, sigma))
    return graphs.normalize_graph(W.symmetrize(by="sum"))


def _width(neighbours: Neighbours, sigma: float | str) -> float:
    """sigma as a number."""
    if not isinstance(sigma, str):
        return float(sigma)
    farthest = neighbours.distances[:, -1]
    return float(farthest.mean()) if sigma == "mean_knn" else float(np.median(to_numpy(farthest)))


def solve_confidence(graph: graphs.NormalizedGraph, mask: Array, *, tol: float, max_iter: int) -> Solution:
    """The label confidence F (n, q) on a graph, for the relevant labels `mask` (n, q)."""
    xp = array_namespace(mask)
    S, linked, relevant = graph.S, graph.degree > 0, xp.astype(mask, graph.degree.dtype)
    count = row_sums(relevant)
    # Paper: Eq. 1 starts from F = L, whose rows do not sum to 1; equal shares are the feasible reading.
    equal = relevant / count[:, None]
    free = xp.nonzero((count > 1) & linked)[0]
    F = xp.asarray(equal, copy=True)
    F[free, :] = 0.0  # what is left are the constant rows
    S_F = S.matmul(F)
    constant = float(xp.sum(F[linked, :] ** 2) - xp.sum(F * S_F))
    among_free = S if len(free) == len(mask) else S.submatrix(free)
    programme = Programme(among_free, S_F[free, :], mask[free, :], constant)
    # A certificate cannot resolve less than rounding.
    tol = max(tol, ROUNDINGS * float(xp.finfo(F.dtype).eps))
    solution = minimise_on_simplices(programme, equal[free, :], tol=tol, max_iter=max_iter)
    F[free, :] = solution.value
    n_components, component = S.connected_components()
    flat_directions = _settle_flat_directions(F, equal, xp.sqrt(graph.degree), mask, component, linked)
    info = {
        "gap": solution.info["gap"],
        "free_rows": int(free.shape[0]),
        "single_label_rows": int(xp.sum(xp.astype(count == 1, xp.int64))),
        "isolated_rows": int(xp.sum(xp.astype(~linked, xp.int64))),
        "components": int(n_components),
        "flat_directions": flat_directions,
    }
    return solution.with_value(F, **info)


def _settle_flat_directions(F: Array, equal: Array, root: Array, mask: Array, component: Array, linked: Array) -> int:
    """Move F, in place, to the minimiser nearest to `equal`; returns the number of flat directions.

    In a connected component the minimisers are F + root c^T, root = sqrt(d), with c (q,) zero off the labels common to
    all its rows, sum c = 0 and F + root c^T >= 0, that is c >= low with low_l = -min_i f_il / root_i. The nearest to
    `equal` is the projection of c* = sum_i root_i (equal_i - f_i) / sum_i d_i on that set; shifted by `low` and divided
    by -sum(low), the set is a simplex.
    """
    xp = array_namespace(F)
    # Usually there is no such component, and one pass over the rows says so.
    position, common = _common_labels(component, mask)
    rows = xp.nonzero((position >= 0) & linked)[0]
    if rows.shape[0] == 0:
        return 0
    host = (to_numpy(A) for A in (F[rows, :], equal[rows, :], root[rows], position[rows], common))
    F[rows, :] = like(_nearest_to_equal(*host), F)
    return int(xp.sum(xp.astype(common, xp.int64))) - int(common.shape[0])


def _common_labels(component: Array, mask: Array) -> tuple[Array, Array]:
    """The labels (c, q) common to all rows of each component that has more than one such; and where they are.

    The latter says which entry of that list the component of a row (n,) is; -1 for the other components.
    """
    xp = array_namespace(mask)
    count_members = get_backend(component).count_members
    size = count_members(component)
    having = xp.stack([count_members(component[mask[:, j]], size.shape[0]) for j in range(mask.shape[1])], axis=1)
    common = (having == size[:, None]) & (size[:, None] > 1)
    flat = xp.nonzero(xp.sum(xp.astype(common, xp.int64), axis=1) > 1)[0]
    place = xp.full_like(size, -1)
    place[flat] = xp.arange(flat.shape[0], dtype=place.dtype, device=getattr(place, "device", None))
    return place[component], common[flat, :]


def _nearest_to_equal(F: Array, equal: Array, root: Array, component: Array, common: Array) -> Array:
    """F (n, q) shifted within the minimisers towards `equal`; rows of component c have the labels common_c (q,)."""
    order = np.argsort(component, kind="stable")
    start = np.searchsorted(component[order], np.arange(len(common)))
    weight = root[order, None]
    target = np.add.reduceat(weight * (equal - F)[order], start) / np.add.reduceat(weight**2, start)
    c = _shift(target, np.minimum.reduceat(F[order] / weight, start), common)
    return np.maximum(F + root[:, None] * c[component], 0.0)


def _shift(target: np.ndarray, least: np.ndarray, common: np.ndarray) -> np.ndarray:
    """c (m, q) of every component from c* and from min_i f_il / root_i, for the labels common to its rows."""
    low = np.where(common, -least, 0.0)
    room = -low.sum(axis=1, keepdims=True)
    movable = room > 0
    unit = project_masked_simplex((target - low) / np.where(movable, room, 1.0), common)
    return np.where(common & movable, low + room * unit, 0.0)

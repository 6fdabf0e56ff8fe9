"""Neighbour graphs: weights on the edges, affinities, normalisation, and an order in which products are fast."""

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from contone.backends import Graph, Neighbours, get_backend
from contone.backends.protocols import invert
from contone.numerics.kernel import knn_width
from contone.typing import Array, Record

GOOD_RECALL = 0.95
"""Below this share of true neighbours an approximate graph comes with a warning."""


def nearest_neighbours(X: Array, k: int) -> Neighbours:
    """The k nearest other rows of every row of X (n, d); k is cut to n - 1. Duplicates count, at distance 0."""
    return get_backend(X).nearest_neighbours(X, k)


def query_neighbours(X: Array, queries: Array, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d); k is cut to n."""
    return get_backend(X, queries).query_neighbours(X, queries, k)


def local_neighbours(X: Array, k: int) -> tuple[Neighbours, Array]:
    """The same with the rows renumbered so that neighbours are near each other, and that order: see `in_order`.

    Products with the graph of a million rows spend their time waiting for memory; with neighbours near each other the
    processor's cache has most of what a row needs.
    """
    found = nearest_neighbours(X, k)
    if found.order is None:
        return found, slice(None)
    take_rows = get_backend(X).take_rows
    indices = take_rows(invert(found.order), take_rows(found.indices, found.order))
    distances = take_rows(found.distances, found.order)
    return found._replace(indices=indices, distances=distances, order=None), found.order


def in_order(A: Array, order: Array) -> Array:
    """The rows of A (n, q) in the order of `local_neighbours`."""
    return A if isinstance(order, slice) else get_backend(A).take_rows(A, order)


def put_back(A: Array, order: Array) -> Array:
    """The rows of A (n, q), given in the order of `local_neighbours`, where they were before."""
    return A if isinstance(order, slice) else get_backend(A).take_rows(A, invert(order))


def edge_graph(neighbours: Neighbours, weights: Array) -> Graph:
    """The directed graph with weight w_ir (n, k) on the edge from row i to its r-th neighbour."""
    return get_backend(weights).edge_graph(neighbours.indices, weights)


def affinity_graph(neighbours: Neighbours, width: float) -> Graph:
    """A (n, n), A_ij = exp(-distance_ij^2 / (2 width^2)) where i is a neighbour of j or j one of i."""
    W = edge_graph(neighbours, gaussian_weights(neighbours.distances, math.sqrt(2.0) * width))
    return W.symmetrize(by="max")


def neighbour_affinity(
    X: Array, k: int, sigma: float | str, *, local: bool = False
) -> tuple[Graph, float, Record, Any]:
    """A (n, n) with A_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)) where i is near j or j near i; and what belongs to it.

    That is its width (`knn_width` where sigma is a word), the report of the search, and the order of A's rows and
    columns, which is that of X unless `local` allows another.
    """
    neighbours, order = local_neighbours(X, k) if local else (nearest_neighbours(X, k), slice(None))
    width = knn_width(neighbours.distances) if isinstance(sigma, str) else float(sigma)
    return affinity_graph(neighbours, width), width, neighbours.report(), order


def gaussian_weights(distances: Array, sigma: float) -> Array:
    """w = exp(-distance^2 / sigma^2), shape kept; at sigma = 0 the limit: 1 between duplicates, 0 elsewhere."""
    xp = array_namespace(distances)
    if sigma == 0.0:
        return xp.astype(distances == 0.0, distances.dtype)
    return xp.exp(-xp.square(distances / sigma))


class NormalizedGraph(NamedTuple):
    """S = D^-1/2 W D^-1/2 of a symmetric graph W."""

    S: Graph
    """(n, n); rows and columns of isolated points are zero."""
    degree: Array
    """(n,) row sums of W; 0 for an isolated point."""


def normalize_graph(W: Graph) -> NormalizedGraph:
    """S = D^-1/2 W D^-1/2 of the symmetric graph W (n, n), whose eigenvalues lie in [-1, 1].

    A degree that is zero, or so small that dividing by it loses all digits, counts as isolated.
    """
    degree = W.row_sums()
    xp = array_namespace(degree)
    precision = xp.finfo(degree.dtype)
    linked = degree > precision.smallest_normal / precision.eps
    degree = xp.where(linked, degree, xp.zeros_like(degree))
    root = xp.where(linked, 1.0 / xp.sqrt(xp.where(linked, degree, xp.ones_like(degree))), degree)
    return NormalizedGraph(W.scale(root, root), degree)

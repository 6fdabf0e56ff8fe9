"""The Gaussian kernel and distances between all pairs of rows, in tiles.

Nothing here needs an n x n matrix: products with the kernel and averages over all pairs go tile by tile through the
upper triangle, and every tile serves both of its halves. Where n is small enough to afford it, the matrix is kept,
because each further product then costs a matrix multiplication only. All functions run on any array-API library; on
NumPy arrays tiles go side by side, and sums over them have a fixed order.
"""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, islice
from math import floor, log2, sqrt
from typing import TypeVar

from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.typing import Array, Operator

KEEP_ROWS = 5000
"""Up to this many rows an n x n matrix may be kept in memory (200 MB in float64)."""
KEEP_TILES_ROWS = 10_000
"""Up to this many rows the tiles of a matrix may be kept, each for both of its halves (400 MB in float64)."""
ROOM = 1e-5
"""How far below the root of the largest number entries are kept, so that sums of their squares stay below it."""
TILE = 256
"""Side of a tile: half a megabyte in float64, which stays in a processor's cache."""
TILES_AT_ONCE = 64
"""Tiles whose results may wait to be added."""

Result = TypeVar("Result")


def gaussian_kernel(X: Array, Y: Array, sigma: float) -> Array:
    """k(x_i, y_j) = exp(-||x_i - y_j||^2 / (2 sigma^2)) for all pairs, (n, m)."""
    unit, sigma = _safe_unit(sigma, X, Y)
    X, Y = X / unit, Y / unit
    centre = array_namespace(X).mean(X, axis=0)
    left, _ = _lifted(X - centre, sigma)
    _, right = _lifted(Y - centre, sigma)
    return _exp_of_product(left, right)


def gaussian_operator(
    X: Array,
    sigma: float,
    *,
    zero_diagonal: bool = False,
    keep_rows: int = KEEP_ROWS,
    keep_tiles_rows: int = 0,
    tile: int = TILE,
) -> Operator:
    """The map V -> K V with K_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)), for V of shape (n, m).

    Parameters
    ----------
    X : array, (n, d)
        Rows.
    sigma : float
        Width of the kernel.
    zero_diagonal : bool
        Use K_ii = 0 instead of 1: an affinity without self-loops. It is set, not subtracted: on sparse data the
        off-diagonal sums are far below the rounding error of 1 + sum - 1.
    keep_rows : int
        K is computed once and kept for n up to this; beyond, it is recomputed by tiles in every product.
    keep_tiles_rows : int
        Beyond `keep_rows`, the tiles are kept for n up to this: half the memory of K, and the same answers to the bit
        as if they were recomputed. It pays from the second product on.
    tile : int
        Side of a tile, in rows.
    """
    if X.shape[0] <= keep_rows:
        K = gaussian_matrix(X, sigma, zero_diagonal=zero_diagonal)
        # K is symmetric, and few rows times a wide matrix run faster than a tall matrix times few columns.
        return lambda V: (V.T @ K).T
    kept: dict[tuple[int, int], Array] | None = {} if X.shape[0] <= keep_tiles_rows else None
    return lambda V: _tiled_product(X, sigma, V, zero_diagonal, tile, kept)


def operator_bytes(n: int) -> float:
    """What `gaussian_operator` holds of n rows in float64 where it may keep tiles."""
    return 8.0 * n * n if n <= KEEP_ROWS else 4.0 * n * n if n <= KEEP_TILES_ROWS else 0.0


def gaussian_matrix(X: Array, sigma: float, *, zero_diagonal: bool = False) -> Array:
    """K (n, n) with K_ij = exp(-||x_i - x_j||^2 / (2 sigma^2)); the diagonal is exactly 1 or, on request, 0."""
    K = gaussian_kernel(X, X, sigma)
    _set_diagonal(K, 0.0 if zero_diagonal else 1.0)
    return K


def mean_pairwise_distance(X: Array, *, tile: int = TILE) -> float:
    """The mean of ||x_i - x_j|| over all pairs i < j: the kernel width of GLLE and KM. 0 for a single row."""
    xp = array_namespace(X)
    n, (unit, _) = X.shape[0], _safe_unit(1.0, X)
    X = X / unit
    left, right = _lifted(X - xp.mean(X, axis=0), sqrt(0.5))  # inner products are then minus the squared distances

    def work(rows: slice, columns: slice) -> float:
        E = left[rows, :] @ right[columns, :].T
        if rows == columns:
            # The diagonal is zero but for rounding, which the root would make visible.
            _set_diagonal(E, 0.0)
        block = float(xp.sum(_in_place(xp.sqrt, _in_place(xp.abs, E))))
        return block / 2 if rows == columns else block

    total = sum(block for _, _, block in _for_tiles(X, work, tile))
    return unit * total / (n * (n - 1) / 2) if n > 1 else 0.0


def _tiled_product(
    X: Array, sigma: float, V: Array, zero_diagonal: bool, tile: int, kept: dict[tuple[int, int], Array] | None
) -> Array:
    xp = array_namespace(X, V)
    unit, sigma = _safe_unit(sigma, X)
    X = X / unit
    left, right = _lifted(X - xp.mean(X, axis=0), sigma)
    result = xp.zeros_like(V)

    def entries(rows: slice, columns: slice) -> Array:
        if kept is not None and (rows.start, columns.start) in kept:
            return kept[rows.start, columns.start]
        E = _exp_of_product(left[rows, :], right[columns, :])
        if rows == columns:
            _set_diagonal(E, 0.0 if zero_diagonal else 1.0)
        if kept is not None:
            kept[rows.start, columns.start] = E
        return E

    def work(rows: slice, columns: slice) -> tuple[Array, Array | None]:
        E = entries(rows, columns)
        if rows == columns:
            return E @ V[rows, :], None
        return E @ V[columns, :], E.T @ V[rows, :]

    for rows, columns, (upper, lower) in _for_tiles(X, work, tile):
        result[rows, :] += upper
        if lower is not None:
            result[columns, :] += lower
    return result


def _for_tiles(X: Array, work: Callable[[slice, slice], Result], tile: int) -> Iterator[tuple[slice, slice, Result]]:
    """(rows, columns, work(rows, columns)) of all tiles of X (n, d) with itself, in their order."""
    parts = [slice(i, min(i + tile, X.shape[0])) for i in range(0, X.shape[0], tile)]
    tiles = combinations_with_replacement(parts, 2)  # on and above the diagonal
    while some := list(islice(tiles, TILES_AT_ONCE)):
        for (rows, columns), done in zip(some, get_backend(X).map_blocks(lambda t: work(*t), some), strict=True):
            yield rows, columns, done


def _safe_unit(sigma: float, *arrays: Array) -> tuple[float, float]:
    """A unit for features and width whose squares can be added up, and the width in it.

    The unit is 1 unless the largest entry calls for another, a power of two. A width so small that quotients would
    leave floating point is raised: the kernel is 0 between all rows that differ, before and after.
    """
    xp = array_namespace(*arrays)
    largest = max(float(xp.max(xp.abs(A))) if A.shape[0] else 0.0 for A in arrays)
    limit = ROOM * sqrt(float(xp.finfo(arrays[0].dtype).max))
    unit = 1.0 if largest == 0.0 or 1.0 / limit < largest < limit else 2.0 ** floor(log2(largest))
    return unit, max(sigma / unit, largest / unit / limit)


def _lifted(X: Array, sigma: float) -> tuple[Array, Array]:
    """Two (n, d + 2) matrices whose inner products are -||x_i - x_j||^2 / (2 sigma^2).

    One matrix product then gives the whole exponent, without passes over the tile to add the norms.
    """
    xp = array_namespace(X)
    scaled = X / sigma
    half = -0.5 * xp.sum(scaled * scaled, axis=1, keepdims=True)
    one = xp.ones_like(half)
    return xp.concat([scaled, half, one], axis=1), xp.concat([scaled, one, half], axis=1)


def _exp_of_product(left: Array, right: Array) -> Array:
    xp = array_namespace(left)
    exponent = left @ right.T
    # Rounding can make the exponent of (near) duplicates positive, which matters for features of a large scale.
    return _in_place(xp.exp, _in_place(xp.minimum, exponent, xp.zeros_like(exponent[:1, :1])))


def _in_place(function: Callable[..., Array], A: Array, *others: Array) -> Array:
    """function(A, *others), written over A where the library's functions take `out`: a tile stays in the cache."""
    try:
        return function(A, *others, out=A)
    except TypeError:  # the array API standard has no `out`
        return function(A, *others)


def _set_diagonal(A: Array, value: float) -> None:
    """A_ii = value, for a product A (m, m) that was just computed, so that its rows lie one after the other."""
    array_namespace(A).reshape(A, (-1,))[:: A.shape[0] + 1] = value


def knn_width(distances: Array) -> float:
    """A width from the data alone: the mean distance to the k-th neighbour, from distances (n, k), nearest first.

    Where that is 0, all rows are equal to their neighbours, and any width does: 1.
    """
    return float(array_namespace(distances).mean(distances[:, -1])) or 1.0

"""Approximate nearest neighbours for many rows: inverted lists with 4-bit codes, tuned on a sample, checked on another.

The rows are cut into about 2 sqrt(n) lists by k-means. A query visits the lists whose centres are nearest, scans their
rows as 4-bit codes (one code a feature, compared in the processor's registers), and measures the most promising ones
exactly. How many lists (`probes`) and how many candidates a neighbour (`candidates`) that takes depends on the data: a
few lists where the features lie near a low-dimensional surface, an eighth of all for independent noise. So both are
raised until the recall on a sample of queries, against brute force, reaches the target. The recall that is reported
comes from a second sample that the tuning has not seen.

The search runs in float32 on centred features; the distances of the answer are computed again in float64.

M. Douze et al. The Faiss library, 2024. F. Andre, A.-M. Kermarrec, N. Le Scouarnec. Quicker ADC, 2019.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import faiss
import numpy as np

TARGET_RECALL = 0.98
"""Tuning stops here: a little above what is asked for, as the sample is small."""
SAMPLE_QUERIES = 300
"""Queries to tune by, and as many others to check by."""
FIRST_PROBES = 8
FIRST_CANDIDATES = 4
MOST_CANDIDATES = 32
POINTS_PER_LIST = 40
"""Rows behind each centre in the k-means: more change nothing that can be measured."""
ONE_BY_ONE = 11
"""faiss's number for: each query by itself, with a reservoir of candidates. A quarter faster here than its default."""
BLOCK_ROWS = 1 << 16
SEED = 0


class Settings(NamedTuple):
    """How thoroughly a query searches."""

    lists: int
    probes: int
    candidates: int


class Found(NamedTuple):
    """Neighbours (m, k), nearest first, the settings that found them and the share of true ones among them."""

    indices: np.ndarray
    distances: np.ndarray
    settings: Settings
    recall: float
    order: np.ndarray
    """(n,) the rows of X list by list: neighbours stand near each other in it."""


def nearest_neighbours(X: np.ndarray, k: int) -> Found:
    """The k nearest other rows of every row of X (n, d), k < n."""
    index = _Index(X)
    found = _search(index, index.X, k, own=True)
    indices, distances = np.empty_like(found.indices), np.empty_like(found.distances)
    indices[index.order], distances[index.order] = index.order[found.indices], found.distances
    return found._replace(indices=indices, distances=distances)


def query_neighbours(X: np.ndarray, queries: np.ndarray, k: int) -> Found:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d), k <= n."""
    index = _Index(X)
    found = _search(index, queries, k, own=False)
    return found._replace(indices=index.order[found.indices])


def n_lists(n: int) -> int:
    """The power of two nearest to 2 sqrt(n): finding the lists and scanning them then cost about the same."""
    return int(min(2 ** round(np.log2(2.0 * np.sqrt(n))), max(n // POINTS_PER_LIST, 1)))


def _search(index: _Index, queries: np.ndarray, k: int, *, own: bool) -> Found:
    """Neighbours by their places in the index; `own`: the queries are the rows of the index, in its order."""
    m = len(queries)
    sample = np.random.default_rng(SEED).choice(m, size=min(m, 2 * SAMPLE_QUERIES), replace=False)
    tuning, check = np.array_split(sample, 2) if m > 1 else (sample, sample)
    settings = _tune(index, queries, tuning, k, own)
    indices, distances = np.empty((m, k), dtype=index.order.dtype), np.empty((m, k))
    for start in range(0, m, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, m))
        itself = np.arange(rows.start, rows.stop) if own else None
        indices[rows], distances[rows] = index.nearest(queries[rows], k, itself)
    radius = index.true_radius(queries[check], k, check if own else None)
    return Found(indices, distances, settings, _recall(distances[check], radius), index.order)


def _tune(index: _Index, queries: np.ndarray, rows: np.ndarray, k: int, own: bool) -> Settings:
    """Raise the probes, and the candidates where probes alone no longer help, until the target is met."""
    asked, itself = queries[rows], rows if own else None
    radius = index.true_radius(asked, k, itself)
    settings, reached = Settings(index.lists, min(FIRST_PROBES, index.lists), FIRST_CANDIDATES), 0.0
    while True:
        index.use(settings)
        before, reached = reached, _recall(index.nearest(asked, k, itself)[1], radius)
        everywhere = settings.probes == index.lists
        if reached >= TARGET_RECALL or (everywhere and settings.candidates == MOST_CANDIDATES):
            return settings
        more = 2 if everywhere or reached - before < 0.002 else 1
        probes = min(settings.probes * 5 // 4, index.lists)
        settings = Settings(index.lists, probes, min(more * settings.candidates, MOST_CANDIDATES))


def _recall(distances: np.ndarray, radius: np.ndarray) -> float:
    """The share of neighbours found that are as near as the true k-th one; so ties count as found."""
    return float(np.mean(distances <= radius[:, None] * (1.0 + 1e-9)))


def _places(C: np.ndarray) -> np.ndarray:
    """A place (m,) for each of the centres C (m, d) so that near ones are near: halved again and again along the
    direction in which they vary most."""
    places = np.empty(len(C), dtype=np.int64)
    pending = [(np.arange(len(C)), 0)]
    while pending:
        some, first = pending.pop()
        if len(some) == 1:
            places[some] = first
            continue
        centred = C[some] - C[some].mean(axis=0)
        along = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
        some, half = some[np.argsort(along, kind="stable")], len(some) // 2
        pending += [(some[:half], first), (some[half:], first + half)]
    return places


class _Index:
    """All rows of X (n, d), list by list, ready to be searched.

    Rows of one list visit the same lists and measure the same candidates: next to each other, they find both in the
    processor's cache. faiss seeds its k-means with a constant, so that two builds are the same.
    """

    def __init__(self, X: np.ndarray) -> None:
        self.n, d = X.shape
        self.lists = n_lists(self.n)
        self._centre = X.mean(axis=0)
        points = self._single(X)
        self._index: Any = faiss.index_factory(d, f"IVF{self.lists},PQ{d}x4fs,RFlat")
        size = min(self.n, self.lists * POINTS_PER_LIST)
        chosen = np.sort(np.random.default_rng(SEED).choice(self.n, size=size, replace=False))
        self._index.train(points[chosen])
        inverted: Any = faiss.downcast_index(faiss.extract_index_ivf(self._index))
        inverted.implem = ONE_BY_ONE
        member = inverted.quantizer.search(points, 1)[1][:, 0]
        place = _places(inverted.quantizer.reconstruct_n(0, self.lists))
        width = np.int32 if self.n < 2**31 else np.int64
        self.order = np.argsort(place[member], kind="stable").astype(width)
        self.X, self._points = X[self.order], points[self.order]
        self._index.add(self._points)

    def use(self, settings: Settings) -> None:
        faiss.extract_index_ivf(self._index).nprobe = settings.probes
        self._index.k_factor = settings.candidates

    def nearest(self, asked: np.ndarray, k: int, itself: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances (b, k) for the queries `asked` (b, d); `itself`: their row numbers, to be left out."""
        single, wanted = self._single(asked), k + (itself is not None)
        _, found = self._index.search(single, wanted)
        short = found.min(axis=1) < 0  # the lists visited held fewer rows than were asked for
        if short.any():
            found[short] = self._brute_force(single[short], wanted)
        return self._measured(asked, found, k, itself)

    def true_radius(self, asked: np.ndarray, k: int, itself: np.ndarray | None) -> np.ndarray:
        """The distance (b,) to the k-th neighbour, by comparing with all rows."""
        # A few more than k: float32 may order near ties wrongly, float64 decides among them.
        wanted = min(k + (itself is not None) + 5, self.n)
        return self._measured(asked, self._brute_force(self._single(asked), wanted), k, itself)[1][:, -1]

    def _brute_force(self, single: np.ndarray, k: int) -> np.ndarray:
        return faiss.knn(single, self._points, k)[1]

    def _single(self, A: np.ndarray) -> np.ndarray:
        """A - centre in float32, without a second float64 copy of all rows."""
        out = np.empty(A.shape, dtype=np.float32)
        for start in range(0, len(A), BLOCK_ROWS):
            out[start : start + BLOCK_ROWS] = A[start : start + BLOCK_ROWS] - self._centre
        return out

    def _measured(
        self, asked: np.ndarray, found: np.ndarray, k: int, itself: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of the candidates (b, c) by float64 distances; a row is never its own neighbour."""
        squared = np.empty(found.shape)
        for j in range(found.shape[1]):  # one neighbour at a time: nothing of size b x c x d
            difference = self.X[found[:, j]] - asked
            squared[:, j] = np.einsum("ij,ij->i", difference, difference)
        if itself is not None:
            squared[found == itself[:, None]] = np.inf
        order = np.lexsort((found, squared), axis=1)[:, :k]
        return np.take_along_axis(found, order, axis=1), np.sqrt(np.take_along_axis(squared, order, axis=1))

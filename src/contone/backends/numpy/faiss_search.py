"""Approximate nearest neighbours for many rows: inverted lists with 4-bit codes, tuned on a sample, checked on another.

The rows are cut into lists of about 200 by k-means, in two levels. A query visits the lists whose centres are nearest,
scans their rows as 4-bit codes (one code a feature, compared in the processor's registers), and measures the most
promising ones exactly. How many lists (`probes`) and how many candidates a neighbour (`candidates`) that takes depends
on the data: a few lists where the features lie near a low-dimensional surface, a tenth of all for independent noise. So
both are raised until the recall on a sample of queries, against brute force, reaches the target. The recall that is
reported comes from a second sample that the tuning has not seen.

No step looks at all centres for every row, so that the time grows hardly faster than the rows. The search runs in
float32 on centred features; the distances of the answer are computed again in float64.

M. Douze et al. The Faiss library, 2024. F. Andre, A.-M. Kermarrec, N. Le Scouarnec. Quicker ADC, 2019.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import faiss
import numpy as np
from sklearn.utils import gen_batches

from contone.backends.numpy import faiss_lists as lists
from contone.backends.numpy import take_rows
from contone.backends.numpy.neighbours import Neighbours
from contone.backends.protocols import invert
from contone.runtime.machine import side_by_side

TARGET_RECALL = 0.98
"""Tuning stops here: a little above what is asked for, as the sample is small."""
SAMPLE_QUERIES = 300
"""Queries to tune by, and as many others to check by."""
FIRST_PROBES = 8
FIRST_CANDIDATES = 4
MOST_CANDIDATES = 32


class Settings(NamedTuple):
    """How thoroughly a query searches."""

    lists: int
    probes: int
    candidates: int


def search(X: np.ndarray, queries: np.ndarray | None, k: int) -> Neighbours:
    """The k rows of X (n, d) nearest to every query (m, d); without queries, the k nearest others of every row of X."""
    index, own = _Index(X), queries is None
    asked = index.X if queries is None else queries
    m = len(asked)
    sample = np.random.default_rng(lists.SEED).choice(m, size=min(m, 2 * SAMPLE_QUERIES), replace=False)
    tuning, check = np.array_split(sample, 2) if m > 1 else (sample, sample)
    settings = _tune(index, asked, tuning, k, own)
    indices, distances = index.nearest(asked, k, np.arange(m) if own else None)
    recall = _recall(distances[check], index.true_radius(asked[check], k, check if own else None))
    if own:
        rank = invert(index.order)
        indices, distances = take_rows(indices, rank), take_rows(distances, rank)
    engine = f"faiss, {settings.lists} lists, {settings.probes} probes, {settings.candidates} candidates"
    return Neighbours(index.order[indices], distances, engine, recall, index.order)


def _tune(index: _Index, queries: np.ndarray, rows: np.ndarray, k: int, own: bool) -> Settings:
    """Raise the probes, and the candidates where probes alone no longer help, until the target is met; then try half
    of the last step back."""
    asked, itself = queries[rows], rows if own else None
    radius = index.true_radius(asked, k, itself)

    def recall(settings: Settings) -> float:
        index.use(settings)
        return _recall(index.nearest(asked, k, itself)[1], radius)

    last = settings = Settings(index.lists, min(FIRST_PROBES, index.lists), FIRST_CANDIDATES)
    before, reached = 0.0, recall(settings)
    while reached < TARGET_RECALL and settings != (index.lists, index.lists, MOST_CANDIDATES):
        last, more = settings, 2 if settings.probes == index.lists or reached - before < 0.002 else 1
        probes = min(settings.probes * 5 // 4, index.lists)
        settings = Settings(index.lists, probes, min(more * settings.candidates, MOST_CANDIDATES))
        before, reached = reached, recall(settings)
    between = settings._replace(probes=(last.probes + settings.probes) // 2)
    if last.probes < between.probes and recall(between) >= TARGET_RECALL:
        return between
    index.use(settings)
    return settings


def _recall(distances: np.ndarray, radius: np.ndarray) -> float:
    """The share of neighbours found that are as near as the true k-th one; so ties count as found."""
    return float(np.mean(distances <= radius[:, None] * (1.0 + 1e-9)))


class _Index:
    """All rows of X (n, d), list by list, ready to be searched.

    Rows of one list visit the same lists and measure the same candidates: next to each other, they find both in the
    processor's cache.
    """

    def __init__(self, X: np.ndarray) -> None:
        self.n = len(X)
        self.lists = lists.n_lists(self.n)
        self._centre = X.mean(axis=0)
        points = lists.single(X, self._centre)
        size = min(self.n, self.lists * lists.POINTS_PER_LIST)
        chosen = points[np.sort(np.random.default_rng(lists.SEED).choice(self.n, size=size, replace=False))]
        self._lists = lists.train(chosen, self.lists)
        self._inverted: Any = self._lists.index
        self._fill(points)
        self.order, self._member = self._in_list_order()
        self.X, self._points = take_rows(X, self.order), take_rows(points, self.order)

    def _fill(self, points: np.ndarray) -> None:
        """Put every point into the list whose centre is nearest, looking at those near the centre of its group only."""
        groups, centres, _ = self._lists
        member = faiss.knn(points, groups, 1)[1][:, 0]
        near = np.sort(faiss.knn(groups, centres, self._lists.n_compared)[1], axis=1)
        own = self._inverted.quantizer
        for group, some in enumerate(near):
            rows = np.flatnonzero(member == group)
            quantizer = faiss.IndexIDMap2(faiss.IndexFlatL2(points.shape[1]))
            quantizer.add_with_ids(centres[some], some)
            self._inverted.quantizer = quantizer
            self._inverted.add_with_ids(points[rows], rows)
        self._inverted.quantizer = own

    def _in_list_order(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows (n,) list by list and the list (n,) each is in. From now on the index calls a row by its place."""
        inverted = self._inverted.invlists
        names = [faiss.rev_swig_ptr(inverted.get_ids(i), inverted.list_size(i)) for i in range(self.lists)]
        order = np.concatenate(names).astype(np.int32 if self.n < 2**31 else np.int64)
        sizes = [len(some) for some in names]
        for some, end in zip(names, np.cumsum(sizes), strict=True):
            some[:] = np.arange(end - len(some), end)
        return order, np.repeat(np.arange(self.lists), sizes)

    def use(self, settings: Settings) -> None:
        """Search this thoroughly from now on."""
        self._settings, self._inverted.nprobe = settings, settings.probes

    def nearest(self, asked: np.ndarray, k: int, itself: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances (b, k) for the queries `asked` (b, d); `itself`: their row numbers, to be left out."""
        indices, distances = np.empty((len(asked), k), dtype=self.order.dtype), np.empty((len(asked), k))

        def work(rows: slice) -> None:
            indices[rows], distances[rows] = self._nearest(asked[rows], k, None if itself is None else itself[rows])

        list(side_by_side(work, gen_batches(len(asked), lists.BLOCK_ROWS), lists.one_thread))
        return indices, distances

    def _nearest(self, asked: np.ndarray, k: int, itself: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        points, wanted = lists.single(asked, self._centre), k + (itself is not None)
        member = self._inverted.quantizer.assign(points, 1)[:, 0] if itself is None else self._member[itself]
        visited, gaps = self._lists.visit(points, member, self._settings.probes)
        _, candidates = self._inverted.search_preassigned(points, wanted * self._settings.candidates, visited, gaps)
        found = lists.best(points, self._points, candidates, wanted)
        short = found.min(axis=1) < 0  # the lists visited held fewer rows than were asked for
        if short.any():
            found[short] = self._brute_force(points[short], wanted)
        return lists.measured(asked, self.X, found, k, itself)

    def true_radius(self, asked: np.ndarray, k: int, itself: np.ndarray | None) -> np.ndarray:
        """The distance (b,) to the k-th neighbour, by comparing with all rows."""
        # A few more than k: float32 may order near ties wrongly, float64 decides among them.
        points, wanted = lists.single(asked, self._centre), min(k + (itself is not None) + 5, self.n)
        parts = side_by_side(
            lambda rows: self._brute_force(points[rows], wanted), gen_batches(len(asked), 50), lists.one_thread
        )
        return lists.measured(asked, self.X, np.concatenate(list(parts)), k, itself)[1][:, -1]

    def _brute_force(self, points: np.ndarray, k: int) -> np.ndarray:
        return faiss.knn(points, self._points, k)[1]

"""Lists of rows that lie near each other, and what finds them.

k-means in two levels cuts a sample into lists of about 200 rows (`train`), and a query visits the lists whose centres
are nearest to it (`Lists.visit`), without a look at all centres.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import faiss
import numpy as np

from contone.runtime.machine import for_each, pieces_of, side_by_side
from contone.typing import Array

LIST_ROWS = 200
"""Rows per list, about: shorter ones are scanned faster, but there are more of them to find and to visit."""
POINTS_PER_LIST = 40
"""Rows behind each centre in the k-means: more change nothing that can be measured."""
ROUNDS = 10
"""Iterations of k-means; as above."""
ONE_BY_ONE = 11
"""faiss's number for: each query by itself, with a reservoir of candidates. A quarter faster here than its default."""
LISTS_COMPARED = 16
"""Of the lists nearest to its own, a row compares this many for each that it visits. Half as many lose neighbours."""
GROUPS_COMPARED = 4
"""To find its own list, a row compares as many as there are in this many groups."""
BLOCK_ROWS = 1 << 13
SEED = 0

Result = TypeVar("Result")


def n_lists(n: int) -> int:
    """As many as make lists of about LIST_ROWS rows."""
    return max(n // LIST_ROWS, 1)


def one_thread() -> None:
    """In a thread of its own, faiss is to start no others."""
    faiss.omp_set_num_threads(1)


def alone(work: Callable[..., Result], *arguments: Any) -> Result:
    """work(*arguments) for many small steps, between which threads would only wait for each other."""
    return next(side_by_side(lambda _: work(*arguments), [None], one_thread))


def single(A: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """A - centre in float32, without a second float64 copy of all rows."""
    out = np.empty(A.shape, dtype=np.float32)

    def work(rows: slice) -> None:
        out[rows] = A[rows] - centre

    for_each(work, pieces_of(len(A)))
    return out


def best(asked: np.ndarray, points: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """The k nearest (b, k) of the candidates (b, c) by float32 distances; -1 where there are fewer."""
    squared = np.empty(candidates.shape, dtype=np.float32)
    pointers = (faiss.swig_ptr(A) for A in (squared, asked, points, candidates))
    faiss.fvec_L2sqr_by_idx(*pointers, asked.shape[1], *squared.shape)  # type: ignore[attr-defined]
    if k >= candidates.shape[1]:
        return candidates
    return np.take_along_axis(candidates, np.argpartition(squared, k - 1, axis=1)[:, :k], axis=1)


def measured(
    asked: np.ndarray, X: np.ndarray, found: np.ndarray, k: int, itself: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the candidates (b, c) by float64 distances; a row is never its own neighbour, nor is -1 one."""
    squared = np.empty(found.shape)
    for j in range(found.shape[1]):  # one neighbour at a time: nothing of size b x c x d
        difference = X[found[:, j]] - asked
        squared[:, j] = np.einsum("ij,ij->i", difference, difference)
    squared[found < 0] = np.inf
    if itself is not None:
        squared[found == itself[:, None]] = np.inf
    order = np.lexsort((found, squared), axis=1)[:, :k]
    return np.take_along_axis(found, order, axis=1), np.sqrt(np.take_along_axis(squared, order, axis=1))


class Lists(NamedTuple):
    """Centres of lists, what finds them quickly, and an empty index of them."""

    groups: np.ndarray
    """(g, d) float32: centres of the first level."""
    centres: np.ndarray
    """(lists, d) float32, in an order in which near ones are near."""
    index: Any
    """faiss's inverted lists, which know what a code of 4 bits stands for in each of the d features."""

    @property
    def n_compared(self) -> int:
        """How many lists are compared to find a row's own."""
        return min(GROUPS_COMPARED * len(self.centres) // len(self.groups), len(self.centres))

    def visit(self, points: np.ndarray, member: np.ndarray, probes: int) -> tuple[np.ndarray, np.ndarray]:
        """The lists (b, probes) nearest to each query, and how far their centres are (squared).

        Picking a few of all centres for every query would take half the time of the whole search. So queries of one
        list (`member`, (b,)), taken together, choose among the lists near that one.
        """
        lists, gaps = np.empty((len(points), probes), dtype=np.int64), np.empty((len(points), probes), np.float32)
        together = np.argsort(member, kind="stable")
        own, starts = np.unique(member[together], return_index=True)
        near = faiss.knn(self.centres[own], self.centres, min(LISTS_COMPARED * probes, len(self.centres)))[1]
        for rows, some in zip(np.split(together, starts[1:]), near, strict=True):
            squared = faiss.pairwise_distances(points[rows], self.centres[some])
            chosen = np.argpartition(squared, probes - 1, axis=1)[:, :probes]
            gaps[rows], lists[rows] = np.take_along_axis(squared, chosen, axis=1), some[chosen]
        return lists, gaps


def train(points: np.ndarray, lists: int) -> Lists:
    """Lists from a sample (m, d) of float32 points."""
    (groups, centres), d = _two_levels(points, lists), points.shape[1]
    quantizer: Any = faiss.IndexFlatL2(d)
    quantizer.add(centres)
    index: Any = faiss.IndexIVFPQFastScan(quantizer, d, len(centres), d, 4)
    index.own_fields = True
    quantizer.this.disown()
    index.implem = ONE_BY_ONE
    alone(index.train, points)  # of the codes: the centres are there
    return Lists(groups, centres, index)


def _k_means(A: np.ndarray, k: int) -> Array:
    """Centres (k, d) of the rows of A; the seed is a constant, so that two runs are the same.

    They stand along the direction in which they vary most, so that near ones are near each other.
    """
    means: Any = faiss.Kmeans(A.shape[1], k, niter=ROUNDS, seed=SEED, min_points_per_centroid=1)
    means.train(A)
    centred = means.centroids - means.centroids.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    return means.centroids[np.argsort(along, kind="stable")]


def _two_levels(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of about sqrt(k) groups of the rows of A, and k centres (k, d), shared among the groups by their size.

    Plain k-means takes time in proportion to k^2; its lists are no better.
    """
    groups = alone(_k_means, A, max(round(np.sqrt(k)), 1))
    member = faiss.knn(A, groups, 1)[1][:, 0]
    ends = np.cumsum(np.bincount(member, minlength=len(groups)))
    share = np.diff(np.round(ends * (k / len(A))).astype(int), prepend=0)
    parts = ((A[member == g], int(share[g])) for g in np.flatnonzero(share))
    return groups, np.concatenate(list(side_by_side(lambda part: _k_means(*part), parts, one_thread)))

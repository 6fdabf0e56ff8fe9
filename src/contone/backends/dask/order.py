"""Rows of a lazy array in the order of their lists, and back: every block sends each group of lists what belongs there.

For B blocks and G groups that is B G parts; the numbers travel between workers and never come here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contone.backends.dask import tasks
from contone.backends.dask.tasks import Handle
from contone.typing import Array


class ListOrder:
    """The rows of a lazy array group by group, in a group list by list, in a list as they were.

    Parameters
    ----------
    blocks : (B,)
        Rows of each block as they were.
    members : B handles
        The list (b,) of every row of a block.
    ends : (G,)
        The list after the last one of every group.
    counts : (B, G)
        Number of rows of each block in each group.
    """

    def __init__(self, blocks: Sequence[int], members: list[Handle], ends: np.ndarray, counts: np.ndarray) -> None:
        self.blocks, self.members, self.ends, self.counts = tuple(blocks), members, ends, counts
        sent = tasks.run(_sent, [(member, member, ends) for member in members])
        self.places = tasks.run(_sorted_places, [(parts,) for parts in tasks.items(sent, len(ends))])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each group."""
        return tuple(int(size) for size in self.counts.sum(axis=0))

    def take(self, A: Array) -> Array:
        """A (n, ...), in the blocks of before, in this order."""
        sent = tasks.run(_sent, zip(tasks.handles(A), self.members, [self.ends] * len(self.blocks), strict=True))
        parts = tasks.items(sent, len(self.ends))
        found = tasks.run(_received, zip(parts, self.places, strict=True))
        return tasks.as_array(found, self.sizes, A.shape[1] if A.ndim > 1 else None, A.dtype)

    def put_back(self, A: Array) -> Array:
        """A (n, ...), in this order, in the blocks of before."""
        sent = tasks.run(_returned, zip(tasks.handles(A), self.places, self.counts.T, strict=True))
        parts = tasks.items(sent, len(self.blocks))
        ends = [self.ends] * len(self.blocks)
        found = tasks.run(_received_back, zip(parts, self.members, ends, strict=True))
        return tasks.as_array(found, self.blocks, A.shape[1] if A.ndim > 1 else None, A.dtype)


def group_of(member: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The group of each list."""
    return np.searchsorted(ends, member, side="right")


def by_group(member: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a block (b,) group by group, in a group as they were, and where each group begins but the first."""
    group = group_of(member, ends)
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(1, len(ends)))


def _sent(A: np.ndarray, member: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, ...]:
    order, starts = by_group(member, ends)
    return tuple(np.split(A[order], starts))


def _sorted_places(members: list[np.ndarray]) -> Array:
    """The places, among all that a group receives, list by list."""
    return np.argsort(np.concatenate(members), kind="stable")


def _received(parts: list[np.ndarray], places: np.ndarray) -> Array:
    return np.concatenate(parts)[places]


def _returned(A: np.ndarray, places: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    as_received = np.empty_like(A)
    as_received[places] = A
    return tuple(np.split(as_received, np.cumsum(counts)[:-1]))


def _received_back(parts: list[np.ndarray], member: np.ndarray, ends: np.ndarray) -> np.ndarray:
    received = np.concatenate(parts)
    out = np.empty_like(received)
    out[by_group(member, ends)[0]] = received
    return out

"""Nearest neighbours of very many rows: searched by lists, where the lists lie.

Comparing all blocks with all takes n^2 steps. Here k-means cuts a sample into lists, on one worker
(`contone.backends.numpy.faiss_lists`), and neighbouring lists form groups: two per thread of the cluster, so that few
rows need another group, but as many as X has blocks at most. Then

1. a block finds the list of every row, the exact neighbours of 600 sampled rows among its own, and sends its rows to
   the groups of their lists: X is read once for all of it;
2. a group finds the lists each row is to visit, and sends the row to the other groups that hold any of them;
3. a group searches its lists for its own rows and for these guests, who take home what they find;
4. a group keeps the k nearest of each of its rows.

How many lists a row visits is read from the sample: enough for 98 % of the true neighbours of 300 rows. The recall that
is reported is that of the other 300, after the search; below 95 % the search is repeated with twice as many visits, and
with more candidates where visits do not help.

The answer comes in the order of the lists, in which neighbours lie near each other: a graph of it needs few rows of
other blocks. No step compares all rows with all lists, and nothing of size n comes to this process.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import faiss
import numpy as np
from sklearn.neighbors import NearestNeighbors

from contone.backends.dask import tasks
from contone.backends.dask.order import ListOrder, by_group, group_of
from contone.backends.dask.rows import block_starts
from contone.backends.dask.tasks import Handle
from contone.backends.numpy.faiss_lists import (
    POINTS_PER_LIST,
    SEED,
    ListedRows,
    Lists,
    measured,
    n_lists,
    single,
    train,
)
from contone.backends.numpy.neighbours import LOW_DIMENSION
from contone.typing import Array

MAX_LISTS = 1 << 16
"""65,536 lists serve 13 million rows with 200 each; beyond, lists get longer, as the centres must fit every worker."""
SAMPLE_QUERIES = 300
"""Rows to choose the number of visits by, and as many others to check by."""
TARGET_RECALL = 0.98
LEAST_RECALL = 0.95
"""Below this the search is repeated with more visits."""
CANDIDATES, MOST_CANDIDATES = 4, 32
"""Rows measured exactly for each neighbour that is wanted of a group; more where more visits do not help."""
GROUPS_PER_THREAD = 2
GROUP_BYTES = 1 << 28
"""Groups hold features of this size at most, if X has enough blocks: a worker has several in memory."""


class LocalNeighbours(NamedTuple):
    """The k nearest other rows of every row, in the order of the lists."""

    indices: Array
    """(n, k) places in that order."""
    distances: Array
    order: ListOrder
    lists: int
    probes: int
    recall: float


class Plan(NamedTuple):
    """What every block and group needs to know; it stays with the workers."""

    lists: Lists
    ends: np.ndarray
    """(G,) the list after the last one of each group."""
    unit: float
    """Features are divided by it before anything else: a power of two."""
    centre: np.ndarray
    queries: np.ndarray
    """(s, d) the sampled rows, in that unit."""
    numbers: np.ndarray
    """(s,) their row numbers, ascending."""


class Sampled(NamedTuple):
    """What is known of the sampled rows before the search."""

    radius: np.ndarray
    """(s,) distance to the k-th neighbour."""
    ranks: np.ndarray
    """(s, k) which of the lists nearest to the row each of its neighbours is in, from 0."""


class Home(NamedTuple):
    """A group: its rows, list by list."""

    X: np.ndarray
    """(c, d) in the unit of the plan."""
    member: np.ndarray
    """(c,) their lists."""
    sample: np.ndarray
    """(c,) which of the sampled rows they are; -1 for the others."""


class Guests(NamedTuple):
    """Rows of a group that visit another."""

    X: np.ndarray
    """(v, d)"""
    visits: np.ndarray
    """(v, p) lists of that group, numbered from 0; -1 for none."""
    place: np.ndarray
    """(v,) where they are at home."""


class Answers(NamedTuple):
    """What guests take home: one entry for every row that they found."""

    place: np.ndarray
    id: np.ndarray
    distance: np.ndarray


class Checked(NamedTuple):
    """What a group tells about its search."""

    sample: np.ndarray
    """(s,) which of the sampled rows are here."""
    distances: np.ndarray
    """(s, k) what they found."""
    complete: bool
    """Whether every row found k others: lists may be short."""


def nearest_neighbours(
    X: Array, k: int, *, lists: int | None = None, probes: int | None = None, original: bool = False
) -> LocalNeighbours:
    """The k nearest other rows of every row of X (n, d), k < n.

    `lists` and `probes` stand in for what the data says; with `original`, indices are row numbers of X.
    """
    n, starts, sizes = X.shape[0], block_starts(X)[:-1].tolist(), X.chunks[0]
    lists = max(min(lists or n_lists(n), MAX_LISTS), 1)
    shares = [min(-(-lists * POINTS_PER_LIST * rows // n), rows) for rows in sizes]
    samples = tasks.run_on_rows(_sample, [X], zip(shares, starts, strict=True))
    (plan,) = tasks.run(_plan, [(samples, lists, _n_groups(X))])
    del samples
    assigned = tasks.run_on_rows(_assign, [X], [(plan, k, start) for start in starts])
    members, counts, exact = tasks.items(assigned, 3)
    (summary,) = tasks.fetch(tasks.run(_judge, [(plan, exact, k)]))
    sampled, ends = summary
    lists = int(ends[-1])
    order = ListOrder(sizes, members, ends, np.array(tasks.fetch(counts)))
    homes = tasks.run(_receive, zip(tasks.items(assigned, len(ends), 3), order.places, strict=True))
    del assigned, exact
    ids = _row_numbers(X, order) if original else _places(order)
    visits, candidates, before = min(probes or enough_lists(sampled.ranks[::2]), lists), CANDIDATES, 0.0
    while True:
        indices, distances, checked = _search(homes, ids, plan, k, visits, candidates)
        told = tasks.fetch(checked)
        recall, complete = _recall(told, sampled), all(group.complete for group in told)
        exhausted = visits == lists and candidates >= MOST_CANDIDATES
        if exhausted or (complete and (probes or recall >= LEAST_RECALL)):
            break
        if visits == lists or recall - before < 0.01:
            candidates = min(2 * candidates, MOST_CANDIDATES)
        visits, before = min(2 * visits, lists), recall
    width = np.int64 if original or n >= 2**31 else np.int32
    return LocalNeighbours(
        tasks.as_array(indices, order.sizes, k, width), tasks.as_array(distances, order.sizes, k), order, lists, visits,
        recall,
    )  # fmt: skip


def enough_lists(ranks: np.ndarray) -> int:
    """How many lists to visit, from the ranks (s, k) of the lists that true neighbours are in."""
    return int(np.sort(ranks.ravel())[int(np.ceil(TARGET_RECALL * ranks.size)) - 1]) + 1


# --------------------------------------------------------------------------------------------------- steps of a search


def _n_groups(X: Array) -> int:
    """How many groups to search in: see `GROUPS_PER_THREAD`; without a cluster as many as there are blocks."""
    threads, blocks = tasks.worker_threads(), len(X.chunks[0])
    return blocks if threads is None else min(max(GROUPS_PER_THREAD * threads, X.nbytes // GROUP_BYTES + 1), blocks)


def _places(order: ListOrder) -> list[Handle]:
    """The numbers of the rows of each group, in the order of the lists."""
    starts = np.concatenate([[0], np.cumsum(order.sizes)])
    width = np.int32 if starts[-1] < 2**31 else np.int64
    return tasks.run(np.arange, [(int(a), int(b), 1, width) for a, b in pairwise(starts)])


def _row_numbers(X: Array, order: ListOrder) -> list[Handle]:
    """The same as numbers of rows of X."""
    starts, sizes = block_starts(X)[:-1], X.chunks[0]
    numbers = tasks.run(np.arange, [(int(a), int(a) + m) for a, m in zip(starts, sizes, strict=True)])
    return tasks.handles(order.take(tasks.as_array(numbers, sizes, None, np.int64)))


def _search(
    homes: list[Handle], ids: list[Handle], plan: Handle, k: int, probes: int, candidates: int
) -> tuple[list[Handle], list[Handle], list[Handle]]:
    """Indices, distances, and distances of the sampled rows, of every group."""
    groups = range(len(homes))
    visiting = tasks.run(_visit, [(plan, homes[g], g, probes) for g in groups])
    (own, *invited) = tasks.items(visiting, 1 + len(homes))
    searched = tasks.run(
        _search_lists, [(plan, homes[g], ids[g], g, own[g], invited[g], k, candidates) for g in groups]
    )
    del visiting, own, invited
    (best, *returned) = tasks.items(searched, 1 + len(homes))
    merged = tasks.run(_merge, [(plan, homes[g], best[g], returned[g]) for g in groups])
    indices, distances, sampled = tasks.items(merged, 3)
    return indices, distances, sampled


def _recall(found: list[Checked], sampled: Sampled) -> float:
    """The share of neighbours found that are as near as the true k-th one, over the sampled rows that the number of
    visits does not come from."""
    number, distances = (np.concatenate(parts) for parts in zip(*(group[:2] for group in found), strict=True))
    check = number % 2 == 1
    return float(np.mean(distances[check] <= sampled.radius[number[check]][:, None] * (1.0 + 1e-9)))


# ---------------------------------------------------------------------------------------------- tasks on blocks of rows


def _sample(X: np.ndarray, size: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a block that begins at row `start`, and their numbers."""
    rows = np.sort(np.random.default_rng([SEED, start]).choice(len(X), size=size, replace=False))
    return X[rows], rows + start


def _plan(samples: list[tuple[np.ndarray, np.ndarray]], lists: int, n_groups: int) -> Plan:
    X, numbers = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    largest = float(np.abs(X).max(initial=0.0))
    unit = float(2.0 ** np.floor(np.log2(largest))) if largest > 0 else 1.0
    X = X / unit
    centre = X.mean(axis=0)
    points = single(X, centre)
    trained = train(points, min(lists, len(X)))
    # Groups of about as many rows each.
    rows = np.bincount(trained.assign(points), minlength=len(trained.centres))
    n_groups = min(n_groups, len(rows))
    so_far = np.cumsum(rows)
    ends = np.searchsorted(so_far, len(X) * np.arange(1, n_groups) / n_groups) + 1
    ends = np.unique(np.append(ends[so_far[ends - 1] < len(X)], len(rows)))  # none without rows
    asked = np.sort(np.random.default_rng(SEED).choice(len(X), size=min(2 * SAMPLE_QUERIES, len(X)), replace=False))
    return Plan(trained, ends, unit, centre, X[asked], numbers[asked])


def _assign(X: np.ndarray, plan: Plan, k: int, start: int) -> tuple[Array, ...]:
    """The list (b,) of every row, how many rows are in each group, the nearest rows of the sampled ones here (their
    distances and lists), and what goes to each group."""
    X = X / plan.unit
    points = single(X, plan.centre)
    member = plan.lists.assign(points)
    counts = np.bincount(group_of(member, plan.ends), minlength=len(plan.ends))
    # A few more than k: float32 may order near ties wrongly, float64 decides among them.
    found = faiss.knn(single(plan.queries, plan.centre), points, min(k + 6, len(X)))[1]
    places, distances = measured(plan.queries, X, found, k, plan.numbers - start)
    return member, counts, (distances, member[places]), *_sent(X, plan, member, start)


def _judge(plan: Plan, exact: list[tuple[np.ndarray, np.ndarray]], k: int) -> tuple[Sampled, np.ndarray]:
    """What is known of the sampled rows from all blocks together, and the ends of the groups."""
    distances, lists = (np.concatenate(parts, axis=1) for parts in zip(*exact, strict=True))
    first = np.argsort(distances, axis=1, kind="stable")[:, :k]
    gaps = faiss.pairwise_distances(single(plan.queries, plan.centre), plan.lists.centres)
    rank = np.argsort(np.argsort(gaps, axis=1), axis=1)
    ranks = np.take_along_axis(rank, np.take_along_axis(lists, first, axis=1), axis=1)
    return Sampled(np.take_along_axis(distances, first, axis=1)[:, -1] * plan.unit, ranks), plan.ends


def _sent(X: np.ndarray, plan: Plan, member: np.ndarray, start: int) -> tuple[Home, ...]:
    """The rows of a block, group by group."""
    sample = np.full(len(X), -1, dtype=np.int32)
    here = (plan.numbers >= start) & (plan.numbers < start + len(X))
    sample[plan.numbers[here] - start] = np.flatnonzero(here)
    order, starts = by_group(member, plan.ends)
    parts = (np.split(A[order], starts) for A in (X, member, sample))
    return tuple(map(Home, *parts))


# --------------------------------------------------------------------------------------------------- tasks on a group


def _receive(parts: list[Home], places: np.ndarray) -> Home:
    return Home(*(np.concatenate(some)[places] for some in zip(*parts, strict=True)))


class _TreeRows:
    """Rows of few features: a k-d tree compares them all faster than codes do."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X

    def nearest(
        self,
        asked: np.ndarray,
        points: np.ndarray,
        visits: np.ndarray,
        k: int,
        candidates: int,
        itself: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `ListedRows.nearest`, of all lists of the group."""
        wanted = min(k + (itself is not None), len(self.X))
        if wanted == 0 or len(asked) == 0:
            return np.full((len(asked), k), -1), np.full((len(asked), k), np.inf)
        found = NearestNeighbors(n_neighbors=wanted).fit(self.X).kneighbors(asked, return_distance=False)
        if wanted < k:
            found = np.pad(found, ((0, 0), (0, k - wanted)), constant_values=-1)
        places, distances = measured(asked, self.X, found, k, itself)
        return np.where(np.isinf(distances), -1, places), distances


def _searchable(plan: Plan, home: Home, g: int, points: np.ndarray) -> ListedRows | _TreeRows:
    if home.X.shape[1] <= LOW_DIMENSION:
        return _TreeRows(home.X)
    first, end = _lists_of(plan, g)
    return ListedRows(plan.lists, first, end, home.X, points, home.member)


def _lists_of(plan: Plan, g: int) -> tuple[int, int]:
    """The first list of a group and the one after its last."""
    return (int(plan.ends[g - 1]) if g else 0), int(plan.ends[g])


def _visit(plan: Plan, home: Home, g: int, probes: int) -> tuple[Array, ...]:
    """The lists (c, p) of its own group, numbered from 0, that each row visits, -1 for those of others; and the guests
    that group g sends to every group."""
    visits, _ = plan.lists.visit(single(home.X, plan.centre), home.member, probes)
    group = group_of(np.arange(plan.ends[-1]), plan.ends).astype(np.int32)[visits]
    first, _ = _lists_of(plan, g)
    row, column = np.nonzero(group != g)
    group = group[row, column]
    guests = tuple(
        _guests(home, row[group == h], visits[row, column][group == h] - _lists_of(plan, h)[0])
        for h in range(len(plan.ends))
    )
    visits -= first
    visits[row, column] = -1
    return visits.astype(np.int32), *guests


def _guests(home: Home, row: np.ndarray, lists: np.ndarray) -> Guests:
    """The rows of a group that visit another, from pairs of a row, ascending, and a list."""
    place, starts, counts = np.unique(row, return_index=True, return_counts=True)
    chosen = np.full((len(place), counts.max(initial=1)), -1, dtype=np.int32)
    chosen[np.repeat(np.arange(len(place)), counts), np.arange(len(row)) - np.repeat(starts, counts)] = lists
    return Guests(home.X[place], chosen, place)


def _search_lists(
    plan: Plan, home: Home, ids: np.ndarray, g: int, own: np.ndarray, guests: list[Guests], k: int, candidates: int
) -> tuple[Array, ...]:
    """What the rows of a group find at home, indices and distances (c, k), and what guests from every group find."""
    points = single(home.X, plan.centre)
    rows = _searchable(plan, home, g, points)
    places, distances = rows.nearest(home.X, points, own, k, candidates, np.arange(len(home.X)))
    answers = (_answer(plan, rows, ids, some, k, candidates) for some in guests)
    return (np.where(places < 0, -1, ids[places]), distances), *answers


def _answer(
    plan: Plan, rows: ListedRows | _TreeRows, ids: np.ndarray, guests: Guests, k: int, candidates: int
) -> Answers:
    points = single(guests.X, plan.centre)
    places, distances = rows.nearest(guests.X, points, guests.visits, k, candidates, None)
    guest, column = np.nonzero(places >= 0)
    return Answers(guests.place[guest], ids[places[guest, column]], distances[guest, column])


def _merge(
    plan: Plan, home: Home, own: tuple[np.ndarray, np.ndarray], answers: list[Answers]
) -> tuple[np.ndarray, np.ndarray, Checked]:
    """The k nearest of what was found at home and elsewhere, and the distances of the sampled rows."""
    indices, distances = (np.array(A) for A in own)
    k = indices.shape[1]
    place, id, distance = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    nearer = distance < distances[place, -1]
    touched, row = np.unique(place[nearer], return_inverse=True)
    here = (np.repeat(np.arange(len(touched)), k), indices[touched].ravel(), distances[touched].ravel())
    row, id, distance = map(np.concatenate, zip(here, (row, id[nearer], distance[nearer]), strict=True))
    order = np.lexsort((distance, row))  # of equal distances, home first
    starts = np.searchsorted(row[order], np.arange(len(touched)))
    nearest = order[(starts[:, None] + np.arange(k)).ravel()]
    indices[touched], distances[touched] = id[nearest].reshape(-1, k), distance[nearest].reshape(-1, k)
    distances *= plan.unit
    sampled = np.flatnonzero(home.sample >= 0)
    complete = bool(np.isfinite(distances).all())
    return indices, distances, Checked(home.sample[sampled], distances[sampled], complete)

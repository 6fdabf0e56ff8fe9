"""Exact nearest neighbours of torch tensors, on their device, in two stages.

A plain blocked search spends nearly all of its time selecting the k smallest of n distances a row. Here the n columns
are cut into groups of g and only the *minimum* of each group is kept. The k smallest distances of a row lie in at most
k groups, and each of these groups has a minimum no larger than the k-th smallest distance; so the k groups with the
smallest minima hold all k neighbours. Selection then runs over n/g values, and the few candidates left are measured
again, exactly.

Stage 1 works in float32 on |y|^2 - 2 x.y and takes a few spare groups. Stage 2 certifies each row: if every group left
out has a minimum above the k-th distance found, by more than float32 can be wrong, the answer is exact. Rows without
a certificate (ties, far outliers) are searched again in full precision. On CUDA with Triton, stage 1 is one fused
kernel that never writes the distances themselves.

On CUDA with Triton, and with rows enough, `screen` comes first: the same in half precision. What is left here are the
rows that it cannot certify.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from contone.backends.torch import screen
from contone.backends.torch.kernels import can_launch
from contone.backends.torch.memory import available_bytes

try:  # Triton comes with torch's CUDA builds only
    import triton
    import triton.language as tl
except ImportError:  # pragma: no cover - depends on the build of torch
    triton = None

GROUP = 32
SPARE_GROUPS = 6
STAGE_BYTES = 2**31
"""Working memory of a block of queries in either stage on a GPU; an eighth of it on a CPU."""


class TorchNeighbours(NamedTuple):
    """The k nearest other rows of every row, nearest first, and how many rows needed a second or a third search."""

    indices: torch.Tensor
    distances: torch.Tensor
    n_uncertified: int
    """Rows that were compared with all rows in full precision."""
    n_rescreened: int = 0
    """Rows for which the bounds of `screen` did not suffice."""


def nearest_neighbours(X: torch.Tensor, k: int) -> TorchNeighbours:
    """The k nearest other rows of every row of X (n, d), exact in X's precision."""
    n = X.shape[0]
    k = min(k, n - 1)
    X = X - X.mean(dim=0)  # distances do not change; small norms keep float32 honest
    with torch.cuda.device_of(X):
        return _screen_and_search(X, k)


def _screen_and_search(X: torch.Tensor, k: int) -> TorchNeighbours:
    if not screen.can_screen(X, k):
        return _search(X, torch.arange(X.shape[0], device=X.device), k)
    indices, squared, certified = screen.nearest_neighbours(X, k, _stage_bytes(X))
    distances, left = torch.sqrt(squared), torch.nonzero(~certified).ravel()
    if left.numel() == 0:
        return TorchNeighbours(indices, distances, 0)
    again = _search(X, left, k)
    indices[left], distances[left] = again.indices, again.distances
    return TorchNeighbours(indices, distances, again.n_uncertified, left.numel())


def _search(X: torch.Tensor, chosen: torch.Tensor, k: int) -> TorchNeighbours:
    """The k nearest other rows of the chosen rows of centred X (n, d), in two stages."""
    n, n_chosen = X.shape[0], chosen.numel()
    Y = _Database(X)
    stage = _stage_bytes(X)
    m = min(k + 1 + SPARE_GROUPS, Y.n_groups)  # one more for the row itself
    # Two kinds of blocks bound the memory: (rows, n/g) minima, or (rows, g) tiles without the fused kernel; then
    # (rows, m g, d) candidates.
    width = Y.n_groups if Y.fused else Y.n_padded
    outer = max(1, stage // (4 * width))
    inner = max(1, stage // (X.element_size() * m * GROUP * (X.shape[1] + 2)))
    indices = torch.empty((n_chosen, k), dtype=torch.int64, device=X.device)
    distances = torch.empty((n_chosen, k), dtype=X.dtype, device=X.device)
    certified = torch.empty(n_chosen, dtype=torch.bool, device=X.device)
    for start in range(0, n_chosen, outer):
        stop = min(start + outer, n_chosen)
        minima = Y.group_minima(chosen[start:stop])
        best, groups = torch.topk(minima, m, dim=1, largest=False, sorted=True)
        for low in range(start, stop, inner):
            rows = slice(low, min(low + inner, stop))
            part = slice(rows.start - start, rows.stop - start)
            indices[rows], squared = _nearest_of_groups(X, chosen[rows], groups[part], k)
            distances[rows] = torch.sqrt(squared)
            certified[rows] = Y.certificate(chosen[rows], best[part, -1], squared[:, -1], complete=m == Y.n_groups)
    doubtful = torch.nonzero(~certified).ravel()
    for some in torch.split(doubtful, max(1, stage // (X.element_size() * 4 * n))):
        indices[some], distances[some] = _brute_force(X, chosen[some], k)
    return TorchNeighbours(indices, distances, int(doubtful.numel()))


def query_neighbours(X: torch.Tensor, queries: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d), and their distances, block by block."""
    block = max(1, _stage_bytes(X) // (4 * X.element_size() * X.shape[0]))
    parts = [_smallest(_distances(some, X), k) for some in torch.split(queries, block)]
    return torch.cat([indices for indices, _ in parts]), torch.cat([distances for _, distances in parts])


def _stage_bytes(X: torch.Tensor) -> int:
    """Working memory of a block where X lies; a small or busy GPU gets smaller blocks."""
    return int(min(STAGE_BYTES, available_bytes(X) / 8)) if X.is_cuda else STAGE_BYTES // 8


class _Database:
    """The rows as stage 1 sees them: float32, padded to whole groups with points at infinity."""

    def __init__(self, X: torch.Tensor) -> None:
        n, d = X.shape
        self.fused = can_launch(X)
        self.n = n
        self.n_groups = -(-n // GROUP)
        self.n_padded = self.n_groups * GROUP
        # The kernel's matrix unit wants at least 16 columns, in a power of two.
        d_padded = max(16, 1 << (d - 1).bit_length()) if self.fused else d
        self.points = torch.zeros((self.n_padded, d_padded), dtype=torch.float32, device=X.device)
        self.points[:n, :d] = X.to(torch.float32)
        self.norms = torch.full((self.n_padded,), torch.inf, dtype=torch.float32, device=X.device)
        self.norms[:n] = (self.points[:n] ** 2).sum(dim=1)
        self.largest = self.norms[:n].max()

    def group_minima(self, rows: torch.Tensor) -> torch.Tensor:
        """min over each group of |y|^2 - 2 x.y, (m, n_groups), for rows (m,)."""
        queries = self.points[rows]
        if self.fused:
            return _fused_group_minima(queries, self.points, self.norms, self.n_groups)
        scores = torch.addmm(self.norms, queries, self.points.T, alpha=-2.0)
        return scores.view(rows.numel(), self.n_groups, GROUP).amin(dim=2)

    def certificate(
        self, rows: torch.Tensor, worst: torch.Tensor, squared: torch.Tensor, *, complete: bool
    ) -> torch.Tensor:
        """Whether no row outside the chosen groups can be nearer than the k-th one found."""
        if complete:
            return torch.ones_like(worst, dtype=torch.bool)
        own = self.norms[rows]
        # A score is a sum of d + 1 products, each at most (|x| + |y|)^2 in size; 64 units cover d up to thousands
        # because rounding errors of a dot product grow with its value, not with its length, in blocked summation.
        error = 64 * torch.finfo(torch.float32).eps * (own.sqrt() + self.largest.sqrt()) ** 2
        return (worst + own > squared + error) | (squared == 0)  # nothing is nearer than 0


def _nearest_of_groups(
    X: torch.Tensor, rows: torch.Tensor, groups: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k nearest rows among the candidate groups (b, m), and their squared distances, measured by differences."""
    n = X.shape[0]
    candidates = (groups[:, :, None] * GROUP + torch.arange(GROUP, device=X.device)).reshape(groups.shape[0], -1)
    outside = (candidates >= n) | (candidates == rows[:, None])
    candidates = candidates.clamp(max=n - 1)
    squared = ((X[candidates] - X[rows][:, None, :]) ** 2).sum(dim=2).masked_fill(outside, torch.inf)
    nearest, position = torch.topk(squared, k, dim=1, largest=False, sorted=True)
    return candidates.gather(1, position), nearest


def _brute_force(X: torch.Tensor, rows: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k nearest other rows of the given ones by the definition."""
    distances = _distances(X[rows], X)
    distances[torch.arange(rows.numel(), device=X.device), rows] = torch.inf
    return _smallest(distances, k)


def _distances(queries: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    return torch.cdist(queries, X, compute_mode="donot_use_mm_for_euclid_dist")


def _smallest(distances: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    nearest, indices = torch.topk(distances, k, dim=1, largest=False, sorted=True)
    return indices, nearest


if triton is not None:  # pragma: no cover - compiled, not traced

    @triton.jit
    def _group_minima_kernel(  # type: ignore[no-untyped-def]
        given, points, norms, out, n_queries, n_groups,
        D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP_: tl.constexpr, SPAN: tl.constexpr,
    ):  # fmt: skip
        """A program takes ROWS queries past SPAN tiles of COLUMNS points and writes one minimum a group."""
        queries = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        inside = queries < n_queries
        column = tl.arange(0, D)
        x = tl.load(given + queries[:, None].to(tl.int64) * D + column[None, :], mask=inside[:, None], other=0.0)
        per_tile: tl.constexpr = COLUMNS // GROUP_
        for tile in range(SPAN):
            first_group = (tl.program_id(1) * SPAN + tile) * per_tile
            index = first_group * GROUP_ + tl.arange(0, COLUMNS)
            there = index < n_groups * GROUP_
            y = tl.load(points + index[None, :].to(tl.int64) * D + column[:, None], mask=there[None, :], other=0.0)
            norm = tl.load(norms + index, mask=there, other=float("inf"))
            score = norm[None, :] - 2.0 * tl.dot(x, y, input_precision="tf32x3")
            minima = tl.min(tl.reshape(score, (ROWS, per_tile, GROUP_)), axis=2)
            group = first_group + tl.arange(0, per_tile)
            target = out + queries[:, None].to(tl.int64) * n_groups + group[None, :]
            tl.store(target, minima, mask=inside[:, None] & (group < n_groups)[None, :])


def _fused_group_minima(
    queries: torch.Tensor, points: torch.Tensor, norms: torch.Tensor, n_groups: int
) -> torch.Tensor:
    """Stage 1 as one kernel: distances live in registers only."""
    rows, columns, span = 128, 128, 32
    out = torch.empty((len(queries), n_groups), dtype=torch.float32, device=points.device)
    grid = (triton.cdiv(len(queries), rows), triton.cdiv(n_groups * GROUP, columns * span))
    _group_minima_kernel[grid](
        queries, points, norms, out, len(queries), n_groups,
        D=points.shape[1], ROWS=rows, COLUMNS=columns, GROUP_=GROUP, SPAN=span, num_warps=8,
    )  # fmt: skip
    return out

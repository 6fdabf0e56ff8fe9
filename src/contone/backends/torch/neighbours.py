"""Exact nearest neighbours of torch tensors, on their device, in tiles of the distances between all rows.

On CUDA with Triton, and with rows enough, `screen` comes first, which measures few of the distances. What is left here
are the rows that it cannot certify (ties, far outliers).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from contone.backends.torch import screen
from contone.runtime import machine

TILE_BYTES = 2**31
"""Working memory of a tile on a GPU; an eighth of it on a CPU."""


class TorchNeighbours(NamedTuple):
    """The k nearest other rows of every row, nearest first, and how many rows were compared with all others."""

    indices: Tensor
    distances: Tensor
    n_compared: int


def nearest_neighbours(X: Tensor, k: int) -> TorchNeighbours:
    """The k nearest other rows of every row of X (n, d), exact in X's precision; k is cut to n - 1."""
    n, k = X.shape[0], min(k, X.shape[0] - 1)
    X = X - X.mean(dim=0)  # distances do not change; small norms keep half precision honest
    with torch.cuda.device_of(X):
        if screen.can_screen(X, k):
            indices, squared, certified = screen.nearest_neighbours(X, k, _tile_bytes(X))
            distances, left = torch.sqrt(squared), torch.nonzero(~certified).ravel()
        else:
            indices = torch.empty((n, k), dtype=torch.int64, device=X.device)
            distances, left = X.new_empty((n, k)), torch.arange(n, device=X.device)
        for some in _tiles(left, X):
            tile = _distances(X[some], X)
            tile[torch.arange(len(some), device=X.device), some] = torch.inf
            distances[some], indices[some] = torch.topk(tile, k, dim=1, largest=False)
    return TorchNeighbours(indices, distances, left.numel())


def query_neighbours(X: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k rows of X (n, d) nearest to every row of `queries` (m, d), and their distances."""
    parts = [torch.topk(_distances(some, X), k, dim=1, largest=False) for some in _tiles(queries, X)]
    return torch.cat([part.indices for part in parts]), torch.cat([part.values for part in parts])


def _tiles(queries: Tensor, X: Tensor) -> tuple[Tensor, ...]:
    """The queries in parts whose distances from all rows of X (n, d), and copies of them, fit into a tile."""
    return tuple(torch.split(queries, max(1, _tile_bytes(X) // (4 * X.element_size() * X.shape[0]))))


def _tile_bytes(X: Tensor) -> int:
    """Working memory of a tile where X lies; a small or busy GPU gets smaller ones."""
    return int(min(TILE_BYTES, available_bytes(X) / 8)) if X.is_cuda else TILE_BYTES // 8


def available_bytes(X: Tensor) -> float:
    """Memory that work beside X can take: that of its GPU, if it is on one; the user's own limit comes first."""
    if X.device.type != "cuda" or machine.user_limit() is not None:
        return machine.available_bytes()
    free, _ = torch.cuda.mem_get_info(X.device)
    unused = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
    return float(free + unused)  # what torch holds without using it is there to take


def _distances(queries: Tensor, X: Tensor) -> Tensor:
    return torch.cdist(queries, X, compute_mode="donot_use_mm_for_euclid_dist")

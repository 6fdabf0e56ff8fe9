"""A sparse graph as torch tensors, on any device.

Everything goes through sorted keys row * m + column, so that results do not depend on the order of atomic additions:
two runs on a GPU give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from contone.typing import Array, Function, Operator


@dataclass(frozen=True, eq=False)
class TorchGraph:
    """A (n, n) in compressed rows.

    torch has CSR tensors of its own, still a beta feature: they warn, and on a GPU their product adds in an order that
    changes from run to run. What is needed here is a few lines.
    """

    start: Tensor
    """(n + 1,) where the entries of each row begin."""
    columns: Tensor
    values: Tensor
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    @cached_property
    def host(self) -> sp.csr_array:
        """The same matrix for SciPy, without a copy; only in the memory of the host."""
        return sp.csr_array((self.values.numpy(), self.columns.numpy(), self.start.numpy()), shape=self.shape)

    def matmul(self, F: Tensor) -> Tensor:
        return weighted_bags(self, F) if F.device.type != "cpu" else torch.as_tensor(self.host @ F.numpy())

    def over_rows(self, F: Tensor, function: Function, *arrays: Tensor, **shared: object) -> Array:
        return function(self.matmul(F), *arrays, **shared)

    def diagonal_plus(self, diagonal: Tensor, scale: float) -> Operator:
        column = diagonal[:, None]
        return lambda V: torch.add(column * V, self.matmul(V), alpha=scale)

    def row_sums(self) -> Tensor:
        return self.matmul(self.values.new_ones((self.n, 1)))[:, 0]

    def symmetrize(self, *, by: str) -> TorchGraph:
        """A + A^T, or the larger of a_ij and a_ji; every entry occurs once in A, so at most two meet."""
        n = self.n
        row, column = self.entry_rows(), self.columns.to(torch.int64)
        key, order = torch.sort(torch.cat([row * n + column, column * n + row]))
        values = torch.cat([self.values, self.values])[order]
        del order
        again = torch.zeros_like(key, dtype=torch.bool)
        again[1:] = key[1:] == key[:-1]
        other = torch.where(again, values, 0.0)[1:]
        values[:-1] = values[:-1] + other if by == "sum" else torch.maximum(values[:-1], other)
        return _from_sorted(key[~again], values[~again], n)

    def scale(self, left: Tensor, right: Tensor) -> TorchGraph:
        """diag(left) A diag(right) without the entries that become zero."""
        row, column = self.entry_rows(), self.columns.to(torch.int64)
        values = self.values * right[column] * left[row]
        kept = values != 0.0
        return _from_sorted((row * self.n + column)[kept], values[kept], self.n)

    def submatrix(self, chosen: Tensor) -> TorchGraph:
        m = chosen.numel()
        place = torch.full((self.n,), -1, dtype=torch.int64, device=chosen.device)
        place[chosen] = torch.arange(m, device=chosen.device)
        row, column = place[self.entry_rows()], place[self.columns.to(torch.int64)]
        kept = (row >= 0) & (column >= 0)
        return _from_sorted((row * m + column)[kept], self.values[kept], m)

    def connected_components(self) -> tuple[int, Tensor]:
        """Number and labels of the components, numbered by their first rows.

        Every row points to a row of its component with a smaller number, at first itself. In turn, rows and the rows
        they point to take over the smallest pointer among their neighbours, and pointers are followed to their ends; a
        few rounds suffice on any graph, long chains included.
        """
        row, column = self.entry_rows(), self.columns.to(torch.int64)
        points = torch.arange(self.n, device=self.values.device)
        while True:
            lowest = points.scatter_reduce(0, row, points[column], "amin")
            new = torch.minimum(points, lowest).scatter_reduce(0, points, lowest, "amin")
            while not torch.equal(further := new[new], new):
                new = further
            if torch.equal(new, points):
                break
            points = new
        roots, member = torch.unique(points, return_inverse=True)
        return roots.numel(), member

    def entry_rows(self) -> Tensor:
        """The row number of every entry."""
        start = self.start.to(torch.int64)
        return torch.repeat_interleave(start[1:] - start[:-1], output_size=self.values.numel())


def weighted_bags(S: TorchGraph, F: Tensor) -> Tensor:
    """S F as weighted sums of rows of F, each by the threads of one row of S: the same bits in every run."""
    return embedding_bag(S.columns, F, S.start, mode="sum", per_sample_weights=S.values, include_last_offset=True)


def edge_graph(indices: Tensor, weights: Tensor) -> TorchGraph:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""
    n, k = indices.shape
    return from_rows(torch.arange(0, n * k + 1, k, device=indices.device), indices.reshape(-1), weights.reshape(-1))


def from_rows(start: Tensor, columns: Tensor, values: Tensor) -> TorchGraph:
    """A graph from row starts (n + 1,), columns and values; indices of 32 bits while they suffice."""
    n = start.numel() - 1
    width = torch.int32 if max(values.numel(), n) < 2**31 else torch.int64
    return TorchGraph(start.to(width), columns.to(width), values, n)


def _from_sorted(key: Tensor, values: Tensor, n: int) -> TorchGraph:
    """A graph of n rows from ascending, distinct keys row * n + column."""
    row = torch.div(key, n, rounding_mode="floor")
    start = torch.zeros(n + 1, dtype=torch.int64, device=key.device)
    start[1:] = torch.cumsum(torch.bincount(row, minlength=n), dim=0)
    return from_rows(start, key - row * n, values)

"""Sparse matrices of torch tensors, on any device: what `numerics.sparse` needs and torch does not have.

Everything goes through sorted keys row * m + column, so that results do not depend on the order of atomic additions:
two runs on a GPU give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True, eq=False)
class Csr:
    """A sparse matrix (n, m) in compressed rows.

    torch has CSR tensors of its own, still a beta feature: they warn, and on a GPU their product adds in an order that
    changes from run to run. What is needed here is a few lines.
    """

    start: Tensor
    """(n + 1,) where the entries of each row begin."""
    columns: Tensor
    values: Tensor
    shape: tuple[int, int]

    @cached_property
    def host(self) -> sp.csr_array:
        """The same matrix for SciPy, without a copy; only in the memory of the host."""
        return sp.csr_array((self.values.numpy(), self.columns.numpy(), self.start.numpy()), shape=self.shape)


def csr(start: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Csr:
    """A matrix from row starts (n + 1,), columns and values; indices of 32 bits while they suffice."""
    width = torch.int32 if max(values.numel(), *shape) < 2**31 else torch.int64
    return Csr(start.to(width), columns.to(width), values, shape)


def matmul(S: Csr, F: Tensor) -> Tensor:
    """S F for a dense F (m, q)."""
    return weighted_bags(S, F) if F.device.type != "cpu" else torch.as_tensor(S.host @ F.numpy())


def weighted_bags(S: Csr, F: Tensor) -> Tensor:
    """S F as weighted sums of rows of F, each by the threads of one row of S: the same bits in every run."""
    return embedding_bag(S.columns, F, S.start, mode="sum", per_sample_weights=S.values, include_last_offset=True)


def diagonal_plus(diagonal: Tensor, scale: float, A: Csr) -> Callable[[Tensor], Tensor]:
    """The map V -> (diag(diagonal) + scale A) V."""
    column = diagonal[:, None]
    return lambda V: torch.add(column * V, matmul(A, V), alpha=scale)


def row_sums(A: Csr) -> Tensor:
    """A 1 (n,)."""
    return matmul(A, A.values.new_ones((A.shape[1], 1)))[:, 0]


def edge_matrix(indices: Tensor, weights: Tensor) -> Csr:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""
    n, k = indices.shape
    start = torch.arange(0, n * k + 1, k, device=indices.device)
    return csr(start, indices.reshape(-1), weights.reshape(-1), (n, n))


def symmetrised(A: Csr, *, by: str) -> Csr:
    """A + A^T, or the larger of a_ij and a_ji; every entry occurs once in A, so at most two meet."""
    n = A.shape[0]
    row, column = _rows(A), A.columns.to(torch.int64)
    key, order = torch.sort(torch.cat([row * n + column, column * n + row]))
    values = torch.cat([A.values, A.values])[order]
    del order
    again = torch.zeros_like(key, dtype=torch.bool)
    again[1:] = key[1:] == key[:-1]
    other = torch.where(again, values, 0.0)[1:]
    values[:-1] = values[:-1] + other if by == "sum" else torch.maximum(values[:-1], other)
    return _from_sorted(key[~again], values[~again], (n, n))


def scaled(A: Csr, left: Tensor, right: Tensor) -> Csr:
    """diag(left) A diag(right) without the entries that become zero."""
    row, column = _rows(A), A.columns.to(torch.int64)
    values = A.values * right[column] * left[row]
    kept = values != 0.0
    return _from_sorted((row * A.shape[1] + column)[kept], values[kept], (A.shape[0], A.shape[1]))


def diagonal(A: Csr) -> Tensor:
    """The diagonal (n,)."""
    row = _rows(A)
    own = row == A.columns
    answer = A.values.new_zeros(A.shape[0])
    answer[row[own]] = A.values[own]
    return answer


def submatrix(S: Csr, rows: Tensor, columns: Tensor) -> Csr:
    """The block of ascending rows and columns."""
    row, column = _places(rows, S.shape[0])[_rows(S)], _places(columns, S.shape[1])[S.columns.to(torch.int64)]
    kept = (row >= 0) & (column >= 0)
    shape = (rows.numel(), columns.numel())
    return _from_sorted((row * shape[1] + column)[kept], S.values[kept], shape)


def merged(A: Csr, member: Tensor, m: int) -> Csr:
    """Rows and columns added up by member (n,)."""
    # A stable sort fixes the order of the additions.
    key, order = torch.sort(member[_rows(A)] * m + member[A.columns.to(torch.int64)], stable=True)
    distinct, lengths = torch.unique_consecutive(key, return_counts=True)
    values = torch.segment_reduce(A.values[order], "sum", lengths=lengths)
    return _from_sorted(distinct, values, (m, m))


def connected_components(S: Csr) -> tuple[int, Tensor]:
    """Number and labels of the components, numbered by their first rows.

    Every row points to a row of its component with a smaller number, at first itself. In turn, rows and the rows they
    point to take over the smallest pointer among their neighbours, and pointers are followed to their ends; a few
    rounds suffice on any graph, long chains included.
    """
    row, column = _rows(S), S.columns.to(torch.int64)
    points = torch.arange(S.shape[0], device=S.values.device)
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


def _rows(A: Csr) -> Tensor:
    """The row number of every entry."""
    start = A.start.to(torch.int64)
    return torch.repeat_interleave(start[1:] - start[:-1], output_size=A.values.numel())


def _places(chosen: Tensor, n: int) -> Tensor:
    """Where each of n numbers is among the chosen ones; -1 for the others."""
    place = torch.full((n,), -1, dtype=torch.int64, device=chosen.device)
    place[chosen] = torch.arange(chosen.numel(), device=chosen.device)
    return place


def _from_sorted(key: Tensor, values: Tensor, shape: tuple[int, int]) -> Csr:
    """A CSR tensor from ascending, distinct keys row * m + column."""
    row = torch.div(key, shape[1], rounding_mode="floor")
    start = torch.zeros(shape[0] + 1, dtype=torch.int64, device=key.device)
    start[1:] = torch.cumsum(torch.bincount(row, minlength=shape[0]), dim=0)
    return csr(start, key - row * shape[1], values, shape)

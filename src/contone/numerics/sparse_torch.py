"""Sparse matrices as torch CSR tensors, on any device: what `numerics.sparse` needs and torch does not have.

Everything goes through sorted keys row * m + column, so that results do not depend on the order of atomic additions:
two runs on a GPU give the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


def csr(start: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR tensor from row starts (n + 1,), columns and values; indices of 32 bits while they suffice."""
    width = torch.int32 if max(values.numel(), *shape) < 2**31 else torch.int64
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta feature, once in every process
        warnings.filterwarnings("ignore", "Sparse CSR", UserWarning)
        return torch.sparse_csr_tensor(start.to(width), columns.to(width), values, size=shape, check_invariants=False)


def matmul(S: Tensor, F: Tensor) -> Tensor:
    """S F for a CSR tensor S (n, m) and a dense F (m, q)."""
    return weighted_bags(S, F) if S.is_cuda else S @ F


def weighted_bags(S: Tensor, F: Tensor) -> Tensor:
    """S F as weighted sums of rows of F, each by the threads of one row of S: the same bits in every run.

    The product of cuSPARSE, which torch takes by default, adds in an order that changes from run to run.
    """
    return embedding_bag(
        S.col_indices(), F, S.crow_indices(), mode="sum", per_sample_weights=S.values(), include_last_offset=True
    )


def diagonal_plus(diagonal: Tensor, scale: float, A: Tensor) -> Callable[[Tensor], Tensor]:
    """The map V -> (diag(diagonal) + scale A) V."""
    column = diagonal[:, None]
    return lambda V: torch.add(column * V, matmul(A, V), alpha=scale)


def row_sums(A: Tensor) -> Tensor:
    """A 1 (n,)."""
    return matmul(A, A.values().new_ones((A.shape[1], 1)))[:, 0]


def edge_matrix(indices: Tensor, weights: Tensor) -> Tensor:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""
    n, k = indices.shape
    start = torch.arange(0, n * k + 1, k, device=indices.device)
    return csr(start, indices.reshape(-1), weights.reshape(-1), (n, n))


def symmetrised(A: Tensor, *, by: str) -> Tensor:
    """A + A^T, or the larger of a_ij and a_ji; every entry occurs once in A, so at most two meet."""
    n = A.shape[0]
    row, column = _rows(A), A.col_indices().to(torch.int64)
    key, order = torch.sort(torch.cat([row * n + column, column * n + row]))
    values = torch.cat([A.values(), A.values()])[order]
    del order
    again = torch.zeros_like(key, dtype=torch.bool)
    again[1:] = key[1:] == key[:-1]
    other = torch.where(again, values, 0.0)[1:]
    values[:-1] = values[:-1] + other if by == "sum" else torch.maximum(values[:-1], other)
    return _from_sorted(key[~again], values[~again], (n, n))


def scaled(A: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """diag(left) A diag(right) without the entries that become zero."""
    row, column = _rows(A), A.col_indices().to(torch.int64)
    values = A.values() * right[column] * left[row]
    kept = values != 0.0
    return _from_sorted((row * A.shape[1] + column)[kept], values[kept], (A.shape[0], A.shape[1]))


def diagonal(A: Tensor) -> Tensor:
    """The diagonal (n,)."""
    row = _rows(A)
    own = row == A.col_indices()
    answer = A.values().new_zeros(A.shape[0])
    answer[row[own]] = A.values()[own]
    return answer


def submatrix(S: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The block of ascending rows and columns."""
    row, column = _places(rows, S.shape[0])[_rows(S)], _places(columns, S.shape[1])[S.col_indices().to(torch.int64)]
    kept = (row >= 0) & (column >= 0)
    shape = (rows.numel(), columns.numel())
    return _from_sorted((row * shape[1] + column)[kept], S.values()[kept], shape)


def merged(A: Tensor, member: Tensor, m: int) -> Tensor:
    """Rows and columns added up by member (n,)."""
    key, order = torch.sort(member[_rows(A)] * m + member[A.col_indices().to(torch.int64)])
    distinct, lengths = torch.unique_consecutive(key, return_counts=True)
    values = torch.segment_reduce(A.values()[order], "sum", lengths=lengths)
    return _from_sorted(distinct, values, (m, m))


def connected_components(S: Tensor) -> tuple[int, Tensor]:
    """Number and labels of the components, numbered by their first rows.

    Every row points to a row of its component with a smaller number, at first itself. In turn, rows and the rows they
    point to take over the smallest pointer among their neighbours, and pointers are followed to their ends; a few
    rounds suffice on any graph, long chains included.
    """
    row, column = _rows(S), S.col_indices().to(torch.int64)
    points = torch.arange(S.shape[0], device=S.device)
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


def _rows(A: Tensor) -> Tensor:
    """The row number of every entry."""
    start = A.crow_indices().to(torch.int64)
    return torch.repeat_interleave(start[1:] - start[:-1], output_size=A.values().numel())


def _places(chosen: Tensor, n: int) -> Tensor:
    """Where each of n numbers is among the chosen ones; -1 for the others."""
    place = torch.full((n,), -1, dtype=torch.int64, device=chosen.device)
    place[chosen] = torch.arange(chosen.numel(), device=chosen.device)
    return place


def _from_sorted(key: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR tensor from ascending, distinct keys row * m + column."""
    row = torch.div(key, shape[1], rounding_mode="floor")
    start = torch.zeros(shape[0] + 1, dtype=torch.int64, device=key.device)
    start[1:] = torch.cumsum(torch.bincount(row, minlength=shape[0]), dim=0)
    return csr(start, key - row * shape[1], values, shape)

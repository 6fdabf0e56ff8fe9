"""The one place where sparse matrices are made and meet dense ones, whatever library they come from.

With NumPy a sparse matrix is a SciPy CSR array; with torch it is a CSR tensor (`sparse_torch`), on any device; with
dask its blocks of rows lie on the workers of a cluster (`sparse_dask`), and what it meets is a NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_dask_array, is_torch_array
from scipy.sparse import csgraph

from contone.backends.dask import graph as sparse_dask
from contone.runtime.threads import for_each, pieces_of

Array = Any
Sparse = Any


def matmul(S: Sparse, F: Array) -> Array:
    """S F for a sparse S (n, m) and a dense F (m, q)."""
    if not sp.issparse(S):
        return _other(S).matmul(S, F)
    return _product(row_blocks(S), F)


def row_blocks(S: Sparse) -> list[tuple[slice, Sparse]]:
    """(rows, S[rows]) for all rows, in pieces to be multiplied side by side, without copies; one where S is small or
    not SciPy's."""
    if not sp.issparse(S):
        return [(slice(None), S)]
    pieces = pieces_of(S.indptr[1:])
    return [(slice(None), S)] if len(pieces) == 1 else [(rows, _some_rows(S, rows)) for rows in pieces]


def _some_rows(S: Sparse, rows: slice) -> Sparse:
    start = S.indptr[rows.start : rows.stop + 1]
    entries = slice(start[0], start[-1])
    block = sp.csr_array((len(start) - 1, S.shape[1]))
    # One by one: the constructor copies what is a small part of a large array.
    block.data, block.indices, block.indptr = S.data[entries], S.indices[entries], start - start[0]
    return block


def _product(blocks: list[tuple[slice, Sparse]], F: np.ndarray) -> np.ndarray:
    """S F from the blocks of rows of S."""
    if len(blocks) == 1:
        return blocks[0][1] @ F
    out = np.empty((sum(S.shape[0] for _, S in blocks), *F.shape[1:]), dtype=np.result_type(blocks[0][1], F))

    def multiply(block: tuple[slice, Sparse]) -> None:
        rows, S = block
        out[rows] = S @ F

    for_each(multiply, blocks)
    return out


def diagonal_plus(diagonal: Array, scale: float, A: Sparse) -> Callable[[Array], Array]:
    """The map V -> (diag(diagonal) + scale A) V for a square sparse A."""
    if not sp.issparse(A):
        return _other(A).diagonal_plus(diagonal, scale, A)
    blocks = row_blocks((sp.diags_array(diagonal) + scale * A).tocsr())
    return lambda V: _product(blocks, V)


def edge_matrix(indices: Array, weights: Array) -> Sparse:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir, as (n, n) CSR."""
    if is_torch_array(weights):
        from contone.backends.torch import graph as sparse_torch

        return sparse_torch.edge_matrix(indices, weights)
    if is_dask_array(weights):
        return sparse_dask.edge_matrix(indices, weights)
    n, k = indices.shape
    width = np.int32 if n * k < 2**31 else np.int64  # half the memory, and faster products, while it suffices
    start = np.arange(0, n * k + 1, k, dtype=width)
    return sp.csr_array((weights.ravel(), indices.ravel().astype(width), start), shape=(n, n))


def symmetrised(A: Sparse, *, by: str) -> Sparse:
    """A + A^T (by="sum") or the larger of a_ij and a_ji (by="max"), for A >= 0 without repeated entries."""
    if not sp.issparse(A):
        return _other(A).symmetrised(A, by=by)
    B = A.T.tocsr()
    A = B.T.tocsr()  # twice transposed, the entries of a row are in order: SciPy adds and multiplies these faster
    return A + B if by == "sum" else A.maximum(B)


def scaled(A: Sparse, left: Array, right: Array) -> Sparse:
    """diag(left) A diag(right); entries that become zero are left out."""
    if not sp.issparse(A):
        return _other(A).scaled(A, left, right)
    S = A.tocsr(copy=True)
    S.data *= right[S.indices]
    S.data *= np.repeat(left, np.diff(S.indptr))
    S.eliminate_zeros()
    return S


def row_sums(A: Sparse) -> Array:
    """A 1 as a dense vector (n,)."""
    if not sp.issparse(A):
        return _other(A).row_sums(A)
    return np.asarray(A.sum(axis=1)).ravel()


def diagonal(A: Sparse) -> Array:
    """The diagonal (n,) of a square A."""
    if not sp.issparse(A):
        return _other(A).diagonal(A)
    return A.diagonal()


def submatrix(S: Sparse, rows: Array, columns: Array) -> Sparse:
    """The block S[rows][:, columns], for ascending integer index arrays."""
    if not sp.issparse(S):
        return _other(S).submatrix(S, rows, columns)
    return S[rows][:, columns]


def merged(A: Sparse, member: Array, m: int) -> Sparse:
    """E^T A E (m, m), where row i of E (n, m) has a single 1, in column member_i: rows and columns added up."""
    if not sp.issparse(A):
        return _other(A).merged(A, member, m)
    n = len(member)
    E = sp.csr_array((np.ones(n), member, np.arange(n + 1)), shape=(n, m))
    return (E.T @ A @ E).tocsr()


def connected_components(S: Sparse) -> tuple[int, Array]:
    """How many components the graph of a symmetric S (n, n) has, and which one (n,) every row is in."""
    if not sp.issparse(S):
        return _other(S).connected_components(S)
    return csgraph.connected_components(S, directed=False)


def _other(A: Sparse) -> Any:
    """The module with these functions for a matrix that is not SciPy's."""
    if isinstance(A, sparse_dask.Blocks):
        return sparse_dask
    from contone.backends.torch import graph as sparse_torch

    return sparse_torch

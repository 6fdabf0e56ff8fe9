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

from contone.numerics import sparse_dask

Array = Any
Sparse = Any


def matmul(S: Sparse, F: Array) -> Array:
    """S F for a sparse S (n, m) and a dense F (m, q)."""
    if not sp.issparse(S):
        return _other(S).matmul(S, F)
    return S @ F


def diagonal_plus(diagonal: Array, scale: float, A: Sparse) -> Callable[[Array], Array]:
    """The map V -> (diag(diagonal) + scale A) V for a square sparse A."""
    if not sp.issparse(A):
        return _other(A).diagonal_plus(diagonal, scale, A)
    M = (sp.diags_array(diagonal) + scale * A).tocsr()
    return lambda V: M @ V


def edge_matrix(indices: Array, weights: Array) -> Sparse:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir, as (n, n) CSR."""
    if is_torch_array(weights):
        from contone.numerics import sparse_torch

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
    return (A + A.T if by == "sum" else A.maximum(A.T)).tocsr()


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
    from contone.numerics import sparse_torch

    return sparse_torch

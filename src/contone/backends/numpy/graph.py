"""A sparse graph as a SciPy CSR array, multiplied by several threads where it is large."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from contone.runtime.machine import for_each, pieces_of, total
from contone.typing import Array, Function, Operator

Block = tuple[slice, sp.csr_array]


class NumpyGraph:
    """A (n, n) as `matrix`, a CSR array."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix: sp.csr_array = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        found: tuple[int, int] = self.matrix.shape
        return found

    @cached_property
    def _blocks(self) -> list[Block]:
        """(rows, A[rows]) for all rows, without copies; one where A is small."""
        pieces = pieces_of(self.shape[0])
        return [(slice(None), self.matrix)] if len(pieces) == 1 else [(r, _some_rows(self.matrix, r)) for r in pieces]

    def matmul(self, F: np.ndarray) -> np.ndarray:
        return _multiply(self._blocks, F)

    def over_rows(self, F: np.ndarray, function: Function, *arrays: np.ndarray, **shared: object) -> Array:
        return total(lambda block: function(block[1] @ F, *(A[block[0]] for A in arrays), **shared), self._blocks)

    def diagonal_plus(self, diagonal: np.ndarray, scale: float) -> Operator:
        return partial(_multiply, NumpyGraph((sp.diags_array(diagonal) + scale * self.matrix).tocsr())._blocks)

    def symmetrize(self, *, by: str) -> NumpyGraph:
        B = self.matrix.T.tocsr()
        A = B.T.tocsr()  # twice transposed, the entries of a row are in order: SciPy adds and multiplies these faster
        return NumpyGraph(A + B if by == "sum" else A.maximum(B))

    def scale(self, left: np.ndarray, right: np.ndarray) -> NumpyGraph:
        """diag(left) A diag(right); entries that become zero are left out."""
        S = self.matrix.tocsr(copy=True)
        S.data *= right[S.indices]
        S.data *= np.repeat(left, np.diff(S.indptr))
        S.eliminate_zeros()
        return NumpyGraph(S)

    def row_sums(self) -> np.ndarray:
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    def submatrix(self, chosen: np.ndarray) -> NumpyGraph:
        return NumpyGraph(self.matrix[chosen][:, chosen])

    def connected_components(self) -> tuple[int, np.ndarray]:
        found: tuple[int, np.ndarray] = csgraph.connected_components(self.matrix, directed=False)
        return found


def edge_graph(indices: np.ndarray, weights: np.ndarray) -> NumpyGraph:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir."""
    n, k = indices.shape
    width = np.int32 if weights.size < 2**31 else np.int64  # half the memory, and faster products, while it suffices
    start = np.arange(0, n * k + 1, k, dtype=width)
    return NumpyGraph(sp.csr_array((weights.ravel(), indices.ravel().astype(width), start), shape=(n, n)))


def _some_rows(S: sp.csr_array, rows: slice) -> sp.csr_array:
    start = S.indptr[rows.start : rows.stop + 1]
    entries = slice(start[0], start[-1])
    block = sp.csr_array((len(start) - 1, S.shape[1]))
    # One by one: the constructor copies what is a small part of a large array.
    block.data, block.indices, block.indptr = S.data[entries], S.indices[entries], start - start[0]
    return block


def _multiply(blocks: list[Block], F: np.ndarray) -> np.ndarray:
    """A F from the blocks of rows of A."""
    if len(blocks) == 1:
        return np.asarray(blocks[0][1] @ F)
    out = np.empty((sum(S.shape[0] for _, S in blocks), *F.shape[1:]), dtype=np.result_type(blocks[0][1], F))

    def multiply(block: Block) -> None:
        rows, S = block
        out[rows] = S @ F

    for_each(multiply, blocks)
    return out

"""A sparse matrix in blocks of rows that lie on the workers of a cluster; what it is multiplied with lies here.

The solvers see what they see of a matrix in memory: S @ F, and the functions of `contone.backends.numpy.graph`.
A product
sends F (n, q) to every worker and brings the rows of S F back. The edges, n k of them, never leave the workers.

Scaling, sub-matrices and merging of rows are done to what goes in and comes out, not to the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from contone.backends.dask.rows import bounds, combined, with_everywhere

Array = Any
Map = Callable[[np.ndarray], np.ndarray]

NO_EDGE = float(np.finfo(float).smallest_normal / np.finfo(float).eps)
"""A weight so small that a row with no larger one counts as isolated."""


class BlockMatrix:
    """A (n, n), not negative, as CSR blocks of rows.

    Parameters
    ----------
    blocks : sequence of delayed CSR arrays
        Held by the workers.
    start : (blocks + 1,)
        First row of each block, and n.
    made_of : any
        What the workers keep besides: with it, blocks that are lost are soon made again.
    """

    def __init__(self, blocks: Sequence[Any], start: np.ndarray, made_of: Any = None) -> None:
        self.blocks = blocks
        self.start = start
        self.made_of = made_of
        self.shape = (int(start[-1]), int(start[-1]))

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        return np.concatenate(with_everywhere(_product, self.blocks, np.ascontiguousarray(V)))

    def symmetrised(self, *, by: str) -> BlockMatrix:
        """A + A^T or the larger of both: every block sends each other one the part that concerns it."""
        from dask import delayed, persist

        turned = [delayed(_transposed_parts, pure=False)(block, self.start) for block in self.blocks]
        union = delayed(_union, pure=False)
        blocks = [union(block, [parts[j] for parts in turned], by) for j, block in enumerate(self.blocks)]
        return BlockMatrix(persist(*blocks), self.start, self)

    def diagonal(self) -> np.ndarray:
        """a_ii (n,)."""
        from dask import compute, delayed

        parts = [delayed(_diagonal, pure=False)(b, int(s)) for b, s in zip(self.blocks, self.start[:-1], strict=True)]
        return np.concatenate(compute(*parts))

    def within_groups(self, member: np.ndarray, m: int) -> np.ndarray:
        """For every group (m,), the sum of a_ij over rows i and j in it."""
        rows = [(block, int(s)) for block, s in zip(self.blocks, self.start[:-1], strict=True)]
        total = np.zeros(m)
        for group, weight in with_everywhere(_within_groups, rows, member):
            np.add.at(total, group, weight)
        return total

    def connected_components(self) -> tuple[int, np.ndarray]:
        """How many components the graph of a symmetric A has, and which one (n,) every row is in.

        Every block keeps of its edges only a forest, forests are merged to forests, and the last has fewer than n
        edges: that one comes here.
        """
        from dask import compute, delayed

        forests = [delayed(_forest, pure=False)(b, int(s)) for b, s in zip(self.blocks, self.start[:-1], strict=True)]
        one, other = compute(combined(_merged_forest, forests))[0]
        n = self.shape[0]
        return csgraph.connected_components(sp.coo_array((np.ones(len(one)), (one, other)), shape=(n, n)))


class Derived:
    """The map V -> after(A @ before(V)) of a `BlockMatrix` A, square of size n."""

    def __init__(
        self,
        A: BlockMatrix | Derived,
        n: int,
        before: Map,
        after: Map,
        diagonal: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.A = A
        self.shape = (n, n)
        self._before, self._after, self._diagonal = before, after, diagonal

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        return self._after(self.A @ self._before(V))

    def diagonal(self) -> np.ndarray:
        """The diagonal (n,), of what has one worked out."""
        assert self._diagonal is not None
        return self._diagonal()

    def connected_components(self) -> tuple[int, np.ndarray]:
        """Those of A: scaling by what is not zero leaves them alone."""
        return self.A.connected_components()


Blocks = BlockMatrix | Derived


def edge_matrix(indices: Array, weights: Array) -> BlockMatrix:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir, from lazy arrays."""
    from dask import delayed, persist

    rows = delayed(_edge_rows, pure=False)
    pairs = zip(indices.to_delayed().ravel(), weights.to_delayed().ravel(), strict=True)
    return BlockMatrix(persist(*(rows(i, w, indices.shape[0]) for i, w in pairs)), bounds(indices), indices)


def matmul(A: Blocks, V: np.ndarray) -> np.ndarray:
    """A V (n, q)."""
    return A @ V


def symmetrised(A: BlockMatrix, *, by: str) -> BlockMatrix:
    """A + A^T (by="sum") or the larger of a_ij and a_ji (by="max")."""
    return A.symmetrised(by=by)


def diagonal(A: Blocks) -> np.ndarray:
    """The diagonal (n,)."""
    return A.diagonal()


def connected_components(A: Blocks) -> tuple[int, np.ndarray]:
    """How many components the graph of a symmetric A has, and which one (n,) every row is in."""
    return A.connected_components()


def diagonal_plus(diagonal: np.ndarray, scale: float, A: Blocks) -> Map:
    """The map V -> (diag(diagonal) + scale A) V."""
    return lambda V: diagonal[:, None] * V + scale * (A @ V)


def row_sums(A: Blocks) -> np.ndarray:
    """A 1 (n,)."""
    return (A @ np.ones((A.shape[1], 1))).ravel()


def scaled(A: Blocks, left: np.ndarray, right: np.ndarray) -> Derived:
    """diag(left) A diag(right)."""
    return Derived(A, A.shape[0], lambda V: right[:, None] * V, lambda V: left[:, None] * V)


def submatrix(A: Blocks, rows: np.ndarray, columns: np.ndarray) -> Derived:
    """The block A[rows][:, columns], as many rows as columns."""

    def embedded(V: np.ndarray) -> np.ndarray:
        full = np.zeros((A.shape[1], V.shape[1]))
        full[columns] = V
        return full

    return Derived(A, len(rows), embedded, lambda V: V[rows])


def merged(A: BlockMatrix, member: np.ndarray, m: int) -> Derived:
    """E^T A E (m, m), where row i of E (n, m) has a single 1, in column member_i."""
    n = len(member)
    E = sp.csr_array((np.ones(n), member, np.arange(n + 1)), shape=(n, m))
    return Derived(A, m, lambda V: V[member], lambda V: E.T @ V, lambda: A.within_groups(member, m))


# ------------------------------------------------------------------------------------------------- tasks on a block


def _product(block: sp.csr_array, V: np.ndarray) -> np.ndarray:
    return block @ V


def _edge_rows(indices: np.ndarray, weights: np.ndarray, n: int) -> sp.csr_array:
    m, k = indices.shape
    width = np.int32 if max(n, m * k) < 2**31 else np.int64
    start = np.arange(0, m * k + 1, k, dtype=width)
    return sp.csr_array((weights.ravel(), indices.ravel().astype(width), start), shape=(m, n))


def _transposed_parts(block: sp.csr_array, start: np.ndarray) -> list[sp.csr_array]:
    """The columns of each block of rows, transposed: part j is (rows of block j, rows of this block)."""
    turned = block.T.tocsr()
    return [turned[a:b] for a, b in pairwise(start)]


def _union(block: sp.csr_array, parts: list[sp.csr_array], by: str) -> sp.csr_array:
    turned = sp.hstack(parts, format="csr")
    return (block + turned if by == "sum" else block.maximum(turned)).tocsr()


def _diagonal(block: sp.csr_array, start: int) -> np.ndarray:
    return block.diagonal(k=start)


def _within_groups(rows: tuple[sp.csr_array, int], member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    block, start = rows
    edges = block.tocoo()
    group = member[start + edges.coords[0]]
    inside = group == member[edges.coords[1]]
    found, position = np.unique(group[inside], return_inverse=True)
    return found, np.bincount(position, weights=edges.data[inside], minlength=len(found))


def _forest(block: sp.csr_array, start: int) -> tuple[np.ndarray, np.ndarray]:
    edges = block.tocoo()
    linked = edges.data > NO_EDGE
    return _stars(start + edges.coords[0][linked], edges.coords[1][linked])


def _merged_forest(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return _stars(*(np.concatenate(ends) for ends in zip(*parts, strict=True)))


def _stars(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fewest edges with the same components: every row tied to the first row of its component."""
    nodes, position = np.unique(np.concatenate([one, other]), return_inverse=True)
    half, n = len(one), len(nodes)
    graph = sp.coo_array((np.ones(half), (position[:half], position[half:])), shape=(n, n))
    _, component = csgraph.connected_components(graph, directed=False)
    _, first = np.unique(component, return_index=True)
    centre = nodes[first[component]]
    apart = nodes != centre
    return nodes[apart], centre[apart]

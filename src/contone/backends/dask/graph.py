"""A sparse graph in blocks of rows that lie on the workers of a cluster; what it is multiplied with lies here.

The solvers see what they see of a graph in memory (`contone.backends.protocols.Graph`). A product sends F (n, q) to
every worker and brings the rows of A F back. The edges, n k of them, never leave the workers. Scaling, sub-matrices and
merging of rows are done to what goes in and comes out, not to the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from scipy.sparse import csgraph

from contone.backends.dask.rows import block_starts, combine, compute, map_with_shared, persist
from contone.typing import Array, Operator

NO_EDGE = float(np.finfo(float).smallest_normal / np.finfo(float).eps)
"""A weight so small that a row with no larger one counts as isolated."""


class _Products:
    """What follows from products A V alone."""

    shape: tuple[int, int]

    def matmul(self, F: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def row_blocks(self) -> list[tuple[slice, Operator]]:
        return [(slice(None), self.matmul)]

    def diagonal_plus(self, diagonal: np.ndarray, scale: float) -> Operator:
        return lambda V: diagonal[:, None] * V + scale * self.matmul(V)

    def row_sums(self) -> np.ndarray:
        return self.matmul(np.ones((self.shape[1], 1))).ravel()

    def scale(self, left: np.ndarray, right: np.ndarray) -> DerivedGraph:
        return DerivedGraph(self, self.shape[0], lambda V: right[:, None] * V, lambda V: left[:, None] * V)

    def submatrix(self, chosen: np.ndarray) -> DerivedGraph:
        def embed(V: np.ndarray) -> np.ndarray:
            full = np.zeros((self.shape[1], V.shape[1]))
            full[chosen] = V
            return full

        return DerivedGraph(self, len(chosen), embed, lambda V: V[chosen])

    def symmetrize(self, *, by: str) -> BlockGraph:
        raise NotImplementedError

    def diagonal(self) -> np.ndarray:
        raise NotImplementedError

    def merge(self, member: np.ndarray, m: int) -> DerivedGraph:
        raise NotImplementedError

    def connected_components(self) -> tuple[int, np.ndarray]:
        raise NotImplementedError


class BlockGraph(_Products):
    """A (n, n) as CSR blocks of rows.

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

    def matmul(self, F: np.ndarray) -> np.ndarray:
        return np.concatenate(map_with_shared(_product, self.blocks, np.ascontiguousarray(F)))

    def symmetrize(self, *, by: str) -> BlockGraph:
        """A + A^T or the larger of both: every block sends each other one the part that concerns it."""
        turned = [delayed(_transposed_parts, pure=False)(block, self.start) for block in self.blocks]
        union = delayed(_union, pure=False)
        blocks = [union(block, [parts[j] for parts in turned], by) for j, block in enumerate(self.blocks)]
        return BlockGraph(persist(*blocks), self.start, self)

    def diagonal(self) -> np.ndarray:
        parts = [delayed(_diagonal, pure=False)(b, int(s)) for b, s in zip(self.blocks, self.start[:-1], strict=True)]
        return np.concatenate(compute(*parts))

    def merge(self, member: np.ndarray, m: int) -> DerivedGraph:
        n = len(member)
        E = sp.csr_array((np.ones(n), member, np.arange(n + 1)), shape=(n, m))
        return DerivedGraph(self, m, lambda V: V[member], lambda V: E.T @ V, lambda: self.sums_within(member, m))

    def sums_within(self, member: np.ndarray, m: int) -> np.ndarray:
        """For every group (m,), the sum of a_ij over rows i and j in it."""
        rows = [(block, int(s)) for block, s in zip(self.blocks, self.start[:-1], strict=True)]
        total = np.zeros(m)
        for group, weight in map_with_shared(_sums_within, rows, member):
            np.add.at(total, group, weight)
        return total

    def connected_components(self) -> tuple[int, np.ndarray]:
        """How many components the graph of a symmetric A has, and which one (n,) every row is in.

        Every block keeps of its edges only a forest, forests are merged to forests, and the last has fewer than n
        edges: that one comes here.
        """
        forests = [delayed(_forest, pure=False)(b, int(s)) for b, s in zip(self.blocks, self.start[:-1], strict=True)]
        one, other = compute(combine(_merged_forest, forests))[0]
        n = self.shape[0]
        found: tuple[int, np.ndarray] = csgraph.connected_components(
            sp.coo_array((np.ones(len(one)), (one, other)), shape=(n, n))
        )
        return found


class DerivedGraph(_Products):
    """The map V -> after(A before(V)) of a graph A in blocks, square of size n."""

    def __init__(
        self,
        A: _Products,
        n: int,
        before: Operator,
        after: Operator,
        diagonal: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.A = A
        self.shape = (n, n)
        self._before, self._after, self._diagonal = before, after, diagonal

    def matmul(self, F: np.ndarray) -> np.ndarray:
        return np.asarray(self._after(self.A.matmul(self._before(F))))

    def diagonal(self) -> np.ndarray:
        """The diagonal (n,), of what has one worked out."""
        assert self._diagonal is not None
        return self._diagonal()

    def connected_components(self) -> tuple[int, np.ndarray]:
        """Those of A: scaling by what is not zero leaves them alone."""
        return self.A.connected_components()


def edge_graph(indices: Array, weights: Array) -> BlockGraph:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir, from lazy arrays."""
    rows = delayed(_edge_rows, pure=False)
    pairs = zip(indices.to_delayed().ravel(), weights.to_delayed().ravel(), strict=True)
    blocks = persist(*(rows(i, w, indices.shape[0]) for i, w in pairs))
    return BlockGraph(blocks, block_starts(indices), indices)


# ------------------------------------------------------------------------------------------------- tasks on a block


def _product(block: sp.csr_array, V: np.ndarray) -> Array:
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


def _diagonal(block: sp.csr_array, start: int) -> Array:
    return block.diagonal(k=start)


def _sums_within(rows: tuple[sp.csr_array, int], member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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

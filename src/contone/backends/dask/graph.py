"""A sparse graph in blocks of rows that lie on the workers of a cluster, and so does what it is multiplied with.

The solvers see what they see of a graph in memory (`contone.backends.protocols.Graph`). Before its first product a
block finds out which rows of the others it needs. A product then takes, from every other block that has any, the whole
block of F while F (n, q) is small, and only these rows where it is large. What comes here are sums over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from contone.backends.dask import tasks
from contone.backends.dask.rows import block_starts, persist
from contone.backends.dask.tasks import Handle
from contone.backends.numpy.graph import NumpyGraph
from contone.typing import Array, Arrays, Function, Operator, Step

NO_EDGE = float(np.finfo(float).smallest_normal / np.finfo(float).eps)
"""A weight so small that a row with no larger one counts as isolated."""
WHOLE_BYTES = 1 << 30
"""Up to this size F goes to the workers in whole blocks: fewer tasks. Beyond, only rows that are needed are sent."""


class _Wiring(NamedTuple):
    """What products need to know, once for all of them."""

    local: list[Handle]
    """Blocks (b, m) with the columns of the m rows they need, ascending."""
    needed: list[Handle]
    """For every block a list with the row numbers, counted within the other block, of what it needs of each."""
    partners: list[list[int]]
    """For every block the others that it needs anything of."""


class BlockGraph:
    """A (n, n) as CSR blocks of rows.

    Parameters
    ----------
    blocks : sequence of handles
        CSR arrays (b, n), held by the workers.
    start : (blocks + 1,)
        First row of each block, and n.
    """

    def __init__(self, blocks: Sequence[Handle], start: np.ndarray) -> None:
        self.blocks = list(blocks)
        self.start = start
        self.shape = (int(start[-1]), int(start[-1]))
        self._known: _Wiring | None = None

    def matmul(self, F: Array) -> Array:
        (out,), _ = self.update(F, _write, (tasks.Blank(F),), summed=False)
        return out

    def update(
        self,
        F: Array,
        function: Function,
        changed: Arrays,
        given: Arrays = (),
        *,
        summed: bool = True,
        **shared: object,
    ) -> Step:
        wiring, inputs = self._wiring(), self._inputs(F)
        rows = zip(wiring.local, wiring.needed, inputs, strict=True)
        return tasks.update(_products, rows, function, changed, given, summed, shared)

    def diagonal_plus(self, diagonal: Array, scale: float) -> Operator:
        (column,) = persist(diagonal[:, None])

        def apply(V: Array) -> Array:
            (out,), _ = self.update(V, _add_diagonal, (tasks.Blank(V),), (V, column), summed=False, scale=scale)
            return out

        return apply

    def row_sums(self) -> Array:
        return tasks.as_array(tasks.run(_row_sums, [(block,) for block in self.blocks]), np.diff(self.start))

    def scale(self, left: Array, right: Array) -> BlockGraph:
        """diag(left) A diag(right)."""
        (column,) = persist(right[:, None])
        wiring, inputs, lefts = self._wiring(), self._inputs(column), tasks.handles(left)
        given = zip(self.blocks, wiring.local, wiring.needed, inputs, lefts, strict=True)
        scaled = BlockGraph(tasks.run(_scaled, given), self.start)
        scaled._known = wiring._replace(local=tasks.run(_localised, zip(scaled.blocks, wiring.local, strict=True)))
        return scaled

    def transpose(self) -> BlockGraph:
        """A^T: every block sends each other one the part that concerns it."""
        turned = tasks.run(_transposed_parts, [(block, self.start) for block in self.blocks])
        parts = tasks.items(turned, len(self.blocks))
        return BlockGraph(tasks.run(_joined, [(some,) for some in parts]), self.start)

    def symmetrize(self, *, by: str) -> BlockGraph:
        """A + A^T or the larger of both."""
        turned = self.transpose().blocks
        return BlockGraph(
            tasks.run(_union, [(*both, by) for both in zip(self.blocks, turned, strict=True)]), self.start
        )

    def connected_components(self) -> tuple[int, Array]:
        """How many components the graph of a symmetric A has, and which one (n,) every row is in.

        A block finds those of its own edges; what edges between blocks join are these, and only they come here.
        """
        found = tasks.run(
            _own_components, [(block, *ends) for block, ends in zip(self.blocks, pairwise(self.start), strict=True)]
        )
        counts, labels = tasks.items(found, 2)
        first = np.concatenate([[0], np.cumsum(tasks.fetch(counts))])
        numbered = tasks.run(np.add, zip(labels, first[:-1].tolist(), strict=True))
        component = tasks.as_array(numbered, np.diff(self.start), 1, np.int64)
        wiring, inputs = self._wiring(), self._inputs(component)
        given = zip(wiring.local, wiring.needed, inputs, numbered, strict=True)
        one, other = (np.concatenate(ends) for ends in zip(*tasks.fetch(tasks.run(_joints, given)), strict=True))
        m = int(first[-1])
        count, joined = csgraph.connected_components(
            sp.coo_array((np.ones(len(one)), (one, other)), shape=(m, m)), False
        )
        final = tasks.run(
            _renamed, [(label, joined[a:b], a) for label, (a, b) in zip(numbered, pairwise(first), strict=True)]
        )
        return int(count), tasks.as_array(final, np.diff(self.start), None, np.int64)

    def _wiring(self) -> _Wiring:
        if self._known is None:
            found = tasks.run(_wired, [(block, self.start) for block in self.blocks])
            local, needed, partners = tasks.items(found, 3)
            self._known = _Wiring(local, needed, tasks.fetch(partners))
        return self._known

    def _inputs(self, F: Array) -> list[list[Handle]]:
        """For every block the rows of F that it needs, of each of its partners: whole blocks, or just those rows."""
        wiring, blocks = self._wiring(), tasks.handles(F)
        if F.nbytes <= WHOLE_BYTES:
            return [[(j, False, blocks[j]) for j in some] for some in wiring.partners]
        wanted = [(j, i) for i, some in enumerate(wiring.partners) for j in some]
        rows = tasks.run(_item, [(wiring.needed[i], j) for j, i in wanted])
        picked = iter(tasks.run(_picked, [(blocks[j], some) for (j, _), some in zip(wanted, rows, strict=True)]))
        return [[(j, True, next(picked)) for j in some] for some in wiring.partners]


def edge_graph(indices: Array, weights: Array) -> BlockGraph:
    """The directed graph with weight w_ir (n, k) on the edge from row i to the row indices_ir, from lazy arrays."""
    n = indices.shape[0]
    pairs = zip(tasks.handles(indices), tasks.handles(weights), strict=True)
    return BlockGraph(tasks.run(_edge_rows, [(i, w, n) for i, w in pairs]), block_starts(indices))


# ------------------------------------------------------------------------------------------------- tasks on a block


def _edge_rows(indices: np.ndarray, weights: np.ndarray, n: int) -> sp.csr_array:
    m, k = indices.shape
    width = np.int32 if max(n, m * k) < 2**31 else np.int64
    start = np.arange(0, m * k + 1, k, dtype=width)
    return sp.csr_array((weights.ravel(), indices.ravel().astype(width), start), shape=(m, n))


def _wired(block: sp.csr_array, start: np.ndarray) -> tuple[sp.csr_array, list[np.ndarray], list[int]]:
    columns, place = np.unique(block.indices, return_inverse=True)
    local = _with_columns(block, place.astype(block.indices.dtype), len(columns))
    parts = np.split(columns, np.searchsorted(columns, start[1:-1]))
    needed = [part - first for part, first in zip(parts, start[:-1], strict=True)]
    return local, needed, [j for j, part in enumerate(needed) if len(part)]


def _with_columns(block: sp.csr_array, indices: np.ndarray, n: int) -> sp.csr_array:
    """The block with other column numbers, of n; its rows stay as they are."""
    return sp.csr_array((block.data, indices, block.indptr), shape=(block.shape[0], n))


def _localised(block: sp.csr_array, local: sp.csr_array) -> sp.csr_array:
    """The entries of a block with the columns of its local form."""
    return sp.csr_array((block.data, local.indices, local.indptr), shape=local.shape)


def _gathered(needed: list[np.ndarray], inputs: list[tuple[int, bool, np.ndarray]]) -> np.ndarray:
    """The rows that a block needs, from whole blocks or from what was picked of them."""
    ends = np.cumsum([len(needed[j]) for j, _, _ in inputs])
    out = np.empty((ends[-1], *inputs[0][2].shape[1:]), dtype=inputs[0][2].dtype)
    for (j, picked, rows), end in zip(inputs, ends, strict=True):
        chosen = np.arange(len(rows)) if picked else needed[j]
        np.take(rows, chosen, axis=0, out=out[end - len(chosen) : end], mode="clip")  # others go through a copy
    return out


def _products(local: sp.csr_array, needed: list[np.ndarray], inputs: list[tuple[int, bool, np.ndarray]]) -> Function:
    """The step F -> function(rows of A F, ...) on a block, piece by piece, from the rows of F that it needs."""
    F = _gathered(needed, inputs) if inputs else np.zeros((local.shape[1], 1))
    return partial(NumpyGraph(local).update, F)


def _write(product: np.ndarray, out: np.ndarray) -> None:
    out[...] = product


def _add_diagonal(product: np.ndarray, out: np.ndarray, V: np.ndarray, diagonal: np.ndarray, scale: float) -> None:
    np.multiply(V, diagonal, out=out)
    product *= scale
    out += product


def _row_sums(block: sp.csr_array) -> Array:
    return np.asarray(block.sum(axis=1)).ravel()


def _scaled(
    block: sp.csr_array,
    local: sp.csr_array,
    needed: list[np.ndarray],
    inputs: list[tuple[int, bool, np.ndarray]],
    left: np.ndarray,
) -> sp.csr_array:
    data = block.data * np.repeat(left, np.diff(block.indptr))
    if inputs:
        data *= _gathered(needed, inputs)[local.indices, 0]
    return sp.csr_array((data, block.indices, block.indptr), shape=block.shape)


def _transposed_parts(block: sp.csr_array, start: np.ndarray) -> list[sp.csr_array]:
    """The columns of each block of rows, transposed: part j is (rows of block j, rows of this block)."""
    turned = block.T.tocsr()
    return [turned[a:b] for a, b in pairwise(start)]


def _joined(parts: list[sp.csr_array]) -> sp.csr_array:
    return sp.hstack(parts, format="csr")


def _union(block: sp.csr_array, turned: sp.csr_array, by: str) -> sp.csr_array:
    return (block + turned if by == "sum" else block.maximum(turned)).tocsr()


def _item(values: list[Array], position: int) -> Array:
    return values[position]


def _picked(F: np.ndarray, rows: np.ndarray) -> Array:
    return F[rows]


def _own_components(block: sp.csr_array, start: int, end: int) -> tuple[int, np.ndarray]:
    """How many components the edges within a block make, and which one (b, 1) each of its rows is in."""
    edges = block.tocoo()
    row, column = edges.coords
    inside = (edges.data > NO_EDGE) & (column >= start) & (column < end)
    graph = sp.coo_array(
        (np.ones(inside.sum()), (row[inside], column[inside] - start)), shape=(end - start, end - start)
    )
    count, component = csgraph.connected_components(graph, directed=False)
    return int(count), component[:, None].astype(np.int64)


def _joints(
    local: sp.csr_array, needed: list[np.ndarray], inputs: list[tuple[int, bool, np.ndarray]], own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which components edges of a block join, every pair once."""
    if not inputs:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    one, other = np.repeat(own[:, 0], np.diff(local.indptr)), _gathered(needed, inputs)[local.indices, 0]
    apart = (one != other) & (local.data > NO_EDGE)
    pairs = np.unique(np.stack([one[apart], other[apart]], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _renamed(label: np.ndarray, names: np.ndarray, first: int) -> np.ndarray:
    return np.asarray(names[label[:, 0] - first], dtype=np.int64)

"""Torch tensors, on any device: all rows where X lies.

In the memory of the host the engines for NumPy arrays search for neighbours: they are faster there and need no copy.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from contone.backends.numpy import Backend
from contone.backends.numpy import neighbours as host_neighbours
from contone.backends.numpy.neighbours import Neighbours
from contone.backends.torch import duplicates, graph, kernels, neighbours
from contone.backends.torch.draws import FEW, TensorDraws
from contone.exceptions import InputTypeError, ShapeError
from contone.runtime.machine import Piece, Result
from contone.typing import Array

FEW_NUMBERS = 2**15
"""Numbers up to which the processor is quicker than a GPU: a fit to 500 x 2 labels takes 0.67 s there and 0.88 s on an
H200, one to 6,000 x 8 takes 1.06 and 0.94 s."""
NUMBERS_PER_BLOCK = 2**24
"""Degrees drawn at once on a GPU, whatever `max_rows`: many, because it takes as long to start work as to do it."""


def _refuse_overflow(A: Array, dtype: torch.dtype) -> None:
    """Refuse double precision on the host that is beyond a narrower `dtype`: it would become infinite there."""
    is_there = isinstance(A, np.ndarray) or (isinstance(A, Tensor) and A.device.type == "cpu")
    if not is_there or A.dtype not in (np.float64, torch.float64) or not dtype.is_floating_point:
        return
    values, bound = np.asarray(A), torch.finfo(dtype).max
    largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
    if largest > bound:
        name = str(dtype).removeprefix("torch.")
        what = f"the {largest:.3g} of the rows that were fitted"
        raise InputTypeError(f"X is {name}, which does not hold {what}. Use float64 for both.")


class TorchBackend(Backend):
    """What tensors do otherwise than NumPy arrays."""

    name = "torch"

    # Rows

    def pieces(self, A: Array) -> list[slice]:
        return [slice(None)]

    def take_rows(self, A: Array, order: Array) -> Array:
        return A[order]

    def to_numpy(self, A: Tensor) -> np.ndarray:
        A = _plain(A, "This")
        # NumPy has no bfloat16; single precision holds all its numbers.
        return (A.float() if A.dtype == torch.bfloat16 else A).cpu().numpy()

    def like(self, A: Array, model: Tensor) -> Tensor:
        if isinstance(A, np.ndarray) and any(step < 0 for step in A.strides):  # torch has no backward views
            A = A.copy()
        _refuse_overflow(A, model.dtype)
        return torch.as_tensor(A, device=model.device, dtype=model.dtype)

    def transpose(self, A: Tensor) -> Tensor:
        return A.T.contiguous()

    def row_maxima(self, A: Tensor) -> Tensor:
        return torch.amax(A, dim=-1)

    def count_members(self, group: Tensor, n_groups: int = 0) -> Tensor:
        return group.bincount(minlength=n_groups)

    def sum_members(self, A: Tensor, group: Tensor, n_groups: int) -> Tensor:
        # Sorted first: additions in the order of a GPU's threads would give other bits in every run.
        order = torch.argsort(group, stable=True)
        return torch.segment_reduce(A[order], "sum", lengths=group.bincount(minlength=n_groups), axis=0)

    def normal_distribution(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        # torch's own ndtr has no correct digit left at -9; erfc keeps them all.
        return (lambda x: 0.5 * torch.special.erfc(x * -(0.5**0.5))), torch.special.ndtri

    # Neighbourhoods

    def nearest_neighbours(self, X: Tensor, k: int) -> Neighbours:
        if _on_host(X):
            return _as_tensors(host_neighbours.nearest_neighbours(X.numpy(), k), X)
        return Neighbours(*neighbours.nearest_neighbours(X, k)[:2], "torch-exact")

    def query_neighbours(self, X: Tensor, queries: Tensor, k: int) -> Neighbours:
        k = min(k, X.shape[0])
        if _on_host(X):
            return _as_tensors(host_neighbours.query_neighbours(X.numpy(), queries.numpy(), k), X)
        return Neighbours(*neighbours.query_neighbours(X, queries, k), "torch-exact")

    edge_graph = staticmethod(graph.edge_graph)
    group_duplicates = staticmethod(duplicates.group_duplicates)

    # Sampling

    def host_is_quicker(self, A: Tensor) -> bool:
        return A.is_cuda and A.numel() <= FEW_NUMBERS

    draws = staticmethod(TensorDraws)

    def rows_per_block(self, X: Tensor, q: int, max_rows: int) -> int:
        return max(NUMBERS_PER_BLOCK // q, 1) if X.is_cuda and len(X) * q > FEW else max_rows

    def map_blocks(self, function: Callable[[Piece], Result], blocks: Iterable[Piece]) -> Iterator[Result]:
        return map(function, blocks)

    # Checks

    available_bytes = staticmethod(neighbours.available_bytes)

    def check_matrix(self, A: Tensor, name: str) -> Tensor:
        """In float32 or float64: as it is, or, where it holds other numbers, in float64."""
        A = _plain(A, name)
        if A.is_cuda:
            kernels.prepare()
        if A.is_complex():
            raise InputTypeError(f"{name} is complex: pass real numbers.")
        if A.ndim != 2 or A.shape[1] == 0:
            raise ShapeError(f"{name} must be a matrix, one row per instance; it has shape {tuple(A.shape)}.")
        return A if A.dtype in (torch.float32, torch.float64) else A.to(torch.float64)


def _plain(A: Tensor, name: str) -> Tensor:
    """A without its gradient, its zeros written out."""
    if A.device.type == "meta":
        raise InputTypeError(f"{name} is a meta tensor, which has a shape and no numbers: pass the data itself.")
    A = A.detach()
    return A if A.layout == torch.strided else A.to_dense()


def _on_host(X: Tensor) -> bool:
    return X.device.type == "cpu"


def _as_tensors(found: Neighbours, X: Tensor) -> Neighbours:
    """What an engine for NumPy arrays found, as tensors like X."""
    order = None if found.order is None else torch.as_tensor(found.order)
    indices = torch.as_tensor(found.indices).to(torch.int64)
    return found._replace(indices=indices, distances=torch.as_tensor(found.distances).to(X.dtype), order=order)

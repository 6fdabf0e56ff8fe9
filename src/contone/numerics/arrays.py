"""Arrays of two libraries side by side: the few things that NumPy and torch say differently."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_dask_array, is_torch_array

Array = Any


def to_numpy(A: Any) -> np.ndarray:
    """A on the host; an array stays as it is."""
    return A.detach().cpu().numpy() if is_torch_array(A) else np.asarray(A)


def like(A: Any, model: Array) -> Array:
    """A in the library, on the device and in the precision of the floating-point array `model`."""
    if is_torch_array(model):
        import torch

        return torch.as_tensor(A, device=model.device, dtype=model.dtype)
    return A if is_dask_array(A) else np.asarray(to_numpy(A), dtype=model.dtype)


def transposed(A: Array) -> Array:
    """A^T, its rows one after the other in memory."""
    return A.T.contiguous() if is_torch_array(A) else np.ascontiguousarray(A.T)


def count_members(group: Array, n_groups: int = 0) -> Array:
    """How often each of the numbers 0, 1, ... occurs in `group` (n,); at least `n_groups` counts."""
    if is_torch_array(group):
        return group.bincount(minlength=n_groups)
    return np.bincount(group, minlength=n_groups)


def sum_members(A: Array, group: Array, n_groups: int) -> Array:
    """Sums (n_groups, ...) of the rows of A (n, ...) that belong to each group (n,)."""
    if is_torch_array(A):
        import torch

        # Sorted first: additions in the order of a GPU's threads would give other bits in every run.
        order = torch.argsort(group, stable=True)
        return torch.segment_reduce(A[order], "sum", lengths=group.bincount(minlength=n_groups), axis=0)
    columns = [np.bincount(group, weights=a, minlength=n_groups) for a in A.reshape(len(A), -1).T]
    return np.stack(columns, axis=1).reshape(n_groups, *A.shape[1:])

"""Kinds of arrays: one folder each. `contone.backends.numpy.Backend` says what a kind brings along.

`get_backend` is the one place where the kind of an array decides anything; only data checks ask as well. A further kind
is one more folder with a class that derives from `Backend`, and one more line here.
"""

import numpy as np
from array_api_compat import is_dask_array, is_torch_array
from scipy.sparse import issparse

from contone.backends.numpy import Backend, SparseBackend
from contone.backends.numpy.neighbours import Neighbours
from contone.backends.protocols import Draws, Graph, Groups
from contone.typing import Array

__all__ = ["Backend", "Draws", "Graph", "Groups", "Neighbours", "get_backend", "like", "to_numpy"]

_NUMPY, _SPARSE = Backend(), SparseBackend()


def get_backend(*arrays: Array) -> Backend:
    """The backend for these arrays.

    It is dask's if any of them is lazy, else torch's if any is a tensor, else that of sparse matrices if any is one,
    else NumPy's. torch and dask are imported only when one of their arrays is there.
    """
    if any(is_dask_array(A) for A in arrays):
        from contone.backends.dask import DaskBackend

        return DaskBackend()
    if any(is_torch_array(A) for A in arrays):
        from contone.backends.torch import TorchBackend

        return TorchBackend()
    return _SPARSE if any(issparse(A) for A in arrays) else _NUMPY


def to_numpy(A: Array) -> np.ndarray:
    """A in the memory of the host; a NumPy array stays as it is."""
    return get_backend(A).to_numpy(A)


def like(A: Array, model: Array) -> Array:
    """A in the library, on the device and in the precision of the floating array `model`; a lazy A stays lazy."""
    return A if is_dask_array(A) else get_backend(model).like(A, model)

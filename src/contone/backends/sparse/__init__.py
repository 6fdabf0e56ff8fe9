"""Sparse matrices of SciPy: features only, and for methods that never need them dense. Everything else is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from contone.backends.numpy import NumpyBackend
from contone.typing import Array


def is_sparse(A: Any) -> bool:
    return bool(sp.issparse(A))


class SparseBackend(NumpyBackend):
    """See `contone.backends.protocols` for what each method does."""

    name = "sparse"

    def to_numpy(self, A: Array) -> np.ndarray:
        return np.asarray(A.toarray() if is_sparse(A) else A)

"""The one place where a sparse matrix meets a dense one, whatever library they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

Array = Any
Sparse = Any


def matmul(S: Sparse, F: Array) -> Array:
    """S F for a sparse S (n, m) and a dense F (m, q): SciPy with NumPy, or a torch CSR tensor with a torch tensor."""
    return S @ F


def submatrix(S: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> sp.csr_array:
    """The block S[rows][:, columns] of a CSR matrix, for integer index arrays."""
    return S[rows][:, columns]

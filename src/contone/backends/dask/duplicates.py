"""Equal rows of a lazy array: their hashes come together, the rows stay where they are."""

from __future__ import annotations

import numpy as np

from contone.backends.dask.rows import compute, map_rows
from contone.backends.numpy.duplicates import hash_rows, number_by_appearance
from contone.backends.protocols import Groups
from contone.typing import Array


def group_duplicates(X: Array) -> Groups:
    """Groups of equal rows of X (n, d), by two hashes: two that agree by chance are one case in 10^38 per pair."""
    codes = compute(map_rows(_two_hashes, X, columns=2, dtype=np.uint64))[0]
    _, first, member = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return number_by_appearance(first, member)


def _two_hashes(X: np.ndarray) -> np.ndarray:
    return np.stack([hash_rows(X), hash_rows(X, 0xD1342543DE82EF95)], axis=1)

"""The data of a cell: arrays and a hash of their content."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from contone import datasets


@lru_cache(maxsize=4)
def load(name: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], str]:
    """X (n, d), D (n, q), the label names and the content hash of a data set; kept in memory for the next cell."""
    data = datasets.load(name)
    X, D = np.ascontiguousarray(data.X, dtype=np.float64), np.ascontiguousarray(data.D, dtype=np.float64)
    return X, D, tuple(str(label) for label in data.label_names), content_hash(X, D)


def content_hash(*arrays: np.ndarray) -> str:
    """A hash of the shapes and values of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:24]

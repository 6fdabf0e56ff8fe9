"""The data of a cell: arrays and a hash of their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

Loaded = tuple[np.ndarray, np.ndarray, tuple[str, ...], str]
"""X (n, d), D (n, q), the label names and the content hash."""


def load(name: str, source: Mapping[str, Any] | None = None) -> Loaded:
    """The data of a cell, kept in memory for the next one; `source` says where they are, where that is not a name."""
    return _load(name, json.dumps(source or {}, sort_keys=True))


@lru_cache(maxsize=4)
def _load(name: str, source: str) -> Loaded:
    from contone.experiments.sources import from_plain, read

    data = read(from_plain(name, json.loads(source)))
    X, D = np.ascontiguousarray(data.X, dtype=np.float64), np.ascontiguousarray(data.D, dtype=np.float64)
    return X, D, tuple(str(label) for label in data.label_names), content_hash(X, D)


def content_hash(*arrays: np.ndarray) -> str:
    """A hash of the shapes and values of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:24]

"""The data of a cell: arrays and a hash of their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Loaded(NamedTuple):
    """X (n, d), D (n, q), the label names, the hash of their content, and what tables call the data set."""

    X: np.ndarray
    D: np.ndarray
    label_names: tuple[str, ...]
    content: str
    title: str


def load(name: str, source: Mapping[str, Any] | None = None) -> Loaded:
    """The data of a cell, kept in memory for the next one; `source` says where they are, where that is not a name."""
    return _load(name, json.dumps(source or {}, sort_keys=True))


@lru_cache(maxsize=4)
def _load(name: str, source: str) -> Loaded:
    from contone.experiments.sources import from_plain, read

    data = read(from_plain(name, json.loads(source)))
    X, D = np.ascontiguousarray(data.X, dtype=np.float64), np.ascontiguousarray(data.D, dtype=np.float64)
    return Loaded(X, D, tuple(str(label) for label in data.label_names), content_hash(X, D), data.name or name)


def content_hash(*arrays: np.ndarray) -> str:
    """A hash of the shapes and values of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:24]

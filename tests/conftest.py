"""Fixtures shared by the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

YEAST = ("spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo")


@pytest.fixture(scope="session")
def real():
    """A loader of real data, ``real("Yeast_cold") -> (X, D)``; the test is skipped where the data is not at hand."""
    folder = os.environ.get("CONTONE_DATA")
    if not folder:
        pytest.skip("CONTONE_DATA is not set: no real data at hand")
    loaded: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def load(stem: str) -> tuple[np.ndarray, np.ndarray]:
        path = Path(folder) / f"{stem}.mat"
        if not path.exists():
            pytest.skip(f"{path.name} is not in CONTONE_DATA")
        if stem not in loaded:
            content = loadmat(path)
            D = np.asarray(content["labels"], dtype=float)
            loaded[stem] = np.asarray(content["features"], dtype=float), D / D.sum(axis=1, keepdims=True)
        return loaded[stem]

    return load


@pytest.fixture
def small():
    """A small problem with some structure: X (60, 5), L (60, 4), D (60, 4)."""
    from contone import CumulativeMass

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Z = X @ rng.normal(size=(5, 4)) * 0.4 + rng.normal(size=(60, 4)) * 0.2
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, CumulativeMass().apply(D).astype(float), D

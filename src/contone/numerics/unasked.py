"""Labels of which some were never asked about: NaN in L (n, q)."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like
from contone.typing import Array


def asked_frequencies(L: Array) -> np.ndarray:
    """How often each label is marked where it was asked, (q,); half a count on either side keeps it inside (0, 1)."""
    backend, asked = get_backend(L), L == L
    xp = array_namespace(L)
    marked, count = backend.compute((asked & (L > 0)).sum(axis=0), asked.sum(axis=0))
    if backend.name == "torch":
        marked, count = backend.to_numpy(xp.astype(marked, L.dtype)), backend.to_numpy(xp.astype(count, L.dtype))
    return (np.asarray(marked, dtype=float) + 0.5) / (np.asarray(count, dtype=float) + 1.0)


def fill_unasked(L: Array, values: np.ndarray) -> Array:
    """L (n, q) in memory with the values (q,) of its labels in place of NaN."""
    xp = array_namespace(L)
    return xp.where(L == L, L, like(values, L)[None, :])

"""What an interval needs to know of the other labels, by brute force."""

from __future__ import annotations

import numpy as np

from contone.measurements import Others


def others_of(Z, L, j):
    """All labels but the j-th of log weights Z (n, q) with logical labels L (n, q)."""
    keep = np.arange(Z.shape[1]) != j
    positive, negative = (L > 0) & keep, (L <= 0) & keep
    return Others(
        np.where(positive, np.exp(Z), 0.0).sum(axis=1),
        np.where(negative, np.exp(Z), 0.0).sum(axis=1),
        np.where(positive, Z, np.inf).min(axis=1),
        np.where(negative, Z, -np.inf).max(axis=1),
        positive.sum(axis=1).astype(float),
    )

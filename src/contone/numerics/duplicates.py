"""Rows that occur more than once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Groups(NamedTuple):
    """The distinct rows of a matrix."""

    member: np.ndarray
    """(n,) number of the distinct row that row i is equal to; distinct rows are numbered in order of appearance."""
    first: np.ndarray
    """(m,) where each distinct row occurs first, ascending."""


def group_duplicates(X: np.ndarray) -> Groups:
    """Group equal rows of X (n, d), in O(n d + n log n).

    Rows are hashed with wrapping integer arithmetic on their bits, which is exact: equal rows always meet. Should
    unequal rows meet too (about one chance in 10^8 for a million rows), comparison of the rows themselves decides.
    """
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 the same bits
    code = np.zeros(X.shape[0], dtype=np.uint64)
    for column in bits.T:
        code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    _, first, member = np.unique(code, return_index=True, return_inverse=True)
    if not np.array_equal(X[first[member]], X):
        _, first, member = np.unique(X, axis=0, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    number = np.empty_like(appearance)
    number[appearance] = np.arange(len(first))
    return Groups(number[member.ravel()], first[appearance])

"""Equal rows of NumPy arrays.

Rows are hashed with wrapping integer arithmetic on their bits, which is exact: equal rows always meet. Should unequal
rows meet too (about one chance in 10^8 for a million rows), comparison of the rows themselves decides.
"""

import numpy as np

from contone.backends.protocols import Groups


def group_duplicates(X: np.ndarray) -> Groups:
    """Groups of equal rows of X (n, d)."""
    _, first, member = np.unique(hash_rows(X), return_index=True, return_inverse=True)
    if not np.array_equal(X[first[member]], X):
        _, first, member = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return number_by_appearance(first, member)


def hash_rows(X: np.ndarray) -> np.ndarray:
    """A hash (n,) of the rows."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 the same bits
    code = np.zeros(X.shape[0], dtype=np.uint64)
    for column in bits.T:
        code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    return code


def number_by_appearance(first: np.ndarray, member: np.ndarray) -> Groups:
    """Groups numbered in order of appearance, from where each occurs first (m,) and which one a row (n,) is in."""
    appearance = np.argsort(first)
    number = np.empty_like(appearance)
    number[appearance] = np.arange(len(first))
    return Groups(number[member.ravel()], first[appearance])

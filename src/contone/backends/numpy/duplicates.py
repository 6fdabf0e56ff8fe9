"""Rows that occur more than once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_dask_array, is_torch_array

from contone.backends.dask.rows import by_rows, gathered

Array = Any


class Groups(NamedTuple):
    """The distinct rows of a matrix."""

    member: Array
    """(n,) number of the distinct row that row i is equal to; distinct rows are numbered in order of appearance."""
    first: Array
    """(m,) where each distinct row occurs first, ascending."""


def group_duplicates(X: Array) -> Groups:
    """Group equal rows of X (n, d), in O(n d + n log n).

    Rows are hashed with wrapping integer arithmetic on their bits, which is exact: equal rows always meet. Should
    unequal rows meet too (about one chance in 10^8 for a million rows), comparison of the rows themselves decides.
    """
    if is_torch_array(X):
        return _group_tensor(X)
    if is_dask_array(X):
        # The rows themselves are far away; two hashes that agree by chance are one case in 10^38 a pair.
        codes = gathered(by_rows(_two_codes, X, columns=2, dtype=np.uint64))
        _, first, member = np.unique(codes, axis=0, return_index=True, return_inverse=True)
        return _numbered(first, member)
    _, first, member = np.unique(_code(X), return_index=True, return_inverse=True)
    if not np.array_equal(X[first[member]], X):
        _, first, member = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return _numbered(first, member)


def _code(X: np.ndarray, factor: int = 0x9E3779B97F4A7C15) -> np.ndarray:
    """A hash (n,) of the rows."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 the same bits
    code = np.zeros(X.shape[0], dtype=np.uint64)
    for column in bits.T:
        code = (code ^ column) * np.uint64(factor)
        code ^= code >> np.uint64(29)
    return code


def _two_codes(X: np.ndarray) -> np.ndarray:
    return np.stack([_code(X), _code(X, 0xD1342543DE82EF95)], axis=1)


def _numbered(first: np.ndarray, member: np.ndarray) -> Groups:
    """Groups numbered in order of appearance."""
    appearance = np.argsort(first)
    number = np.empty_like(appearance)
    number[appearance] = np.arange(len(first))
    return Groups(number[member.ravel()], first[appearance])


def _group_tensor(X: Any) -> Groups:
    """The same for a torch tensor, where it lies: hashes meet in a sort, and rows that meet are compared."""
    import torch

    whole = torch.int64 if X.element_size() == 8 else torch.int32
    code = torch.zeros(X.shape[0], dtype=torch.int64, device=X.device)
    for column in (X + 0.0).T.contiguous().view(whole):
        code = (code ^ column) * -0x61C8864680B583EB  # the same factor, as a signed number
        code = code ^ ((code >> 29) & (2**35 - 1))
    _, member = torch.unique(code, return_inverse=True)
    number, first = _by_appearance(member)
    if not torch.equal(X[first[number]], X):
        number, first = _by_appearance(torch.unique(X, dim=0, return_inverse=True)[1])
    return Groups(number, first)


def _by_appearance(member: Any) -> tuple[Any, Any]:
    """Groups (n,) renumbered in the order in which they appear first, and where that is."""
    import torch

    n = member.numel()
    first = member.new_full((int(member.max()) + 1,), n)
    first = first.scatter_reduce(0, member, torch.arange(n, device=member.device), "amin")
    first, order = torch.sort(first)
    number = torch.empty_like(order)
    number[order] = torch.arange(order.numel(), device=member.device)
    return number[member], first

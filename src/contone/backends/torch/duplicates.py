"""Equal rows of tensors, where they lie: hashes meet in a sort, and rows that meet are compared."""

import torch
from torch import Tensor

from contone.backends.protocols import Groups


def group_duplicates(X: Tensor) -> Groups:
    """Groups of equal rows of X (n, d)."""
    whole = torch.int64 if X.element_size() == 8 else torch.int32
    code = torch.zeros(X.shape[0], dtype=torch.int64, device=X.device)
    for column in (X + 0.0).T.contiguous().view(whole):
        code = (code ^ column) * -0x61C8864680B583EB  # NumPy's factor, as a signed number
        code = code ^ ((code >> 29) & (2**35 - 1))
    _, member = torch.unique(code, return_inverse=True)
    number, first = _number_by_appearance(member)
    if not torch.equal(X[first[number]], X):
        number, first = _number_by_appearance(torch.unique(X, dim=0, return_inverse=True)[1])
    return Groups(number, first)


def _number_by_appearance(member: Tensor) -> tuple[Tensor, Tensor]:
    """Groups (n,) renumbered in the order in which they appear first, and where that is."""
    n = member.numel()
    first = member.new_full((int(member.max()) + 1,), n)
    first = first.scatter_reduce(0, member, torch.arange(n, device=member.device), "amin")
    first, order = torch.sort(first)
    number = torch.empty_like(order)
    number[order] = torch.arange(order.numel(), device=member.device)
    return number[member], first

"""SharedLabels: labels that often occur together lend each other weight.

With J_jk = |rows with j and k| / |rows with j or k| (Jaccard's index, J_jj = 1), a row of labels l becomes

    d_j  proportional to  (1 - share) l_j + share * sum_k J_jk l_k / sum_k l_k,

so that a label that was not given but usually comes with those that were gets some weight. share = 0 is L / |L|.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from contone.base import Enhancer, Interval
from contone.numerics.solution import Solution


class SharedLabels(Enhancer):
    """Labels that often occur together lend each other weight.

    Parameters
    ----------
    share : float, default=0.5
        Weight of the labels' company: 0 leaves the labels as they are, 1 asks the company only.
    """

    reference = "an example"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"share": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, *, share: float = 0.5) -> None:
        self.share = share

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        D = (1.0 - self.share) * L + self.share * (L @ jaccard(L)) / L.sum(axis=1, keepdims=True)
        return Solution(D / D.sum(axis=1, keepdims=True))


def jaccard(L: np.ndarray) -> np.ndarray:
    """J (q, q) of labels L (n, q); a label that never occurs is like itself only."""
    both = L.T @ L
    count = np.diag(both)
    either = count[:, None] + count[None, :] - both
    J = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    np.fill_diagonal(J, 1.0)
    return J

"""D -> L: the forward operators that turn a label distribution into logical labels.

Benchmarks of label enhancement start from known distributions and degrade them; `CumulativeMass(0.5)` is the rule
behind the published logical labels of the field. Annotators follow rules too; `TopK` and `Threshold` model the usual
ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from contone.exceptions import InputError
from contone.validation import check_distributions


class Degradation(ABC):
    """A rule D -> L. Every row keeps at least one label; ties go to the label with the lower index."""

    def apply(self, D: Any) -> np.ndarray:
        """Logical labels (n, q), int8 in {0, 1}, of the label distributions D (n, q)."""
        return self._apply(check_distributions(D)).astype(np.int8)

    @abstractmethod
    def _apply(self, D: np.ndarray) -> np.ndarray:
        """D (n, q), checked, to a bool matrix (n, q)."""


@dataclass(frozen=True)
class CumulativeMass(Degradation):
    """Labels from the largest degree down, until their sum is strictly more than t.

    Examples
    --------
    >>> CumulativeMass(0.5).apply([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]).tolist()
    [[0, 1, 1], [1, 0, 0]]
    """

    t: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.t < 1:
            raise InputError(f"CumulativeMass: t must be in [0, 1); got {self.t}.")

    def _apply(self, D: np.ndarray) -> np.ndarray:
        order, ranked = _descending(D)
        # A label is needed as long as those before it have not yet passed t.
        needed = np.ones(D.shape, dtype=bool)
        needed[:, 1:] = np.cumsum(ranked, axis=1)[:, :-1] <= self.t
        return _scatter(order, needed)


@dataclass(frozen=True)
class TopK(Degradation):
    """The k labels with the largest degrees.

    Examples
    --------
    >>> TopK(2).apply([[0.2, 0.5, 0.3]]).tolist()
    [[0, 1, 1]]
    """

    k: int = 1

    def __post_init__(self) -> None:
        if self.k < 1 or int(self.k) != self.k:
            raise InputError(f"TopK: k must be a positive whole number; got {self.k}.")

    def _apply(self, D: np.ndarray) -> np.ndarray:
        order, _ = _descending(D)
        return _scatter(order, np.broadcast_to(np.arange(D.shape[1]) < self.k, D.shape))


@dataclass(frozen=True)
class Threshold(Degradation):
    """The labels with a degree of more than tau; the largest one where no label reaches it.

    Examples
    --------
    >>> Threshold(0.25).apply([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """

    tau: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.tau < 1:
            raise InputError(f"Threshold: tau must be in [0, 1); got {self.tau}.")

    def _apply(self, D: np.ndarray) -> np.ndarray:
        chosen = self.tau < D
        chosen[np.arange(len(D)), D.argmax(axis=1)] = True
        return chosen


def _descending(D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Column order by falling degree, ties by index, and the degrees in that order."""
    order = np.argsort(-D, axis=1, kind="stable")
    return order, np.take_along_axis(D, order, axis=1)


def _scatter(order: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """A choice made in sorted order, back in the order of the labels."""
    L = np.empty(order.shape, dtype=bool)
    np.put_along_axis(L, order, chosen, axis=1)
    return L

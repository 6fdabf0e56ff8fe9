"""Answers of people and what persons are like, as values; what may be asked of them is in `likelihood`."""

from typing import NamedTuple, Protocol

import numpy as np

from contone.backends import get_backend
from contone.typing import Array
from contone.typing import Matrix as Matrix

VOTES, LEVELS, MARKED = 0, 1, 2
"""Kinds of answers; of levels, also whether they are above the lowest, whatever the others are."""
SMALLEST = 1e-6
"""Shares below this count as this."""


class Responses(NamedTuple):
    """Responses, sorted by item: those of item i are rows first[i] to first[i + 1] of the others."""

    kind: int
    first: Array
    """(n + 1,), whole numbers."""
    person: Array
    """(m,), whole numbers; 0 is nobody in particular."""
    values: Array
    """(m, q), NaN where a label was not on offer."""


class Traits(NamedTuple):
    """How persons answer; the first of them is nobody in particular."""

    sharpness: Array
    """a (W + 1,)."""
    offset: Array
    """b (W + 1, q)."""
    cuts: Array = np.zeros((1, 0))
    """Cut points (W + 1, K), of levels only."""
    worth: Array = np.zeros((1, 0))
    """What each level counts (1, K + 1), of levels only."""


class Persons(NamedTuple):
    """What is known of the W persons; sharpness and bits (3, W) as means, lower and upper ends of 90 % intervals."""

    answers: np.ndarray
    """(W,)."""
    offset: Matrix
    """(W, q), means."""
    offset_deviation: Matrix
    """(W, q)."""
    sharpness: Matrix
    bits: Matrix


class Features(Protocol):
    """A feature of the mean: one number per item and label, at any spread."""

    told: Array
    """(n, q): log shares, or logits of chances, that answers are expected to have."""

    def at(self, spread: float) -> Matrix:
        """(n, q)."""


def is_on_gpu(X: Array) -> bool:
    """Whether X is a tensor outside the memory of the host."""
    return get_backend(X).name == "torch" and X.device.type != "cpu"

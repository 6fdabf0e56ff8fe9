"""Labels that are wrong: positives that were not marked, and negatives that were.

    P(marked | positive) = 1 - missed,   P(marked | negative) = false,   entry by entry.

"Positive and unlabelled" data have missed > 0 and false = 0, and are the commonest case of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom


class Flips(NamedTuple):
    """Shares of wrong entries among positives and among negatives."""

    missed: float = 0.0
    false: float = 0.0

    @classmethod
    def of(cls, noise: float | tuple[float, float]) -> Flips:
        """What the parameter `noise` says: one share for both, or one for each."""
        return cls(*noise) if isinstance(noise, tuple) else cls(noise, noise)

    def any(self) -> bool:
        """Whether labels may be wrong at all."""
        return self.missed > 0 or self.false > 0

    def numbers(self, q: int) -> NDArray[np.float64]:
        """P(b of q labels are marked | a are positive), (q + 1, q + 1) by a and b: a sum of two binomial variables."""
        found = np.zeros((q + 1, q + 1))
        for a in range(q + 1):
            kept = binom.pmf(np.arange(a + 1), a, 1.0 - self.missed)
            found[a] = np.convolve(kept, binom.pmf(np.arange(q - a + 1), q - a, self.false))
        return found

    def applied(self, positive: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Labels (n, q) as they are marked, given those that are positive."""
        wrong: NDArray[np.bool_] = rng.random(positive.shape) < np.where(positive, self.missed, self.false)
        return positive ^ wrong


NO_FLIPS = Flips()

"""One number from a density: slice sampling with stepping out (Neal 2003)."""

from collections.abc import Callable

import numpy as np

MOST_STEPS = 60


def slice_step(log_density: Callable[[float], float], x: float, width: float, rng: np.random.Generator) -> float:
    """A draw that leaves exp(log_density) invariant, from x; `width` is a typical distance."""
    height = log_density(x) + np.log(rng.random())
    low = x - width * rng.random()
    high = low + width
    for _ in range(MOST_STEPS):
        if log_density(low) < height:
            break
        low -= width
    for _ in range(MOST_STEPS):
        if log_density(high) < height:
            break
        high += width
    while True:
        found = low + (high - low) * rng.random()
        if log_density(found) >= height or abs(high - low) < 1e-12:
            return float(found)
        low, high = (found, high) if found < x else (low, found)

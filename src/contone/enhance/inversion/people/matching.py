"""Log weights whose *mean share* is given: mu with E softmax(mu + s e) = M, e standard normal.

A regression on votes says how often people choose a label, M: that is the mean share, not the share at the mean of z.
Noise in z pulls mean shares together, so mu lies further out than log M, the more the larger s is. With mu in place of
log M as a feature, coefficients near 1 fit at every s: one vote per item, which tells only mean shares, then leaves s
to its prior, as it should.

The mean share of one label is that of a logistic function of a normal number, if the log of the sum of the other
weights is taken as normal (Fenton and Wilkinson's approximation: its first two moments). Newton's method is not needed:
mu + log M - log E repeats to 1e-3 in some five steps. The difference from exact mean shares is a KL of 2e-4 at s = 1
and 1e-3 at s = 1.5 (cifar10h's shares), which the coefficients take up.
"""

import math

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from contone.enhance.inversion.people.answers import SMALLEST
from contone.typing import Array

SPREADS = np.exp(np.linspace(math.log(0.2), math.log(4.0), 13))
"""Where the map is worked out; in between it is interpolated, linearly in log s."""
NODES, WEIGHTS = (A.tolist() for A in np.polynomial.hermite_e.hermegauss(11))


def match(log_share: Array, s: float, mu: Array) -> None:
    """Move the rows of mu (n, q) to where their mean shares are exp(log_share)."""
    xp, grown = array_namespace(mu), math.expm1(s * s)
    left = xp.nonzero(mu[:, 0] == mu[:, 0])[0]
    for _ in range(40):
        here = mu[left]
        here = here - xp.max(here, axis=1, keepdims=True)
        a = xp.exp(here)
        others = xp.clip(xp.sum(a, axis=1, keepdims=True) - a, min=1e-300)
        squares = xp.clip(xp.sum(a**2, axis=1, keepdims=True) - a**2, min=0.0)
        v = xp.log1p(squares / others**2 * grown)
        centre, width = here - xp.log(others) - 0.5 * (s * s - v), xp.sqrt(s * s + v)
        p = sum(w / (1.0 + xp.exp(-centre - width * x)) for x, w in zip(NODES, WEIGHTS, strict=True))
        step = log_share[left] - xp.log(p / xp.sum(p, axis=1, keepdims=True))
        here = here + 1.3 * step
        mu[left] = here - xp.mean(here, axis=1, keepdims=True)
        left = left[xp.max(xp.abs(step), axis=1) >= 1e-3]
        if len(left) == 0:
            break


class MatchedChances:
    """Features whose mean chances of a mark are given, M (n, q): mu with E F(mu + s e) = M, F logistic.

    F is close to a normal distribution function with variance 8 / pi, whose mean is known: mu = sqrt(1 + pi s^2 / 8)
    F^-1(M), right to 2 % of mu at s = 2.
    """

    def __init__(self, M: NDArray[np.float64]) -> None:
        M = np.clip(M, SMALLEST, 1.0 - SMALLEST)
        self.told = np.log(M) - np.log1p(-M)

    def at(self, spread: float) -> NDArray[np.float64]:
        """Features (n, q)."""
        return math.sqrt(1.0 + math.pi / 8 * spread**2) * self.told


class MatchedShares:
    """Features whose mean shares are given, M (n, q), at any spread."""

    def __init__(self, M: Array) -> None:
        """M is a NumPy array, or a tensor on a GPU."""
        xp = array_namespace(M)
        M = xp.clip(M, min=SMALLEST)
        self.told = xp.log(M / xp.sum(M, axis=1, keepdims=True))
        self.known: dict[int, Array] = {}

    def at(self, spread: float) -> Array:
        """Features (n, q), rows with sum zero."""
        position = np.interp(math.log(spread), np.log(SPREADS), np.arange(len(SPREADS)))
        g = min(int(position), len(SPREADS) - 2)
        t = position - g
        found = (1.0 - t) * self._at_node(g)
        found += t * self._at_node(g + 1)
        return found

    def _at_node(self, g: int) -> Array:
        if g not in self.known:
            near = min(self.known, key=lambda h: abs(h - g)) if self.known else None
            mu, s = 1.0 * (self.told if near is None else self.known[near]), float(SPREADS[g])
            match(self.told, s, mu)
            self.known[g] = mu
        return self.known[g]

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

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from contone.backends import get_backend
from contone.enhance.inversion.people.answers import SMALLEST
from contone.enhance.inversion.sweeps.elementary import compiled
from contone.typing import Array

SPREADS = np.exp(np.linspace(math.log(0.2), math.log(4.0), 13))
"""Where the map is worked out; in between it is interpolated, linearly in log s."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@compiled
def _match(start, stop, log_share, s, nodes, weights, mu):
    """Move the rows of mu (n, q) from start to stop to where their mean shares are exp(log_share)."""
    q = mu.shape[1]
    a, p = np.empty(q), np.empty(q)
    grown = math.expm1(s * s)
    for i in range(start, stop):
        for _ in range(40):
            top, A, B = -math.inf, 0.0, 0.0
            for j in range(q):
                top = max(top, mu[i, j])
            for j in range(q):
                a[j] = math.exp(mu[i, j] - top)
                A += a[j]
                B += a[j] * a[j]
            total = 0.0
            for j in range(q):
                others = max(A - a[j], 1e-300)
                v = math.log1p(min(max(B - a[j] * a[j], 0.0) / (others * others), 1.0) * grown)
                centre = mu[i, j] - top - math.log(others) - 0.5 * (s * s - v)
                width = math.sqrt(s * s + v)
                p[j] = 0.0
                for k in range(len(nodes)):
                    p[j] += weights[k] / (1.0 + math.exp(-(centre + width * nodes[k])))
                total += p[j]
            longest, level = 0.0, 0.0
            for j in range(q):
                step = log_share[i, j] - math.log(p[j] / total)
                longest = max(longest, abs(step))
                mu[i, j] += 1.3 * step
                level += mu[i, j] / q
            for j in range(q):
                mu[i, j] -= level
            if longest < 1e-3:
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
        return (1.0 - t) * self._at_node(g) + t * self._at_node(g + 1)

    def _at_node(self, g: int) -> Array:
        if g not in self.known:
            near = min(self.known, key=lambda h: abs(h - g)) if self.known else None
            mu, s = 1.0 * (self.told if near is None else self.known[near]), float(SPREADS[g])
            if get_backend(mu).name == "torch":
                from contone.enhance.inversion.people.tensors import match

                match(self.told, s, NODES, WEIGHTS, mu)
            else:
                _match(0, len(mu), self.told, s, NODES, WEIGHTS, mu)
            self.known[g] = mu
        return self.known[g]

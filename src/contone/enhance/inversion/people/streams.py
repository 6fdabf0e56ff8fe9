"""Random numbers inside compiled loops: a stream of its own for every row, so that threads make no difference.

SplitMix64 (Steele, Lea, Flood 2014): the state grows by an odd constant, and the output is a mix of its bits. A state
is an array of one uint64 that `start_stream` sets from a seed and the number of a row.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from contone.enhance.inversion.sweeps.elementary import compiled

GROWTH = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
UNIT = 1.0 / 9007199254740992.0


@compiled
def _mixed(x):
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return x ^ (x >> S31)


@compiled
def start_stream(state, seed, row):
    """Set the state (1,) of the stream of a row."""
    state[0] = _mixed(_mixed(np.uint64(seed) + GROWTH) + np.uint64(row) * GROWTH)


@compiled
def uniform(state):
    """A number between 0 and 1, neither of them."""
    state[0] += GROWTH
    return (float(_mixed(state[0]) >> S11) + 0.5) * UNIT


@compiled
def fill_normal(state, out):
    """Fill `out` (q,) with standard normal numbers, two at a time (Marsaglia's polar method)."""
    q = len(out)
    j = 0
    while j < q:
        u, v = 2.0 * uniform(state) - 1.0, 2.0 * uniform(state) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            r = math.sqrt(-2.0 * math.log(s) / s)
            out[j] = u * r
            if j + 1 < q:
                out[j + 1] = v * r
            j += 2

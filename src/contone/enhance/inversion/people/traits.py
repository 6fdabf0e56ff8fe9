"""What the chain says of persons: how sharp they are, what they choose too often, how much one answer of theirs tells.

An answer of person w tells, about which item it is given to, the mutual information

    I_w = H(mean over items of p_w(. | z_i)) - mean over items of H(p_w(. | z_i))

in bits: nothing where the answer is always the same, or falls at random whatever the item is.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from contone.enhance.inversion.people.answers import Matrix, Persons
from contone.enhance.inversion.people.chain import Chain
from contone.enhance.inversion.people.levels import bits_of_levels
from contone.enhance.inversion.sweeps.elementary import compiled

EVERY = 4
"""Persons are looked at after so many sweeps."""
MOST_ITEMS = 200
"""Items that the answers of persons are compared on."""


class Watch:
    """Draws of persons that are kept."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.items = np.sort(np.random.default_rng(0).permutation(len(chain.Z))[:MOST_ITEMS])
        self.offset: list[Matrix] = []
        self.sharpness: list[Matrix] = []
        self.bits: list[Matrix] = []

    def look(self, number: int) -> None:
        """After a sweep that is kept, the number-th."""
        if self.chain.n_persons and (number % EVERY == 1):
            traits = self.chain.traits
            self.offset.append(traits.offset[1:].copy())
            self.sharpness.append(traits.sharpness[1:].copy())
            persons = (self.chain.Z[self.items], traits.sharpness[1:], traits.offset[1:])
            levels = traits.cuts.shape[1] > 0
            self.bits.append(bits_of_levels(*persons, traits.cuts[1:]) if levels else bits_of_votes(*persons))

    def persons(self) -> Persons | None:
        """What was seen."""
        if not self.offset:
            return None
        answers, offset = np.diff(self.chain.by_person.first)[1:], np.stack(self.offset)
        return Persons(answers, offset.mean(axis=0), offset.std(axis=0), _ends(self.sharpness), _ends(self.bits))


def _ends(drawn: list[Matrix]) -> Matrix:
    stacked = np.stack(drawn)
    return np.stack([stacked.mean(axis=0), *np.quantile(stacked, [0.05, 0.95], axis=0)])


@compiled
def bits_of_votes(Z, sharpness, offset):
    """I_w (W,) of the votes of persons on items with log weights Z (n, q)."""
    n, q = Z.shape
    found, p, mean = np.empty(len(sharpness)), np.empty(q), np.empty(q)
    for w in range(len(sharpness)):
        mean[:] = 0.0
        own = 0.0
        for i in range(n):
            top, total = -math.inf, 0.0
            for j in range(q):
                p[j] = sharpness[w] * Z[i, j] + offset[w, j]
                top = max(top, p[j])
            for j in range(q):
                p[j] = math.exp(p[j] - top)
                total += p[j]
            for j in range(q):
                p[j] /= total
                mean[j] += p[j] / n
                if p[j] > 0.0:
                    own -= p[j] * math.log(p[j]) / n
        among = 0.0
        for j in range(q):
            if mean[j] > 0.0:
                among -= mean[j] * math.log(mean[j])
        found[w] = max(among - own, 0.0) / math.log(2.0)
    return found

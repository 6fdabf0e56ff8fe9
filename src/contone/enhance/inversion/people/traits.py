"""What the chain says of persons: how sharp they are, what they choose too often, how much one answer of theirs tells.

An answer of person w tells, about which item it is given to, the mutual information

    I_w = H(mean over items of p_w(. | z_i)) - mean over items of H(p_w(. | z_i))

in bits: nothing where the answer is always the same, or falls at random whatever the item is.
"""

import math

import numpy as np
from scipy.special import entr, expit

from contone.enhance.inversion.people.answers import Matrix, Persons, Traits
from contone.enhance.inversion.people.chain import Chain
from contone.numerics.simplex import softmax

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
            persons = traits._replace(sharpness=traits.sharpness[1:], offset=traits.offset[1:], cuts=traits.cuts[1:])
            self.bits.append(bits_of(self.chain.Z[self.items], persons))

    def persons(self) -> Persons | None:
        """What was seen."""
        if not self.offset:
            return None
        answers, offset = np.diff(self.chain.by_person.first)[1:], np.stack(self.offset)
        return Persons(answers, offset.mean(axis=0), offset.std(axis=0), _ends(self.sharpness), _ends(self.bits))


def _ends(drawn: list[Matrix]) -> Matrix:
    stacked = np.stack(drawn)
    return np.stack([stacked.mean(axis=0), *np.quantile(stacked, [0.05, 0.95], axis=0)])


def bits_of(Z: Matrix, traits: Traits) -> Matrix:
    """I_w (W,) of the answers of persons about items with log weights Z (n, q); of levels, the sum over labels."""
    found = np.empty(len(traits.sharpness))
    for w, (a, b) in enumerate(zip(traits.sharpness, traits.offset, strict=True)):
        seen = a * Z + b
        if traits.cuts.shape[1] == 0:
            P = softmax(seen)
        else:
            above = expit(seen[:, :, None] - traits.cuts[w])
            P = -np.diff(above, axis=2, prepend=1.0, append=0.0)
        found[w] = max(float((entr(P.mean(axis=0)) - entr(P).mean(axis=0)).sum()), 0.0) / math.log(2.0)
    return found

"""Draws of persons: offsets b_w and log sharpness by elliptical slice sampling, which needs the likelihood alone.

    b_w ~ N(0, tau^2 V),   log a_w ~ N(0, kappa^2),   chances softmax(a_w (z - c) + c + b_w)

`Traits.offset` holds b_w + (1 - a_w) c: somebody who does not look at the item (a_w = 0) chooses as is usual, c.

A person's traits turn on an ellipse through where they are and a draw of their prior, to a point as likely as a height
that was drawn before (Murray, Adams and MacKay 2010). No step size is to be chosen, and nothing is rejected.
"""

# mypy: disable-error-code="no-untyped-def"

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contone.enhance.inversion.people.answers import Responses
from contone.enhance.inversion.people.likelihood import log_likelihood
from contone.enhance.inversion.people.streams import fill_normal, start_stream, uniform
from contone.enhance.inversion.sweeps.elementary import compiled


class ByPerson(NamedTuple):
    """Which responses a person gave: numbers order[first[w]] to order[first[w + 1] - 1], and the item of each."""

    first: NDArray[np.intp]
    order: NDArray[np.intp]
    item: NDArray[np.intp]


def sort_by_person(responses: Responses, n_persons: int) -> ByPerson:
    """Responses of persons 1 to n_persons; those of nobody in particular come first."""
    order = np.argsort(responses.person, kind="stable")
    first = np.searchsorted(responses.person[order], np.arange(n_persons + 2))
    item = np.repeat(np.arange(len(responses.first) - 1), np.diff(responses.first))
    return ByPerson(first, order, item)


@compiled
def likelihood_of_person(w, Z, responses, traits, by_person):
    """Log likelihood of all responses of person w."""
    total = 0.0
    for k in range(by_person.first[w], by_person.first[w + 1]):
        r = by_person.order[k]
        total += log_likelihood(Z[by_person.item[r]], r, responses, traits)
    return total


@compiled
def draw_persons(seed, root, kappa, usual, Z, responses, traits, by_person):
    """One step for everybody but person 0; `traits` are changed in place.

    `root` (q, r) makes offsets of normal numbers.
    """
    q, r = root.shape
    state = np.zeros(1, np.uint64)
    normal, drawn, was = np.empty(r + 1), np.empty(q + 1), np.empty(q + 1)
    for w in range(1, len(traits.sharpness)):
        start_stream(state, seed, w)
        fill_normal(state, normal)
        for j in range(q):
            drawn[j] = 0.0
            for k in range(r):
                drawn[j] += root[j, k] * normal[k]
            was[j] = traits.offset[w, j] - (1.0 - traits.sharpness[w]) * usual[j]
        drawn[q] = kappa * normal[r]
        was[q] = math.log(traits.sharpness[w])
        height = likelihood_of_person(w, Z, responses, traits, by_person) + math.log(uniform(state))
        angle = 2.0 * math.pi * uniform(state)
        low, high = angle - 2.0 * math.pi, angle
        while True:
            c, s = math.cos(angle), math.sin(angle)
            a = math.exp(c * was[q] + s * drawn[q])
            traits.sharpness[w] = a
            for j in range(q):
                traits.offset[w, j] = c * was[j] + s * drawn[j] + (1.0 - a) * usual[j]
            if likelihood_of_person(w, Z, responses, traits, by_person) >= height:
                break
            if abs(angle) < 1e-12:  # rounding: this is where the person was
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * uniform(state)

"""Draws of the log weights of items: one Metropolis step each, proposed near the mode of its posterior.

    z_i ~ N(mu_i, (w_i P)^-1) beside the likelihood of its responses

Newton's method finds the mode, which does not depend on where z_i is, and the proposal is a t distribution around it
with the curvature there: its tails are heavier than those of the posterior, so that no value holds on to the chain.
Draws are exact for any number of votes, and nearly independent.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from contone.enhance.inversion.people.likelihood import add_terms, log_likelihood
from contone.enhance.inversion.people.small import factorise, solve_lower, solve_upper
from contone.enhance.inversion.people.streams import fill_normal, start_stream, uniform
from contone.enhance.inversion.sweeps.elementary import compiled, inlined

TAIL = 8
"""Degrees of freedom of the proposal."""
MOST_STEPS = 60
"""Of Newton's method; it takes 2 to 5."""
CLOSE = 1e-5
"""Where a step of Newton's method is shorter than this in every coordinate, the mode is found."""


@compiled
def likelihood_of_items(start, stop, Z, responses, traits):
    """Log likelihood of all responses to items from start to stop."""
    total = 0.0
    for i in range(start, stop):
        for r in range(responses.first[i], responses.first[i + 1]):
            total += log_likelihood(Z[i], r, responses, traits)
    return total


@compiled
def slopes_of_items(start, stop, Z, responses, traits, slope):
    """The same, and its slope (n, q) by Z."""
    total, room, none = 0.0, np.empty(Z.shape[1]), np.empty((0, 0))
    for i in range(start, stop):
        slope[i] = 0.0
        for r in range(responses.first[i], responses.first[i + 1]):
            total += add_terms(Z[i], r, responses, traits, room, slope[i], none)
    return total


@inlined
def half_square(z, mean, P, w):
    """(z - mean)' w P (z - mean) / 2."""
    total = 0.0
    for j in range(len(z)):
        s = 0.5 * P[j, j] * (z[j] - mean[j])
        for k in range(j):
            s += P[j, k] * (z[k] - mean[k])
        total += s * (z[j] - mean[j])
    return w * total


@compiled
def find_mode(i, m, mean, w, P, responses, traits, gradient, H, room, step):
    """Move m (q,) to the mode of item i; H then holds the factor of the curvature there."""
    q, highest = len(m), -math.inf
    for _ in range(MOST_STEPS):
        for j in range(q):
            gradient[j] = 0.0
            for k in range(q):
                gradient[j] -= w * P[j, k] * (m[k] - mean[k])
            for k in range(j + 1):
                H[j, k] = w * P[j, k]
        value = -half_square(m, mean, P, w)
        for r in range(responses.first[i], responses.first[i + 1]):
            value += add_terms(m, r, responses, traits, room, gradient, H)
        if value < highest - 1e-9 * abs(highest):  # too far: back by half
            for j in range(q):
                step[j] *= 0.5
                m[j] -= step[j]
            continue
        highest = value
        factorise(H)
        for j in range(q):
            step[j] = gradient[j]
        solve_lower(H, step)
        solve_upper(H, step)
        longest = 0.0
        for j in range(q):
            longest = max(longest, abs(step[j]))
        if longest < CLOSE:
            return
        for j in range(q):
            m[j] += step[j]


@compiled
def draw_items(start, stop, seed, Z, mode, mean, weight, P, responses, traits, free):
    """One step for the rows of Z (n, q) from start to stop that are free.

    `mode` (n, q) holds where Newton's method starts, and then the modes; P (q, q) is the common precision.
    """
    q = Z.shape[1]
    state = np.zeros(1, np.uint64)
    H, gradient, room, step = np.empty((q, q)), np.empty(q), np.empty(q), np.empty(q)
    normal, proposed = np.empty(q + TAIL), np.empty(q)
    for i in range(start, stop):
        if not free[i]:
            continue
        start_stream(state, seed, i)
        z, m, mu, w = Z[i], mode[i], mean[i], weight[i]
        find_mode(i, m, mu, w, P, responses, traits, gradient, H, room, step)
        fill_normal(state, normal)
        chi = 0.0
        for j in range(q, q + TAIL):
            chi += normal[j] * normal[j]
        there = 0.0
        for j in range(q):
            proposed[j] = normal[j] * math.sqrt(TAIL / chi)
            there += proposed[j] * proposed[j]
        solve_upper(H, proposed)
        here = 0.0
        for j in range(q):
            proposed[j] += m[j]
            s = 0.0
            for k in range(j, q):
                s += H[k, j] * (z[k] - m[k])
            here += s * s
        ratio = 0.5 * (TAIL + q) * (math.log1p(there / TAIL) - math.log1p(here / TAIL))
        ratio += half_square(z, mu, P, w) - half_square(proposed, mu, P, w)
        for r in range(responses.first[i], responses.first[i + 1]):
            ratio += log_likelihood(proposed, r, responses, traits) - log_likelihood(z, r, responses, traits)
        if math.log(uniform(state)) < ratio:
            for j in range(q):
                z[j] = proposed[j]

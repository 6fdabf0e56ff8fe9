"""Rows at given parameters: what their responses leave of their log weights, each row by itself.

Newton's method finds where z_i is likely, and a t distribution around it with the curvature there gives points, the
same directions for all rows, that are weighed by how likely they are (importance sampling). The answer to a row then
depends on nothing but the row: not on other rows, blocks, threads or an order.

The prior of z is a t distribution: weights w_i are integrated out. As proposals take w = (nu + q) / (nu + q + Q), Q the
square of the distance of the mode in units of the prior: what is expected of it once z has room around the mode.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, qmc

from contone.enhance.inversion.people.likelihood import answer, log_chance
from contone.enhance.inversion.people.rows import TAIL, find_mode, half_square
from contone.enhance.inversion.people.small import solve_upper
from contone.enhance.inversion.sweeps.elementary import compiled
from contone.typing import Array

N_DIRECTIONS = 16
"""Points that a row is weighed at, for each draw of the parameters."""


def even_normals(n: int, width: int, seed: int = 0) -> Array:
    """n standard normal points (n, width), evenly spread (Sobol's sequence)."""
    points = qmc.Sobol(width, rng=np.random.default_rng(seed)).random(n)
    return ndtri(np.clip(points, 1e-9, 1 - 1e-9))


def even_directions(n: int, q: int, seed: int = 0) -> Array:
    """n points (n, q) of a t distribution with `TAIL` degrees of freedom, in mirrored pairs."""
    normals = even_normals(n // 2, q + 1, seed)
    half = normals[:, :q] * np.sqrt(TAIL / chi2.ppf(ndtr(normals[:, q:]), TAIL))
    return np.concatenate([half, -half])


@compiled
def weigh_rows(
    start, stop, modes, mean, P, nu, responses, traits, people, asked, directions, degrees, logits, squares, evidence
):
    """Adds to the sums (n, q) of rows start to stop the means of shares, logits of shares, and their squares.

    `evidence` (n,) gets log likelihoods of the responses, but for what all rows have in common.

    modes (n, q) are where Newton's method starts, and then the modes. mean (n, q), P (q, q) and nu are those of the
    prior; `traits` are those of persons who are known, the first of them standing for all people; `people` are drawn
    from all people. `asked` is the kind of answer that is wanted of them.
    """
    q, T = mean.shape[1], len(directions)
    H, gradient, room, step = np.empty((q, q)), np.empty(q), np.empty(q), np.empty(q)
    z, share, weight, all_offered = np.empty(q), np.empty((T, q)), np.empty(T), np.zeros(q)
    for i in range(start, stop):
        m, mu, w = modes[i], mean[i], 1.0
        for _ in range(2):
            find_mode(i, m, mu, w, P, responses, traits, gradient, H, room, step)
            w = (nu + q) / (nu + q + 2.0 * half_square(m, mu, P, 1.0))
        heaviest, log_room = -math.inf, 0.0
        for j in range(q):
            log_room += math.log(H[j, j])
        for t in range(T):
            size = 0.0
            for j in range(q):
                z[j] = directions[t, j]
                size += z[j] * z[j]
            solve_upper(H, z)
            for j in range(q):
                z[j] += m[j]
            value = 0.5 * (TAIL + q) * math.log1p(size / TAIL)
            value -= 0.5 * (nu + q) * math.log1p(2.0 * half_square(z, mu, P, 1.0) / nu)
            for r in range(responses.first[i], responses.first[i + 1]):
                value += log_chance(z, r, responses, traits, people, room)
            answer(z, asked, people, all_offered, share[t])
            weight[t] = value
            heaviest = max(heaviest, value)
        total = 0.0
        for t in range(T):
            weight[t] = math.exp(weight[t] - heaviest)
            total += weight[t]
        evidence[i] = heaviest + math.log(total / T) - log_room
        for t in range(T):
            for j in range(q):
                d = share[t, j]
                logit = math.log(max(d, 1e-300)) - math.log(max(1.0 - d, 1e-15))
                degrees[i, j] += weight[t] / total * d
                logits[i, j] += weight[t] / total * logit
                squares[i, j] += weight[t] / total * logit * logit


@compiled
def answers(start, stop, Z, kind, people, out):
    """What people give items with log weights Z (n, q) on average, into rows start to stop of `out` (n, q)."""
    all_offered = np.zeros(Z.shape[1])
    for i in range(start, stop):
        answer(Z[i], kind, people, all_offered, out[i])

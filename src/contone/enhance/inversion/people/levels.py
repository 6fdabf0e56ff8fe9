"""The likelihood of levels, and the draws that only levels need.

A person gives label j of an item the level

    y_j = number of the cut points c_1 < ... < c_K below  a z_j + b_j + e_j,      e_j logistic,

so that P(y_j >= l) = F(m - c_l) with m = a z_j + b_j and F(x) = 1 / (1 + exp(-x)). Marks are the case K = 1. With
h = c_{y+1} - m and l = c_y - m (infinite at the ends),

    log P = log(1 - exp(l - h)) - log(1 + exp(-h)) - log(1 + exp(l)),
    d log P / dm = F(h) + F(l) - 1,     -d^2 log P / dm^2 = F'(h) + F'(l):

concave, and labels are independent given z, so that the information about z is diagonal, and a trait that touches one
label (an offset) or two levels (a cut point) is drawn from the answers that it touches.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from contone.enhance.inversion.people.streams import fill_normal, start_stream, uniform
from contone.enhance.inversion.sweeps.elementary import compiled


@compiled
def logistic(x):
    """1 / (1 + exp(-x))."""
    if x > 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@compiled
def _log1p_exp(x):
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


@compiled
def log_chance_of_level(y, m, cuts, stretch=1.0):
    """Log of the chance of level y (0, ..., K) at m, with cut points (K,) times `stretch`."""
    total = 0.0
    if y < len(cuts):
        total -= _log1p_exp(m - stretch * cuts[y])
        if y > 0:
            total += math.log(-math.expm1(stretch * (cuts[y - 1] - cuts[y])))
    if y > 0:
        total -= _log1p_exp(stretch * cuts[y - 1] - m)
    return total


@compiled
def log_chance_of_levels(z, levels, a, b, cuts):
    """The sum over the labels that were asked."""
    total = 0.0
    for j in range(len(z)):
        if not math.isnan(levels[j]):
            total += log_chance_of_level(int(levels[j]), a * z[j] + b[j], cuts)
    return total


@compiled
def add_terms_of_levels(z, levels, a, b, cuts, gradient, information):
    """The same; adds its gradient (q,) by z and minus its second derivative (q, q)."""
    total = 0.0
    for j in range(len(z)):
        if not math.isnan(levels[j]):
            y, m = int(levels[j]), a * z[j] + b[j]
            total += log_chance_of_level(y, m, cuts)
            above = logistic(cuts[y] - m) if y < len(cuts) else 1.0
            below = logistic(cuts[y - 1] - m) if y > 0 else 0.0
            gradient[j] += a * (above + below - 1.0)
            if len(information) > 0:
                information[j, j] += a * a * (above * (1.0 - above) + below * (1.0 - below))
    return total


@compiled
def _trait_value(x, c, w, centre, scale, log_sharpness, log_stretch, common, Z, responses, offset, by_person):
    """Log density of trait c of person w, an offset, sharpness or stretch, given the answers that it touches."""
    q = Z.shape[1]
    a = math.exp(x if c == q else log_sharpness[w])
    cuts = common * math.exp(x if c == q + 1 else log_stretch[w])
    first, last = (c, c + 1) if c < q else (0, q)
    total = -0.5 * ((x - centre) / scale) ** 2
    for k in range(by_person.first[w], by_person.first[w + 1]):
        r = by_person.order[k]
        i = by_person.item[r]
        for j in range(first, last):
            y = responses.values[r, j]
            if not math.isnan(y):
                total += log_chance_of_level(int(y), a * Z[i, j] + (x if c < q else offset[w, j]), cuts)
    return total


@compiled
def draw_traits(seed, precision, deviations, common, log_sharpness, log_stretch, Z, responses, offset, by_person):
    """Offsets (normal, `precision` (q, q)), log sharpness and log stretch (normal, `deviations` (2,)) of everybody.

    One slice step (Neal 2003) each, one after the other; person 0, nobody in particular, stays as it is.
    """
    q = Z.shape[1]
    n_traits = q + 2 if len(common) > 1 else q + 1
    state, normal = np.zeros(1, np.uint64), np.empty(1)
    for w in range(1, len(offset)):
        start_stream(state, seed, w)
        n_answers = by_person.first[w + 1] - by_person.first[w]
        for c in range(n_traits):
            centre = 0.0
            if c < q:
                for k in range(q):
                    if k != c:
                        centre -= precision[c, k] * offset[w, k] / precision[c, c]
                scale, x = precision[c, c] ** -0.5, offset[w, c]
            else:
                scale = deviations[c - q]
                x = log_sharpness[w] if c == q else log_stretch[w]
            if n_answers == 0:
                fill_normal(state, normal)
                found = centre + scale * normal[0]
            else:
                # about three standard deviations of the posterior: an answer has some 0.15 of information
                width = 3.0 * scale / math.sqrt(1.0 + 0.15 * n_answers * scale * scale)
                told = (c, w, centre, scale, log_sharpness, log_stretch, common, Z, responses, offset, by_person)
                height = math.log(uniform(state)) + _trait_value(x, *told)
                low = x - width * uniform(state)
                high = low + width
                while _trait_value(low, *told) >= height:
                    low -= width
                while _trait_value(high, *told) >= height:
                    high += width
                while True:
                    found = low + (high - low) * uniform(state)
                    if _trait_value(found, *told) >= height or high - low < 1e-12:
                        break
                    if found < x:
                        low = found
                    else:
                        high = found
            if c < q:
                offset[w, c] = found
            elif c == q:
                log_sharpness[w] = found
            else:
                log_stretch[w] = found


@compiled
def cut_value(l, common, M, stretch, levels, first):
    """Log likelihood of the answers next to cut point l: levels l and l + 1 among those sorted by level.

    M, stretch and levels (N,) are of single answers about single labels; those with level y are rows first[y] to
    first[y + 1].
    """
    total = 0.0
    for r in range(first[l], first[l + 2]):
        total += log_chance_of_level(levels[r], M[r], common, stretch[r])
    return total


@compiled
def log_chance_by_anybody(z, levels, people):
    """Log of the chance of the levels of one answer, by one of the people: the mean over them."""
    highest, total = -math.inf, 0.0
    for s in range(len(people.sharpness)):
        value = log_chance_of_levels(z, levels, people.sharpness[s], people.offset[s], people.cuts[s])
        if value > highest:
            total = total * math.exp(highest - value) + 1.0
            highest = value
        else:
            total += math.exp(value - highest)
    return highest + math.log(total / len(people.sharpness))


@compiled
def mean_levels(z, people, worth, out):
    """What people give the labels (q,) on average, each level up to the last of `worth` counted by what it is worth."""
    n = len(people.sharpness)
    for j in range(len(z)):
        out[j] = worth[0]
        for s in range(n):
            m = people.sharpness[s] * z[j] + people.offset[s, j]
            for k in range(len(worth) - 1):
                out[j] += (worth[k + 1] - worth[k]) * logistic(m - people.cuts[s, k]) / n

"""The steps of a compiled sweep, loops over the rows of a tile.

`ReferenceSweeps.sweep` says what a sweep is. What differs here is the bookkeeping, so that a step takes O(1)
operations per row beside Sigma^-1:

- what a rule asks of the other labels is a *balance*, a sum of weights with fixed coefficients, kept up to date, and
  the lowest positive and highest negative weight: those of labels not yet visited are found once for all labels, those
  of labels visited already run along;
- intervals are worked out for weights in place of log weights, so that two logarithms per label are all it takes.

Rows go through all labels in tiles that stay in a processor's cache. Loops over a tile hold no branch and call nothing,
so that the compiler makes vector instructions of them. Weights, their balance and residuals are in double precision;
ends of intervals in log weights, and what is drawn between them, in the precision that log weights are stored in.
Sums, extremes and copies are loops, too: NumPy's functions and slices that are assigned to are compiled along with
them, messages of their errors included, which takes seconds.

Importing this module imports numba.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from contone.enhance.inversion.sweeps.elementary import (
    compiled,
    exponentials,
    larger,
    logarithms,
    probabilities,
    quantiles,
    smaller,
)

ORDER, MASS, BAR, ANY_BAR = 0, 1, 2, 3
"""Kinds of regions, see `measurements.Region`."""
BOUND, RELAXED, KNOWN = 0, 1, 2
"""States of rows: under their region, under the order of positive and negative labels alone, with given degrees."""
LEAST, MOST = math.exp(-60.0), math.exp(80.0)
"""The smallest and the largest weight beside the row's largest so far."""

# Arrays without another shape hold one number per row of a tile. `here` and `W` are log weights and weights of the
# label in turn; the lowest positive and the highest negative weight are those of the labels before it and, ahead, after
# it; `lower` and `upper` are where an interval begins and ends.


@compiled
def find_ends(kind, share, positive, W, lowest_ahead, highest_ahead, lowest, highest, count, balance, lower, upper):
    """The weights between which a label keeps the labels of its rows; its own weight leaves the balance."""
    if kind == MASS:
        of_positive, of_negative, over_share = 1.0 / (1.0 - share), -1.0 / share, 1.0 / share
        for i in range(len(W)):
            own = positive[i] != 0
            others = balance[i] - W[i] * ((1.0 - share) if own else -share)
            low, high = smaller(lowest_ahead[i], lowest[i]), larger(highest_ahead[i], highest[i])
            factor = of_positive if own else of_negative
            spare = (low - others) * factor
            balanced = larger(-others * factor, larger(others * over_share, high) if own else 0.0)
            balanced = balanced if own else smaller(balanced, low)
            lower[i], upper[i] = balanced if own else spare, spare if own else balanced
            balance[i] = others
    elif kind == ORDER:
        for i in range(len(W)):
            own = positive[i] != 0
            lower[i] = larger(highest_ahead[i], highest[i]) if own else 0.0
            upper[i] = math.inf if own else smaller(lowest_ahead[i], lowest[i])
    else:
        odds, over_share = share / (1.0 - share), 1.0 / share
        exempt = 0.0 if kind == BAR else -9.0  # no row has so few labels
        for i in range(len(W)):
            own = positive[i] != 0
            others = balance[i] - W[i]
            low, high = smaller(lowest_ahead[i], lowest[i]), larger(highest_ahead[i], highest[i])
            bar, pushes = others * odds, high * over_share - others
            n_others = count[i] - (1.0 if own else 0.0)
            single = n_others == (0.0 if own else 1.0) + exempt
            allows = math.inf if single or n_others == 0.0 else low * over_share - others
            least, most = larger(pushes, high if single else bar), smaller(bar, low if single else allows)
            lower[i], upper[i] = least if own else pushes, allows if own else most
            balance[i] = others


@compiled
def replace_ends(state, positive, is_zero, highest_zero, lowest_ahead, highest_ahead, lowest, highest, lower, upper):
    """The ends of rows that are relaxed or known, in place of those of their region."""
    for i in range(len(state)):
        if state[i] == RELAXED:
            own = positive[i] != 0
            lower[i] = larger(highest_ahead[i], highest[i]) if own else 0.0
            upper[i] = math.inf if own else smaller(lowest_ahead[i], lowest[i])
        elif state[i] == KNOWN:  # an interval without room holds a log weight where it is
            zero = is_zero[i] != 0
            lower[i], upper[i] = 0.0 if zero else math.inf, math.exp(highest_zero[i]) if zero else 0.0


@compiled
def multiply(own, residual, coefficients, rows, gradient):
    """own residual + coefficients rows, for numbers own and (k,) and rows (k, tile)."""
    m, k = len(residual), 0
    for i in range(m):
        gradient[i] = own * residual[i]
    while k + 4 <= len(rows):
        c0, c1, c2, c3 = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for i in range(m):
            gradient[i] += (c0 * r0[i] + c1 * r1[i]) + (c2 * r2[i] + c3 * r3[i])
        k += 4
    while k < len(rows):
        c0, r0 = coefficients[k], rows[k]
        for i in range(m):
            gradient[i] += c0 * r0[i]
        k += 1


@compiled
def place(here, gradient, variance, margin, root, lower, upper, centre, left, right, side):
    """Ends of log weights from those of weights; their centres, and the ends in standard deviations from there.

    Intervals on the right of zero are mirrored to the lower tail (`side` is -1), where Phi has more digits.
    """
    m, narrow = len(here), 1.0 / math.sqrt(variance)
    for i in range(m):
        lower[i], upper[i] = larger(lower[i], LEAST), smaller(upper[i], MOST)
    logarithms(lower)
    logarithms(upper)
    for i in range(m):
        low, high = lower[i] + margin, upper[i] - margin
        closed, middle = high <= low, here[i] - gradient[i] * variance  # no room: stays where it is
        low, high = here[i] if closed else low, here[i] if closed else high
        lower[i], upper[i], centre[i] = low, high, middle
        a, b = (low - middle) * (narrow * root[i]), (high - middle) * (narrow * root[i])
        mirrored = a > 0.0
        side[i] = -1.0 if mirrored else 1.0
        left[i], right[i] = -b if mirrored else a, -a if mirrored else b


@compiled
def draw(here, variance, u, reflect, far, root, lower, upper, centre, left, right, side, below, above, fresh):
    """New log weights: draws, or reflections at the median of their interval."""
    m, scale, narrow = len(here), math.sqrt(variance), 1.0 / math.sqrt(variance)
    for i in range(m):
        below[i], above[i] = left[i], right[i]
    probabilities(below)
    probabilities(above)
    if reflect:
        for i in range(m):
            fresh[i] = (here[i] - centre[i]) * (narrow * root[i]) * side[i]
        probabilities(fresh)
        for i in range(m):
            other = smaller(larger(above[i] - fresh[i] + below[i], below[i]), above[i])
            drawn = below[i] + u[i] * (above[i] - below[i])
            # Probabilities with too few digits for a reflection: a draw.
            few = right[i] < -0.5 * far
            # What lies so far out that its mirror image is an end of the interval, or infinite, is drawn as well.
            fresh[i] = drawn if few | (other <= below[i]) | (other >= 1.0) else other
    else:
        for i in range(m):
            fresh[i] = below[i] + u[i] * (above[i] - below[i])
    quantiles(fresh)
    for i in range(m):
        z = centre[i] + scale / root[i] * (side[i] * fresh[i])
        fresh[i] = smaller(larger(z, lower[i]), upper[i])


@compiled
def draw_far(variance, u, far, root, lower, upper, centre, left, right, side, fresh):
    """Draws that lie too far out for Phi, again: the density in their interval is taken as exponential."""
    for i in range(len(u)):
        if right[i] < -far:
            covered = -math.expm1(-smaller(-right[i] * (right[i] - left[i]), 80.0))
            y = right[i] - math.log1p(-u[i] * covered) / right[i]
            z = centre[i] + math.sqrt(variance) / root[i] * (side[i] * y)
            fresh[i] = smaller(larger(z, lower[i]), upper[i])


@compiled
def put(positive, of_positive, of_negative, stored, fresh, here, residual, W, balance, lowest, highest, follow, rows):
    """Give a label the log weights `fresh`, as they are stored, and what follows from that."""
    m = len(here)
    for i in range(m):
        stored[i] = fresh[i]
    for i in range(m):
        step = stored[i] - here[i]
        here[i] = W[i] = stored[i]
        residual[i] += step
        fresh[i] = step
    exponentials(W)
    for i in range(m):
        own = positive[i] != 0
        balance[i] += W[i] * (of_positive if own else of_negative)
        lowest[i] = smaller(lowest[i], W[i] if own else math.inf)
        highest[i] = larger(highest[i], 0.0 if own else W[i])
    for k in range(len(follow)):
        c, row = follow[k], rows[k]
        for i in range(m):
            row[i] -= c * fresh[i]


@compiled
def load(Z_in, mean, a, b, along, shift, root, Z, R, top, pull):
    """Log weights (q, tile) below the row's largest, and residuals after the common shift of a row was redrawn."""
    m, total = len(top), 0.0
    for j in range(len(along)):
        total += along[j]
    for i in range(m):
        top[i], pull[i] = -math.inf, 0.0
    for j in range(len(Z)):
        z = Z_in[j, a:b]
        for i in range(m):
            top[i] = larger(top[i], np.float64(z[i]))
    for j in range(len(Z)):
        c, z, here, centre, residual = along[j], Z_in[j, a:b], Z[j], mean[j, a:b], R[j]
        for i in range(m):
            here[i] = z[i] - z.dtype.type(top[i])  # in the precision that is stored
            residual[i] = here[i] - centre[i]
            pull[i] += c * residual[i]
    for i in range(m):
        pull[i] = shift[i] / (math.sqrt(total) * root[i]) - pull[i] / total
    for j in range(len(Z)):
        residual = R[j]
        for i in range(m):
            residual[i] += pull[i]


@compiled
def look_ahead(positive, a, b, of_positive, of_negative, Z, W, lows, highs, balance, count, lowest, highest):
    """Weights (q, tile), their balance, and the extremes of the labels after each one, from the last label on."""
    m, last = len(balance), len(Z) - 1
    for i in range(m):
        balance[i], count[i] = 0.0, 0.0
    for i in range(m):
        lows[last, i], highs[last, i] = math.inf, 0.0
    for j in range(last, -1, -1):
        z, w, marked, low, high = Z[j], W[j], positive[j, a:b], lows[j], highs[j]
        for i in range(m):
            w[i] = z[i]
        exponentials(w)
        for i in range(m):
            balance[i] += w[i] * (of_positive if marked[i] != 0 else of_negative)
            count[i] += marked[i]
        if j > 0:
            low_before, high_before = lows[j - 1], highs[j - 1]
            for i in range(m):
                low_before[i] = smaller(low[i], w[i] if marked[i] != 0 else math.inf)
                high_before[i] = larger(high[i], 0.0 if marked[i] != 0 else w[i])
    for i in range(m):
        lowest[i], highest[i] = math.inf, 0.0

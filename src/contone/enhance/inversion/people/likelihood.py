"""The likelihood of answers: the only place that knows what people were asked.

A *response* is what one person said about one item, a row of `values` (q,); NaN where a label was not on offer. Under
votes it holds counts, and the person chooses label j with the chance

    softmax(a_w z_i + b_w)_j        over the labels on offer.

Person 0 is nobody in particular: a = 1, b = 0. Counts of people without names are one response of person 0.

`log_likelihood` and `add_terms` are what the engine (`rows`, `persons`) asks of a kind of answer, `log_chance` and
`answer` what new rows and the answers of all rows ask (`new_rows`). A further kind is one more branch in these four.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from contone.enhance.inversion.people.answers import LEVELS, MARKED, VOTES
from contone.enhance.inversion.people.levels import (
    add_terms_of_levels,
    log_chance_by_anybody,
    log_chance_of_levels,
    mean_levels,
)
from contone.enhance.inversion.sweeps.elementary import compiled, inlined

MARK = np.array([0.0, 1.0])
"""What levels are worth where only the lowest is told from the others."""


@inlined
def log_likelihood(z, r, responses, traits):
    """Log likelihood of response r, given the log weights z (q,) of its item, but for a constant."""
    w = responses.person[r]
    # Taken apart inside of a branch, these are counted in and out of use for every response: half of the time.
    said, a, b, cuts = responses.values[r], traits.sharpness[w], traits.offset[w], traits.cuts[w]
    return log_chance_of_levels(z, said, a, b, cuts) if responses.kind == LEVELS else _log_chance(z, said, a, b)


@inlined
def add_terms(z, r, responses, traits, room, gradient, information):
    """The same; adds its gradient (q,) by z and minus its second derivative (q, q), of which the lower triangle.

    `room` (q,) is overwritten; an `information` without rows is left alone.
    """
    w = responses.person[r]
    said, a, b, cuts = responses.values[r], traits.sharpness[w], traits.offset[w], traits.cuts[w]
    if responses.kind != LEVELS:
        return _add_terms_of_vote(z, said, a, b, room, gradient, information)
    return add_terms_of_levels(z, said, a, b, cuts, gradient, information)


@compiled
def log_chance(z, r, responses, traits, people, room):
    """Log likelihood of response r: by its person, where known; else by people (S of them) drawn from all people.

    `room` (q,) is overwritten.
    """
    if responses.person[r] > 0:
        return log_likelihood(z, r, responses, traits)
    if responses.kind == LEVELS:
        return log_chance_by_anybody(z, responses.values[r], people)
    counts = responses.values[r]
    _share(z, counts, people, room)
    total = 0.0
    for j in range(len(z)):
        if counts[j] > 0.0:
            total += counts[j] * math.log(max(room[j], 1e-300))
    return total


@compiled
def answer(z, kind, people, offered, out):
    """What people give an item with log weights z (q,) on average: each label's share of it; or chances of marks.

    `offered` (q,) is NaN where a label is not on offer.
    """
    if kind == VOTES:
        _share(z, offered, people, out)
    elif kind == MARKED:
        mean_levels(z, people, MARK, out)
    else:
        mean_levels(z, people, people.worth[0], out)
        total = 0.0
        for j in range(len(z)):
            total += out[j]
        for j in range(len(z)):
            out[j] = out[j] / total if total > 0.0 else 1.0 / len(z)


@compiled
def _share(z, offered, people, p):
    """Mean of softmax(a z + b) over people, among the labels on offer."""
    q, n = len(z), len(people.sharpness)
    for j in range(q):
        p[j] = 0.0
    for s in range(n):
        a, b = people.sharpness[s], people.offset[s]
        top, total = -math.inf, 0.0
        for j in range(q):
            if not math.isnan(offered[j]):
                top = max(top, a * z[j] + b[j])
        for j in range(q):
            if not math.isnan(offered[j]):
                total += math.exp(a * z[j] + b[j] - top)
        for j in range(q):
            if not math.isnan(offered[j]):
                p[j] += math.exp(a * z[j] + b[j] - top) / (n * total)


@inlined
def _log_chance(z, counts, a, b):
    """Sum of counts_j log softmax(a z + b)_j over the labels on offer."""
    top, n = -math.inf, 0.0
    for j in range(len(z)):
        if not math.isnan(counts[j]):
            n += counts[j]
            top = max(top, a * z[j] + b[j])
    if n == 0.0:
        return 0.0
    total, chosen = 0.0, 0.0
    for j in range(len(z)):
        if not math.isnan(counts[j]):
            x = a * z[j] + b[j] - top
            total += math.exp(x)
            chosen += counts[j] * x
    return chosen - n * math.log(total)


@inlined
def _add_terms_of_vote(z, counts, a, b, p, gradient, information):
    top, n = -math.inf, 0.0
    for j in range(len(z)):
        if not math.isnan(counts[j]):
            n += counts[j]
            top = max(top, a * z[j] + b[j])
    if n == 0.0:
        return 0.0
    total, chosen = 0.0, 0.0
    for j in range(len(z)):
        p[j] = 0.0
        if not math.isnan(counts[j]):
            x = a * z[j] + b[j] - top
            p[j] = math.exp(x)
            total += p[j]
            chosen += counts[j] * x
    share, weight = 1.0 / total, a * a * n
    for j in range(len(z)):
        if not math.isnan(counts[j]):
            p[j] *= share
            gradient[j] += a * (counts[j] - n * p[j])
            if len(information) > 0:
                information[j, j] += weight * p[j]
                for k in range(j + 1):
                    information[j, k] -= weight * p[j] * p[k]
    return chosen - n * math.log(total)

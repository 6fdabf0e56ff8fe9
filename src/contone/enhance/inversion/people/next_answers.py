"""Where the next answers should go, and how many it takes: what a fit to votes expects of answers that nobody gave yet.

Draws D (S, n, q) of the shares of n items are what is left open about them. The log loss that an answer m to an item
expects of one more vote is H(m), the entropy of the posterior mean m = E[d]. Votes c that are still to come have the
chance E[p(c | d)] and leave the mean m_c = E[d p(c | d)] / E[p(c | d)], so that k more votes lower the loss to

    L_k = sum over c of E[p(c | d)] H(m_c),

the same for every way to make votes: of nobody in particular, p(c | d) is multinomial; of person w one vote is label j
with the chance softmax(a_w log d + b_w)_j. What a vote tells about other items is left out: with a hundred items the
parameters are known well enough.

Where there are too many ways to vote (`MOST_WAYS`), some are drawn: a draw d_s is the truth, votes are drawn from it,
and all draws but d_s weigh them, so that the loss -sum d_s log m_c is that of an answer that does not know the truth.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from contone.numerics.simplex import softmax
from contone.typing import Matrix

MOST_WAYS = 120
"""Ways to vote that are summed over; where there are more, some are drawn."""
N_DRAWN = 24
"""Votes that are drawn per item and number of votes."""
BLOCK = 2**24
"""Numbers that are held at once."""
AHEAD = 3
"""Votes about one item that are planned at once."""
LOAD = 3.0
"""How many times as many answers as the average a person is asked for, at most."""
TINY = 1e-300


class Person(NamedTuple):
    """Somebody who could answer."""

    name: str
    sharpness: float
    offset: Matrix
    """(q,)."""


class NextAnswer(NamedTuple):
    """An answer that should be asked for."""

    item: int
    """Its number."""
    person: str
    """By whom; "" for anybody."""
    gain: float
    """How much it lowers the expected log loss of its item."""


def entropy(m: Matrix) -> Matrix:
    """H of distributions along the last axis, in nats."""
    return np.asarray(-(m * np.log(np.maximum(m, TINY))).sum(axis=-1))


def expected_losses(D: Matrix, more: Sequence[int], seed: int = 0) -> Matrix:
    """L_k (len(more), n) of items with draws D (S, n, q) of their shares, for each number k of more votes."""
    S, n, q = D.shape
    found, rng = np.empty((len(more), n)), np.random.default_rng(seed)
    for row, k in enumerate(more):
        ways = _ways(k, q) if _n_ways(k, q) <= MOST_WAYS else None
        size = max(1, BLOCK // (S * max(N_DRAWN if ways is None else len(ways), q)))
        for start in range(0, n, size):
            block = np.maximum(D[:, start : start + size], TINY)
            found[row, start : start + size] = _drawn(block, k, rng) if ways is None else _summed(block, ways)
    return found


def _summed(D: Matrix, ways: Matrix) -> Matrix:
    """L (n,) as a sum over all ways (w, q) to vote."""
    chance = np.exp(np.log(D) @ ways.T + gammaln(ways.sum(axis=1) + 1) - gammaln(ways + 1).sum(axis=1))  # (S, n, w)
    total = chance.mean(axis=0)
    m = np.einsum("snw,snq->nwq", chance, D) / len(D) / np.maximum(total, TINY)[:, :, None]
    return np.asarray((total * entropy(m)).sum(axis=1))


def _drawn(D: Matrix, k: int, rng: np.random.Generator) -> Matrix:
    """L (n,) from votes that are drawn."""
    S, n, _ = D.shape
    truth = rng.integers(S, size=(n, N_DRAWN))
    shares = D[truth, np.arange(n)[:, None]]  # (n, t, q)
    votes = rng.multinomial(k, shares / shares.sum(axis=-1, keepdims=True))
    fit = np.einsum("snq,ntq->snt", np.log(D), votes)
    fit[truth, np.arange(n)[:, None], np.arange(N_DRAWN)] = -np.inf
    weight = np.exp(fit - fit.max(axis=0))
    m = np.einsum("snt,snq->ntq", weight / weight.sum(axis=0), D)
    return np.asarray(-(shares * np.log(m)).sum(axis=-1).mean(axis=1))


def _n_ways(k: int, q: int) -> float:
    return float(np.exp(gammaln(k + q) - gammaln(k + 1) - gammaln(q)))


def _ways(k: int, q: int) -> Matrix:
    """All counts (w, q) of k votes among q labels."""
    return np.array(
        [np.diff([-1, *bars, k + q - 1]) - 1 for bars in combinations(range(k + q - 1), q - 1)], dtype=float
    )


def gains_of_persons(D: Matrix, persons: Sequence[Person]) -> Matrix:
    """How much one vote of each person lowers the expected log loss of each item: (persons, n)."""
    m = D.mean(axis=0)
    before, Z = entropy(m), np.log(np.maximum(D, TINY))
    found = np.empty((len(persons), D.shape[1]))
    for row, person in enumerate(persons):
        p = softmax(person.sharpness * Z + person.offset)
        total = p.mean(axis=0)
        after = np.einsum("snj,snk->njk", p, D) / len(D) / np.maximum(total, TINY)[:, :, None]
        found[row] = before - (total * entropy(after)).sum(axis=1)
    return found


def next_answers(
    D: Matrix, number: int, persons: Sequence[Person] = (), answered: Sequence[set[str]] | None = None
) -> list[NextAnswer]:
    """The answers that lower the expected log loss of all items most, the best first.

    Parameters
    ----------
    D : (S, n, q)
        Draws of the shares of n items.
    number : int
        How many answers.
    persons : sequence of Person
        Who could answer; without any, nobody in particular.
    answered : sequence of n sets or None
        Who has answered about each item already, and is not asked again.
    """
    losses = expected_losses(D, range(min(AHEAD, number) + 1))
    gains = np.minimum.accumulate(losses[:-1] - losses[1:], axis=0)  # a further vote about an item tells less
    order = np.argsort(-gains, axis=None, kind="stable")[:number]
    chosen = [(int(at % D.shape[1]), float(gains.flat[at])) for at in order]
    if not persons:
        return [NextAnswer(item, "", gain) for item, gain in chosen]
    return list(_assigned(D, chosen, persons, answered or [set() for _ in range(D.shape[1])]))


def _assigned(
    D: Matrix, chosen: Sequence[tuple[int, float]], persons: Sequence[Person], answered: Sequence[set[str]]
) -> Iterator[NextAnswer]:
    """Each answer by the person who tells most about its item, among those who have not answered and are not busy."""
    items = sorted({item for item, _ in chosen})
    gain_of = dict(zip(items, gains_of_persons(D[:, items], persons).T, strict=True))
    most, load = int(np.ceil(LOAD * len(chosen) / len(persons))), np.zeros(len(persons), dtype=int)
    taken = {item: set(answered[item]) for item in items}
    for item, gain in chosen:
        for k in np.argsort(-gain_of[item], kind="stable"):
            if load[k] < most and persons[k].name not in taken[item]:
                load[k] += 1
                taken[item].add(persons[k].name)
                yield NextAnswer(item, persons[k].name, float(gain_of[item][k]))
                break
        else:  # everybody has answered about it
            yield NextAnswer(item, "", gain)


def counting_losses(D: Matrix, numbers: Sequence[int], seed: int = 0) -> Matrix:
    """What counting would lose with each number of votes per item, (len(numbers),), were D (S, n, q) the truth.

    Shares of the votes with pseudo-votes of a Dirichlet distribution, whose mean and variance are those of all items.
    """
    S, n, _ = D.shape
    mean = D.mean(axis=(0, 1))
    spread = ((D - mean) ** 2).mean(axis=(0, 1)).sum()
    pseudo = mean * max((mean * (1 - mean)).sum() / max(spread, 1e-12) - 1.0, 1e-3)
    rng = np.random.default_rng(seed)
    found = []
    for k in numbers:
        truth = D[rng.integers(S, size=(N_DRAWN, n)), np.arange(n)]
        votes = rng.multinomial(k, truth / truth.sum(axis=-1, keepdims=True))
        m = (votes + pseudo) / (k + pseudo.sum())
        found.append(float(-(truth * np.log(np.maximum(m, TINY))).sum(axis=2).mean()))
    return np.array(found)

"""Entries of L that nobody asked about (NaN): the row is compatible with every completion of them.

What the labels of a row say is then: the rule, applied to its degrees, gives the labels *where they were asked*. The
set of such degrees is a union of cells, one for each completion. The sampler walks within the cell of the present
completion as ever, and between cells by redrawing unasked log weights without bounds, kept where the asked labels come
out right (`Rows`). So the completion is sampled along, and the posterior is the exact marginal over completions.

The spread comes from how many labels are marked. Where some are unasked, the number among the asked ones stands for it:
the same entries are hidden in rows that are simulated from the model (`PartialCounts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import to_numpy
from contone.measurements import IntervalRule, Order, TopK, asked_frequencies, has_unasked
from contone.typing import Array
from contone.validation.training import silent_rows

if TYPE_CHECKING:
    from contone.enhance.inversion.logistic_normal import Flips

MASKS = 4
"""Rows of the data whose unasked entries are hidden in turn in every simulated row."""
MOST_MASKS = 20_000


def start_rows(rule: IntervalRule, L: Array) -> tuple[Array, Array, Array]:
    """Log weights (n, q) of a distribution whose labels are L where asked; where there is none; these labels (n, q).

    For each row by itself, its first unasked labels are marked, as many as its asked ones suggest, or the next number
    with which the rule can make the row.
    """
    if isinstance(rule, Order) or not has_unasked(L):
        return *rule.start(L), L > 0
    xp = array_namespace(L)
    asked, q = L == L, L.shape[1]
    labels = asked & (L > 0)
    open_ = xp.astype(~asked, L.dtype)
    place, n_open = xp.cumulative_sum(open_, axis=1) - open_, xp.sum(open_, axis=1)
    share = (xp.sum(xp.astype(labels, L.dtype), axis=1) + 0.5) / (q - n_open + 1.0)
    expected = xp.round(share * n_open)
    Z = TopK().start(xp.where(asked, L, xp.zeros_like(L)))[0]
    missing = xp.ones_like(labels[:, 0])
    for step in range(q + 1):
        for number in {0: (expected,)}.get(step, (expected + step, expected - step)):
            allowed = missing & (number >= 0) & (number <= n_open)
            completed = xp.where(asked, L, xp.astype(place < number[:, None], L.dtype))
            rows = xp.nonzero(allowed)[0]
            if rows.shape[0] == 0:
                continue
            tried, impossible = rule.start(completed[rows, :])
            found = rows[~impossible]
            Z[found, :], labels[found, :] = tried[~impossible, :], completed[found, :] > 0
            missing[found] = False
    return Z, missing, labels


def meetings(L: Array) -> np.ndarray:
    """How many of n rows have two labels, (q, q), the diagonal one, at the rate of those in which both were asked."""
    xp = array_namespace(L)
    asked = L == L
    marked, asked = (xp.astype(A, L.dtype) for A in (asked & (L > 0), asked))
    together, both = to_numpy(marked.T @ marked), to_numpy(asked.T @ asked)
    share = asked_frequencies(L)
    # Pairs that were never asked together meet by chance.
    rate = np.where(both > 0, together / np.maximum(both, 1.0), np.outer(share, share))
    np.fill_diagonal(rate, share)
    first, second = share[:, None], share[None, :]
    return len(L) * np.clip(rate, np.maximum(first + second - 1.0, 0.0), np.minimum(first, second))


@dataclass(frozen=True)
class PartialCounts:
    """Numbers of labels among asked ones: how many rows have c of a, (q + 1, q + 1); and which were asked, (m, q)."""

    counts: np.ndarray
    masks: np.ndarray
    at_least_one: bool

    def likelihood(self, Z: np.ndarray, cardinality: Any, flips: Flips) -> Callable[[np.ndarray], np.ndarray]:
        """Log likelihood (k,) of the numbers at spreads (k,) of draws Z (m, q) from the model, whose spread is 1."""
        m, q = Z.shape
        order = np.argsort(-Z, axis=1, kind="stable")
        ranked = np.take_along_axis(Z, order, axis=1)
        ranked = ranked - ranked[:, :1]
        chosen = np.random.default_rng(0).integers(0, len(self.masks), (MASKS, m))
        masks = np.take_along_axis(self.masks[chosen], order[None], axis=2)
        among = np.zeros((MASKS, m, q + 1), dtype=np.int64)
        np.cumsum(masks, axis=2, out=among[:, :, 1:])
        asked = among[:, :, q]
        possible = np.tri(q + 1, dtype=bool)
        possible[q, 0] = not self.at_least_one
        present = self.counts > 0
        wrong = [flips.numbers(a) for a in range(q + 1)] if flips.any() else []

        def at(spread: float) -> float:
            W = np.exp(spread * ranked)
            size = cardinality(W / W.sum(axis=1, keepdims=True))
            marked = among[:, np.arange(m), size]
            made = np.bincount((asked * (q + 1) + marked).ravel(), minlength=(q + 1) ** 2).reshape(q + 1, q + 1)
            if flips.any():
                made = np.stack([np.pad(made[a, : a + 1] @ wrong[a], (0, q - a)) for a in range(q + 1)])
            made = np.where(possible, made + 0.5 * MASKS, 0.0)
            share = made / made.sum(axis=1, keepdims=True)
            return float(self.counts[present] @ np.log(np.maximum(share[present], 1e-300)))

        return lambda spreads: np.array([at(s) for s in spreads.tolist()])


def count_among_asked(L: Array, *, at_least_one: bool) -> PartialCounts:
    """How many rows of L (n, q) have so many labels among those that were asked; rows without any may say nothing."""
    q = L.shape[1]
    labels = to_numpy(L)
    asked = ~np.isnan(labels)
    number, marked = asked.sum(axis=1), (labels > 0).sum(axis=1)
    counts = np.bincount(number * (q + 1) + marked, minlength=(q + 1) ** 2).reshape(q + 1, q + 1)
    if at_least_one:
        counts[q, 0] = 0
    counts[0] = 0
    masks = asked[number > 0]
    if len(masks) > MOST_MASKS:
        masks = masks[np.random.default_rng(0).permutation(len(masks))[:MOST_MASKS]]
    return PartialCounts(counts, masks, at_least_one)


def number_of_labels(L: np.ndarray) -> np.ndarray:
    """|L| (n,) of rows with a label, int; for those with unasked entries, in proportion to the asked ones."""
    told = L[~silent_rows(L)]
    asked = (~np.isnan(told)).sum(axis=1)
    scaled: np.ndarray = np.rint((told > 0).sum(axis=1) * L.shape[1] / asked)
    whole: np.ndarray = np.maximum(scaled, 1).astype(int)
    return whole

"""Posterior predictive checks: labels that the fitted model makes, beside the labels that were given.

Every check compares a summary of L with the same summary of replicates L*, drawn from the model with its own
uncertainty (`contone.enhance.inversion.simulate`). The distance of the given labels from the mean of the replicates is
judged by the distances that replicates have among themselves: p is the share of replicates at least as far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from contone.enhance.inversion import simulate
from contone.enhance.inversion.model import Fit
from contone.measurements import Order
from contone.measurements.order import in_order_of

BAND = (5.0, 95.0)
"""Percentiles of the replicates that a picture shows."""
MOST_LABELS = 60
"""Co-occurrence is looked at among the most frequent labels, at most this many."""


class Contrast(NamedTuple):
    """A summary of the given labels between those of the replicates, per category."""

    categories: tuple[str, ...]
    observed: np.ndarray
    expected: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    distance: float
    """Half the sum of absolute differences from the mean of the replicates (for shares: total variation)."""
    p: float
    """Share of replicates that are at least as far from the mean of the others, in squared standard errors."""
    chance: float
    """The distance that one replicate in twenty exceeds: what chance alone can do."""


def replicate_labels(
    fit: Fit, X: np.ndarray, L: np.ndarray, n_replicates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (r, m, q) and distributions (r, m, q) like those of rows X (m, d), L (m, q).

    Where the rule takes the number of labels as given, so do the replicates; entries that are unasked stay so.
    """
    information = simulate.learn_information(fit, X, L, rng)
    labels, distributions = [], []
    for stream in rng.spawn(n_replicates):
        parameters = simulate.draw_parameters(fit, information, X, stream)
        D, made, _ = simulate.draw_rows(fit, parameters, X, stream, L)
        if not fit.rule.scale_matters and not fit.settings.noise.any():
            made = in_order_of(D, L if isinstance(fit.rule, Order) else np.where(np.isnan(L), np.nan, L > 0))
        labels.append(np.where(np.isnan(L), np.nan, made))
        distributions.append(D)
    return np.stack(labels), np.stack(distributions)


def compare_summaries(
    summary: Callable[[np.ndarray], np.ndarray], L: np.ndarray, replicates: np.ndarray, categories: Sequence[str]
) -> Contrast:
    """A summary (k,) of labels, given and replicated, with a name for each of its k numbers."""
    observed, made = summary(L), np.stack([summary(R) for R in replicates])
    r = len(made)
    expected = made.mean(axis=0)
    # A replicate is compared with the mean of the others, as the given labels are.
    gap, gaps = observed - expected, made - (r * expected - made) / max(r - 1, 1)
    # Rare categories count in units of what chance does to them: one that never occurs and should is found so.
    unit = np.sqrt(made.var(axis=0) + (1.0 / len(L)) ** 2)
    farther = float(np.mean(np.square(gaps / unit).sum(axis=1) >= np.square(gap / unit).sum()))
    distance, own = 0.5 * float(np.abs(gap).sum()), 0.5 * np.abs(gaps).sum(axis=1)
    lower, upper = np.percentile(made, BAND, axis=0)
    chance = float(np.percentile(own, BAND[1]))
    return Contrast(tuple(categories), observed, expected, lower, upper, distance, farther, chance)


def cardinality_shares(L: np.ndarray) -> np.ndarray:
    """Shares (q + 1,) of the rows with 0, 1, ..., q labels."""
    return np.bincount((L > 0).sum(axis=1), minlength=L.shape[1] + 1) / len(L)


def frequencies(L: np.ndarray) -> np.ndarray:
    """Share (q,) of the rows that have each label."""
    return np.asarray((L > 0).mean(axis=0))


def chosen_pairs(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of labels, first < second, among the most frequent ones."""
    kept = np.sort(np.argsort(-frequencies(L), kind="stable")[:MOST_LABELS])
    first, second = np.triu_indices(len(kept), 1)
    return kept[first], kept[second]


def correlations(L: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation of the 0/1 columns of each pair; 0 where one of them never varies."""
    P = (L > 0).astype(float)
    P = P - P.mean(axis=0)
    deviation = P.std(axis=0)
    product = (P[:, first] * P[:, second]).mean(axis=0)
    scale = deviation[first] * deviation[second]
    return np.asarray(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0))


def pattern_shares(L: np.ndarray, patterns: np.ndarray) -> np.ndarray:
    """Share of the rows whose labels are each of the patterns (k, q)."""
    P = np.packbits(L > 0, axis=1)
    return np.asarray([(np.packbits(row) == P).all(axis=1).mean() for row in patterns])


def n_patterns(L: np.ndarray) -> int:
    """How many different rows there are."""
    return len(np.unique(L > 0, axis=0))


def frequent_patterns(L: np.ndarray, k: int) -> np.ndarray:
    """The k most frequent rows, bool (k, q)."""
    found, counts = np.unique(L > 0, axis=0, return_counts=True)
    kept: np.ndarray = found[np.argsort(-counts, kind="stable")[:k]]
    return kept

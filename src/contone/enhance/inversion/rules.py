"""Which rule made the labels: the one that a name stands for, or the likeliest of several.

What tells rules apart is how many labels the rows have: a share of mass, a threshold and a fixed number give different
histograms of |L| for the same distributions. How the labels hang together matters as much, so every candidate is judged
with a model that was fitted under it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contone.degrade import CumulativeMass, Degradation, Threshold, TopK
from contone.enhance.inversion import logistic_normal

SHARES = (0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
"""Shares of mass that are tried beside one half."""
THRESHOLDS = (0.5, 0.75, 1.0, 1.5, 2.0)
"""Thresholds that are tried, in units of the mean degree 1 / q."""
CONVENTION = 0.5
"""Prior probability of CumulativeMass(0.5), by which the data sets of the field are made; the others share the rest."""


def named(name: str, L: np.ndarray) -> Degradation:
    """The rule that "cumulative", "topk" or "threshold" stands for, given the labels L (n, q)."""
    if name == "cumulative":
        return CumulativeMass()
    return _most_frequent_number(L) if name == "topk" else Threshold(1.0 / max(L.shape[1], 2))


def likeliest(L: np.ndarray, drawn: Callable[[Degradation], np.ndarray], prior: tuple[float, float]) -> Degradation:
    """The rule with the highest posterior probability given the cardinalities of L (n, q).

    Parameters
    ----------
    drawn : callable
        Draws (m, q) of z at spread 1, from a model fitted to L under the rule that it is given.
    prior : (float, float)
        Median and log standard deviation of the spread, over which the likelihood is averaged.
    """
    q = L.shape[1]
    others: list[Degradation] = [CumulativeMass(t) for t in SHARES]
    others += [Threshold(r / q) for r in THRESHOLDS if r < q]
    others += [_most_frequent_number(L)]
    counts = np.bincount((L > 0).sum(axis=1), minlength=q + 1)[1:]

    def evidence(rule: Degradation) -> float:
        Z = drawn(rule)
        # A pattern that the rule cannot make counts as a cardinality that it never gives.
        impossible = np.log(0.5 / len(Z)) * rule.start(L)[1].sum()
        return logistic_normal.spread_evidence(Z, counts, rule.cardinality, prior) + float(impossible)

    scores = [np.log(CONVENTION) + evidence(CumulativeMass())]
    scores += [np.log((1 - CONVENTION) / len(others)) + evidence(rule) for rule in others]
    return [CumulativeMass(), *others][int(np.argmax(scores))]


def _most_frequent_number(L: np.ndarray) -> TopK:
    """The largest degrees, as many as most rows have labels."""
    return TopK(int(np.bincount((L > 0).sum(axis=1)).argmax()))

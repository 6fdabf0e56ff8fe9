"""Which rule made the labels: the one that a name stands for, or the likeliest of several.

What tells rules apart is how many labels the rows have: a share of mass, a threshold and a fixed number give different
histograms of |L| for the same distributions. How the labels hang together matters as much, so every candidate is judged
with a model that was fitted under it.
"""

from __future__ import annotations

import numpy as np

from contone.degrade import CumulativeMass, Degradation, Threshold, TopK
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.chain import SPREAD_PRIOR, Settings, learn_parameters, simulated_rows
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.typing import Array

TRIAL_ROWS, TRIAL_SWEEPS = 1000, 40
"""At most how many rows, and how many sweeps, each candidate of "auto" is fitted with."""

SHARES = (0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
"""Shares of mass that are tried beside one half."""
THRESHOLDS = (0.5, 0.75, 1.0, 1.5, 2.0)
"""Thresholds that are tried, in units of the mean degree 1 / q."""
CONVENTION = 0.5
"""Prior probability of CumulativeMass(0.5), by which the data sets of the field are made; the others share the rest."""


def choose_rule(degradation: Degradation | str, L: np.ndarray) -> Degradation:
    """The rule that the parameter `degradation` of `Inversion` stands for, given the labels L (n, q)."""
    if isinstance(degradation, Degradation):
        return degradation
    if degradation == "topk":
        return _most_frequent_number(L)
    if degradation == "threshold":
        return Threshold(1.0 / max(L.shape[1], 2))
    return likeliest_rule(L) if degradation == "auto" and L.shape[1] > 1 else CumulativeMass()


def likeliest_rule(L: np.ndarray) -> Degradation:
    """The rule with the highest posterior probability given the cardinalities of L (n, q).

    The likelihood is averaged over the prior of the spread.
    """
    q = L.shape[1]
    others: list[Degradation] = [CumulativeMass(t) for t in SHARES]
    others += [Threshold(r / q) for r in THRESHOLDS if r < q]
    others += [_most_frequent_number(L)]
    counts = _count_cardinalities(L)

    def evidence(rule: Degradation) -> float:
        Z = _draw_under(rule, L)
        # A pattern that the rule cannot make counts as a cardinality that it never gives.
        impossible = np.log(0.5 / len(Z)) * rule.start(L)[1].sum()
        return logistic_normal.spread_evidence(Z, counts, rule.cardinality, SPREAD_PRIOR) + float(impossible)

    scores = [np.log(CONVENTION) + evidence(CumulativeMass())]
    scores += [np.log((1 - CONVENTION) / len(others)) + evidence(rule) for rule in others]
    return [CumulativeMass(), *others][int(np.argmax(scores))]


def _draw_under(rule: Degradation, L: np.ndarray) -> Array:
    """Draws (m, q) of z at spread 1, from a short fit without features under a rule."""
    q = L.shape[1]
    some = L[np.sort(np.random.default_rng(0).permutation(len(L))[:TRIAL_ROWS])]
    rows, rng = Rows(rule, some, 0.0), np.random.default_rng(0)
    settings = Settings(features=False, n_sweeps=TRIAL_SWEEPS, n_burn=TRIAL_SWEEPS // 2)
    phi, counts = np.ones((1, len(some))), _count_cardinalities(some)
    found, _ = learn_parameters(phi, rows, Averages(rows.Z, 0, 0), counts, settings, rng)
    normals = rng.standard_normal((simulated_rows(q), q))
    Z = found.coefficients[0] + normals @ logistic_normal.square_root(found.covariance).T
    return Z / np.sqrt(np.mean(np.square(Z)))


def _most_frequent_number(L: np.ndarray) -> TopK:
    """The largest degrees, as many as most rows have labels."""
    return TopK(int(np.bincount((L > 0).sum(axis=1)).argmax()))


def _count_cardinalities(L: np.ndarray) -> np.ndarray:
    """How many rows of L (n, q) have 1, ..., q labels."""
    return np.bincount((L > 0).sum(axis=1), minlength=L.shape[1] + 1)[1:]

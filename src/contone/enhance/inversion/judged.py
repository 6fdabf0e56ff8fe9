"""How far to go from what the labels say to what graded rows make of it, judged by the answers to these rows.

The calibration (`evidence`) weighs log degrees by their likelihood, in which the smallest degrees count most; the error
of an answer is KL(d || d^), in which they count least. Where rows are not logistic normal the two disagree: a few
degrees near zero pass for a wide spread or for heavy tails. Whoever graded rows has the means to see it. The answers
that their labels alone would get are compared with their degrees, for the calibrated parameters and for some between
these and the labels' own:

    B = (1 - w) B_labels + w B_calibrated,   Sigma likewise,   tails as calibrated or normal.

The calibrated ones stay, unless others are closer to the graded degrees by more than the standard error of that
difference: few rows do not overrule the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from contone.enhance.inversion.evidence import Calibration, variance_factor
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.numerics.simplex import kl_divergence

STEPS = (0.25, 0.5, 0.75, 1.0)
"""Weights w that are tried beside 0."""
FEWEST = 5
"""Graded rows below which a standard error says nothing."""

Answer = Callable[[Parameters, float], np.ndarray]
"""The answers (m, q) that the labels of the graded rows get under parameters and tails."""


def closest_step(labels: Calibration, found: Calibration, degrees: np.ndarray, answer: Answer) -> Calibration:
    """The calibration `found`, or one between it and that of the `labels`, given the degrees (m, q) of graded rows."""
    if len(degrees) < FEWEST:
        return found
    tried = [found, labels]
    for tail in {found.tail, math.inf}:
        tried += [between(labels, found, w, tail) for w in STEPS if w < 1.0 or tail != found.tail]
    errors = np.stack([kl_divergence(degrees, answer(one.parameters, one.tail)) for one in tried])
    best = int(np.argmin(errors.mean(axis=1)))
    gain = errors[0] - errors[best]
    return tried[best] if gain.mean() > gain.std(ddof=1) / math.sqrt(len(gain)) else found


def between(labels: Calibration, found: Calibration, w: float, tail: float) -> Calibration:
    """The calibration at the weight w of what was found, with these tails."""
    (B, Sigma, theta), (C, T, _) = found.parameters, labels.parameters
    parameters = Parameters(w * B + (1 - w) * C, w * Sigma + (1 - w) * T, theta)
    narrower = variance_factor(tail) / variance_factor(found.tail)
    mean = math.sqrt(w * narrower * found.spread.mean**2 + (1 - w) * labels.spread.mean**2)
    relative = found.spread.deviation / found.spread.mean if found.spread.mean > 0 else 0.0
    return Calibration(parameters, Spread(mean, mean * relative), tail, w * found.withheld)

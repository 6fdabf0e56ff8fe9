"""How well degrees tell 0/1 labels, whatever rule made the labels.

Which degree gets a label depends on the rule, which is not known, and a degree is not the chance of a label. Every rule
agrees on one thing: a larger degree is more likely to be labelled. So the chance of label j of a row is taken to be

    p_j = sigmoid(a + b z_j),    b >= 0,    z_j = log d_j - mean_k log d_k,

with the a and b that serve these labels best, and the score is the share of the labels' entropy that p explains,

    1  -  sum_j H(l_j, p_j) / sum_j H(l_j, mean of l),    H(l, p) = -l log p - (1 - l) log(1 - p).

0: the degrees say no more than how frequent labels are. 1: they tell every label. The logarithmic score is strictly
proper for p, and b makes up for any temperature, d -> softmax(t log d): the score judges which degrees are larger, in
the row and among rows, and says nothing about their scale. Labels do not tell the scale without their rule.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from contone.typing import Array

FLOOR = 1e-12
"""Degrees below this count as this much."""
STEEPEST = 200.0
"""The largest b, for z with unit root mean square: where an order is perfect, b has no end."""


def levels_as_confidences(L: Array) -> Array:
    """Levels or ranks (n, q) in [0, 1]: the row's least is 0 and its largest 1; NaN in a row that has one level."""
    lowest, highest = (find(L, axis=1, keepdims=True) for find in (np.nanmin, np.nanmax))
    span = np.where(highest > lowest, highest - lowest, np.nan)
    return (L - lowest) / span


def label_score(L: Array, D: Array) -> float:
    """The share of the entropy of labels L (n, q), NaN where there is none, that degrees D (n, q) explain.

    Confidences in [0, 1] may take the place of labels, and levels count as such. Where all labels are equal there is
    nothing to tell, and the score is 0.
    """
    if ((L < 0) | (L > 1)).any():
        L = levels_as_confidences(L)
    asked = ~np.isnan(L)
    labels, Z = L[asked], np.log(np.maximum(D, FLOOR))
    z = (Z - Z.mean(axis=1, keepdims=True))[asked]
    frequency = float(labels.mean()) if len(labels) else 0.0
    scale = float(np.sqrt(np.mean(np.square(z)))) if len(z) else 0.0
    if not 0.0 < frequency < 1.0 or scale < 1e-9:  # rounding alone is no order
        return 0.0
    z = z / scale

    def surprise(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean of H(l, p), with log p = t - log(1 + e^t), and its derivative in a and b."""
        t = parameters[0] + parameters[1] * z
        miss = expit(t) - labels
        return float(np.mean(np.logaddexp(0.0, t) - labels * t)), np.array([miss.mean(), (miss * z).mean()])

    start = np.array([np.log(frequency / (1.0 - frequency)), 0.0])
    entropy = surprise(start)[0]
    found = minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=[(None, None), (0.0, STEEPEST)],
                     options={"gtol": 1e-9, "ftol": 1e-13})  # fmt: skip
    return 1.0 - min(float(found.fun), entropy) / entropy

"""How well degrees predict 0/1 labels, whatever rule made the labels.

Which degree gets a label depends on the rule, which is not known, and a degree is not the chance of a label. Every rule
agrees on one thing: a larger degree is more likely to be labelled. So the chance of label j of a row is taken to be

    p_j = sigmoid(a + b z_j),    b >= 0,    z_j = log d_j - mean_k log d_k,

with the a and b that serve these labels best, and the score is the share of the labels' entropy that p explains,

    1  -  sum_j H(l_j, p_j) / sum_j H(l_j, mean of l),    H(l, p) = -l log p - (1 - l) log(1 - p).

0: the degrees say no more than how frequent labels are. 1: they predict every label. The logarithmic score is strictly
proper for p, and b makes up for any temperature, d -> softmax(t log d): the score judges which degrees are larger, in
the row and among rows, and says nothing about their scale. Labels do not determine the scale without their rule.
"""

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
    return (L - lowest) / np.where(highest > lowest, highest - lowest, np.nan)


def standardized_logs(D: Array, asked: Array) -> Array:
    """Centred log degrees z (m,) of the asked entries of D (n, q), at unit root mean square; 0 where all are equal."""
    Z = np.log(np.maximum(D, FLOOR))
    z = (Z - Z.mean(axis=1, keepdims=True))[asked]
    scale = float(np.sqrt(np.mean(np.square(z)))) if len(z) else 0.0
    return z / scale if scale > 1e-9 else np.zeros_like(z)  # rounding alone is no order


def fit_map(z: Array, labels: Array, *, pull: float = 0.0) -> tuple[float, float, float]:
    """a and b >= 0 of p = sigmoid(a + b z) that serve labels (m,) best, and the mean of H(l, p).

    `pull` entries of either kind are imagined beside the labels, and b is drawn to 0 as weakly: with them, a and b are
    finite for any labels, so that they can be used for others.
    """
    n = len(labels)

    def surprise(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean of H(l, p), with log p = t - log(1 + e^t), and its derivative in a and b."""
        a, b = parameters
        t = a + b * z
        miss = expit(t) - labels
        value = np.mean(np.logaddexp(0.0, t) - labels * t)
        slope = np.array([miss.mean(), (miss * z).mean()])
        imagined = pull * (2.0 * np.logaddexp(0.0, a) - a + 0.005 * b * b) / n
        return float(value + imagined), slope + pull / n * np.array([2.0 * expit(a) - 1.0, 0.01 * b])

    found = minimize(surprise, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(None, None), (0.0, STEEPEST)],
                     options={"gtol": 1e-9, "ftol": 1e-13})  # fmt: skip
    return float(found.x[0]), float(found.x[1]), float(found.fun)


def label_score(L: Array, D: Array) -> float:
    """The share of the entropy of labels L (n, q), NaN where there is none, that degrees D (n, q) explain.

    Confidences in [0, 1] may take the place of labels, and levels count as such. Where all labels are equal there is
    nothing to predict, and the score is 0.
    """
    if ((L < 0) | (L > 1)).any():
        L = levels_as_confidences(L)
    asked = ~np.isnan(L)
    labels, z = L[asked], standardized_logs(D, asked)
    frequency = float(labels.mean()) if len(labels) else 0.0
    if not 0.0 < frequency < 1.0 or not z.any():
        return 0.0
    # H(l, frequency) where confidences take the place of labels, too.
    entropy = float(-frequency * np.log(frequency) - (1.0 - frequency) * np.log1p(-frequency))
    _, b, surprise = fit_map(z, labels)
    return 1.0 - min(surprise, entropy) / entropy if b > 0.0 else 0.0

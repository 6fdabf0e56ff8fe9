"""How well a method tells real labels that it has not seen: a check from the data itself, beside a rehearsal.

Rows are held out in turn; a method that predicts from features alone is fitted to the others and scored by
`contone.numerics.label_score` (its `score`). Nothing is assumed about how labels were made, so this does not hang on
the rehearsal's model. But labels say which degrees are larger and not how much: use it to doubt an order, not to choose
a scale.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from contone.base import Enhancer
from contone.numerics.label_score import label_score


def held_out_score(method: Enhancer, X: np.ndarray, L: np.ndarray, *, n_splits: int = 3, seed: int = 0) -> float:
    """The score of labels L (n, q) by degrees that were predicted for rows X (n, d) while they were held out.

    NaN for a method that has no `predict` or that fails, and for fewer rows than splits.
    """
    if not hasattr(method, "predict") or len(L) < 2 * n_splits:
        return math.nan
    D = np.empty_like(L)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a method has to say it has said on the replicates
        for others, rows in KFold(n_splits, shuffle=True, random_state=seed).split(X):
            try:
                D[rows] = np.asarray(clone(method).fit(X[others], L[others]).predict(X[rows]))
            except Exception:  # a method from anywhere may fail in any way; the others must still be scored
                return math.nan
    return label_score(L, D)

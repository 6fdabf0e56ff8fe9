"""Which rows to grade: a random batch, without rows that would tell the same.

Rows at random stand for all rows, which is what the calibration (`evidence`) needs: a batch of rows that the labels
make look odd would pass for another scale. Batches with the least expected error of the calibration were no better than
random ones on eleven sets (docs/inversion-notebook.md): labels foretell 4 to 9 per cent of what a grade will say.
"""

from numbers import Integral

import numpy as np

from contone.enhance.inversion.assessment import ErrorSample
from contone.enhance.inversion.model import Fit
from contone.exceptions import InputError

NEAR = 0.05
"""Rows of one label set are near duplicates below this quantile of the distances between rows."""


def suggest_rows(fit: Fit, sample: ErrorSample, k: int, seed: int = 0) -> np.ndarray:
    """Numbers (k,) of the rows of a sample to grade, in the order of choice, or all that are left."""
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise InputError(f"suggest: k must be a whole number, 1 or more; got {k!r}.")
    free = np.flatnonzero(~sample.graded)
    if len(free) == 0:
        raise InputError("suggest: every row is graded already; there is nothing left to suggest.")
    near = near_duplicates(fit, sample)
    return sample.numbers[draw_batch(int(k), free, near, np.random.default_rng(seed))]


def draw_batch(k: int, free: np.ndarray, near: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """k of the rows `free` in a random order, near duplicates of earlier ones only where nothing else is left."""
    order = rng.permutation(free)
    chosen: list[int] = []
    passed: list[int] = []
    for row in order:
        if len(chosen) == k:
            break
        (passed if near[row, chosen].any() else chosen).append(int(row))
    return np.array((chosen + passed)[:k], dtype=np.int64)


def near_duplicates(fit: Fit, sample: ErrorSample) -> np.ndarray:
    """Pairs (m, m) of rows with the same labels whose means of z are close, with the features that matter."""
    same: np.ndarray = ((sample.L > 0)[:, None, :] == (sample.L > 0)[None, :, :]).all(axis=2)
    if fit.feature_map is None:
        np.fill_diagonal(same, False)
        return same
    features = np.asarray(fit.feature_map(sample.X))
    squared = np.square(features).sum(axis=1)
    distance = squared[:, None] + squared[None, :] - 2.0 * features @ features.T
    limit = np.quantile(distance[np.triu_indices(len(distance), 1)], NEAR) if len(distance) > 1 else 0.0
    found: np.ndarray = same & (distance <= limit)
    np.fill_diagonal(found, False)
    return found

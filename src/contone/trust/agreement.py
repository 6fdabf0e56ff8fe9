"""How far people agree beyond chance (Krippendorff's alpha, with an interval), and how far degrees agree with labels.

With n_uc answers of value c about item u, n_u of them in all (items with one answer say nothing of agreement), and a
distance delta between values,

    alpha = 1 - observed / expected
    observed = sum_u 1 / (n_u - 1) sum_cd n_uc n_ud delta_cd^2 / n,   expected = sum_cd n_c n_d delta_cd^2 / (n (n - 1))

1 is full agreement, 0 what chance gives, less than 0 worse than chance. The interval resamples items.

References
----------
K. Krippendorff. Computing Krippendorff's alpha-reliability. University of Pennsylvania, 2011.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scale = Literal["nominal", "ordinal", "interval"]
RESAMPLES = 1000


class Agreement(NamedTuple):
    """Krippendorff's alpha and its 95 % interval."""

    alpha: float
    lower: float
    upper: float
    n_items: int
    """Items with at least two answers."""


def agreement(counts: NDArray[np.float64], scale: Scale = "nominal", seed: int = 0) -> Agreement | None:
    """The agreement of answers counted by item and value (items, values); None where no item has two answers.

    Where all answers have one value, chance cannot be told from agreement: alpha is NaN. Of several questions about
    the same items, (questions, items, values), observed and expected distances are summed over the questions.
    """
    counts = np.nan_to_num(np.asarray(counts, dtype=np.float64))
    counts = counts.reshape(-1, *counts.shape[-2:])
    size = counts.sum(axis=2)
    counts, size = np.where(size[:, :, None] >= 2, counts, 0.0), np.where(size >= 2, size, 0.0)
    counts, size = counts[:, size.any(axis=0)], size[:, size.any(axis=0)]
    n_items = counts.shape[1]
    if n_items == 0:
        return None
    squares = np.stack([_squared_distances(table.sum(axis=0), scale) for table in counts])
    # Of each item: how far its own answers are apart, in pairs.
    apart = np.einsum("kuc,kcd,kud->ku", counts, squares, counts) / np.maximum(size - 1.0, 1.0)

    def alpha(weights: NDArray[np.float64]) -> float:
        total = weights @ counts
        n = np.maximum(total.sum(axis=1), 2.0)
        expected = np.einsum("kc,kcd,kd->k", total, squares, total) / (n - 1.0)
        return float(1.0 - (weights @ apart.T).sum() / expected.sum()) if expected.sum() > 0 else float("nan")

    drawn = np.random.default_rng(seed).multinomial(n_items, np.full(n_items, 1.0 / n_items), size=RESAMPLES)
    found = np.array([alpha(weights.astype(float)) for weights in drawn])
    found = found[np.isfinite(found)]
    ends = np.quantile(found, [0.025, 0.975]) if len(found) else (np.nan, np.nan)
    return Agreement(alpha(np.ones(n_items)), float(ends[0]), float(ends[1]), n_items)


def mean_over_pairs(
    L: NDArray[np.float64], D: NDArray[np.float64], score: Callable[..., NDArray[np.float64]], axis: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of score(d_j, d_k) over the pairs of labels with l_j > l_k, and their number, by row (1) or by label j (0).

    NaN where there is no pair; labels that nobody was asked about are in none.
    """
    total, pairs = np.zeros(L.shape), np.zeros(L.shape)
    for j in range(L.shape[1]):
        above = L[:, [j]] > L
        total[:, j], pairs[:, j] = np.where(above, score(D[:, [j]], D), 0.0).sum(axis=1), above.sum(axis=1)
    total, count = total.sum(axis=axis), pairs.sum(axis=axis)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0), count


def _squared_distances(totals: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """delta^2 between the values, in their order."""
    q = len(totals)
    if scale == "nominal":
        return 1.0 - np.eye(q)
    # Ordinal: how many answers lie between two values, half of those at the ends.
    place = np.arange(q, dtype=np.float64) if scale == "interval" else np.cumsum(totals) - 0.5 * totals
    return np.square(place[:, None] - place[None, :])

"""Simulation-based calibration: are intervals right on data that the model itself made, at the size of the data?

Degrees D* and labels L* are drawn from the fitted model for the same rows; the method is fitted anew to L*, and every
true degree gets its rank under the new posterior,

    r_ij = Phi((logit d*_ij - c_ij) / w_ij),

with the centre c and the width w that `intervals` uses. If the posterior is right, ranks are uniform on (0, 1) (Talts,
Betancourt, Simpson, Vehtari, Gelman 2018): too many at both ends mean intervals that are too narrow, too many in the
middle too wide ones, a slope a bias. The ranks of a row are not independent, nor are the rows of a refit; the band of a
bin is therefore three standard errors over rows as clusters, and not less than what refits differ among each other.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit, ndtr, ndtri
from sklearn.base import clone

from contone.enhance.inversion import Inversion
from contone.trust import predictive
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded

SHORT = {"n_sweeps": 60, "n_burn": 20}
"""Length of the fits that only serve a comparison."""
N_REFITS = 3
N_BINS = 10
LEAST_BAND = 0.02
"""Half width of a bin's band, at least: ranks come from a normal approximation on the logit scale."""
MIDDLE = 0.6827
"""Level of the intervals that centre and width are read from: about one standard deviation to either side."""
SMALLEST = 1e-12


def ranks_on_replicates(
    method: Inversion, short: Inversion, X: np.ndarray, L: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Ranks (refits, n, q) of the degrees that made each replicate, under a short fit to its labels."""
    made, truth = predictive.replicate_labels(method.rule_fit_, X, L, N_REFITS, rng)
    ranks = []
    for labels, D in zip(made, truth, strict=True):
        again = clone(short).fit(X, labels)
        # Neither cut to what labels allow nor to votes: centre and width of what the model says of D are read off them.
        own = again.rule_fit_
        ends = again.posterior_.intervals(MIDDLE, own.spread_deviation, own.shape_shares)
        lower, upper = (np.clip(end, SMALLEST, 1 - SMALLEST) for end in ends)
        ranks.append(ranks_of(D, lower, upper, MIDDLE))
    return np.stack(ranks)


def ranks_of(D: np.ndarray, lower: np.ndarray, upper: np.ndarray, level: float) -> np.ndarray:
    """Ranks of degrees D under posteriors that are normal on the logit scale and have these central intervals."""
    low, high = logit(lower), logit(upper)
    width = np.maximum((high - low) / 2, SMALLEST) / float(ndtri(0.5 + level / 2))
    ranks: np.ndarray = ndtr((logit(np.clip(D, SMALLEST, 1 - SMALLEST)) - (low + high) / 2) / width)
    return ranks


def histogram(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares (bins,) of ranks (refits, n, q), and the half width of the band around 1 / bins where they belong."""
    bins = np.minimum((ranks * N_BINS).astype(int), N_BINS - 1)
    per_row = np.stack([(bins == k).mean(axis=2) for k in range(N_BINS)])  # (bins, refits, n)
    shares = per_row.mean(axis=(1, 2))
    n_clusters = per_row.shape[1] * per_row.shape[2]
    over_rows = per_row.std(axis=(1, 2)) / np.sqrt(n_clusters)
    over_refits = per_row.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(per_row.shape[1]) if len(ranks) > 1 else 0.0
    half: np.ndarray = np.maximum(3.0 * np.maximum(over_rows, over_refits), LEAST_BAND)
    return shares, half


def interval_finding(ranks: np.ndarray) -> Finding:
    """Do intervals hold what they promise, and do true degrees lie everywhere in their posteriors alike?

    With few rows three standard errors of a share reach down to nothing, and no histogram says anything.
    """
    coverage = float(np.mean(np.abs(ranks - 0.5) <= 0.45))
    shares, half = histogram(ranks)
    outside = float(np.mean(np.abs(shares - 1 / N_BINS) > half))
    error = np.sqrt((1 - 1 / N_BINS) / N_BINS / (ranks.shape[0] * ranks.shape[1]))  # labels of a row may be alike
    verdict = FINE if 0.82 <= coverage <= 0.97 else DOUBTFUL if coverage >= 0.7 else OFF
    if 3 * error >= 1 / N_BINS:
        verdict = UNTOLD
    elif verdict == FINE:
        verdict = graded(outside, 0.2, 1.0)
    ends, middle = shares[[0, -1]].sum() - 2 / N_BINS, shares[4:6].sum() - 2 / N_BINS
    slope = shares[5:].sum() - shares[:5].sum()
    shape = (
        "so few rows cannot show more"
        if verdict == UNTOLD
        else "true degrees lie evenly in their posteriors"
        if verdict == FINE
        else "the posterior is too narrow"
        if ends > max(middle, abs(slope))
        else "the posterior is too wide"
        if middle > abs(slope)
        else f"the posterior is too {'low' if slope > 0 else 'high'}"
    )
    said = (
        f"Intervals: on data drawn from the model at the size of yours ({len(ranks)} refits), 90 % intervals hold "
        f"{coverage:.0%} of the degrees; {shape}."
    )
    shown = {f"{k / N_BINS:.1f}": float(share) for k, share in enumerate(shares)}
    title, low, high = "Intervals on data from the model", 1 / N_BINS - half, 1 / N_BINS + half
    axis = "share of true degrees at this rank"
    return Finding.of("calibration", title, verdict, coverage, said, shown, axis, low, high)

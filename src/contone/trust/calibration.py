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

import warnings

import numpy as np
from scipy.special import logit, ndtr, ndtri
from sklearn.base import clone

from contone.enhance.inversion import Inversion
from contone.trust import predictive
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded

SHORT = {"n_sweeps": 60, "n_burn": 20}
"""Length of the fits that only serve a comparison."""
N_REFITS = 4
N_BINS = 10
LEVELS = (0.5, 0.8, 0.9, 0.95)
LEAST_BAND = 0.02
"""Half width of a bin's band, at least: ranks come from a normal approximation on the logit scale."""
MIDDLE = 0.6827
"""Level of the intervals that centre and width are read from: about one standard deviation to either side."""
SMALLEST = 1e-12


def ranks_on_replicates(method: Inversion, X: np.ndarray, L: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ranks (refits, n, q) of the degrees that made each replicate, under a fit to its labels."""
    made, truth = predictive.replicate_labels(method.rule_fit_, X, L, N_REFITS, rng)
    ranks = []
    for labels, D in zip(made, truth, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = clone(method).set_params(degradation=method.degradation_, n_samples=0, verbose=False, **SHORT)
            again.fit(X, labels)
        # Neither cut to what labels allow nor to votes: centre and width of what the model says of D are read off them.
        ends = again.posterior_.intervals(MIDDLE, again.fit_.spread_deviation, again.fit_.shape_shares)
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
    """Do intervals hold what they promise?"""
    coverage = {f"{level:.0%}": float(np.mean(np.abs(ranks - 0.5) <= level / 2)) for level in LEVELS}
    value = coverage["90%"]
    verdict = FINE if 0.82 <= value <= 0.97 else DOUBTFUL if value >= 0.7 else OFF
    said = (
        f"Intervals: on data drawn from the model at the size of yours, 90 % intervals hold {value:.0%} of the degrees."
    )
    lower, upper = [level - 0.08 for level in LEVELS], [min(level + 0.07, 1.0) for level in LEVELS]
    title, axis = "Intervals on data from the model", "share of degrees inside"
    return Finding.of("calibration", title, verdict, value, said, coverage, axis, lower, upper)


def rank_finding(ranks: np.ndarray) -> Finding:
    """Where do true degrees lie in their posteriors? Everywhere alike, if these are right.

    With few rows three standard errors of a share reach down to nothing, and no histogram says anything.
    """
    shares, half = histogram(ranks)
    outside = float(np.mean(np.abs(shares - 1 / N_BINS) > half))
    error = np.sqrt((1 - 1 / N_BINS) / N_BINS / (ranks.shape[0] * ranks.shape[1]))  # labels of a row may be alike
    verdict = UNTOLD if 3 * error >= 1 / N_BINS else graded(outside, 0.2, 0.5)
    ends, middle = shares[[0, -1]].sum(), shares[4:6].sum()
    slope = shares[5:].sum() - shares[:5].sum()
    shape = (
        "in ways that so few rows cannot show"
        if verdict == UNTOLD
        else "evenly, as they should"
        if verdict == FINE
        else "too often far out: the posterior is too narrow"
        if ends - 2 / N_BINS > max(middle - 2 / N_BINS, abs(slope))
        else "too often in the middle: the posterior is too wide"
        if middle - 2 / N_BINS > abs(slope)
        else f"too often {'high' if slope > 0 else 'low'}: the posterior is off to one side"
    )
    said = (
        f"Ranks: on data drawn from the model ({len(ranks)} refits), true degrees lie in their posteriors {shape}; "
        f"{outside:.0%} of the bins are outside their band."
    )
    shown = {f"{k / N_BINS:.1f}": float(share) for k, share in enumerate(shares)}
    title, low, high = "Ranks of the truth on data from the model", 1 / N_BINS - half, 1 / N_BINS + half
    return Finding.of("ranks", title, verdict, outside, said, shown, "share of ranks", low, high)

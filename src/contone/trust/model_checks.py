"""Checks of `Inversion`: does its model make such labels, and does the answer depend on what nobody knows?

*Posterior predictive.* A summary of L is compared with the same summary of replicates L*, drawn from the model with its
own uncertainty (`contone.trust.rehearsal`). The distance of the given labels from the mean of the replicates
is judged by the distances that replicates have among themselves: p is the share of replicates at least as far.

*Simulation-based calibration.* Are intervals right on data that the model itself made, at the size of the data? The
method is fitted anew to replicates, and every true degree gets its rank under the new posterior,

    r_ij = Phi((logit d*_ij - c_ij) / w_ij),

with the centre c and the width w that `intervals` uses. If the posterior is right, ranks are uniform on (0, 1) (Talts,
Betancourt, Simpson, Vehtari, Gelman 2018): too many at both ends mean intervals that are too narrow, too many in the
middle too wide ones, a slope a bias. The ranks of a row are not independent, nor are the rows of a refit; the band of a
bin is therefore three standard errors over rows as clusters, and not less than what refits differ among each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import logit, ndtr, ndtri
from sklearn.base import clone

from contone.backends import to_numpy
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.expected_error import find_votes
from contone.enhance.inversion.model import Fit
from contone.measurements import Order
from contone.measurements.order import in_order_of
from contone.numerics.simplex import kl_divergence
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.rehearsal import cardinality_shares, draw_labels
from contone.trust.subject import SHORT, SHOWN, Subject
from contone.typing import Matrix

ENOUGH_DRAWS = 20
"""Independent draws that a typical degree should rest on."""
ABSENT = 5.0
"""Rows that should have fewer or more labels than any has, from which on that is no chance."""
BAND = (5.0, 95.0)
"""Percentiles of the replicates that a picture shows."""
MOST_LABELS = 60
"""Co-occurrence is looked at among the most frequent labels, at most this many; with more labels in all, replicates are
fewer, and none is fitted anew."""
N_REFITS, FEW_REPLICATES = 3, 10
N_BINS = 10
LEAST_BAND = 0.02
"""Half width of a bin's band, at least: ranks come from a normal approximation on the logit scale."""
MIDDLE = 0.6827
"""Level of the intervals that centre and width are read from: about one standard deviation to either side."""
SMALLEST = 1e-12


def labels_and_intervals(subject: Subject, n_replicates: int) -> list[Finding]:
    """Labels that the model makes beside those given, and its intervals on the first of these replicates."""
    model, X, L, few = subject.model, subject.X, subject.L, subject.few
    is_large = L.shape[1] > MOST_LABELS
    if is_large:
        n_replicates = min(n_replicates, FEW_REPLICATES)
    made, truth = replicate_labels(model.rule_fit_, X, L, n_replicates, subject.rng())
    found = predictive_findings(L, made, subject.names, counts_matter=model.degradation_.scale_matters)
    if is_large:
        return found
    ranks = []
    for labels, D in list(zip(made, truth, strict=True))[:N_REFITS]:
        again = clone(subject.short).fit(subject.X[few], labels[few])
        # Neither cut to what labels allow nor to votes: centre and width of what the model says of D are read off them.
        own = again.rule_fit_
        ends = again.posterior_.intervals(MIDDLE, own.spread_deviation, own.shape_shares)
        lower, upper = (np.clip(end, SMALLEST, 1 - SMALLEST) for end in ends)
        ranks.append(ranks_of(D[few], lower, upper, MIDDLE))
    return [*found, interval_finding(np.stack(ranks))]


def replicate_labels(
    fit: Fit, X: np.ndarray, L: np.ndarray, n_replicates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (r, m, q) and distributions (r, m, q) like those of rows X (m, d), L (m, q).

    Where the rule takes the number of labels as given, so do the replicates; entries that are unasked stay so.
    """
    labels, distributions = [], []
    for D, made, _ in draw_labels(fit, X, L, n_replicates, rng):
        if not fit.rule.scale_matters and not fit.settings.noise.any():
            made = in_order_of(D, L if isinstance(fit.rule, Order) else np.where(np.isnan(L), np.nan, L > 0))
        labels.append(np.where(np.isnan(L), np.nan, made))
        distributions.append(D)
    return np.stack(labels), np.stack(distributions)


def predictive_findings(
    L: Matrix, replicates: np.ndarray, names: tuple[str, ...], *, counts_matter: bool
) -> list[Finding]:
    """Numbers of labels per row, how often each label is marked, and which go together."""
    share, found, (first, second) = "share of the rows", list[Finding](), chosen_pairs(L)
    beside = partial(contrast, L, replicates)
    if counts_matter:
        said = "Numbers of labels per row: the model's differ from yours by {:.0%} of the rows"
        each = list(map(str, range(L.shape[1] + 1)))
        numbers = beside(each, "cardinality", "Labels per row", said, share, 0.05, cardinality_shares)
        there = np.flatnonzero(cardinality_shares(L))
        made = np.mean([cardinality_shares(R) for R in replicates], axis=0)
        absent = len(L) * (1.0 - made[there[0] : there[-1] + 1].sum())
        if absent > ABSENT:  # exp(-5) is less than one in a hundred
            said = f"{numbers.sentence[:-1]}; {absent:.0f} rows should have fewer or more labels than any has."
            numbers = replace(numbers, verdict=OFF if numbers.verdict == OFF else DOUBTFUL, sentence=said)
        found.append(numbers)
    said = "Frequencies of the labels: the model's differ from yours by {:.1%} of the rows in the mean"
    found.append(beside(names, "frequency", "Label frequencies", said, share, 0.02, frequencies, 2 / L.shape[1]))
    said = "Labels together: correlations of pairs of labels differ by {:.2f} in the mean"
    named, scale = [f"{names[a]} & {names[b]}" for a, b in zip(first, second, strict=True)], 2 / max(len(first), 1)
    of_pairs = partial(correlations, first=first, second=second)
    return [*found, beside(named, "co-occurrence", "Labels together", said, "correlation", 0.05, of_pairs, scale)]


def contrast(
    L: np.ndarray,
    replicates: np.ndarray,
    categories: Sequence[str],
    name: str,
    title: str,
    said: str,
    axis: str,
    small: float,
    summary: Callable[[np.ndarray], np.ndarray],
    scale: float = 1.0,
) -> Finding:
    """A summary (k,) of the labels between those of the replicates, with a name for each of its k numbers.

    The value is half the sum of absolute differences from the mean of the replicates, times `scale` (for shares: total
    variation). It is off where it is both large (three times small) and beyond chance. Where chance alone makes
    differences that are large, nothing could be found: the check says so.
    """
    observed, made = summary(L), np.stack([summary(R) for R in replicates])
    r, expected = len(made), made.mean(axis=0)
    # A replicate is compared with the mean of the others, as the given labels are.
    gap, gaps = observed - expected, made - (r * expected - made) / max(r - 1, 1)
    # Rare categories count in units of what chance does to them: one that never occurs and should is found so.
    unit = np.sqrt(made.var(axis=0) + (1.0 / len(L)) ** 2)
    p = float(np.mean(np.square(gaps / unit).sum(axis=1) >= np.square(gap / unit).sum()))
    value = 0.5 * scale * float(np.abs(gap).sum())
    chance = 0.5 * scale * float(np.percentile(np.abs(gaps).sum(axis=1), BAND[1]))
    is_beyond = p <= 0.05
    is_vacuous = not is_beyond and chance > 3 * small
    verdict = graded(value, small, 3 * small) if is_beyond else UNTOLD if is_vacuous else FINE
    beyond = "more than chance explains" if is_beyond else "no more than chance explains"
    if is_vacuous:
        beyond += "; but chance alone explains large differences here, so this says nothing"
    lower, upper = np.percentile(made, BAND, axis=0)
    used = np.flatnonzero((observed != 0) | (upper != 0))
    # Those that differ most, in their order.
    kept = np.sort(used[np.argsort(-np.abs(gap)[used], kind="stable")[:SHOWN]])
    shown, band = {categories[k]: float(observed[k]) for k in kept}, (lower[kept].tolist(), upper[kept].tolist())
    return Finding(name, title, verdict, value, f"{said.format(value)}, {beyond}.", shown, axis, *band)


def frequencies(L: np.ndarray) -> np.ndarray:
    """Share (q,) of the rows that have each label."""
    return np.asarray((L > 0).mean(axis=0))


def chosen_pairs(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of labels, first < second, among the most frequent ones."""
    kept = np.sort(np.argsort(-frequencies(L), kind="stable")[:MOST_LABELS])
    first, second = np.triu_indices(len(kept), 1)
    return kept[first], kept[second]


def correlations(L: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation of the 0/1 columns of each pair; 0 where one of them never varies."""
    P = (L > 0).astype(float)
    P = P - P.mean(axis=0)
    scale = np.sqrt(np.outer(P.var(axis=0), P.var(axis=0)))
    return np.asarray(np.divide(P.T @ P / len(P), scale, out=np.zeros_like(scale), where=scale > 0)[first, second])


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
    over_rows = per_row.std(axis=(1, 2)) / np.sqrt(per_row.shape[1] * per_row.shape[2])
    over_refits = per_row.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(per_row.shape[1]) if len(ranks) > 1 else 0.0
    half: np.ndarray = np.maximum(3.0 * np.maximum(over_rows, over_refits), LEAST_BAND)
    return per_row.mean(axis=(1, 2)), half


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
    slope = shares[5:].sum() - shares[:5].sum()
    excess = {
        "narrow": shares[[0, -1]].sum() - 2 / N_BINS,
        "wide": shares[4:6].sum() - 2 / N_BINS,
        "low" if slope > 0 else "high": abs(slope),
    }
    shapes = {FINE: "true degrees lie evenly in their posteriors", UNTOLD: "so few rows cannot show more"}
    shape = shapes.get(verdict, f"the posterior is too {max(excess, key=lambda name: excess[name])}")
    said = (
        f"Intervals: on data drawn from the model at the size of yours ({len(ranks)} refits), 90 % intervals hold "
        f"{coverage:.0%} of the degrees; {shape}."
    )
    shown = {f"{k / N_BINS:.1f}": float(share) for k, share in enumerate(shares)}
    title, low, high = "Intervals on data from the model", 1 / N_BINS - half, 1 / N_BINS + half
    axis = "share of true degrees at this rank"
    return Finding("calibration", title, verdict, coverage, said, shown, axis, low.tolist(), high.tolist())


def spread_finding(subject: Subject) -> Finding:
    """How far the answer moves when the spread does, by one posterior deviation up and down."""
    method, fit = subject.model, subject.model.rule_fit_
    fit = replace(fit, settings=replace(fit.settings, n_sweeps=SHORT["n_sweeps"], n_burn=SHORT["n_burn"]))
    X, L, r = subject.X[subject.few], subject.L[subject.few], min(fit.spread_deviation, 0.9)

    def answer(factor: float) -> Matrix:
        model = replace(fit, parameters=fit.parameters.scaled(factor))
        return np.asarray(to_numpy(model.posterior_of_block(X, L, subject.rng()).mean))

    low, high = answer(1 - r), answer(1 + r)
    moved = float(np.mean(kl_divergence(high, low))) / 4  # two deviations apart, and KL is of second order
    share = moved / max(method.expected_error_.mean, 1e-300)
    verdict = graded(share, 0.25, np.inf)
    said = (
        f"Unevenness of degrees: the spread is {method.spread_:.2g}, known to {r:.0%}; one deviation of it moves the "
        f"answer by KL {moved:.2g}, {'little' if verdict == FINE else 'much'} beside the expected error."
    )
    less, more = (float((A * (L > 0)).sum(axis=1).mean()) for A in (low, high))
    now = method.rule_report_.yes_weight
    weights = {"one deviation less": less, "as estimated": now, "one deviation more": more}
    return Finding("spread", "Other spreads", verdict, share, said, weights, "weight of marked labels")


def lattice_finding(method: Inversion) -> list[Finding]:
    """Do graded rows look like shares of a few votes, without the method being told?"""
    sample = method._error_sample
    votes = find_votes(sample.D[sample.graded])
    if votes is None:
        return []
    verdict, how = FINE, f"intervals are those of shares of {method.resolution}"
    if method.resolution is None:
        verdict, how = DOUBTFUL, f"intervals and the expected error are too narrow for that: use resolution={votes}"
    said = f"Graded rows: their degrees are shares of {votes} votes; {how}."
    return [Finding("lattice", "Degrees in steps", verdict, float(votes), said)]


def chain_finding(method: Inversion) -> Finding:
    """Has the sampler settled?"""
    size, split = float(method.rule_fit_.effective_sample_size), float(method.rule_fit_.split_r_hat)
    verdict = FINE if split < 1.1 and size >= ENOUGH_DRAWS else DOUBTFUL if split < 1.3 else OFF
    end = "" if verdict == FINE else "; raise n_sweeps"
    said = f"The sampler: R-hat {split:.2f} (1 is best), a typical degree rests on {size:.0f} independent draws{end}."
    shown = {"of a typical degree": size, "enough": ENOUGH_DRAWS}
    return Finding("chain", "The sampler", verdict, split, said, shown, "independent draws")

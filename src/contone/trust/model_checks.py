"""Checks of `Inversion`: does its model make such labels, and does the answer depend on what nobody knows?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from contone.backends import to_numpy
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.expected_error import ExpectedError, find_votes
from contone.numerics.simplex import kl_divergence
from contone.trust import calibration, predictive
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.row_summaries import SHOWN
from contone.typing import Matrix

ENOUGH_DRAWS = 20
"""Independent draws that a typical degree should rest on."""
ABSENT = 5.0
"""Rows that should have fewer or more labels than any has, from which on that is no chance."""
N_PATTERNS, MOST_LETTERS = 8, 40
"""Most frequent rows of labels that are compared, and letters of their names."""


def steps(
    method: Inversion,
    short: Inversion,
    X: Matrix,
    L: Matrix,
    names: tuple[str, ...],
    n_replicates: int,
    few: slice,
    seed: int,
) -> list[Callable[[], list[Finding]]]:
    """The checks of a fitted Inversion on rows X (m, d), L (m, q), one after the other; refits are to a few of them."""
    rng = np.random.default_rng(seed)

    def predicted() -> list[Finding]:
        replicates, _ = predictive.replicate_labels(method.rule_fit_, X, L, n_replicates, rng)
        return _predictive_findings(L, replicates, names, counts_matter=method.degradation_.scale_matters)

    return [
        predicted,
        lambda: [_spread_finding(method, X[few], L[few], method.expected_error_, seed)],
        lambda: [calibration.interval_finding(calibration.ranks_on_replicates(method, short, X[few], L[few], rng))],
        lambda: [*lattice_finding(method), _chain_finding(method)],
    ]


def _predictive_findings(
    L: Matrix, replicates: np.ndarray, names: tuple[str, ...], *, counts_matter: bool
) -> list[Finding]:
    share, found = "share of the rows", []
    if counts_matter:
        counts = [str(k) for k in range(L.shape[1] + 1)]
        sizes = predictive.compare_summaries(predictive.cardinality_shares, L, replicates, counts)
        said = f"Numbers of labels per row: the model's differ from yours by {sizes.distance:.0%} of the rows"
        numbers = _contrast("cardinality", "Labels per row", sizes, 1.0, said, share, 0.05)
        there = np.flatnonzero(sizes.observed)
        absent = len(L) * (1.0 - sizes.expected[there[0] : there[-1] + 1].sum())
        if absent > ABSENT:  # exp(-5) is less than one in a hundred
            said = f"{numbers.sentence[:-1]}; {absent:.0f} rows should have fewer or more labels than any has."
            numbers = replace(numbers, verdict=OFF if numbers.verdict == OFF else DOUBTFUL, sentence=said)
        found.append(numbers)
    often = predictive.compare_summaries(predictive.frequencies, L, replicates, names)
    per_label = 2 / L.shape[1]  # from half the sum of differences to their mean
    gap = 100 * per_label * often.distance
    said = f"Frequencies of the labels: the model's differ from yours by {gap:.1f} points in the mean"
    found.append(_contrast("frequency", "Label frequencies", often, per_label, said, share, 0.02))
    first, second = predictive.chosen_pairs(L)
    named = [f"{names[a]} & {names[b]}" for a, b in zip(first, second, strict=True)]
    pairs = predictive.compare_summaries(lambda M: predictive.correlations(M, first, second), L, replicates, named)
    per_pair = 2 / max(len(first), 1)
    said = f"Labels together: correlations of pairs of labels differ by {per_pair * pairs.distance:.2f} in the mean"
    found.append(_contrast("co-occurrence", "Labels together", pairs, per_pair, said, "correlation", 0.05))
    patterns = predictive.frequent_patterns(L, N_PATTERNS)
    words = ["+".join(n for n, yes in zip(names, row, strict=True) if yes) or "none" for row in patterns]
    short = [word[:MOST_LETTERS] for word in words]
    whole = predictive.compare_summaries(lambda M: predictive.pattern_shares(M, patterns), L, replicates, short)
    made = np.mean([predictive.n_patterns(R) for R in replicates])
    said = f"Whole rows of labels: you have {predictive.n_patterns(L)} different ones, the model makes {made:.0f}"
    found.append(_contrast("patterns", "Whole rows of labels", whole, 1.0, said, share, 0.1))
    return found


def _contrast(
    name: str, title: str, compared: predictive.Contrast, scale: float, said: str, axis: str, small: float
) -> Finding:
    """Off where a difference is both large (three times small) and beyond chance.

    Where chance alone makes differences that are large, nothing could be found: the check says so.
    """
    value, is_beyond = scale * compared.distance, compared.p <= 0.05
    is_vacuous = not is_beyond and scale * compared.chance > 3 * small
    verdict = graded(value, small, 3 * small) if is_beyond else UNTOLD if is_vacuous else FINE
    beyond = "more than chance explains" if is_beyond else "no more than chance explains"
    if is_vacuous:
        beyond += "; but chance alone explains large differences here, so this says nothing"
    used = np.flatnonzero((compared.observed != 0) | (compared.upper != 0))
    gap = np.abs(compared.observed - compared.expected)[used]
    kept = np.sort(used[np.argsort(-gap, kind="stable")[:SHOWN]])  # those that differ most, in their order
    shown = {compared.categories[k]: compared.observed[k] for k in kept}
    lower, upper = compared.lower[kept], compared.upper[kept]
    return Finding.of(name, title, verdict, value, f"{said}, {beyond}.", shown, axis, lower, upper)


def _spread_finding(method: Inversion, X: Matrix, L: Matrix, error: ExpectedError, seed: int) -> Finding:
    """How far the answer moves when the spread does, by one posterior deviation up and down."""
    fit = method.rule_fit_
    r = min(fit.spread_deviation, 0.9)

    def answer(factor: float) -> Matrix:
        model = replace(fit, parameters=fit.parameters.scaled(factor))
        return np.asarray(to_numpy(model.posterior_of_block(X, L, np.random.default_rng(seed)).mean))

    low, high = answer(1 - r), answer(1 + r)
    moved = float(np.mean(kl_divergence(high, low))) / 4  # two deviations apart, and KL is of second order
    share = moved / max(error.mean, 1e-300)
    verdict = graded(share, 0.25, np.inf)
    said = (
        f"Unevenness of degrees: the spread is {method.spread_:.2g}, known to {r:.0%}; one deviation of it moves the "
        f"answer by KL {moved:.2g}, {'little' if verdict == FINE else 'much'} beside the expected error."
    )
    less, more = (float((A * (L > 0)).sum(axis=1).mean()) for A in (low, high))
    now = method.rule_report_.yes_weight
    weights = {"one deviation less": less, "as estimated": now, "one deviation more": more}
    return Finding.of("spread", "Other spreads", verdict, share, said, weights, "weight of marked labels")


def lattice_finding(method: Inversion) -> list[Finding]:
    """Do graded rows look like shares of a few votes, without the method being told?"""
    sample = method._error_sample
    votes = find_votes(sample.D[sample.graded])
    if votes is None:
        return []
    said = f"Graded rows: their degrees are shares of {votes} votes"
    if method.resolution is None:
        said += (
            "; intervals and the expected error are those of degrees without such steps, and too narrow for shares: "
            f"use resolution={votes} (or the number of people who voted) to have them for shares."
        )
    else:
        said += f", and intervals are those of shares of {method.resolution}."
    verdict = DOUBTFUL if method.resolution is None else FINE
    return [Finding("lattice", "Degrees in steps", verdict, float(votes), said)]


def _chain_finding(method: Inversion) -> Finding:
    size, split = float(method.rule_fit_.effective_sample_size), float(method.rule_fit_.split_r_hat)
    verdict = FINE if split < 1.1 and size >= ENOUGH_DRAWS else DOUBTFUL if split < 1.3 else OFF
    end = "" if verdict == FINE else "; raise n_sweeps"
    said = f"The sampler: R-hat {split:.2f} (1 is best), a typical degree rests on {size:.0f} independent draws{end}."
    shown = {"of a typical degree": size, "enough": ENOUGH_DRAWS}
    return Finding.of("chain", "The sampler", verdict, split, said, shown, "independent draws")

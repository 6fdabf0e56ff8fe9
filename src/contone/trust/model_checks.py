"""Checks of `Inversion`: does its model make such labels, and does the answer depend on what nobody knows?"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.expected_error import ExpectedError, find_votes
from contone.measurements import parse_rule
from contone.numerics.simplex import kl_divergence
from contone.trust import calibration, predictive
from contone.trust.calibration import SHORT
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.method_checks import COMPARED_ROWS, find_hidden_labels
from contone.trust.row_summaries import SHOWN
from contone.typing import Matrix

ENOUGH_DRAWS = 20
"""Independent draws that a typical degree should rest on."""
RULES = ("main", "everything", "threshold", "order")
"""Rules that the answer is compared under."""
N_PATTERNS, MOST_LETTERS = 8, 40
"""Most frequent rows of labels that are compared, and letters of their names."""


def model_findings(
    method: Inversion, X: Matrix, L: Matrix, names: tuple[str, ...], n_replicates: int, seed: int
) -> tuple[tuple[Finding, ...], str]:
    """What the checks of a fitted Inversion find on rows X (m, d), L (m, q); and what could not be checked."""
    rng, few = np.random.default_rng(seed), slice(COMPARED_ROWS)
    replicates, _ = predictive.replicate_labels(method.rule_fit_, X, L, n_replicates, rng)
    ranks = calibration.ranks_on_replicates(method, X[few], L[few], rng)
    again = clone(method).set_params(degradation=method.degradation_, n_samples=0, verbose=False, **SHORT)
    hidden, unhidden = find_hidden_labels(again, X[few], L[few], seed, "the model")
    found = (
        *_predictive_findings(L, replicates, names, counts_matter=method.degradation_.scale_matters),
        _rule_finding(method, X[few], L[few]),
        _spread_finding(method, X[few], L[few], method.expected_error_, seed),
        calibration.interval_finding(ranks),
        calibration.rank_finding(ranks),
        *hidden,
        *lattice_finding(method),
        _chain_finding(method),
    )
    return found, unhidden


def _predictive_findings(
    L: Matrix, replicates: np.ndarray, names: tuple[str, ...], *, counts_matter: bool
) -> list[Finding]:
    share, found = "share of the rows", []
    if counts_matter:
        counts = [str(k) for k in range(L.shape[1] + 1)]
        sizes = predictive.compare_summaries(predictive.cardinality_shares, L, replicates, counts)
        said = f"Numbers of labels per row: the model's differ from yours by {sizes.distance:.0%} of the rows"
        found.append(_contrast("cardinality", "Labels per row", sizes, 1.0, said, share, 0.05))
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


def _rule_finding(method: Inversion, X: Matrix, L: Matrix) -> Finding:
    """The weight of marked labels under other rules."""
    own = method.rule_report_.yes_weight
    weights = {f"yours: {method.degradation_.in_words()}": own}
    for text in RULES:
        if parse_rule(text) != method.degradation_:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = clone(method).set_params(degradation=text, n_samples=0, verbose=False, **SHORT).fit(X, L)
            weights[other.degradation_.in_words()] = float(other.rule_report_.yes_weight)
    others = list(weights.values())[1:]
    low, high = min(others), max(others)
    verdict = graded(high - low, 0.1, np.inf)
    said = (
        f"The rule matters little: marked labels keep {low:.0%} to {high:.0%} under other rules."
        if verdict == FINE
        else f"The rule matters: marked labels keep {own:.0%} of the weight under yours, {low:.0%} to {high:.0%} under "
        "others; say how the labels were made if you know."
    )
    return Finding.of("rule", "Other rules", verdict, high - low, said, weights, "weight of marked labels")


def _spread_finding(method: Inversion, X: Matrix, L: Matrix, error: ExpectedError, seed: int) -> Finding:
    """How far the answer moves when the spread does, by one posterior deviation up and down."""
    fit = method.fit_
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
    size, split = float(method.fit_.effective_sample_size), float(method.fit_.split_r_hat)
    verdict = FINE if split < 1.1 and size >= ENOUGH_DRAWS else DOUBTFUL if split < 1.3 else OFF
    end = "" if verdict == FINE else "; raise n_sweeps"
    said = f"The sampler: R-hat {split:.2f} (1 is best), a typical degree rests on {size:.0f} independent draws{end}."
    shown = {"of a typical degree": size, "enough": ENOUGH_DRAWS}
    return Finding.of("chain", "The sampler", verdict, split, said, shown, "independent draws")


def model_advice(findings: tuple[Finding, ...], yes_weight: float, method: Inversion) -> list[str]:
    """What to do about what was found."""
    verdicts = {f.name: f.verdict for f in findings}
    is_bad = {name for name, verdict in verdicts.items() if verdict in (DOUBTFUL, OFF)}
    found = []
    if "cardinality" in is_bad:
        found.append(
            "The rule does not explain how many labels rows have"
            + (', and "auto" found none better: name the rule if you know it.' if method.degradation == "auto"
               else ': try degradation="auto", or another rule.')
        )  # fmt: skip
    if yes_weight < 0.5:
        found.append('Most weight lies on labels marked no: if that is not meant, use degradation="main".')
    if "rule" in is_bad:
        found.append(
            "Find out how the labels were made (main labels, everything that matters, a bar): much depends on it."
        )
    if "spread" in is_bad or not method.degradation_.scale_matters:
        found.append("Grade a few rows by hand: they show how uneven degrees are. contone suggest says which rows.")
    if OFF in (verdicts["patterns"], verdicts["co-occurrence"]):
        found.append("Labels go together in ways the model does not make: look at the doubtful labels, try noise=0.05.")
    if "entries" in is_bad:
        found.append("Baselines predict hidden labels better than the model: try another rule, or features=False.")
    if "calibration" in is_bad or "ranks" in is_bad:
        found.append("Intervals do not hold what they promise at the size of your data: do not rely on them.")
    if "chain" in is_bad:
        found.append("Raise n_sweeps: the answer still depends on chance.")
    return found

"""Is this answer credible, when no truth exists? `check(method, X, Y) -> Check`.

Each check is one sentence with a verdict, a number and what a picture needs. None of them needs the truth: they ask
whether the model makes labels like those given, whether the answer hangs on what nobody knows (rule, spread), whether
the sampler has mixed, and whether its intervals hold on data drawn from the model itself, at the size of the data.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.base import Enhancer, check_whole_numbers
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.expected_error import ExpectedError
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.logistic_normal import Parameters
from contone.exceptions import ArgumentError, InputError
from contone.measurements import IntervalRule, parse_rule
from contone.numerics.simplex import kl_divergence
from contone.trust import calibration, predictive
from contone.trust.any_method import COMPARED_ROWS, check_answer, find_hidden_entries
from contone.trust.calibration import SHORT
from contone.trust.check_result import DOUBTFUL, FINE, OFF, Check, Finding
from contone.trust.row_summaries import (
    SHOWN,
    find_doubtful,
    floats,
    in_memory,
    strongest_pairs,
    summarize_labels,
    summarize_rows,
    taken,
)
from contone.typing import Array, Data, EstimatorLike
from contone.validation import check_training, silent_rows

ENOUGH_DRAWS = 20
"""Independent draws that a typical degree should rest on."""
RULES = ("main", "everything", "threshold", "order")
"""Rules that the answer is compared under."""


def check(
    method: EstimatorLike,
    X: Data,
    Y: Data,
    *,
    model: Inversion | None = None,
    n_replicates: int = 30,
    max_rows: int = 1000,
    random_state: int = 0,
) -> Check:
    """Check how far a method's answer to (X, Y) can be believed; no truth is needed.

    `Inversion` is asked whether its model makes labels like those given. The answers of other methods are compared with
    their labels, with labels that were hidden, and with Inversion's model of the same rows.

    Parameters
    ----------
    method : Enhancer
        Fitted to X and Y, or not fitted yet (it is then cloned and fitted).
    X, Y : (n, d), (n, q)
        Features and labels, as in `fit`.
    model : Inversion or None, default=None
        The model that other methods are compared with, which says by what rule labels are made; None means
        ``Inversion()``. It is not looked at where the method is an `Inversion` itself.
    n_replicates : int, default=30
        Sets of labels that are drawn from the model for comparison.
    max_rows : int, default=1000
        At most this many rows, drawn at random, are looked at.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Check
        A sentence, a verdict and a number for each check; prints as a list, and as a table in a notebook.

    Examples
    --------
    >>> from contone import CumulativeMass, Inversion
    >>> rng = np.random.default_rng(0)
    >>> X, D = rng.normal(size=(60, 2)), rng.dirichlet([4.0] * 4, size=60)
    >>> found = check(Inversion(n_sweeps=100, n_burn=40), X, CumulativeMass().apply(D), n_replicates=5)
    >>> found.rule
    'CumulativeMass(t=0.5)'
    """
    if not isinstance(method, Enhancer):
        raise ArgumentError(
            f"check: method must be an enhancer, such as Inversion(); got {type(method).__name__}.", "method"
        )
    if not isinstance(model, Inversion | None):
        raise ArgumentError(f"check: model must be an Inversion; got {type(model).__name__}.", "model")
    least = {"n_replicates": 2, "max_rows": 2, "random_state": 0}
    check_whole_numbers("check", least, n_replicates=n_replicates, max_rows=max_rows, random_state=random_state)
    fitted = method if hasattr(method, "label_distributions_") else clone(method).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say about these data was said by `fit`
        X_checked, L_checked, border = check_training(clone(method), X, Y)
    n, q = L_checked.shape
    if tuple(fitted.label_distributions_.shape) != (n, q):
        raise InputError(
            f"check: the method was fitted to {fitted.label_distributions_.shape[0]} rows; X and Y have {n}. Pass the "
            "data that it was fitted to, or an unfitted method."
        )
    if q < 2:
        raise InputError("check: one label has the degree 1 in every row; there is nothing to check.")
    names = tuple(border.label_names)
    if isinstance(fitted, Inversion):
        return _look(fitted, X_checked, L_checked, names, n_replicates, max_rows, random_state)
    rows = choose_rows(n, max_rows, np.random.default_rng(random_state))
    X_some, L_some = in_memory(X_checked, L_checked, rows, max_rows, random_state)
    told = ~np.asarray(silent_rows(L_some))  # nothing can be compared with in rows without a label
    if told.sum() < 2:
        raise InputError(f"check: {int(told.sum())} of the {len(told)} rows looked at have a label; 2 are needed.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check_answer(
            fitted,
            X_some[told],
            L_some[told],
            taken(fitted.label_distributions_, rows[told]),
            model=model if model is not None else Inversion(),
            names=names,
            numbers=rows[told],
            n_rows=n,
            seed=random_state,
        )


def _look(
    method: Inversion, X: Data, L: Array, names: tuple[str, ...], n_replicates: int, max_rows: int, seed: int
) -> Check:
    n = L.shape[0]
    rows = choose_rows(n, max_rows, np.random.default_rng(seed))
    X_some, L_some = in_memory(X, L, rows, max_rows, seed)
    L_some = method.degradation_.forget_silent(L_some)
    D, lower, upper = (taken(A, rows) for A in (method.posterior_.mean, *method.intervals_(0.9)))
    rng = np.random.default_rng(seed)
    replicates, _ = predictive.replicate_labels(method.fit_, X_some, L_some, n_replicates, rng)
    error = method.expected_error_
    ranks = calibration.ranks_on_replicates(method, X_some[:COMPARED_ROWS], L_some[:COMPARED_ROWS], rng)
    hidden, unhidden = _hidden_entries_finding(method, X_some, L_some, seed)
    findings = (
        *_predictive_findings(L_some, replicates, names, method.degradation_),
        _rule_finding(method, X_some, L_some, D),
        _spread_finding(method, X_some, L_some, error, seed),
        calibration.interval_finding(ranks),
        calibration.rank_finding(ranks),
        *hidden,
        _chain_finding(method),
    )
    doubtful, undoubted = find_doubtful(method, X_some, L_some, D, rows, names)
    report = method.rule_report_
    return Check(
        rule=str(method.degradation_),
        rule_words=method.degradation_.in_words(),
        explained=report.explained,
        yes_weight=report.yes_weight,
        expected_error=error,
        findings=findings,
        labels=summarize_labels(L_some, D, names, (lower, upper)),
        ambiguous=summarize_rows(taken(error.rows, rows), rows, L_some, D, names),
        doubtful=doubtful,
        pairs=strongest_pairs(method.covariance_, names),
        advice=_advice(findings, report.yes_weight, method),
        n_rows=n,
        n_checked=len(rows),
        not_checked=tuple(filter(None, (unhidden, undoubted))),
    )


# ------------------------------------------------------------------------------------------------------ the checks


def _predictive_findings(
    L: np.ndarray, replicates: np.ndarray, names: tuple[str, ...], rule: IntervalRule
) -> tuple[Finding, ...]:
    q = L.shape[1]
    found = []
    if rule.scale_matters:
        sizes = predictive.compare_summaries(
            predictive.cardinality_shares, L, replicates, [str(k) for k in range(q + 1)]
        )
        said = f"Numbers of labels per row: the model's differ from yours by {sizes.distance:.0%} of the rows"
        found.append(_finding("cardinality", "Labels per row", sizes, sizes.distance, said, "share of the rows", 0.05))
    often = predictive.compare_summaries(predictive.frequencies, L, replicates, names)
    gap = float(np.abs(often.observed - often.expected).mean())
    said = f"Frequencies of the labels: the model's differ from yours by {100 * gap:.1f} points in the mean"
    found.append(_finding("frequency", "Label frequencies", often, gap, said, "share of the rows", 0.02))
    first, second = predictive.chosen_pairs(L)
    named = [f"{names[a]} & {names[b]}" for a, b in zip(first, second, strict=True)]
    pairs = predictive.compare_summaries(lambda M: predictive.correlations(M, first, second), L, replicates, named)
    apart = float(np.abs(pairs.observed - pairs.expected).mean())
    said = f"Labels together: correlations of pairs of labels differ by {apart:.2f} in the mean"
    found.append(_finding("co-occurrence", "Labels together", pairs, apart, said, "correlation", 0.05))
    patterns = predictive.frequent_patterns(L, 8)
    words = ["+".join(n for n, yes in zip(names, row, strict=True) if yes) or "none" for row in patterns]
    whole = predictive.compare_summaries(
        lambda M: predictive.pattern_shares(M, patterns), L, replicates, [w[:40] for w in words]
    )
    made = np.mean([predictive.n_patterns(R) for R in replicates])
    said = f"Whole rows of labels: you have {predictive.n_patterns(L)} different ones, the model makes {made:.0f}"
    found.append(_finding("patterns", "Whole rows of labels", whole, whole.distance, said, "share of the rows", 0.1))
    return tuple(found)


def _finding(
    name: str, title: str, compared: predictive.Contrast, value: float, said: str, axis: str, small: float
) -> Finding:
    """Fine where the difference is small or no larger than chance; off where it is both large and beyond chance."""
    verdict = FINE if value <= small or compared.p > 0.05 else DOUBTFUL if value <= 3 * small else OFF
    beyond = "more than chance explains" if compared.p <= 0.05 else "no more than chance explains"
    kept = _most_telling(compared)
    return Finding(
        name,
        title,
        verdict,
        value,
        f"{said}, {beyond}.",
        tuple(compared.categories[k] for k in kept),
        floats(compared.observed[kept]),
        floats(compared.lower[kept]),
        floats(compared.upper[kept]),
        axis,
    )


def _most_telling(compared: predictive.Contrast) -> np.ndarray:
    """At most `SHOWN` categories, those that differ most, in their order."""
    used = np.flatnonzero((compared.observed != 0) | (compared.upper != 0))
    gap = np.abs(compared.observed - compared.expected)[used]
    return np.sort(used[np.argsort(-gap, kind="stable")[:SHOWN]])


def _rule_finding(method: Inversion, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Finding:
    """The weight of marked labels under other rules."""
    X, L = X[:COMPARED_ROWS], L[:COMPARED_ROWS]
    weights, words = [], []
    for text in RULES:
        rule = parse_rule(text)
        if rule == method.degradation_:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = clone(method).set_params(degradation=text, n_samples=0, verbose=False, **SHORT).fit(X, L)
        weights.append(float(other.rule_report_.yes_weight))
        words.append(other.degradation_.in_words())
    own = method.rule_report_.yes_weight
    spread = float(max(weights) - min(weights))
    verdict = FINE if spread < 0.1 else DOUBTFUL
    said = (
        f"The rule matters: marked labels keep {own:.0%} of the weight under yours, {min(weights):.0%} to "
        f"{max(weights):.0%} under others; say how the labels were made if you know."
        if verdict != FINE
        else f"The rule matters little: marked labels keep {min(weights):.0%} to {max(weights):.0%} under other rules."
    )
    return Finding(
        "rule",
        "Other rules",
        verdict,
        spread,
        said,
        (f"yours: {method.degradation_.in_words()}", *words),
        (own, *weights),
        axis="weight of marked labels",
    )


def _spread_finding(method: Inversion, X: np.ndarray, L: np.ndarray, error: ExpectedError, seed: int) -> Finding:
    """How far the answer moves when the spread does, by one posterior deviation up and down."""
    from dataclasses import replace

    X, L, fit = X[:COMPARED_ROWS], L[:COMPARED_ROWS], method.fit_
    r = min(fit.spread_deviation, 0.9)

    def answer(factor: float) -> np.ndarray:
        scaled: Parameters = fit.parameters.scaled(factor)
        model = replace(fit, parameters=scaled)
        return np.asarray(to_numpy(model.posterior_of_block(X, L, np.random.default_rng(seed)).mean))

    low, high = answer(1 - r), answer(1 + r)
    moved = float(np.mean(kl_divergence(high, low))) / 4  # two deviations apart, and KL is of second order
    share = moved / max(error.mean, 1e-300)
    verdict = FINE if share < 0.25 else DOUBTFUL
    known = "little" if verdict == FINE else "much"
    said = (
        f"Unevenness of degrees: the spread is {method.spread_:.2g}, known to {r:.0%}; one deviation of it moves the "
        f"answer by KL {moved:.2g}, {known} beside the expected error."
    )
    weights = tuple(float((A * (L > 0)).sum(axis=1).mean()) for A in (low, high))
    return Finding(
        "spread",
        "Other spreads",
        verdict,
        share,
        said,
        ("one deviation less", "as estimated", "one deviation more"),
        (weights[0], method.rule_report_.yes_weight, weights[1]),
        axis="weight of marked labels",
    )


def _hidden_entries_finding(
    method: Inversion, X: np.ndarray, L: np.ndarray, seed: int
) -> tuple[tuple[Finding, ...], str]:
    """Entries of the labels that were hidden from a fit: how well are they told, beside what baselines say?"""
    again = clone(method).set_params(degradation=method.degradation_, n_samples=0, verbose=False, **SHORT)
    return find_hidden_entries(again, X[:COMPARED_ROWS], L[:COMPARED_ROWS], seed, "the model")


def _chain_finding(method: Inversion) -> Finding:
    size, split = method.fit_.effective_sample_size, method.fit_.split_r_hat
    verdict = FINE if split < 1.1 and size >= ENOUGH_DRAWS else DOUBTFUL if split < 1.3 else OFF
    end = "" if verdict == FINE else "; raise n_sweeps"
    return Finding(
        "chain",
        "The sampler",
        verdict,
        float(split),
        f"The sampler: R-hat {split:.2f} (1 is best), a typical degree rests on {size:.0f} independent draws{end}.",
        ("of a typical degree", "enough"),
        (float(size), float(ENOUGH_DRAWS)),
        axis="independent draws",
    )


# ------------------------------------------------------------------------------------------------- what to do next


def _advice(findings: tuple[Finding, ...], yes_weight: float, method: Inversion) -> tuple[str, ...]:
    verdicts = {f.name: f.verdict for f in findings}
    found = []
    if verdicts.get("cardinality", FINE) != FINE:
        chosen = method.degradation == "auto"
        found.append(
            "The rule does not explain how many labels rows have"
            + (', and "auto" found none better: name the rule if you know it.' if chosen
               else ': try degradation="auto", or another rule.')
        )  # fmt: skip
    if yes_weight < 0.5:
        found.append('Most weight lies on labels marked no: if that is not meant, use degradation="main".')
    if verdicts["rule"] != FINE:
        found.append(
            "Find out how the labels were made (main labels, everything that matters, a bar): much hangs on it."
        )
    if verdicts["spread"] != FINE or not method.degradation_.scale_matters:
        found.append("Grade a few rows by hand, which tell how uneven degrees are; contone suggest says which rows.")
    if verdicts["patterns"] == OFF or verdicts["co-occurrence"] == OFF:
        found.append("Labels go together in ways the model does not make: look at the doubtful labels, try noise=0.05.")
    if verdicts.get("entries", FINE) != FINE:
        found.append("Baselines tell hidden labels better than the model does: try another rule, or features=False.")
    if verdicts["chain"] != FINE:
        found.append("Raise n_sweeps: the answer still depends on chance.")
    found.append("Compare methods on data like yours with known truth: contone.compare.")
    return tuple(found)

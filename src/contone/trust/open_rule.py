"""Expected errors and intervals over the rules that the labels allow, not under one of them alone.

The numbers of labels per row say how probable each rule is (`rank_rules`); the rule that was named counts as much as
all others together before the labels are looked at. Under a rule r with the posterior mean D_r and the error e_r, an
answer A has the expected error

    E_r KL(D || A) = e_r + KL(D_r || A),

and over the rules their weighted mean; never less than how far the answers under the two most probable rules are
apart. The share of it that is not there if the named rule is right is what the rule is worth knowing.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from sklearn.base import clone

from contone.enhance.inversion import Inversion
from contone.enhance.inversion.expected_error import ExpectedError, second_order
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips
from contone.enhance.inversion.posterior import Posterior
from contone.enhance.inversion.rules import SHARES, THRESHOLDS, Ranked, rank_rules
from contone.measurements import IntervalRule, Order
from contone.numerics.simplex import kl_divergence
from contone.trust.check_result import DOUBTFUL, FINE, Finding, graded
from contone.trust.subject import SHORT
from contone.typing import Matrix
from contone.validation.degrees import NOTHING_KNOWN

LEAST_WEIGHT = 0.05
"""Probability from which on a rule is one that the labels allow."""
MOST_RULES, MANY_LABELS = 3, 60
SIMPLE = 0.1
"""Share of the weight of L / |L| that is spread evenly: the KL of a zero is infinite."""


class OverRules(NamedTuple):
    """What is expected over the rules that the labels allow.

    Attributes
    ----------
    error : ExpectedError
        Of the answer.
    share : float
        How much of it is that the rule is not known.
    baselines : dict
        Expected KL of uniform degrees and of the labels alone.
    weights : dict
        Probability of each rule, by its words.
    lower, upper : (m, q)
        90 % intervals.
    yes_weights : dict
        Weight of marked labels under each rule.
    """

    error: ExpectedError
    share: float
    baselines: dict[str, float]
    weights: dict[str, float]
    lower: Matrix
    upper: Matrix
    yes_weights: dict[str, float]


def average_over_rules(
    method: Inversion, X: Matrix, L: Matrix, posterior: Posterior, answer: Matrix, error: ExpectedError
) -> OverRules:
    """Over the rules that labels L (m, q) allow, for an answer (m, q) to rows X (m, d).

    `method` is fitted under one rule, under which these rows have the posterior and the answer the expected error.
    """
    fit, found = method.rule_fit_, [posterior]
    rules = allowed_rules(fit.rule, L, fit.settings.noise, is_named=method.degradation != "auto")
    level = (error.mean - _apart(posterior.mean, answer)) / max(float(second_order(posterior).mean()), 1e-300)
    for rule, _ in rules[1:]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = clone(method).set_params(degradation=rule, n_samples=0, verbose=False, **SHORT).fit(X, L)
        found.append(other.posterior_)
    weight = np.array([w for _, w in rules])
    own = np.array([max(level, 0.0) * float(second_order(each).mean()) for each in found])
    q, marked = L.shape[1], np.where(L > 0, L, 0.0)
    alone = marked / np.maximum(marked.sum(axis=1, keepdims=True), 1e-300)
    simple = {"equal degrees": np.full(L.shape, 1 / q), "the labels alone": (1 - SIMPLE) * alone + SIMPLE / q}
    by_rule = np.array([_apart(p.mean, answer) for p in found])
    each = own + by_rule
    likeliest = np.argsort(-weight, kind="stable")[:2]
    disagreement = _apart(found[likeliest[-1]].mean, found[likeliest[0]].mean)
    mean = max(float(weight @ each), disagreement)
    ratio = (error.lower / max(error.mean, 1e-300), error.upper / max(error.mean, 1e-300))
    ends = min(ratio[0] * float(each.min()), mean), max(ratio[1] * float(each.max()), mean)
    centre = sum(w * p.logit_centre for w, p in zip(weight, found, strict=True))
    spread = [p.total_width(fit.spread_deviation, fit.shape_shares) for p in found]
    variance = sum(w * (s**2 + (p.logit_centre - centre) ** 2) for w, s, p in zip(weight, spread, found, strict=True))
    half = float(ndtri(0.95)) * np.sqrt(variance)
    words = [rule.in_words() for rule, _ in rules]
    return OverRules(
        ExpectedError(mean, *ends, error.rows * (mean / max(error.mean, 1e-300))),
        1.0 - min(float(weight @ own) + float(by_rule[0]), mean) / mean if mean > 0 else 0.0,
        {name: float(weight @ (own + [_apart(p.mean, A) for p in found])) for name, A in simple.items()},
        dict(zip(words, map(float, weight), strict=True)),
        expit(centre - half),
        expit(centre + half),
        {name: float((p.mean * (L > 0)).sum(axis=1).mean()) for name, p in zip(words, found, strict=True)},
    )


def allowed_rules(own: IntervalRule, L: Matrix, noise: Flips = NO_FLIPS, *, is_named: bool) -> Ranked:
    """The rule of a fit, and others that labels L (m, q) allow, with their weights, which sum to 1."""
    if not np.isin(L[~np.isnan(L)], (0.0, 1.0)).all():
        return [(own, 1.0)]  # levels and ranks: no other rule reads them
    if isinstance(own, Order):  # says nothing of numbers of labels, so that these do not speak for or against it
        ranked = [(own, 0.5), *((rule, 0.5 * p) for rule, p in rank_rules(L))]
    else:
        # With many labels a rule takes long to try: only those that have a name are.
        shares, bars = ((0.9,), (1.0,)) if L.shape[1] > MANY_LABELS else (SHARES, THRESHOLDS)
        ranked = rank_rules(L, NOTHING_KNOWN, own if is_named else None, shares, bars, noise)
    weight = dict(ranked)
    others = [rule for rule, p in ranked if rule != own and p >= LEAST_WEIGHT][: MOST_RULES - 1]
    kept = {own: weight.get(own, 0.0), **{rule: weight[rule] for rule in others}}
    total = sum(kept.values()) or 1.0
    return [(rule, p / total) for rule, p in kept.items()] if others else [(own, 1.0)]


def gain_finding(found: OverRules) -> Finding:
    """Is the answer expected to be better than no answer and than the labels as they are?"""
    best = min(found.baselines, key=lambda name: found.baselines[name])
    ratio = found.error.mean / max(found.baselines[best], 1e-300)
    beside = ", ".join(f"{name} {value:.3g}" for name, value in found.baselines.items())
    said = f"Expected error: KL {found.error.mean:.3g} ({beside}), {ratio:.0%} of that of {best}."
    shown = {"the answer": found.error.mean, **found.baselines}
    return Finding("gain", "Better than a simple answer?", graded(ratio, 0.75, 1.0), ratio, said, shown, "expected KL")


def rule_finding(found: OverRules, own: str) -> Finding:
    """How much of the expected error is that the rule is not known?"""
    others = {name: w for name, w in found.weights.items() if name != own}
    weights = list(found.yes_weights.values())
    if not others:
        said = f"The rule: by the numbers of labels per row no other rule than “{own}” is likely."
    else:
        likely = ", ".join(f"“{name}” with {w:.0%}" for name, w in others.items())
        said = (
            f"The rule: by the numbers of labels per row it is “{own}” with {found.weights[own]:.0%}, or {likely}; "
            f"marked labels keep {min(weights):.0%} to {max(weights):.0%} of the weight, and {found.share:.0%} of the "
            "expected error is that nobody knows which."
        )
    verdict = DOUBTFUL if found.share > 0.5 or found.weights[own] < LEAST_WEIGHT else FINE
    return Finding("rule", "Other rules", verdict, found.share, said, found.yes_weights, "weight of marked labels")


def _apart(D: Matrix, A: Matrix) -> float:
    """Mean KL(D || A) over rows."""
    return float(np.mean(kl_divergence(D, np.maximum(A, 1e-12))))

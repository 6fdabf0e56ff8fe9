"""How well a rule and the model explain the labels that they were fitted to, and what that means for the degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contone.backends import to_numpy
from contone.degrade import Degradation
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.rule_names import in_words
from contone.exceptions import LabelWarning
from contone.numerics.simplex import softmax
from contone.runtime.warnings import warn
from contone.typing import Array

ASSESSED_ROWS = 2000
"""Rows that are simulated to see which numbers of labels a fitted model gives."""


@dataclass(frozen=True)
class RuleReport:
    """What is known of a rule once a model was fitted under it.

    Attributes
    ----------
    rule : Degradation
    explained : float or None
        Overlap of the numbers of labels per row, as given and as the fitted model makes them (1 minus the total
        variation between the two histograms); None where the rule takes the numbers as given.
    yes_weight : float
        Mean weight of the labels marked yes.
    """

    rule: Degradation
    explained: float | None
    yes_weight: float

    def __str__(self) -> str:
        fits = (
            "takes the numbers of labels per row as given"
            if self.explained is None
            else f"explains {self.explained:.0%} of the numbers of labels per row"
        )
        return (
            f"rule: {in_words(self.rule)} ({self.rule}); {fits}; labels marked yes keep {self.yes_weight:.0%} of the "
            "weight"
        )


def report_rule(fit: Fit, X: Array, L: Array, D: Array) -> RuleReport:
    """The report for rows X (n, d), L (n, q) in memory and their recovered degrees D (n, q)."""
    positive = to_numpy(L) > 0
    yes_weight = float((to_numpy(D) * positive).sum(axis=1).mean())
    if not fit.rule.scale_matters or L.shape[1] == 1:
        return RuleReport(fit.rule, None, yes_weight)
    sizes = positive.sum(axis=1)
    made = simulate_labels(fit, X, np.random.default_rng(0)).sum(axis=1)
    q = L.shape[1]
    given, expected = (np.bincount(s, minlength=q + 1) / len(s) for s in (sizes[sizes > 0], made))
    return RuleReport(fit.rule, float(np.minimum(given, expected).sum()), yes_weight)


def simulate_labels(fit: Fit, X: Array, rng: np.random.Generator, max_rows: int = ASSESSED_ROWS) -> np.ndarray:
    """Labels (m, q), bool, that the fitted model makes for at most `max_rows` of the rows X (n, d), evenly spaced."""
    chosen = np.linspace(0, len(X) - 1, min(len(X), max_rows)).round().astype(int)
    mean = to_numpy(fit.mean(X[chosen])).T
    noise = rng.standard_normal(mean.shape) @ logistic_normal.square_root(fit.parameters.covariance).T
    return np.asarray(fit.rule._apply(softmax(mean + noise)), dtype=bool)


def warn_of_denied_labels(report: RuleReport) -> None:
    """Say so where most of the weight lies on labels that are marked no."""
    if report.yes_weight < 0.5:
        reason = (
            "the order alone does not say how uneven degrees are, so a weak assumption decided it"
            if report.explained is None
            else "under this rule the labels say that degrees are nearly equal"
        )
        warn(
            f"Most of the weight ({1 - report.yes_weight:.0%}) lies on labels that are not marked: {reason}. If marked "
            f'labels should have most of it, use degradation="main" ("main labels, more than half of the weight").',
            LabelWarning,
        )


def describe_rule(method: Any) -> str:
    """One line for people: the rule of a fitted `Inversion`, how well it explains the labels, the weight they keep.

    Empty for methods that assume no rule.
    """
    report = getattr(method, "rule_report_", None)
    return "" if report is None else str(report)

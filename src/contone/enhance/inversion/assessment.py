"""How well a rule and the model explain the labels that they were fitted to, and the rows to look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, to_numpy
from contone.enhance.inversion.chain import count_labels
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Counts, Flips
from contone.enhance.inversion.model import Fit, on_host
from contone.enhance.inversion.posterior import evenly
from contone.exceptions import LabelWarning
from contone.measurements import IntervalRule, Measurement, Order
from contone.measurements.order import has_levels
from contone.numerics.simplex import softmax
from contone.runtime.warnings import warn
from contone.typing import Array
from contone.validation.degrees import KnownDegrees
from contone.validation.training import silent_rows

SAMPLE_ROWS, SAMPLE_ENTRIES, LEAST_SAMPLE = 500, 20_000, 100
"""At most how many rows, or label entries, errors are estimated on; and rows that are always looked at."""
ASSESSED_ROWS = 2000
"""Rows that are simulated to see which numbers of labels a fitted model gives."""


_SCALES = {
    "labels": "",
    "prior": "; the order does not say how uneven degrees are: a weak prior does, and graded rows (degrees=) would",
    "graded rows": "; how uneven degrees are comes from the graded rows",
    "edge": "; how uneven degrees are is at the end of what is looked at: labels do not tell, graded rows would",
}


@dataclass(frozen=True)
class RuleReport:
    """What is known of a rule once a model was fitted under it.

    Attributes
    ----------
    rule : IntervalRule
    explained : float or None
        Overlap of the numbers of labels per row, as given and as the fitted model makes them (1 minus the total
        variation between the two histograms); None where the rule takes the numbers as given.
    yes_weight : float
        Mean weight of the labels marked yes; with levels, of those with the highest one of their row.
    levels : bool
        Whether the labels are levels or ranks beyond 0 and 1.
    scale_from : str
        What says how uneven degrees are: "labels", "prior" or "graded rows"; "edge" where labels ask for no end of it.
    """

    rule: IntervalRule
    explained: float | None
    yes_weight: float
    levels: bool = False
    scale_from: str = "labels"

    def __str__(self) -> str:
        fits = (
            "takes the number of labels per row as given"
            if self.explained is None
            else f"fits the number of labels of {self.explained:.0%} of the rows"
        )
        words, marked = self.rule.in_words(), "labels marked yes keep"
        if self.levels:
            words, marked = "higher levels above lower ones, no more", "labels of the highest level have"
            fits = "takes the levels as given"
        kept = f"{marked} {self.yes_weight:.0%} of the weight"
        return f"rule: {words} ({self.rule}); {fits}; {kept}{_SCALES[self.scale_from]}"


def report_rule(fit: Fit, X: Array, L: Array, D: Array, *, is_graded: bool = False) -> RuleReport:
    """The report for rows X (n, d), L (n, q) in memory and their recovered degrees D (n, q)."""
    backend, xp = get_backend(L), array_namespace(L)
    levels = isinstance(fit.rule, Order) and has_levels(L)
    asked, told = L == L, ~silent_rows(L)
    positive = L > 0
    if levels:
        positive = backend.row_maxima(xp.where(asked, L, xp.full_like(L, -xp.inf)))[:, None] == L
    weight = xp.sum(xp.where(positive, D, xp.zeros_like(D)), axis=1)
    # A label that nobody asked about is marked neither yes nor no.
    among = xp.sum(xp.where(asked & told[:, None], D, xp.zeros_like(D)))
    yes_weight = float(xp.sum(weight[told])) / max(float(among), 1e-300)
    if not fit.rule.scale_matters or L.shape[1] == 1:
        scale_from = "labels" if fit.rule.scale_matters else "graded rows" if is_graded else "prior"
        return RuleReport(fit.rule, None, yes_weight, levels, scale_from)
    sizes = xp.sum(xp.astype(positive, xp.int64), axis=1)
    empty = xp.all(asked, axis=1) & (sizes == 0)
    lost = fit.settings.noise.missed > 0 and bool(xp.any(empty))
    if fit.rule.at_least_one and not lost:
        sizes = sizes[told & ~empty]
    simulated = simulate_labels(fit, X, np.random.default_rng(0))
    made = (simulated & to_numpy(asked[evenly(X.shape[0], ASSESSED_ROWS)])).sum(axis=1)
    if fit.settings.noise.any() and not lost:
        made = made[made > 0]
    q = L.shape[1]
    given = to_numpy(backend.count_members(sizes, q + 1)) / sizes.shape[0]
    expected = np.bincount(made, minlength=q + 1) / len(made)
    scale_from = "edge" if fit.spread.at_edge() and not is_graded else "labels"
    return RuleReport(fit.rule, float(np.minimum(given, expected).sum()), yes_weight, scale_from=scale_from)


def simulate_labels(fit: Fit, X: Array, rng: np.random.Generator, max_rows: int = ASSESSED_ROWS) -> np.ndarray:
    """Labels (m, q), bool, that the fitted model makes for at most `max_rows` of the rows X (n, d), evenly spaced."""
    drawn = to_numpy(fit.draw(X[evenly(X.shape[0], max_rows)], rng))
    positive = np.asarray(fit.rule._apply(softmax(drawn)), dtype=bool)
    return fit.settings.noise.applied(positive, rng) if fit.settings.noise.any() else positive


@dataclass(frozen=True)
class ErrorSample:
    """Rows to estimate the error on: X (m, d), L (m, q), the answer D (m, q); and |L| of all n rows, counted (q,)."""

    X: np.ndarray
    L: np.ndarray
    D: np.ndarray
    counts: Counts
    n: int
    numbers: np.ndarray
    """Which of the rows they are, (m,)."""
    graded: np.ndarray
    """Which of them have degrees that are known, (m,)."""

    @classmethod
    def of(
        cls, fit: Fit, X: Array, L: Array, D: Array, graded: np.ndarray | None = None, numbers: np.ndarray | None = None
    ) -> "ErrorSample":
        """At most `SAMPLE_ROWS` rows, fewer with many labels, in random order.

        `graded` are the numbers of the rows with known degrees; `numbers` (n,) are those of the rows, where they are a
        sample themselves.
        """
        n, noise = L.shape[0], fit.settings.noise
        most = min(SAMPLE_ROWS, max(SAMPLE_ENTRIES // L.shape[1], LEAST_SAMPLE))
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:most])
        X_some, L_some, D_some = (on_host(A[chosen]) for A in (X, L, D))
        named = chosen if numbers is None else np.asarray(numbers)[chosen]
        counts, L_some = count_labels(L, fit.rule, noise), noise.forget_silent(fit.rule, L_some)
        return cls(X_some, L_some, D_some, counts, n, named, np.isin(named, [] if graded is None else graded))


def warn_of_denied_labels(report: RuleReport) -> None:
    """Say so where most of the weight lies on labels that are marked no."""
    if report.yes_weight < 0.5 and not report.levels:
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


def warn_of_contradictions(known: KnownDegrees, L: np.ndarray, rule: IntervalRule) -> None:
    """Say which graded rows have other labels than their degrees would give; L (m, q) are their labels."""
    if len(known.rows) == 0:
        return
    odd = known.rows[~rule.agrees(known.degrees, L)]
    if len(odd):
        shown = ", ".join(map(str, odd[:5])) + (", ..." if len(odd) > 5 else "")
        warn(
            f"{len(odd)} of {len(known.rows)} graded rows have labels that {rule} does not make from their degrees "
            f"(rows {shown}). Their degrees are kept; check the labels of these rows, or try another `degradation`.",
            LabelWarning,
        )


def warn_of_silent_rows(L: Array, rule: Measurement, graded: np.ndarray, noise: Flips = NO_FLIPS) -> None:
    """Count the rows without any label that a fit leaves out; those in `graded` have degrees."""
    silent = np.array(to_numpy(noise.silent(rule, L)))
    silent[graded] = False
    if silent.any():
        warn(
            f"Y has rows without any label ({int(silent.sum())} of {len(silent)}, first row {int(silent.argmax())}): "
            "they are left out of the fit, and their degrees are predicted from their features.",
            LabelWarning,
        )


def warn_of_relaxed_rows(n_relaxed: int, among: str, rule: IntervalRule) -> None:
    """Say how many rows the rule cannot have made."""
    if n_relaxed:
        warn(
            f"{n_relaxed} of {among} have labels that {rule} cannot have made; for these only the order is used: "
            "marked labels above the others. Another `degradation` (or noise > 0) may fit better.",
            LabelWarning,
        )


def describe_rule(method: Any) -> str:
    """One line for people: the rule of a fitted `Inversion`, how well it explains the labels, the weight they keep.

    Empty for methods that assume no rule.
    """
    report = getattr(method, "rule_report_", None)
    return "" if report is None else str(report)

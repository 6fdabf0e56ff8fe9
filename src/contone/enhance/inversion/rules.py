"""Which rule made the labels: the one that a name stands for, or the likeliest of several.

Rules differ in how many labels the rows have: a share of mass, a threshold and a fixed number give different histograms
of |L| for the same distributions. How the labels are correlated matters as much, so every candidate is judged with a
model that was fitted under it.
"""

import numpy as np

from contone.enhance.inversion import logistic_normal, unasked
from contone.enhance.inversion.chain import Settings, count_labels, learn_parameters, simulated_rows
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Flips
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import LabelWarning
from contone.measurements import CumulativeMass, IntervalRule, Measurement, Threshold, TopK, Votes, parse_rule
from contone.runtime import progress
from contone.runtime.warnings import warn
from contone.typing import Array
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

Ranked = list[tuple[IntervalRule, float]]
"""Rules and their probabilities."""
TRIAL_ROWS, TRIAL_SWEEPS, TRIAL_LABELS = 1000, 40, 60
"""At most how many rows, and how many sweeps, each candidate of "auto" is fitted with; with more labels than this,
fewer sweeps, in proportion (a sweep takes as many steps as there are labels)."""

SHARES = (0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
"""Shares of mass that are tried beside one half."""
THRESHOLDS = (0.5, 0.75, 1.0, 1.5, 2.0)
"""Thresholds that are tried, in units of the mean degree 1 / q."""
HEIGHTS = (0.35, 0.5, 0.6, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0)
"""The same where a threshold is what made the labels, and only its height is open."""
CONVENTION = 0.5
"""Prior probability of CumulativeMass(0.5), by which the data sets of the field are made; the others share the rest."""
CLEAR = 0.95
"""Probability of the likeliest rule under which the choice is called open."""


def choose_rule(
    degradation: Measurement | str, L: np.ndarray, known: KnownDegrees = NOTHING_KNOWN, noise: Flips = NO_FLIPS
) -> Measurement:
    """The rule that `degradation` of `Inversion` stands for, given labels L (n, q), their errors and graded rows."""
    rule = parse_rule(degradation) if isinstance(degradation, str) else degradation
    chosen = rule if isinstance(rule, Measurement) else _choose(rule, L, known, noise)
    return chosen.suited_to(L)


def _choose(rule: str, L: np.ndarray, known: KnownDegrees, noise: Flips) -> Measurement:
    q = L.shape[1]
    has_zeros = bool((L == 0).all(axis=1).any())
    if rule == "bar" and q > 1 and not np.isnan(L).all():
        return likeliest_threshold(L, known, noise, at_least_one=not has_zeros)
    L, known = _labelled(L, known, noise)
    if len(L) == 0:
        return CumulativeMass()
    if rule == "best":
        return _usual_number(L, noise)
    if rule == "auto" and q > 1 and bool((L.sum(axis=1) == 1).all()):
        warn(
            'Every row has exactly one label, which degradation="auto" reads as one vote per row: a degree is the '
            "share of people who would choose the label. Say how the labels were made if they are something else.",
            LabelWarning,
        )
        return Votes()
    if rule == "threshold" or q == 1:
        return Threshold(1.0 / max(q, 2)) if rule != "auto" else CumulativeMass()
    ranked = rank_rules(L, known, noise=noise)
    _warn_if_open(ranked)
    return ranked[0][0]


def rank_rules(
    L: np.ndarray,
    known: KnownDegrees = NOTHING_KNOWN,
    named: IntervalRule | None = None,
    shares: tuple[float, ...] = SHARES,
    thresholds: tuple[float, ...] = THRESHOLDS,
    noise: Flips = NO_FLIPS,
) -> Ranked:
    """Rules and their posterior probabilities given the cardinalities of L (n, q), the likeliest first.

    The likelihood is averaged over the prior of the spread. Graded rows say directly whether a rule makes their labels.
    A rule that somebody named takes the place of the convention, with its prior probability. Beside these, shares of
    mass and thresholds, the latter in units of the mean degree, are tried.
    """
    q, named = L.shape[1], named or CumulativeMass()
    others: list[IntervalRule] = [CumulativeMass(t) for t in (0.5, *shares)]
    one = noise.missed == 0 or not (L == 0).all(axis=1).any()  # as `suited_to` has it
    others += [Threshold(r / q, bool(one)) for r in thresholds if r < q]
    others = [rule for rule in (*others, _usual_number(L, noise)) if rule != named]
    rules = [named, *others]
    prior = np.log([CONVENTION, *[(1 - CONVENTION) / len(others)] * len(others)])
    tried = progress.reported(rules, len(rules), "choosing the rule")
    scores = prior + [_evidence(rule, L, known, noise) for rule in tried]
    probabilities = np.exp(scores - np.logaddexp.reduce(scores))
    return [(rules[i], float(probabilities[i])) for i in np.argsort(-probabilities, kind="stable")]


def likeliest_threshold(
    L: np.ndarray, known: KnownDegrees = NOTHING_KNOWN, noise: Flips = NO_FLIPS, *, at_least_one: bool = True
) -> Threshold:
    """The threshold with the highest likelihood of the cardinalities of L (n, q), averaged over the spread."""
    q = L.shape[1]
    candidates = [Threshold(r / q, at_least_one) for r in HEIGHTS if r < q]
    # Each with a fit of its own: judged with a model from another height, a neighbour may look better by far.
    tried = progress.reported(candidates, len(candidates), "choosing the height of the bar")
    return candidates[int(np.argmax([_evidence(rule, L, known, noise) for rule in tried]))]


def _warn_if_open(ranked: list[tuple[IntervalRule, float]]) -> None:
    (best, first), (_, second) = ranked[:2]
    if first < CLEAR:
        others = "; ".join(f"{rule.in_words()} ({p:.0%})" for rule, p in ranked[1:4] if p > 0.01 or p == second)
        warn(
            f'degradation="auto" took "{best.in_words()}" with a probability of only {first:.0%}: by the numbers of '
            f"labels per row it could also be {others}. Degrees differ between these rules; say how the labels were "
            "made if you know.",
            LabelWarning,
        )


def _evidence(rule: IntervalRule, L: np.ndarray, known: KnownDegrees, noise: Flips = NO_FLIPS) -> float:
    """Log likelihood of the cardinalities, and of the labels of graded rows, under a rule."""
    number = L.sum(axis=1)  # NaN where an entry is unasked
    exact = not noise.any()
    if exact and isinstance(rule, TopK) and np.mean((number < rule.k) | (number > rule.k)) > 0.5:
        return -np.inf  # most rows speak against it, and no fit would change that
    Z = _draw_under(rule, L, noise)
    score = logistic_normal.spread_evidence(rule, Z, count_labels(L, rule, noise), noise)
    given, told = L[known.rows], len(known.rows) > 0
    if not exact:
        marks = given.T > 0, ~np.isnan(given.T)
        return score + (float(noise.log_likelihood(rule._apply(known.degrees).T, *marks).sum()) if told else 0.0)
    # A pattern that the rule cannot make counts as a cardinality that it never gives.
    n_odd = int(unasked.start_rows(rule, L)[1].sum())
    n_odd += int((~rule.agrees(known.degrees, given)).sum()) if told else 0
    return score + float(np.log(0.5 / len(Z)) * n_odd)


def _draw_under(rule: IntervalRule, L: np.ndarray, noise: Flips = NO_FLIPS) -> Array:
    """Draws (m, q) of z at spread 1, from a short fit without features under a rule."""
    q = L.shape[1]
    some = L[~noise.silent(rule, L)]
    some = some[np.sort(np.random.default_rng(0).permutation(len(some))[:TRIAL_ROWS])]
    rows, rng = Rows(rule, some, noise), np.random.default_rng(0)
    n_sweeps = TRIAL_SWEEPS if q <= TRIAL_LABELS else max(TRIAL_SWEEPS * TRIAL_LABELS // q, 10)
    settings = Settings(features=False, n_sweeps=n_sweeps, n_burn=n_sweeps // 2)
    phi, counts = np.ones((1, len(some))), count_labels(some, rule, noise)
    found, _, _ = learn_parameters(phi, rows, Averages(rows.Z, 0, 0), counts, settings, rng)
    normals = rng.standard_normal((simulated_rows(q), q))
    Z = found.coefficients[0] + normals @ logistic_normal.square_root(found.covariance).T
    return Z / np.sqrt(np.mean(np.square(Z)))


def _usual_number(L: np.ndarray, noise: Flips) -> TopK:
    """The largest degrees, as many as most rows have labels; as many as rows have in the mean, where some are wrong."""
    positive = (np.nanmean(L) - noise.false) / (1.0 - noise.missed - noise.false)
    mean = int(np.clip(np.round(L.shape[1] * positive), 1, max(L.shape[1] - 1, 1)))
    return TopK(mean if noise.any() else int(np.bincount(unasked.number_of_labels(L)).argmax()))


def _labelled(L: np.ndarray, known: KnownDegrees, noise: Flips = NO_FLIPS) -> tuple[np.ndarray, KnownDegrees]:
    """Labels (n, q) and known degrees of the rows that say something."""
    told = ~noise.silent(CumulativeMass(), L)
    if told.all():
        return L, known
    kept = told[known.rows]
    return L[told], KnownDegrees((np.cumsum(told) - 1)[known.rows[kept]], known.degrees[kept])

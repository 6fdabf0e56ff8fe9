"""Are the differences between methods more than chance? Ranks and tests over data sets, as Demsar (2006) advises.

A table here is ``scores[method][dataset] -> value`` for one measure. Tests come from scipy and scikit-posthocs.

A warning that belongs to every p-value computed on the paper's sets: ten of the twelve share one feature matrix
(Yeast), so they are not independent, and the tests overstate the evidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import stats

from contone.exceptions import InputError, missing_extra

Scores: TypeAlias = Mapping[str, Mapping[str, float]]

EXACT_UP_TO = 16
"""Pairs up to which Wilcoxon's distribution is enumerated (2^n sign patterns), ties and all."""


@dataclass(frozen=True)
class Wilcoxon:
    """A two-sided signed-rank test of one method against another over data sets."""

    p_value: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Ranking:
    """Several methods over several data sets in one measure.

    Attributes
    ----------
    average_ranks : dict
        Mean rank by method, ties shared; 1 is best. Data sets on which a method has no score are left out.
    reference, wilcoxon : str, dict
        The method that Wilcoxon's tests compare with all others, and these tests by the other method.
    friedman_p : float or None
        p-value of Friedman's test; None for fewer than three methods or two data sets, as the next two.
    critical_difference : float or None
        Ranks further apart than this differ at the level 0.05 (Nemenyi).
    nemenyi : dict or None
        p-values by pair of methods.
    """

    average_ranks: dict[str, float]
    reference: str
    wilcoxon: dict[str, Wilcoxon]
    friedman_p: float | None = None
    critical_difference: float | None = None
    nemenyi: dict[str, dict[str, float]] | None = None


def average_ranks(scores: Scores, *, greater_is_better: bool) -> dict[str, float]:
    """The mean rank of every method over the data sets, 1 for the best; methods that tie share the mean of their ranks.

    Examples
    --------
    >>> average_ranks({"a": {"x": 1.0}, "b": {"x": 1.0}, "c": {"x": 2.0}}, greater_is_better=False)
    {'a': 1.5, 'b': 1.5, 'c': 3.0}
    """
    methods, _, values = _matrix(scores)
    ranked = stats.rankdata(-values if greater_is_better else values, axis=0, method="average")
    return dict(zip(methods, map(float, ranked.mean(axis=1)), strict=True))


def wilcoxon(ours: Mapping[str, float], other: Mapping[str, float], *, greater_is_better: bool) -> Wilcoxon:
    """The signed-rank test over the data sets that both have; zero differences are dropped (Wilcoxon's own way).

    Up to 16 pairs the distribution is exact, also with tied differences, which rounding to four digits makes common.
    """
    shared = [name for name in ours if name in other]
    # Rounded well below any printed digit: 0.0596 - 0.0594 and 0.0136 - 0.0134 are one tie, not two close values.
    difference = np.round([ours[name] - other[name] for name in shared], 12)
    if greater_is_better:
        difference = -difference
    wins, ties, losses = (int((difference < 0).sum()), int((difference == 0).sum()), int((difference > 0).sum()))
    if wins + losses == 0:
        return Wilcoxon(1.0, wins, ties, losses)
    kept = difference[difference != 0]
    return Wilcoxon(float(stats.wilcoxon(kept, method=_wilcoxon_method(kept)).pvalue), wins, ties, losses)


def _wilcoxon_method(difference: np.ndarray) -> str | stats.PermutationMethod:
    """How scipy is to find the p-value of differences that are not zero."""
    if len(difference) > EXACT_UP_TO:
        return "approx"
    tied = len(np.unique(np.abs(difference))) < len(difference)
    mixed = difference.min() < 0 < difference.max()
    # scipy's "exact" form assumes ranks without ties. With signs all equal the statistic is 0 and ties do not matter;
    # else the sign patterns are enumerated, which is right in every case and three hundred times slower.
    return stats.PermutationMethod(n_resamples=np.inf) if tied and mixed else "exact"


def rank(scores: Scores, *given: str, greater_is_better: bool) -> Ranking:
    """Average ranks, Friedman's test, Nemenyi's with its critical difference, and Wilcoxon's tests.

    The last are of the method `given`, or else of the one with the best rank, against all others.
    """
    methods, datasets, values = _matrix(scores)
    mean_ranks = average_ranks(scores, greater_is_better=greater_is_better)
    (reference,) = given or (min(mean_ranks, key=mean_ranks.__getitem__),)
    ours, others = scores[reference], [method for method in methods if method != reference]
    tests = {other: wilcoxon(ours, scores[other], greater_is_better=greater_is_better) for other in others}
    found = Ranking(mean_ranks, reference, tests)
    if len(methods) < 3 or len(datasets) < 2:
        return found
    friedman, difference = stats.friedmanchisquare(*values).pvalue, critical_difference(len(methods), len(datasets))
    return replace(found, friedman_p=float(friedman), critical_difference=difference, nemenyi=_nemenyi(methods, values))


def critical_difference(n_methods: int, n_datasets: int, *, level: float = 0.05) -> float:
    """Nemenyi's critical difference q sqrt(k (k + 1) / 6N), q of the studentised range divided by sqrt 2.

    Examples
    --------
    >>> round(critical_difference(5, 30), 3)  # Demsar (2006) prints q = 2.728 for five methods
    1.114
    """
    q = float(stats.studentized_range.ppf(1 - level, n_methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def _nemenyi(methods: list[str], values: np.ndarray) -> dict[str, dict[str, float]]:
    try:
        from scikit_posthocs import posthoc_nemenyi_friedman
    except ImportError as error:
        raise missing_extra("Comparing methods", "scikit-posthocs", "report") from error
    # One row per data set, one column per method; the test is two-sided, so the measure's direction does not matter.
    table = posthoc_nemenyi_friedman(values.T).to_numpy()
    return {a: {b: float(table[i, j]) for j, b in enumerate(methods)} for i, a in enumerate(methods)}


def _matrix(scores: Scores) -> tuple[list[str], list[str], np.ndarray]:
    """Methods, the data sets that all of them have a score on, and the values (methods x data sets)."""
    methods = list(scores)
    if not methods:
        raise InputError("There is nothing to rank: no method has scores.")
    datasets = [name for name in scores[methods[0]] if all(name in scores[m] for m in methods)]
    if not datasets:
        raise InputError("There is nothing to rank: the methods share no data set.")
    return methods, datasets, np.array([[scores[m][d] for d in datasets] for m in methods], dtype=float)

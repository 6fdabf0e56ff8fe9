"""Checks of the answer of any enhancer, which need not have a model of how labels are made.

Some hold for every answer: do degrees agree with the labels they were made from, and does the method predict labels
that were hidden from it? The others compare the answer with the model of `Inversion`, fitted to the same rows: how many
of its degrees lie in the model's intervals, and how does the method do on data drawn from the model, whose truth is
known (a rehearsal)? What belongs to a model of labels (posterior predictive checks, intervals, ranks, the spread, the
sampler) is not there for other methods, and the check says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from contone.backends import to_numpy
from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.trust.check_result import DOUBTFUL, FINE, OFF, Finding, graded
from contone.trust.comparison import Comparison, compare
from contone.trust.rehearsal import Rehearsal
from contone.trust.row_summaries import SHOWN
from contone.typing import Matrix

METHOD = "this method"
N_REHEARSED = 3
"""Data sets that are drawn from the model."""
LEAST_RECOVERED = -10.0


def steps(
    method: Enhancer,
    again: Enhancer,
    fitted: Inversion,
    short: Inversion,
    X: Matrix,
    L: Matrix,
    D: Matrix,
    names: tuple[str, ...],
    yes_weight: float,
    few: slice,
    seed: int,
) -> list[Callable[[], list[Finding]]]:
    """The checks of a method's degrees D (m, q), one after the other.

    `again` is the method to fit to other labels, `fitted` the model of these rows, `short` the same unfitted.
    """
    name = type(method).__name__

    def rehearsed() -> list[Finding]:
        rehearsal = Rehearsal(X[few], L[few], short, n_replicates=N_REHEARSED, random_state=seed)
        comparison = compare({METHOD: again}, X[few], L[few], rehearsal=rehearsal, n_splits=0)
        return [_rehearsal_finding(comparison, name)]

    return [
        lambda: [_weight_finding(yes_weight, fitted), _order_finding(L, D, names)],
        rehearsed,
        lambda: [_interval_finding(fitted, D, names), _solver_finding(method, name)],
    ]


def _weight_finding(own: float, fitted: Inversion) -> Finding:
    """The weight of marked labels, beside that under the model."""
    theirs, words = fitted.rule_report_.yes_weight, fitted.degradation_.in_words()
    verdict = FINE if own >= 0.5 and abs(own - theirs) < 0.15 else DOUBTFUL
    said = (
        f"Weight: labels marked yes keep {own:.0%} of the weight; Inversion under the rule “{words}” gives them "
        f"{theirs:.0%}."
    )
    shown, axis = {METHOD: own, "Inversion": theirs}, "weight of marked labels"
    return Finding.of("weight", "Weight of marked labels", verdict, own, said, shown, axis)


def _order_finding(L: Matrix, D: Matrix, names: tuple[str, ...]) -> Finding:
    """How often a marked label has more weight than an unmarked one of its row."""
    shares, agreed, n_pairs = agreement(L, D)
    said = (
        f"Degrees against labels: in {agreed:.0%} of the pairs of a marked and an unmarked label of a row, the marked "
        "one has the larger degree; any rule would have it in all of them."
        if n_pairs
        else "Degrees against labels: no row has both marked and unmarked labels."
    )
    verdict = graded(1 - agreed, 0.05, 0.25)
    shown = _lowest(shares, names)
    return Finding.of("order", "Degrees against labels", verdict, agreed, said, shown, "share of pairs in order")


def _lowest(shares: Matrix, names: tuple[str, ...]) -> dict[str, float]:
    """The labels with the lowest shares (q,), in their order."""
    known = np.flatnonzero(~np.isnan(shares))
    return {names[j]: shares[j] for j in np.sort(known[np.argsort(shares[known], kind="stable")[:SHOWN]])}


def agreement(L: Matrix, D: Matrix) -> tuple[Matrix, float, int]:
    """Share of pairs, marked and unmarked label of a row of L (m, q), in which the marked one has the larger degree.

    For each label (q,) where it is the marked one (NaN where there is no pair), over all pairs, and their number; equal
    degrees count one half. Of levels, a higher one should have the larger degree.
    """
    q = L.shape[1]
    right, count = np.zeros(q), np.zeros(q)
    for j in range(q):
        is_pair = L[:, [j]] > L  # false where one of them is unasked
        above = (D[:, [j]] > D) + 0.5 * (D[:, [j]] == D)
        right[j], count[j] = above[is_pair].sum(), is_pair.sum()
    shares = np.divide(right, count, out=np.full(q, np.nan), where=count > 0)
    n_pairs = int(count.sum())
    return shares, float(right.sum() / n_pairs) if n_pairs else 1.0, n_pairs


def _rehearsal_finding(comparison: Comparison, name: str) -> Finding:
    """The error on data like these whose truth is known."""
    own, others = comparison[METHOD], [s for s in comparison.standings if s.kind == "baseline" and s.name != METHOD]
    place = "rehearsal", "On rehearsed data"
    if not own.scores:
        said = f"Rehearsal: {name} fails on data drawn from a model of yours ({own.errors[0]})."
        return Finding(*place, OFF, LEAST_RECOVERED, said)
    share = max(own.recovered, LEAST_RECOVERED) if not math.isnan(own.recovered) else LEAST_RECOVERED
    best = max(others, key=lambda s: -math.inf if math.isnan(s.recovered) else s.recovered)
    verdict = FINE if share >= best.recovered else DOUBTFUL if share > 0 else OFF
    said = (
        f"Rehearsal: on {comparison.n_replicates} data sets drawn from Inversion's model of your rows, whose truth is "
        f"known, {name} has a mean KL of {own.scores['kl']:.3g}, {share:.0%} of the way from uniform degrees to the "
        f"best possible ones; {best.name}, without features, goes {best.recovered:.0%}."
    )
    scored = [s for s in comparison.standings if s.scores and math.isfinite(s.scores["kl"])]
    shown = {"the limit" if s.kind == "limit" else s.name: s.scores["kl"] for s in scored}
    return Finding.of(*place, verdict, share, said, shown, "KL on rehearsed data")


def _interval_finding(fitted: Inversion, D: Matrix, names: tuple[str, ...]) -> Finding:
    """How many of the degrees the model's intervals hold."""
    lower, upper = (np.asarray(to_numpy(end)) for end in fitted.intervals(level=0.9))
    inside = (lower <= D) & (upper >= D)
    share = float(inside.mean())
    said = f"Beside Inversion: {share:.0%} of the degrees lie in the 90 % intervals that Inversion has for them."
    shown, verdict = _lowest(inside.mean(axis=0), names), graded(1 - share, 0.2, 0.5)
    return Finding.of("inversion", "Beside Inversion", verdict, share, said, shown, "share of degrees inside")


def _solver_finding(method: Enhancer, name: str) -> Finding:
    solution = method.solution_
    if solution.converged and not solution.n_iter:
        said = f"The solver: {name} needs no iterations."
    elif solution.converged:
        said = f"The solver: {name} converged after {solution.n_iter} iterations."
    else:
        said = f"The solver: {name} stopped after {solution.n_iter} iterations, not converged; {method.when_short}."
    allowed = method.get_params(deep=False).get("max_iter")
    counts = {"taken": solution.n_iter} | ({"allowed": allowed} if isinstance(allowed, int) else {})
    verdict = FINE if solution.converged else DOUBTFUL
    return Finding.of("solver", "The solver", verdict, float(solution.n_iter), said, counts, "iterations")

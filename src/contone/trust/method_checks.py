"""Checks of the answer of any enhancer, which need not have a model of how labels are made.

Some hold for every answer: do degrees agree with the labels they were made from, and did the solver come to its end? A
rehearsal compares the answer with the model of `Inversion`, fitted to the same rows: how does the method do on data
drawn from the model, whose truth is known? What belongs to a model of labels (posterior predictive checks, intervals,
ranks, the spread, the sampler) is not there for other methods, and the check says so.
"""

import math

import numpy as np

from contone.base import Enhancer
from contone.trust.agreement import mean_over_pairs
from contone.trust.check_result import DOUBTFUL, FINE, OFF, Finding, graded
from contone.trust.comparison import compare
from contone.trust.rehearsal import Rehearsal
from contone.trust.subject import SHOWN, Subject

METHOD = "this method"
N_REHEARSED = 3
"""Data sets that are drawn from the model."""
LEAST_RECOVERED = -10.0


def order_finding(subject: Subject) -> Finding:
    """How often a marked label has more weight than an unmarked one of its row; equal degrees count one half."""
    shares, pairs = mean_over_pairs(subject.L, subject.D, lambda a, b: (a > b) + 0.5 * (a == b), axis=0)
    agreed = float(np.nansum(shares * pairs) / pairs.sum()) if pairs.any() else 1.0
    said = (
        f"Degrees against labels: in {agreed:.0%} of the pairs of a marked and an unmarked label of a row, the marked "
        "one has the larger degree; any rule would have it in all of them."
        if pairs.any()
        else "Degrees against labels: no row has both marked and unmarked labels."
    )
    verdict = graded(1 - agreed, 0.05, 0.25)
    known = np.flatnonzero(~np.isnan(shares))
    lowest = np.sort(known[np.argsort(shares[known], kind="stable")[:SHOWN]])
    shown = {subject.names[j]: float(shares[j]) for j in lowest}
    return Finding("order", "Degrees against labels", verdict, agreed, said, shown, "share of pairs in order")


def rehearsal_finding(subject: Subject, method: Enhancer) -> Finding:
    """The error of a method on data like these whose truth is known."""
    name, X, L = type(subject.method).__name__, subject.X[subject.few], subject.L[subject.few]
    rehearsal = Rehearsal(X, L, subject.short, n_replicates=N_REHEARSED, random_state=subject.seed)
    comparison = compare({METHOD: method}, X, L, rehearsal=rehearsal, n_splits=0)
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
    return Finding(*place, verdict, share, said, shown, "KL on rehearsed data")


def solver_finding(method: Enhancer) -> Finding:
    """Has the solver come to its end?"""
    solution, name = method.solution_, type(method).__name__
    ended = f", not converged; {method.when_short}" if not solution.converged else ""
    said = f"The solver: {name} stopped after {solution.n_iter} iterations{ended or ', converged'}."
    verdict = FINE if solution.converged else DOUBTFUL
    return Finding("solver", "The solver", verdict, float(solution.n_iter), said)

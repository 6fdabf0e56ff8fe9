"""Checks of the answer of any enhancer, which need not have a model of how labels are made.

Some hold for every answer: do degrees agree with the labels they were made from, and does the method predict labels
that were hidden from it? The others compare the answer with the model of `Inversion`, fitted to the same rows: how many
of its degrees lie in the model's intervals, and how does the method do on data drawn from the model, whose truth is
known (a rehearsal)? What belongs to a model of labels (posterior predictive checks, intervals, ranks, the spread, the
sampler) is not there for other methods, and the check says so.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.trust.calibration import SHORT
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Finding, graded
from contone.trust.comparison import Comparison, compare
from contone.trust.hidden_labels import SHARE, HiddenEntries, can_be_asked, score_hidden_entries
from contone.trust.rehearsal import Rehearsal
from contone.trust.row_summaries import SHOWN
from contone.typing import Matrix

COMPARED_ROWS = 300
"""Most rows that a method is fitted to again."""
METHOD = "this method"
N_REHEARSED = 3
"""Data sets that are drawn from the model."""
LEAST_RECOVERED = -10.0


def method_findings(
    method: Enhancer,
    again: Enhancer,
    fitted: Inversion,
    model: Inversion,
    X: Matrix,
    L: Matrix,
    D: Matrix,
    names: tuple[str, ...],
    yes_weight: float,
    seed: int,
) -> tuple[tuple[Finding, ...], str, Comparison]:
    """What the checks of a method's degrees D (m, q) find; what could not be checked; and the rehearsal.

    `again` is the method to fit to other labels, `fitted` the model fitted to these rows, `model` the same unfitted.
    """
    name, few = type(method).__name__, slice(COMPARED_ROWS)
    hidden, unasked = find_hidden_labels(again, X[few], L[few], seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = clone(model).set_params(n_samples=0, verbose=False, **SHORT)
        rehearsal = Rehearsal(X[few], L[few], short, n_replicates=N_REHEARSED, random_state=seed)
        comparison = compare({METHOD: again}, X[few], L[few], rehearsal=rehearsal, n_splits=0)
    found = (
        _weight_finding(yes_weight, fitted),
        _order_finding(L, D, names),
        *hidden,
        _rehearsal_finding(comparison, name),
        _interval_finding(fitted, D, names),
        _solver_finding(method, name),
    )
    return found, unasked, comparison


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


def find_hidden_labels(
    method: Enhancer, X: Matrix, L: Matrix, seed: int, who: str = "the method"
) -> tuple[tuple[Finding, ...], str]:
    """The finding about hidden labels, or why there is none: in small tables too few can be hidden."""
    if not can_be_asked(method):
        name = type(method).__name__
        return (
            (),
            f"Hidden label entries: {name} neither takes unasked entries nor predicts new rows: none can be hidden.",
        )
    try:
        found = score_hidden_entries(method, X, L, seed=seed)
    except InputError as error:
        return (), f"Hidden label entries: {error}"
    return (hidden_finding(found, who),), ""


def hidden_finding(found: HiddenEntries, who: str) -> Finding:
    """How well hidden labels are predicted, beside baselines; nothing, where even uniform degrees would pass."""
    own, others = found.loss, found.baselines
    best = min(others.values()) + found.error
    verdict = FINE if own <= best else DOUBTFUL if own <= others["uniform"] else OFF
    end = "."
    if verdict == FINE and others["uniform"] <= best:
        verdict, end = UNTOLD, "; uniform degrees would do as well, so this says nothing."
    beside = ", ".join(f"{name} {loss:.2f}" for name, loss in others.items())
    what = "label entries" if found.hidden == "entries" else "rows"
    said = (
        f"Hidden {found.hidden}: with {SHARE:.0%} of the {what} hidden, {who} predicts their labels with a log loss of "
        f"{own:.2f} ± {found.error:.2f} per entry ({beside}){end}"
    )
    return Finding.of("entries", f"Hidden {what}", verdict, own, said, {who: own, **others}, "log loss per entry")


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
    lower, upper = (np.asarray(to_numpy(end)) for end in fitted.intervals_(0.9))
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


def method_advice(findings: tuple[Finding, ...], yes_weight: float, best: str, name: str) -> list[str]:
    """What to do about what was found; `best` is the method with the least error on rehearsed data."""
    is_bad = {f.name for f in findings if f.verdict in (DOUBTFUL, OFF)}
    found = []
    if "order" in is_bad:
        found.append(f"{name} gives labels marked no more weight than labels marked yes in many rows: look at those.")
    if yes_weight < 0.5:
        found.append(
            "Most weight lies on labels marked no: if that is not meant, choose parameters on rehearsed data "
            "(contone.Tuned, --tune), which sharpens the answer, or use Inversion."
        )
    if "rehearsal" in is_bad:
        better = best if best != METHOD else "Inversion"
        found.append(
            f"{better} has less error on data like yours: use it, or let {name} choose its parameters there "
            "(contone.Tuned, --tune)."
        )
    if "entries" in is_bad:
        found.append("Baselines predict hidden labels better than the method: the features may say little.")
    if "solver" in is_bad:
        found.append("Let the solver converge: the answer is not yet the method's.")
    return found

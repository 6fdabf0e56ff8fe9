"""Checks of the answer of any enhancer, which need not have a model of how labels are made.

Some hold for every answer: do degrees agree with the labels they were made from, and does the method tell labels that
were hidden from it? The others compare the answer with the model of `Inversion`, fitted to the same rows: how far is it
expected to be from degrees that the labels allow (`contone.enhance.inversion.expected_error`), how many of its degrees
lie in the model's intervals, and how does the method do on data drawn from the model, whose truth is known (a
rehearsal)? What belongs to a model of labels (posterior predictive checks, intervals, ranks, the spread, the sampler)
is not there for other methods, and the check says so.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.assessment import report_rule
from contone.enhance.inversion.expected_error import ErrorSample, ExpectedError, expect_error
from contone.exceptions import InputError
from contone.trust import hidden_labels
from contone.trust.calibration import SHORT
from contone.trust.check_result import DOUBTFUL, FINE, OFF, Check, Finding
from contone.trust.comparison import Comparison, compare
from contone.trust.rehearsal import Rehearsal
from contone.trust.row_summaries import (
    SHOWN,
    find_doubtful,
    floats,
    strongest_pairs,
    summarize_labels,
    summarize_rows,
)
from contone.trust.trial import quiet
from contone.typing import EstimatorLike

COMPARED_ROWS = 300
"""At most how many rows a method is fitted to again."""
METHOD = "this method"
N_REHEARSED = 3
"""Data sets that are drawn from the model."""
FLOOR = 1e-12
"""Degrees below this count as this much where rows are put in order."""
LEAST_RECOVERED = -10.0


def check_answer(
    method: Enhancer,
    X: np.ndarray,
    L: np.ndarray,
    D: np.ndarray,
    *,
    model: Inversion,
    names: tuple[str, ...],
    numbers: np.ndarray,
    n_rows: int,
    seed: int,
) -> Check:
    """Check the degrees D (m, q) that a fitted method gave rows X (m, d) with labels L (m, q).

    The model is not fitted. `numbers` (m,) are those of the rows among the `n_rows` of the data; all of them have a
    label.
    """
    fitted = clone(model).set_params(verbose=False).fit(X, L)
    report = report_rule(fitted.fit_, X, L, D)
    chosen: Any = getattr(method, "best_estimator_", method)  # what was chosen is not chosen anew
    again = quiet(chosen)
    name = type(method).__name__
    error, row_errors = _expected_error(fitted, X, L, D)
    few = slice(COMPARED_ROWS)
    hidden, unasked = find_hidden_entries(again, X[few], L[few], seed)
    comparison = _rehearse(again, model, X[few], L[few], seed)
    doubtful, undoubted = find_doubtful(fitted, X, L, D, numbers, names)
    findings = (
        _weight_finding(report.yes_weight, fitted),
        _order_finding(L, D, names),
        *hidden,
        _rehearsal_finding(comparison, name),
        _interval_finding(fitted, D, names),
        _solver_finding(method, name),
    )
    said = (
        f"Not looked at: labels that the method would make, intervals of its degrees, ranks, other rules and spreads; "
        f"{name} has no model of how labels are made. contone.check(Inversion(), X, Y) looks at these.",
        unasked,
        undoubted,
        "" if math.isfinite(error.mean) else "Some degrees are exactly 0, for which the expected KL is infinite.",
    )
    Z = np.log(np.maximum(D, FLOOR))
    Z = Z - Z.mean(axis=1, keepdims=True)
    return Check(
        rule=str(fitted.degradation_),
        rule_words=fitted.degradation_.in_words(),
        explained=report.explained,
        yes_weight=report.yes_weight,
        expected_error=error,
        findings=findings,
        labels=summarize_labels(L, D, names),
        ambiguous=summarize_rows(row_errors, numbers, L, D, names),
        doubtful=doubtful,
        pairs=strongest_pairs(np.cov(Z, rowvar=False), names),
        advice=_advice(findings, report.yes_weight, comparison, name),
        n_rows=n_rows,
        n_checked=len(L),
        method=name,
        not_checked=tuple(filter(None, said)),
    )


def _expected_error(fitted: Inversion, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> tuple[ExpectedError, np.ndarray]:
    """The expected KL of the answer under models that the labels allow, and a finite one (m,) of each row."""
    answer = np.maximum(D, FLOOR)
    sample = ErrorSample.of(X, L, answer, fitted.degradation_)
    found = expect_error(fitted.fit_, sample, fitted.posterior_, answer=answer)
    rows = np.asarray(to_numpy(found.rows))
    return (ExpectedError(math.inf, math.inf, math.inf, rows) if (D <= 0).any() else found), rows


def _weight_finding(own: float, fitted: Inversion) -> Finding:
    """The weight of marked labels, beside that under the model."""
    theirs = fitted.rule_report_.yes_weight
    verdict = FINE if own >= 0.5 and abs(own - theirs) < 0.15 else DOUBTFUL
    words = fitted.degradation_.in_words()
    return Finding(
        "weight",
        "Weight of marked labels",
        verdict,
        own,
        f"Weight: labels marked yes keep {own:.0%} of the weight; Inversion under the rule “{words}” gives them "
        f"{theirs:.0%}.",
        ("this method", "Inversion"),
        (own, theirs),
        axis="weight of marked labels",
    )


def _order_finding(L: np.ndarray, D: np.ndarray, names: tuple[str, ...]) -> Finding:
    """How often a marked label has more weight than an unmarked one of its row."""
    shares, agreed, n_pairs = agreement(L, D)
    verdict = FINE if agreed >= 0.95 else DOUBTFUL if agreed >= 0.75 else OFF
    kept = np.flatnonzero(~np.isnan(shares))
    kept = np.sort(kept[np.argsort(shares[kept], kind="stable")[:SHOWN]])
    told = (
        f"Degrees against labels: in {agreed:.0%} of the pairs of a marked and an unmarked label of a row, the marked "
        "one has the larger degree; any rule would have it in all of them."
        if n_pairs
        else "Degrees against labels: no row has both marked and unmarked labels."
    )
    return Finding(
        "order",
        "Degrees against labels",
        verdict,
        agreed,
        told,
        tuple(names[j] for j in kept),
        floats(shares[kept]),
        axis="share of pairs in order",
    )


def agreement(L: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, float, int]:
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


def find_hidden_entries(
    method: Enhancer, X: np.ndarray, L: np.ndarray, seed: int, who: str = "the method"
) -> tuple[tuple[Finding, ...], str]:
    """The finding about hidden labels, or why there is none: in small tables too few can be hidden."""
    title = "Hidden label entries"
    if not hidden_labels.can_be_asked(method):
        name = type(method).__name__
        return (), f"{title}: {name} neither takes unasked entries nor predicts new rows, so none can be hidden."
    try:
        found = hidden_labels.score_hidden_entries(method, X, L, seed=seed)
    except InputError as error:
        return (), f"{title}: {error}"
    return (hidden_entries_finding(found, who),), ""


def hidden_entries_finding(found: hidden_labels.HiddenEntries, who: str) -> Finding:
    """How well hidden labels are told, beside what baselines say."""
    own, others = found.loss, found.baselines
    best = min(others, key=lambda name: others[name])
    verdict = FINE if own <= others[best] + found.error else DOUBTFUL if own <= others["uniform"] else OFF
    beside = ", ".join(f"{name} {loss:.2f}" for name, loss in others.items())
    share, what = hidden_labels.SHARE, "label entries" if found.hidden == "entries" else "rows"
    said = (
        f"Hidden {found.hidden}: with {share:.0%} of the {what} hidden, {who} tells their labels with a log "
        f"loss of {own:.2f} ± {found.error:.2f} per entry ({beside})."
    )
    return Finding(
        "entries",
        f"Hidden {what}",
        verdict,
        own,
        said,
        (who, *others),
        (own, *others.values()),
        axis="log loss per entry",
    )


def _rehearse(method: Enhancer, model: Inversion, X: np.ndarray, L: np.ndarray, seed: int) -> Comparison:
    """The method and the baselines on data drawn from a model of these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = clone(model).set_params(n_samples=0, verbose=False, **SHORT)
        rehearsal = Rehearsal(X, L, short, n_replicates=N_REHEARSED, random_state=seed)
        return compare({METHOD: method}, X, L, rehearsal=rehearsal, n_splits=0)


def _rehearsal_finding(comparison: Comparison, name: str) -> Finding:
    """The error on data like these whose truth is known."""
    own, others = comparison[METHOD], [s for s in comparison.standings if s.kind == "baseline" and s.name != METHOD]
    if not own.scores:
        return Finding(
            "rehearsal",
            "On rehearsed data",
            OFF,
            LEAST_RECOVERED,
            f"Rehearsal: {name} fails on data drawn from a model of yours ({own.errors[0]}).",
        )
    share = max(own.recovered, LEAST_RECOVERED) if not math.isnan(own.recovered) else LEAST_RECOVERED
    best = max(others, key=lambda s: -math.inf if math.isnan(s.recovered) else s.recovered)
    verdict = FINE if share >= best.recovered else DOUBTFUL if share > 0 else OFF
    shown = [s for s in comparison.standings if s.scores and math.isfinite(s.scores["kl"])]
    said = (
        f"Rehearsal: on {comparison.n_replicates} data sets drawn from Inversion's model of your rows, whose truth is "
        f"known, {name} has a mean KL of {own.scores['kl']:.3g}, {share:.0%} of the way from uniform degrees to the "
        f"best possible ones; {best.name}, without features, goes {best.recovered:.0%}."
    )
    return Finding(
        "rehearsal",
        "On rehearsed data",
        verdict,
        share,
        said,
        tuple("the limit" if s.kind == "limit" else s.name for s in shown),
        tuple(s.scores["kl"] for s in shown),
        axis="KL on rehearsed data",
    )


def _interval_finding(fitted: Inversion, D: np.ndarray, names: tuple[str, ...]) -> Finding:
    """How many of the degrees the model's intervals hold."""
    lower, upper = (np.asarray(to_numpy(end)) for end in fitted.intervals_(0.9))
    inside = (lower <= D) & (upper >= D)
    share, by_label = float(inside.mean()), inside.mean(axis=0)
    verdict = FINE if share >= 0.8 else DOUBTFUL if share >= 0.5 else OFF
    kept = np.sort(np.argsort(by_label, kind="stable")[:SHOWN])
    return Finding(
        "inversion",
        "Beside Inversion",
        verdict,
        share,
        f"Beside Inversion: {share:.0%} of the degrees lie in the 90 % intervals that Inversion has for them.",
        tuple(names[j] for j in kept),
        floats(by_label[kept]),
        axis="share of degrees inside",
    )


def _solver_finding(method: EstimatorLike, name: str) -> Finding:
    solution = method.solution_
    if solution.converged and not solution.n_iter:
        said = f"The solver: {name} needs no iterations."
    elif solution.converged:
        said = f"The solver: {name} came to its end after {solution.n_iter} iterations."
    else:
        said = f"The solver: {name} stopped after {solution.n_iter} iterations, before its end; {method.when_short}."
    allowed = method.get_params(deep=False).get("max_iter")
    counts = {"taken": solution.n_iter} | ({"allowed": allowed} if isinstance(allowed, int) else {})
    return Finding(
        "solver",
        "The solver",
        FINE if solution.converged else DOUBTFUL,
        float(solution.n_iter),
        said,
        tuple(counts),
        tuple(map(float, counts.values())),
        axis="iterations",
    )


def _advice(findings: tuple[Finding, ...], yes_weight: float, comparison: Comparison, name: str) -> tuple[str, ...]:
    verdicts = {f.name: f.verdict for f in findings}
    found = []
    if verdicts["order"] != FINE:
        found.append(f"{name} gives labels marked no more weight than labels marked yes in many rows: look at those.")
    if yes_weight < 0.5:
        found.append(
            "Most weight lies on labels marked no: if that is not meant, choose parameters on rehearsed data "
            "(contone.Tuned, --tune), which sharpens the answer, or use Inversion."
        )
    if verdicts["rehearsal"] != FINE:
        better = comparison.best if comparison.best != METHOD else "Inversion"
        found.append(
            f"{better} has less error on data like yours: use it, or let {name} choose its parameters there "
            "(contone.Tuned, --tune)."
        )
    if verdicts.get("entries", FINE) != FINE:
        found.append("Baselines tell hidden labels better than the method does: the features may say little.")
    if verdicts["solver"] != FINE:
        found.append("Let the solver come to its end: the answer is not yet the method's.")
    found.append("Compare more methods on data like yours with known truth: contone.compare.")
    return tuple(found)

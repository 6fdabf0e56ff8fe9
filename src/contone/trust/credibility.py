"""Is this answer credible, when no truth exists? `check(method, X, Y) -> Check`.

Each check is one sentence with a verdict, a number and what a picture needs; `verdict` says what they mean together.
None of them needs the truth: they ask whether the answer is better than a simple one, whether the model makes labels
like those given, whether features help, whether the answer depends on what nobody knows (rule, spread), whether the
sampler has mixed, and whether its intervals hold on data drawn from the model itself, at the size of the data.
"""

from __future__ import annotations

import math
import warnings
from typing import cast

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.base import Enhancer, check_whole_numbers
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.assessment import ErrorSample, report_rule
from contone.enhance.inversion.expected_error import ExpectedError, expect_error
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.posterior import Posterior
from contone.exceptions import ArgumentError, InputError
from contone.numerics.simplex import kl_divergence
from contone.runtime.progress import reported
from contone.trust import method_checks, model_checks
from contone.trust.calibration import SHORT
from contone.trust.check_result import DOUBTFUL, FINE, OFF, Check, Finding
from contone.trust.hidden_labels import are_given_away, feature_finding, find_hidden_labels
from contone.trust.left_out import leave_out, left_out_findings
from contone.trust.open_rule import average_over_rules, gain_finding, rule_finding
from contone.trust.rehearsal import rows_in_memory
from contone.trust.row_summaries import find_doubtful, strongest_pairs, summarize_labels, summarize_rows, taken
from contone.trust.trial import quiet
from contone.trust.verdict import decide
from contone.typing import Array, Matrix
from contone.validation import check_training, silent_rows

FLOOR = 1e-12
"""Degrees below this count as this much where rows are put in order."""
LEAST_ROWS = 40
"""Rows under which no check has power."""
MANY_LABELS = 60
"""Above this many labels whole rows are hidden and no single entries, whose completions take long to draw."""
COMPARED, COMPARED_ROWS = 30_000, 300
"""At most how many label entries, and rows, a method is fitted to again."""


def check(
    method: Enhancer,
    X: Array,
    Y: Array,
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
        The verdict (`decision`), and a sentence, a verdict and a number for each check; prints as a list, and as a
        table in a notebook.

    Examples
    --------
    >>> from contone import CumulativeMass, Inversion
    >>> rng = np.random.default_rng(0)
    >>> X, D = rng.normal(size=(60, 2)), rng.dirichlet([4.0] * 4, size=60)
    >>> found = check(Inversion(n_sweeps=100, n_burn=40), X, CumulativeMass().apply(D), n_replicates=5)
    >>> found.verdict, found.decision.names
    ('use with care', ('features',))
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
                f"check: the method was fitted to {fitted.label_distributions_.shape[0]} rows; X and Y have {n}. Pass "
                "the data that it was fitted to, or an unfitted method."
            )
        if q < 2:
            raise InputError("check: one label has the degree 1 in every row; there is nothing to check.")
        rows = choose_rows(n, max_rows, np.random.default_rng(random_state))
        X_some, L_some = rows_in_memory(X_checked, L_checked, rows)
        if not isinstance(fitted, Inversion):
            told = ~np.asarray(silent_rows(L_some))  # nothing can be compared with in rows without a label
            if told.sum() < 2:
                raise InputError(
                    f"check: {int(told.sum())} of the {len(told)} rows looked at have a label; 2 are needed."
                )
            X_some, L_some, rows = X_some[told], L_some[told], rows[told]
        if isinstance(fitted, Inversion) and fitted.reads_answers():
            return _check_answers(fitted, X_some, L_some, rows, n, tuple(border.label_names), random_state)
        chosen = model if model is not None else Inversion()
        return _check(fitted, chosen, X_some, L_some, rows, n, tuple(border.label_names), n_replicates, random_state)


def _check(
    method: Enhancer,
    model: Inversion,
    X: Matrix,
    L: Matrix,
    rows: np.ndarray,
    n: int,
    names: tuple[str, ...],
    n_replicates: int,
    seed: int,
) -> Check:
    """Check what a fitted method says of rows X (m, d), L (m, q), whose numbers among the n rows are given."""
    name, few = type(method).__name__, slice(max(min(COMPARED_ROWS, COMPARED // L.shape[1]), 50))
    if isinstance(method, Inversion):
        fitted, among = method, rows
        L, error = fitted.degradation_.forget_silent(L), fitted.expected_error_
        report, row_errors, D = fitted.rule_report_, taken(error.rows, rows), taken(fitted.posterior_.mean, rows)
    else:
        fitted, among = clone(model).set_params(verbose=False).fit(X, L), np.arange(len(L))
        D = taken(method.label_distributions_, rows)
        report = report_rule(fitted.rule_fit_, X, L, D)
        error, row_errors = expected_error_of(fitted, X, L, D)
    whole = fitted.posterior_
    mean, centre, width = (taken(A, among) for A in (whole.mean, whole.logit_centre, whole.logit_width))
    posterior = Posterior(mean, centre, width)
    short = clone(fitted).set_params(degradation=fitted.degradation_, n_samples=0, verbose=False, **SHORT)
    over = average_over_rules(fitted, X[few], L[few], posterior[few], D[few], error)
    words = fitted.degradation_.in_words()
    findings: list[Finding] = [data_finding(L, names), gain_finding(over), rule_finding(over, words)]
    findings.append(feature_finding(short, X[few], L[few], seed))
    not_checked = []
    if isinstance(method, Inversion):
        steps = model_checks.steps(method, short, X, L, names, n_replicates, few, seed)
        asked, who = short, "the model"
    else:
        chosen = quiet(cast(Enhancer, getattr(method, "best_estimator_", method)))  # what was chosen is not anew
        steps = method_checks.steps(method, chosen, fitted, short, X, L, D, names, report.yes_weight, few, seed)
        asked, who = chosen, "the method"
        not_checked.append(
            f"Not looked at: labels that the method would make, intervals of its degrees, other spreads; {name} has no "
            "model of how labels are made. contone.check(Inversion(), X, Y) looks at these."
        )
    for step in reported(steps, len(steps), "checks"):
        findings += step()
    if asked is not short or not (are_given_away(L) or L.shape[1] > MANY_LABELS):  # else hidden rows have said it
        hidden, unhidden = find_hidden_labels(asked, X[few], L[few], seed, who)
        findings += hidden
        not_checked.append(unhidden)
    doubtful, undoubted = find_doubtful(fitted, X, L, D, rows, names)
    if not math.isfinite(error.mean):
        not_checked.append("Some degrees are exactly 0, for which the expected KL is infinite.")
    Z = np.log(np.maximum(D, FLOOR))
    is_model = method is fitted
    return Check(
        decision=decide(findings),
        rule=str(fitted.degradation_),
        rule_words=words,
        explained=report.explained,
        yes_weight=report.yes_weight,
        expected_error=over.error,
        error_given_rule=error,
        rule_share=over.share,
        baselines=over.baselines,
        findings=tuple(findings),
        labels=summarize_labels(L, D, names, (over.lower, over.upper) if is_model else None),
        ambiguous=summarize_rows(row_errors, rows, L, D, names),
        doubtful=doubtful,
        pairs=strongest_pairs(
            fitted.covariance_ if is_model else np.cov(Z - Z.mean(axis=1, keepdims=True), rowvar=False), names
        ),
        n_rows=n,
        n_checked=len(rows),
        method=name,
        not_checked=tuple(filter(None, (*not_checked, undoubted))),
    )


def _check_answers(
    method: Inversion, X: Matrix, L: Matrix, rows: np.ndarray, n: int, names: tuple[str, ...], seed: int
) -> Check:
    """Check what was made of answers of people L (m, q), one row per item: by answers that were left out."""
    D, error = taken(method.posterior_.mean, rows), method.expected_error_
    lower, upper = (taken(end, rows) for end in method.intervals(level=0.9))
    findings, not_checked = [data_finding(L, names)], ""
    try:
        findings += left_out_findings(leave_out(method, X, L, seed=seed))
    except InputError as why:
        not_checked = f"Answers left out: {why}"
    uniform = float(np.mean(kl_divergence(D, np.full(D.shape, 1.0 / D.shape[1])))) + error.mean
    return Check(
        decision=decide(findings),
        rule=str(method.degradation_),
        rule_words=method.degradation_.in_words(),
        explained=None,
        yes_weight=method.rule_report_.yes_weight,
        expected_error=error,
        error_given_rule=error,
        rule_share=0.0,
        baselines={"equal degrees": uniform},
        findings=tuple(findings),
        labels=summarize_labels(L, D, names, (lower, upper)),
        ambiguous=summarize_rows(taken(error.rows, rows), rows, L, D, names),
        doubtful=(),
        pairs=strongest_pairs(method.covariance_, names),
        n_rows=n,
        n_checked=len(rows),
        not_checked=(not_checked,) if not_checked else (),
    )


def data_finding(L: Matrix, names: tuple[str, ...]) -> Finding:
    """Are there enough rows, and do their labels differ?"""
    n, asked = len(L), ~np.isnan(L)
    shares = np.where(asked, L > 0, 0).sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    varies = int(((shares > 0) & (shares < 1)).sum())
    n_sets = len(np.unique(L > 0, axis=0))
    value = max(LEAST_ROWS / n, 0.5 * L.shape[1] / max(varies, 1e-9))
    verdict = OFF if n_sets < 2 or n < 5 else DOUBTFUL if value > 1 else FINE
    said = (
        f"The data: {n} rows with {n_sets} different sets of labels; {varies} of {len(names)} labels are marked in "
        "some rows and not in others."
    )
    return Finding("data", "Rows and labels", verdict, min(value, 1e6), said)


def expected_error_of(fitted: Inversion, X: Matrix, L: Matrix, D: Matrix) -> tuple[ExpectedError, Matrix]:
    """The expected KL of an answer under models that the labels allow, and a finite one (m,) of each row."""
    answer = np.maximum(D, FLOOR)
    sample = ErrorSample.of(X, L, answer, fitted.rule_fit_.rule)
    found = expect_error(fitted.rule_fit_, sample, fitted.posterior_, answer=answer)
    rows = np.asarray(to_numpy(found.rows))
    return (ExpectedError(math.inf, math.inf, math.inf, rows) if (D <= 0).any() else found), rows

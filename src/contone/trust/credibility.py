"""Is this answer credible, when no truth exists? `check(method, X, Y) -> Check`.

Each check is one sentence with a verdict, a number and what a picture needs; `verdict` says what they mean together.
None of them needs the truth: they ask whether the answer is better than a simple one, whether the model makes labels
like those given, whether features help, whether the answer depends on what nobody knows (rule, spread), whether the
sampler has mixed, and whether its intervals hold on data drawn from the model itself, at the size of the data.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from contone.backends import to_numpy
from contone.base import Enhancer, check_whole_numbers
from contone.enhance import counting
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.assessment import ErrorSample, report_rule
from contone.enhance.inversion.expected_error import ExpectedError, expect_error
from contone.enhance.inversion.fit import choose_rows
from contone.enhance.inversion.people.report import AnswersReport
from contone.enhance.inversion.posterior import Posterior
from contone.exceptions import ArgumentError, InputError
from contone.numerics.simplex import kl_divergence
from contone.runtime.progress import reported
from contone.trust import method_checks, model_checks
from contone.trust.check_result import DOUBTFUL, FINE, OFF, UNTOLD, Check, DoubtfulEntry, Finding
from contone.trust.hidden_labels import are_given_away, feature_finding, hidden_finding, score_hidden_entries
from contone.trust.left_out import find_in_answers, one_by_one
from contone.trust.open_rule import OverRules, average_over_rules, gain_finding, rule_finding
from contone.trust.rehearsal import taken
from contone.trust.subject import Subject, find_doubtful, summarize_labels, summarize_rows
from contone.trust.trial import quiet
from contone.trust.verdict import decide
from contone.typing import Array, Matrix
from contone.validation.training import check_training, silent_rows

FLOOR = 1e-12
"""Degrees below this count as this much where rows are put in order."""
LEAST_ROWS = 40
"""Rows under which no check has power."""
MANY_LABELS = 60
"""Above this many labels whole rows are hidden and no single entries, whose completions take long to draw."""


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
        X_some, L_some = taken(X_checked, rows), taken(L_checked, rows)
        if isinstance(fitted, Inversion):
            beside = fitted
            L_some = L_some if fitted.reads_answers() else fitted.degradation_.forget_silent(L_some)
        else:
            told = ~np.asarray(silent_rows(L_some))  # nothing can be compared with in rows without a label
            if told.sum() < 2:
                raise InputError(
                    f"check: {int(told.sum())} of the {len(told)} rows looked at have a label; 2 are needed."
                )
            X_some, L_some, rows = X_some[told], L_some[told], rows[told]
            beside = (clone(model) if model is not None else Inversion()).set_params(verbose=False).fit(X_some, L_some)
        D, names = taken(fitted.label_distributions_, rows), tuple(border.label_names)
        subject = Subject(fitted, beside, X_some, L_some, D, rows, n, names, random_state)
        if subject.is_model and beside.reads_answers():
            return _check_answers(subject)
        return _check(subject, n_replicates)


def _check(subject: Subject, n_replicates: int) -> Check:
    """Check what a fitted method says of rows whose labels a rule made."""
    X, L, D, few, model = subject.X, subject.L, subject.D, subject.few, subject.model
    name, q, not_checked = type(subject.method).__name__, L.shape[1], list[str]()
    if subject.is_model:
        asked, who, among = cast(Enhancer, subject.short), "the model", subject.rows
        report, error = model.rule_report_, model.expected_error_
        row_errors = taken(error.rows, among)
        if q > MANY_LABELS:
            not_checked.append(
                f"Intervals: not tried on data from the model, nor single hidden entries, with {q} labels."
            )
    else:
        # What was chosen is not chosen anew.
        asked = quiet(cast(Enhancer, getattr(subject.method, "best_estimator_", subject.method)))
        report, who, among = report_rule(model.rule_fit_, X, L, D), "the method", np.arange(len(L))
        error, row_errors = expected_error_of(model, X, L, D)
        not_checked.append(
            f"Not looked at: labels that the method would make, intervals of its degrees, other spreads; {name} has no "
            "model of how labels are made. contone.check(Inversion(), X, Y) looks at these."
        )
    if not math.isfinite(error.mean):
        not_checked.append("Some degrees are exactly 0, for which the expected KL is infinite.")
    over: OverRules
    doubtful: tuple[DoubtfulEntry, ...]

    def steps() -> Iterator[list[Finding]]:
        nonlocal over, doubtful
        whole = model.posterior_
        mean, centre, width = (taken(A, among[few]) for A in (whole.mean, whole.logit_centre, whole.logit_width))
        over = average_over_rules(model, X[few], L[few], Posterior(mean, centre, width), D[few], error)
        said = [gain_finding(over), rule_finding(over, model.degradation_.in_words())]
        yield [data_finding(L, subject.names), *said]
        yield [feature_finding(subject.short, X[few], L[few], subject.seed)]
        if subject.is_model:
            yield model_checks.labels_and_intervals(subject, n_replicates)
            yield [
                model_checks.spread_finding(subject),
                *model_checks.lattice_finding(model),
                model_checks.chain_finding(model),
            ]
        else:
            yield [method_checks.order_finding(subject), method_checks.solver_finding(subject.method)]
            yield [method_checks.rehearsal_finding(subject, asked)]
        doubtful, undoubted = find_doubtful(subject)
        not_checked.extend(filter(None, [undoubted]))
        if not (subject.is_model and (are_given_away(L) or q > MANY_LABELS)):  # else hidden rows have said it
            try:
                yield [hidden_finding(score_hidden_entries(asked, X[few], L[few], seed=subject.seed), who)]
            except InputError as why:  # in small tables too few can be hidden
                not_checked.append(f"Hidden label entries: {why}")

    findings = [finding for some in reported(steps(), 5, "checks") for finding in some]
    about = {"explained": report.explained, "yes_weight": report.yes_weight, "doubtful": doubtful}
    return _result(subject, findings, over, error, row_errors, not_checked=tuple(not_checked), **about)


def _check_answers(subject: Subject) -> Check:
    """Check what was made of answers of people, one row per item: by answers that were left out."""
    method, D = subject.model, subject.D
    error, not_checked = method.expected_error_, list[str]()
    findings = [data_finding(subject.L, subject.names)]
    report = method.rule_report_
    assert isinstance(report, AnswersReport)
    several, n = report.n_several, report.n_items
    if several < 0.25 * n:
        said = f"Answers per item: {several} of {n} items have several; how far people differ about one is a prior's."
        findings.append(Finding("people", "Do people agree about an item?", UNTOLD, several / max(n, 1), said))
    try:
        findings += find_in_answers(method, one_by_one(method.degradation_, subject.X, subject.L), subject.seed)
    except InputError as why:
        not_checked.append(f"Answers left out: {why}")
    counts = np.nan_to_num(subject.L - getattr(method.degradation_, "lowest", 0.0))
    simple = {"equal degrees": np.full(D.shape, 1.0 / D.shape[1]), "counting": counting.shares(counts)}
    baselines = {name: float(np.mean(kl_divergence(D, A))) + error.mean for name, A in simple.items()}
    lower, upper = (taken(end, subject.rows) for end in method.intervals(level=0.9))
    over = OverRules(error, 0.0, baselines, {}, lower, upper, {})
    row_errors = taken(error.rows, subject.rows)
    about = {"explained": None, "yes_weight": report.yes_weight, "doubtful": ()}
    return _result(subject, findings, over, error, row_errors, not_checked=tuple(not_checked), **about)


def _result(
    subject: Subject, findings: list[Finding], over: OverRules, error: ExpectedError, row_errors: Matrix, **more: Any
) -> Check:
    """All that was found; `more` is what only some checks know."""
    return Check(
        decision=decide(findings),
        rule=str(subject.model.degradation_),
        rule_words=subject.model.degradation_.in_words(),
        expected_error=over.error,
        error_given_rule=error,
        rule_share=over.share,
        baselines=over.baselines,
        findings=tuple(findings),
        labels=summarize_labels(subject.names, subject.L, subject.D, *([over.lower, over.upper] * subject.is_model)),
        ambiguous=summarize_rows(subject, row_errors),
        n_rows=subject.n,
        n_checked=len(subject.rows),
        method=type(subject.method).__name__,
        **more,
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
    sample = ErrorSample.of(fitted.rule_fit_, X, L, answer)
    found = expect_error(fitted.rule_fit_, sample, fitted.posterior_, answer=answer)
    rows = np.asarray(to_numpy(found.rows))
    return (ExpectedError(math.inf, math.inf, math.inf, rows) if (D <= 0).any() else found), rows

"""Is this answer credible, when no truth exists? `check(method, X, Y) -> Check`.

Each check is one sentence with a verdict, a number and what a picture needs. None of them needs the truth: they ask
whether the model makes labels like those given, whether the answer depends on what nobody knows (rule, spread), whether
the sampler has mixed, and whether its intervals hold on data drawn from the model itself, at the size of the data.
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
from contone.enhance.inversion.assessment import report_rule
from contone.enhance.inversion.expected_error import ErrorSample, ExpectedError, expect_error
from contone.enhance.inversion.fit import choose_rows
from contone.exceptions import ArgumentError, InputError
from contone.trust.check_result import Check
from contone.trust.method_checks import method_advice, method_findings
from contone.trust.model_checks import model_advice, model_findings
from contone.trust.rehearsal import rows_in_memory
from contone.trust.row_summaries import find_doubtful, strongest_pairs, summarize_labels, summarize_rows, taken
from contone.trust.trial import quiet
from contone.typing import Array, Matrix
from contone.validation import check_training, silent_rows

FLOOR = 1e-12
"""Degrees below this count as this much where rows are put in order."""
COMPARE = "Compare methods on data like yours with known truth: contone.compare."


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
        A sentence, a verdict and a number for each check; prints as a list, and as a table in a notebook.

    Examples
    --------
    >>> from contone import CumulativeMass, Inversion
    >>> rng = np.random.default_rng(0)
    >>> X, D = rng.normal(size=(60, 2)), rng.dirichlet([4.0] * 4, size=60)
    >>> found = check(Inversion(n_sweeps=100, n_burn=40), X, CumulativeMass().apply(D), n_replicates=5)
    >>> found.rule
    'CumulativeMass(t=0.5)'
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
            f"check: the method was fitted to {fitted.label_distributions_.shape[0]} rows; X and Y have {n}. Pass the "
            "data that it was fitted to, or an unfitted method."
        )
    if q < 2:
        raise InputError("check: one label has the degree 1 in every row; there is nothing to check.")
    names = tuple(border.label_names)
    rows = choose_rows(n, max_rows, np.random.default_rng(random_state))
    X_some, L_some = rows_in_memory(X_checked, L_checked, rows)
    if isinstance(fitted, Inversion):
        return _check_model(fitted, X_some, L_some, rows, n, names, n_replicates, random_state)
    told = ~np.asarray(silent_rows(L_some))  # nothing can be compared with in rows without a label
    if told.sum() < 2:
        raise InputError(f"check: {int(told.sum())} of the {len(told)} rows looked at have a label; 2 are needed.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = model if model is not None else Inversion()
        return _check_method(fitted, chosen, X_some[told], L_some[told], rows[told], n, names, random_state)


def _check_model(
    method: Inversion,
    X: Matrix,
    L: Matrix,
    rows: np.ndarray,
    n: int,
    names: tuple[str, ...],
    n_replicates: int,
    seed: int,
) -> Check:
    """Check a fitted Inversion on rows X (m, d), L (m, q), whose numbers among the n rows of the data are given."""
    L, report, error = method.degradation_.forget_silent(L), method.rule_report_, method.expected_error_
    D, lower, upper = (taken(A, rows) for A in (method.posterior_.mean, *method.intervals_(0.9)))
    findings, unhidden = model_findings(method, X, L, names, n_replicates, seed)
    doubtful, undoubted = find_doubtful(method, X, L, D, rows, names)
    return Check(
        rule=str(method.degradation_),
        rule_words=method.degradation_.in_words(),
        explained=report.explained,
        yes_weight=report.yes_weight,
        expected_error=error,
        findings=findings,
        labels=summarize_labels(L, D, names, (lower, upper)),
        ambiguous=summarize_rows(taken(error.rows, rows), rows, L, D, names),
        doubtful=doubtful,
        pairs=strongest_pairs(method.covariance_, names),
        advice=(*model_advice(findings, report.yes_weight, method), COMPARE),
        n_rows=n,
        n_checked=len(rows),
        not_checked=tuple(filter(None, (unhidden, undoubted))),
    )


def _check_method(
    method: Enhancer,
    model: Inversion,
    X: Matrix,
    L: Matrix,
    rows: np.ndarray,
    n: int,
    names: tuple[str, ...],
    seed: int,
) -> Check:
    """Check the degrees that any fitted method gave rows X (m, d), L (m, q), all of which have a label."""
    D, name = taken(method.label_distributions_, rows), type(method).__name__
    fitted = clone(model).set_params(verbose=False).fit(X, L)
    report = report_rule(fitted.fit_, X, L, D)
    chosen = cast(Enhancer, getattr(method, "best_estimator_", method))  # what was chosen is not chosen anew
    findings, unasked, comparison = method_findings(
        method, quiet(chosen), fitted, model, X, L, D, names, report.yes_weight, seed
    )
    error, row_errors = expected_error_of(fitted, X, L, D)
    doubtful, undoubted = find_doubtful(fitted, X, L, D, rows, names)
    not_checked = (
        f"Not looked at: labels that the method would make, intervals of its degrees, ranks, other rules and spreads; "
        f"{name} has no model of how labels are made. contone.check(Inversion(), X, Y) looks at these.",
        unasked,
        undoubted,
        "" if math.isfinite(error.mean) else "Some degrees are exactly 0, for which the expected KL is infinite.",
    )
    Z = np.log(np.maximum(D, FLOOR))
    return Check(
        rule=str(fitted.degradation_),
        rule_words=fitted.degradation_.in_words(),
        explained=report.explained,
        yes_weight=report.yes_weight,
        expected_error=error,
        findings=findings,
        labels=summarize_labels(L, D, names),
        ambiguous=summarize_rows(row_errors, rows, L, D, names),
        doubtful=doubtful,
        pairs=strongest_pairs(np.cov(Z - Z.mean(axis=1, keepdims=True), rowvar=False), names),
        advice=(*method_advice(findings, report.yes_weight, comparison.best, name), COMPARE),
        n_rows=n,
        n_checked=len(L),
        method=name,
        not_checked=tuple(filter(None, not_checked)),
    )


def expected_error_of(fitted: Inversion, X: Matrix, L: Matrix, D: Matrix) -> tuple[ExpectedError, Matrix]:
    """The expected KL of an answer under models that the labels allow, and a finite one (m,) of each row."""
    answer = np.maximum(D, FLOOR)
    sample = ErrorSample.of(X, L, answer, fitted.rule_fit_.rule)
    found = expect_error(fitted.rule_fit_, sample, fitted.posterior_, answer=answer)
    rows = np.asarray(to_numpy(found.rows))
    return (ExpectedError(math.inf, math.inf, math.inf, rows) if (D <= 0).any() else found), rows

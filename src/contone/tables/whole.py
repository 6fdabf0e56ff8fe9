"""The whole table at once: read it, recover the degrees, write it."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from contone.base import Enhancer
from contone.exceptions import ArgumentError, DataError, LabelError
from contone.tables import answer, columns, formats, grading, kept
from contone.tables.encoder import ColumnEncoder, described
from contone.tables.order import STDOUT, EnhancedFile, Order
from contone.tables.prepare import Problem, encoder_for, posed
from contone.validation import silent_rows


@dataclass(frozen=True)
class Fitted:
    """A problem, the fitted method and encoder, and the degrees (n, q) of its rows."""

    problem: Problem
    encoder: ColumnEncoder
    method: Enhancer
    D: np.ndarray
    fitted_rows: np.ndarray
    """Which rows the method was fitted on, (n,)."""


def enhance_whole(order: Order) -> EnhancedFile:
    """Carry out an order with all rows in memory."""
    fitted = fit_whole(order)
    problem, names = fitted.problem, fitted.problem.L.columns
    X = fitted.encoder.transform(problem.features) if order.intervals is not None else np.empty((len(fitted.D), 0))
    ends = answer.ends_of_fitted_rows(order, fitted.method, X, fitted.fitted_rows)
    new = answer.added_columns(order, problem.chosen, names, fitted.D, ends)
    write_answer(order, problem, new)
    if order.save_model:
        save_fitted(fitted, order.save_model)
    return EnhancedFile(
        path=None if order.target == STDOUT else Path(order.target),
        n_rows=len(fitted.D),
        labels=tuple(names),
        features=tuple(problem.chosen.features),
        carried=tuple(problem.chosen.carried),
        degrees=tuple(answer.degree_columns(order, problem.chosen, names)),
        method=fitted.method,
        streamed=False,
        compare_errors=None if problem.degrees is None else partial(_compare_errors, order, fitted),
    )


def _compare_errors(order: Order, fitted: Fitted) -> tuple[float, float] | None:
    """The expected error without and with graded rows, where the method tells."""
    method: Any = fitted.method
    if hasattr(method, "error_before_"):
        return method.error_before_, method.error_after_
    if not hasattr(method, "expected_error_"):
        return None
    with order.progress.working("fitting once more without the graded rows, to compare"):
        rows = fitted.fitted_rows
        X = fitted.encoder.transform(fitted.problem.features)[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first fit has said it
            plain = clone(method).fit(X, fitted.problem.L.filter(rows))
        return float(plain.expected_error_), float(method.expected_error_)


def fit_whole(order: Order, table: formats.Table | None = None) -> Fitted:
    """Read the table, unless it is given, pose the problem, fit the method."""
    say = order.progress.note
    with order.progress.working(f"reading {order.source}"):
        problem = read_problem(order) if table is None else posed(order, table)
        if order.target:
            refuse_text(order, problem.table)
        answer.degree_columns(order, problem.chosen, problem.L.columns)
    chosen = problem.chosen
    say(f"  {problem.L.height:,} rows; labels: {columns.listed(problem.L.columns)}; "
        f"features: {columns.listed(chosen.features)}")  # fmt: skip
    if chosen.carried:
        say(f"  carried along: {columns.listed(chosen.carried)}")
    problem = _without_missing(order, problem)
    encoder = encoder_for(order, chosen).fit(problem.features)
    for line in described(encoder, problem.features, ask=not problem.table.label_names):
        say(f"  {line}")
    with order.progress.fitting(f"enhancing with {type(order.method).__name__}"):
        problem, D, fitted_rows = _fit(order, problem, encoder)
    return Fitted(problem, encoder, order.method, D, fitted_rows)


def read_problem(order: Order) -> Problem:
    """Read the file, which must stay as it is meanwhile, and give each column its part."""
    before = formats.state_of(order.source)
    table = formats.read(order.source, order.progress.note, separator=order.separator, decimal=order.decimal)
    formats.refuse_changed(order.source, before)
    problem = posed(order, table)
    if order.graded is None:
        return problem
    degrees = grading.read_graded(order.graded, problem, order.ids)
    order.progress.note(f"  {int((~np.isnan(degrees[:, 0])).sum()):,} graded rows from {order.graded}")
    return replace(problem, degrees=degrees)


def refuse_text(order: Order, table: formats.Table) -> None:
    """Refuse before the work a table that the output could not hold after it."""
    flat = order.target == STDOUT or formats.suffix_of(order.target) in formats.FLAT
    formats.refuse_nested(table.stored.schema, as_text=flat and not table.is_text)


def _fit(order: Order, problem: Problem, encoder: ColumnEncoder) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Fit on all rows, or on those with a label: then the others are predicted, or left out."""
    X = encoder.transform(problem.features)
    labelled = ~np.asarray(silent_rows(problem.L.to_numpy()))
    if order.unlabelled == "method" or labelled.all():
        try:
            _fit_method(order.method, X, problem)
        except LabelError as error:
            if labelled.all():
                raise
            raise LabelError(
                f"{error} On the command line, --unlabelled predict fits on the other rows and predicts these; "
                "--unlabelled drop leaves them out."
            ) from error
        return problem, np.asarray(order.method.label_distributions_), np.ones(len(X), dtype=bool)
    count = int((~labelled).sum())
    if labelled.sum() < 2:
        raise DataError(f"only {int(labelled.sum())} of {len(X)} rows have a label: nothing can be learnt.")
    if order.unlabelled == "predict" and not hasattr(order.method, "predict"):
        raise ArgumentError(
            f"{type(order.method).__name__} cannot predict the {count} rows without a label: choose a method that can, "
            "or leave these rows out.",
            "unlabelled",
        )
    _fit_method(order.method, X[labelled], problem.rows(labelled))
    if order.unlabelled == "drop":
        order.progress.note(f"  {count:,} rows without a label are left out")
        D = np.asarray(order.method.label_distributions_)
        return problem.rows(labelled), D, np.ones(len(D), dtype=bool)
    order.progress.note(f"  {count:,} rows without a label are predicted from their features")
    D = np.empty(problem.L.shape)
    D[labelled] = order.method.label_distributions_
    D[~labelled] = order.method.predict(X[~labelled])
    if problem.degrees is not None:
        D = np.where(np.isnan(problem.degrees), D, problem.degrees)
    return problem, D, labelled


def _fit_method(method: Any, X: np.ndarray, problem: Problem) -> None:
    """Fit to labels, and to degrees or annotators where there are any."""
    said = problem.annotations
    if said is not None:
        if "groups" not in inspect.signature(method.fit).parameters:
            raise ArgumentError(f"{type(method).__name__} takes one annotator per item; inversion takes any.", "worker")
        method.fit(X[said.item], said.L, groups=said.item, degrees=problem.degrees)
    elif problem.degrees is None:
        method.fit(X, problem.L)
    else:
        method.fit(X, problem.L, degrees=problem.degrees)


def _without_missing(order: Order, problem: Problem) -> Problem:
    """With missing="drop", the rows whose features are all there."""
    if order.missing != "drop":
        return problem
    there = ~problem.features.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    if there.all():
        return problem
    if not there.any():
        raise DataError("every row has a missing feature: nothing would be left.")
    order.progress.note(f"  {int((~there).sum()):,} rows with missing features are left out")
    return problem.rows(there)


# ------------------------------------------------------------------------------------------------------ the answer


def write_answer(order: Order, problem: Problem, new: pl.DataFrame) -> None:
    """The table with the new columns, whole or not at all."""
    as_text = order.target == STDOUT or formats.suffix_of(order.target) in formats.SEPARATORS
    used = [*([] if problem.is_set else problem.chosen.labels), *problem.chosen.features]
    used = [name for name in used if name not in problem.chosen.as_written]
    frame = problem.table.with_columns(new, used, as_text=as_text)
    if as_text or formats.suffix_of(order.target) in formats.FLAT:
        frame = _flat(frame)
    dialect = problem.table.dialect if formats.suffix_of(order.source) == ".csv" else None
    formats.write(frame, order.target, overwrite=order.overwrite, dialect=dialect)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists of labels that were made from rows become text again."""
    return frame.with_columns(
        column.cast(pl.List(pl.String)).list.join("|") for column in frame if isinstance(column.dtype, pl.List)
    )


def save_fitted(fitted: Fitted, path: str) -> None:
    """The method with its columns and encoder as a model file."""
    kept.save(
        path,
        fitted.method,
        fitted.encoder,
        fitted.problem.chosen,
        fitted.problem.L.columns,
        is_set=fitted.problem.is_set,
        n_rows=int(fitted.fitted_rows.sum()),
    )

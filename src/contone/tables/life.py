"""A model's life: fit it on one file, keep it, apply it to others, with or without labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from contone.exceptions import ArgumentError, ContoneError, DataError, LabelError
from contone.tables import answer, columns, formats, labels, run, whole
from contone.tables.columns import Columns
from contone.tables.kept import TableModel, load, path_of
from contone.tables.order import STDOUT, EnhancedFile, Order, check_output, check_source
from contone.tables.prepare import Problem


def fit(order: Order, path: str) -> TableModel:
    """Fit on a file and write the model; the table itself is not written."""
    check_source(order.source)
    run.check_format(order.source)
    check_output(path, overwrite=order.overwrite)
    run.check_settings(order)
    fitted = whole.fit_whole(order)
    whole.save_fitted(fitted, path)
    return load(path, [path_of(fitted.method)])


def apply(model_path: str | os.PathLike[str], order: Order, trusted: Sequence[str] = ()) -> EnhancedFile:
    """The degrees of the rows of another file: from features and labels where it has them, else from features."""
    model = load(model_path, trusted)
    check_source(order.source)
    run.check_format(order.source)
    run.check_settings(replace(order, method=model.method))
    run.check_target(order)
    with order.progress.working(f"reading {order.source}"):
        before = formats.state_of(order.source)
        table = formats.read(order.source, order.progress.note, separator=order.separator, decimal=order.decimal)
        formats.refuse_changed(order.source, before)
        if order.target:
            whole.refuse_text(order, table)
        with _whole(model):
            X = model.encoder.transform(_features(table, model))
        L = _labels(table, model, order)
    order.progress.note(f"  {table.stored.height:,} rows, {'with' if L is not None else 'without'} labels")
    with order.progress.working(f"applying {type(model.method).__name__}"), _whole(model):
        D = _degrees(model, X, L)
        ends = answer.ends_of_new_rows(order, model.method, X, L)
    used = {*model.chosen.labels, *model.chosen.features}
    chosen = Columns(
        [c for c in model.chosen.labels if c in table.stored.columns],
        model.chosen.features,
        [c for c in table.stored.columns if c not in used],
        model.chosen.categories,
        model.chosen.texts,
    )
    new = answer.added_columns(order, chosen, model.labels, D, ends)
    problem = Problem(table, chosen, pl.DataFrame(), pl.DataFrame(), model.is_set)
    whole.write_answer(order, problem, new)
    return EnhancedFile(
        path=None if order.target == STDOUT else Path(order.target),
        n_rows=len(D),
        labels=tuple(model.labels),
        features=tuple(chosen.features),
        carried=tuple(chosen.carried),
        degrees=tuple(answer.degree_columns(order, chosen, model.labels)),
        method=model.method,
        streamed=False,
    )


def _features(table: formats.Table, model: TableModel) -> pl.DataFrame:
    """The model's features, found by name; numbers must be numbers."""
    absent = [name for name in model.chosen.features if name not in table.stored.columns]
    if absent:
        shown = ", ".join(map(repr, absent[:5]))
        raise DataError(f"the table lacks {len(absent)} columns that the model was fitted on: {shown}.")
    categories, found = set(model.chosen.as_written), []
    for name in model.chosen.features:
        column = (table.stored if name in categories else table.values)[name]
        if name not in categories and column.dtype == pl.String:
            if (column.fill_null("").str.strip_chars() != "").any():
                raise DataError(f"the column {name!r} must hold numbers, as it did when the model was fitted.")
            column = pl.Series(name, [None] * len(column), dtype=pl.Float64)
        found.append(column)
    return pl.DataFrame(found)


def _labels(table: formats.Table, model: TableModel, order: Order) -> pl.DataFrame | None:
    """The model's labels as 0 and 1; None where the table has none of them."""
    there = [name for name in model.chosen.labels if name in table.stored.columns]
    if not there:
        return None
    absent = [name for name in model.chosen.labels if name not in there]
    if absent:
        raise DataError(
            f"the table has some labels of the model but lacks {columns.listed([repr(name) for name in absent])}: give "
            "all of them, or none."
        )
    if model.is_set:
        _, found = labels.split_sets(table.stored[there[0]], order.label_separator)
        unknown = [name for name in found.columns if name not in model.labels]
        if unknown:
            raise LabelError(f"the label {unknown[0]!r} is not one of the model's: {columns.listed(model.labels)}.")
        empty = pl.Series([0.0] * found.height)
        return pl.DataFrame({name: found[name] if name in found.columns else empty for name in model.labels})
    return table.label_numbers(labels.meanings(table.words(there), table.numeric))


@contextmanager
def _whole(model: TableModel) -> Iterator[None]:
    """A file may hold a method whose parts are missing or do not belong together; that shows when it is used."""
    try:
        yield
    except ContoneError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise DataError(
            f"the model cannot be applied: its {type(model.method).__name__} is incomplete or damaged ({error}). "
            "Fit it again."
        ) from error


def _degrees(model: TableModel, X: np.ndarray, L: pl.DataFrame | None) -> np.ndarray:
    name = type(model.method).__name__
    if L is not None and hasattr(model.method, "enhance"):
        return np.asarray(model.method.enhance(X, L))
    if L is None and hasattr(model.method, "predict"):
        return np.asarray(model.method.predict(X))
    if L is None and hasattr(model.method, "enhance"):
        raise ArgumentError(f"{name} needs the labels {columns.listed(model.labels)} of new rows.", "source")
    raise ArgumentError(f"{name} tells the degrees of the rows it was fitted on only: use contone enhance.", "method")

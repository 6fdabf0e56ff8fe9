"""A fitted method as a file, with the columns that it was fitted on and their encoder; and its answer to other tables.

A table may have labels, or answers of people, or neither: then the degrees come from the features alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.base import Enhancer
from contone.exceptions import ArgumentError, ContoneError, DataError, LabelError
from contone.models import read_model, save_model
from contone.runtime.progress import Progress
from contone.tables import columns, embeddings, labels
from contone.tables.answers import UNKNOWN, Answers, Question, gather
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder
from contone.tables.fitting import Ends, FittedProblem, posterior_of_answers, takes_answers, with_intervals
from contone.tables.labels import LabelReading
from contone.tables.reading import Problem, answered, encode, features_of, read_file
from contone.tables.settings import AnswerOptions, Reading, split_options
from contone.tables.table import Table
from contone.tables.targets import check_targets
from contone.tables.writing import EnhancedFile, check_answer, check_format, what_was_written, write_problem
from contone.typing import Matrix


@dataclass(frozen=True)
class TableModel:
    """A fitted method with the columns that it was fitted on."""

    method: Enhancer
    columns: Columns
    labels: list[str]
    is_set: bool
    encoder: ColumnEncoder
    n_rows: int
    question: Question = UNKNOWN
    """The question to an annotation tool that was answered; empty for a plain table."""
    contone_version: str = ""

    @classmethod
    def of(cls, fitted: FittedProblem) -> TableModel:
        """The model of a fitted problem."""
        problem, n_rows = fitted.problem, int(fitted.fitted_rows.sum())
        is_set, given = problem.label_reading.is_set, problem.answers
        question = UNKNOWN if given is None else given.question
        return cls(fitted.method, problem.columns, problem.label_names, is_set, problem.encoder, n_rows, question)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the method with what is needed to apply it to another table."""
        as_they_are = {name: getattr(self, name) for name in ("labels", "is_set", "encoder", "n_rows")}
        details = {**as_they_are, "columns": asdict(self.columns), "question": asdict(self.question)}
        save_model(self.method, path, details=details)


def path_of(method: object) -> str:
    """The import path of a method that is here already, and so is trusted."""
    return f"{type(method).__module__}:{type(method).__qualname__}"


def load_table_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> TableModel:
    """A model that `fit_file` wrote: the fitted method, its labels, its columns and their encoder."""
    stored = read_model(path, trusted=trusted)
    details = stored.details
    try:
        if not isinstance(details["encoder"], ColumnEncoder):
            raise TypeError
        return TableModel(
            method=stored.method,
            columns=Columns(**details["columns"]),
            labels=[str(name) for name in details["labels"]],
            is_set=bool(details["is_set"]),
            encoder=details["encoder"],
            n_rows=int(details["n_rows"]),
            question=Question(**details.get("question", {})),
            contone_version=stored.contone_version,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is a model without a table: contone fit writes those that can be applied.") from error


# ------------------------------------------------------------------------------------------------- to another table


def apply_model(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Unpack[AnswerOptions],
) -> EnhancedFile:
    """Predict the degrees of the rows of another file with a model that `fit_file` wrote.

    With the model's label columns in the file, they are used (`enhance`), and so is what people said of an item, where
    the model was fitted to answers of people; without, the degrees come from the features alone (`predict`). Columns
    are found by name, in any order; a missing one is refused by name, and classes that the model has never seen are
    named. `trusted` are methods from outside contone that may be in the model; the other arguments, as far as they are
    about text files, answers and writing, are those of `enhance_file`.
    """
    fitted, said = load_table_model(model, trusted=trusted), progress or Progress()
    reading, writing = split_options(options, target)
    check_format(writing)
    check_targets([source, model], {"target": target}, overwrite=writing.overwrite, over_source=source)
    if writing.intervals is not None:
        with_intervals(fitted.method)
    with said.working(f"reading {source}"), _undamaged(fitted):
        problem = read_for(fitted, read_file(Path(source), reading, said), reading, said)
        check_answer(writing, problem)
    what = "answers of people" if problem.groups is not None else "labels"
    said.note(f"  {problem.table.n_rows:,} rows, {'with' if problem.Y.height else 'without'} {what}")
    with said.working(f"applying {type(fitted.method).__name__}"), _undamaged(fitted):
        D, ends = degrees_of(fitted, problem, writing.intervals)
        write_problem(problem, D, writing, ends)
    return what_was_written(writing, problem, fitted.method)


def read_for(model: TableModel, source: Table | Answers, reading: Reading, progress: Progress) -> Problem:
    """The problem that a table poses to a model: its features by name, and labels or answers where they are there."""
    given = gather(source, reading, progress.note) if isinstance(source, Table) else source
    table, key = (given, None) if isinstance(given, Table) else (given.table, given.key)
    table = embeddings.join(table, reading, key)
    features = _features(table, model)
    for name, unseen in model.encoder.unseen_classes(features).items():
        progress.warn(f"  {name!r} holds classes the model has never seen: {columns.listed(unseen)}; read as zeros")
    there = set(table.stored.columns)
    # People's answers had no columns; new rows may have their counts.
    named = model.columns.labels or (model.labels if there.issuperset(model.labels) else [])
    used = {*named, *model.columns.features}
    own = [name for name in named if name in there]
    carried = [name for name in table.stored.columns if name not in used]
    chosen = replace(model.columns, labels=own, carried=carried)
    read = LabelReading(model.labels, set_column=model.columns.labels[0] if model.is_set else "")
    X, Y = encode(model.encoder, features, table.n_rows), _labels(table, chosen.labels, model, reading)
    problem = Problem(X, Y, np.arange(table.n_rows), table, chosen, reading, read, model.encoder)
    if isinstance(given, Table):
        return problem
    if given.question.tool == model.question.tool and not given.question.name:
        given = replace(given, question=model.question)
    progress.note(f"  {given.in_words()}")
    if not takes_answers(model.method):
        progress.warn("  the model was not fitted to answers of people: theirs are not used, items are predicted")
    return answered(problem, given.with_labels(model.labels).by_item())


def _features(table: Table, model: TableModel) -> pl.DataFrame:
    """The model's features, found by name; a text file may leave a column of numbers blank."""
    absent = [name for name in model.columns.features if name not in table.schema]
    if absent:
        shown = ", ".join(map(repr, absent[:5]))
        raise DataError(f"the table lacks {len(absent)} columns that the model was fitted on: {shown}.")
    features = features_of(table, model.columns)
    texts = [c for c in features if c.dtype == pl.String and c.name not in model.columns.as_written]
    blank = [c.name for c in texts if (c.fill_null("").str.strip_chars() == "").all()]
    return features.with_columns(pl.lit(None, pl.Float64).alias(name) for name in blank)


def _labels(table: Table, there: list[str], model: TableModel, reading: Reading) -> pl.DataFrame:
    """The model's labels as numbers; a frame without columns where the table has none of them."""
    if not there:
        return pl.DataFrame()
    absent = [repr(name) for name in model.columns.labels if name not in there]
    if absent:
        raise DataError(f"the table lacks the labels {columns.listed(absent)} of the model: give all of them, or none.")
    if not model.is_set:
        return LabelReading(there, labels.meanings(table.words(there), table.numeric)).read(table)
    read = labels.decide(table, there, reading.label_separator)
    unknown = [name for name in read.names if name not in model.labels]
    if unknown:
        raise LabelError(f"the label {unknown[0]!r} is not one of the model's: {columns.listed(model.labels)}.")
    return replace(read, names=model.labels).read(table)


@contextmanager
def _undamaged(model: TableModel) -> Iterator[None]:
    """A file may hold a method whose parts are missing or do not belong together; that shows when it is used."""
    try:
        yield
    except ContoneError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"the model's {type(model.method).__name__} is incomplete or damaged ({error}): fit it again."
        ) from error


def degrees_of(model: TableModel, problem: Problem, level: float | None) -> tuple[Matrix, Ends | None]:
    """The degrees (n, q) of new rows, and the ends of their intervals where a level is asked for."""
    method, Y = model.method, problem.Y if problem.Y.width and problem.groups is None else None
    name, enhance, predict = type(method).__name__, *(getattr(method, n, None) for n in ("enhance", "predict"))
    if Y is not None and enhance is not None:
        D = enhance(problem.X, Y)
    elif Y is None and predict is not None:
        D = predict(problem.item_features)
    elif Y is None and enhance is not None:
        raise ArgumentError(f"{name} needs the labels {columns.listed(model.labels)} of new rows.", "source")
    else:
        raise ArgumentError(f"{name} gives degrees of the rows it was fitted on only: use contone enhance.", "method")
    if np.shape(D) != (len(problem.item_features), len(model.labels)):
        raise DataError(f"the model cannot be applied: it names {len(model.labels)} labels, {name} has others.")
    D, ends = np.asarray(D), None
    if level is not None:
        low, high = with_intervals(method).intervals(problem.item_features, Y, level)
        ends = np.asarray(low), np.asarray(high)
    if problem.groups is not None and takes_answers(method) and (there := problem.labelled).any():
        mean, given = posterior_of_answers(method, problem.subset(there), level)
        D = _replaced(D, there, mean)
        ends = None if ends is None else (_replaced(ends[0], there, given[0]), _replaced(ends[1], there, given[1]))
    if ends is not None and not (ends[0] <= ends[1]).all():
        raise DataError(f"the model cannot be applied: the intervals of its {name} are none.")
    return D, ends


def _replaced(A: Matrix, rows: NDArray[np.bool_], values: Matrix) -> Matrix:
    """A (n, q) with other values in some rows."""
    made = np.array(A)
    made[rows] = values
    return made

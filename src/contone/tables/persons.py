"""The table of persons: how much an answer of theirs is worth, what they say too often, how often they were right."""

from __future__ import annotations

import numpy as np
import polars as pl

from contone.exceptions import ArgumentError
from contone.tables.answers import Answers
from contone.tables.fitting import FittedProblem, reads_people
from contone.tables.reading import Problem


def refuse_without_persons(problem: Problem) -> None:
    """Refuse before the fit a table of persons where nobody is named."""
    if problem.annotators is None:
        raise ArgumentError("the table does not say who gave which answer: name their column (--worker).", "annotators")


def table_of_persons(fitted: FittedProblem) -> pl.DataFrame:
    """One row per person, the most informative first; with reference answers, how many were judged and were right."""
    if not reads_people(fitted.method):
        raise ArgumentError("persons are told apart by the rules votes, marks and levels.", "annotators")
    table = fitted.method.annotators_
    names = list(table) if isinstance(table, dict) else list(table.columns)
    frame = pl.DataFrame({name: list(table[name]) for name in names}, strict=False)
    answers = fitted.problem.answers
    if answers is None or not answers.reference:
        return frame
    judged, right = _judged(answers)
    rows = [answers.workers.index(str(name)) if str(name) in answers.workers else -1 for name in frame["annotator"]]
    counts = [(int(judged[i]), int(right[i])) if i >= 0 else (0, 0) for i in rows]
    return frame.with_columns(pl.Series("judged", [c[0] for c in counts]), pl.Series("right", [c[1] for c in counts]))


def _judged(answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Of each person, the answers about items with a reference, and those that say the same."""
    judged, right = np.zeros(len(answers.workers) + 1, dtype=int), np.zeros(len(answers.workers) + 1, dtype=int)
    for i, who, said in zip(answers.item.tolist(), answers.worker.tolist(), answers.Y, strict=True):
        if i in answers.reference:
            judged[who] += 1
            right[who] += {answers.labels[j] for j in np.flatnonzero(said > 0)} == set(answers.reference[i])
    return judged, right

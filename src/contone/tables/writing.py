"""The answer beside the table: degrees as columns, as one list or as one struct, ends of intervals, first labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError
from contone.runtime.files import replacing
from contone.tables import excel, exports, formats
from contone.tables.answers import Answers
from contone.tables.columns import Columns
from contone.tables.labels import LabelReading
from contone.tables.reading import Problem
from contone.tables.settings import Writing, WritingOptions
from contone.tables.table import Table
from contone.validation import check_distributions

Matrix = NDArray[np.float64]
Ends = tuple[Matrix, Matrix]
"""Lower and upper ends of intervals, each (n, q)."""
ONE_COLUMN = "degrees"
"""What the column is called that holds all degrees of a row."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would run."""


def check_format(writing: Writing) -> None:
    """Refuse before any work a target whose format is not known, or that cannot hold what is asked for."""
    target, suffix = writing.target, formats.target_suffix(writing.target)
    if suffix not in (*formats.WRITABLE, ".json") or target.lower().endswith(".gz"):
        raise ArgumentError(f"{target} must end in one of {', '.join(formats.WRITABLE)}.", "target")
    if suffix == ".xlsx":
        excel.refuse_without_writer()
    able = (*formats.PARQUET, *formats.ARROW, *formats.JSON_LINES)
    if writing.degrees_as != "columns" and suffix not in able:
        raise ArgumentError(
            f"{target} cannot hold a {writing.degrees_as}: write {', '.join(able)}, or degrees as columns.",
            "degrees_as",
        )


def check_answer(
    writing: Writing, table: Table, chosen: Columns, names: Sequence[str], answers: Answers | None = None
) -> None:
    """Refuse before the fit a table that the target cannot hold, and new columns that are there already."""
    degree_columns(writing, chosen, names)
    if formats.target_suffix(writing.target) == ".json":
        exports.refuse_unless_returnable(answers)
    elif not table.is_text:
        formats.refuse_unwritable(table.stored, writing.target)


def degree_columns(writing: Writing, chosen: Columns, names: Sequence[str]) -> list[str]:
    """Names of the columns that the degrees come in."""
    return chosen.degrees(writing.suffix, names) if writing.degrees_as == "columns" else [ONE_COLUMN]


def added_columns(
    writing: Writing, chosen: Columns, names: Sequence[str], D: Matrix, ends: Ends | None = None
) -> pl.DataFrame:
    """Degrees D (n, q), and what else was asked for: ends of intervals, names of the first labels."""
    degrees, first = degree_columns(writing, chosen, names), np.argsort(-D, axis=1, kind="stable")
    if writing.digits is not None:
        D = rounded(D, writing.digits)
        ends = None if ends is None else (ends[0].round(writing.digits), ends[1].round(writing.digits))
    if writing.degrees_as == "columns":
        new = [pl.Series(name, D[:, j]) for j, name in enumerate(degrees)]
        if ends is not None:
            for j, name in enumerate(names):
                new += [pl.Series(f"{name}_low", ends[0][:, j]), pl.Series(f"{name}_high", ends[1][:, j])]
    else:
        shown = {ONE_COLUMN: D} | ({} if ends is None else {"lower": ends[0], "upper": ends[1]})
        new = [_in_one(column, names, values, writing.degrees_as) for column, values in shown.items()]
        new.append(pl.Series("entropy", entropy(D)))
    if writing.top:
        texts = [_quoted(name) if is_text(writing.target) else name for name in names]
        new += [
            pl.Series(f"top_{k + 1}", [texts[j] for j in first[:, k]], dtype=pl.String)
            for k in range(min(writing.top, len(names)))
        ]
    _refuse_taken([column.name for column in new], degrees if writing.degrees_as == "columns" else [], chosen)
    return pl.DataFrame(new)


def entropy(D: Matrix) -> Matrix:
    """Entropy (n,) of distributions D (n, q), in nats: 0 where one label has all, log q where all have the same."""
    return np.asarray(-(D * np.log(np.where(D > 0, D, 1.0))).sum(axis=1))


def rounded(D: Matrix, digits: int) -> Matrix:
    """Distributions with so many decimals, whose rows still sum to 1: the largest remainders are rounded up.

    Examples
    --------
    >>> rounded(np.full((1, 3), 1 / 3), 2).tolist()
    [[0.34, 0.33, 0.33]]
    """
    scaled = D * 10.0**digits
    whole = np.floor(scaled + 1e-9)
    left = np.rint(10.0**digits - whole.sum(axis=1)).astype(int)
    rank = np.argsort(np.argsort(-(scaled - whole), axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(np.round((whole + (rank < left[:, None])) / 10.0**digits, digits))


def is_text(target: str) -> bool:
    """Whether a target is a text file."""
    return formats.target_suffix(target) in formats.SEPARATORS


def _quoted(text: str) -> str:
    """A text that no spreadsheet runs: with an apostrophe in front where it would be a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def _in_one(column: str, names: Sequence[str], values: Matrix, way: str) -> pl.Series:
    """All values (n, q) of a row in one entry: a list in the order of the labels, or a struct by their names."""
    if way == "list":
        return pl.Series(column, values.tolist(), dtype=pl.List(pl.Float64))
    return pl.DataFrame({name: values[:, j] for j, name in enumerate(names)}).to_struct(column)


def _refuse_taken(made: list[str], degrees: list[str], chosen: Columns) -> None:
    """`Columns.degrees` has looked at the columns of degrees; the others may not replace anything."""
    there = {*chosen.labels, *chosen.features, *chosen.carried} - set(degrees)
    taken = next((name for name in made if name in there or made.count(name) > 1), None)
    if taken is not None:
        raise ArgumentError(f"the output would have two columns {taken!r}: rename it in the table.", "suffix")


def answer_frame(
    writing: Writing,
    table: Table,
    chosen: Columns,
    read: LabelReading,
    D: Matrix,
    ends: Ends | None = None,
    beside: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """A table, or a piece of one, with the new columns, as the target's format takes it."""
    as_written = set(chosen.as_written)
    used = [n for n in (*([] if read.is_set else chosen.labels), *chosen.features) if n not in as_written]
    new = added_columns(writing, chosen, read.names, D, ends)
    new = pl.DataFrame([*(beside if beside is not None else ()), *new])
    frame = table.with_columns(new, used, as_text=is_text(writing.target))
    if formats.target_suffix(writing.target) not in formats.FLAT:
        return frame
    # Lists of labels that were made from rows become text again.
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join("|")) if lists else frame


def write_answer(
    problem: Problem, D: Matrix, target: str | os.PathLike[str], **writing: Unpack[WritingOptions]
) -> None:
    """Write the table of a problem with degrees beside it; the file appears whole or not at all.

    Parameters
    ----------
    problem : Problem
        What `read_table` gave.
    D : (n, q)
        The degrees of its rows.
    target : path
        .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; ``"-"`` is CSV on stdout.
    **writing
        ``suffix``, ``overwrite``, ``top``, ``degrees_as``, ``digits``: as in `enhance_file`.
    """
    wanted = Writing(str(target), **writing)
    check_format(wanted)
    check_answer(wanted, problem.table, problem.columns, problem.label_names, problem.answers)
    write_problem(problem, check_distributions(D, name="D"), wanted)


def write_problem(problem: Problem, D: Matrix, writing: Writing, ends: Ends | None = None) -> None:
    """The table with the new columns, whole or not at all."""
    if formats.target_suffix(writing.target) == ".json":
        with replacing(writing.target, overwrite=writing.overwrite) as temporary:
            exports.write_back(problem.answers, D, temporary)
        return
    frame = answer_frame(writing, problem.table, problem.columns, problem.label_reading, D, ends, problem.beside)
    formats.write(frame, writing.target, overwrite=writing.overwrite, dialect=problem.table.dialect)

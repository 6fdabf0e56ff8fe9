"""The answer beside the table: degrees as columns, as one list or as one struct, ends of intervals, first labels."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from scipy.special import entr

from contone.base import Enhancer
from contone.exceptions import ArgumentError
from contone.numerics.simplex import shared_out
from contone.runtime.files import replacing
from contone.tables import excel, exports, formats
from contone.tables.columns import listed, shown
from contone.tables.fitting import Ends, FittedProblem
from contone.tables.reading import Problem
from contone.tables.settings import STDOUT, Writing, WritingOptions
from contone.typing import Matrix
from contone.validation.distributions import check_distributions

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


def check_answer(writing: Writing, problem: Problem) -> None:
    """Refuse before the fit a table that the target cannot hold, and new columns that are there already."""
    new_columns(writing, problem)
    if formats.target_suffix(writing.target) == ".json":
        exports.refuse_unless_returnable(problem.answers)
    elif not problem.table.is_text:
        formats.refuse_unwritable(problem.table.stored, writing.target)


def new_columns(writing: Writing, problem: Problem) -> tuple[list[str], list[str]]:
    """Names of the columns that the degrees come in, and of the others that are added; they must not be there yet.

    An empty suffix puts the degrees in place of the labels.
    """
    chosen, names, more = problem.columns, problem.label_names, list(problem.beside.columns)
    degrees, ends = [ONE_COLUMN], ["lower", "upper"]
    if writing.degrees_as == "columns":
        degrees = [f"{name}{writing.suffix}" for name in names]
        ends = [f"{name}_{end}" for name in names for end in ("low", "high")]
    more += [] if writing.intervals is None else ends
    more += ["entropy"] if writing.degrees_as != "columns" else []
    more += [f"top_{k + 1}" for k in range(min(writing.top or 0, len(names)))]
    there = {*chosen.labels, *chosen.features, *chosen.carried}
    is_replaced = writing.degrees_as == "columns" and not writing.suffix
    if taken := sorted(set(degrees) & (there - set(chosen.labels) if is_replaced else there)):
        raise ArgumentError(f"the table already has {shown(taken)}: choose another suffix.", "suffix")
    if twice := next((name for name in more if name in there or [*degrees, *more].count(name) > 1), None):
        raise ArgumentError(f"the output would have two columns {twice!r}: rename it in the table.", "suffix")
    return degrees, more


def added_columns(writing: Writing, problem: Problem, D: Matrix, ends: Ends | None = None) -> pl.DataFrame:
    """Degrees D (n, q), and what else was asked for: ends of intervals, names of the first labels."""
    degrees, more = new_columns(writing, problem)
    names = problem.label_names
    first, way = np.argsort(-D, axis=1, kind="stable"), writing.degrees_as
    if writing.digits is not None:
        D = rounded(D, writing.digits)
        ends = None if ends is None else (ends[0].round(writing.digits), ends[1].round(writing.digits))
    if way == "columns":
        new = [pl.Series(D[:, j]) for j in range(len(names))]
        new += [pl.Series(end[:, j]) for j in range(len(names)) for end in ends or ()]
    else:
        new = [*(_in_one(names, values, way) for values in (D, *(ends or ()))), pl.Series(entr(D).sum(axis=1))]
    texts = not_run(names, writing.target)
    tops = range(min(writing.top or 0, len(names)))
    new += [pl.Series([texts[j] for j in first[:, k]], dtype=pl.String) for k in tops]
    called = [*degrees, *more[problem.beside.width :]]
    beside = problem.beside.get_columns()
    return pl.DataFrame([*beside, *(column.alias(name) for name, column in zip(called, new, strict=True))])


def rounded(D: Matrix, digits: int) -> Matrix:
    """Distributions with so many decimals, whose rows still sum to 1: the largest remainders are rounded up.

    Examples
    --------
    >>> rounded(np.full((1, 3), 1 / 3), 2).tolist()
    [[0.34, 0.33, 0.33]]
    """
    return np.asarray(np.round(shared_out(D, 10.0**digits) / 10.0**digits, digits))


def not_run(names: Sequence[str], target: str) -> list[str]:
    """Names as a target holds them: no spreadsheet runs a text with an apostrophe in front."""
    return [f"'{name}" if is_text(target) and name.startswith(FORMULA) else name for name in names]


def is_text(target: str) -> bool:
    """Whether a target is a text file."""
    return formats.target_suffix(target) in formats.SEPARATORS


def _in_one(names: Sequence[str], values: Matrix, way: str) -> pl.Series:
    """All values (n, q) of a row in one entry: a list in the order of the labels, or a struct by their names."""
    if way == "list":
        return pl.Series(values.tolist(), dtype=pl.List(pl.Float64))
    return pl.DataFrame({name: values[:, j] for j, name in enumerate(names)}).to_struct()


def answer_frame(writing: Writing, problem: Problem, D: Matrix, ends: Ends | None = None) -> pl.DataFrame:
    """The table with the new columns, as the target's format takes it."""
    chosen, is_set = problem.columns, problem.label_reading.is_set
    as_written = set(chosen.as_written)
    used = [n for n in (*([] if is_set else chosen.labels), *chosen.features) if n not in as_written]
    new = added_columns(writing, problem, D, ends)
    frame = problem.table.with_columns(new, used, as_text=is_text(writing.target))
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
    check_answer(wanted, problem)
    write_problem(problem, check_distributions(D, name="D"), wanted)


@dataclass(frozen=True)
class EnhancedFile:
    """What was written.

    Attributes
    ----------
    path : Path or None
        The file; None for stdout.
    n_rows : int
    labels, features, carried : tuple of str
        The part that each column of the input played.
    degrees, added : tuple of str
        The new columns, one per label; and the other new ones.
    method : Enhancer
        The fitted method (on a sample, where the file was streamed).
    streamed : bool
    fitted : FittedProblem or None
        The problem with its answer; None where the file was streamed.
    fitted_rows : function or None
        Gives the rows that the method was fitted on; of a streamed file this may take another pass over it.
    """

    path: Path | None
    n_rows: int
    labels: tuple[str, ...]
    features: tuple[str, ...]
    carried: tuple[str, ...]
    degrees: tuple[str, ...]
    added: tuple[str, ...]
    method: Enhancer
    streamed: bool = False
    fitted: FittedProblem | None = field(default=None, repr=False, compare=False)
    fitted_rows: Callable[[], Problem] | None = field(default=None, repr=False, compare=False)

    def in_words(self) -> str:
        """What was written, in one sentence: where, how much, which columns are new."""
        if formats.target_suffix(str(self.path)) == ".json":
            return f"wrote {self.path}: {self.n_rows:,} items, to be imported into the tool they came from"
        more = f" and {listed(self.added)}" if self.added else ""
        return f"wrote {self.path}: {self.n_rows:,} rows, new columns {listed(self.degrees)}{more}"


def what_was_written(writing: Writing, problem: Problem, method: Enhancer) -> EnhancedFile:
    """The record of an answer that is there."""
    degrees, added = map(tuple, new_columns(writing, problem))
    path, n_rows = None if writing.target == STDOUT else Path(writing.target), problem.table.n_rows
    features, carried = tuple(problem.columns.features), tuple(problem.columns.carried)
    return EnhancedFile(path, n_rows, tuple(problem.label_names), features, carried, degrees, added, method)


def write_problem(problem: Problem, D: Matrix, writing: Writing, ends: Ends | None = None) -> None:
    """The table with the new columns, whole or not at all; or what the tool imports that an export came from."""
    if formats.target_suffix(writing.target) == ".json":
        with replacing(writing.target, overwrite=writing.overwrite) as temporary:
            exports.write_back(problem.answers, D, temporary)
        return
    frame = answer_frame(writing, problem, D, ends)
    formats.write(frame, writing.target, overwrite=writing.overwrite, dialect=problem.table.dialect)

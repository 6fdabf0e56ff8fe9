"""`Check` of a table in a file: read it as `contone enhance` does, fit a method or take a fitted one, look."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.runtime.progress import Progress
from contone.tables.fitting import fit_problem, named_method
from contone.tables.reading import Problem, read_problem
from contone.tables.settings import Reading, ReadingOptions
from contone.trust.check_result import Check
from contone.trust.credibility import check


def check_file(
    source: str | os.PathLike[str],
    *,
    method: Enhancer | None = None,
    model: Inversion | None = None,
    progress: Progress | None = None,
    max_rows: int = 1000,
    **reading: Unpack[ReadingOptions],
) -> Check:
    """Check how far the degrees of a table's labels can be believed.

    Parameters
    ----------
    source : path
        As in `contone.read_table`.
    method : Enhancer or None
        Not fitted; None means ``Inversion()``.
    model : Inversion or None
        The model that other methods are compared with.
    progress : Progress or None
        Receives how far the work is.
    max_rows : int
        Rows to look at.
    **reading
        As in `contone.read_table`.
    """
    said = progress or Progress()
    problem = read_problem(Path(source), Reading(**reading), said).of_one_source("a check")
    fitted = fit_problem(problem, named_method(method if method is not None else Inversion()), said)
    return check_rows(fitted.method, fitted.rows(), model=model, progress=said, max_rows=max_rows)


def check_rows(
    method: Enhancer,
    rows: Problem,
    *,
    model: Inversion | None = None,
    progress: Progress | None = None,
    max_rows: int = 1000,
) -> Check:
    """Check a method that is fitted already, by the rows of its fit (`EnhancedFile.fitted_rows`)."""
    shape = getattr(getattr(method, "label_distributions_", None), "shape", None)
    # One from an interrupted run's file has no answer to its rows, and is fitted to them once more.
    fitted = method if shape == rows.Y.shape else clone(method)
    with (progress or Progress()).working("checking the answer"):
        found = check(fitted, rows.X, rows.Y, model=model, max_rows=max_rows)
    found = replace(
        found,
        ambiguous=tuple(replace(row, row=int(rows.numbers[row.row])) for row in found.ambiguous),
        doubtful=tuple(replace(entry, row=int(rows.numbers[entry.row])) for entry in found.doubtful),
    )
    return found if rows.sample_of is None else replace(found, n_rows=rows.sample_of, n_fitted=len(rows.numbers))

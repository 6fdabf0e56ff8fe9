"""The rows of a table that are worth grading: chosen by `Inversion.suggest`, written as a page or as a spreadsheet."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.exceptions import ArgumentError
from contone.pages import grading as page
from contone.runtime.files import replacing
from contone.tables import columns, formats, grading
from contone.tables.fitting import fit_problem, named_method
from contone.tables.next_steps import suggest_answers
from contone.tables.progress import Progress
from contone.tables.reading import Problem, check_input, read_problem
from contone.tables.settings import Reading, ReadingOptions
from contone.tables.targets import check_targets

PAGES = (".html", ".htm")
SHEETS = (".csv", ".tsv")


@dataclass(frozen=True)
class SuggestedFile:
    """What was written.

    Attributes
    ----------
    path : Path
    rows : tuple of int
        Numbers of the rows in the file, from 0, in the order in which they should be graded.
    n_rows : int
        Rows of the file.
    are_answers : bool
        Whether people should answer about these items, instead of one person grading them.
    """

    path: Path
    rows: tuple[int, ...]
    n_rows: int
    are_answers: bool = False


def suggest_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    k: int = 30,
    method: str | Enhancer = "inversion",
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> SuggestedFile:
    """Choose rows of a table that stand for all others, and write them for a person to grade.

    Of votes of several people, the items that they should be asked about next, and who: where one more answer lowers
    the expected log loss of all items most.

    Parameters
    ----------
    source : path
        As in `read_table`.
    target : path
        A page (.html) with a slider per label, or a spreadsheet (.csv, .tsv) with empty columns for the degrees.
    k : int, default=30
        How many rows; fewer where fewer are not graded yet.
    method : "inversion" or Inversion, default="inversion"
        With its settings.
    overwrite, progress : default=False, None
        As in `enhance_file`.
    **options
        As in `read_table`; rows ``graded`` before inform the choice and are not suggested again.
    """
    path, place, reading, said = Path(source), str(target), Reading(**options), progress or Progress()
    fresh = named_method(method)
    if not place.lower().endswith((*PAGES, *SHEETS)):
        raise ArgumentError(f"{place} must end in .html, for a page, or in .csv or .tsv, for a spreadsheet.", "target")
    if k < 1:
        raise ArgumentError(f"must be 1 or more; got {k}.", "k")
    if not isinstance(fresh, Inversion):
        raise ArgumentError(f"rows are suggested by inversion; got {type(fresh).__name__}.", "method")
    check_input(path)
    check_targets([path, *reading.files], {"target": place}, overwrite=overwrite)
    problem = read_problem(path, reading, said)
    if problem.answers is not None or problem.rule == "votes":
        if place.lower().endswith(PAGES):
            raise ArgumentError("where the next answers should go is a table: write .csv or .tsv.", "target")
        sheet = suggest_answers(problem, fresh, k, said)
        formats.write(sheet, place, overwrite=overwrite, dialect=problem.table.dialect)
        places = {name: i for i, name in enumerate(problem.row_names)}
        return SuggestedFile(Path(place), tuple(places[i] for i in sheet["item"]), len(problem.numbers), True)
    fitted = fit_problem(problem, fresh, said)
    with said.working("choosing rows"):
        chosen = fresh.suggest(k)
    problem, places = fitted.problem, np.flatnonzero(fitted.fitted_rows)[chosen]
    if place.lower().endswith(PAGES):
        text = make_page(problem, places, path)
        with replacing(place, overwrite=overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")
    else:
        sheet = grading.make_sheet(problem, places)
        formats.write(sheet, place, overwrite=overwrite, dialect=problem.table.dialect)
    return SuggestedFile(Path(place), tuple(int(i) for i in problem.numbers[places]), len(problem.numbers))


def make_page(problem: Problem, places: NDArray[np.int64], source: Path) -> str:
    """The page about some rows of a problem."""
    stored, marks = problem.table.stored[places.tolist()], problem.marks[places] > 0
    keys = columns.matching(problem.reading.ids, stored.columns)
    shown = [name for name in stored.columns if name not in problem.columns.labels]
    prints, numbers = grading.fingerprints(stored), problem.numbers[places]
    rows = [
        page.RowToGrade(
            int(numbers[i]),
            (str(numbers[i]), prints[i], *(grading.as_text(stored[name][i]) for name in keys)),
            tuple((name, grading.as_text(stored[name][i])) for name in shown),
            tuple(bool(m) for m in marks[i]),
        )
        for i in range(stored.height)
    ]
    head = (grading.ROW, grading.CHECK, *keys)
    folder, command = source.resolve().parent, next_command(source, problem.reading)
    return page.document(rows, problem.label_names, head, source.name, len(problem.numbers), folder, command)


def next_command(source: Path, reading: Reading, graded: str = "graded.csv") -> str:
    """What to run once rows are graded: the same reading and the same rule."""
    return shlex.join(["contone", "enhance", source.name, *reading.as_options(), "--graded", graded, "-o", "soft.csv"])

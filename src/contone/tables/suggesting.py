"""What to ask people next: rows to grade, items for further answers and by whom, and how many answers it takes."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.enhance.inversion.people import next_answers as ahead
from contone.exceptions import ArgumentError
from contone.pages import grading as page
from contone.runtime.files import write_whole
from contone.runtime.progress import Progress
from contone.tables import columns, formats, grading
from contone.tables.fitting import FittedProblem, fit_problem, named_method
from contone.tables.reading import Problem, read_problem
from contone.tables.settings import Reading, ReadingOptions
from contone.tables.targets import check_targets
from contone.typing import Matrix

PAGES = (".html", ".htm")
SHEETS = (".csv", ".tsv")
N_SAMPLES = 100
"""Draws of the degrees that expectations are taken over."""
MORE = (0, 1, 2, 3, 5, 10, 20)
MOST_COUNTED = 1000
"""Answers per item up to which counting is followed."""


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
    fresh = named_method(method, reading)
    if not place.lower().endswith((*PAGES, *SHEETS)):
        raise ArgumentError(f"{place} must end in .html, for a page, or in .csv or .tsv, for a spreadsheet.", "target")
    if k < 1:
        raise ArgumentError(f"must be 1 or more; got {k}.", "k")
    if not isinstance(fresh, Inversion):
        raise ArgumentError(f"rows are suggested by inversion; got {type(fresh).__name__}.", "method")
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
        write_whole(place, make_page(problem, places, path), overwrite=overwrite)
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


# ----------------------------------------------------------------------------------------------- answers of people


@dataclass(frozen=True)
class Plan:
    """What more answers per item would bring, by the fitted model; log loss of a further answer, in nats.

    Attributes
    ----------
    n_items, n_answers : int
        Items with an answer, and answers to them.
    answers : tuple of float
        Answers per item: now, and with more.
    expected : tuple of float
        Expected log loss with so many.
    counting : tuple of float
        Answers per item with which counting would have the same log loss; infinite where it never gets there.
    floor : float
        Log loss if the shares were known: people differ.
    """

    n_items: int
    n_answers: int
    answers: tuple[float, ...]
    expected: tuple[float, ...]
    counting: tuple[float, ...]
    floor: float


def plan_file(
    source: str | os.PathLike[str],
    *,
    method: str | Enhancer = "inversion",
    more: Sequence[int] = MORE,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> Plan:
    """How far more answers of people would bring the degrees of the items, and how many answers counting would need.

    Parameters
    ----------
    source : path
        A table of answers, as in `read_table`.
    method : "inversion" or Inversion, default="inversion"
        With its settings.
    more : sequence of int
        Numbers of further answers per item.
    progress : Progress or None, default=None
        Receives what is done; None is silent.
    **options
        As in `read_table`.
    """
    said = progress or Progress()
    reading = Reading(**options)
    fitted, D = sampled(read_problem(Path(source), reading, said), named_method(method, reading), said)
    with said.working("looking ahead"):
        given = int(np.nansum(fitted.problem.Y.to_numpy().astype(np.float64)))
        now = given / D.shape[1]
        expected = ahead.expected_losses(D, more).mean(axis=1)
        numbers = np.unique(np.geomspace(1, MOST_COUNTED, 60).round().astype(int))
        counted = np.minimum.accumulate(ahead.counting_losses(D, numbers.tolist()))
        needed = [float(np.interp(-loss, -counted, numbers, right=np.inf)) for loss in expected]
    losses, asked = tuple(float(loss) for loss in expected), tuple(now + k for k in more)
    return Plan(D.shape[1], given, asked, losses, tuple(needed), float(ahead.entropy(D).mean()))


def sampled(
    problem: Problem, method: Enhancer, progress: Progress, rules: Sequence[str] = ("votes",)
) -> tuple[FittedProblem, Matrix]:
    """A method fitted to answers, and draws (S, n, q) of the degrees of the items that have any.

    Of marks, a further one is taken for a vote: a label drawn by the degrees.
    """
    if not isinstance(method, Inversion):
        raise ArgumentError(f"answers are looked ahead by inversion; got {type(method).__name__}.", "method")
    if problem.rule not in rules:
        raise ArgumentError(
            f"this needs answers of people, read as {' or '.join(rules)}; these are "
            f"{problem.rule or 'labels of a rule'}. --rule votes reads them so.",
            "rule",
        )
    method.set_params(n_samples=N_SAMPLES)
    fitted = fit_problem(problem, method, progress)
    if len(fitted.method.label_distributions_) > method.max_rows:
        raise ArgumentError(f"at most {method.max_rows:,} items can be looked ahead at: take a part of them.", "source")
    return fitted, np.asarray(method.samples_)


def suggest_answers(problem: Problem, method: Enhancer, number: int, progress: Progress) -> pl.DataFrame:
    """Items that people should be asked about next, the most telling first: name, by whom, what it brings.

    Items that nobody has answered come first, since one answer about them helps most.
    """
    fitted, D = sampled(problem, method, progress, ("votes", "marks"))
    with progress.working("choosing items"):
        open_items = np.flatnonzero(~fitted.fitted_rows)[:number]
        places = np.flatnonzero(fitted.fitted_rows)
        persons, answered = _persons(fitted)
        found = ahead.next_answers(D, number - len(open_items), persons, answered) if number > len(open_items) else []
    chosen = [*open_items.tolist(), *(int(places[answer.item]) for answer in found)]
    names = np.array(problem.row_names, dtype=object)[chosen].astype(str)
    by = {"by": [""] * len(open_items) + [answer.person for answer in found]} if persons else {}
    gains = pl.Series([None] * len(open_items) + [answer.gain for answer in found], dtype=pl.Float64)
    frame = pl.DataFrame({"item": names, **by, "gain": gains})
    stored = problem.table.stored[chosen]
    taken = {"item", "by", "gain", *([problem.answers.key] if problem.answers is not None else [])}
    return frame.with_columns(c for c in stored if c.name not in taken and not c.dtype.is_nested())


def _persons(fitted: FittedProblem) -> tuple[list[ahead.Person], list[set[str]]]:
    """Who could answer, and who has answered about each item of the fit."""
    problem, method = fitted.problem.subset(fitted.fitted_rows), fitted.method
    known, names = method.fit_.persons, getattr(method, "annotator_names_", None)
    if problem.groups is None or problem.annotators is None or known is None or names is None:
        return [], []
    persons = [ahead.Person(str(n), float(known.sharpness[0, w]), known.offset[w]) for w, n in enumerate(names)]
    answered: list[set[str]] = [set() for _ in range(len(problem.numbers))]
    for item, name in zip(problem.groups.tolist(), problem.annotators, strict=True):
        answered[item].add(name)
    return persons, answered

"""The rows of a table that are worth grading: chosen by `Inversion.suggest`, written as a page or as a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from contone.enhance.inversion import Inversion
from contone.exceptions import ArgumentError
from contone.pages import grading as page
from contone.runtime.files import replacing
from contone.tables import columns, formats, grading, whole
from contone.tables.order import Order, check_output, check_source
from contone.tables.prepare import Problem
from contone.tables.run import check_format

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
    """

    path: Path
    rows: tuple[int, ...]
    n_rows: int


def write_suggestion(order: Order, k: int) -> SuggestedFile:
    """Choose k rows by an order whose method is `Inversion`, and write them as its target says."""
    target = order.target
    if not target.lower().endswith((*PAGES, *SHEETS)):
        raise ArgumentError(f"{target} must end in .html, for a page, or in .csv or .tsv, for a spreadsheet.", "target")
    if k < 1:
        raise ArgumentError(f"must be 1 or more; got {k}.", "k")
    if not isinstance(order.method, Inversion):
        raise ArgumentError(f"rows are suggested by inversion; got {type(order.method).__name__}.", "method")
    check_source(order.source)
    check_format(order.source)
    check_output(target, overwrite=order.overwrite)
    fitted = whole.fit_whole(replace(order, target=""))
    with order.progress.working("choosing rows"):
        chosen = order.method.suggest(k)
    problem, places = fitted.problem, np.flatnonzero(fitted.fitted_rows)[chosen]
    if target.lower().endswith(PAGES):
        text = make_page(problem, places, order.source, order.ids)
        with replacing(target, overwrite=order.overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")
    else:
        sheet = grading.make_sheet(problem, places)
        dialect = problem.table.dialect if formats.suffix_of(order.source) == ".csv" else None
        formats.write(sheet, target, overwrite=order.overwrite, dialect=dialect)
    return SuggestedFile(Path(target), tuple(int(i) for i in problem.numbers[places]), problem.L.height)


def make_page(problem: Problem, places: np.ndarray, source: Path, ids: Sequence[str]) -> str:
    """The page about some rows of a problem."""
    stored, marks = problem.table.stored[places.tolist()], problem.L[places.tolist()].to_numpy() > 0
    keys = columns.resolve(ids, stored.columns)
    shown = [name for name in stored.columns if name not in problem.chosen.labels]
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
    return page.document(rows, problem.L.columns, head, source.name, len(problem.numbers), source.resolve().parent)

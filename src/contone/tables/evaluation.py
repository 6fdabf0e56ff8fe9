"""How close an answer in a file is to the truth in another, beside the baselines."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.enhance import Logical, Temperature
from contone.exceptions import ArgumentError, DataError
from contone.measures import evaluate
from contone.tables import columns, formats, labels
from contone.tables.labels import LabelReading
from contone.tables.reading import check_input
from contone.tables.table import Table, refuse_missing
from contone.tables.targets import Place
from contone.tables.writing import ONE_COLUMN
from contone.typing import Matrix
from contone.validation.distributions import check_distributions


@dataclass(frozen=True)
class Evaluation:
    """Measures by name for the answer and for each baseline, over the same rows."""

    labels: tuple[str, ...]
    n_rows: int
    scores: dict[str, dict[str, float]]


def evaluate_file(
    truth: Place,
    answer: Place,
    *,
    suffix: str = "_degree",
    item: str | None = None,
    measures: str | Iterable[str] | None = None,
) -> Evaluation:
    """Score the degrees of an answer against the true ones, row by row, or by a column that names the rows.

    The labels are those columns of the answer that end in `suffix`; the truth has them under the same name, or under
    the label's own. Where the answer still has the 0/1 labels, baselines that need them stand beside the uniform one.
    `measures` as in `contone.evaluate`: the seven of the field's tables where none are named.
    """
    for path in (truth, answer):
        check_input(Path(path))
    first, second = (_unpacked(formats.read(Path(path)), suffix) for path in (truth, answer))
    names = [c.removesuffix(suffix) for c in second.stored.columns if c.endswith(suffix) and c != suffix]
    there = first.stored.schema
    found = {n: next((c for c in (f"{n}{suffix}", n) if c in there), None) for n in names}
    absent = [name for name, column in found.items() if column is None]
    if not names or absent:
        what = f"{truth} has no column {absent[0]!r}" if absent else f"{answer} has no column that ends in {suffix!r}"
        raise DataError(f"{what}: the degrees of both files must have the same labels.")
    rows_of_answer = _matching_rows(first, second, item, truth, answer)
    D = check_distributions(_numbers(first, [str(found[n]) for n in names], truth), name=str(truth))
    given = check_distributions(_numbers(second, [f"{n}{suffix}" for n in names], answer), name=str(answer))
    rows = {"answer": given[rows_of_answer], "uniform": np.full(D.shape, 1.0 / len(names))}
    if set(names) <= set(second.stored.columns):
        read = LabelReading(names, labels.meanings(second.words(names), second.numeric))
        L = read.read(second).to_numpy()[rows_of_answer]
        if set(np.unique(L)) <= {0.0, 1.0} and L.any(axis=1).all():
            nothing = np.zeros((len(L), 1))
            rows["logical"] = Logical().fit_enhance(nothing, L)
            rows["temperature"] = Temperature().fit_enhance(nothing, L)
    scores = {name: dict(evaluate(D, found_D, measures)) for name, found_D in rows.items()}
    return Evaluation(tuple(names), len(D), scores)


def _unpacked(table: Table, suffix: str) -> Table:
    """A struct of degrees as one column per label."""
    column = table.stored[ONE_COLUMN] if ONE_COLUMN in table.stored.columns else None
    if column is None or not isinstance(column.dtype, pl.Struct):
        return table
    degrees = column.struct.unnest()
    return replace(table, stored=table.stored.with_columns(c.alias(f"{c.name}{suffix}") for c in degrees))


def _matching_rows(first: Table, second: Table, item: str | None, truth: Place, answer: Place) -> NDArray[np.int64]:
    """For each row of the truth, the row of the answer that belongs to it."""
    n, m = first.stored.height, second.stored.height
    if item is None:
        if n != m:
            raise DataError(f"{truth} has {n:,} rows, {answer} has {m:,}: name a column that both share (--item).")
        return np.arange(n)
    for path, table in ((truth, first), (answer, second)):
        if item not in table.stored.columns:
            raise ArgumentError(f"{path} has no column {item!r}.", "item")
        if table.stored[item].n_unique() < table.stored.height:
            raise DataError(f"{path} has rows with the same {item!r}: it cannot tell rows apart.")
    places = {key: i for i, key in enumerate(second.stored[item].cast(pl.String).to_list())}
    keys = first.stored[item].cast(pl.String).to_list()
    absent = [key for key in keys if key not in places]
    if absent:
        raise DataError(f"{answer} has no row with {item} {columns.listed([str(key) for key in absent])}.")
    return np.array([places[key] for key in keys])


def _numbers(table: Table, names: list[str], path: Place) -> Matrix:
    odd = [name for name in names if name not in table.numeric]
    if odd:
        raise DataError(f"the column {odd[0]!r} of {path} must hold degrees, that is numbers.")
    frame = table.values.select(names)
    refuse_missing(frame)
    return frame.to_numpy().astype(float)

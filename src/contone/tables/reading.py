"""From a file to the problem that it poses: which column is what, labels as numbers, features as a matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError
from contone.tables import columns, formats, grading, labels
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder, described
from contone.tables.label_names import Exact, expand
from contone.tables.labels import LabelReading, Words
from contone.tables.pieces import Pieces
from contone.tables.progress import Progress
from contone.tables.settings import Reading, ReadingOptions
from contone.tables.table import Table, numeric_columns
from contone.tables.targets import check_source
from contone.tables.text import ColumnKind
from contone.validation import silent_rows


@dataclass(frozen=True)
class Problem:
    """What a table asks: features, labels, and how its rows and columns are called.

    ``method.fit_enhance(problem.X, problem.Y)`` is an answer, ``write_answer(problem, D, "soft.csv")`` writes it beside
    the table. Where several annotators answered about one item, X and Y have one row per answer, and `groups` says
    which item it is about; everything else has one row per item.

    Attributes
    ----------
    X : (r, d)
        Features as numbers; a column of zeros where the table has none.
    Y : DataFrame (r, q)
        Labels as numbers, one column per label; null where nobody was asked.
    groups : (r,) or None
        Number of the item that each row is about, rising; None where each row is an item of its own.
    annotators : tuple of str or None
        Who gave each row of Y; None where the table does not say.
    graded : (n, q) or None
        Degrees of the rows that a person graded, NaN in the others.
    numbers : (n,)
        Number of each row in the file, from 0.
    notes : tuple of str
        What was read, in words.
    table : Table
        The table itself.
    columns : Columns
        The part that each of its columns plays.
    reading : Reading
        How it was read.
    label_reading : LabelReading
        What the words of its labels mean.
    encoder : ColumnEncoder
        How columns become features.
    """

    X: NDArray[np.float64]
    Y: pl.DataFrame
    groups: NDArray[np.int64] | None
    annotators: tuple[str, ...] | None
    graded: NDArray[np.float64] | None
    numbers: NDArray[np.int64]
    notes: tuple[str, ...] = field(repr=False)
    table: Table = field(repr=False)
    columns: Columns = field(repr=False)
    reading: Reading = field(repr=False)
    label_reading: LabelReading = field(repr=False)
    encoder: ColumnEncoder = field(repr=False)

    @property
    def label_names(self) -> list[str]:
        return self.label_reading.names

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X."""
        return [str(name) for name in self.encoder.get_feature_names_out()]

    @property
    def row_names(self) -> list[str]:
        """What each row is called: by the columns of ids, the item, or its number in the file."""
        stored = self.table.stored
        keys = columns.matching(self.reading.ids, stored.columns) or [n for n in (self.reading.item,) if n]
        if not keys:
            return [str(number) for number in self.numbers]
        return [" ".join("" if v is None else str(v) for v in row) for row in stored.select(keys).iter_rows()]

    @cached_property
    def marks(self) -> NDArray[np.float64]:
        """Labels (n, q) per item: what any of its annotators marked."""
        Y = self.Y.to_numpy().astype(np.float64)
        if self.groups is None:
            return Y
        marks = np.zeros((len(self.numbers), Y.shape[1]))
        np.maximum.at(marks, self.groups, Y)
        return marks

    @cached_property
    def item_features(self) -> NDArray[np.float64]:
        """Features (n, d) per item."""
        return self.X if self.groups is None else self.X[np.unique(self.groups, return_index=True)[1]]

    def subset(self, keep: NDArray[np.bool_]) -> Problem:
        """The same for some items, given by a mask (n,)."""
        rows = keep if self.groups is None else keep[self.groups]
        return replace(
            self,
            X=self.X[rows],
            Y=self.Y.filter(rows),
            groups=None if self.groups is None else (np.cumsum(keep) - 1)[self.groups[rows]],
            annotators=None if self.annotators is None else tuple(np.array(self.annotators)[rows].tolist()),
            graded=None if self.graded is None else self.graded[keep],
            numbers=self.numbers[keep],
            table=self.table.filter(keep),
        )


def read_table(
    source: str | os.PathLike[str], *, progress: Progress | None = None, **reading: Unpack[ReadingOptions]
) -> Problem:
    """Read the problem that a table in a file poses: features, labels, names, and what was read in words.

    Parameters
    ----------
    source : path
        CSV, TSV, ARFF (MULAN, MEKA), JSON lines, libsvm (all also .gz), Parquet, Arrow, Excel; one instance per row.
    progress : Progress or None
        Is told what is done; None is silent.
    **reading
        ``labels``, ``features``, ``ids``, ``categorical``, ``text``: columns. Names, lists with commas, patterns such
        as ``"genre_*"``, ranges such as ``"last:6"`` or ``"f10:f16"``; `labels` may also be ``"@file"`` with one name
        per line, or the XML file of MULAN, and nothing where the format names them. Without `features`, every other
        numeric column whose name does not say that it is an id, and categories that the format declares. `ids` are
        numeric columns to carry along; `categorical` are features whose entries are names of classes, `text` columns of
        free text to learn from. A single label column may hold sets such as ``a|b|c``, or lists.

        ``separator``, ``decimal``: of a text file; None finds them out. ``label_separator``: between the labels of a
        column of sets; None finds it out.

        ``item``: the column that names the item, for a table with one row per (item, label). ``worker``: beside it, the
        column that names the annotator, for a table with one row per (item, annotator, label). The annotators of an
        item measure one distribution (`Inversion.fit_enhance(groups=...)`); the answer has one row per item.

        ``missing``: what to do with missing features. "impute" fills them with the median beside a column that says
        where, "drop" leaves the row out, "error" refuses. ``unlabelled``: what to do with rows without any label.
        "method" leaves it to the method, "predict" fits on the others and predicts these, "drop" leaves them out.

        ``graded``: a file with the degrees of some of the rows, as a person graded them (see `suggest_file`).

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,calm,happy\\n60,1,0\\n180,0,1\\n90,1,1\\n")
    >>> problem = read_table(path, labels="calm,happy")
    >>> problem.X.shape, problem.label_names, problem.feature_names
    ((3, 1), ['calm', 'happy'], ['tempo'])
    >>> problem.notes[0]
    '3 rows; labels: calm, happy; features: tempo'
    """
    return read_problem(Path(source), Reading(**reading), progress or Progress())


def read_problem(source: Path, reading: Reading, progress: Progress) -> Problem:
    """The problem that a file poses; the file must stay as it is meanwhile."""
    check_input(source)
    with progress.working(f"reading {source}"):
        return pose(read_file(source, reading, progress), reading, progress)


def check_input(source: Path) -> None:
    """Refuse a file that is not there, or whose name says no format that can be read."""
    check_source(source)
    if not formats.suffix_of(source):
        raise ArgumentError(f"{source} must end in one of {', '.join(formats.READABLE)}.", "source")


def read_file(source: Path, reading: Reading, progress: Progress) -> Table:
    """The table in a file, which must not change while it is read."""
    before = formats.state_of(source)
    table = formats.read(source, progress.note, separator=reading.separator, decimal=reading.decimal)
    formats.refuse_changed(source, before)
    return table


def pose(table: Table, reading: Reading, progress: Progress) -> Problem:
    """The problem that a table poses. What is read, and what is left out, is said."""
    notes: list[str] = []

    def note(line: str) -> None:
        notes.append(line)
        progress.note(f"  {line}")

    table, answers = _per_item(table, reading)
    chosen, read = understand(table, reading, note)
    Y, groups, annotators = read.read(table), None, None
    if answers is not None:
        Y, groups, annotators = _answers(table, answers, str(reading.item), read)
    if blank := int(Y.null_count().sum_horizontal().item()):
        note(f"{blank:,} entries of label columns are blank: taken as unasked, neither yes nor no")
    numbers, encoder = np.arange(table.n_rows), encoder_for(reading, chosen)
    nothing = np.empty((Y.height, 0))
    problem = Problem(nothing, Y, groups, annotators, None, numbers, (), table, chosen, reading, read, encoder)
    if reading.graded is not None:
        graded = grading.read_graded(Path(reading.graded), table, read.names, reading.ids)
        note(f"{int((~np.isnan(graded[:, 0])).sum()):,} graded rows from {reading.graded}")
        problem = replace(problem, graded=graded)
    note(f"{table.n_rows:,} rows; labels: {columns.listed(read.names)}; features: "
         f"{columns.listed(chosen.features) or 'none'}")  # fmt: skip
    if chosen.carried:
        note(f"carried along: {columns.listed(chosen.carried)}")
    problem = _without_gaps(problem, note)
    features = features_of(problem.table, chosen)
    encoder.fit(features)
    for line in described(encoder, features, ask=not table.label_names):
        note(line)
    X = encode(encoder, features, problem.table.n_rows)
    return replace(problem, X=X if problem.groups is None else X[problem.groups], notes=tuple(notes))


def understand(source: Table | Pieces, reading: Reading, note: Callable[[str], None]) -> tuple[Columns, LabelReading]:
    """Which column is what, and what the words of the labels mean; the same for a table and for a file in pieces."""
    chosen = choose_columns(source, reading)
    read = labels.decide(source, chosen.labels, reading.label_separator)
    if read.is_set:
        shown = f"sets separated by {read.delimiter!r}" if read.delimiter else "one set of labels per row"
        note(f"{read.set_column!r} holds {shown}: {len(read.names)} labels")
    elif not source.label_names and not reading.features:
        is_cheap = source.is_text or isinstance(source, Table)  # a file in pieces would be read through
        _ask_about_labels(chosen, source.words(chosen.features) if is_cheap else {}, note)
    for name in chosen.features:
        kind = source.kinds.get(name)
        if kind is not None and kind.stray:
            note(f"{name!r}: {', '.join(kind.stray)} read as missing")
        if kind is not None and kind.percent:
            note(f"{name!r}: 12% read as 0.12")
    return chosen, read


def choose_columns(source: Table | Pieces, reading: Reading) -> Columns:
    """The part of each column by what was asked for, what the format says, and what the columns hold."""
    schema = source.schema
    typed = expand(reading.labels) or [Exact(name) for name in source.label_names]
    if not typed:
        raise ArgumentError(f"name the label columns; the table has {columns.shown(list(schema))}.", "labels")
    numeric = numeric_columns(schema)
    dates = [name for name, kind in schema.items() if kind in (pl.Date, pl.Datetime)] if reading.features else []
    # A file may declare 0 and 1 as the two classes of an attribute: a number as good as any.
    numbers = {*numeric, *dates}
    chosen = columns.choose(
        list(schema),
        numbers,
        labels=typed,
        features=reading.features,
        ids=reading.ids,
        categorical=reading.categorical,
        text=reading.text,
        declared=[name for name in source.categories if name not in numbers],
    )
    if not reading.features:
        _refuse_mostly_numbers(chosen.carried, source.kinds, reading.ids)
    return chosen


def _refuse_mostly_numbers(names: Sequence[str], kinds: Mapping[str, ColumnKind], ids: Sequence[str]) -> None:
    for name in names:
        kind = kinds.get(name)
        if kind is None or not kind.is_mostly_numbers or columns.ID_NAME.fullmatch(name):
            continue
        if not columns.matching(ids, [name]):
            raise DataError(
                f"the column {name!r} holds {kind.n_numbers:,} numbers and {kind.n_entries - kind.n_numbers:,} entries "
                f"that are not, such as {kind.odd[:40]!r}. Correct these, carry the column along (--id), or take it as "
                "categories (--categorical)."
            )


def _ask_about_labels(chosen: Columns, words: Mapping[str, Words], note: Callable[[str], None]) -> None:
    """A feature that holds yes and no like the labels may be a label that was forgotten."""
    as_written = set(chosen.as_written)
    like = [c for c in chosen.features if c in words and c not in as_written and labels.is_logical(words[c])]
    if like:
        note(f"question: {columns.listed(like)} hold yes and no like the labels, but are used as features: are they "
             "labels?")  # fmt: skip


def _per_item(table: Table, reading: Reading) -> tuple[Table, pl.DataFrame | None]:
    """A table with one row per item, and the answers of its annotators where there are several."""
    if not reading.item:
        if reading.worker:
            raise ArgumentError("a column of annotators needs a column of items beside it (--item).", "worker")
        return table, None
    named = expand(reading.labels)
    if len(named) != 1:
        raise ArgumentError("with one row per item and label, name the one column of labels.", "labels")
    stored, answers = table.stored, None
    if reading.worker:
        answers = labels.one_row_per_answer(stored, reading.item, reading.worker, named[0])
        stored = stored.drop(reading.worker)
    stored = labels.one_row_per_item(stored, reading.item, named[0])
    return Table(stored, table.is_text, dialect=table.dialect), answers


def _answers(
    table: Table, answers: pl.DataFrame, item: str, read: LabelReading
) -> tuple[pl.DataFrame, NDArray[np.int64], tuple[str, ...]]:
    """Labels (r, q) of every item and annotator, the number (r,) of the item in the table, and the annotator."""
    place = {name: i for i, name in enumerate(table.stored[item].to_list())}
    number = np.array([place[name] for name in answers[item].to_list()])
    order = np.argsort(number, kind="stable")
    answers = answers[order.tolist()]
    _, worker, label = answers.columns
    annotators = answers[worker].cast(pl.String).fill_null("").to_list()
    return labels.as_indicators(answers[label], read.delimiter, read.names), number[order], tuple(annotators)


def _without_gaps(problem: Problem, note: Callable[[str], None]) -> Problem:
    """Without rows whose features or labels are missing, where that is asked for."""
    reading = problem.reading
    if reading.missing == "drop" and problem.columns.features:
        features = features_of(problem.table, problem.columns)
        there = ~features.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        if not there.any():
            raise DataError("every row has a missing feature: nothing would be left.")
        if not there.all():
            note(f"{int((~there).sum()):,} rows with missing features are left out")
            problem = problem.subset(there)
    if reading.unlabelled == "drop":
        labelled = ~np.asarray(silent_rows(problem.marks))
        refuse_few_labelled(labelled)
        if not labelled.all():
            note(f"{int((~labelled).sum()):,} rows without a label are left out")
            problem = problem.subset(labelled)
    return problem


def refuse_few_labelled(labelled: NDArray[np.bool_]) -> None:
    """Refuse a table of which fewer than two rows have a label."""
    if not labelled.all() and labelled.sum() < 2:
        raise DataError(f"only {int(labelled.sum())} of {len(labelled)} rows have a label: nothing can be learnt.")


def features_of(table: Table, chosen: Columns) -> pl.DataFrame:
    """The features of a table or piece: numbers, and the text of categories."""
    as_written = set(chosen.as_written)
    return pl.DataFrame([(table.stored if name in as_written else table.values)[name] for name in chosen.features])


def encode(encoder: ColumnEncoder, features: pl.DataFrame, n_rows: int) -> NDArray[np.float64]:
    """Features (n, d) as numbers; a column of zeros, which says nothing, where there are none."""
    return encoder.transform(features) if features.width else np.zeros((n_rows, 1))


def encoder_for(reading: Reading, chosen: Columns) -> ColumnEncoder:
    """The encoder that these columns ask for, not fitted."""
    return ColumnEncoder(
        categorical=tuple(chosen.categories),
        text=tuple(chosen.texts),
        missing="error" if reading.missing == "error" else "impute",
    )

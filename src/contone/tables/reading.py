"""From a file to the problem that it poses: which column is what, labels as numbers, features as a matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError, LabelError
from contone.measurements import Measurement, parse_rule
from contone.measurements.proposal import Proposal, propose_reading
from contone.runtime.progress import Progress
from contone.tables import columns, embeddings, exports, formats, grading, labels
from contone.tables.answers import Answers, gather
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder, described
from contone.tables.labels import Exact, LabelReading, Words, expand
from contone.tables.pieces import Pieces
from contone.tables.settings import COLUMN_LISTS, Reading, ReadingOptions
from contone.tables.table import Table, numeric_columns
from contone.tables.targets import check_source
from contone.tables.text import ColumnKind
from contone.typing import Matrix
from contone.validation.training import silent_rows


@dataclass(frozen=True)
class Problem:
    """What a table asks: features, labels, and how its rows and columns are called.

    ``method.fit_enhance(problem.X, problem.Y)`` is an answer, ``write_answer(problem, D, "soft.csv")`` writes it beside
    the table. Where several annotators answered about one item, X and Y have one row per answer, and `groups` says
    which item it is about; everything else has one row per item.

    Attributes
    ----------
    item_features : (n, d)
        Features of the items as numbers; a column of zeros where the table has none.
    Y : DataFrame (r, q)
        Labels as numbers, one column per label; null where nobody was asked.
    groups : (r,) or None
        Number of the item that each row is about, rising; None where each row is an item of its own.
    annotators : tuple of str or None
        Who gave each row of Y; None where the table does not say.
    rule : str or None
        How the labels are read, as `degradation` takes it, where the table says so; None leaves it to the method.
    graded : (n, q) or None
        Degrees of the rows that a person graded, NaN in the others.
    numbers : (n,)
        Number of each row in the file, from 0.
    beside : DataFrame (n, any)
        Columns that come out beside the degrees: the number of answers, the reference answer.
    notes : tuple of str
        What was read, in words.
    table : Table
        The table itself, one row per item.
    columns : Columns
        The part that each of its columns plays.
    reading : Reading
        How it was read.
    label_reading : LabelReading
        What the words of its labels mean.
    encoder : ColumnEncoder
        How columns become features.
    answers : Answers or None
        The answers of people as they were read.
    sample_of : int or None
        Rows of the file that these are a sample of; None where they are all that was read.
    """

    item_features: Matrix
    Y: pl.DataFrame
    numbers: NDArray[np.int64]
    table: Table = field(repr=False)
    columns: Columns = field(repr=False)
    reading: Reading = field(repr=False)
    label_reading: LabelReading = field(repr=False)
    encoder: ColumnEncoder = field(repr=False)
    groups: NDArray[np.int64] | None = None
    annotators: tuple[str, ...] | None = None
    rule: str | None = None
    graded: Matrix | None = None
    beside: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    answers: Answers | None = field(default=None, repr=False)
    sample_of: int | None = None

    @cached_property
    def X(self) -> Matrix:
        """Features (r, d), one row per row of Y."""
        return self.item_features if self.groups is None else self.item_features[self.groups]

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
        item = self.reading.item if self.answers is None else self.answers.key
        keys = columns.matching(self.reading.ids, stored.columns) or [n for n in (item,) if n]
        if not keys:
            return [str(number) for number in self.numbers]
        return [" ".join("" if v is None else str(v) for v in row) for row in stored.select(keys).iter_rows()]

    @property
    def item_names(self) -> list[Hashable]:
        """The item (r,) of each row of Y by its name, or by its number where names are not unique."""
        names: list[Hashable] = list(self.row_names)
        names = names if len(set(names)) == len(names) else list(range(len(names)))
        return names if self.groups is None else [names[i] for i in self.groups]

    @cached_property
    def marks(self) -> Matrix:
        """Labels (n, q) per item: what any of its annotators marked."""
        Y = self.Y.to_numpy().astype(np.float64)
        if self.groups is None:
            return Y
        marks = np.full((len(self.numbers), Y.shape[1]), np.nan)
        np.fmax.at(marks, self.groups, Y)
        return marks

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Items (n,) with a label, or with an answer: people who mark nothing have answered, and so have zeros."""
        if self.groups is None:
            rule = None if self.rule is None else parse_rule(self.rule)
            return ~np.asarray((rule.silent if isinstance(rule, Measurement) else silent_rows)(self.marks))
        return np.isin(np.arange(len(self.numbers)), self.groups)

    def of_one_source(self, what: str) -> Problem:
        """The problem itself, if each row is an item; answers of several people are refused."""
        if self.groups is not None:
            raise ArgumentError(
                f"{what} is for tables with one row per item, and persons cannot be rehearsed: count the votes of an "
                "item in one row, or use contone enhance --report.",
                "source",
            )
        return self

    def subset(self, keep: NDArray[np.bool_]) -> Problem:
        """The same for some items, given by a mask (n,)."""
        rows = keep if self.groups is None else keep[self.groups]
        return replace(
            self,
            item_features=self.item_features[keep],
            Y=self.Y.filter(rows),
            groups=None if self.groups is None else (np.cumsum(keep) - 1)[self.groups[rows]],
            annotators=None if self.annotators is None else tuple(np.array(self.annotators)[rows].tolist()),
            graded=None if self.graded is None else self.graded[keep],
            numbers=self.numbers[keep],
            table=self.table.filter(keep),
            beside=self.beside.filter(keep) if self.beside.width else self.beside,
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
        Receives what is done; None is silent.
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
    with progress.working(f"reading {source}"):
        return pose(read_file(source, reading, progress), reading, progress)


def check_input(source: Path) -> None:
    """Refuse a file that is not there, or whose name says no format that can be read."""
    check_source(source)
    if not formats.suffix_of(source):
        raise ArgumentError(f"{source} must end in one of {', '.join(formats.READABLE)}.", "source")


def read_file(source: Path, reading: Reading, progress: Progress) -> Table | Answers:
    """The table in a file, or the answers where it is the export of a tool; it must not change while it is read."""
    check_input(source)
    before = formats.state_of(source)
    found: Table | Answers | None = None
    if formats.suffix_of(source) in formats.JSON and not reading.labels:
        with formats.readable(source):
            found = exports.read_export(source, reading.question)
    if found is None:
        found = formats.read(source, progress.note, separator=reading.separator, decimal=reading.decimal)
        found = recognised(found, reading)
    formats.refuse_changed(source, before)
    return found


def recognised(table: Table, reading: Reading) -> Table | Answers:
    """The answers in a table that is the export of a tool, unless its columns were named; else the table."""
    is_asked = not reading.labels and not reading.worker
    answers = exports.answers_in(table.stored, reading.question) if is_asked else None
    return table if answers is None else replace(answers, source=table)


def pose(source: Table | Answers, reading: Reading, progress: Progress) -> Problem:
    """The problem that a table poses, or the answers of people. A note says what is read, and what is left out."""
    notes: list[str] = []

    def note(line: str) -> None:
        notes.append(line)
        progress.note(f"  {line}")

    given = gather(source, reading, note) if isinstance(source, Table) else source
    if isinstance(given, Table):
        table = embeddings.join(given, reading, None)
        problem = problem_of(table, *understand(table, reading, note), reading)
    else:
        problem = _of_people(given.by_item(), reading, note)
    table, read, chosen = problem.table, problem.label_reading, problem.columns
    if blank := int(problem.Y.null_count().sum_horizontal().item()):
        note(f"{blank:,} entries of label columns are blank: taken as unasked, neither yes nor no")
    problem = replace(problem, rule=rule_of(problem, note))
    if reading.graded is not None:
        graded = grading.read_graded(Path(reading.graded), table, read.names, reading.ids)
        note(f"{int((~np.isnan(graded[:, 0])).sum()):,} graded rows from {reading.graded}")
        problem = replace(problem, graded=graded)
    note(f"{table.n_rows:,} rows; labels: {columns.listed(read.names)}; features: "
         f"{columns.listed(chosen.features) or 'none'}")  # fmt: skip
    if chosen.carried:
        note(f"carried along: {columns.listed(chosen.carried)}")
    return replace(encoded(_without_gaps(problem, note), note), notes=tuple(notes))


def encoded(problem: Problem, note: Callable[[str], None]) -> Problem:
    """The problem with its features as numbers; notes say what became of its columns."""
    features = features_of(problem.table, problem.columns)
    problem.encoder.fit(features)
    for line in described(problem.encoder, features, ask=not problem.table.label_names):
        note(line)
    return replace(problem, item_features=encode(problem.encoder, features, problem.table.n_rows))


def _of_people(answers: Answers, reading: Reading, note: Callable[[str], None]) -> Problem:
    """A row per answer; features are still to be encoded."""
    answers.refuse_empty()
    note(answers.in_words())
    table = embeddings.join(answers.table, reading, answers.key or None)
    ids = (*reading.ids, *([Exact(answers.key)] if answers.key else []))
    chosen = choose_columns(table, replace(reading, labels=(), ids=ids), labels_elsewhere=True)
    return answered(problem_of(table, chosen, LabelReading(answers.labels), reading), answers)


def problem_of(
    table: Table, chosen: Columns, read: LabelReading, reading: Reading, encoder: ColumnEncoder | None = None
) -> Problem:
    """What a table asks whose columns are understood; without a fitted encoder, features are still to be encoded."""
    X = np.empty((table.n_rows, 0))
    if encoder is not None:
        X = encode(encoder, features_of(table, chosen), table.n_rows)
    missing = "error" if reading.missing == "error" else "impute"
    fresh = ColumnEncoder(categorical=tuple(chosen.categories), text=tuple(chosen.texts), missing=missing)
    return Problem(X, read.read(table), np.arange(table.n_rows), table, chosen, reading, read, encoder or fresh)


def answered(problem: Problem, answers: Answers) -> Problem:
    """A problem about items with what people said of them, those of an item one after the other."""
    beside = [pl.Series("n_answers", answers.n_answers)]
    if answers.reference:
        right = [answers.reference.get(i) for i in range(problem.table.n_rows)]
        beside.append(pl.Series("reference", [None if r is None else "|".join(r) for r in right], dtype=pl.String))
    return replace(
        problem,
        Y=pl.DataFrame(answers.Y, schema=answers.labels).cast(pl.Float64).fill_nan(None),
        groups=answers.item,
        annotators=answers.annotators,
        beside=pl.DataFrame(beside),
        answers=answers,
    )


def rule_of(problem: Problem, note: Callable[[str], None]) -> str | None:
    """The rule that was asked for; else that of the tool's question, or the one that answers and numbers ask for."""
    if problem.reading.rule is not None:
        return problem.reading.rule
    Y, kind = problem.Y.to_numpy().astype(np.float64), problem.answers and problem.answers.question.kind
    if problem.groups is None and not are_counts(Y) and not are_classes(Y):
        return None  # marks or confidences of one source, which the method knows how to read
    if problem.groups is None and not are_counts(Y):
        proposal = ONE_CLASS
    elif kind in ("levels", "ranks"):
        proposal = Proposal("levels", f"the question asks for {kind}: read as levels")
    else:
        proposal = propose_reading(Y, problem.groups)
        _refuse_negative_counts(Y, problem)
        if proposal.rule == "main" and problem.groups is not None:  # one answer per item, by different people
            proposal = Proposal("marks", "each item has an answer of one person: read as marks")
        elif proposal.rule == "order" and problem.groups is not None:
            proposal = Proposal("levels", "each person puts the labels in an order: read as levels")
    note(f"{proposal.sentence}; --rule says otherwise")
    return proposal.rule


ONE_CLASS = Proposal("votes", "each row has exactly one label: read as one vote per row")


def are_counts(Y: Matrix) -> bool:
    """Whether labels are whole numbers, some of them above 1."""
    return bool(np.nanmax(Y, initial=0.0) > 1.0) and np.array_equal(Y, Y.round(), equal_nan=True)


def are_classes(Y: Matrix) -> bool:
    """Whether every row that has a label has exactly one of several: one vote per row."""
    Y = Y[np.nansum(Y, axis=1) > 0]
    return len(Y) > 0 and Y.shape[1] > 1 and bool(np.isin(Y, (0.0, 1.0)).all() and (Y.sum(axis=1) == 1.0).all())


def _refuse_negative_counts(Y: Matrix, problem: Problem) -> None:
    """A number below zero among counts is a mistake, and does not make levels of them."""
    below = (Y < 0).any(axis=1)
    if 0 < below.sum() < 0.5 * len(Y) and propose_reading(Y[~below], None).rule == "votes":
        row = int(np.argmax(below))
        name, value = problem.label_names[int(np.argmax(Y[row] < 0))], float(np.nanmin(Y[row]))
        raise LabelError(
            f"the other rows count people, and counts cannot be negative: row {row} has {value:g} for {name!r}. "
            "Correct it, or say how the labels were made (--rule levels for levels below zero)."
        )


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


def choose_columns(source: Table | Pieces, reading: Reading, *, labels_elsewhere: bool = False) -> Columns:
    """The part of each column by what was asked for, what the format says, and what the columns hold."""
    schema = source.schema
    typed = expand(reading.labels) or [Exact(name) for name in source.label_names]
    if not typed and not labels_elsewhere:
        raise ArgumentError(f"name the label columns; the table has {columns.shown(list(schema))}.", "labels")
    numeric = numeric_columns(schema)
    dates = [name for name, kind in schema.items() if kind in (pl.Date, pl.Datetime)] if reading.features else []
    # A file may declare 0 and 1 as the two classes of an attribute: a number as good as any.
    numbers = {*numeric, *dates}
    declared = [name for name in source.categories if name not in numbers]
    asked = {name: getattr(reading, name) for name in COLUMN_LISTS} | {"labels": typed}
    chosen = columns.choose(list(schema), numbers, declared=declared, **asked)
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
        labelled = problem.labelled
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


def encode(encoder: ColumnEncoder, features: pl.DataFrame, n_rows: int) -> Matrix:
    """Features (n, d) as numbers; a column of zeros, which says nothing, where there are none."""
    return encoder.transform(features) if features.width else np.zeros((n_rows, 1))

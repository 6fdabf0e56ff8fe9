"""Where the data of an experiment come from: a name, a file with arrays, a table with degree columns, or memory.

A `Source` is plain values, so that a worker in another process, or on another machine with the same files, finds the
same data. Two sources with the same content are one data set, whatever they are called.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contone import datasets
from contone.datasets import Dataset
from contone.datasets.dataset import FORMATS, checked
from contone.exceptions import ArgumentError, DataError, InputError
from contone.experiments.answers import Answers, read_answers
from contone.experiments.describe import digest
from contone.runtime.files import expand_user, replacing
from contone.typing import Record

DEGREE_SUFFIX = "_degree"
"""Columns that end so are degrees, where none are named: so `contone enhance` writes them."""

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq", ".arrow", ".feather", ".jsonl", ".ndjson", ".xlsx")


@dataclass(frozen=True)
class Source:
    """One data set.

    Attributes
    ----------
    name : str
        What it is called in tables; without a file, the name that `contone.datasets.load` knows it by.
    file : str
        A ``.mat``, ``.npz``, CSV or Parquet file; empty for a name.
    degrees, features : tuple of str
        Columns of a table, as names or patterns: the true degrees, and the features (all other numbers where empty).
    max_rows : int
        A set with more rows is a random sample of this many, the same in every run; 0 for all rows.
    of_people : bool
        Whether the file holds answers of people in place of a truth.
    """

    name: str
    file: str = ""
    degrees: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    max_rows: int = 0
    of_people: bool = False

    def plain(self) -> Record:
        """As plain values, which `load` takes."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}


Data = str | os.PathLike[str] | Dataset | Source
"""What a user may name a data set by."""


class Loaded(NamedTuple):
    """X (n, d), D (n, q), the label names, the hash of their content, and what tables call the data set.

    Of answers of people, D is how often each label was chosen.
    """

    X: np.ndarray
    D: np.ndarray
    label_names: tuple[str, ...]
    content: str
    title: str
    answers: Answers | None = None


def load(name: str, source: Mapping[str, Any] | None = None) -> Loaded:
    """The data of a cell, kept in memory for the next one; `source` says where they are, where that is not a name."""
    fields: Record = {key: tuple(value) if isinstance(value, list) else value for key, value in (source or {}).items()}
    return _load(Source(**{"name": name, **fields}))


@lru_cache(maxsize=4)
def _load(source: Source) -> Loaded:
    if source.of_people:
        whole = read_answers(Path(source.file))
        used = whole.sample(source.max_rows)
        content = digest([content_hash(used.X, used.item, used.worker, used.label), *used.labels])
        title = source.name if used is whole else f"{source.name} ({len(used.X):,} items)"
        return Loaded(used.X, used.counts(), used.labels, content, title, used)
    data = read(source)
    return Loaded(data.X, data.D, data.label_names, content_hash(data.X, data.D), data.name)


def content_hash(*arrays: np.ndarray) -> str:
    """A hash of the shapes and values of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:24]


def as_source(
    thing: Data, *, degrees: Sequence[str] = (), features: Sequence[str] = (), folder: Path | None = None
) -> Source:
    """The source of what a user named: a data set's name, the path of a file, or a `Dataset`.

    A `Dataset` in memory is written to `folder`, so that workers and later runs find it.
    """
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, Dataset):
        if folder is None:
            raise InputError(f"{thing!r} is in memory only: name a folder to keep it in.")
        path = folder / f"{content_hash(thing.X, thing.D)}.npz"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, open(temporary, "wb") as file:
                np.savez_compressed(file, X=thing.X, D=thing.D, label_names=np.array(thing.label_names))
        return Source(thing.name or path.stem, str(path.resolve()))
    text = os.fspath(thing)
    suffix = max((s for s in (*TABLES, *FORMATS) if text.lower().endswith(s)), key=len, default="")
    if not suffix and os.sep not in text:
        return Source(datasets.canonical(text))
    path = expand_user(text)
    if not path.is_file():
        raise DataError(f"{text}: there is no such file.")
    columns = (tuple(degrees), tuple(features)) if suffix in TABLES else ()
    return Source(path.name[: len(path.name) - len(suffix)], str(path.resolve()), *columns)


def read(source: Source) -> Dataset:
    """The data set of a source, or a sample of its rows, with their number in its name; DataError where it holds none.

    A sample is the same in every run and keeps the order of the rows.
    """
    if not source.file:
        data = datasets.load(source.name)
    elif source.file.lower().endswith(TABLES):
        data = read_table(source.file, source.degrees, source.features, name=source.name)
    else:
        data = datasets.read(source.file, name=source.name)
    if not 0 < source.max_rows < len(data.X):
        return data
    rows = np.sort(np.random.default_rng(0).choice(len(data.X), source.max_rows, replace=False))
    return replace(data, X=data.X[rows], D=data.D[rows], name=f"{data.name} ({source.max_rows:,} rows)")


def read_table(
    file: str | os.PathLike[str], degrees: Sequence[str] = (), features: Sequence[str] = (), *, name: str = ""
) -> Dataset:
    """A data set out of a CSV or Parquet table with feature and degree columns.

    Parameters
    ----------
    file : path
        The table. Rows of the degree columns must sum to 1.
    degrees : names or patterns
        The columns with the true degrees; where empty, those that end in ``_degree``.
    features : names or patterns
        The features; where empty, every other numeric column that does not look like an id. A column ``a`` beside
        ``a_degree`` is a label that was made from the truth, and never a feature by itself.
    name : str
        What the data set is called; by default as the file.
    """
    from contone.tables import columns, formats
    from contone.tables.table import refuse_missing

    path = Path(file)
    table = formats.read(path)
    names = table.stored.columns
    typed = list(degrees) or [column for column in names if column.endswith(DEGREE_SUFFIX)]
    if not typed:
        raise DataError(
            f"{path}: no column ends in {DEGREE_SUFFIX!r}; name the columns that hold the true degrees (--degrees). "
            f"The table has {columns.listed(names)}."
        )
    try:
        chosen = columns.choose(names, table.numeric, labels=typed, features=features)
    except ArgumentError as error:
        raise ArgumentError(str(error), "degrees" if error.argument == "labels" else error.argument) from error
    labels = {degree.removesuffix(DEGREE_SUFFIX) for degree in chosen.labels if degree.endswith(DEGREE_SUFFIX)}
    kept = [f for f in chosen.features if features or f not in labels]
    odd = [column for column in chosen.labels if column not in set(table.numeric)]
    if odd or not kept:
        what = f"the degrees {columns.listed(odd)} are not numbers" if odd else "no numeric column is left as a feature"
        raise DataError(f"{path}: {what}.")
    X, D = (table.values.select(chosen_columns) for chosen_columns in (kept, chosen.labels))
    refuse_missing(X)
    refuse_missing(D)
    features_of_rows, distributions, notes = checked(X.to_numpy(), D.to_numpy(), path)
    titles = tuple(degree.removesuffix(DEGREE_SUFFIX) for degree in chosen.labels)
    about: Record = {"name": name or path.stem, "about": "a file of your own", "source": str(path), "notes": notes}
    return Dataset(features_of_rows, distributions, tuple(kept), titles, **about)

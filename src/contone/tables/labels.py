"""Labels as people write them, to 0 and 1.

One column per label: 0/1, true/false, yes/no, +1/-1, or a mark and blanks. One column for all: sets such as ``a|b|c``,
or lists. What a column's words mean is decided by all of them together, so that a piece of a file is read like the
whole: a blank is a *no* only where no word of any label column says no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from contone.exceptions import ArgumentError, DataError, LabelError
from contone.runtime.files import check_regular
from contone.tables.arff import xml_labels

YES = frozenset({"1", "1.0", "+1", "true", "t", "yes", "y", "x", "on", "+", "✓", "✔", "ja", "oui", "si", "sí"})
NO = frozenset({"0", "0.0", "-0.0", "false", "f", "no", "n", "off", "-", "nein", "non"})
MINUS = frozenset({"-1", "-1.0"})
MOST_WORDS = 8
"""Different entries of a column of labels that are looked at; more of them are confidences, or no labels."""
DELIMITERS = ("|", ";", ",", "/")

Words = tuple[str, ...] | None
"""The different entries of a column in lower case, "" for a blank one; None for more than `MOST_WORDS`."""


def words_of(column: pl.Series) -> Words:
    """The different entries of a column.

    Examples
    --------
    >>> words_of(pl.Series(["Yes", "no", None, "yes "]))
    ('', 'no', 'yes')
    """
    if column.dtype.is_nested():
        return None
    found = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("").unique().to_list()
    return tuple(sorted(found)) if len(found) <= MOST_WORDS else None


def joined_words(a: Words, b: Words) -> Words:
    """Those of two pieces together."""
    both = None if a is None or b is None else tuple(sorted({*a, *b}))
    return None if both is None or len(both) > MOST_WORDS else both


def is_logical(words: Words) -> bool:
    """Whether a column holds nothing but a yes and a no, in whatever words, and both of them."""
    said = set(words or ()) - {""}
    return bool(said & YES) and (said <= YES | NO or said <= YES | MINUS) and len(said) > 1


def meanings(words: Mapping[str, Words], numeric: Iterable[str]) -> dict[str, dict[str, float | None] | None]:
    """What each word of each label column means; None for a column of numbers that is taken as it is.

    Parameters
    ----------
    words : mapping
        The different entries of every label column.
    numeric : iterable of str
        Columns that hold numbers: those that are neither yes nor no may be confidences.
    """
    numbers = set(numeric)
    # A table that is marked with an x, or not at all: only there the blank is the no.
    marked = all(w is not None and set(w) <= YES | {""} for w in words.values())
    found: dict[str, dict[str, float | None] | None] = {}
    for name, entry in words.items():
        said = set(entry or ()) - {""}
        no = NO | MINUS if said <= YES | MINUS and said & MINUS else NO
        if entry is not None and said <= YES | no:
            blank = 0.0 if marked else None
            found[name] = {word: blank if word == "" else float(word in YES) for word in entry}
        elif name in numbers:
            found[name] = None
        else:
            odd = sorted(said - YES - NO)[:3] if entry is not None else ["many different texts"]
            raise LabelError(
                f"labels must hold 0 and 1 (or true and false, yes and no, a mark and blanks) only; these columns do "
                f"not: {name!r} ({', '.join(map(repr, odd))}). A column of sets such as a|b|c must be the only label "
                "column."
            )
    return found


def as_numbers(column: pl.Series, meaning: Mapping[str, float | None] | None) -> pl.Series:
    """A column of labels as numbers."""
    if meaning is None:
        return column.cast(pl.Float64)
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    return text.replace_strict(list(meaning), list(meaning.values()), default=None, return_dtype=pl.Float64)


def are_sets(column: pl.Series, words: Words, separator: str | None) -> bool:
    """Whether the only label column holds one set of labels per row."""
    if isinstance(column.dtype, (pl.List, pl.Array)):
        return True
    if column.dtype != pl.String:
        return False
    return separator is not None or words is None or not set(words) - {""} <= YES | NO | MINUS


def split_sets(
    column: pl.Series, separator: str | None = None, names: Sequence[str] | None = None
) -> tuple[str, pl.DataFrame]:
    """One column per label from a column of sets; the delimiter found, and 0/1 columns in the order of the alphabet.

    Where the `names` are known, as they are for a piece of a file, these are the columns.

    Examples
    --------
    >>> split_sets(pl.Series("mood", ["calm|sad", "happy", ""]))[1].rows()
    [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)]
    """
    delimiter = next(iter(delimiters_in(column)), "") if separator is None else separator
    cleaned = _sets(column, delimiter)
    found = sorted(set().union(*cleaned)) if names is None else list(names)
    if not found:
        raise LabelError(f"the label column {column.name!r} names no label in any row.")
    return delimiter, pl.DataFrame({name: [float(name in entry) for entry in cleaned] for name in found})


def delimiters_in(column: pl.Series) -> list[str]:
    """Those of the usual delimiters that a column of text has somewhere, the most telling first."""
    if column.dtype != pl.String:
        return []
    return [d for d in DELIMITERS if column.str.contains(d, literal=True).any()]


def names_in(column: pl.Series, delimiter: str) -> set[str]:
    """The different labels of a column of sets."""
    different = column if column.dtype.is_nested() else column.unique()
    return set().union(*_sets(different, delimiter))


def _sets(column: pl.Series, delimiter: str) -> list[set[str]]:
    if isinstance(column.dtype, (pl.List, pl.Array)):
        entries = column.cast(pl.List(pl.String)).to_list()
    else:
        entries = [e.split(delimiter) if delimiter else [e] for e in column.fill_null("").to_list()]
    return [{label.strip() for label in entry or () if label and label.strip()} for entry in entries]


def grouped(frame: pl.DataFrame, item: str, label: str) -> pl.DataFrame:
    """One row per item from one row per (item, label); the label column becomes a list. Other columns must agree."""
    for name in (item, label):
        if name not in frame.columns:
            raise ArgumentError(f"there is no column {name!r}; the table has {', '.join(frame.columns[:12])}.", "item")
    others = [name for name in frame.columns if name not in (item, label)]
    counts = frame.group_by(item).agg(pl.col(name).n_unique() for name in others)
    for name in others:
        differing = counts.filter(pl.col(name) > 1)
        if differing.height:
            raise DataError(
                f"the rows of item {differing[item][0]!r} differ in the column {name!r}: with one row per item and "
                "label, everything but the label must be the same for one item."
            )
    return (
        frame.group_by(item, maintain_order=True)
        .agg(*(pl.col(name).first() for name in others), pl.col(label).drop_nulls().unique(maintain_order=True))
        .select(frame.columns)
    )


def of_annotators(frame: pl.DataFrame, item: str, worker: str, label: str) -> tuple[pl.Series, pl.Series]:
    """One set of labels per (item, annotator) from one row per (item, annotator, label): items and sets.

    An annotator whose label is blank has marked nothing.
    """
    if worker not in frame.columns:
        shown = ", ".join(frame.columns[:12])
        raise ArgumentError(f"there is no column {worker!r}; the table has {shown}.", "worker")
    found = frame.group_by(item, worker, maintain_order=True).agg(pl.col(label).drop_nulls())
    return found[item], found[label]


def expand(typed: Sequence[str]) -> list[str]:
    """Entries that name a file become the names in it: ``@names.txt`` (one per line), or a MULAN ``labels.xml``."""
    found: list[str] = []
    for entry in typed:
        if entry.lower().endswith((".xml", ".xml.gz")) and Path(entry).is_file():
            found += [exactly(name) for name in xml_labels(Path(entry))]
        elif entry.startswith("@"):
            try:
                check_regular(entry[1:])
                lines = Path(entry[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                reason = str(error).removesuffix(".")
                raise ArgumentError(f"cannot read the names in {entry[1:]}: {reason}.", "labels") from error
            found += [exactly(line.strip()) for line in lines if line.strip()]
        else:
            found.append(entry)
    return found


class Exact(str):
    """A name that is taken to the letter: no list, no pattern, no range."""


def exactly(name: str) -> str:
    return Exact(name)

"""Labels as people write them, to 0 and 1.

One column per label: 0/1, true/false, yes/no, +1/-1, or a mark and blanks. One column for all: sets such as ``a|b|c``,
or lists. What a column's words mean is decided by all of them together, so that a piece of a file is read like the
whole: a blank is a *no* only where no word of any label column says no.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import polars as pl
from numpy.typing import NDArray

from contone.exceptions import ArgumentError, DataError, LabelError, MemoryEstimateError
from contone.runtime.files import check_regular
from contone.runtime.machine import available_bytes, shown

if TYPE_CHECKING:
    from contone.tables.pieces import Pieces
    from contone.tables.table import Table

YES = frozenset({"1", "1.0", "+1", "true", "t", "yes", "y", "x", "on", "+", "✓", "✔", "ja", "oui", "si", "sí"})
NO = frozenset({"0", "0.0", "-0.0", "false", "f", "no", "n", "off", "-", "nein", "non"})
MINUS = frozenset({"-1", "-1.0"})
MOST_WORDS = 8
"""Different entries of a column of labels that are looked at; more of them are confidences, or no labels."""
MOST_BYTES = 1 << 24
"""Of a list of labels, unpacked."""
DELIMITERS = ("|", ";", ",", "/")

Words = tuple[str, ...] | None
"""The different entries of a column in lower case, "" for a blank one; None for more than `MOST_WORDS`."""


@dataclass(frozen=True)
class LabelReading:
    """How labels are read: what the words of their columns mean, or the one column of sets that holds them.

    It is decided once, by all rows, so that a piece of a file is read like the whole.
    """

    names: list[str]
    meanings: dict[str, dict[str, float | None] | None] = field(default_factory=dict)
    set_column: str = ""
    delimiter: str = ""

    @property
    def is_set(self) -> bool:
        return bool(self.set_column)

    def read(self, piece: Table) -> pl.DataFrame:
        """The labels of a piece as numbers, one column per label; null where nobody was asked."""
        if self.is_set:
            return as_indicators(piece.stored[self.set_column], self.delimiter, self.names)
        words = piece.stored if piece.is_text else piece.values
        columns = [(piece.values if meaning is None else words)[name] for name, meaning in self.meanings.items()]
        return pl.DataFrame([as_numbers(c, m) for c, m in zip(columns, self.meanings.values(), strict=True)])


def decide(source: Table | Pieces, columns: Sequence[str], separator: str | None) -> LabelReading:
    """How the labels in these columns are written; a column of sets is read through for the names in it."""
    words, first = source.words(columns), columns[0]
    kind = source.schema[first]
    if source.is_text and not kind.is_nested():
        kind = pl.String()
    if len(columns) > 1 or not are_sets(kind, words[first], separator):
        return LabelReading(list(columns), meanings(words, source.numeric))
    delimiter = separator
    if delimiter is None:
        there = {d for _, piece in source.read() for d in delimiters_in(piece.stored[first])}
        delimiter = next((d for d in DELIMITERS if d in there), "")
    lists = (exploded(piece.stored[first], delimiter)["name"] for _, piece in source.read())
    names = sorted({name for column in lists for name in column.unique().to_list()})
    if not names:
        raise LabelError(f"the label column {first!r} names no label in any row.")
    return LabelReading(names, set_column=first, delimiter=delimiter)


def words_of_columns(frame: pl.DataFrame) -> dict[str, Words]:
    """The different entries of each column of a frame.

    Examples
    --------
    >>> words_of_columns(pl.DataFrame({"a": ["Yes", "no", None, "yes "], "b": [[1], [2], [], []]}))
    {'a': ('', 'no', 'yes'), 'b': None}
    """
    return {column.name: _words_of(column) for column in frame}


def _words_of(column: pl.Series) -> Words:
    if column.dtype.is_nested() or column.dtype == pl.Object:
        return None
    # A set, not a query: a column of a wide table must not cost a millisecond.
    few = column.unique() if len(column) > 100 else column
    if len(few) > 100 and few.dtype != pl.String:
        return None
    found = {"" if v is None else v.strip().lower() for v in few.cast(pl.String).to_list()}
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


def are_sets(kind: pl.DataType, words: Words, separator: str | None) -> bool:
    """Whether the only label column holds one set of labels per row."""
    if isinstance(kind, (pl.List, pl.Array)):
        return True
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        return False
    return separator is not None or words is None or not set(words) - {""} <= YES | NO | MINUS


def as_indicators(column: pl.Series, delimiter: str, names: Sequence[str]) -> pl.DataFrame:
    """A column of sets as 0 and 1, one column per name.

    Examples
    --------
    >>> as_indicators(pl.Series("mood", ["calm|sad", "happy", ""]), "|", ["calm", "happy", "sad"]).rows()
    [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)]
    """
    Y = indicators(exploded(column, delimiter), len(column), names)
    return pl.DataFrame(Y, schema=list(names)).cast(pl.Float64)


def exploded(column: pl.Series, delimiter: str) -> pl.DataFrame:
    """The labels of a column of sets, one per line: the row that they are in, and the name."""
    if isinstance(column.dtype, (pl.List, pl.Array)):
        if column.dtype.inner.is_nested():
            raise LabelError(f"the label column {column.name!r} holds lists of lists: give one list of names per row.")
        entries = column.cast(pl.List(pl.String))
    else:
        text = column.cast(pl.String)
        entries = text.str.split(delimiter) if delimiter else text
    lines = pl.DataFrame({"row": pl.int_range(len(column), eager=True), "name": entries})
    lines = lines.explode("name") if entries.dtype.is_nested() else lines
    return lines.with_columns(pl.col("name").str.strip_chars()).filter(pl.col("name").fill_null("") != "")


def indicators(lines: pl.DataFrame, n: int, names: Sequence[str]) -> NDArray[np.float32]:
    """What `exploded` gave as 0 and 1 (n, q); other names are passed over."""
    refuse_many(n, len(names))
    Y, code = np.zeros((n, len(names)), dtype=np.float32), codes(lines["name"], names)
    known = code >= 0
    Y[lines["row"].to_numpy()[known], code[known]] = 1.0
    return Y


def refuse_many(n: int, q: int) -> None:
    """Refuse, before memory is taken for them, q labels of n rows that are none: names of items, say."""
    needed, available = 32.0 * n * q, available_bytes()
    if needed > available:
        raise MemoryEstimateError(
            f"{n:,} rows with {q:,} different labels would take about {shown(needed)} of memory ({shown(available)} "
            "are available): is this the column of the labels?"
        )


def codes(column: pl.Series, names: Sequence[str]) -> NDArray[np.int64]:
    """The number of each entry among the names; -1 for others."""
    found = column.replace_strict(list(names), range(len(names)), default=-1, return_dtype=pl.Int64)
    return found.fill_null(-1).to_numpy()


def delimiters_in(column: pl.Series) -> list[str]:
    """Those of the usual delimiters that a column of text has somewhere, the most telling first."""
    if column.dtype.is_nested():
        return []
    column = column.cast(pl.String)
    return [d for d in DELIMITERS if column.str.contains(d, literal=True).any()]


# ------------------------------------------------------------------------------------------ names that lie in a file


class Exact(str):
    """A name that is taken to the letter: no list, no pattern, no range."""


def expand(typed: Sequence[str]) -> list[str]:
    """Entries that name a file become the names in it: ``@names.txt`` (one per line), or a MULAN ``labels.xml``."""
    found: list[str] = []
    for entry in typed:
        if entry.lower().endswith((".xml", ".xml.gz")) and Path(entry).is_file():
            found += [Exact(name) for name in xml_labels(Path(entry))]
        elif entry.startswith("@"):
            try:
                check_regular(entry[1:])
                lines = Path(entry[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, ValueError) as error:
                reason = str(error).removesuffix(".")
                raise ArgumentError(f"cannot read the names in {entry[1:]}: {reason}.", "labels") from error
            found += [Exact(line.strip()) for line in lines if line.strip()]
        else:
            found.append(entry)
    return found


def xml_labels(path: Path) -> list[str]:
    """The label names of a MULAN XML file, plain or gzip, in its order."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb") as stream:
            content = stream.read(MOST_BYTES)
        if len(content) == MOST_BYTES:
            raise ValueError(f"it holds {shown(float(MOST_BYTES))} or more")
        root = ElementTree.fromstring(content)
    except Exception as error:  # expat, zlib and codecs fail with errors of their own
        raise DataError(f"Cannot read {path} as a list of labels: {error}.") from error
    found = [element.get("name", "") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    if not all(found):
        raise DataError(f"{path} has a label without a name: MULAN writes <label name='...'>.")
    if not found:
        raise DataError(f"{path} names no labels: MULAN writes <label name='...'>.")
    return found

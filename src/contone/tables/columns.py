"""Which columns of a table are labels, which are features, which are only carried along.

Pure functions on column names, so that any engine that reads the table (whole or in pieces) decides alike.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from contone.exceptions import ArgumentError
from contone.tables.labels import Exact

ID_NAME = re.compile(r"(id|index|uuid|guid|rowid|row|.*[_ -](id|uuid)|unnamed: 0|)", re.IGNORECASE)
"""Numeric columns of these names number the rows; as features they would only do harm."""


@dataclass(frozen=True)
class Columns:
    """The part that each column plays; `carried` are those that are neither label nor feature."""

    labels: list[str]
    features: list[str]
    carried: list[str]
    categories: list[str] = field(default_factory=list)
    """Features whose entries are names of classes, not quantities."""
    texts: list[str] = field(default_factory=list)
    """Features that are free text."""

    @property
    def as_written(self) -> list[str]:
        """Features that are taken as the text of the file has them: categories and free text."""
        return [*self.categories, *self.texts]


def choose(
    names: Sequence[str],
    numeric: Iterable[str],
    *,
    labels: Sequence[str],
    features: Sequence[str] = (),
    ids: Sequence[str] = (),
    categorical: Sequence[str] = (),
    text: Sequence[str] = (),
    declared: Iterable[str] = (),
) -> Columns:
    """Resolve what was typed against the columns of the table.

    Parameters
    ----------
    names : sequence of str
        All columns, in the order of the file.
    numeric : iterable of str
        Those that hold numbers.
    labels, features, ids, categorical, text : sequence of str
        What was typed: names, lists of names with commas between, patterns such as ``genre_*``, ranges such as
        ``f10:f16``, ``first:3`` or ``last:6``.
    declared : iterable of str
        Columns that the format of the file declares to be categories.

    Examples
    --------
    >>> choose(["id", "x", "a", "b"], ["id", "x", "a", "b"], labels=["a,b"])
    Columns(labels=['a', 'b'], features=['x'], carried=['id'], categories=[], texts=[])
    """
    chosen_labels = resolve(labels, names, "labels")
    if labels and not chosen_labels:
        raise ArgumentError(f"name at least one label column; the table has {shown(names)}.", "labels")
    chosen_ids = resolve(ids, names, "ids")
    _apart(chosen_labels, chosen_ids, "ids")
    taken = {*chosen_labels, *chosen_ids}
    numbers = set(numeric)
    classes = {*resolve(categorical, names, "categorical", skip=taken), *(c for c in declared if c not in taken)}
    _apart(list(taken), list(classes), "categorical")
    texts = set(resolve(text, names, "text", skip={*taken, *classes}))
    _apart([*taken, *classes], list(texts), "text")
    if features:
        chosen_features = resolve(features, names, "features", skip=taken)
        _apart(list(taken), chosen_features, "features")
        chosen_features += [c for c in names if c in texts and c not in chosen_features]
        if odd := [c for c in chosen_features if c not in {*numbers, *classes, *texts}]:
            raise ArgumentError(
                f"features must hold numbers; {shown(odd)} do not. Name columns of categories with --categorical, of "
                "free text with --text.",
                "features",
            )
    else:
        usable = {*classes, *texts, *(c for c in numbers if not ID_NAME.fullmatch(c))} - taken
        chosen_features = [c for c in names if c in usable]
    used = {*chosen_labels, *chosen_features}
    as_classes, as_texts = ([c for c in chosen_features if c in kind] for kind in (classes, texts))
    return Columns(chosen_labels, chosen_features, [c for c in names if c not in used], as_classes, as_texts)


def resolve(typed: Sequence[str], names: Sequence[str], argument: str, skip: Iterable[str] = ()) -> list[str]:
    """Names and patterns to columns, each once, in the order typed; patterns pass over what is taken elsewhere."""
    found: dict[str, None] = {}
    taken, known = set(skip), set(names)
    for entry in typed:
        # A column whose own name has a comma or a star in it is taken at its word first.
        to_the_letter = entry in known or isinstance(entry, Exact)
        for part in [str(entry)] if to_the_letter else [p.strip() for p in entry.split(",") if p.strip()]:
            matches = [part] if part in known else _range(part, names, argument)
            matches = matches or [c for c in names if fnmatchcase(c, part) and c not in taken]
            if not matches:
                meant = _meant(part, names)
                raise ArgumentError(f"there is no column {part!r}{meant}; the table has {shown(names)}.", argument)
            found.update(dict.fromkeys(matches))
    return list(found)


def matching(typed: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those of the names that were typed, by whatever pattern; others are passed over."""
    parts = [part.strip() for entry in typed for part in entry.split(",")]
    return [name for name in names if any(name == part or fnmatchcase(name, part) for part in parts)]


def _range(part: str, names: Sequence[str], argument: str) -> list[str]:
    """Columns from one to another in the order of the file, or the first or last few; empty where it is not a range."""
    first, colon, last = (piece.strip() for piece in part.partition(":"))
    if not colon:
        return []
    if first in ("first", "last") and last.isdecimal():
        if not 0 < int(last) <= len(names):
            raise ArgumentError(f"{part!r} asks for {last} columns; the table has {len(names)}.", argument)
        return list(names[: int(last)] if first == "first" else names[-int(last) :])
    if first not in names or last not in names:
        return []
    start, stop = names.index(first), names.index(last)
    if start > stop:
        raise ArgumentError(f"in {part!r}, {last!r} comes before {first!r} in the table.", argument)
    return list(names[start : stop + 1])


def _meant(part: str, names: Sequence[str]) -> str:
    near = get_close_matches(part, names, n=1, cutoff=0.7)
    if not near:
        lower = {name.lower(): name for name in names}
        near = [lower[part.lower()]] if part.lower() in lower else []
    return f" (did you mean {near[0]!r}?)" if near else ""


def _apart(first: Sequence[str], second: Sequence[str], argument: str) -> None:
    both = sorted(set(first).intersection(second))
    if both:
        raise ArgumentError(f"{shown(both)} cannot be used in two ways.", argument)


def shown(names: Sequence[str], most: int = 12, form: Callable[[str], str] = repr) -> str:
    """The first names, quoted, and how many more there are."""
    listed = ", ".join(map(form, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def listed(names: Sequence[str], most: int = 4) -> str:
    """A few names in full, many as first, last and count.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b … e (5)')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 2])} … {names[-1]} ({len(names)})"

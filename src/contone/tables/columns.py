"""Which columns of a table are labels, which are features, which are only carried along.

Pure functions on column names, so that any engine that reads the table (whole or in pieces) decides alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from contone.exceptions import ArgumentError

ID_NAME = re.compile(r"(id|index|uuid|guid|rowid|row|.*[_ -](id|uuid)|unnamed: 0|)", re.IGNORECASE)
"""Numeric columns of these names number the rows; as features they would only do harm."""


@dataclass(frozen=True)
class Columns:
    """The part that each column plays; `carried` are those that are neither label nor feature."""

    labels: list[str]
    features: list[str]
    carried: list[str]

    def degrees(self, suffix: str) -> list[str]:
        """Names of the new columns, one per label. An empty suffix puts them in place of the labels."""
        names = [f"{label}{suffix}" for label in self.labels]
        taken = sorted(set(names) & {*self.labels, *self.features, *self.carried}) if suffix else []
        if taken:
            raise ArgumentError(f"the table already has {_shown(taken)}: choose another suffix.", "suffix")
        return names


def choose(
    names: Sequence[str],
    numeric: Iterable[str],
    *,
    labels: Sequence[str],
    features: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> Columns:
    """Resolve what was typed against the columns of the table.

    Parameters
    ----------
    names
        All columns, in the order of the file.
    numeric
        Those that hold numbers.
    labels, features, ids
        What was typed: names, lists of names with commas between, patterns such as ``genre_*``.

    Examples
    --------
    >>> choose(["id", "x", "a", "b"], ["id", "x", "a", "b"], labels=["a,b"])
    Columns(labels=['a', 'b'], features=['x'], carried=['id'])
    """
    chosen_labels = _resolve(labels, names, "labels")
    if not chosen_labels:
        raise ArgumentError(f"name at least one label column; the table has {_shown(names)}.", "labels")
    chosen_ids = _resolve(ids, names, "ids")
    _apart(chosen_labels, chosen_ids, "ids")
    taken = {*chosen_labels, *chosen_ids}
    numbers = set(numeric)
    if features:
        chosen_features = _resolve(features, names, "features", skip=taken)
        _apart(list(taken), chosen_features, "features")
        text = [c for c in chosen_features if c not in numbers]
        if text:
            raise ArgumentError(f"features must hold numbers; {_shown(text)} do not.", "features")
    else:
        chosen_features = [c for c in names if c in numbers and c not in taken and not ID_NAME.fullmatch(c)]
    if not chosen_features:
        raise ArgumentError("no numeric column is left that could be a feature.", "features")
    used = {*chosen_labels, *chosen_features}
    return Columns(chosen_labels, chosen_features, [c for c in names if c not in used])


def _resolve(typed: Sequence[str], names: Sequence[str], argument: str, skip: Iterable[str] = ()) -> list[str]:
    """Names and patterns to columns, each once, in the order typed; patterns pass over what is taken elsewhere."""
    found: dict[str, None] = {}
    taken = set(skip)
    for entry in typed:
        # A column whose own name has a comma or a star in it is taken at its word first.
        for part in [entry] if entry in names else [p.strip() for p in entry.split(",") if p.strip()]:
            matches = [part] if part in names else [c for c in names if fnmatchcase(c, part) and c not in taken]
            if not matches:
                raise ArgumentError(f"there is no column {part!r}; the table has {_shown(names)}.", argument)
            found.update(dict.fromkeys(matches))
    return list(found)


def _apart(first: Sequence[str], second: Sequence[str], argument: str) -> None:
    both = [c for c in second if c in set(first)]
    if both:
        raise ArgumentError(f"{_shown(both)} cannot play two parts.", argument)


def _shown(names: Sequence[str], most: int = 12) -> str:
    listed = ", ".join(repr(c) for c in names[:most])
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

"""Which columns of a table are labels, which are features, which are only carried along.

Pure functions on column names, so that any engine that reads the table (whole or in pieces) decides alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from contone.cli.terminal import usage_error

ID_NAME = re.compile(r"(id|index|uuid|guid|rowid|row|.*[_ -](id|uuid)|unnamed: 0|)", re.IGNORECASE)
"""Numeric columns of these names number the rows; as features they would only do harm."""


@dataclass(frozen=True)
class Columns:
    """The part that each column plays; `carried` are those that are neither label nor feature."""

    labels: list[str]
    features: list[str]
    carried: list[str]

    def degrees(self, suffix: str) -> list[str]:
        """Names of the new columns, one a label. An empty suffix puts them in place of the labels."""
        names = [f"{label}{suffix}" for label in self.labels]
        taken = sorted(set(names) & {*self.labels, *self.features, *self.carried}) if suffix else []
        if taken:
            raise usage_error(f"the table already has {_shown(taken)}: choose another suffix.", "--suffix")
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
    chosen_labels = _resolve(labels, names, "--labels")
    if not chosen_labels:
        raise usage_error(f"name at least one label column; the table has {_shown(names)}.", "--labels")
    chosen_ids = _resolve(ids, names, "--id")
    _apart(chosen_labels, chosen_ids, "--id")
    taken = {*chosen_labels, *chosen_ids}
    numbers = set(numeric)
    if features:
        chosen_features = _resolve(features, names, "--features", skip=taken)
        _apart(list(taken), chosen_features, "--features")
        text = [c for c in chosen_features if c not in numbers]
        if text:
            raise usage_error(f"features must hold numbers; {_shown(text)} do not.", "--features")
    else:
        chosen_features = [c for c in names if c in numbers and c not in taken and not ID_NAME.fullmatch(c)]
    if not chosen_features:
        raise usage_error("no numeric column is left that could be a feature.", "--features")
    used = {*chosen_labels, *chosen_features}
    return Columns(chosen_labels, chosen_features, [c for c in names if c not in used])


def _resolve(typed: Sequence[str], names: Sequence[str], option: str, skip: Iterable[str] = ()) -> list[str]:
    """Names and patterns to columns, each once, in the order typed; patterns pass over what is taken elsewhere."""
    found: dict[str, None] = {}
    taken = set(skip)
    for entry in typed:
        # A column whose own name has a comma or a star in it is taken at its word first.
        for part in [entry] if entry in names else [p.strip() for p in entry.split(",") if p.strip()]:
            matches = [part] if part in names else [c for c in names if fnmatchcase(c, part) and c not in taken]
            if not matches:
                raise usage_error(f"there is no column {part!r}; the table has {_shown(names)}.", option)
            found.update(dict.fromkeys(matches))
    return list(found)


def _apart(first: Sequence[str], second: Sequence[str], option: str) -> None:
    both = [c for c in second if c in set(first)]
    if both:
        raise usage_error(f"{_shown(both)} cannot play two parts.", option)


def _shown(names: Sequence[str], most: int = 12) -> str:
    listed = ", ".join(repr(c) for c in names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed

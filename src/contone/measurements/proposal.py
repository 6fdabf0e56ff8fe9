"""Which reading fits a table of answers: votes, marks, levels, an order, or the labels of a rule.

The table says more than its numbers: whether people gave one label or several per answer, whether several answers are
about one item, whether numbers are counts (their sum is the number of people) or levels (each label has its own).
docs/people.md has the same as a decision table.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contone.typing import Data

MOST_LEVELS = 11
"""Whole numbers with more different values than this are counts, unless they are grades up to 10, 20 or 100."""
TOP_GRADES = (10, 20, 100)
STEADY = 0.5
"""Counts of people share one sum, so that it varies less than labels that have nothing to do with each other: at most
this share of what these would have."""


class Proposal(NamedTuple):
    """A reading of a table, and why."""

    rule: str
    """What `degradation` takes."""
    sentence: str
    """For people, with the reason first."""


def propose_reading(Y: Data, groups: Sequence[object] | np.ndarray | None = None) -> Proposal:
    """The reading that fits answers Y (n, q), NaN where nobody asked; `groups` (n,) names the item of every row.

    Examples
    --------
    >>> propose_reading([[0, 1, 0], [1, 0, 0], [0, 1, 0]], groups=["a", "a", "b"])
    Proposal(rule='votes', sentence='each person gave each item exactly one label: read as votes')
    >>> propose_reading([[0, 3, 1], [2, 3, 3], [0, 0, 0]]).rule, propose_reading([[1, 3, 2], [2, 1, 3]]).rule
    ('levels', 'order')
    """
    values = np.asarray(Y, dtype=np.float64)
    asked = ~np.isnan(values)
    answered, filled = asked.any(axis=1), np.where(asked, values, 0.0)
    rows, given = filled[answered], values[asked]
    several = groups is not None and len(set(map(str, groups))) < len(values)
    if not len(given):
        return Proposal("main", "no label is given: nothing says how labels were made")
    if np.isin(given, (0.0, 1.0)).all():
        return _read_marks(rows, several)
    whole = bool((given == np.round(given)).all())
    if not several and asked.all() and np.allclose(rows.sum(axis=1), 1.0, atol=1e-6) and (given >= 0).all():
        return Proposal("main", "the rows sum to one: these are degrees already, and no rule made them")
    if whole and not several and asked.all() and _is_ranking(rows):
        return Proposal("order", "each row puts the labels in an order: read as rankings")
    if whole and (given >= 0).all() and not several and _is_count(rows, given):
        return Proposal("votes", "each row counts people, whose number is the sum of the row: read as votes")
    low, high = given.min(), given.max()
    who = "each person gave" if several else "each row gives"
    return Proposal("levels", f"{who} every label a level, from {low:g} to {high:g}: read as levels")


def _read_marks(rows: np.ndarray, several: bool) -> Proposal:
    """Answers of zeros and ones."""
    if bool((rows.sum(axis=1) == 1.0).all()):
        who = "each person gave each item" if several else "each item has"
        return Proposal("votes", f"{who} exactly one label: read as votes")
    if several:
        return Proposal("marks", "people marked all labels that hold, several per item: read as marks")
    return Proposal("main", "each item has a set of labels from one source: read as the main labels")


def _is_ranking(rows: np.ndarray) -> bool:
    """Whether every row holds each of q numbers in a row once."""
    q = rows.shape[1]
    return q > 2 and any(bool((np.sort(rows, axis=1) == np.arange(q) + first).all()) for first in (0, 1))


def _is_count(rows: np.ndarray, given: np.ndarray) -> bool:
    """Whether numbers count people: their sums are steady, or there are too many of them for levels."""
    sums, apart = rows.sum(axis=1), float(rows.var(axis=0).sum())
    if float(sums.var()) <= STEADY * apart:
        return True
    return len(np.unique(given)) > MOST_LEVELS and float(given.max()) not in TOP_GRADES

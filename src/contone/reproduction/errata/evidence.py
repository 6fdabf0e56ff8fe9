"""One inconsistency of the paper, with the figures that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from contone.typing import Record


@dataclass(frozen=True)
class Evidence:
    """One inconsistency of the paper.

    Attributes
    ----------
    id : str
        A short name.
    title : str
        The finding in a few words.
    claim : str
        What the paper says or prints.
    finding : str
        What the computation shows, with its figures.
    numbers : list of dict
        The figures, one row each.
    source : str
        What it was computed from.
    holds : bool
        Whether the computation bears the erratum out.
    """

    id: str
    title: str
    claim: str
    finding: str
    source: str
    holds: bool
    numbers: list[Record]


class Found(NamedTuple):
    """What a check computed: whether it bears the erratum out, its figures, and what the words of the finding ask."""

    holds: bool
    numbers: list[Record]
    said: Record


Results = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Our scores: ``results[measure][row][dataset]``, data sets by the paper's short names."""

Check = Callable[[Results], Found | None]
"""None where the results that it needs are missing, or there is nothing to report."""

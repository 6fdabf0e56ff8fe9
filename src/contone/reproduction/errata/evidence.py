"""One inconsistency of the paper, with the figures that show it."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    numbers: list[Record] = field(default_factory=list)

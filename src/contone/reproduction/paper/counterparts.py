"""Which row of ours stands beside which row of the paper, and what is known about the published figures."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Suspect:
    """Published figures that are known to be wrong: of a method in a measure on these sets (the paper's names)."""

    method: str
    measure: str
    datasets: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Counterparts:
    """One experiment of the paper beside ours.

    Attributes
    ----------
    rows : dict
        Rows of ours that re-run a row of the paper, the best one first.
    reasons : dict
        Why a row of the paper may differ from ours.
    suspect : tuple of Suspect
        Figures that are not compared.
    floor : str
        A row of ours, with a standard error, that no published figure can be beyond; empty where there is none.
    """

    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    suspect: tuple[Suspect, ...] = ()
    floor: str = ""

    def row(self, theirs: str, names: Sequence[str]) -> str | None:
        """The row of ours, among `names`, that re-runs a row of the paper."""
        return next((name for name in self.rows.get(theirs, ()) if name in names), None)

    def wrong(self, theirs: str | None, measure: str, dataset: str | None) -> str:
        """Why the figure of a method in a measure on a set (the paper's name) is wrong; empty where it is not known."""
        found = (s for s in self.suspect if (s.method, s.measure) == (theirs, measure) and dataset in s.datasets)
        return next((s.reason for s in found), "")


@cache
def counterparts() -> dict[str, Counterparts]:
    """By experiment."""
    content = tomllib.loads(files("contone.reproduction.paper").joinpath("counterparts.toml").read_text("utf-8"))
    return {
        name: Counterparts(
            rows={theirs: tuple(ours) for theirs, ours in fields["rows"].items()},
            reasons=fields.get("reasons", {}),
            suspect=tuple(Suspect(**{**s, "datasets": tuple(s["datasets"])}) for s in fields.get("suspect", ())),
            floor=fields.get("floor", ""),
        )
        for name, fields in content.items()
    }

"""The paper's own tables, as data: *Data Augmentation for Label Enhancement* (Kou, Jia, Wang, Shi, Geng).

The CSV files beside this page hold the figures as printed; nothing in them is corrected. What is known to be printed
under a wrong name is a mapping in paper.toml (`PRINTED_ROWS`, `PRINTED_MEASURES`, `PRINTED_VARIANTS`), applied by the
loaders unless the table is asked for `as_printed`. `contone.reproduction.errata` holds the evidence.

A table is a nested dict ``table[measure][method][dataset] -> value``, with the paper's short names of the data sets.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from contone.runtime.files import packaged_toml
from contone.typing import Record

Table = dict[str, dict[str, dict[str, float]]]


class Printed(NamedTuple):
    """A figure of a table."""

    measure: str
    method: str
    dataset: str
    value: float


FOLDER = "contone.reproduction.paper"
_KNOWN = packaged_toml(FOLDER, "paper.toml")

CITATION: str = _KNOWN["citation"]

DATASETS: dict[str, str] = {short: about["name"] for short, about in _KNOWN["datasets"].items()}
"""The paper's short names, in its order, and the names of `contone.datasets`."""

YEAST = tuple(name for name, full in DATASETS.items() if full.startswith("yeast-"))

METHODS: tuple[str, ...] = tuple(_KNOWN["methods"])
"""The methods of its tables; "ours" is called LCdr."""

COMPARED = METHODS[1:]

GREATER_IS_BETTER: dict[str, bool] = _KNOWN["measures"]
"""The five measures that it reports, with their direction."""

PRINTED_ROWS: dict[str, str] = _KNOWN["printed"]["rows"]
"""Augmentation table: the name printed on a row, and the data set whose figures stand in it."""

PRINTED_MEASURES: dict[str, str] = _KNOWN["printed"]["measures"]
"""Augmentation table: the measure printed above a half, and the one whose figures stand in it."""

PRINTED_VARIANTS: dict[str, str] = _KNOWN["printed"]["variants"]
"""Ablation table: the variant printed, and the one that the text describes."""

KL_CONVENTION: dict[str, str] = _KNOWN["kl"]
"""The reading of KL behind a method's printed figures, where it is not the usual `kl_reversed_drop`."""

PRINTED_LABELS: dict[str, int] = {short: about["labels"] for short, about in _KNOWN["datasets"].items()}
"""Number of labels in the paper's table of data sets."""

CLAIMS: Record = _KNOWN["claims"]
"""Statements of the text that its tables can be held against; shares in per cent."""


def recovery() -> Table:
    """LD recovery: 5 measures x 6 methods x 12 sets."""
    return _table("recovery")


def prediction() -> Table:
    """LDL prediction with IIS-LDL: 4 measures x 6 methods x 12 sets."""
    return _table("prediction")


def augmentation(*, as_printed: bool = False) -> Table:
    """Five methods, each alone ("GLLE") and behind the augmentation ("LCdr-GLLE"): Clark and KL."""
    printed = _table("augmentation")
    if as_printed:
        return printed
    return _nested(Printed(PRINTED_MEASURES[q], m, PRINTED_ROWS[d], value) for q, m, d, value in cells(printed))


def ablation() -> Table:
    """Four variants of LCdr, Chebyshev; variants stand where methods do elsewhere."""
    return _nested(Printed(q, PRINTED_VARIANTS.get(m, m), d, v) for q, m, d, v in cells(_table("ablation")))


def average_ranks() -> dict[str, dict[str, float]]:
    """The printed average ranks, by measure and method."""
    return _pairs("average_ranks")


def wilcoxon() -> dict[str, dict[str, float]]:
    """The printed p-values of LCdr against each method, by measure and method."""
    return _pairs("wilcoxon")


def cells(table: Table) -> Iterator[Printed]:
    """Every figure of a table with its place."""
    return (Printed(q, m, d, value) for q, rows in table.items() for m, row in rows.items() for d, value in row.items())


@cache
def _lines(name: str) -> tuple[list[str], ...]:
    """The lines of a file below its head."""
    return tuple(csv.reader(files(FOLDER).joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines()[1:]))


def _table(name: str) -> Table:
    return _nested(Printed(measure, method, d, float(value)) for measure, method, d, value in _lines(name))


def _nested(printed: Iterable[Printed]) -> Table:
    table: Table = {}
    for measure, method, dataset, value in printed:
        table.setdefault(measure, {}).setdefault(method, {})[dataset] = value
    return table


def _pairs(name: str) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for measure, method, value in _lines(name):
        table.setdefault(measure, {})[method] = float(value)
    return table


# ------------------------------------------------------------------------------------------------------- counterparts


@dataclass(frozen=True)
class Counterparts:
    """One experiment of the paper beside ours.

    Attributes
    ----------
    rows : dict
        Rows of ours that re-run a row of the paper, the best one first.
    reasons : dict
        Why a row of the paper may differ from ours.
    suspect : list of dict
        Figures that are known to be wrong and not compared: method, measure, datasets (the paper's names), reason.
    floor : str
        A row of ours, with a standard error, that no published figure can be beyond; empty where there is none.
    """

    rows: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    suspect: list[Record] = field(default_factory=list)
    floor: str = ""

    def row(self, theirs: str, names: Sequence[str]) -> str | None:
        """The row of ours, among `names`, that re-runs a row of the paper."""
        return next((name for name in self.rows.get(theirs, ()) if name in names), None)

    def wrong(self, theirs: str, measure: str, dataset: str) -> str:
        """Why the figure of a method in a measure on a set (the paper's name) is wrong; empty where it is not known."""
        found = (s for s in self.suspect if (s["method"], s["measure"]) == (theirs, measure))
        return next((str(s["reason"]) for s in found if dataset in s["datasets"]), "")


@cache
def counterparts() -> dict[str, Counterparts]:
    """By experiment."""
    return {name: Counterparts(**fields) for name, fields in packaged_toml(FOLDER, "counterparts.toml").items()}

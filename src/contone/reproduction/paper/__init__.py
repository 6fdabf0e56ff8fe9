"""The paper's own tables, as data: *Data Augmentation for Label Enhancement* (Kou, Jia, Wang, Shi, Geng).

The CSV files beside this page hold the figures as printed; nothing in them is corrected. What is known to be printed
under a wrong name is a mapping in paper.toml (`PRINTED_ROWS`, `PRINTED_MEASURES`, `PRINTED_VARIANTS`), applied by the
loaders unless the table is asked for `as_printed`. `contone.reproduction.errata` holds the evidence.

A table is a nested dict ``table[measure][method][dataset] -> value``, with the paper's short names of the data sets.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from contone.typing import Record

Table = dict[str, dict[str, dict[str, float]]]

FOLDER = files("contone.reproduction.paper")
_KNOWN: Record = tomllib.loads(FOLDER.joinpath("paper.toml").read_text(encoding="utf-8"))

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
    return _table("recovery", "method", "dataset")


def prediction() -> Table:
    """LDL prediction with IIS-LDL: 4 measures x 6 methods x 12 sets."""
    return _table("prediction", "method", "dataset")


def augmentation(*, as_printed: bool = False) -> Table:
    """Five methods, each alone ("GLLE") and behind the augmentation ("LCdr-GLLE"): Clark and KL."""
    printed = _table("augmentation", "method", "dataset_as_printed", measure="measure_as_printed")
    if as_printed:
        return printed
    return {
        PRINTED_MEASURES[measure]: {
            method: {PRINTED_ROWS[name]: value for name, value in row.items()} for method, row in rows.items()
        }
        for measure, rows in printed.items()
    }


def ablation(*, as_printed: bool = False) -> Table:
    """Four variants of LCdr, Chebyshev; variants stand where methods do elsewhere."""
    printed = _table("ablation", "variant_as_printed", "dataset")
    if as_printed:
        return printed
    return {
        measure: {PRINTED_VARIANTS.get(variant, variant): row for variant, row in rows.items()}
        for measure, rows in printed.items()
    }


def average_ranks() -> dict[str, dict[str, float]]:
    """The printed average ranks, by measure and method."""
    return _pairs("average_ranks", "average_rank")


def wilcoxon() -> dict[str, dict[str, float]]:
    """The printed p-values of LCdr against each method, by measure and method."""
    return _pairs("wilcoxon", "p_value")


@cache
def _read(name: str) -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader(FOLDER.joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def _table(name: str, row: str, column: str, *, measure: str = "measure") -> Table:
    table: Table = {}
    for line in _read(name):
        table.setdefault(line[measure], {}).setdefault(line[row], {})[line[column]] = float(line["value"])
    return table


def _pairs(name: str, value: str) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for line in _read(name):
        table.setdefault(line["measure"], {})[line["method"]] = float(line[value])
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
    content = tomllib.loads(FOLDER.joinpath("counterparts.toml").read_text("utf-8"))
    return {name: Counterparts(**fields) for name, fields in content.items()}

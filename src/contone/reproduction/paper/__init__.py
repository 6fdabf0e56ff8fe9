"""The paper's own tables, as data: *Data Augmentation for Label Enhancement* (Kou, Jia, Wang, Shi, Geng).

The CSV files beside this page hold the figures as printed; nothing in them is corrected. What is known to be printed
under a wrong name is a mapping here (`PRINTED_ROWS`, `PRINTED_MEASURES`, `PRINTED_VARIANTS`), applied by the loaders
unless the table is asked for `as_printed`. `contone.reproduction.errata` holds the evidence.

A table is a nested dict ``table[measure][method][dataset] -> value``, with the paper's short names of the data sets.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from contone.typing import Record

Table = dict[str, dict[str, dict[str, float]]]

CITATION = "Z. Kou, Y. Jia, J. Wang, B. Shi, X. Geng. Data Augmentation for Label Enhancement."

DATASETS: dict[str, str] = {
    "spoem": "yeast-spoem",
    "alpha": "yeast-alpha",
    "spo5": "yeast-spo5",
    "cdc": "yeast-cdc",
    "cold": "yeast-cold",
    "diau": "yeast-diau",
    "dtt": "yeast-dtt",
    "elu": "yeast-elu",
    "heat": "yeast-heat",
    "spo": "yeast-spo",
    "flickr": "flickr",
    "twitter": "twitter",
}
"""The paper's short names, in its order, and the names of `contone.datasets`."""

YEAST = tuple(name for name, full in DATASETS.items() if full.startswith("yeast-"))

METHODS = ("LCdr", "GLLE", "ML2", "LESC", "LEMLL", "LP")
"""The methods of its tables; "ours" is called LCdr."""

COMPARED = METHODS[1:]

GREATER_IS_BETTER = {"chebyshev": False, "clark": False, "canberra": False, "kl": False, "cosine": True}
"""The five measures that it reports, with their direction."""

PRINTED_ROWS: dict[str, str] = {
    "cdc": "flickr",
    "cold": "twitter",
    "diau": "cdc",
    "dtt": "cold",
    "elu": "diau",
    "heat": "dtt",
    "spo": "elu",
    "flickr": "heat",
    "twitter": "spo",
    "spoem": "spoem",
    "alpha": "alpha",
    "spo5": "spo5",
}
"""Augmentation table: the name printed on a row, and the data set whose figures stand in it."""

PRINTED_MEASURES = {"chebyshev": "clark", "kl": "kl"}
"""Augmentation table: the measure printed above a half, and the one whose figures stand in it."""

PRINTED_VARIANTS = {"X+LF": "X+LC"}
"""Ablation table: the variant printed, and the one that the text describes."""

KL_CONVENTION = {"LP": "kl_reversed_clip"}
"""The reading of KL behind a method's printed figures, where it is not the usual `kl_reversed_drop`."""

PRINTED_LABELS = {
    "dtt": 4, "spo": 6, "spo5": 3, "diau": 7, "cold": 4, "spoem": 2, "cdc": 15, "alpha": 18, "elu": 14, "heat": 5,
    "flickr": 8, "twitter": 8,
}  # fmt: skip
"""Number of labels in the paper's table of data sets."""

CLAIMS: Record = {
    "recovery_wins": "the proposed method achieves better performance in all cases (12 datasets and five metrics)",
    "augmentation_glle": 95.83,
    "augmentation_always": ("ML2", "LP", "LESC", "LEMLL"),
    "prediction_first": 96.18,
    "prediction_wins": {"LP": 85.42, "GLLE": 93.75, "ML2": 97.92, "LESC": 100.0, "LEMLL": 100.0},
}
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
    text = (files("contone.reproduction.paper") / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


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

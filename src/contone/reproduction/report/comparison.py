"""summary -> published | measured | verdict: the paper's figures line by line, with the two ends beside each.

Used by all renderings, so that page, Markdown and LaTeX say the same. ``compare(summary, experiment)`` gives, for each
measure of an experiment, a Comparison:

    Comparison  {measure, title, arrow, formula, readings (bool: the paper reads this measure in another way),
                 lines: [Line], left_out: [text]}
    Line        {method (in the paper), row (ours), dataset, published, published_text, measured, measured_text,
                 own_text (in our reading, where that is another one), difference, difference_text, verdict, reason,
                 uniform_text, temperature_text, limit_text, recovered, recovered_text}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from contone.limits import recovered
from contone.reproduction.report.charts import short
from contone.reproduction.report.tables import Plain, as_percent, as_text
from contone.reproduction.verdicts import RULES

COMPARED = ("recovery", "augmentation", "ablation", "prediction")
"""The experiments with published figures cell by cell, in the order of the report."""

ENDS = {"uniform": "Uniform", "temperature": "Temperature", "limit": "Limit"}
"""The rows that stand beside every score: what knows nothing, what knows only the labels, what the data allow."""

Scores = dict[tuple[str, str, str], float]
"""Values by (measure, row, data set)."""


def compare(summary: Mapping[str, Any], experiment: str) -> list[Plain]:
    """The published figures of an experiment beside ours, for each measure that has any."""
    own, main = scores(summary[experiment]), scores(summary["recovery"])
    at_hand = {data["name"] for data in summary["datasets"]}
    found = []
    for table in summary[experiment]["tables"]:
        pairs = [(row, cell) for row in table["rows"] for cell in row["cells"] if cell["published"] is not None]
        if not pairs:
            continue
        done = [(row, cell) for row, cell in pairs if cell["status"] == "done"]
        found.append(
            {
                **{key: table[key] for key in ("measure", "title", "arrow", "formula")},
                "readings": any(cell["compared_measure"] != table["measure"] for _, cell in done),
                "lines": [_line(row, cell, table["measure"], own, main) for row, cell in done],
                "left_out": _left_out([cell for _, cell in pairs if cell["status"] != "done"], at_hand),
            }
        )
    return found


def overview(comparisons: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """One line a method of the paper: how its figures came out over all sets and measures, and why."""
    lines = [line for c in comparisons for line in c["lines"]]
    listed = []
    for method in dict.fromkeys(line["method"] for line in lines):
        mine = [line for line in lines if line["method"] == method]
        differences = [line["difference"] for line in mine if line["difference"] is not None]
        middle = median(differences) if differences else None
        listed.append(
            {
                "method": method,
                "row": mine[0]["row"],
                "figures": len(mine),
                "verdicts": {rule["name"]: sum(x["verdict"] == rule["name"] for x in mine) for rule in RULES},
                "difference": middle,
                "difference_text": as_difference(middle),
                "reason": next((line["reason"] for line in mine if line["reason"]), ""),
            }
        )
    return listed


def scores(experiment: Mapping[str, Any]) -> Scores:
    """Every finite score of an experiment's tables."""
    return {
        (table["measure"], row["name"], cell["dataset"]): cell["value"]
        for table in experiment["tables"]
        for row in table["rows"]
        for cell in row["cells"]
        if cell["value"] is not None
    }


def ends(measure: str, dataset: str, own: Scores, main: Scores) -> dict[str, float | None]:
    """The scores of the rows that stand beside, from the same experiment where it has them, or from the recovery."""
    found = {}
    for key, row in ENDS.items():
        found[key] = own.get((measure, row, dataset))
        if found[key] is None and key == "limit":  # in the prediction: the learner that was trained on the truth
            found[key] = own.get((measure, "Truth", dataset))
        if found[key] is None:
            found[key] = main.get((measure, row, dataset))
    return found


def share(row: str, dataset: str, own: Scores, main: Scores) -> float | None:
    """The recovered share of a row on a data set, or None where one of the three figures is missing."""
    kl, beside = own.get(("kl", row, dataset)), ends("kl", dataset, own, main)
    if kl is None or beside["uniform"] is None or beside["limit"] is None:
        return None
    found = recovered(kl, beside["uniform"], beside["limit"])
    return found if math.isfinite(found) else None


def as_difference(difference: float | None) -> str:
    """A relative difference for people.

    Examples
    --------
    >>> as_difference(0.0213), as_difference(-0.3), as_difference(0.0)
    ('+2.1 %', '−30 %', '0 %')
    """
    if difference is None:
        return ""
    percent = 100 * difference
    if abs(percent) < 0.05:
        return "0 %"
    return (f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.1f} %").replace("-", "−")


def _line(row: Mapping[str, Any], cell: Mapping[str, Any], measure: str, own: Scores, main: Scores) -> Plain:
    beside = ends(measure, cell["dataset"], own, main)
    part = share(row["name"], cell["dataset"], own, main)
    return {
        "method": row["published_as"],
        "row": row["name"],
        "dataset": cell["dataset"],
        "published": cell["published"],
        "published_text": cell["published_text"],
        "measured": cell["compared"],
        "measured_text": as_text(cell["compared"]) or "∞",
        "own_text": cell["text"],
        "difference": cell["verdict"]["difference"],
        "difference_text": as_difference(cell["verdict"]["difference"]),
        "verdict": cell["verdict"]["name"],
        "reason": cell["verdict"]["reason"],
        **{f"{key}_text": as_text(value) for key, value in beside.items()},
        "recovered": part,
        "recovered_text": as_percent(part),
    }


def _left_out(cells: Sequence[Mapping[str, Any]], at_hand: set[str]) -> list[str]:
    """How many of the published figures are not in the lines, on which sets, and why."""
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        missing = cell["status"] == "no data" and cell["dataset"] not in at_hand
        why = "not at hand" if missing else "the run failed" if cell["status"] == "failed" else "not run yet"
        reasons.setdefault(why, []).append(short(cell["dataset"]))
    return [f"{len(sets)} on {', '.join(dict.fromkeys(sets))} ({why})" for why, sets in reasons.items()]

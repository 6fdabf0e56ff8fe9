"""summary -> published | measured | verdict: the paper's figures line by line, with the two ends beside each.

Used by all renderings, so that page, Markdown and LaTeX say the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from contone.experiments.report.matrix import Scores, scores, short
from contone.experiments.report.schema import Cell, Row, Table
from contone.experiments.report.view import ends, share_of
from contone.pages import words
from contone.reproduction.report.schema import PaperSummary
from contone.reproduction.verdicts import RULES


@dataclass(frozen=True)
class Line:
    """One published figure beside ours.

    Attributes
    ----------
    method, row : str
        The row in the paper, and ours.
    measured_text, own_text : str
        Our figure in the paper's reading of the measure, and in ours.
    uniform_text, temperature_text, limit_text : str
        What stands beside: scores of the baselines and of the strong reference.
    recovered, recovered_text
        Our recovered share.
    """

    method: str
    row: str
    dataset: str
    label: str
    published: float
    published_text: str
    measured: float | None
    measured_text: str
    own_text: str
    difference: float | None
    difference_text: str
    verdict: str
    reason: str
    uniform_text: str
    temperature_text: str
    limit_text: str
    recovered: float | None
    recovered_text: str


@dataclass(frozen=True)
class Comparison:
    """The published figures of one measure; `readings`: the paper reads this measure in another way than we do."""

    measure: str
    title: str
    arrow: str
    formula: str
    readings: bool
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """How the figures of one method came out over all sets and measures, and why."""

    method: str
    row: str
    figures: int
    verdicts: dict[str, int]
    difference: float | None
    difference_text: str
    reason: str


def compare(summary: PaperSummary, experiment: str) -> list[Comparison]:
    """The published figures of an experiment beside ours, for each measure that has any."""
    own, main = scores(summary.section(experiment)), scores(summary.recovery)
    found = []
    for table in summary.section(experiment).tables:
        pairs = [(row, cell) for row in table.rows for cell in row.cells if cell.published is not None]
        if pairs:
            found.append(_comparison(table, pairs, own, main, summary.missing.datasets))
    return found


def overview(comparisons: Sequence[Comparison]) -> list[Overview]:
    """One line per method of the paper."""
    lines = [line for c in comparisons for line in c.lines]
    listed = []
    for method in dict.fromkeys(line.method for line in lines):
        mine = [line for line in lines if line.method == method]
        differences = [x.difference for x in mine if x.difference is not None and math.isfinite(x.difference)]
        middle = median(differences) if differences else None
        listed.append(
            Overview(
                method=method,
                row=mine[0].row,
                figures=len(mine),
                verdicts={rule.name: sum(x.verdict == rule.name for x in mine) for rule in RULES},
                difference=middle,
                difference_text=words.difference(middle),
                reason=next((line.reason for line in mine if line.reason), ""),
            )
        )
    return listed


def _comparison(
    table: Table, pairs: Sequence[tuple[Row, Cell]], own: Scores, main: Scores, missing: dict[str, str]
) -> Comparison:
    done = [(row, cell) for row, cell in pairs if cell.status == "done"]
    return Comparison(
        measure=table.measure,
        title=table.title,
        arrow=table.arrow,
        formula=table.formula,
        readings=any(cell.published and cell.published.compared_measure != table.measure for _, cell in done),
        lines=tuple(_line(row, cell, table.measure, own, main) for row, cell in done),
        left_out=tuple(_left_out([cell for _, cell in pairs if cell.status != "done"], missing)),
    )


def _line(row: Row, cell: Cell, measure: str, own: Scores, main: Scores) -> Line:
    published = cell.published
    assert published is not None
    beside = ends(measure, cell.dataset, own, main)
    part = share_of(row.name, cell.dataset, own, main)
    difference = published.verdict.difference
    finite = difference is not None and math.isfinite(difference)
    return Line(
        method=row.published_as or row.name,
        row=row.name,
        dataset=cell.dataset,
        label=short(cell.dataset),
        published=published.value,
        published_text=published.text,
        measured=published.compared,
        measured_text=words.number(published.compared),
        own_text=cell.text,
        difference=difference if finite else None,
        difference_text=words.difference(difference) if finite else "",
        verdict=published.verdict.name,
        reason=published.verdict.reason,
        uniform_text=words.number(beside["uniform"]),
        temperature_text=words.number(beside["temperature"]),
        limit_text=words.number(beside["limit"]),
        recovered=part,
        recovered_text=words.percent(part),
    )


def _left_out(cells: Sequence[Cell], missing: dict[str, str]) -> list[str]:
    """How many of the published figures are not in the lines, on which sets, and why."""
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        absent = cell.status == "no data" and cell.dataset in missing
        why = "not available locally" if absent else "the run failed" if cell.status == "failed" else "not run"
        reasons.setdefault(why, []).append(short(cell.dataset))
    return [f"{len(sets)} on {', '.join(dict.fromkeys(sets))} ({why})" for why, sets in reasons.items()]

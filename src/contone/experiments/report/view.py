"""summary -> the words of the parts that every report has; the template prints them and computes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from contone.experiments.report.charts import examples, manifold, ranks, recovered
from contone.experiments.report.matrix import ENDS, Matrix, Scores, Shares, matrix, share, short, sorted_by_mean
from contone.experiments.report.schema import MethodInfo, RankGroup, Ranking, Row, Section, Summary
from contone.experiments.store import Store
from contone.pages import words
from contone.pages.svg import Chart

Words = dict[str, Any]

KINDS = {
    "baseline": "uses no features",
    "oracle": "has seen the truth, so it cannot be best",
}

FIRST = "kl"
"""The measure that is shown first: the recovered share is made of it."""

RANK_TOLERANCE, P_TOLERANCE = 0.0051, 1e-6
"""Printed ranks and p-values further than this from ours are marked."""


@dataclass(frozen=True)
class ScoreTable:
    """One measure of an experiment as it is printed; `comparison` is what was published, if anything was."""

    measure: str
    title: str
    arrow: str
    formula: str
    first: str
    scores: Matrix
    comparison: Any = None


def common(summary: Summary, store: Store) -> Words:
    """What the template needs for the parts that every report has."""
    return {
        "title": summary.title,
        "about": summary.about,
        "generated": summary.provenance.generated,
        "sentences": summary.headline.sentences,
        "headline": charts(recovered.chart(summary.headline.recovered)),
        "headline_narrow": charts(recovered.chart(summary.headline.recovered, narrow=True)),
        "missing": missing(summary),
        "measures": summary.measures,
        "kinds": [{"name": name, "text": text} for name, text in KINDS.items()],
        "datasets": [{**asdict(d), "labels_per_row": f"{d.labels_per_row:.2f}"} for d in summary.datasets],
        "shares": sorted_by_mean(matrix(summary.shares)),
        "ranks": _ranks(summary),
        "examples": charts(*examples.charts(summary.examples, _worth_showing(summary))),
        "manifold": manifold.pictures(store, summary.manifold, _shares_on(summary, "artificial")),
        "rows": [_method(row) for row in summary.rows],
        "failures": summary.failures,
        "provenance": _provenance(summary),
    }


def charts(*found: Chart | None) -> list[Chart]:
    """The charts that could be drawn."""
    return [chart for chart in found if chart is not None]


def score_tables(section: Section, beside: Mapping[str, Mapping[str, Row]], shares: Shares) -> list[ScoreTable]:
    """The tables of a section as they are printed, KL first."""
    found = []
    for table in sorted(section.tables, key=lambda t: t.measure != FIRST):
        shown = matrix(table, beside.get(table.measure, {}), shares)
        first = "descending" if table.greater_is_better else "ascending"
        if shown.rows:
            found.append(ScoreTable(table.measure, table.title, table.arrow, table.formula, first, shown))
    return found


def shares_in(summary: Summary) -> Shares:
    """The recovered shares of the main experiment, infinite ones included."""
    return {(row.name, cell.dataset): cell.value for row in summary.shares.rows for cell in row.cells}


def shares_of(own: Scores, main: Scores) -> Shares:
    """The recovered share of every row on every data set; of the rows that stand beside, where `own` lacks them."""
    found: Shares = {}
    for measure, row, dataset in own:
        if measure == FIRST:
            found[row, dataset] = share_of(row, dataset, own, main)
    for row in ENDS.values():
        if not any(known == row for _, known, _ in own):
            for measure, known, dataset in main:
                if (measure, known) == (FIRST, row):
                    found[row, dataset] = share_of(row, dataset, main, main)
    return found


def share_of(row: str, dataset: str, own: Scores, main: Scores) -> float | None:
    """The recovered share of a row on a data set; None where one of its figures is missing."""
    beside = ends(FIRST, dataset, own, main)
    return share(row, dataset, own, beside["uniform"], beside["limit"])


def ends(measure: str, dataset: str, own: Scores, main: Scores) -> dict[str, float | None]:
    """The scores of the rows that stand beside, from the same experiment where it has them, or from the recovery."""
    found: dict[str, float | None] = {}
    for key, row in ENDS.items():
        found[key] = own.get((measure, row, dataset))
        if found[key] is None and key == "limit":  # in a prediction: what learners reach that were trained on the truth
            found[key] = next(
                (own[measure, r, dataset] for r in ("Floor", "Truth") if (measure, r, dataset) in own), None
            )
        if found[key] is None:
            found[key] = main.get((measure, row, dataset))
    return found


def missing(summary: Summary) -> Words:
    """What is not here, or not up to date."""
    return {
        "datasets": [{"name": n, "why": why} for n, why in summary.missing.datasets.items()],
        "methods": [{"name": n, "why": why} for n, why in summary.missing.methods.items()],
        "damaged": summary.provenance.damaged,
        "experiments": [],
        "pending": summary.counts.pending,
        "failed": summary.counts.failed,
        "stale": summary.counts.stale,
        "planned": summary.counts.planned,
    }


# --------------------------------------------------------------------------------------------------------------- ranks


def _ranks(summary: Summary) -> Words:
    section = summary.ranks
    groups = []
    for group in section.groups:
        drawn = [(m.measure, ranks.chart(group, m)) for m in group.measures]
        groups.append(
            {
                "name": group.name,
                "title": group.title,
                "datasets": ", ".join(short(d) for d in group.datasets),
                "chart": [Chart(c.svg, c.caption) for measure, c in drawn if measure == FIRST and c is not None],
                "withheld": _withheld(group),
                "others": charts(*(c for measure, c in drawn if measure != FIRST)),
                "table": _rank_table(group),
            }
        )
    return {"title": section.title, "question": section.question, "warning": section.warning, "groups": groups}


def _withheld(group: RankGroup) -> str:
    """Why there is no diagram, where there is none."""
    if len(group.datasets) >= ranks.MIN_DATASETS:
        return ""
    return (
        f"No critical-difference diagram: it needs at least {ranks.MIN_DATASETS} data sets to mean anything, and there "
        f"are {len(group.datasets)}."
    )


def _rank_table(group: RankGroup) -> Words:
    """Average ranks and Wilcoxon's p-values, methods by measures, the printed ones below where there are any."""
    listed = group.measures
    return {
        "columns": [f"{m.title} {m.arrow}" for m in listed],
        "rows": [
            {
                "name": name,
                "cells": [_rank_cell(m, name) for m in listed],
                "tests": [_test_cell(m, name) for m in listed],
            }
            for name in listed[0].average_ranks
        ],
        "friedman": [f"{m.friedman['p_value']:.1e}" if m.friedman else "" for m in listed],
        "references": [m.reference for m in listed],
        "printed": any(m.published for m in listed),
    }


def _rank_cell(measure: Ranking, name: str) -> Words:
    rank = measure.average_ranks.get(name)
    printed = measure.published.average_ranks.get(name) if measure.published else None
    best = rank is not None and rank == min(measure.average_ranks.values())
    text = f"{rank:.2f}" if rank is not None else ""
    return _beside(rank, text, printed, ".2f", RANK_TOLERANCE, best)


def _test_cell(measure: Ranking, name: str) -> Words:
    test = measure.wilcoxon.get(name)
    if test is None:
        return {**_beside(None, "reference", None, "", 0.0, False), "note": ""}
    printed = measure.published.wilcoxon.get(name) if measure.published else None
    cell = _beside(test.p_value, f"{test.p_value:.2e}", printed, ".2e", P_TOLERANCE, False)
    return {**cell, "note": f"{test.wins}–{test.ties}–{test.losses}"}


def _beside(value: float | None, text: str, printed: float | None, form: str, tolerance: float, best: bool) -> Words:
    off = printed is not None and value is not None and abs(printed - value) > tolerance
    return {
        "text": text,
        "sort": value,
        "best": best,
        "printed": format(printed, form) if printed is not None else "",
        "off": off,
    }


# -------------------------------------------------------------------------------------------------------------- others


def _worth_showing(summary: Summary) -> list[str]:
    """Rows for the pictures of single instances: the paper's method, the best one, and the baseline."""
    best = [r.name for r in recovered.ordered(summary.headline.recovered.rows) if r.kind == "method"]
    return list(dict.fromkeys(["LCdr", *best[:1], "Temperature"]))


def _shares_on(summary: Summary, dataset: str) -> dict[str, str]:
    return {r.name: c.text for r in summary.shares.rows for c in r.cells if c.dataset == dataset}


def _method(row: MethodInfo) -> Words:
    params = ", ".join(f"{k} = {v}" for k, v in row.params.items())
    return {**asdict(row), "params": params, "cpu": f"{row.cpu_seconds:.1f}", "warnings": distinct(row.warnings)}


def distinct(warnings: Sequence[str]) -> list[str]:
    """Warnings that differ in more than their figures; how many were like each is said."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(re.sub(r"\d[\d.e+-]*", "#", text), []).append(text)
    return [f"{like[0]} (and {len(like) - 1} like it)" if len(like) > 1 else like[0] for like in kinds.values()]


def _provenance(summary: Summary) -> Words:
    found, counts = summary.provenance, summary.counts
    return {
        "runs": [{**asdict(run), "seconds": words.duration(run.seconds)} for run in found.runs],
        "versions": [{"name": k, "version": v} for k, v in found.versions.items()],
        "machine": ", ".join(f"{k} {v}" for k, v in found.machine.items()),
        "seeds": ", ".join(map(str, found.seeds)) or "none",
        "cpu": words.duration(found.cpu_seconds),
        "counts": f"{counts.done} of {counts.planned} table cells done, {counts.failed} failed, "
        f"{counts.pending} not run yet, {counts.stale} from an earlier version of code or parameters",
        "generated": found.generated,
    }

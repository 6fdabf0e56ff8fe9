"""published | measured | verdict: the tables of the report, as plain values.

The layout of a Table, Row and Cell is in `contone.reproduction.report.summary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contone import measures
from contone.experiments.results import Entry, Results
from contone.experiments.spec import Spec
from contone.limits import recovered
from contone.reproduction import paper
from contone.reproduction.paper.counterparts import Counterparts, counterparts
from contone.reproduction.verdicts import CLOSE, verdict

REPORTED = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection")
"""The measures of the tables."""

FULL_TO_SHORT = {full: short for short, full in paper.DATASETS.items()}
Plain = dict[str, Any]


def experiment_tables(spec: Spec, results: Results, measure_names: Sequence[str], published: paper.Table) -> Plain:
    return {
        **heading(spec),
        "tables": [_table(spec, results, name, published.get(name, {})) for name in measure_names],
    }


def heading(spec: Spec) -> Plain:
    return {"name": spec.name, "title": spec.title, "question": spec.question}


def _table(spec: Spec, results: Results, measure_name: str, published: Mapping[str, Mapping[str, float]]) -> Plain:
    """One measure: every row that was asked for, and the paper's figures beside the row that re-runs them."""
    datasets = _with_the_papers(results.datasets(spec.name)) if results.of(spec.name) else []
    names = results.rows(spec.name)
    known = counterparts().get(spec.name, Counterparts())
    beside = {theirs: known.row(theirs, names) for theirs in published}
    kinds = {entry.row: entry.kind for entry in results.of(spec.name)}
    rows = [
        _row(name, kinds[name], spec, results, measure_name, datasets, published, _papers_name(name, beside))
        for name in names
    ]
    rows += [
        _row(theirs, "method", spec, results, measure_name, datasets, published, theirs)
        for theirs, ours in beside.items()
        if ours is None and names
    ]
    mark_best(rows, measures.get(measure_name).greater_is_better)
    _add_means(rows, as_text)
    return {**describe_measure(measure_name), "measure": measure_name, "datasets": datasets, "rows": rows}


def _with_the_papers(datasets: list[str]) -> list[str]:
    """The data sets at hand, and those of the paper that are not, so that its figures can be seen."""
    return datasets + [name for name in paper.DATASETS.values() if name not in datasets]


def _papers_name(name: str, beside: Mapping[str, str | None]) -> str | None:
    return next((theirs for theirs, ours in beside.items() if ours == name), None)


def _row(
    name: str,
    kind: str,
    spec: Spec,
    results: Results,
    measure_name: str,
    datasets: Sequence[str],
    published: Mapping[str, Mapping[str, float]],
    theirs: str | None,
) -> Plain:
    compared_measure = measure_name
    if measure_name == "kl" and theirs is not None:
        compared_measure = paper.KL_CONVENTION.get(theirs.removeprefix("LCdr-"), "kl_reversed_drop")
    cells = []
    for dataset in datasets:
        entry = results.get(spec.name, dataset, name)
        printed = published.get(theirs or "", {}).get(FULL_TO_SHORT.get(dataset, ""))
        cells.append(_cell(entry, dataset, spec, measure_name, compared_measure, printed, theirs, results))
    return {"name": name, "kind": kind, "published_as": theirs, "cells": cells}


def _cell(
    entry: Entry | None,
    dataset: str,
    spec: Spec,
    measure_name: str,
    compared_measure: str,
    printed: float | None,
    theirs: str | None,
    results: Results,
) -> Plain:
    at_hand = dataset in results.datasets(spec.name)
    status = entry.status if entry is not None else ("pending" if at_hand else "no data")
    done = entry is not None and entry.status == "done"
    value = entry.scores.get(measure_name) if entry is not None and done else None
    compared = entry.scores.get(compared_measure) if entry is not None and done else None
    spread = entry.spread.get(measure_name) if entry is not None else None
    judged = None
    if printed is not None:
        reason = {"no data": f"{dataset} is not at hand", "pending": "not run yet", "failed": "the run failed"}.get(
            status, counterparts().get(spec.name, Counterparts()).reasons.get(theirs or "", "")
        )
        wrong = _known_to_be_wrong(spec, results, dataset, measure_name, compared_measure, theirs, printed)
        judged = verdict(
            None if wrong else printed,
            compared,
            greater_is_better=measures.get(measure_name).greater_is_better,
            reason=wrong or reason,
        ).plain()
    return {
        "dataset": dataset,
        "status": status,
        "value": value,
        "text": as_text(value) if done else "",
        "spread": spread,
        "spread_text": f"± {as_text(spread)}" if spread is not None and spread >= 5e-5 else "",
        "seeds": entry.seeds if entry is not None else 0,
        "best": False,
        "published": printed,
        "published_text": as_text(printed),
        "compared": compared,
        "compared_measure": compared_measure,
        "verdict": judged,
    }


def _known_to_be_wrong(
    spec: Spec,
    results: Results,
    dataset: str,
    measure_name: str,
    compared_measure: str,
    theirs: str | None,
    printed: float,
) -> str:
    """Why a published figure cannot be what it says, or nothing: listed, or below the floor."""
    known = counterparts().get(spec.name, Counterparts())
    reason = known.wrong(theirs, measure_name, FULL_TO_SHORT.get(dataset))
    if reason:
        return reason
    floor = results.score(spec.name, dataset, known.floor, compared_measure)
    if floor is not None and printed < (1 - CLOSE) * floor:
        return "the published figure is below what the same learner reaches when it is trained on the truth"
    return ""


def mark_best(rows: list[Plain], greater_is_better: bool) -> None:
    """Mark, on every data set, the best value among the rows that have not seen the truth (ties in print share it)."""
    for position in range(len(rows[0]["cells"]) if rows else 0):
        cells = [r["cells"][position] for r in rows if r["kind"] != "oracle"]
        values = [c["value"] for c in cells if c["value"] is not None and math.isfinite(c["value"])]
        if values:
            best = max(values) if greater_is_better else min(values)
            for cell in cells:
                cell["best"] = cell["value"] is not None and abs(cell["value"] - best) < 5e-5


def _add_means(rows: list[Plain], text: Callable[[float | None], str]) -> None:
    """The mean over the data sets that have results; None for a row without a finite value on each of them."""
    filled = [
        position
        for position in range(len(rows[0]["cells"]) if rows else 0)
        if any(row["cells"][position]["value"] is not None for row in rows)
    ]
    for row in rows:
        values = [row["cells"][position]["value"] for position in filled]
        whole = bool(values) and all(v is not None and math.isfinite(v) for v in values)
        row["mean"] = math.fsum(values) / len(values) if whole else None
        row["mean_text"] = text(row["mean"])


def recovered_table(results: Results) -> Plain:
    """The share of the way from uniform to the limit, in KL(D || D^), for every row and data set."""
    datasets, rows = results.datasets("recovery"), []
    for name in results.rows("recovery"):
        cells: list[Plain] = []
        for dataset in datasets:
            ends = [results.score("recovery", dataset, row, "kl") for row in ("Uniform", "Limit")]
            kl = results.score("recovery", dataset, name, "kl")
            share = None
            if kl is not None and ends[0] is not None and ends[1] is not None:
                share = recovered(kl, ends[0], ends[1])
            cells.append({"dataset": dataset, "value": share, "text": as_percent(share), "best": False})
        kind = next(e.kind for e in results.of("recovery") if e.row == name)
        rows.append({"name": name, "kind": kind, "cells": cells})
    mark_best(rows, greater_is_better=True)
    _add_means(rows, as_percent)
    return {
        "measure": "recovered",
        "title": "Recovered share",
        "formula": "(KL_uniform - KL) / (KL_uniform - KL_limit)",
        "arrow": "↑",
        "greater_is_better": True,
        "datasets": datasets,
        "rows": rows,
    }


def figure(shares: Plain) -> Plain:
    return {
        "datasets": shares["datasets"],
        "rows": [
            {"name": r["name"], "kind": r["kind"], "mean": r["mean"], "values": [c["value"] for c in r["cells"]]}
            for r in shares["rows"]
        ],
    }


def describe_measure(name: str) -> Plain:
    measure = measures.get(name)
    return {
        "name": name,
        "title": measure.title,
        "formula": measure.formula,
        "arrow": measure.arrow,
        "greater_is_better": measure.greater_is_better,
        "in_paper": name in paper.GREATER_IS_BETTER,
    }


def as_text(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4f}" if math.isfinite(value) else ("∞" if value > 0 else "−∞")


def as_percent(share: float | None) -> str:
    if share is None or math.isnan(share):
        return ""
    return f"{round(100 * share)} %".replace("-", "−") if math.isfinite(share) else ("∞" if share > 0 else "−∞")

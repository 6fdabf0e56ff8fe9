"""summary -> the words of the page: everything that the template prints, which computes nothing itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from contone.experiments.store import Store
from contone.reproduction.report.charts import (
    Chart,
    ablation,
    augmentation,
    examples,
    manifold,
    ranks,
    recovered,
    sensitivity,
    short,
)
from contone.reproduction.report.comparison import COMPARED, ENDS, compare, overview, scores, share
from contone.reproduction.report.tables import Plain, as_percent, as_text, mark_best

KINDS = {
    "method": "",
    "baseline": "uses no features",
    "oracle": "has seen the truth, so it cannot be best",
}
Shares = dict[tuple[str, str, str], float | None]
"""Recovered shares by ("share", row, data set)."""

FIRST = "kl"
"""The measure that is shown first: the recovered share is made of it."""


def page(summary: Mapping[str, Any], store: Store) -> Plain:
    """All that the template needs."""
    sections = {name: _experiment(summary, name) for name in COMPARED}
    sections["augmentation"]["charts"] = _charts(augmentation.chart(summary["augmentation"]["bars"]))
    sections["ablation"]["charts"] = _charts(_ablation(summary))
    sections["prediction"]["note"] = (
        f"{summary['prediction']['note']} Truth is the limit here, also of the recovered share."
    )
    view = {
        "title": summary["title"],
        "paper": summary["paper"],
        "generated": summary["provenance"]["generated"],
        "sentences": summary["headline"]["sentences"],
        "headline": _charts(recovered.chart(summary["headline"]["recovered"])),
        "headline_narrow": _charts(recovered.chart(summary["headline"]["recovered"], narrow=True)),
        "missing": _missing(summary),
        "measures": summary["measures"],
        "verdicts": summary["verdicts"],
        "kinds": [{"name": name, "text": text} for name, text in KINDS.items() if text],
        "datasets": [{**d, "labels_per_row": f"{d['labels_per_row']:.2f}"} for d in summary["datasets"]],
        "shares": best_first(matrix(summary["recovery"]["recovered"], {})),
        "sections": sections,
        "ranks": _ranks(summary["ranks"]),
        "sensitivity": _sensitivity(summary["sensitivity"]),
        "examples": _charts(*examples.charts(summary["examples"], _worth_showing(summary))),
        "manifold": manifold.pictures(store, summary["manifold"], _shares_on(summary, "artificial")),
        "errata": [{**e, "table": _plain_table(e["numbers"])} for e in summary["errata"]],
        "rows": [_row(row) for row in summary["rows"]],
        "failures": summary["failures"],
        "provenance": _provenance(summary),
    }
    return {**view, "contents": _contents(view)}


# ------------------------------------------------------------------------------------------------ tables of experiments


def matrix(table: Mapping[str, Any], beside: Mapping[str, Mapping[str, Any]], shares: Shares | None = None) -> Plain:
    """A table as rows by data sets, without the columns and rows in which nothing was measured.

    `beside` are rows of another table of the same measure, shown where this one lacks them; `shares` adds a column.
    """
    added = [row for name, row in beside.items() if name not in {r["name"] for r in table["rows"]}]
    rows = _best_of_all([*table["rows"], *added], table) if added else table["rows"]
    shown = {c["dataset"] for r in table["rows"] for c in r["cells"] if _has_news(c)}
    columns = [d for d in table["datasets"] if d in shown]
    rows = [r for r in rows if any(_has_news(c) for c in r["cells"] if c["dataset"] in shown)]
    return {
        "columns": [{"name": d, "label": short(d)} for d in columns],
        "shares": shares is not None,
        "rows": [
            {
                "name": r["name"],
                "kind": r["kind"],
                "mean": _mean(r, columns),
                "share": _mean_share(r["name"], columns, shares),
                "cells": [_shown(c) for d in columns for c in r["cells"] if c["dataset"] == d],
            }
            for r in rows
        ],
    }


def _best_of_all(rows: Sequence[Mapping[str, Any]], table: Mapping[str, Any]) -> list[Plain]:
    """Rows of two tables as one: the same data sets in the same order, the best marked among all of them."""
    nothing = {"value": None, "text": "", "best": False}
    merged = []
    for row in rows:
        cells = {c["dataset"]: c for c in row["cells"]}
        here = [{**nothing, "dataset": d, **cells.get(d, {})} for d in table["datasets"]]
        elsewhere = [dict(c) for d, c in cells.items() if d not in table["datasets"]]
        merged.append({**row, "cells": here, "elsewhere": elsewhere})
    mark_best(merged, table["greater_is_better"])
    return merged


def best_first(shown: Plain) -> Plain:
    """A matrix of shares with the highest mean on top; rows without a mean last."""
    order = sorted(shown["rows"], key=lambda r: (r["mean"]["sort"] is None, -(r["mean"]["sort"] or 0.0)))
    return {**shown, "rows": order}


def _experiment(summary: Mapping[str, Any], name: str) -> Plain:
    experiment = summary[name]
    own, main = scores(experiment), scores(summary["recovery"])
    comparisons = compare(summary, name)
    beside = {
        t["measure"]: {r["name"]: r for r in t["rows"] if r["name"] in ENDS.values() and name != "prediction"}
        for t in summary["recovery"]["tables"]
    }
    shares = {("share", row, d): share(row, d, own, main) for m, row, d in own if m == FIRST}
    for row in ENDS.values():
        if not any(known == row for _, known, _ in own):
            shares |= {("share", row, d): share(row, d, main, main) for m, r, d in main if (m, r) == (FIRST, row)}
    tables = [
        {
            **{key: table[key] for key in ("measure", "title", "arrow", "formula")},
            "scores": matrix(table, beside.get(table["measure"], {}), shares),
            "comparison": next((_lines(c) for c in comparisons if c["measure"] == table["measure"]), None),
        }
        for table in sorted(experiment["tables"], key=lambda t: t["measure"] != FIRST)
    ]
    return {
        "id": name,
        "title": experiment["title"],
        "question": experiment["question"],
        "overview": overview(comparisons),
        "tables": [t for t in tables if t["scores"]["rows"] and own],
        "empty": not own,
        "charts": [],
        "note": "",
    }


def _lines(comparison: Mapping[str, Any]) -> Plain:
    lines = [{**line, "label": short(line["dataset"])} for line in comparison["lines"]]
    return {**comparison, "lines": lines, "left_out": "; ".join(comparison["left_out"])}


def _has_news(cell: Mapping[str, Any]) -> bool:
    return bool(cell["text"]) or cell.get("status") == "failed"


def _shown(cell: Mapping[str, Any]) -> Plain:
    """A cell as it is printed, and the number that it is sorted by."""
    sort = cell["value"]
    if sort is None and cell["text"] in ("∞", "−∞"):
        sort = 1e300 if cell["text"] == "∞" else -1e300
    text = "failed" if cell.get("status") == "failed" else cell["text"]
    return {"text": text, "sort": sort, "best": cell["best"], "spread": cell.get("spread_text", "")}


def _mean(row: Mapping[str, Any], columns: Sequence[str]) -> Plain:
    """The mean over the shown data sets; none for a row that lacks one of them, which could not be compared."""
    cells = [c for c in row["cells"] if c["dataset"] in columns]
    if not all(c["text"] for c in cells):
        return _number("", None)
    others = [*(c for c in row["cells"] if c["dataset"] not in columns), *row.get("elsewhere", ())]
    if not any(_has_news(c) for c in others):
        return _number(row["mean_text"], row["mean"])
    values = [c["value"] for c in cells if c["value"] is not None]
    mean = sum(values) / len(values) if len(values) == len(columns) else None
    return _number(as_text(mean), mean)


def _mean_share(name: str, columns: Sequence[str], shares: Shares | None) -> Plain:
    known = [(shares or {}).get(("share", name, d)) for d in columns]
    values = [v for v in known if v is not None]
    mean = sum(values) / len(values) if values and len(values) == len(columns) else None
    return _number(as_percent(mean), mean)


def _number(text: str, sort: float | None) -> Plain:
    return {"text": text, "sort": sort, "best": False, "spread": ""}


# ------------------------------------------------------------------------------------------------------- other sections


def _ablation(summary: Mapping[str, Any]) -> Chart | None:
    main = scores(summary["recovery"])
    table = summary["ablation"]["tables"][0]
    uniform = {d: v for (m, row, d), v in main.items() if m == table["measure"] and row == "Uniform"}
    return ablation.chart(table, uniform)


def _ranks(section: Mapping[str, Any]) -> Plain:
    groups = []
    for group in section["groups"]:
        charts = [(m["measure"], ranks.chart(group, m)) for m in group["measures"]]
        groups.append(
            {
                "name": group["name"],
                "title": group["title"],
                "datasets": ", ".join(short(d) for d in group["datasets"]),
                "chart": [{**c, "title": ""} for c in _charts(*(c for m, c in charts if m == FIRST))],
                "others": _charts(*(c for measure, c in charts if measure != FIRST)),
                "table": _rank_table(group),
            }
        )
    return {**{key: section[key] for key in ("title", "question", "warning")}, "groups": groups}


def _rank_table(group: Mapping[str, Any]) -> Plain:
    """Average ranks and Wilcoxon's p-values, methods by measures, the printed ones below where there are any."""
    listed = group["measures"]
    return {
        "columns": [f"{m['title']} {m['arrow']}" for m in listed],
        "rows": [
            {
                "name": name,
                "cells": [_rank_cell(m, name) for m in listed],
                "tests": [_test_cell(m, name) for m in listed],
            }
            for name in listed[0]["average_ranks"]
        ],
        "friedman": [f"{m['friedman']['p_value']:.1e}" if m["friedman"] else "" for m in listed],
        "references": [m["reference"] for m in listed],
        "printed": any(m["published"] for m in listed),
    }


def _rank_cell(measure: Mapping[str, Any], name: str) -> Plain:
    rank = measure["average_ranks"].get(name)
    printed = measure["published"]["average_ranks"].get(name) if measure["published"] else None
    best = rank is not None and rank == min(measure["average_ranks"].values())
    return _beside(rank, f"{rank:.2f}" if rank is not None else "", printed, ".2f", 0.0051, best)


def _test_cell(measure: Mapping[str, Any], name: str) -> Plain:
    test = measure["wilcoxon"].get(name)
    if test is None:
        return {**_beside(None, "reference", None, "", 0.0, False), "note": ""}
    printed = measure["published"]["wilcoxon"].get(name) if measure["published"] else None
    cell = _beside(test["p_value"], f"{test['p_value']:.2e}", printed, ".2e", 1e-6, False)
    return {**cell, "note": f"{test['wins']}–{test['ties']}–{test['losses']}"}


def _beside(value: float | None, text: str, printed: float | None, form: str, room: float, best: bool) -> Plain:
    off = printed is not None and value is not None and abs(printed - value) > room
    return {
        "text": text,
        "sort": value,
        "best": best,
        "printed": format(printed, form) if printed is not None else "",
        "off": off,
    }


def _sensitivity(section: Mapping[str, Any]) -> Plain:
    charts = _charts(*sensitivity.charts(section["curves"], section["symbols"]))
    return {"title": section["title"], "question": section["question"], "charts": charts}


def _worth_showing(summary: Mapping[str, Any]) -> list[str]:
    """Rows for the pictures of single instances: the paper's method, the best one, and the baseline."""
    rows = summary["headline"]["recovered"]["rows"]
    best = [r["name"] for r in recovered.ordered(rows) if r["kind"] == "method" and r["mean"] is not None]
    return list(dict.fromkeys(["LCdr", *best[:1], "Temperature"]))


def _shares_on(summary: Mapping[str, Any], dataset: str) -> dict[str, str]:
    rows = summary["recovery"]["recovered"]["rows"]
    return {r["name"]: c["text"] for r in rows for c in r["cells"] if c["dataset"] == dataset}


# ------------------------------------------------------------------------------------------------------ what was run


def _missing(summary: Mapping[str, Any]) -> Plain:
    counts = summary["counts"]
    absent = [name for name in COMPARED if not scores(summary[name])]
    absent += (
        []
        if any(v is not None for c in summary["sensitivity"]["curves"] for v in c["scores"]["kl"])
        else ["sensitivity"]
    )
    return {
        "datasets": [{"name": n, "why": why} for n, why in summary["missing"]["datasets"].items()],
        "methods": [{"name": n, "why": why} for n, why in summary["missing"]["methods"].items()],
        "experiments": absent,
        "pending": counts["pending"],
        "failed": counts["failed"],
        "stale": counts.get("stale", 0),
        "planned": counts["planned"],
    }


def _row(row: Mapping[str, Any]) -> Plain:
    params = ", ".join(f"{k} = {v}" for k, v in row["params"].items())
    return {**row, "params": params, "cpu": f"{row['cpu_seconds']:.1f}", "warnings": _distinct(row["warnings"])}


def _distinct(warnings: Sequence[str]) -> list[str]:
    """Warnings that differ in more than their figures; how many were like each is said."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(re.sub(r"\d[\d.e+-]*", "#", text), []).append(text)
    return [f"{like[0]} (and {len(like) - 1} like it)" if len(like) > 1 else like[0] for like in kinds.values()]


def _plain_table(numbers: Sequence[Mapping[str, Any]]) -> Plain:
    columns = list(dict.fromkeys(key for record in numbers for key in record))
    return {
        "columns": columns,
        "rows": [[_figure(record.get(column)) for column in columns] for record in numbers],
    }


def _figure(value: Any) -> Plain:
    if isinstance(value, bool) or value is None:
        return {"text": "" if value is None else "yes" if value else "no", "number": False}
    if isinstance(value, float):
        return {"text": f"{value:.4g}" if abs(value) >= 10 or 0 < abs(value) < 1e-3 else as_text(value), "number": True}
    return {"text": str(value), "number": isinstance(value, int)}


def _provenance(summary: Mapping[str, Any]) -> Plain:
    found, counts = summary["provenance"], summary["counts"]
    return {
        "runs": [{**run, "seconds": as_clock(run["seconds"])} for run in found["runs"]],
        "versions": [{"name": k, "version": v} for k, v in found["versions"].items()],
        "machine": ", ".join(f"{k} {v}" for k, v in found["machine"].items()),
        "seeds": ", ".join(map(str, found["seeds"])) or "none",
        "cpu": as_clock(found["cpu_seconds"]),
        "counts": f"{counts['done']} of {counts['planned']} table cells done, {counts['failed']} failed, "
        f"{counts['pending']} not run yet, {counts.get('stale', 0)} from an earlier version of code or parameters",
        "generated": found["generated"],
    }


def as_clock(seconds: float | None) -> str:
    """A duration for people.

    Examples
    --------
    >>> as_clock(3.4), as_clock(75), as_clock(4000), as_clock(None)
    ('3 s', '1 min 15 s', '1 h 06 min', '')
    """
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    )


def _contents(view: Mapping[str, Any]) -> list[Plain]:
    entries = [
        ("summary", "Summary"),
        *((s["id"], s["title"]) for s in [view["sections"]["recovery"]]),
        ("ranks", view["ranks"]["title"]),
        *((name, view["sections"][name]["title"]) for name in ("augmentation", "ablation")),
        ("sensitivity", view["sensitivity"]["title"]),
        ("prediction", view["sections"]["prediction"]["title"]),
        ("examples", "Single instances"),
        ("manifold", "The manifold"),
        ("errata", "Errata"),
        ("rows", "Methods and settings"),
        ("failures", "Failures"),
        ("provenance", "Provenance"),
    ]
    return [{"id": name, "title": title} for name, title in entries]


def _charts(*charts: Chart | None) -> list[Plain]:
    return [asdict(chart) for chart in charts if chart is not None]

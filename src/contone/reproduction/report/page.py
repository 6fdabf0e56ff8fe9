"""summary -> the words of the page: everything that the template prints, which computes nothing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contone.experiments.report import view
from contone.experiments.report.matrix import ENDS, scores
from contone.experiments.report.view import Words
from contone.experiments.store import Store
from contone.pages import html, words
from contone.pages.svg import Chart
from contone.reproduction.report.charts import ablation, augmentation, sensitivity
from contone.reproduction.report.comparison import compare, overview
from contone.reproduction.report.schema import COMPARED, PaperSummary


def document(summary: PaperSummary, store: Store) -> str:
    """The page as one file."""
    packages = ("contone.reproduction.report", "contone.experiments.report")
    return html.render("report.html.j2", packages, **page(summary, store))


def page(summary: PaperSummary, store: Store) -> Words:
    """All that the template needs."""
    sections = {name: _experiment(summary, name) for name in COMPARED}
    sections["augmentation"]["charts"] = view.charts(augmentation.chart(summary.bars))
    sections["ablation"]["charts"] = view.charts(_ablation(summary))
    sections["prediction"]["note"] = f"{summary.prediction_note} It is the limit here, also of the recovered share."
    found = {
        **view.common(summary, store),
        "verdicts": summary.verdicts,
        "sections": sections,
        "sensitivity": _sensitivity(summary),
        "errata": [{"of": e, "table": _plain_table(e.numbers)} for e in summary.errata],
        "set_note": (
            "spoem, alpha, spo5, cdc, cold, diau, dtt, elu, heat and spo are the ten Yeast sets: the same genes and "
            "features, other labels."
        ),
    }
    found["missing"]["experiments"] = _without_results(summary)
    return {**found, "contents": _contents(found)}


def _experiment(summary: PaperSummary, name: str) -> Words:
    section = summary.section(name)
    own, main = scores(section), scores(summary.recovery)
    comparisons = compare(summary, name)
    beside = {
        t.measure: {r.name: r for r in t.rows if r.name in ENDS.values() and name != "prediction"}
        for t in summary.recovery.tables
    }
    shares = view.shares_in(summary) if name == "recovery" else view.shares_of(own, main)
    tables = view.score_tables(section, beside, shares) if own else []
    lines = {c.measure: c for c in comparisons}
    return {
        "id": name,
        "title": section.title,
        "question": section.question,
        "overview": overview(comparisons),
        "tables": [replace(t, comparison=lines.get(t.measure)) for t in tables],
        "empty": not own,
        "charts": [],
        "note": "",
    }


def _ablation(summary: PaperSummary) -> Chart | None:
    table = summary.ablation.tables[0]
    main = scores(summary.recovery)
    uniform = {d: v for (m, row, d), v in main.items() if m == table.measure and row == "Uniform"}
    return ablation.chart(table, uniform)


def _sensitivity(summary: PaperSummary) -> Words:
    found = summary.sensitivity
    drawn = view.charts(*sensitivity.charts(found.curves, found.symbols))
    return {"title": found.title, "question": found.question, "charts": drawn}


def _without_results(summary: PaperSummary) -> list[str]:
    absent = [name for name in COMPARED if not scores(summary.section(name))]
    curves = summary.sensitivity.curves
    return absent if any(v is not None for c in curves for v in c.scores["kl"]) else [*absent, "sensitivity"]


def _plain_table(numbers: Sequence[Mapping[str, Any]]) -> Words:
    columns = list(dict.fromkeys(key for record in numbers for key in record))
    return {
        "columns": columns,
        "rows": [[_figure(record.get(column)) for column in columns] for record in numbers],
    }


def _figure(value: Any) -> Words:
    if isinstance(value, bool) or value is None:
        return {"text": "" if value is None else "yes" if value else "no", "number": False}
    if isinstance(value, float):
        extreme = abs(value) >= 10 or 0 < abs(value) < 1e-3
        return {"text": f"{value:.4g}" if extreme else words.number(value), "number": True}
    return {"text": str(value), "number": isinstance(value, int)}


def _contents(found: Mapping[str, Any]) -> list[Words]:
    sections = found["sections"]
    entries = [
        ("summary", "Summary"),
        ("recovery", sections["recovery"]["title"]),
        ("ranks", found["ranks"]["title"]),
        ("augmentation", sections["augmentation"]["title"]),
        ("ablation", sections["ablation"]["title"]),
        ("sensitivity", found["sensitivity"]["title"]),
        ("prediction", sections["prediction"]["title"]),
        ("examples", "Single instances"),
        ("manifold", "The manifold"),
        ("errata", "Errata"),
        ("rows", "Methods and settings"),
        ("failures", "Failures"),
        ("provenance", "Provenance"),
    ]
    return [{"id": name, "title": title} for name, title in entries]

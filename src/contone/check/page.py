"""A `Check` as a page of its own: one file, everything inside it."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Any

from contone.check.findings import Check, Finding, RowSummary
from contone.pages import html, svg, words
from contone.pages.svg import Chart
from contone.runtime.files import replacing

MOST_LABELS = 200
"""Labels that the table of degrees shows."""
ASSUMES = {
    "CumulativeMass": "Marked are a row's largest labels, just as many as are needed for that share of its weight.",
    "Threshold": "Marked are the labels of a row whose weight passes the bar, and the largest one where none does.",
    "TopK": "Marked is the same number of labels in every row, the largest ones.",
    "Order": "Marked labels have more weight than the others; how much more, the labels do not say.",
}
"""What each rule assumes, by its class."""


def document(check: Check, source: str = "The data") -> str:
    """The page as one text."""
    import contone

    kept = sorted(check.labels, key=lambda label: -label.degree)[:MOST_LABELS]
    widest = max((label.degree for label in kept), default=1.0) or 1.0
    return html.render(
        "check.html.j2",
        ("contone.check",),
        title=f"Can these degrees be believed? {words.clip(source, 60)}",
        source=source,
        generated=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        contents=[
            {"id": "summary", "title": "In short"},
            {"id": "checks", "title": "Checks"},
            {"id": "labels", "title": "Degrees by label"},
            {"id": "ambiguous", "title": "Ambiguous rows"},
            {"id": "doubtful", "title": "Doubtful labels"},
            {"id": "pairs", "title": "Labels together"},
        ],
        n_rows=f"{check.n_rows:,}",
        n_checked=f"{check.n_checked:,}",
        n_labels=len(check.labels),
        sampled=check.n_checked < check.n_rows,
        headline=check.headline(),
        assumption=_assumption(check),
        advice=list(check.advice),
        findings=[
            {"title": f.title, "verdict": f.verdict, "sentence": f.sentence, "charts": _charts(f)}
            for f in check.findings
        ],
        labels=[
            {
                "name": label.name,
                **{k: getattr(label, k) for k in ("frequency", "degree", "lower", "upper")},
                **{f"{k}_text": f"{100 * getattr(label, k):.1f} %" for k in ("frequency", "degree", "lower", "upper")},
                "width": f"{6 * label.degree / widest:.2f}",
            }
            for label in kept
        ],
        labels_left=len(check.labels) - len(kept),
        ambiguous=[_row(r) for r in check.ambiguous],
        doubtful=[_row(r) for r in check.doubtful],
        pairs=[{"first": a, "second": b, "value": v, "text": f"{v:+.2f}".replace("-", "−")} for a, b, v in check.pairs],
        versions=f"contone {contone.__version__}, Python {platform.python_version()}",
    )


def write(check: Check, path: str | os.PathLike[str], source: str = "The data", *, overwrite: bool = True) -> Path:
    """Write the page, whole or not at all."""
    text = document(check, source)
    with replacing(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def _assumption(check: Check) -> str:
    name = check.rule.partition("(")[0]
    return f"The rule is {check.rule}. {ASSUMES.get(name, '')}".strip()


def _row(row: RowSummary) -> dict[str, Any]:
    marked = ", ".join(row.marked[:12]) + (f" and {len(row.marked) - 12} more" if len(row.marked) > 12 else "")
    degrees = ", ".join(f"{name} {100 * value:.0f} %" for name, value in row.degrees)
    return {"row": row.row, "score": row.score, "score_text": f"{row.score:.3g}", "marked": marked, "degrees": degrees}


def _charts(finding: Finding) -> list[Chart]:
    """Dots for what was observed, bars for what was expected; nothing where there is nothing to draw."""
    if not finding.observed:
        return []
    names = words.clip_all(list(finding.categories), 30 if finding.lower else 52)
    places = list(range(len(names)))
    sideways = max(map(len, names)) > (6 if len(names) > 4 else 14)
    with svg.style():
        drawing = svg.canvas(6.0, 0.55 + 0.2 * len(names) if sideways else 2.0)
        axis = drawing.subplots()
        if sideways:
            places = places[::-1]
            if finding.lower:
                axis.hlines(places, finding.lower, finding.upper, color=svg.LINE, linewidth=6)
            axis.plot(finding.observed, places, "o", color=svg.ACCENT, markersize=4.5)
            axis.set_yticks(places, names)
            axis.set_xlabel(finding.axis)
            svg.bare(axis, "left")
        else:
            if finding.lower:
                axis.vlines(places, finding.lower, finding.upper, color=svg.LINE, linewidth=9)
            axis.plot(places, finding.observed, "o", color=svg.ACCENT, markersize=4.5)
            axis.set_xticks(places, names)
            axis.set_ylabel(finding.axis)
            svg.bare(axis, "bottom")
        if not finding.lower:
            (axis.set_xlim if sideways else axis.set_ylim)(0.0, 1.0)
        drawn = svg.to_svg(drawing, f"check-{finding.name}", finding.title, _words(finding))
    return [Chart(drawn)]


def _words(finding: Finding) -> str:
    bands = zip(finding.lower, finding.upper, strict=True) if finding.lower else [None] * len(finding.observed)
    parts = [
        f"{name}: {value:.3g}" + (f" (expected {band[0]:.3g} to {band[1]:.3g})" if band else "")
        for name, value, band in zip(finding.categories, finding.observed, bands, strict=True)
    ]
    return f"{finding.sentence} {'; '.join(parts)}."

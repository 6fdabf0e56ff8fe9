"""A `Check` as a page of its own: one file, everything inside it."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contone.pages import html, svg, words
from contone.pages.svg import Chart
from contone.runtime.files import replacing
from contone.trust.check_result import MODEL, Check, DoubtfulEntry, Finding, RowSummary
from contone.typing import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS = 200
"""Labels that the table of degrees shows."""
ENDS = ("frequency", "degree", "lower", "upper")
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
        ("contone.trust",),
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
        sampled=_sampled(check),
        method=check.method,
        is_model=check.method == MODEL,
        has_intervals=any(label.lower is not None for label in check.labels),
        not_checked=list(check.not_checked),
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
                **{k: getattr(label, k) for k in ENDS},
                **{f"{k}_text": _percent(getattr(label, k)) for k in ENDS},
                "width": f"{6 * label.degree / widest:.2f}",
            }
            for label in kept
        ],
        labels_left=len(check.labels) - len(kept),
        ambiguous=[_row(r) for r in check.ambiguous],
        doubtful=[_entry(e) for e in check.doubtful],
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
    assumed = ASSUMES.get(check.rule.partition("(")[0], "")
    if "at_least_one=False" in check.rule:
        assumed = "Marked are the labels of a row whose weight passes the bar; a row where none does has no label."
    rule = f"The rule is {check.rule}. {assumed}".strip()
    if check.method == MODEL:
        return rule
    return f"{check.method} assumes no rule; it is compared with Inversion's model of the same rows. {rule}"


def _sampled(check: Check) -> str:
    """Which rows the page is about, where it is not all of them."""
    looked = f"{check.n_checked:,} rows drawn at random"
    if check.n_fitted is not None:
        among = f"; this page looks at {looked} among these" if check.n_checked < check.n_fitted else ""
        return f"; the method was fitted to a sample of {check.n_fitted:,} rows{among or ', which this page is about'}"
    return f"; this page looks at {looked}" if check.n_checked < check.n_rows else ""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _row(row: RowSummary) -> Record:
    return {"row": row.row, "score": row.score, "score_text": f"{row.score:.3g}", **_described(row)}


def _entry(entry: DoubtfulEntry) -> Record:
    return {
        "row": entry.row,
        "label": entry.label,
        "given": "marked" if entry.given else "not marked",
        "score": entry.probability,
        "score_text": f"{100 * entry.probability:.0f} %",
        **_described(entry),
    }


def _described(row: RowSummary | DoubtfulEntry) -> dict[str, str]:
    marked = ", ".join(row.marked[:12]) + (f" and {len(row.marked) - 12} more" if len(row.marked) > 12 else "")
    degrees = ", ".join(f"{name} {100 * value:.0f} %" for name, value in row.degrees)
    return {"marked": marked, "degrees": degrees}


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
            _dots(axis, finding.observed, places)
            axis.set_yticks(places, names)
            axis.set_xlabel(finding.axis)
            svg.bare(axis, "left")
        else:
            if finding.lower:
                axis.vlines(places, finding.lower, finding.upper, color=svg.LINE, linewidth=9)
            _dots(axis, places, finding.observed)
            axis.set_xticks(places, names)
            axis.set_ylabel(finding.axis)
            svg.bare(axis, "bottom")
        if not finding.lower:
            is_share = finding.axis.startswith(("share", "weight"))
            end = 1.0 if is_share else 1.1 * max(finding.observed) or 1.0
            (axis.set_xlim if sideways else axis.set_ylim)(0.0, end)
        told = _told(finding)
        tips = {f"dot-{k}": text for k, text in enumerate(told)}
        description = f"{finding.sentence} {'; '.join(told)}."
        drawn = svg.to_svg(drawing, f"check-{finding.name}", finding.title, description, tips)
    return [Chart(drawn)]


def _dots(axis: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """One artist each, so that each can be pointed at."""
    for k, place in enumerate(zip(x, y, strict=True)):
        axis.plot(*([value] for value in place), "o", color=svg.ACCENT, markersize=4.5, clip_on=False, gid=f"dot-{k}")


def _told(finding: Finding) -> list[str]:
    """Each category with what was observed and what was expected, in words."""
    bands = zip(finding.lower, finding.upper, strict=True) if finding.lower else [None] * len(finding.observed)
    return [
        f"{name}: {value:.3g}" + (f" (expected {band[0]:.3g} to {band[1]:.3g})" if band else "")
        for name, value, band in zip(finding.categories, finding.observed, bands, strict=True)
    ]

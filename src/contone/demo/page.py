"""The demonstration's files: a page, the picture, the scores.

`summarise` and the functions below make plain values; the template only prints them.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contone.datasets import Dataset
from contone.demo.run import Outcome, shares
from contone.exceptions import OutputError
from contone.measures import MEASURES, Measure
from contone.pages import html, words
from contone.pages.figures import Panel, manifold_grid, manifold_image, save, tones
from contone.runtime.files import replacing


def summarise(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One plain record per outcome: the closest to the truth (in KL) first, then failures, then oracles.

    `best` lists the measures in which it won; oracles, which have seen the truth, win nothing.
    """
    share = shares({o.name: o for o in outcomes})
    winners = {name: _best(measure, outcomes) for name, measure in MEASURES.items()}
    ordered = sorted(outcomes, key=lambda o: (o.kind == "oracle", bool(o.error), o.scores.get("kl", math.inf), o.name))
    return [
        {
            "name": o.name,
            "title": o.title,
            "kind": o.kind,
            "scores": o.scores,
            "recovered": share.get(o.name),
            "seconds": o.seconds,
            "notes": list(o.notes),
            "error": o.error,
            "best": [name for name, winner in winners.items() if winner == o.name],
        }
        for o in ordered
    ]


def write(folder: Path, data: Dataset, L: np.ndarray, outcomes: Sequence[Outcome], command: str) -> dict[str, Path]:
    """Write page, picture and scores into the folder; their paths by what they are."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot make the folder {folder}: {error.strerror}. Choose another one.") from error
    records = summarise(outcomes)
    answers = {o.name: o.distributions for o in outcomes if o.distributions is not None and o.kind != "oracle"}
    panels = [Panel("Truth", tones(data.D, data.D)), Panel("Given: 0/1 labels", tones(L / L.sum(1)[:, None], data.D))]
    panels += [
        Panel(_heading(r), tones(answers[r["name"]], data.D), _caption(r)) for r in records if r["name"] in answers
    ]
    paths = {
        "page": folder / "index.html",
        "picture": folder / "manifold.png",
        "vector picture": folder / "manifold.svg",
        "scores": folder / "scores.csv",
        "scores for programs": folder / "scores.json",
    }
    figure = manifold_grid(data.X, panels)
    save(figure, paths["picture"])
    save(figure, paths["vector picture"])
    _write_text(paths["scores"], _as_csv(records))
    _write_text(paths["scores for programs"], json.dumps(without_infinities(records), indent=2))
    _write_text(paths["page"], _page(data, panels, records, command))
    return paths


def without_infinities(value: Any) -> Any:
    """Plain values for JSON, which knows neither infinity nor NaN: infinity becomes text, NaN becomes null."""
    if isinstance(value, Mapping):
        return {k: without_infinities(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _best(measure: Measure, outcomes: Sequence[Outcome]) -> str:
    scored = [o for o in outcomes if o.scores and o.kind != "oracle"]
    sign = -1.0 if measure.greater_is_better else 1.0
    return min(scored, key=lambda o: sign * o.scores[measure.name]).name if scored else ""


def _heading(record: Mapping[str, Any]) -> str:
    return f"{record['title']} (baseline)" if record["kind"] == "baseline" else str(record["title"])


def _caption(record: Mapping[str, Any]) -> str:
    share = record["recovered"]
    kl = f"KL {words.number(record['scores']['kl'])}"
    return kl if share is None or not math.isfinite(share) else f"{kl}, {words.percent(share)} recovered"


def _page(data: Dataset, panels: Sequence[Panel], records: Sequence[dict[str, Any]], command: str) -> str:
    import contone

    pictures = [
        {
            "title": p.title,
            "caption": p.caption,
            "source": f"data:image/png;base64,{base64.b64encode(manifold_image(data.X, p.colours)).decode()}",
            "alt": f"The surface coloured by its label degrees: {p.title}. {p.caption}".strip(),
        }
        for p in panels
    ]
    return html.render(
        "demo.html.j2",
        ("contone.demo",),
        title="From yes/no labels back to their tones",
        about=data.about,
        n=f"{len(data.X):,}",
        citation=data.citation,
        measures=list(MEASURES.values()),
        columns=len(MEASURES) + 1,
        rows=[_row(r) for r in records],
        pictures=pictures,
        verdict=_verdict(records),
        command=command,
        versions=f"contone {contone.__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    )


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as the words of a table row."""
    share = record["recovered"]
    return {
        "title": record["title"],
        "kind": record["kind"],
        "error": record["error"],
        "notes": record["notes"],
        "cells": [
            {"text": words.number(record["scores"][m]), "best": m in record["best"]}
            for m in MEASURES
            if record["scores"]
        ],
        "recovered": words.percent(share),
        "seconds": f"{record['seconds']:.2f} s",
    }


def _verdict(records: Sequence[Mapping[str, Any]]) -> str:
    """What the table says, in a sentence or two."""
    scored = [r for r in records if r["scores"] and r["kind"] != "oracle"]
    if not scored:
        return "No method gave an answer."
    best = scored[0]
    first = next((r for r in scored if r["kind"] == "baseline"), None)
    said = f"{best['title']} comes closest to the truth in KL ({best['scores']['kl']:.4f})"
    if first is None:
        return f"{said}."
    if best is first:
        return f"{said}: a baseline, which uses no features."
    behind = [r["title"] for r in scored[scored.index(first) :] if r["kind"] == "method"]
    said += f". The best baseline, which uses no features, is {first['title']} ({first['scores']['kl']:.4f})"
    return f"{said}; it is ahead of {', '.join(behind)}." if behind else f"{said}; every method is ahead of it."


def _as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["method", "kind", *MEASURES, "recovered", "seconds", "error"])
    for r in records:
        scores = [r["scores"].get(m, "") for m in MEASURES]
        share = "" if r["recovered"] is None else r["recovered"]
        writer.writerow([r["name"], r["kind"], *scores, share, round(r["seconds"], 4), r["error"]])
    return buffer.getvalue()


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")

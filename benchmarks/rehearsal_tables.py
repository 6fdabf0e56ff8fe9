"""What the cells of `rehearsal.py` say: its summary, and the tables of docs/fair-comparison.md."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from contone.limits import recovered

HERE = Path(__file__).parent
RESULTS = HERE / "results"
YEAST = ["spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo"]
SETS = ["SJAFFE", *(f"Yeast_{name}" for name in YEAST), "Movie"]
TUNED = ["Temperature", "GLLE", "LESC", "LP", "KM", "FCM", "LEMLL", "LCdr"]
GRADED_SETS, GRADED_METHODS = ["Yeast_dtt", "Yeast_cold", "Yeast_heat"], ["Temperature", "GLLE", "LP"]
"""Where ten graded rows are measured, too: sets whose spread is largely that of its prior, and fast methods."""
LABEL_SETS = ["SJAFFE", "Yeast_spoem", "Yeast_alpha", "Yeast_spo", "Movie"]
LABEL_METHODS = ["GLLE", "LEMLL"]
"""Where and for which inductive methods cross-validation of the labels is measured, too."""


def share(record: dict, stem: str, which: str) -> float:
    """Recovered share of a cell; the limit is that of all rows of the set, relative to the uniform distribution."""
    whole = ends()[stem]
    limit = record["uniform"] * whole["kl_limit"] / whole["kl_uniform"]
    return recovered(record[which], record["uniform"], limit)


@lru_cache(maxsize=1)
def ends() -> dict[str, dict]:
    found: dict[str, dict] = json.loads((RESULTS / "inversion.json").read_text())["sets"]
    return found


def summarise(cells: dict[str, dict]) -> dict:
    """The figures that a rehearsal is judged by."""
    spearman, graded, ratios = {}, {}, []
    for key, cell in cells.items():
        place, _, what = key.rpartition("/")
        if not what.startswith("order"):
            continue
        rows = {n: (r["rehearsed"], r["true"]) for n, r in cell["methods"].items() if not r["error"]}
        rows = {n: pair for n, pair in rows.items() if None not in (*pair[0], pair[1])}
        expected, true = [float(np.mean(r)) for r, _ in rows.values()], [t for _, t in rows.values()]
        rho = float(spearmanr(expected, true).statistic)
        if what != "order":
            graded[place] = rho
            continue
        spearman[place] = rho
        ratios += [max(e / t, t / e) for e, t in zip(expected, true, strict=True)]
    gaps: dict[str, dict[str, list[float]]] = {}
    for key, cell in cells.items():
        stem, _, what = key.split("/")
        if not what.startswith("order") and "~" not in what:
            gap = share(cell, stem, "oracle") - share(cell, stem, "rehearsed")
            gaps.setdefault(what, {}).setdefault(stem, []).append(gap)
    means = {name: {stem: float(np.mean(g)) for stem, g in rows.items()} for name, rows in gaps.items()}
    return {
        "cells": len(cells),
        "seeds": len({key.split("/")[1] for key in cells}),
        "spearman_median": float(np.median(list(spearman.values()))) if spearman else None,
        "spearman_least": min(spearman.values(), default=None),
        "kl_factor_median": float(np.median(ratios)) if ratios else None,
        "gap_mean": {name: float(np.mean(list(g.values()))) for name, g in means.items()},
        "gaps_over_10": {name: {s: v for s, v in g.items() if v > 0.10} for name, g in means.items()},
        "spearman": spearman,
        "spearman_graded": graded,
        "gaps": means,
    }


def mean_over_seeds(cells: dict[str, dict], stem: str, what: str, which: str) -> float | None:
    found = [share(c, stem, which) for k, c in cells.items() if k.startswith(f"{stem}/") and k.endswith(f"/{what}")]
    return float(np.mean(found)) if found else None


def shares_text(cells: dict[str, dict], stem: str, what: str) -> str:
    means = [mean_over_seeds(cells, stem, what, which) for which in ("default", "rehearsed", "oracle")]
    return " / ".join(f"{100 * m:.0f}" for m in means if m is not None)


def table(cells: dict[str, dict]) -> str:
    """Recovered shares in per cent, default / rehearsed / oracle, means over seeds; one row per set."""
    summary = summarise(cells)
    names = [name for name in TUNED if name in summary["gaps"]]
    lines = [f"| set | Spearman | {' | '.join(names)} | Inversion |", "|---" * (len(names) + 3) + "|"]
    for stem in [stem for stem in SETS if any(key.startswith(f"{stem}/") for key in cells)]:
        rho = [v for k, v in summary["spearman"].items() if k.startswith(f"{stem}/")]
        orders = [c for k, c in cells.items() if k.startswith(f"{stem}/") and k.endswith("/order")]
        own = [share({**c, "own": c["methods"]["Inversion"]["true"]}, stem, "own") for c in orders]
        row = [f"{np.mean(rho):.2f}" if rho else "", *(shares_text(cells, stem, name) for name in names)]
        row.append(f"{100 * np.mean(own):.0f}" if own else "")
        lines.append(f"| {stem.removeprefix('Yeast_')} | {' | '.join(row)} |")
    gaps = [f"{100 * summary['gap_mean'][name]:.1f}" for name in names]
    lines.append(f"| behind the oracle, mean | | {' | '.join(gaps)} | |")
    return "\n".join(lines)


def means_table(cells: dict[str, dict]) -> str:
    """Methods by their mean recovered share over sets with rehearsed parameters, the best first."""
    sets = [stem for stem in SETS if all(mean_over_seeds(cells, stem, name, "oracle") is not None for name in TUNED)]
    means = {
        name: {
            which: [m for stem in sets if (m := mean_over_seeds(cells, stem, name, which)) is not None]
            for which in ("default", "rehearsed", "oracle")
        }
        for name in TUNED
    }
    plain = means["Temperature"]["rehearsed"]
    lines = [
        "| method | default | rehearsed | oracle | sets on which it is a point ahead of Temperature |",
        "|---" * 5 + "|",
    ]
    for name in sorted(TUNED, key=lambda name: -float(np.mean(means[name]["rehearsed"]))):
        shown = " | ".join(f"{100 * np.mean(means[name][which]):.0f}" for which in ("default", "rehearsed", "oracle"))
        ahead = sum(own > other + 0.01 for own, other in zip(means[name]["rehearsed"], plain, strict=True))
        lines.append(f"| {name} | {shown} | {'' if name == 'Temperature' else f'{ahead} of {len(sets)}'} |")
    return "\n".join(lines)


def graded_table(cells: dict[str, dict]) -> str:
    """What ten graded rows change: the spread as the model has it, and points behind the oracle."""
    lines = [
        "| set | true spread | spread, no row graded | ten rows graded | behind the oracle, none / ten "
        "| Spearman, each seed, none / ten |",
        "|---" * 6 + "|",
    ]
    found = summarise(cells)
    for stem in GRADED_SETS:
        rows = []
        for suffix in ("", "+10"):
            rows.append([c for k, c in cells.items() for n in GRADED_METHODS
                         if k.startswith(f"{stem}/") and k.endswith(f"/{n}{suffix}")])  # fmt: skip
        if not all(rows):
            continue
        spreads = [
            f"{np.mean([c['spread'] for c in r]):.3f} ± {np.mean([c['spread_deviation'] for c in r]):.3f}" for r in rows
        ]
        behind = [np.mean([share(c, stem, "oracle") - share(c, stem, "rehearsed") for c in r]) for r in rows]
        true = np.mean([c["true_spread"] for c in rows[0]])
        orders = [
            ", ".join(f"{rho:.2f}" for place, rho in found[which].items() if place.startswith(f"{stem}/"))
            for which in ("spearman", "spearman_graded")
        ]
        lines.append(
            f"| {stem.removeprefix('Yeast_')} | {true:.3f} | {spreads[0]} | {spreads[1]} "
            f"| {100 * behind[0]:.1f} / {100 * behind[1]:.1f} | {' / '.join(orders)} |"
        )
    return "\n".join(lines)


def labels_table(cells: dict[str, dict]) -> str:
    """Recovered shares in per cent, means over seeds: parameters by held-out labels, by a rehearsal, by the truth."""
    names = ["default", "labels", "rehearsed", "oracle", "labels_tempered"]
    heads = "default | by held-out labels | rehearsed | oracle | by held-out labels, rehearsed temperature"
    lines = [f"| method, set | {heads} |", "|---" * 6 + "|"]
    for name in LABEL_METHODS:
        for stem in LABEL_SETS:
            means = [mean_over_seeds(cells, stem, f"{name}~cv", which) for which in names]
            if None not in means:
                shown = " | ".join(f"{100 * m:.0f}" for m in means if m is not None)
                lines.append(f"| {name}, {stem.removeprefix('Yeast_')} | {shown} |")
    return "\n".join(lines)


def seeds_text(cells: dict[str, dict]) -> str:
    """How many seeds a cell of the table has: the same number everywhere, or from the fewest to the most."""
    seen = Counter((stem, what) for stem, _, what in (key.split("/") for key in cells))
    fewest, most = min(seen.values(), default=0), max(seen.values(), default=0)
    if fewest < most:
        return f"{fewest} to {most} seeds per cell"
    return "1 seed" if most == 1 else f"{most} seeds"


def page_text(cells: dict[str, dict]) -> str:
    found = summarise(cells)
    behind = [
        f"{name} on {stem.removeprefix('Yeast_')} ({100 * gap:.0f})"
        for name, gaps in found["gaps_over_10"].items()
        for stem, gap in gaps.items()
        if "+" not in name
    ]
    seeds = seeds_text(cells)
    lines = [
        table(cells),
        "",
        f"{seeds}. Spearman: median {found['spearman_median']:.2f}, least {found['spearman_least']:.2f}. "
        f"Expected KL against the actual, over methods, sets and seeds: a factor of {found['kl_factor_median']:.2f} in "
        f"the median. More than ten points behind the oracle: {', '.join(sorted(behind)) or 'none'}.",
        "",
        means_table(cells),
    ]
    for title, found_table in (
        ("Ten graded rows, means over " + ", ".join(GRADED_METHODS) + ":", graded_table(cells)),
        ("Parameters alone, no temperature on the answer but in the last column:", labels_table(cells)),
    ):
        if found_table.count("\n") > 1:
            lines += ["", title, "", found_table]
    return "\n".join(lines)


def fill(cells: dict[str, dict]) -> None:
    """Put the numbers into docs/fair-comparison.md, between its markers."""
    page = HERE.parent / "docs" / "fair-comparison.md"
    before, rest = page.read_text().split("<!-- numbers -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    page.write_text(before + "<!-- numbers -->\n" + page_text(cells) + "\n<!-- end -->" + after)


def plain(value: Any) -> Any:
    """For JSON: six digits, and null for what is not finite."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def read(path: Path) -> dict[str, dict]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {record.pop("key"): record for record in map(json.loads, lines)}

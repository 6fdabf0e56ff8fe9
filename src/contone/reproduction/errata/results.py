"""Errata that need our results beside the paper's tables."""

from __future__ import annotations

from statistics import median

from contone.reproduction import paper
from contone.reproduction.errata.evidence import Check, Found, Results
from contone.reproduction.verdicts import ROUNDING
from contone.typing import Record

OURS = {"kl": "kl_reversed_drop"}
"""The paper's reading of a measure, where it is not ours."""


def lcdr_is_uniform(results: Results) -> Found | None:
    """The printed row of LCdr is the uniform distribution's."""
    table = paper.recovery()
    rows: list[Record] = []
    for measure in paper.GREATER_IS_BETTER:
        uniform = results.get(OURS.get(measure, measure), {}).get("Uniform", {})
        for d in (d for d in paper.YEAST if d in uniform):
            printed, share = table[measure]["LCdr"][d], uniform[d]
            row = {"measure": measure, "dataset": d, "printed LCdr": printed, "uniform": share}
            rows.append({**row, "difference %": 100 * abs(printed - share) / share})
    if not rows:
        return None
    off = [r["difference %"] for r in rows if r["measure"] in ("chebyshev", "clark", "canberra")]
    sets = len({r["dataset"] for r in rows})
    return Found(max(off) < 4.0, rows, {"sets": sets, "worst": max(off), "median": median(off)})


def lp_alpha(results: Results) -> Found | None:
    """The printed row of LP needs alpha = 0.1, not the 0.01 that is stated."""
    table = paper.recovery()
    rows: list[Record] = []
    for row, alpha in (("LP (paper)", 0.1), ("LP (alpha as printed)", 0.01)):
        off = []
        for measure in paper.GREATER_IS_BETTER:
            found = results.get("kl_reversed_clip" if measure == "kl" else measure, {}).get(row, {})
            off += [abs(found[d] - table[measure]["LP"][d]) for d in paper.YEAST if d in found]
        if not off:
            return None
        equal = sum(value < ROUNDING for value in off)
        rows.append({"alpha": alpha, "equal cells": equal, "of": len(off), "largest difference": max(off)})
    (equal, of), (stated, of_stated) = ((r["equal cells"], r["of"]) for r in rows)
    said = {"equal": equal, "of": of, "rounding": ROUNDING, "stated": stated}
    return Found(equal > 0.9 * of and stated < 0.2 * of_stated, rows, said)


def mixed_kl(results: Results) -> Found | None:
    """Which reading of KL fits each printed row: the conventions are mixed within one table."""
    table = paper.recovery()["kl"]
    rows: list[Record] = []
    for m, row in {"LCdr": "Uniform", "LP": "LP (paper)"}.items():
        fits = {}
        for convention in ("kl_forward", "kl_reversed_drop", "kl_reversed_clip"):
            found = results.get(convention, {}).get(row, {})
            off = [abs(table[m][d] - found[d]) / found[d] for d in paper.YEAST if d in found]
            if off:
                fits[convention] = 100 * median(off)
        if not fits:
            return None
        best = min(fits, key=fits.__getitem__)
        rows.append({"printed row": m, "our row": row, "fits": best, **{f"{k} off by %": v for k, v in fits.items()}})
    listed = "; ".join(f"{r['printed row']}'s figures fit {r['fits']}" for r in rows)
    return Found(len({r["fits"] for r in rows}) == 2, rows, {"listed": listed})


def below_the_floor(results: Results) -> Found | None:
    """Cells of the prediction table below what the best learner trained on the true distributions reaches."""
    rows: list[Record] = []
    for measure, table in paper.prediction().items():
        floor = results.get(f"prediction:{OURS.get(measure, measure)}", {}).get("Floor less its error", {})
        rows += [
            {"measure": measure, "method": m, "dataset": d, "printed": printed, "floor": floor[d]}
            for m in paper.METHODS
            for d, printed in table[m].items()
            if d in floor and printed < floor[d]
        ]
    if not rows:
        return None
    return Found(True, rows, {"n": len(rows), **min(rows, key=lambda r: r["printed"] / r["floor"])})


CHECKS: dict[str, Check] = {
    "uniform": lcdr_is_uniform,
    "lp-alpha": lp_alpha,
    "mixed-kl": mixed_kl,
    "below-the-floor": below_the_floor,
}
"""By the id of their words."""

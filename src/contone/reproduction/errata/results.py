"""Errata that need our results beside the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from contone.reproduction import paper
from contone.reproduction.errata.evidence import Evidence
from contone.reproduction.verdicts import ROUNDING
from contone.typing import Record

Results = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Our scores: ``results[measure][row][dataset]``, data sets by the paper's short names."""


def lcdr_is_uniform(results: Results) -> Evidence | None:
    """The printed row of LCdr is the uniform distribution's."""
    table = paper.recovery()
    rows: list[Record] = []
    ours = {"kl": "kl_reversed_drop"}
    for measure in paper.GREATER_IS_BETTER:
        uniform = results.get(ours.get(measure, measure), {}).get("Uniform", {})
        for d in paper.YEAST:
            if d in uniform:
                printed = table[measure]["LCdr"][d]
                rows.append(
                    {
                        "measure": measure,
                        "dataset": d,
                        "printed LCdr": printed,
                        "uniform": uniform[d],
                        "difference %": 100 * abs(printed - uniform[d]) / uniform[d],
                    }
                )
    if not rows:
        return None
    lengths = [r for r in rows if r["measure"] in ("chebyshev", "clark", "canberra")]
    worst = max(lengths, key=lambda r: r["difference %"])
    return Evidence(
        "uniform",
        "The published row of LCdr is the uniform distribution",
        "LCdr recovers label distributions better than the compared methods.",
        f"On {len({r['dataset'] for r in rows})} Yeast sets the constant answer 1/q scores within "
        f"{worst['difference %']:.1f} % of the printed LCdr row in Chebyshev, Clark and Canberra (median "
        f"{median([r['difference %'] for r in lengths]):.2f} %): it has learnt next to nothing from the data.",
        "recovery.csv and our Uniform row",
        worst["difference %"] < 4.0,
        rows,
    )


def below_the_floor(results: Results) -> Evidence | None:
    """Cells of the prediction table below what the best learner trained on the true distributions reaches."""
    table = paper.prediction()
    rows: list[Record] = []
    ours = {"kl": "kl_reversed_drop"}
    for measure in table:
        floor = results.get(f"prediction:{ours.get(measure, measure)}", {}).get("Floor less its error", {})
        for m in paper.METHODS:
            for d, printed in table[measure][m].items():
                if d in floor and printed < floor[d]:
                    rows.append({"measure": measure, "method": m, "dataset": d, "printed": printed, "floor": floor[d]})
    if not any("Floor less its error" in table for table in results.values()):
        return None
    worst = min(rows, key=lambda r: r["printed"] / r["floor"], default=None)
    return Evidence(
        "below-the-floor",
        "Predictions better than a model trained on the truth",
        "Scores of IIS-LDL trained on recovered distributions, on unseen rows.",
        "No cell lies below the floor."
        if worst is None
        else f"{len(rows)} cells lie below what the best of several learners reaches when it is trained on the true "
        "distributions, by more than its error; "
        f"the furthest is {worst['method']} on {worst['dataset']}, {worst['measure']} {worst['printed']} against "
        f"{worst['floor']:.4f} at the least. They cannot have been measured against the truth.",
        "prediction.csv and our learners trained on the truth",
        bool(rows),
        rows,
    )


def mixed_kl(results: Results) -> Evidence | None:
    """Which reading of KL fits each printed row: the conventions are mixed within one table."""
    table = paper.recovery()
    rows: list[Record] = []
    rows_of_ours = {"LCdr": "Uniform", "LP": "LP (paper)"}
    for m, row in rows_of_ours.items():
        fits = {}
        for convention in ("kl_forward", "kl_reversed_drop", "kl_reversed_clip"):
            found = results.get(convention, {}).get(row, {})
            shared = [d for d in paper.YEAST if d in found]
            if shared:
                off = [abs(table["kl"][m][d] - found[d]) / found[d] for d in shared]
                fits[convention] = 100 * median(off)
        if fits:
            best = min(fits, key=fits.__getitem__)
            rows.append(
                {"printed row": m, "our row": row, "fits": best, **{f"{k} off by %": v for k, v in fits.items()}}
            )
    if len(rows) < len(rows_of_ours):
        return None
    return Evidence(
        "mixed-kl",
        "Two readings of KL in one table, and neither is the printed formula",
        "KL = sum d ln(d / d^), the truth first.",
        "; ".join(f"{r['printed row']}'s figures fit {r['fits']}" for r in rows)
        + ". The printed formula is kl_forward.",
        "recovery.csv and our rows",
        len({r["fits"] for r in rows}) == 2,
        rows,
    )


def lp_alpha(results: Results) -> Evidence | None:
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
    return Evidence(
        "lp-alpha",
        "LP was run with alpha = 0.1, not 0.01",
        "LP: alpha = 0.01.",
        f"With alpha = 0.1, {rows[0]['equal cells']} of {rows[0]['of']} printed figures come out to the last digit "
        f"(within {ROUNDING:g}); with the alpha that is stated, {rows[1]['equal cells']} do.",
        "recovery.csv and our LP rows",
        rows[0]["equal cells"] > 0.9 * rows[0]["of"] and rows[1]["equal cells"] < 0.2 * rows[1]["of"],
        rows,
    )


RESULT_CHECKS: tuple[Callable[[Results], Evidence | None], ...] = (lcdr_is_uniform, lp_alpha, mixed_kl, below_the_floor)
"""Errata that need our results; None where they are missing."""

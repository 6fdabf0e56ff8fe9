"""What the paper's own tables say against its text: every point recomputed, as `Evidence`.

Each check takes nothing but the tables in `contone.reproduction.paper`; the last four also our scores. Its words are in
errata.toml. ``holds`` says whether the computation bears the erratum out; the tests ask that it does.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import NamedTuple

from contone.experiments import statistics
from contone.experiments.store import Results
from contone.reproduction import paper
from contone.reproduction.published import MAIN, ROUNDING, bound
from contone.typing import Record

SAME_PRINT = 5e-5
"""Half a unit of the fourth printed decimal: closer values are equal in print."""

OURS = {"kl": "kl_reversed_drop"}
"""The paper's reading of a measure, where it is not ours."""


@dataclass(frozen=True)
class Evidence:
    """One inconsistency of the paper.

    Attributes
    ----------
    id : str
        A short name.
    title : str
        The finding in a few words.
    claim : str
        What the paper says or prints.
    finding : str
        What the computation shows, with its figures.
    numbers : list of dict
        The figures, one row each.
    source : str
        What it was computed from.
    holds : bool
        Whether the computation bears the erratum out.
    """

    id: str
    title: str
    claim: str
    finding: str
    source: str
    holds: bool
    numbers: list[Record]


class Found(NamedTuple):
    """What a check computed: whether it bears the erratum out, its figures, and what the words of the finding ask."""

    holds: bool
    numbers: list[Record]
    said: Record


Check = Callable[[Results], Found | None]
"""None where the results that it needs are missing, or there is nothing to report."""


def errata(ours: Results) -> tuple[Evidence, ...]:
    """Every erratum, in the order of errata.toml; those that need our results are left out where these are missing."""
    words = tomllib.loads(files("contone.reproduction.errata").joinpath("errata.toml").read_text("utf-8"))
    found = {identity: CHECKS[identity](ours) for identity in words}
    return tuple(
        Evidence(identity, text["title"], text["claim"], text["finding"].format(**one.said), text["source"], *one[:2])
        for (identity, text), one in zip(words.items(), found.values(), strict=True)
        if one is not None
    )


# ------------------------------------------------------------------------------------------- the printed tables alone


def wrong_measure(_: Results) -> Found:
    """The half of the augmentation table headed Chebyshev holds Clark."""
    printed, main = paper.augmentation()["clark"], paper.recovery()
    equal = {
        measure: sum(_same(printed[m][d], main[measure][m][d]) for m in paper.COMPARED for d in paper.DATASETS)
        for measure in ("chebyshev", "clark")
    }
    of = len(paper.COMPARED) * len(paper.DATASETS)
    rows: list[Record] = [{"measure of the main table": m, "equal cells": n, "of": of} for m, n in equal.items()]
    return Found(equal["clark"] > 0.8 * of and equal["chebyshev"] == 0, rows, {**equal, "of": of})


def permuted_rows(_: Results) -> Found:
    """Nine row names of the augmentation table are permuted, in both halves."""
    printed, main = paper.augmentation(as_printed=True), paper.recovery()
    halves = [(half, measure, m) for half, measure in paper.PRINTED_MEASURES.items() for m in paper.COMPARED]
    rows: list[Record] = []
    for name in paper.DATASETS:
        matches = {
            candidate: sum(_same(printed[half][m][name], main[measure][m][candidate]) for half, measure, m in halves)
            for candidate in paper.DATASETS
        }
        best = max(matches, key=matches.__getitem__)
        rows.append(
            {"printed": name, "really": best, "equal cells": matches[best], "under its own name": matches[name]}
        )
    moved = [row for row in rows if row["printed"] != row["really"]]
    least, most = min(r["equal cells"] for r in moved), max(r["under its own name"] for r in moved)
    holds = {row["printed"]: row["really"] for row in rows} == paper.PRINTED_ROWS
    return Found(holds, rows, {"moved": len(moved), "least": least, "most": most})


def base_values_differ(_: Results) -> Found:
    """With names and measure put right, some base values still differ between the two tables."""
    main = paper.recovery()
    rows: list[Record] = [
        {"measure": measure, "method": m, "dataset": d, "main table": main[measure][m][d], "augmentation": row[m][d]}
        for measure, row in paper.augmentation().items()
        for d in paper.DATASETS
        for m in paper.COMPARED
        if not _same(row[m][d], main[measure][m][d])
    ]
    return Found(bool(rows), rows, {"n": len(rows), "sets": ", ".join(sorted({r["dataset"] for r in rows}))})


def augmented_beats_lcdr(_: Results) -> Found:
    """Other methods behind the augmentation are better than LCdr itself."""
    corrected, main = paper.augmentation(), paper.recovery()

    def ahead(method: str, measure: str) -> int:
        theirs, own = corrected[measure][method], main[measure]["LCdr"]
        return sum(theirs[d] < own[d] - SAME_PRINT for d in paper.DATASETS)

    rows: list[Record] = [
        {"method": m, "sets ahead in Clark": ahead(m, "clark"), "sets ahead in KL": ahead(m, "kl")}
        for m in (f"LCdr-{m}" for m in paper.COMPARED)
    ]
    best = max(rows, key=lambda row: row["sets ahead in Clark"])
    theirs, own = corrected["clark"]["LCdr-LP"]["spoem"], main["clark"]["LCdr"]["spoem"]
    said = {"method": best["method"], "ahead": best["sets ahead in Clark"], "theirs": theirs, "own": own}
    return Found(theirs < own, rows, said)


def tie_counted_as_win(_: Results) -> Found | None:
    """The share of improved GLLE cells counts a tie."""
    table = paper.augmentation(as_printed=True)
    pairs: list[Record] = [
        {"half": half, "row": d, "alone": table[half]["GLLE"][d], "augmented": table[half]["LCdr-GLLE"][d]}
        for half in table
        for d in paper.DATASETS
    ]
    better = sum(p["augmented"] < p["alone"] for p in pairs)
    ties = [p for p in pairs if p["augmented"] == p["alone"]]
    losses = [p for p in pairs if p["augmented"] > p["alone"]]
    if not ties:
        return None
    said = {"better": better, "of": len(pairs), "share": 100 * better / len(pairs), "ties": len(ties)}
    said |= {"value": ties[0]["alone"], "row": ties[0]["row"], "worse": len(losses)}
    counted = 100 * (better + len(ties)) / len(pairs)
    return Found(math.isclose(counted, paper.CLAIMS["augmentation_glle"], abs_tol=0.01), ties + losses, said)


def ablation_contradictions(_: Results) -> Found:
    """The ablation table against the main table and against its own text."""
    table, main = paper.ablation()["chebyshev"], paper.recovery()["chebyshev"]["LCdr"]
    full = table["LF+LC"]
    found = [
        ("full model differs from the main table", d, v, main[d]) for d, v in full.items() if not _same(v, main[d])
    ]
    found += [
        (f"{variant} is better than the full model", d, v, full[d])
        for variant in ("X+LC", "LF+L", "X+L")
        for d, v in table[variant].items()
        if v < full[d] - SAME_PRINT
    ]
    second, first = sorted(table[variant]["flickr"] for variant in table)[-2:]
    found.append(("X+L is far from all others", "flickr", first, second))
    rows: list[Record] = [dict(zip(("what", "dataset", "ablation", "other"), one, strict=True)) for one in found]
    listed = "; ".join(f"{d}: {what} ({value:.4f} against {other:.4f})" for what, d, value, other in found)
    return Found(len(rows) >= 3, rows, {"listed": listed})


def not_all_wins(_: Results) -> Found:
    """LCdr is not better in all cases."""
    rows: list[Record] = []
    for measure, greater in paper.GREATER_IS_BETTER.items():
        table = paper.recovery()[measure]
        for m in paper.COMPARED:
            for d in paper.DATASETS:
                ours, other = table["LCdr"][d], table[m][d]
                if ours == other or (other > ours) == greater:
                    rows.append({"measure": measure, "dataset": d, "method": m, "LCdr": ours, "other": other})
    listed = (f"{r['measure']} on {r['dataset']}, {r['method']} {r['other']} against {r['LCdr']}" for r in rows)
    return Found(bool(rows), rows, {"n": len(rows), "listed": "; ".join(listed)})


def printed_statistics(_: Results) -> Found:
    """Average ranks and p-values recomputed: one tie is treated as if it were none."""
    rows: list[Record] = []
    for measure, greater in paper.GREATER_IS_BETTER.items():
        table = paper.recovery()[measure]
        computed = {
            "rank": statistics.average_ranks(table, greater_is_better=greater),
            "p": {
                m: statistics.wilcoxon(table["LCdr"], table[m], greater_is_better=greater).p_value
                for m in paper.COMPARED
            },
        }
        printed = {"rank": (paper.average_ranks(), 0.0051), "p": (paper.wilcoxon(), 5e-7)}
        rows += [
            {"what": what, "measure": measure, "method": m, "printed": value, "computed": computed[what][m]}
            for what, (figures, tolerance) in printed.items()
            for m, value in figures[measure].items()
            if abs(computed[what][m] - value) > tolerance
        ]
    affected = {(row["measure"], row["method"]) for row in rows}
    listed = (f"{r['what']} of {r['method']} is {r['computed']:.3g}, printed {r['printed']:.3g}" for r in rows)
    return Found(affected == {("cosine", "LCdr"), ("cosine", "GLLE")}, rows, {"listed": "; ".join(listed)})


def prediction_shares(_: Results) -> Found:
    """The shares of wins in the prediction table."""
    table = paper.prediction()
    cells = [(measure, d) for measure in table for d in paper.DATASETS]
    first = sum(all(table[q]["LCdr"][d] < table[q][m][d] for m in paper.COMPARED) for q, d in cells)
    wins = {m: sum(table[q]["LCdr"][d] < table[q][m][d] for q, d in cells) for m in paper.COMPARED}
    claimed = {"first": (paper.CLAIMS["prediction_first"], first)}
    claimed |= {f"better than {m}": (printed, wins[m]) for m, printed in paper.CLAIMS["prediction_wins"].items()}
    rows: list[Record] = [
        {"what": what, "printed %": printed, "computed %": 100 * n / len(cells)}
        for what, (printed, n) in claimed.items()
    ]
    wrong = [row for row in rows if abs(row["printed %"] - row["computed %"]) > 0.01]
    listed = "; ".join(f"{r['what']}: {r['computed %']:.2f} %, printed {r['printed %']} %" for r in wrong[1:])
    said = {"first": first, "of": len(cells), "computed": rows[0]["computed %"], "printed": rows[0]["printed %"]}
    return Found(len(wrong) >= 4, rows, {**said, "listed": listed})


def repeated_cells(_: Results) -> Found:
    """Canberra equal to Clark: possible only where a single label differs."""
    clark, canberra = (paper.prediction()[measure] for measure in ("clark", "canberra"))
    rows: list[Record] = [
        {"method": m, "dataset": d, "clark": clark[m][d], "canberra": canberra[m][d]}
        for m in paper.METHODS
        for d in paper.DATASETS
        if _same(clark[m][d], canberra[m][d])
    ]
    holds = {(r["method"], r["dataset"]) for r in rows} == {("ML2", "alpha"), ("ML2", "cdc")}
    listed = (f"{r['method']} on {r['dataset']}: {r['canberra']} in both" for r in rows)
    return Found(holds, rows, {"listed": "; ".join(listed)})


def number_of_labels(_: Results) -> Found:
    """Canberra <= sqrt(q) Clark gives a lower bound on q: heat has more than five labels."""
    clark, canberra = (paper.recovery()[measure] for measure in ("clark", "canberra"))
    rows: list[Record] = []
    for d, printed in paper.PRINTED_LABELS.items():
        ratio, m = max((canberra[m][d] / clark[m][d], m) for m in paper.METHODS)
        # Both are rounded to four decimals; the bound uses the ends that favour the printed number.
        low = (canberra[m][d] - SAME_PRINT) / (clark[m][d] + SAME_PRINT)
        rows.append({"dataset": d, "method": m, "ratio": ratio, "q at least": math.ceil(low**2), "printed q": printed})
    wrong = [row for row in rows if row["q at least"] > row["printed q"]]
    listed = (
        f"{r['method']} on {r['dataset']} has the ratio {r['ratio']:.3f} > sqrt {r['printed q']}, so q is at least "
        f"{r['q at least']}"
        for r in wrong
    )
    return Found([row["dataset"] for row in wrong] == ["heat"], rows, {"listed": "; ".join(listed)})


def _same(a: float, b: float) -> bool:
    return abs(a - b) < SAME_PRINT


# ------------------------------------------------------------------------------------------------- with our results


def _on_yeast(results: Results, row: str, measure: str) -> dict[str, float]:
    """Our scores on the Yeast sets that were run, by the paper's names."""
    found = {d: results.score(MAIN, paper.DATASETS[d], row, measure) for d in paper.YEAST}
    return {d: score for d, score in found.items() if score is not None}


def lcdr_is_uniform(results: Results) -> Found | None:
    """The printed row of LCdr is the uniform distribution's."""
    table = paper.recovery()
    rows: list[Record] = []
    for measure in paper.GREATER_IS_BETTER:
        for d, share in _on_yeast(results, "Uniform", OURS.get(measure, measure)).items():
            printed = table[measure]["LCdr"][d]
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
            found = _on_yeast(results, row, "kl_reversed_clip" if measure == "kl" else measure)
            off += [abs(score - table[measure]["LP"][d]) for d, score in found.items()]
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
            off = [abs(table[m][d] - v) / v for d, v in _on_yeast(results, row, convention).items()]
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
    floor = paper.counterparts()["prediction"].floor
    for measure, table in paper.prediction().items():
        for d, dataset in paper.DATASETS.items():
            least = bound(results, "prediction", dataset, floor, OURS.get(measure, measure))
            for m in paper.METHODS:
                if least is not None and table[m][d] < least:
                    row = {"measure": measure, "method": m, "dataset": d}
                    rows.append({**row, "printed": table[m][d], "floor": least})
    if not rows:
        return None
    return Found(True, rows, {"n": len(rows), **min(rows, key=lambda r: r["printed"] / r["floor"])})


CHECKS: dict[str, Check] = {
    "augmentation-measure": wrong_measure,
    "augmentation-rows": permuted_rows,
    "augmentation-base": base_values_differ,
    "not-the-best": augmented_beats_lcdr,
    "glle-share": tie_counted_as_win,
    "ablation": ablation_contradictions,
    "not-all-wins": not_all_wins,
    "tie": printed_statistics,
    "prediction-shares": prediction_shares,
    "copied-cells": repeated_cells,
    "labels-of-heat": number_of_labels,
    "uniform": lcdr_is_uniform,
    "lp-alpha": lp_alpha,
    "mixed-kl": mixed_kl,
    "below-the-floor": below_the_floor,
}
"""By the id of their words; those that need our results last."""

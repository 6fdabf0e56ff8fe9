"""What the paper's own tables say against its text: every point recomputed, as `Evidence`.

Each check takes nothing but the tables in `contone.reproduction.paper`; the last four also our scores. Its words are in
errata.toml. ``holds`` says whether the computation bears the erratum out; the tests ask that it does.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from contone.experiments import statistics
from contone.experiments.store import Results
from contone.reproduction import paper
from contone.reproduction.published import MAIN, ROUNDING, bound
from contone.runtime.files import packaged_toml
from contone.typing import Record

SAME_PRINT = 5e-5
"""Half a unit of the fourth printed decimal: closer values are equal in print."""

WORDS = packaged_toml("contone.reproduction.errata", "errata.toml")
"""Title, claim, finding and source by id; the check of an id is the function of that name."""


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
    return tuple(
        Evidence(identity, text["title"], text["claim"], text["finding"].format(**one.said), text["source"], *one[:2])
        for identity, text in WORDS.items()
        if (one := CHECKS[identity](ours)) is not None
    )


# ------------------------------------------------------------------------------------------- the printed tables alone


def augmentation_measure(_: Results) -> Found:
    """The half of the augmentation table headed Chebyshev holds Clark."""
    main, alone = paper.recovery(), [c for c in _alone(paper.augmentation()) if c.measure == "clark"]
    equal = {q: sum(_same(c.value, main[q][c.method][c.dataset]) for c in alone) for q in ("chebyshev", "clark")}
    rows: list[Record] = [
        {"measure of the main table": measure, "equal cells": n, "of": len(alone)} for measure, n in equal.items()
    ]
    return Found(equal["clark"] > 0.8 * len(alone) and not equal["chebyshev"], rows, {**equal, "of": len(alone)})


def augmentation_rows(_: Results) -> Found:
    """Nine row names of the augmentation table are permuted, in both halves."""
    printed, main = list(_alone(paper.augmentation(as_printed=True))), paper.recovery()
    rows: list[Record] = []
    for name in paper.DATASETS:
        mine = [(c.value, main[paper.PRINTED_MEASURES[c.measure]][c.method]) for c in printed if c.dataset == name]
        equal = {other: sum(_same(value, row[other]) for value, row in mine) for other in paper.DATASETS}
        best = max(equal, key=equal.__getitem__)
        rows.append({"printed": name, "really": best, "equal cells": equal[best], "under its own name": equal[name]})
    moved = [row for row in rows if row["printed"] != row["really"]]
    least, most = min(r["equal cells"] for r in moved), max(r["under its own name"] for r in moved)
    holds = {row["printed"]: row["really"] for row in rows} == paper.PRINTED_ROWS
    return Found(holds, rows, {"moved": len(moved), "least": least, "most": most})


def augmentation_base(_: Results) -> Found:
    """With names and measure put right, some base values still differ between the two tables."""
    main = paper.recovery()
    rows: list[Record] = [
        {"measure": q, "method": m, "dataset": d, "main table": main[q][m][d], "augmentation": value}
        for q, m, d, value in _alone(paper.augmentation())
        if not _same(value, main[q][m][d])
    ]
    return Found(bool(rows), rows, {"n": len(rows), "sets": ", ".join(sorted({r["dataset"] for r in rows}))})


def not_the_best(_: Results) -> Found:
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


def glle_share(_: Results) -> Found:
    """The share of improved GLLE cells counts a tie."""
    table = paper.augmentation(as_printed=True)
    pairs: list[Record] = [
        {"half": half, "row": d, "alone": alone, "augmented": table[half]["LCdr-GLLE"][d]}
        for half, m, d, alone in paper.cells(table)
        if m == "GLLE"
    ]
    ties = [p for p in pairs if p["augmented"] == p["alone"]]
    losses = [p for p in pairs if p["augmented"] > p["alone"]]
    better = len(pairs) - len(ties) - len(losses)
    said = {"better": better, "of": len(pairs), "share": 100 * better / len(pairs), "ties": len(ties)}
    said |= {"value": ties[0]["alone"], "row": ties[0]["row"], "worse": len(losses)}
    counted = 100 * (better + len(ties)) / len(pairs)
    return Found(math.isclose(counted, paper.CLAIMS["augmentation_glle"], abs_tol=0.01), ties + losses, said)


def ablation(_: Results) -> Found:
    """The ablation table against the main table and against its own text."""
    table, main = paper.ablation()["chebyshev"], paper.recovery()["chebyshev"]["LCdr"]
    full = table["LF+LC"]
    off, better = "full model differs from the main table", "is better than the full model"
    found = [(off, d, v, main[d]) for d, v in full.items() if not _same(v, main[d])]
    ahead = (c for c in paper.cells({"chebyshev": table}) if c.value < full[c.dataset] - SAME_PRINT)
    found += [(f"{c.method} {better}", c.dataset, c.value, full[c.dataset]) for c in ahead]
    second, first = sorted(table[variant]["flickr"] for variant in table)[-2:]
    found.append(("X+L is far from all others", "flickr", first, second))
    rows: list[Record] = [dict(zip(("what", "dataset", "ablation", "other"), one, strict=True)) for one in found]
    listed = "; ".join(f"{d}: {what} ({value:.4f} against {other:.4f})" for what, d, value, other in found)
    return Found(len(rows) >= 3, rows, {"listed": listed})


def not_all_wins(_: Results) -> Found:
    """LCdr is not better in all cases."""
    table = paper.recovery()
    rows: list[Record] = [
        {"measure": q, "dataset": d, "method": m, "LCdr": ours, "other": other}
        for q, m, d, other in _alone(table)
        if (ours := table[q]["LCdr"][d]) == other or (other > ours) == paper.GREATER_IS_BETTER[q]
    ]
    listed = (f"{r['measure']} on {r['dataset']}, {r['method']} {r['other']} against {r['LCdr']}" for r in rows)
    return Found(bool(rows), rows, {"n": len(rows), "listed": "; ".join(listed)})


def tie(_: Results) -> Found:
    """Average ranks and p-values recomputed: one tie is treated as if it were none."""
    rows: list[Record] = []
    for measure, greater in paper.GREATER_IS_BETTER.items():
        ranking = statistics.rank(paper.recovery()[measure], "LCdr", greater_is_better=greater)
        tests = {m: test.p_value for m, test in ranking.wilcoxon.items()}
        pairs = (("rank", ranking.average_ranks, paper.average_ranks(), 0.0051), ("p", tests, paper.wilcoxon(), 5e-7))
        rows += [
            {"what": what, "measure": measure, "method": m, "printed": value, "computed": computed[m]}
            for what, computed, printed, tolerance in pairs
            for m, value in printed[measure].items()
            if abs(computed[m] - value) > tolerance
        ]
    affected = {(row["measure"], row["method"]) for row in rows}
    listed = (f"{r['what']} of {r['method']} is {r['computed']:.3g}, printed {r['printed']:.3g}" for r in rows)
    return Found(affected == {("cosine", "LCdr"), ("cosine", "GLLE")}, rows, {"listed": "; ".join(listed)})


def prediction_shares(_: Results) -> Found:
    """The shares of wins in the prediction table."""
    table = paper.prediction()
    cells = [(table[q], d) for q in table for d in paper.DATASETS]
    claims = {"first": (paper.CLAIMS["prediction_first"], paper.COMPARED)}
    claims |= {f"better than {m}": (printed, (m,)) for m, printed in paper.CLAIMS["prediction_wins"].items()}
    rows: list[Record] = []
    for what, (printed, others) in claims.items():
        wins = sum(all(scores["LCdr"][d] < scores[m][d] for m in others) for scores, d in cells)
        rows.append({"what": what, "printed %": printed, "computed %": 100 * wins / len(cells)})
    wrong = [row for row in rows if abs(row["printed %"] - row["computed %"]) > 0.01]
    listed = "; ".join(f"{r['what']}: {r['computed %']:.2f} %, printed {r['printed %']} %" for r in wrong[1:])
    computed = rows[0]["computed %"]
    said = {"first": round(computed * len(cells) / 100), "of": len(cells), "computed": computed}
    return Found(len(wrong) >= 4, rows, {**said, "printed": rows[0]["printed %"], "listed": listed})


def copied_cells(_: Results) -> Found:
    """Canberra equal to Clark: possible only where a single label differs."""
    table = paper.prediction()
    rows: list[Record] = [
        {"method": m, "dataset": d, "clark": clark, "canberra": table["canberra"][m][d]}
        for q, m, d, clark in paper.cells(table)
        if q == "clark" and _same(clark, table["canberra"][m][d])
    ]
    holds = {(r["method"], r["dataset"]) for r in rows} == {("ML2", "alpha"), ("ML2", "cdc")}
    listed = (f"{r['method']} on {r['dataset']}: {r['canberra']} in both" for r in rows)
    return Found(holds, rows, {"listed": "; ".join(listed)})


def labels_of_heat(_: Results) -> Found:
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


def _alone(table: paper.Table) -> Iterator[paper.Printed]:
    """The cells of the methods that LCdr is compared with, not augmented."""
    return (cell for cell in paper.cells(table) if cell.method in paper.COMPARED)


# ------------------------------------------------------------------------------------------------- with our results


def _beside(results: Results, method: str, row: str, kl: str) -> list[tuple[paper.Printed, float]]:
    """The printed cells of a method on the Yeast sets that were run, and our row's scores in this reading of KL."""
    cells = (c for c in paper.cells(paper.recovery()) if c.method == method and c.dataset in paper.YEAST)
    readings = ((c, kl if c.measure == "kl" else c.measure) for c in cells)
    found = ((c, results.score(MAIN, paper.DATASETS[c.dataset], row, reading)) for c, reading in readings)
    return [(c, score) for c, score in found if score is not None]


def uniform(results: Results) -> Found | None:
    """The printed row of LCdr is the uniform distribution's."""
    rows: list[Record] = []
    for c, ours in _beside(results, "LCdr", "Uniform", "kl_reversed_drop"):
        row = {"measure": c.measure, "dataset": c.dataset, "printed LCdr": c.value, "uniform": ours}
        rows.append({**row, "difference %": 100 * abs(c.value - ours) / ours})
    if not rows:
        return None
    off = [r["difference %"] for r in rows if r["measure"] in ("chebyshev", "clark", "canberra")]
    sets = len({r["dataset"] for r in rows})
    return Found(max(off) < 4.0, rows, {"sets": sets, "worst": max(off), "median": median(off)})


def lp_alpha(results: Results) -> Found | None:
    """The printed row of LP needs alpha = 0.1, not the 0.01 that is stated."""
    rows: list[Record] = []
    for row, alpha in (("LP (paper)", 0.1), ("LP (alpha as printed)", 0.01)):
        off = [abs(ours - c.value) for c, ours in _beside(results, "LP", row, "kl_reversed_clip")]
        if not off:
            return None
        equal = sum(value < ROUNDING for value in off)
        rows.append({"alpha": alpha, "equal cells": equal, "of": len(off), "largest difference": max(off)})
    (equal, of), (stated, of_stated) = ((r["equal cells"], r["of"]) for r in rows)
    said = {"equal": equal, "of": of, "rounding": ROUNDING, "stated": stated}
    return Found(equal > 0.9 * of and stated < 0.2 * of_stated, rows, said)


def mixed_kl(results: Results) -> Found | None:
    """Which reading of KL fits each printed row: the conventions are mixed within one table."""
    rows: list[Record] = []
    for method, row in {"LCdr": "Uniform", "LP": "LP (paper)"}.items():
        fits = {}
        for convention in ("kl_forward", "kl_reversed_drop", "kl_reversed_clip"):
            beside = _beside(results, method, row, convention)
            off = [abs(c.value - ours) / ours for c, ours in beside if c.measure == "kl"]
            if not off:
                return None
            fits[convention] = 100 * median(off)
        best, shown = min(fits, key=fits.__getitem__), {f"{k} off by %": v for k, v in fits.items()}
        rows.append({"printed row": method, "our row": row, "fits": best, **shown})
    listed = "; ".join(f"{r['printed row']}'s figures fit {r['fits']}" for r in rows)
    return Found(len({r["fits"] for r in rows}) == 2, rows, {"listed": listed})


def below_the_floor(results: Results) -> Found | None:
    """Cells of the prediction table below what the best learner trained on the true distributions reaches."""
    floor, rows = paper.counterparts()["prediction"].floor, list[Record]()
    for q, m, d, value in paper.cells(paper.prediction()):
        reading = "kl_reversed_drop" if q == "kl" else q
        least = bound(results, "prediction", paper.DATASETS[d], floor, reading)
        if least is not None and value < least:
            rows.append({"measure": q, "method": m, "dataset": d, "printed": value, "floor": least})
    if not rows:
        return None
    return Found(True, rows, {"n": len(rows), **min(rows, key=lambda r: r["printed"] / r["floor"])})


CHECKS: dict[str, Check] = {identity: globals()[identity.replace("-", "_")] for identity in WORDS}
"""By the id of their words; those that need our results last."""

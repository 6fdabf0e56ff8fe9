"""What the cells of `pays.py` say: paired differences with intervals, as a table and a figure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from contone.runtime.files import replacing

RESULTS = Path(__file__).parent / "results"
BASELINES = {"finding": "cleanlab, forest", "annotators": "vote shares"}
"""What every other arm is compared with; 0/1 labels elsewhere."""
LESS_IS_BETTER = {"kl", "tv", "rloss", "brier", "ece"}
SHOWN = {"kl": "KL", "tv": "total variation", "lrap": "average precision", "rloss": "ranking loss", "brier": "Brier",
         "ece": "calibration error", "precision": "precision at k", "row_precision": "precision at k, rows",
         "at_50": "precision at 50", "flagged, forest": "precision, as many rows as the filter flags (forest)",
         "flagged, linear": "precision, as many rows as the filter flags (linear)"}  # fmt: skip


PAGE = Path(__file__).parents[1] / "docs" / "when-it-pays.md"
TOLD = [
    ("distributions of new rows: degrees against 0/1", "distributions", "", "kl", "degrees"),
    ("the same, total variation", "distributions", "", "tv", "degrees"),
    ("the same, trained on the truth (the end of the scale)", "distributions", "", "kl", "truth"),
    ("the same, ML2 in place of Inversion", "distributions", "", "kl", "ML2"),
    ("the same, GLLE in place of Inversion", "distributions", "", "kl", "GLLE"),
    ("25 labelled rows, distributions", "few", "25", "kl", "degrees"),
    ("50 labelled rows, distributions", "few", "50", "kl", "degrees"),
    ("100 labelled rows, distributions", "few", "100", "kl", "degrees"),
    ("25 labelled rows, ranking of 0/1 labels", "few", "25", "lrap", "degrees"),
    ("100 labelled rows, ranking of 0/1 labels", "few", "100", "lrap", "degrees"),
    ("5 % wrong labels, distributions, `noise=0.05`", "wrong", "0.05", "tv", "degrees, noise=rate"),
    ("10 % wrong labels, distributions, `noise` at the true rate", "wrong", "0.1", "tv", "degrees, noise=rate"),
    ("20 % wrong labels, distributions, `noise` at the true rate", "wrong", "0.2", "tv", "degrees, noise=rate"),
    ("the same without `noise`", "wrong", "0.2", "tv", "degrees"),
    ("10 % wrong labels, ranking: one learner on degrees", "wrong", "0.1", "lrap", "degrees, noise=rate"),
    ("5 % wrong labels, ranking: `label_chances`, `noise=0.05`", "wrong", "0.05", "lrap", "chances, noise=0.05"),
    ("10 % wrong labels, ranking: `label_chances`, `noise=0.05`", "wrong", "0.1", "lrap", "chances, noise=0.05"),
    ("20 % wrong labels, ranking: `label_chances`, `noise=0.05`", "wrong", "0.2", "lrap", "chances, noise=0.05"),
    ("the same, `noise` at the true rate", "wrong", "0.2", "lrap", "chances, noise=rate"),
    ("20 % wrong labels, ranking: doubtful entries turned", "wrong", "0.2", "lrap", "0/1, doubtful ones turned"),
    ("30 % missing labels, distributions", "missing", "0.3", "tv", "degrees"),
    ("60 % missing labels, distributions", "missing", "0.6", "tv", "degrees"),
    ("30 % missing labels, ranking: `label_chances`", "missing", "0.3", "lrap", "chances"),
    ("60 % missing labels, ranking: `label_chances`", "missing", "0.6", "lrap", "chances"),
    ("one positive label per row, distributions", "single", "", "tv", "degrees"),
    ("one positive label per row, ranking: `label_chances`", "single", "", "lrap", "chances"),
    ("one positive label per row, ranking: one learner on degrees", "single", "", "lrap", "degrees"),
    ("ranking of held-out 0/1 labels, default rule", "ranking", "", "lrap", "degrees"),
    ('the same, `degradation="auto"`', "ranking", "", "lrap", "degrees, auto"),
    (r"the same, L / \|L\| in place of degrees", "ranking", "", "lrap", "0/1, one learner"),
    ("held-out 0/1 labels, degrees mapped to chances", "ranking", "", "brier", "degrees"),
    ("the same, calibration", "ranking", "", "ece", "degrees"),
    ("finding 5 % wrong entries, against cleanlab's scores (forest)", "finding", "0.05", "precision", "contone"),
    ("finding 10 % wrong entries", "finding", "0.1", "precision", "contone"),
    ("finding 20 % wrong entries, `noise` at the true rate", "finding", "0.2", "precision", "contone, noise=rate"),
    (
        "rows with a wrong label, as many as the filter flags, 10 % wrong",
        "finding",
        "0.1",
        "flagged, forest",
        "contone",
    ),
    ("three annotators: degrees with `groups`", "annotators", "3", "tv", "degrees, groups"),
    ("five annotators: degrees with `groups`", "annotators", "5", "tv", "degrees, groups"),
    ("five annotators: Dawid-Skene", "annotators", "5", "tv", "Dawid-Skene"),
]
"""The lines of docs/when-it-pays.md: words, situation, condition, measure, arm."""


class Line(NamedTuple):
    """One arm against the baseline: means over cells, and the mean paired difference with a 95 % interval."""

    situation: str
    condition: str
    learner: str
    measure: str
    arm: str
    baseline: float
    value: float
    better_by: float
    """Positive where the arm is better."""
    half_width: float
    n_sets: int
    n_better: int
    """Sets on which the arm is better, in the mean over their cells."""
    n_cells: int

    @property
    def verdict(self) -> str:
        if not math.isfinite(self.half_width):
            return "one cell"
        if abs(self.better_by) <= self.half_width:
            return "not decided"
        return "pays" if self.better_by > 0 else "does not"


def read(path: Path) -> dict[str, Any]:
    """The finished cells of a store, by key."""
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {line["key"]: line for line in lines}


def lines(cells: dict[str, Any], *, pooled: bool = False) -> list[Line]:
    """All comparisons. Pairs are cells (set and seed) with the same condition and learner.

    `pooled` takes the mean over learners first, so that a pair is a cell.
    """
    pairs: dict[tuple[str, ...], list[tuple[str, float, float]]] = defaultdict(list)
    for key, cell in cells.items():
        situation, name, _, condition = key.split("/")
        by_learner = {"all": _mean_over_learners(cell["scores"])} if pooled else cell["scores"]
        for learner, arms in by_learner.items():
            against = "degrees" if learner == "itself" else BASELINES.get(situation, "0/1")
            base = arms.get(against)
            for arm, scores in arms.items():
                if base is None or arm == against:
                    continue
                for measure in scores.keys() & base.keys():
                    place = (situation, condition, learner, measure, arm)
                    pairs[place].append((name, base[measure], scores[measure]))
    found = []
    for place, cases in sorted(pairs.items()):
        base, value = (np.array([case[i] for case in cases]) for i in (1, 2))
        difference = base - value if place[3] in LESS_IS_BETTER else value - base
        n = len(cases)
        half = float(student.ppf(0.975, n - 1) * difference.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
        by_set = defaultdict(list)
        for (name, *_), gain in zip(cases, difference, strict=True):
            by_set[name].append(gain)
        n_better = sum(float(np.mean(gains)) > 0 for gains in by_set.values())
        means = (float(base.mean()), float(value.mean()), float(difference.mean()))
        found.append(Line(*place, *means, half, len(by_set), n_better, n))
    return found


def _mean_over_learners(scores: dict[str, Any]) -> dict[str, dict[str, float]]:
    told = [arms for learner, arms in scores.items() if learner != "itself"]
    if not told:
        return {}
    return {arm: {m: float(np.mean([arms[arm][m] for arms in told])) for m in told[0][arm]} for arm in told[0]}


def as_table(found: list[Line]) -> str:
    head = (
        "| situation | condition | learner | measure | arm | baseline | arm's | better by "
        "| 95 % ± | better on | cells | |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(
        f"| {r.situation} | {r.condition} | {r.learner} | {SHOWN[r.measure]} | {r.arm} "
        f"| {r.baseline:.4f} | {r.value:.4f} | {r.better_by:+.4f} "
        f"| {r.half_width:.4f} | {r.n_better} of {r.n_sets} | {r.n_cells} | {r.verdict} |\n"
        for r in found
    )


def fill(cells: dict[str, Any]) -> None:
    """Put the lines of `TOLD` into docs/when-it-pays.md, between its markers."""
    found = {(r.situation, r.condition, r.measure, r.arm): r for r in lines(cells, pooled=True)}
    head = "| situation | | baseline → arm | better by | better on, cells |\n|---|---|---|---|---|\n"
    rows = []
    for words, *place in TOLD:
        r = found[tuple(place)]
        shown = SHOWN[r.measure].partition(",")[0]
        # A precision rises, a divergence falls; the sign says which is better.
        rows.append(
            f"| {words} | {r.verdict} | {shown} {r.baseline:.3f} → {r.value:.3f} "
            f"| {r.better_by:+.3f} ± {r.half_width:.3f} | {r.n_better} of {r.n_sets}, {r.n_cells} |\n"
        )
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- numbers -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    table = "".join([head, *rows])
    with replacing(PAGE) as target:
        target.write_text(f"{before}<!-- numbers -->\n{table}<!-- end -->{after}", encoding="utf-8")


def draw(found: list[Line], path: Path) -> None:
    """Relative gain over the baseline, one panel per situation; a bar is a 95 % interval, and one cell has none."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "contone", "svg.fonttype": "none", "font.size": 7}
    )  # the same bytes for the same numbers
    import matplotlib.pyplot as plt

    main = {"kl", "lrap", "precision"}
    kept = [r for r in found if r.measure in main and r.baseline > 0]
    situations = list(dict.fromkeys(r.situation for r in kept))
    if not situations:
        return
    figure, axes = plt.subplots(
        len(situations), 1, figsize=(7.6, 0.6 * len(situations) + 0.11 * len(kept)), layout="constrained",
        squeeze=False,
        height_ratios=[3 + sum(r.situation == s for r in kept) for s in situations],
    )  # fmt: skip
    for axis, situation in zip(axes[:, 0], situations, strict=True):
        rows = [r for r in kept if r.situation == situation]
        gains = [100 * r.better_by / r.baseline for r in rows]
        bars = [100 * r.half_width / r.baseline if math.isfinite(r.half_width) else 0.0 for r in rows]
        axis.errorbar(gains, range(len(rows)), xerr=bars, fmt="o", markersize=2.5, linewidth=0.8, color="#3b5b92")
        axis.axvline(0.0, color="#888888", linewidth=0.6)
        names = [" ".join(p for p in (r.arm, r.condition, SHOWN[r.measure]) if p) for r in rows]
        axis.set_yticks(range(len(rows)), names, fontsize=5)
        axis.set_title(f"{situation}: gain over {BASELINES.get(situation, '0/1')}, % (right is better)", fontsize=7)
        axis.invert_yaxis()
    with replacing(path) as target:
        figure.savefig(target, format="svg", metadata={"Date": None})
    plt.close(figure)


def write(cells: dict[str, Any], store: Path) -> str:
    """The table beside the store (.md), the figure (.svg); says where they are."""
    pooled, each = lines(cells, pooled=True), lines(cells)
    text = f"All learners\n\n{as_table(pooled)}\nBy learner\n\n{as_table(each)}"
    store.with_suffix(".md").write_text(text, encoding="utf-8")
    draw(pooled, store.with_suffix(".svg"))
    return f"{len(cells)} cells: {store.with_suffix('.md')} and .svg"

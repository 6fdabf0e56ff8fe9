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
    ("the same, LESC in place of Inversion", "distributions", "", "kl", "LESC"),
    ("the same, LP in place of Inversion", "distributions", "", "kl", "LP"),
    ("the same, KM in place of Inversion", "distributions", "", "kl", "KM"),
    ("the same, FCM in place of Inversion", "distributions", "", "kl", "FCM"),
    ("the same, softmax(0.2 L) in place of Inversion", "distributions", "", "kl", "Temperature"),
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
    ("the same, ranking loss, default rule", "ranking", "", "rloss", "degrees"),
    ('the same, ranking loss, `degradation="auto"`', "ranking", "", "rloss", "degrees, auto"),
    ("chances of 0/1 labels from degrees, default rule", "ranking", "", "brier", "degrees"),
    ('the same, `degradation="auto"`', "ranking", "", "brier", "degrees, auto"),
    ("the same, calibration, default rule", "ranking", "", "ece", "degrees"),
    ('the same, calibration, `degradation="auto"`', "ranking", "", "ece", "degrees, auto"),
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
    ("five annotators: degrees of the majority vote", "annotators", "5", "tv", "degrees of the majority"),
    ("five annotators: majority vote", "annotators", "5", "tv", "majority"),
    ("five annotators: Dawid-Skene", "annotators", "5", "tv", "Dawid-Skene"),
]
"""The lines of docs/when-it-pays.md: words, situation, condition, measure, arm."""
LEARNERS = ["linear", "forest", "boosting", "network"]
BY_LEARNER = [
    ("distributions of new rows, KL", "distributions", "", "kl", "degrees"),
    ("the same, total variation", "distributions", "", "tv", "degrees"),
    ("25 labelled rows, KL", "few", "25", "kl", "degrees"),
    ("20 % wrong labels, total variation, `noise` at the true rate", "wrong", "0.2", "tv", "degrees, noise=rate"),
    ("60 % missing labels, total variation", "missing", "0.6", "tv", "degrees"),
    ("one positive label per row, total variation", "single", "", "tv", "degrees"),
    ("20 % wrong labels, average precision, `label_chances`", "wrong", "0.2", "lrap", "chances, noise=0.05"),
    ("ranking of 0/1 labels, average precision, default rule", "ranking", "", "lrap", "degrees"),
    ('the same, `degradation="auto"`', "ranking", "", "lrap", "degrees, auto"),
    (r"the same, L / \|L\|", "ranking", "", "lrap", "0/1, one learner"),
    ("chances of 0/1 labels, Brier, default rule", "ranking", "", "brier", "degrees"),
]
"""The lines of the second table, in the same form: one column per learner."""


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
    """Put the lines of `TOLD` and `BY_LEARNER` into docs/when-it-pays.md, between its markers."""
    found = {(r.situation, r.condition, r.measure, r.arm): r for r in lines(cells, pooled=True)}
    told = "| situation | | baseline → arm | better by | better on, cells |\n|---|---|---|---|---|\n"
    for words, *place in TOLD:
        r = found[tuple(place)]
        shown = SHOWN[r.measure].partition(",")[0]
        # A precision rises, a divergence falls; the sign says which is better.
        told += (
            f"| {words} | {r.verdict} | {shown} {r.baseline:.3f} → {r.value:.3f} "
            f"| {r.better_by:+.3f} ± {r.half_width:.3f} | {r.n_better} of {r.n_sets}, {r.n_cells} |\n"
        )
    each = {(r.situation, r.condition, r.measure, r.arm, r.learner): r for r in lines(cells)}
    by_learner = f"| better by | {' | '.join(LEARNERS)} |\n|---|{'---|' * len(LEARNERS)}\n"
    for words, *place in BY_LEARNER:
        here = [each[(*place, learner)] for learner in LEARNERS]
        by_learner += f"| {words} | {' | '.join(f'{r.better_by:+.3f} ± {r.half_width:.3f}' for r in here)} |\n"
    page = PAGE.read_text(encoding="utf-8")
    for name, table in (("numbers", told), ("learners", by_learner)):
        before, rest = page.split(f"<!-- {name} -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        page = f"{before}<!-- {name} -->\n{table}<!-- end -->{after}"
    with replacing(PAGE) as target:
        target.write_text(page, encoding="utf-8")


COLOURS = {"pays": "#2f6b3c", "does not": "#a33b2a", "not decided": "#777777", "one cell": "#bbbbbb"}


def draw(found: list[Line], path: Path) -> None:
    """Gain over the baseline in per cent, one point and 95 % interval per line of the page, coloured by the verdict."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "contone", "svg.fonttype": "none", "font.size": 8}
    )  # the same bytes for the same numbers
    import matplotlib.pyplot as plt

    by_place = {(r.situation, r.condition, r.measure, r.arm): r for r in found}
    told = [(words, by_place[tuple(place)]) for words, *place in TOLD if tuple(place) in by_place]
    figure, axis = plt.subplots(figsize=(8.4, 0.19 * len(told) + 0.9), layout="constrained")
    for verdict, colour in COLOURS.items():
        at = [i for i, (_, r) in enumerate(told) if r.verdict == verdict]
        if at:
            gains = [100 * told[i][1].better_by / told[i][1].baseline for i in at]
            widths = [told[i][1].half_width / told[i][1].baseline for i in at]
            bars = [100 * w if math.isfinite(w) else 0.0 for w in widths]
            axis.errorbar(gains, at, xerr=bars, fmt="o", markersize=3, linewidth=1, color=colour, label=verdict)
    plain = [words.replace("`", "").replace("\\|", "|") for words, _ in told]
    axis.set_yticks(
        range(len(told)), [f"{w} ({SHOWN[r.measure].partition(',')[0]})" for w, (_, r) in zip(plain, told, strict=True)]
    )
    axis.axvline(0.0, color="#444444", linewidth=0.7)
    axis.set_xlabel("gain over the baseline, % of it (right is better); bars are 95 % intervals")
    axis.set_ylim(len(told) - 0.4, -0.6)
    axis.tick_params(axis="y", labelsize=7, length=0)
    axis.grid(axis="x", linewidth=0.3, color="#cccccc")
    axis.legend(loc="lower right", frameon=False)
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

"""The summary in five sentences: what was asked and what came out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from contone.experiments.report.schema import Table
from contone.experiments.results import Results
from contone.pages import words
from contone.reproduction.errata import Evidence
from contone.reproduction.report.schema import VerdictCounts
from contone.reproduction.report.tables import FULL_TO_SHORT


def headline(results: Results, shares: Table, counts: VerdictCounts, found: Sequence[Evidence]) -> list[str]:
    """What was asked and what came out, in five sentences."""
    datasets = results.datasets("recovery")
    of_paper = [name for name in datasets if name in FULL_TO_SHORT]
    methods = {e.method for e in results.of("recovery") if e.kind == "method"}
    means = {
        row.name: row.mean
        for row in shares.rows
        if row.kind != "oracle" and row.mean is not None and math.isfinite(row.mean)
    }
    if not means:
        return ["No recovery results are in this store yet."]
    best = max(means, key=means.__getitem__)
    covers = "on average it covers" if len(datasets) > 1 else "it covers"
    sentences = [
        f"{words.count(len(methods), 'method')} with their presets were asked to recover the label distributions of "
        f"{words.count(len(datasets), 'data set')} from features and logical labels; {len(of_paper)} of the paper's 12 "
        "sets are among them.",
        f"{best} comes furthest: {covers} {words.percent(means[best])} of the way from the uniform "
        "distribution to the limit, which is what learners trained on the truth reach (a strong reference, not a "
        "bound).",
    ]
    if "LCdr" in means and "Temperature" in means:
        sentences.append(
            f"LCdr with the paper's parameters covers {words.percent(means['LCdr'])}; one line without features, "
            f"softmax(0.2 L), covers {words.percent(means['Temperature'])}."
        )
    uniform = next((e for e in found if e.id == "uniform"), None)
    if uniform is not None:
        sentences.append(f"{uniform.title}: {uniform.finding}")
    return [*sentences, _published(counts, sum(e.holds for e in found))]


def _published(counts: VerdictCounts, inconsistencies: int) -> str:
    inconsistent = f"the paper's own tables hold {inconsistencies} inconsistencies, recomputed below."
    verdicts = counts.verdicts
    judged = counts.published - verdicts["not comparable"]
    if not judged:
        return f"The paper's data sets were not run, so no published figure has one of ours beside it; {inconsistent}"
    return (
        f"Of {judged} published figures that could be re-run, {verdicts['matches']} match, {verdicts['close']} are "
        f"close, {verdicts['better']} came out better and {verdicts['worse']} worse; {inconsistent}"
    )

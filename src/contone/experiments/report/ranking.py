"""results -> ranks and tests: groups of rows over the data sets that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contone.experiments import statistics
from contone.experiments.report.schema import PrintedRanks, RankGroup, Ranking
from contone.experiments.report.tables import REPORTED, describe_measure
from contone.experiments.results import Results

Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""``scores[measure][row][dataset]``."""


def rows_without_truth(results: Results, experiment: str) -> list[str]:
    """The rows that have not seen the truth, in the order of the plan."""
    return [name for name, kind in results.kinds(experiment).items() if kind != "oracle"]


def group_of_results(
    results: Results,
    experiment: str,
    name: str,
    title: str,
    rows: Sequence[str],
    datasets: Sequence[str],
    reference: str | None = None,
) -> RankGroup | None:
    """Rows of ours ranked on these data sets; None where there are fewer than two sets or three rows."""
    scores = {measure: _complete(results, experiment, rows, datasets, measure) for measure in REPORTED}
    if len(datasets) < 2 or any(len(table) < 3 for table in scores.values()):
        return None
    return rank_group(name, title, scores, datasets, reference)


def rank_group(
    name: str,
    title: str,
    scores: Scores,
    datasets: Sequence[str],
    reference: str | None,
    printed: Mapping[str, PrintedRanks] | None = None,
) -> RankGroup:
    """One group; Wilcoxon's tests are of the reference, or of the row with the best rank, against all others."""
    listed = []
    for measure, table in scores.items():
        info = describe_measure(measure)
        compared = statistics.compare(table, greater_is_better=info.greater_is_better)
        against = reference or min(compared.average_ranks, key=compared.average_ranks.__getitem__)
        tests = {
            other: statistics.wilcoxon(table[against], row, greater_is_better=info.greater_is_better)
            for other, row in table.items()
            if other != against
        }
        listed.append(
            Ranking(
                measure=measure,
                title=info.title,
                arrow=info.arrow,
                average_ranks=compared.average_ranks,
                friedman=compared.friedman,
                critical_difference=compared.critical_difference,
                nemenyi=compared.nemenyi,
                reference=against,
                wilcoxon=tests,
                published=(printed or {}).get(measure),
            )
        )
    return RankGroup(name, title, tuple(datasets), tuple(listed))


def _complete(
    results: Results, experiment: str, rows: Sequence[str], datasets: Sequence[str], measure: str
) -> dict[str, dict[str, float]]:
    """Scores of the rows that have one on every data set."""
    table = {}
    for row in rows:
        values = {d: results.score(experiment, d, row, measure) for d in datasets}
        if all(v is not None for v in values.values()):
            table[row] = {d: float(v) for d, v in values.items() if v is not None}
    return table

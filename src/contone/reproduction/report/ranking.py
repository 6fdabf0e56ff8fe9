"""Ranks and tests of the report, as plain values: of the paper's own table, and of our results.

The layout of a Group is in `contone.reproduction.report.summary`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from contone import measures
from contone.experiments import statistics
from contone.experiments.results import Results
from contone.reproduction import paper
from contone.reproduction.paper.counterparts import counterparts
from contone.reproduction.report.tables import FULL_TO_SHORT, REPORTED, Plain, describe_measure


def rank_groups(results: Results) -> list[Plain]:
    """Ranks and tests: of the paper's table, of our rows beside the paper's, and of all rows without the truth."""
    names = results.rows("recovery")
    ours = {
        theirs: row for theirs in paper.METHODS if (row := counterparts()["recovery"].row(theirs, names)) is not None
    }
    at_hand = [name for name in results.datasets("recovery") if name != "artificial"]
    of_paper = [name for name in at_hand if name in FULL_TO_SHORT]
    without_truth = [n for n in names if any(e.row == n and e.kind != "oracle" for e in results.of("recovery"))]
    groups = [_group("paper", "The paper's own table", paper.recovery(), list(paper.DATASETS), "LCdr", printed=True)]
    for name, title, chosen, datasets, reference in (
        ("counterparts", "The paper's methods, re-run", list(ours.values()), of_paper, ours.get("LCdr")),
        ("all", "All rows that have not seen the truth", without_truth, at_hand, None),
    ):
        scores = {q: _complete(results, chosen, datasets, q) for q in REPORTED}
        if len(datasets) > 1 and all(len(table) > 2 for table in scores.values()):
            groups.append(_group(name, title, scores, datasets, reference))
    return groups


def _complete(
    results: Results, rows: Sequence[str], datasets: Sequence[str], measure: str
) -> dict[str, dict[str, float]]:
    """Scores of the rows that have one on every data set."""
    table = {}
    for row in rows:
        values = {d: results.score("recovery", d, row, measure) for d in datasets}
        if all(v is not None for v in values.values()):
            table[row] = {d: float(v) for d, v in values.items() if v is not None}
    return table


def _group(
    name: str,
    title: str,
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
    datasets: Sequence[str],
    reference: str | None,
    *,
    printed: bool = False,
) -> Plain:
    """One group of methods; Wilcoxon's tests are of the reference, or of the row with the best rank, against all."""
    listed = []
    for measure, table in scores.items():
        greater = measures.get(measure).greater_is_better
        comparison = statistics.compare(table, greater_is_better=greater)
        against = reference or min(comparison.average_ranks, key=comparison.average_ranks.__getitem__)
        tests = {
            other: asdict(statistics.wilcoxon(table[against], row, greater_is_better=greater))
            for other, row in table.items()
            if other != against
        }
        # Only the paper's own table has printed ranks beside it; it lacks intersection, which ours has.
        tables = (("average_ranks", paper.average_ranks()), ("wilcoxon", paper.wilcoxon()))
        published = {kind: table[measure] for kind, table in tables} if printed else None
        listed.append(
            {
                **describe_measure(measure),
                **comparison.plain(),
                "measure": measure,
                "reference": against,
                "wilcoxon": tests,
                "published": published,
            }
        )
    return {"name": name, "title": title, "datasets": list(datasets), "measures": listed}

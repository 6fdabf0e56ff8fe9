"""published | measured | verdict: the tables of the paper's experiments, with its figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from contone import measures
from contone.experiments.report.schema import Published, Section, Status, Table
from contone.experiments.report.tables import Head, heads_of, score_table
from contone.experiments.results import Entry, Results
from contone.experiments.spec import Spec
from contone.pages import words
from contone.reproduction import paper
from contone.reproduction.paper.counterparts import Counterparts, counterparts
from contone.reproduction.verdicts import verdict

FULL_TO_SHORT = {full: short for short, full in paper.DATASETS.items()}

BEYOND_FLOOR = "the published figure is beyond what the best of several learners reaches that are trained on the truth"

N_STANDARD_ERRORS = 3.0
"""A figure is called impossible beyond the floor by this many standard errors of the floor's mean over the folds: the
published run had folds of its own, so that both figures have that error."""


def section(spec: Spec, results: Results, measure_names: Sequence[str], published: paper.Table) -> Section:
    """An experiment of the paper: every row that was asked for, and the paper's figures beside the row of a new run.

    A row that only the paper has is named after it.
    """
    tables = tuple(_table(spec, results, name, published.get(name, {})) for name in measure_names)
    return Section(spec.name, spec.title, spec.question, tables)


def _table(spec: Spec, results: Results, measure: str, published: Mapping[str, Mapping[str, float]]) -> Table:
    known = counterparts().get(spec.name, Counterparts())
    names = results.rows(spec.name)
    ours = {theirs: known.row(theirs, names) for theirs in published}
    theirs_of = {row: theirs for theirs, row in ours.items() if row is not None}
    heads = [Head(h.name, h.kind, theirs_of.get(h.name)) for h in heads_of(results, spec.name)]
    heads += [Head(theirs, "method", theirs) for theirs, row in ours.items() if row is None and names]

    def publish(head: Head, dataset: str, status: Status, entry: Entry | None) -> Published | None:
        printed = published.get(head.published_as or "", {}).get(FULL_TO_SHORT.get(dataset, ""))
        if printed is None:
            return None
        return _published(printed, head, dataset, status, entry, measure, spec, known, results)

    datasets = _with_the_papers(results.datasets(spec.name)) if results.of(spec.name) else []
    return score_table(results, spec.name, measure, heads=heads, datasets=datasets, publish=publish)


def _with_the_papers(datasets: list[str]) -> list[str]:
    """The data sets that were run, and those of the paper that were not, so that its figures can be seen."""
    return datasets + [name for name in paper.DATASETS.values() if name not in datasets]


def _published(
    printed: float,
    head: Head,
    dataset: str,
    status: Status,
    entry: Entry | None,
    measure: str,
    spec: Spec,
    known: Counterparts,
    results: Results,
) -> Published:
    theirs = head.published_as or ""
    read_as = measure
    if measure == "kl":
        read_as = paper.KL_CONVENTION.get(theirs.removeprefix("LCdr-"), "kl_reversed_drop")
    compared = entry.scores.get(read_as) if entry is not None and status == "done" else None
    reason = {"no data": f"{dataset} was not run", "pending": "not run yet", "failed": "the run failed"}.get(
        status, known.reasons.get(theirs, "")
    )
    wrong = known.wrong(theirs, measure, FULL_TO_SHORT.get(dataset)) or (
        BEYOND_FLOOR if is_beyond(printed, floor_of(results, spec.name, dataset, known.floor, read_as), read_as) else ""
    )
    judged = verdict(
        None if wrong else printed,
        compared,
        greater_is_better=measures.get(measure).greater_is_better,
        reason=wrong or reason,
    )
    return Published(printed, words.number(printed), compared, read_as, judged)


def floor_of(results: Results, experiment: str, dataset: str, row: str, measure: str) -> tuple[float, float] | None:
    """The floor of a data set in a measure, and its standard error; None where it was not computed."""
    entry = results.get(experiment, dataset, row)
    if entry is None or not entry.records or measure not in entry.scores:
        return None
    error = entry.records[0].get("extra", {}).get("standard_error", {}).get(measure)
    return (entry.scores[measure], float(error)) if error is not None and math.isfinite(error) else None


def is_beyond(printed: float, floor: tuple[float, float] | None, measure: str) -> bool:
    """Whether a published figure is better than the floor by more than its error."""
    if floor is None:
        return False
    lead = printed - floor[0] if measures.get(measure).greater_is_better else floor[0] - printed
    return lead > N_STANDARD_ERRORS * floor[1]

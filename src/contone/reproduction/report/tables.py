"""published | measured | verdict: the tables of the paper's experiments, with its figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contone import measures
from contone.experiments.report.schema import Published, Section, Status, Table
from contone.experiments.report.tables import Head, heads_of, score_table
from contone.experiments.results import Entry, Results
from contone.experiments.spec import Spec
from contone.pages import words
from contone.reproduction import paper
from contone.reproduction.paper.counterparts import Counterparts, counterparts
from contone.reproduction.verdicts import CLOSE_RATIO, verdict

FULL_TO_SHORT = {full: short for short, full in paper.DATASETS.items()}

BELOW_FLOOR = "the published figure is below what the same learner reaches when it is trained on the truth"


def section(spec: Spec, results: Results, measure_names: Sequence[str], published: paper.Table) -> Section:
    """An experiment of the paper: every row that was asked for, and the paper's figures beside the row that re-runs
    them. A row that only the paper has is named after it."""
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
    wrong = known.wrong(theirs, measure, FULL_TO_SHORT.get(dataset)) or _below_floor(
        printed, results, spec, dataset, known.floor, read_as
    )
    judged = verdict(
        None if wrong else printed,
        compared,
        greater_is_better=measures.get(measure).greater_is_better,
        reason=wrong or reason,
    )
    return Published(printed, words.number(printed), compared, read_as, judged)


def _below_floor(printed: float, results: Results, spec: Spec, dataset: str, row: str, measure: str) -> str:
    """Why a published figure cannot have been measured against the truth, or nothing."""
    floor = results.score(spec.name, dataset, row, measure)
    return BELOW_FLOOR if floor is not None and printed < (1 - CLOSE_RATIO) * floor else ""

"""store -> summary: everything that the report on a comparison says, as frozen values."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from contone import enhance
from contone.experiments.report.charts.ranks import MIN_DATASETS
from contone.experiments.report.ranking import group_of_results, rows_without_truth
from contone.experiments.report.schema import (
    Counts,
    DatasetInfo,
    Example,
    Failure,
    Headline,
    Instance,
    MethodInfo,
    Missing,
    Provenance,
    Ranks,
    RunInfo,
    Section,
    Summary,
    Surface,
    Table,
)
from contone.experiments.report.tables import REPORTED, describe_measure, figure, recovered_table, score_table
from contone.experiments.results import Results, load_results
from contone.experiments.store import Store
from contone.pages import words

Plain = Mapping[str, Any]

RANKS_TITLE, RANKS_QUESTION = "Ranks and tests", "Are the differences between the methods more than chance?"
RANK_WARNING = (
    "Data sets that share instances or features are not independent; p-values over them overstate the evidence. The "
    "ten Yeast sets are the same genes with the same features."
)


def describe_datasets(results: Results, published: Mapping[str, str] | None = None) -> tuple[DatasetInfo, ...]:
    """The data sets with at least one result; `published` gives the names of those that a paper has, too."""
    found: dict[str, DatasetInfo] = {}
    for entry in results:
        if entry.records and entry.dataset not in found:
            data = entry.records[0]["data"]
            theirs = (published or {}).get(entry.dataset)
            found[entry.dataset] = DatasetInfo(entry.dataset, **data, published_as=theirs)
    return tuple(found.values())


def describe_missing(results: Results, runs: Sequence[Plain]) -> Missing:
    """What the runs were asked for and could not do; data that a later run had is not missing."""
    available = {entry.dataset for entry in results}
    methods = {entry.method for entry in results}
    datasets = {name: why for run in runs for name, why in run.get("missing_data", {}).items()}
    absent = {name: why for run in runs for name, why in run.get("missing_methods", {}).items()}
    return Missing(
        {name: why for name, why in datasets.items() if name not in available},
        {name: why for name, why in absent.items() if name not in methods},
    )


def describe_rows(results: Results, experiment: str) -> tuple[MethodInfo, ...]:
    """What stands behind the rows of an experiment."""
    known = {cls.__name__: cls for cls in enhance.methods().values()}
    listed = []
    for name in results.rows(experiment):
        entries = [e for e in results.of(experiment) if e.row == name]
        records = [record for e in entries for record in e.records]
        task = records[0]["cell"]["task"] if records else {}
        cls = known.get(entries[0].method)
        listed.append(
            MethodInfo(
                name=name,
                method=entries[0].method,
                kind=entries[0].kind,  # type: ignore[arg-type]
                reference=cls.reference if cls is not None else "",
                params=task.get("estimator", {}).get("params", {}),
                seeds=max(e.seeds for e in entries),
                cpu_seconds=math.fsum(r["time"]["cpu"] for r in records),
                converged=all(r["solution"].get("converged", True) for r in records),
                warnings=tuple(sorted({w for r in records for w in r["warnings"]})[:5]),
            )
        )
    return tuple(listed)


def choose_examples(results: Results, experiment: str) -> tuple[Example, ...]:
    """The instances that were kept, by data set."""
    shown = []
    for dataset in results.datasets(experiment):
        kept = {
            e.row: e.records[0]["examples"]
            for e in results.of(experiment)
            if e.dataset == dataset and e.records and "examples" in e.records[0]
        }
        if not kept:
            continue
        first = next(iter(kept.values()))
        instances = [
            Instance(
                row,
                tuple(first["truth"][i]),
                tuple(first["logical"][i]),
                {name: tuple(example["recovered"][i]) for name, example in kept.items()},
            )
            for i, row in enumerate(first["rows"])
        ]
        shown.append(Example(dataset, tuple(map(str, first["labels"])), tuple(instances)))
    return tuple(shown)


def choose_surfaces(results: Results, experiment: str) -> tuple[Surface, ...]:
    """The answers on the artificial set that were kept whole."""
    return tuple(
        Surface(e.row, e.records[0]["key"])
        for e in results.of(experiment)
        if e.dataset == "artificial" and e.records and e.records[0]["arrays"]
    )


def describe_failures(results: Results) -> tuple[Failure, ...]:
    """Every cell that raised."""
    return tuple(
        Failure(
            experiment=entry.experiment,
            dataset=entry.dataset,
            row=entry.row,
            setting=entry.setting,
            seed=record["cell"]["seed"],
            error=record["error"],
            traceback=record["traceback"],
        )
        for entry in results
        for record in entry.failures
    )


def count_cells(results: Results) -> Counts:
    """Table cells by their state."""
    states = [entry.status for entry in results]
    return Counts(
        planned=len(states),
        done=states.count("done"),
        failed=states.count("failed"),
        pending=states.count("pending"),
        stale=sum(entry.stale for entry in results),
    )


def describe_provenance(results: Results, runs: Sequence[Plain], damaged: Sequence[str] = ()) -> Provenance:
    """Where the numbers come from."""
    records = {r["key"]: r for entry in results for r in entry.records}
    return Provenance(
        generated=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        runs=tuple(
            RunInfo(
                id=run["id"],
                command=run.get("command", ""),
                started=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run["started"])),
                seconds=run["finished"] - run["started"] if run["finished"] else None,
                **{name: run.get(name) for name in ("state", "done", "failed", "reused")},
            )
            for run in runs
        ),
        versions=runs[-1]["versions"] if runs else {},
        machine=runs[-1]["machine"] if runs else {},
        seeds=tuple(sorted({r["cell"]["seed"] for r in records.values() if r["cell"]["seed"] is not None})),
        cpu_seconds=math.fsum(r["time"]["cpu"] for r in records.values()),
        damaged=tuple(damaged),
    )


def summarise(store: Store) -> Summary:
    """Everything that the report on a comparison says about the results in a store: of the experiment run last."""
    results, runs = load_results(store), store.runs()
    about: Plain = next((run["report"] for run in reversed(runs) if isinstance(run.get("report"), dict)), {})
    experiment = str(about.get("experiment", "benchmark"))
    shares = recovered_table(results, experiment)
    rows = results.kinds(experiment)
    datasets = results.datasets(experiment)
    everything = group_of_results(
        results,
        experiment,
        "all",
        "All rows that have not seen the truth",
        rows_without_truth(results, experiment),
        datasets,
    )
    methods = [name for name, kind in rows.items() if kind == "method"]
    return Summary(
        title=str(about.get("title", "Label enhancement methods compared")),
        about=f"{words.count(len(methods), 'method')} on {words.count(len(datasets), 'data set')}.",
        headline=Headline(tuple(_sentences(results, experiment, shares)), figure(shares)),
        datasets=describe_datasets(results),
        missing=describe_missing(results, runs),
        measures=tuple(describe_measure(name) for name in REPORTED),
        rows=describe_rows(results, experiment),
        recovery=Section(
            experiment,
            str(about.get("title", "")),
            str(about.get("question", "")),
            tuple(score_table(results, experiment, name) for name in REPORTED) if datasets else (),
        ),
        shares=shares,
        ranks=Ranks(RANKS_TITLE, RANKS_QUESTION, RANK_WARNING, (everything,) if everything is not None else ()),
        examples=choose_examples(results, experiment),
        manifold=choose_surfaces(results, experiment),
        failures=describe_failures(results),
        counts=count_cells(results),
        provenance=describe_provenance(results, runs, store.problems()),
    )


def _sentences(results: Results, experiment: str, shares: Table) -> list[str]:
    """What was asked and what came out."""
    kinds, datasets = results.kinds(experiment), results.datasets(experiment)
    means = {
        row.name: row.mean
        for row in shares.rows
        if row.kind != "oracle" and row.mean is not None and math.isfinite(row.mean)
    }
    if not means:
        return ["No row has a recovered share on every data set yet."] if kinds else ["No results are here yet."]
    methods = {name: mean for name, mean in means.items() if kinds[name] == "method"}
    baselines = {name: mean for name, mean in means.items() if kinds[name] == "baseline"}
    sentences = [
        f"Every method is given the features and the logical labels of {words.count(len(datasets), 'data set')}, and "
        "is scored against the true label distributions, which it does not see."
    ]
    best = max(means, key=means.__getitem__)
    where = "on average it covers" if len(datasets) > 1 else "it covers"
    sentences.append(
        f"{best} comes furthest: {where} {words.percent(means[best])} of the way from the uniform distribution to the "
        "limit, which is what learners trained on the truth reach (a strong reference, not a bound)."
    )
    if methods and baselines:
        baseline = max(baselines, key=baselines.__getitem__)
        ahead = sum(mean > baselines[baseline] for mean in methods.values())
        sentences.append(
            f"{ahead} of {words.count(len(methods), 'method')} {'is' if ahead == 1 else 'are'} ahead of the "
            f"best baseline, {baseline}, which uses no features and covers {words.percent(baselines[baseline])}."
        )
    if len(datasets) < MIN_DATASETS:
        sentences.append(
            f"{words.count(len(datasets), 'data set')} cannot show that one method is better than another in general; "
            f"tests over data sets begin to mean something with {MIN_DATASETS}."
        )
    return sentences

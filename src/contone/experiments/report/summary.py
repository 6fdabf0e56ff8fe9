"""store -> summary: everything that the report on a comparison says, as frozen values."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from contone import enhance
from contone.experiments.report.schema import (
    Counts,
    DatasetInfo,
    Example,
    Failure,
    Instance,
    MethodInfo,
    Missing,
    Provenance,
    RunInfo,
    Surface,
)
from contone.experiments.results import Results

Plain = Mapping[str, Any]


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

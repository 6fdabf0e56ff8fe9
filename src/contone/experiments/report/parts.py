"""results -> the sections that every report has: what came out, single instances, pictures, settings, provenance."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from contone import enhance, measures
from contone.experiments.report.charts import examples, manifold, recovered
from contone.experiments.report.scores import REPORTED
from contone.experiments.results import Results
from contone.experiments.store import Store
from contone.pages import words
from contone.pages.blocks import (  # fmt: skip
    Block,
    Cell,
    Charts,
    Column,
    Document,
    Fold,
    Grid,
    Items,
    Pictures,
    Row,
    Section,
    Terms,
    Text,
)
from contone.typing import Record

KINDS = {"Baseline": "A row that uses no features.", "Oracle": "A row that has seen the truth, so it cannot be best."}
LIMIT = "the limit, which is what learners trained on the truth reach (a strong reference, not a bound)"
SHARE_NOTE = (
    "The share of the way from uniform (0 %) to the limit (100 %), in KL: (KL_uniform − KL) / (KL_uniform − KL_limit). "
    "The limit is the best of several learners from features and labels to the truth, trained on the truth and "
    "cross-validated: a strong reference, not a bound."
)
WARNINGS_SHOWN = 5
"""At most how many different warnings of a row are listed."""
FOOT = (
    "Made with contone. All numbers come from the store of the runs; the page needs no network and nothing beside it."
)


@dataclass(frozen=True)
class Report(Document):
    """Everything that a report on experiments says: the page, and what the command line tells of it.

    Attributes
    ----------
    title, about, sections, foot
        The page.
    sentences : tuple of str
        What was asked and what came out.
    shares : Grid
        The recovered shares, the best row first.
    failures : tuple of str
        A sentence per cell that raised.
    stale : int
        Table cells that come from earlier code, data or parameters.
    damaged : tuple of str
        Files of the store that were left out, and why.
    """

    sentences: tuple[str, ...] = ()
    shares: Grid = field(default_factory=lambda: Grid("", (), ()))
    failures: tuple[str, ...] = ()
    stale: int = 0
    damaged: tuple[str, ...] = ()


def as_report(
    results: Results, title: str, about: str, sections: Sequence[Section], sentences: Sequence[str], shares: Grid
) -> Report:
    """The sections with what the results say of the runs."""
    raised = tuple(text for text, _ in failures(results))
    told = tuple(sentences), shares, raised, count_stale(results), results.damaged
    return Report(title, about, tuple(sections), FOOT, *told)


def summary_section(
    results: Results,
    experiment: str,
    sentences: Sequence[str],
    shares: Grid,
    command: str,
    *,
    absent: Sequence[str] = (),
    terms: Sequence[tuple[str, str]] = (),
    published: Mapping[str, str] | None = None,
) -> Section:
    """What came out, what is missing, how to read it, and the data sets.

    Parameters
    ----------
    results : Results
        What the store holds.
    experiment : str
        The main experiment.
    sentences : sequence of str
        What came out, in words.
    shares : Grid
        The same as the table of recovered shares.
    command : str
        The command that computes what is missing.
    absent : sequence of str
        Experiments without results.
    terms : sequence
        More words to explain.
    published : dict or None
        The names that a paper has for data sets.
    """
    missing = list(_missing(results, command, absent))
    described = [
        (f"{m.title} {m.arrow}", f"{m.formula}; d is the truth, r the recovered degree; the mean over all instances.")
        for m in map(measures.get, REPORTED)
    ]
    best = "In bold: the best row of a column among those that have not seen the truth."
    words_used = [("Recovered", SHARE_NOTE), ("Best", best), *KINDS.items(), *terms, *described]
    words_used.append(("±", "Standard deviation over seeds, for methods with randomness."))
    blocks: list[Block] = [
        Items(tuple(sentences)),
        Charts(partial(recovered.charts, shares), "only-wide"),
        Charts(partial(recovered.charts, shares, narrow=True), "only-narrow"),
        *([Items(tuple(missing), "missing", "Not everything is here, or up to date.")] if missing else []),
        Fold("How to read the tables", (Terms(tuple(words_used)),), style="plain"),
    ]
    grid = _dataset_grid(results, published)
    return Section("summary", "Summary", (*blocks, *([Fold("Data sets", (grid,), style="plain")] if grid.rows else [])))


def _missing(results: Results, command: str, absent: Sequence[str]) -> list[str]:
    states = [result.status for result in results]
    stale, pending, failed = count_stale(results), states.count("pending"), states.count("failed")
    found = []
    if pending:
        found.append(f"{pending} of {len(states)} planned table cells have not been run yet.")
    if failed:
        found.append(f"{failed} table cells failed.")
    if stale:
        found.append(
            f"{stale} table cells come from an earlier version of the code, the data or the parameters; '{command}' "
            "renews them."
        )
    if absent:
        found.append(f"No results of: {', '.join(absent)}. '{command}' runs what is missing.")
    found += [f"{name}: {why}" for name, why in missing_data(results).items()]
    methods = {result.method for result in results}
    asked = {name: why for run in results.runs for name, why in run.get("missing_methods", {}).items()}
    found += [f"{name}: {why}" for name, why in asked.items() if name not in methods]
    left_out = [result for result in results if result.status == "left out"]
    found += dict.fromkeys(f"{r.row} is left out: {r.failures[0]['error'].partition(': ')[2]}" for r in left_out)
    return [*found, *results.damaged]


def missing_data(results: Results) -> dict[str, str]:
    """Data that runs were asked for and did not find, with what to do; what a later run had is not missing."""
    available = {result.dataset for result in results}
    asked = {name: why for run in results.runs for name, why in run.get("missing_data", {}).items()}
    return {name: why for name, why in asked.items() if name not in available}


def count_stale(results: Results) -> int:
    """Table cells that come from earlier code, data or parameters."""
    return sum(result.stale for result in results)


def failures(results: Results) -> list[tuple[str, Record]]:
    """Every cell that raised, with a sentence about it."""
    found = []
    for result in results:
        for record in result.failures:
            seed = record["cell"]["seed"]
            where = result.experiment if seed is None else f"{result.experiment}, seed {seed}"
            if record["status"] == "failed":
                found.append((f"{result.row} on {result.dataset} ({where}): {record['error']}", record))
    return found


def _dataset_grid(results: Results, published: Mapping[str, str] | None) -> Grid:
    found: dict[str, Row] = {}
    for result in results:
        if result.records and result.dataset not in found:
            data = result.records[0]["data"]
            cells = [Cell(f"{data[key]:,}", data[key]) for key in "ndq"]
            cells.append(Cell(f"{data['labels_per_row']:.2f}", data["labels_per_row"]))
            cells += [Cell(published.get(result.dataset, "no"))] if published is not None else []
            found[result.dataset] = Row(result.dataset, tuple(cells))
    columns = [Column(title) for title in ("Instances", "Features", "Labels", "Labels per row")]
    columns += [Column("In the paper", is_text=True)] if published is not None else []
    return Grid("Data sets", tuple(columns), tuple(found.values()), "Name")


def closing_sections(
    results: Results, experiment: str, store: Store, shares: Grid, fill: str = ""
) -> tuple[Section, Section, tuple[Section, ...]]:
    """Single instances; the manifold (`fill` is the command that computes it); settings, failures and provenance."""
    best = [row.name for row in shares.rows if row.kind == "method"]
    shown = list(dict.fromkeys(["LCdr", *best[:1], "Temperature"]))
    kept = [r for r in results.of(experiment) if r.records and "examples" in r.records[0]]
    note = Text(
        "Grey bars are the truth; a square below a label: the logical label says yes; marks are what was recovered.",
        "note",
    )
    drawn: tuple[Block, ...] = (note, Charts(partial(examples.charts, kept, shown), "figures"))
    instances = Section(
        "examples", "Single instances", drawn if kept else (Text("No answers were kept in this store."),)
    )
    surfaces = [r for r in results.of(experiment) if r.records and r.records[0]["arrays"]]
    about = Text(
        "The artificial set lies on a surface. Red, green and blue are the degrees of its three labels, with one "
        "stretch of contrast for all pictures: equal colours mean equal degrees."
    )
    pictures: tuple[Block, ...] = (about, Pictures(partial(manifold.pictures, store, surfaces, shares)))
    manifold_section = Section(
        "manifold", "The manifold", pictures if surfaces else (Text("Not in this store; this fills it:", code=fill),)
    )
    return instances, manifold_section, (_settings(results, experiment), failed(results), provenance(results))


def _settings(results: Results, experiment: str) -> Section:
    known = {cls.__name__: cls.reference for cls in enhance.methods().values()}
    rows = []
    for name, kind in results.kinds(experiment).items():
        found = results.of(experiment, row=name)
        records = [record for result in found for record in result.records]
        cpu = math.fsum(record["time"]["cpu"] for record in records)
        task = records[0]["cell"]["task"] if records else {}
        params = ", ".join(f"{k} = {v}" for k, v in task.get("estimator", {}).get("params", {}).items())
        warned = sorted({text for record in records for text in record["warnings"]})[:WARNINGS_SHOWN]
        seeds = max(result.seeds for result in found)
        cells = (
            Cell(f"{cpu:.1f}", cpu),
            Cell(str(seeds), seeds),
            Cell("yes" if all(record["solution"].get("converged", True) for record in records) else "not all"),
            Cell(params),
            Cell(known.get(found[0].method, ""), note=" ".join(distinct(warned))),
        )
        rows.append(Row(name, cells, kind))
    titles = {"CPU s, all sets": False, "Seeds": False, "Converged": True, "Parameters": True, "Reference": True}
    columns = tuple(Column(title, is_text=is_text) for title, is_text in titles.items())
    title = "Methods and settings"
    grid = Grid(title, columns, tuple(rows), "Row", style="whole")
    return Section("rows", title, (grid if rows else Text("No recovery results are in this store yet."),))


def distinct(warnings: Sequence[str]) -> list[str]:
    """Warnings that differ in more than their figures; how many were like each is said."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(re.sub(r"\d[\d.e+-]*", "#", text), []).append(text)
    return [f"{like[0]} (and {len(like) - 1} like it)" if len(like) > 1 else like[0] for like in kinds.values()]


def failed(results: Results) -> Section:
    """Every cell that raised, with its traceback."""
    found = tuple(Fold(text, (Text(r["traceback"], "pre"),), style="plain") for text, r in failures(results))
    return Section("failures", "Failures", found or (Text("No cell failed."),))


def provenance(results: Results) -> Section:
    """What computed the numbers, when and by which commands."""
    records = {record["key"]: record for result in results for record in result.records}
    states = [result.status for result in results]
    last: Record = results.runs[-1] if results.runs else {"versions": {}, "machine": {}}
    seeds = sorted({r["cell"]["seed"] for r in records.values() if r["cell"]["seed"] is not None})
    counted = (
        f"{states.count('done')} of {len(states)} table cells done, {states.count('failed')} failed, "
        f"{states.count('pending')} not run yet, {count_stale(results)} from an earlier version of code or parameters"
    )
    cpu = words.duration(math.fsum(record["time"]["cpu"] for record in records.values()))
    entries = {
        "Results": counted,
        "Computing time": f"{cpu} of CPU time, all cells together",
        "Machine": ", ".join(f"{key} {value}" for key, value in last["machine"].items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in last["versions"].items()),
        "Seeds": ", ".join(map(str, seeds)) or "none",
        "Report made": f"{stamp(time.time())}, from the store alone, by contone report",
    }
    rows = [
        Row(
            stamp(run["started"]),
            (
                Cell(words.duration(run["finished"] - run["started"]) if run["finished"] else ""),
                *(Cell(str(run.get(key, ""))) for key in ("state", "done", "reused", "failed")),
                Cell(re.sub(r" --store[ =]\S+", "", run.get("command", ""))),
            ),
        )
        for run in results.runs
    ]
    titles = {"Took": False, "State": True, "Done": False, "Reused": False, "Failed": False, "Command": True}
    columns = tuple(Column(title, is_text=is_text) for title, is_text in titles.items())
    grids = (Grid("Runs", columns, tuple(rows), "Started"),) if rows else ()
    return Section("provenance", "Provenance", (Terms(tuple(entries.items())), *grids))


def stamp(seconds: float) -> str:
    """A moment, as reports print it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))

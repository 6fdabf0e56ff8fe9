"""store -> report: a comparison of methods on data with known truth, and the sections that every report has."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from contone import enhance, measures
from contone.experiments.report import charts, ranks
from contone.experiments.report.scores import REPORTED, SHARES, score_folds, share_grid
from contone.experiments.spec import Spec
from contone.experiments.store import Results, Store, load_results
from contone.pages import words
from contone.pages.blocks import (
    Block,
    Cell,
    Charts,
    Column,
    Document,
    Fold,
    Grid,
    Heading,
    Items,
    Kind,
    Pictures,
    Row,
    Section,
    Terms,
    Text,
)
from contone.typing import Record

RANKS = Spec(
    "ranks",
    "Ranks and tests",
    "Are the differences between the methods more than chance?",
    "Data sets that share instances or features are not independent; p-values over them overstate the evidence. The "
    "ten Yeast sets are the same genes with the same features.",
)
LIMIT = "the limit, which is what learners trained on the truth reach (a strong reference, not a bound)"
TERMS = {
    "Recovered": "The share of the way from uniform (0 %) to the limit (100 %), in KL: (KL_uniform − KL) / "
    "(KL_uniform − KL_limit). The limit is the best of several learners from features and labels to the truth, trained "
    "on the truth and cross-validated: a strong reference, not a bound.",
    "Best": "In bold: the best row of a column among those that have not seen the truth.",
    "Baseline": "A row that uses no features.",
    "Oracle": "A row that has seen the truth, so it cannot be best.",
    "±": "Standard deviation over seeds, for methods with randomness.",
}
WARNINGS_SHOWN = 5
"""At most how many different warnings of a row are listed."""
FOOT = "Made with contone. All numbers come from the store of the runs; the page needs no network and no other file."


@dataclass(frozen=True)
class Report(Document):
    """Everything that a report on experiments says: the page, and what the command line prints of it.

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


def make_report(store: Store) -> Report:
    """Everything that the report on a comparison says about the results in a store: of the experiment run last."""
    results = load_results(store)
    about: Record = next((r["report"] for r in reversed(results.runs) if isinstance(r.get("report"), dict)), {})
    experiment = str(about.get("experiment", "benchmark"))
    shares, kinds, datasets = share_grid(results, experiment), results.kinds(experiment), results.datasets(experiment)
    folds = score_folds(results, experiment)
    blocks: list[Block] = [Text(str(about["note"]))] if about.get("note") else []
    blocks += [Heading(SHARES), shares] if shares.rows else []
    blocks += [Heading("All scores"), *folds] if folds else [Text("No results are in this store yet.")]
    untold = [name for name, kind in kinds.items() if kind != "oracle"]
    title = "All rows that have not seen the truth"
    group = ranks.group_of_results(results, experiment, "all", title, untold, datasets)
    sentences = _sentences(results, experiment, shares)
    instances, manifold, *last = closing_sections(results, experiment, shares)
    sections = [
        summary_section(results, sentences, shares, "contone benchmark"),
        Section("recovery", "Scores", tuple(blocks), str(about.get("question", ""))),
        *([ranks.section(RANKS, [group])] if group is not None else []),
        instances,
        *([manifold] if len(manifold.blocks) > 1 else []),
        *last,
    ]
    n_methods = sum(kind == "method" for kind in kinds.values())
    title = str(about.get("title", "Label enhancement methods compared"))
    counted = f"{words.count(n_methods, 'method')} on {words.count(len(datasets), 'data set')}."
    return as_report(results, title, counted, sections, sentences, shares)


def as_report(
    results: Results, title: str, about: str, sections: Sequence[Section], sentences: Sequence[str], shares: Grid
) -> Report:
    """The sections with what the results say of the runs."""
    raised = tuple(text for text, _ in _failures(results))
    told = tuple(sentences), shares, raised, _count_stale(results), results.damaged
    return Report(title, about, tuple(sections), FOOT, *told)


# ----------------------------------------------------------------------------------------------------------- in words


def mean_shares(shares: Grid) -> dict[str, float]:
    """The mean recovered share of the rows that have not seen the truth and have a finite one."""
    means = {row.name: row.cells[0].value for row in shares.rows if row.kind != "oracle"}
    return {name: mean for name, mean in means.items() if mean is not None and math.isfinite(mean)}


def furthest(means: dict[str, float], n_datasets: int) -> str:
    """Which row comes furthest, as a sentence."""
    best = max(means, key=means.__getitem__)
    covers = "on average it covers" if n_datasets > 1 else "it covers"
    way = f"{words.percent(means[best])} of the way from the uniform distribution to {LIMIT}"
    return f"{best} comes furthest: {covers} {way}."


def _sentences(results: Results, experiment: str, shares: Grid) -> list[str]:
    """What was asked and what came out."""
    kinds, datasets, means = results.kinds(experiment), results.datasets(experiment), mean_shares(shares)
    if not means:
        return ["No row has a recovered share on every data set yet." if kinds else "No results are here yet."]
    counted = words.count(len(datasets), "data set")
    sentences = [
        f"Every method is given the features and the logical labels of {counted}, and is scored against the true label "
        "distributions, which it does not see.",
        furthest(means, len(datasets)),
    ]
    baselines = {name: mean for name, mean in means.items() if kinds[name] == "baseline"}
    methods = [row.name for row in shares.rows if row.kind == "method"]
    if methods and baselines:
        best = max(baselines, key=baselines.__getitem__)
        ahead = sum(means.get(name, -math.inf) > baselines[best] for name in methods)
        sentences.append(
            f"{ahead} of {words.count(len(methods), 'method')} {'is' if ahead == 1 else 'are'} ahead of the best "
            f"baseline, {best}, which uses no features and covers {words.percent(baselines[best])}."
        )
    if len(datasets) < ranks.MIN_DATASETS:
        few = f"{counted} cannot show that one method is better than another in general"
        sentences.append(f"{few}; tests over data sets begin to mean something with {ranks.MIN_DATASETS}.")
    return sentences


# ----------------------------------------------------------------------------------------------------------- sections


def summary_section(
    results: Results,
    sentences: Sequence[str],
    shares: Grid,
    command: str,
    *,
    absent: Sequence[str] = (),
    terms: Mapping[str, str] | None = None,
) -> Section:
    """What came out, what is missing, how to read it, and the data sets.

    Parameters
    ----------
    results : Results
        What the store holds.
    sentences : sequence of str
        What came out, in words.
    shares : Grid
        The same as the table of recovered shares.
    command : str
        The command that computes what is missing.
    absent : sequence of str
        Experiments without results.
    terms : dict or None
        More words to explain.
    """
    missing = _missing(results, command, absent)
    meant = "d is the truth, r the recovered degree; the mean over all instances."
    described = {f"{m.title} {m.arrow}": f"{m.formula}; {meant}" for m in map(measures.get, REPORTED)}
    explained = {**TERMS, **(terms or {}), **described}
    blocks: list[Block] = [
        Items(tuple(sentences)),
        Charts(partial(charts.recovered, shares), "only-wide"),
        Charts(partial(charts.recovered, shares, narrow=True), "only-narrow"),
        *([Items(tuple(missing), "missing", "Not everything is here, or up to date.")] if missing else []),
        Fold("How to read the tables", (Terms(tuple(explained.items())),), style="plain"),
    ]
    grid = _dataset_grid(results)
    return Section("summary", "Summary", (*blocks, *([Fold("Data sets", (grid,), style="plain")] if grid.rows else [])))


def _missing(results: Results, command: str, absent: Sequence[str]) -> list[str]:
    states = [result.status for result in results]
    stale, pending, failed = _count_stale(results), states.count("pending"), states.count("failed")
    found = [f"{pending} of {len(states)} planned table cells have not been run yet."] if pending else []
    found += [f"{failed} table cells failed."] if failed else []
    earlier = f"{stale} table cells come from an earlier version of the code, the data or the parameters"
    found += [f"{earlier}; '{command}' renews them."] if stale else []
    found += [f"No results of: {', '.join(absent)}. '{command}' runs what is missing."] if absent else []
    found += [f"{name}: {why}" for name, why in missing_data(results).items()]
    left_out = [result for result in results if result.status == "left out"]
    found += dict.fromkeys(f"{r.row} is left out: {r.failures[0]['error'].partition(': ')[2]}" for r in left_out)
    return [*found, *results.damaged]


def missing_data(results: Results) -> dict[str, str]:
    """Data that runs were asked for and did not find, with what to do; what a later run had is not missing."""
    available = {result.dataset for result in results}
    asked = {name: why for run in results.runs for name, why in run.get("missing_data", {}).items()}
    return {name: why for name, why in asked.items() if name not in available}


def _count_stale(results: Results) -> int:
    return sum(result.stale for result in results)


def _failures(results: Results) -> list[tuple[str, Record]]:
    """Every cell that raised, with a sentence about it."""
    found = []
    for result in results:
        for record in (record for record in result.failures if record["status"] == "failed"):
            seed = record["cell"]["seed"]
            where = result.experiment if seed is None else f"{result.experiment}, seed {seed}"
            found.append((f"{result.row} on {result.dataset} ({where}): {record['error']}", record))
    return found


def _dataset_grid(results: Results) -> Grid:
    found: dict[str, Record] = {}
    for result in results:
        if result.records and result.dataset not in found:
            data = result.records[0]["data"]
            sizes = {"Instances": data["n"], "Features": data["d"], "Labels": data["q"]}
            per_row = Cell(f"{data['labels_per_row']:.2f}", data["labels_per_row"])
            found[result.dataset] = {"Name": result.dataset, **sizes, "Labels per row": per_row}
    return as_table("Data sets", list(found.values()))


def closing_sections(results: Results, experiment: str, shares: Grid, fill: str = "") -> list[Section]:
    """Single instances; the manifold (`fill` is the command that computes it); settings, failures and provenance."""
    best = [row.name for row in shares.rows if row.kind == "method"]
    shown = list(dict.fromkeys(["LCdr", *best[:1], "Temperature"]))
    done = [r for r in results.of(experiment) if r.records]
    kept, surfaces = ([r for r in done if key in r.records[0]] for key in ("examples", "surface"))
    how = "Grey bars are the truth; a square below a label: the logical label says yes; marks are what was recovered."
    drawn = (Text(how, "note"), Charts(partial(charts.instances, kept, shown), "figures"))
    about = Text(
        "The artificial set lies on a surface. Red, green and blue are the degrees of its three labels, with one "
        "stretch of contrast for all pictures: equal colours mean equal degrees."
    )
    pictures = (about, Pictures(partial(charts.surfaces, surfaces, shares)))
    empty = Text("Not in this store; this fills it:", code=fill)
    return [
        Section("examples", "Single instances", drawn if kept else (Text("No answers were kept in this store."),)),
        Section("manifold", "The manifold", pictures if surfaces else (empty,)),
        _settings(results, experiment),
        failed(results),
        provenance(results),
    ]


def _settings(results: Results, experiment: str) -> Section:
    known = {cls.__name__: cls.reference for cls in enhance.methods().values()}
    rows, kinds = [], results.kinds(experiment)
    for name in kinds:
        found = results.of(experiment, row=name)
        records = [record for result in found for record in result.records]
        cpu, seeds = math.fsum(record["time"]["cpu"] for record in records), max(len(r.records) for r in found)
        task = records[0]["cell"]["task"] if records else {}
        params = ", ".join(f"{k} = {v}" for k, v in task.get("estimator", {}).get("params", {}).items())
        warned = sorted({text for record in records for text in record["warnings"]})[:WARNINGS_SHOWN]
        ended = all(record["solution"].get("converged", True) for record in records)
        told = {"CPU s, all sets": Cell(f"{cpu:.1f}", cpu), "Seeds": seeds, "Converged": "yes" if ended else "not all"}
        reference = Cell(known.get(found[0].method, ""), note=" ".join(_distinct(warned)))
        rows.append({"Row": name, **told, "Parameters": params, "Reference": reference})
    grid = as_table("Methods and settings", rows, "whole", kinds)
    return Section("rows", grid.title, (grid if rows else Text("No recovery results are in this store yet."),))


def as_table(title: str, records: Sequence[Record], style: str = "", kinds: Mapping[str, Kind] | None = None) -> Grid:
    """A table with a row per record, which its first entry names: words, numbers as people read them, or cells."""
    if not records:
        return Grid(title, (), ())
    head, *titles = dict.fromkeys(key for record in records for key in record)
    rows = [
        Row(_cell(r[head]).text, tuple(_cell(r.get(t)) for t in titles), (kinds or {}).get(r[head], "method"))
        for r in records
    ]
    texts = {t for row in rows for t, c in zip(titles, row.cells, strict=True) if c.text and c.value is None}
    return Grid(title, tuple(Column(t, is_text=t in texts) for t in titles), tuple(rows), head, style=style)


def _cell(value: object) -> Cell:
    if isinstance(value, float):
        extreme = abs(value) >= 10 or 0 < abs(value) < 1e-3
        return Cell(f"{value:.4g}" if extreme else words.number(value), value)
    if isinstance(value, int):
        return Cell(f"{value:,}", value)
    return value if isinstance(value, Cell) else Cell("" if value is None else str(value))


def _distinct(warnings: Sequence[str]) -> list[str]:
    """Warnings that differ in more than their figures; how many were like each is said."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(re.sub(r"\d[\d.e+-]*", "#", text), []).append(text)
    return [f"{like[0]} (and {len(like) - 1} like it)" if len(like) > 1 else like[0] for like in kinds.values()]


def failed(results: Results) -> Section:
    """Every cell that raised, with its traceback."""
    found = tuple(Fold(text, (Text(r["traceback"], "pre"),), style="plain") for text, r in _failures(results))
    return Section("failures", "Failures", found or (Text("No cell failed."),))


def provenance(results: Results) -> Section:
    """What computed the numbers, when and by which commands."""
    records = {record["key"]: record for result in results for record in result.records}
    states = [result.status for result in results]
    last: Record = results.runs[-1] if results.runs else {"versions": {}, "machine": {}}
    seeds = sorted({r["cell"]["seed"] for r in records.values() if r["cell"]["seed"] is not None})
    cpu = words.duration(math.fsum(record["time"]["cpu"] for record in records.values()))
    entries = {
        "Results": f"{states.count('done')} of {len(states)} table cells done, {states.count('failed')} failed, "
        f"{states.count('pending')} not run yet, {_count_stale(results)} from an earlier version of code or parameters",
        "Computing time": f"{cpu} of CPU time, all cells together",
        "Machine": ", ".join(f"{key} {value}" for key, value in last["machine"].items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in last["versions"].items()),
        "Seeds": ", ".join(map(str, seeds)) or "none",
        "Report made": f"{_stamp(time.time())}, from the store alone, by contone report",
    }
    rows = []
    for run in results.runs:
        took = words.duration(run["finished"] - run["started"]) if run["finished"] else ""
        command = re.sub(r" --store[ =]\S+", "", run.get("command", ""))
        counts = {key.capitalize(): run.get(key) for key in ("state", "done", "reused", "failed")}
        rows.append({"Started": _stamp(run["started"]), "Took": took, **counts, "Command": command})
    grids = (as_table("Runs", rows),) if rows else ()
    return Section("provenance", "Provenance", (Terms(tuple(entries.items())), *grids))


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))

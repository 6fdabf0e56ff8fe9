"""store -> one dict of plain values: everything that the report says; the templates compute nothing.

``summarise(store)`` gives (all values are JSON: numbers, texts, lists, dicts, None; infinite and missing numbers are
None and their text says which):

    schema        int, this layout's version
    title, paper  texts; the paper's citation
    headline      {sentences: [five texts], recovered: Figure}   what was asked and what came out
    datasets      [{name, short (the paper's name or None), n, d, q, labels_per_row, of_the_paper}]
    missing       {datasets: {name: what to do}, methods: {name: why}}
    measures      [{name, title, formula, arrow, greater_is_better, in_paper}]
    rows          [{name, method, kind ("method" | "baseline" | "oracle"), reference, params, seeds, cpu_seconds,
                    solved (all converged), warnings}]   the rows of the recovery table
    verdicts      [{name, text}]   the rule, in the order in which it is tried
    recovery      {title, question, tables: [Table], recovered: Table}
    ranks         {title, question, warning, groups: [Group]}   from the paper's table, from our counterparts, from all
    augmentation  {title, question, tables: [Table], bars: {dataset, measure, title, pairs: [Bar]}}
    ablation      {title, question, tables: [Table]}
    sensitivity   {title, question, symbols: {parameter: text}, curves: [Curve]}
    prediction    {title, question, tables: [Table], note}
    examples      [{dataset, labels, instances: [{row, truth, logical, recovered: {row name: [q values]}}]}]
    manifold      [{row, key}]   recovered artificial data: ``store.arrays(key)["recovered"]``, (2601, 3)
    errata        [{id, title, claim, finding, source, holds, numbers: [{...}]}]
    failures      [{experiment, dataset, row, setting, seed, error, traceback}]
    counts        {planned, done, failed, pending, stale (done, but with earlier code, data or parameters), published,
                   verdicts: {name: count}}
    provenance    {runs: [{id, command, started, seconds, state, done, failed, reused}], versions, machine, seeds,
                   cpu_seconds, generated}

    Table    {measure, title, arrow, greater_is_better, datasets: [name], rows: [Row]}
    Row      {name, kind, published_as (name in the paper or None), mean_text, mean (None unless all sets are done),
              cells: [Cell, one a data set]}
    Cell     {dataset, status ("done" | "failed" | "pending" | "no data"), value, text, spread, spread_text, seeds,
              best, published, published_text, compared, compared_measure,
              verdict ({name, difference, reason} or None)}
             `best`: the best of the rows that have not seen the truth. `compared` is what the verdict looks at: it is
             `value` except for KL, where it is the reading that the paper used for that row (`compared_measure`).
             A row that only the paper has is named after it, with status "pending" or "no data".
    Figure   {datasets: [name], rows: [{name, kind, values: [share or None], mean}]}
    Group    {name, title, datasets, measures: [{measure, title, average_ranks, friedman, critical_difference, nemenyi,
              reference, wilcoxon: {row: {p_value, wins, ties, losses, outcome}},
              published ({average_ranks, wilcoxon} or None)}]}
    Bar      {method, alone, augmented, alone_published, augmented_published}
    Curve    {row, dataset, parameter, paper_value, values: [x], scores: {measure: [y]}, uniform: {measure: y}}

JSON keeps it: ``json.dumps(summarise(store), allow_nan=False)`` works.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from contone import enhance, measures
from contone.experiments.results import Entry, Results, load_results
from contone.experiments.spec import Spec
from contone.experiments.store import Store
from contone.reproduction import errata, paper
from contone.reproduction.report.ranking import rank_groups
from contone.reproduction.report.tables import (
    FULL_TO_SHORT,
    REPORTED,
    Plain,
    as_percent,
    describe_measure,
    experiment_tables,
    figure,
    heading,
    recovered_table,
)
from contone.reproduction.specs import specs
from contone.reproduction.verdicts import RULES

SCHEMA = 1
TITLE = "Data augmentation for label enhancement, re-run"


def summarise(store: Store) -> Plain:
    """Everything that the report says about the results in a store, as plain values; see the module's docstring."""
    results, every, runs = load_results(store), specs(), store.runs()
    shares = recovered_table(results)
    recovery = experiment_tables(every["recovery"], results, REPORTED, paper.recovery())
    prediction = experiment_tables(every["prediction"], results, REPORTED, paper.prediction())
    augmentation = experiment_tables(every["augmentation"], results, ("clark", "chebyshev", "kl"), paper.augmentation())
    ablation = experiment_tables(every["ablation"], results, ("chebyshev", "clark", "kl"), paper.ablation())
    found = errata.errata(_for_errata(results))
    tables = [t for e in (recovery, prediction, augmentation, ablation) for t in e["tables"]]
    counts = _counts(results, tables)
    summary = {
        "schema": SCHEMA,
        "title": TITLE,
        "paper": paper.CITATION,
        "headline": {"sentences": _headline(results, shares, counts, found), "recovered": figure(shares)},
        "datasets": _datasets(results),
        "missing": _missing(results, runs),
        "measures": [describe_measure(name) for name in REPORTED],
        "rows": _rows(results),
        "verdicts": list(RULES),
        "recovery": {**recovery, "recovered": shares},
        "ranks": {
            **heading(every["ranks"]),
            "groups": rank_groups(results),
            "warning": RANK_WARNING,
        },
        "augmentation": {**augmentation, "bars": _bars(results)},
        "ablation": ablation,
        "sensitivity": _sensitivity(every["sensitivity"], results),
        "prediction": {**prediction, "note": PREDICTION_NOTE},
        "examples": _examples(results),
        "manifold": _manifold(results),
        "errata": [evidence.plain() for evidence in found],
        "failures": _failures(results),
        "counts": counts,
        "provenance": _provenance(results, runs),
    }
    return _finite(summary)


SYMBOLS = {"alpha": "alpha", "beta": "beta", "n_components": "d'", "n_neighbors": "k"}
"""The paper's letters for LCdr's parameters."""

RANK_WARNING = (
    "Ten of the paper's twelve sets are the same 2465 genes with the same features; they are not independent, so all "
    "p-values overstate the evidence."
)
PREDICTION_NOTE = (
    "Ten shuffled folds; scores against the true distributions of unseen rows. Truth: the same learner trained on the "
    "true distributions, which no row can be expected to beat. Published cells below it cannot have been measured "
    "against the truth."
)


# -------------------------------------------------------------------------------------------------- the other pictures


def _bars(results: Results, dataset: str = "yeast-cdc", measure: str = "clark") -> Plain:
    """The paper's bar chart: each method alone and behind the augmentation, on one set."""
    at_hand = results.datasets("augmentation")
    if at_hand and dataset not in at_hand:
        dataset = at_hand[0]
    printed = paper.augmentation()[measure]
    short = FULL_TO_SHORT.get(dataset, "")
    return {
        "dataset": dataset,
        "measure": measure,
        "title": measures.get(measure).title,
        "pairs": [
            {
                "method": method,
                "alone": results.score("augmentation", dataset, method, measure),
                "augmented": results.score("augmentation", dataset, f"LCdr-{method}", measure),
                "alone_published": printed[method].get(short),
                "augmented_published": printed[f"LCdr-{method}"].get(short),
            }
            for method in paper.COMPARED
        ],
    }


def _sensitivity(spec: Spec, results: Results) -> Plain:
    curves: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in results.of(spec.name):
        for parameter in entry.setting:
            curves.setdefault((entry.row, entry.dataset, parameter), []).append(entry)
    paper_value = {"alpha": 0.1, "beta": 0.1, "n_components": 10, "n_neighbors": 10}
    return {
        **heading(spec),
        "symbols": SYMBOLS,
        "curves": [
            {
                "row": row,
                "dataset": dataset,
                "parameter": parameter,
                "paper_value": paper_value.get(parameter),
                "values": [e.setting[parameter] for e in entries],
                "scores": {q: [e.scores.get(q) for e in entries] for q in REPORTED},
                "uniform": {q: results.score("recovery", dataset, "Uniform", q) for q in REPORTED},
            }
            for (row, dataset, parameter), entries in curves.items()
        ],
    }


def _examples(results: Results) -> list[Plain]:
    shown: list[Plain] = []
    for dataset in results.datasets("recovery"):
        kept = {
            e.row: e.records[0]["examples"]
            for e in results.of("recovery")
            if e.dataset == dataset and e.records and "examples" in e.records[0]
        }
        if not kept:
            continue
        first = next(iter(kept.values()))
        instances = [
            {
                "row": row,
                "truth": first["truth"][i],
                "logical": first["logical"][i],
                "recovered": {name: example["recovered"][i] for name, example in kept.items()},
            }
            for i, row in enumerate(first["rows"])
        ]
        shown.append({"dataset": dataset, "labels": first["labels"], "instances": instances})
    return shown


def _manifold(results: Results) -> list[Plain]:
    return [
        {"row": e.row, "key": e.records[0]["key"]}
        for e in results.of("recovery")
        if e.dataset == "artificial" and e.records and e.records[0]["arrays"]
    ]


# ----------------------------------------------------------------------------------------- what was run, in which state


def _datasets(results: Results) -> list[Plain]:
    found: dict[str, Plain] = {}
    for entry in results:
        if entry.records and entry.dataset not in found:
            data = entry.records[0]["data"]
            short = FULL_TO_SHORT.get(entry.dataset)
            found[entry.dataset] = {"name": entry.dataset, "short": short, **data, "of_the_paper": short is not None}
    return list(found.values())


def _missing(results: Results, runs: Sequence[Plain]) -> Plain:
    """What the latest runs could not do; data that a later run had is not missing."""
    at_hand = {entry.dataset for entry in results}
    methods = {entry.method for entry in results}
    datasets = {name: why for run in runs for name, why in run.get("missing_data", {}).items()}
    absent = {name: why for run in runs for name, why in run.get("missing_methods", {}).items()}
    return {
        "datasets": {name: why for name, why in datasets.items() if name not in at_hand},
        "methods": {name: why for name, why in absent.items() if name not in methods},
    }


def _rows(results: Results) -> list[Plain]:
    known = {cls.__name__: cls for cls in enhance.methods().values()}
    listed = []
    for name in results.rows("recovery"):
        entries = [e for e in results.of("recovery") if e.row == name]
        records = [record for e in entries for record in e.records]
        task = records[0]["cell"]["task"] if records else {}
        cls = known.get(entries[0].method)
        listed.append(
            {
                "name": name,
                "method": entries[0].method,
                "kind": entries[0].kind,
                "reference": cls.reference if cls is not None else "",
                "params": task.get("estimator", {}).get("params", {}),
                "seeds": max(e.seeds for e in entries),
                "cpu_seconds": math.fsum(r["time"]["cpu"] for r in records),
                "solved": all(r["solution"].get("converged", True) for r in records),
                "warnings": sorted({w for r in records for w in r["warnings"]})[:5],
            }
        )
    return listed


def _failures(results: Results) -> list[Plain]:
    return [
        {
            "experiment": entry.experiment,
            "dataset": entry.dataset,
            "row": entry.row,
            "setting": entry.setting,
            "seed": record["cell"]["seed"],
            "error": record["error"],
            "traceback": record["traceback"],
        }
        for entry in results
        for record in entry.failures
    ]


def _counts(results: Results, tables: Sequence[Plain]) -> Plain:
    verdicts = [c["verdict"]["name"] for t in tables for r in t["rows"] for c in r["cells"] if c["verdict"] is not None]
    states = [entry.status for entry in results]
    return {
        "planned": len(states),
        **{state: states.count(state) for state in ("done", "failed", "pending")},
        "stale": sum(entry.stale for entry in results),
        "published": len(verdicts),
        "verdicts": {rule["name"]: verdicts.count(rule["name"]) for rule in RULES},
    }


def _provenance(results: Results, runs: Sequence[Plain]) -> Plain:
    keys = {r["key"]: r for entry in results for r in entry.records}
    return {
        "generated": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "runs": [
            {
                "id": run["id"],
                "command": run.get("command", ""),
                "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run["started"])),
                "seconds": run["finished"] - run["started"] if run["finished"] else None,
                **{name: run.get(name) for name in ("state", "done", "failed", "reused")},
            }
            for run in runs
        ],
        "versions": runs[-1]["versions"] if runs else {},
        "machine": runs[-1]["machine"] if runs else {},
        "seeds": sorted({r["cell"]["seed"] for r in keys.values() if r["cell"]["seed"] is not None}),
        "cpu_seconds": math.fsum(r["time"]["cpu"] for r in keys.values()),
    }


def _for_errata(results: Results) -> dict[str, dict[str, dict[str, float]]]:
    """Our scores by measure, row and the paper's short name; those of the prediction under "prediction:<measure>"."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for experiment, prefix in (("recovery", ""), ("prediction", "prediction:")):
        for entry in results.of(experiment):
            if entry.status == "done" and entry.dataset in FULL_TO_SHORT:
                for measure, value in entry.scores.items():
                    rows = found.setdefault(f"{prefix}{measure}", {}).setdefault(entry.row, {})
                    rows[FULL_TO_SHORT[entry.dataset]] = value
    return found


def _headline(results: Results, shares: Plain, counts: Plain, found: Sequence[errata.Evidence]) -> list[str]:
    """What was asked and what came out, in five sentences."""
    datasets = results.datasets("recovery")
    of_paper = [name for name in datasets if name in FULL_TO_SHORT]
    methods = {e.method for e in results.of("recovery") if e.kind == "method"}
    means = {row["name"]: row["mean"] for row in shares["rows"] if row["kind"] != "oracle" and row["mean"] is not None}
    if not means:
        return ["No recovery results are in this store yet."]
    best = max(means, key=means.__getitem__)
    uniform = next((e for e in found if e.id == "uniform"), None)
    verdicts = counts["verdicts"]
    judged = counts["published"] - verdicts["not comparable"]
    sentences = [
        f"{_count(len(methods), 'method')} with their presets were asked to recover the label distributions of "
        f"{_count(len(datasets), 'data set')} from features and logical labels; {len(of_paper)} of the paper's 12 sets "
        "were at hand.",
        f"{best} comes furthest: on average it recovers {as_percent(means[best])} of what features and labels allow.",
    ]
    if "LCdr" in means and "Temperature" in means:
        sentences.append(
            f"LCdr with the paper's parameters recovers {as_percent(means['LCdr'])}; one line without features, "
            f"softmax(0.2 L), recovers {as_percent(means['Temperature'])}."
        )
    if uniform is not None:
        sentences.append(f"{uniform.title}: {uniform.finding}")
    inconsistent = f"the paper's own tables hold {sum(e.holds for e in found)} inconsistencies, recomputed below."
    if judged:
        sentences.append(
            f"Of {judged} published figures that could be re-run, {verdicts['matches']} match, {verdicts['close']} are "
            f"close, {verdicts['better']} came out better and {verdicts['worse']} worse; {inconsistent}"
        )
    else:
        sentences.append(f"No published figure could be re-run without the paper's data; {inconsistent}")
    return sentences


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _finite(value: Any) -> Any:
    """The same without infinite or missing numbers, which JSON does not have: they become None."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

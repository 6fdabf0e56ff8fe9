"""store -> report: a comparison of methods on data with known truth."""

from __future__ import annotations

import math

from contone.experiments.report import parts, ranks
from contone.experiments.report.charts.critical_difference import MIN_DATASETS
from contone.experiments.report.parts import Report
from contone.experiments.report.scores import SHARES, score_folds, share_grid
from contone.experiments.results import Results, load_results
from contone.experiments.spec import Spec
from contone.experiments.store import Store
from contone.pages import words
from contone.pages.blocks import Block, Grid, Heading, Section, Text
from contone.typing import Record

RANKS = Spec(
    "ranks",
    "Ranks and tests",
    "Are the differences between the methods more than chance?",
    "Data sets that share instances or features are not independent; p-values over them overstate the evidence. The "
    "ten Yeast sets are the same genes with the same features.",
)


def make_report(store: Store) -> Report:
    """Everything that the report on a comparison says about the results in a store: of the experiment run last."""
    results = load_results(store)
    about: Record = next((r["report"] for r in reversed(results.runs) if isinstance(r.get("report"), dict)), {})
    experiment = str(about.get("experiment", "benchmark"))
    shares = share_grid(results, experiment)
    kinds, datasets = results.kinds(experiment), results.datasets(experiment)
    untold = [name for name, kind in kinds.items() if kind != "oracle"]
    title = "All rows that have not seen the truth"
    group = ranks.group_of_results(results, experiment, "all", title, untold, datasets)
    sentences = _sentences(results, experiment, shares)
    instances, manifold, last = parts.closing_sections(results, experiment, store, shares)
    has_surface = not isinstance(manifold.blocks[0], Text) or len(manifold.blocks) > 1
    sections = [
        parts.summary_section(results, experiment, sentences, shares, "contone benchmark"),
        _scores(results, experiment, shares, about),
        *([ranks.section(RANKS, [group])] if group is not None else []),
        instances,
        *([manifold] if has_surface else []),
        *last,
    ]
    n_methods = sum(kind == "method" for kind in kinds.values())
    title = str(about.get("title", "Label enhancement methods compared"))
    counted = f"{words.count(n_methods, 'method')} on {words.count(len(datasets), 'data set')}."
    return parts.as_report(results, title, counted, sections, sentences, shares)


def _scores(results: Results, experiment: str, shares: Grid, about: Record) -> Section:
    folds = score_folds(results, experiment, experiment)
    blocks: list[Block] = [Text(str(about["note"]))] if about.get("note") else []
    blocks += [Heading(SHARES), shares] if shares.rows else []
    blocks += [Heading("All scores"), *folds] if folds else [Text("No results are in this store yet.")]
    return Section("recovery", "Scores", tuple(blocks), str(about.get("question", "")))


def mean_shares(shares: Grid) -> dict[str, float]:
    """The mean recovered share of the rows that have not seen the truth and have a finite one."""
    means = {row.name: row.cells[0].value for row in shares.rows if row.kind != "oracle"}
    return {name: mean for name, mean in means.items() if mean is not None and math.isfinite(mean)}


def furthest(means: dict[str, float], n_datasets: int) -> str:
    """Which row comes furthest, as a sentence."""
    best = max(means, key=means.__getitem__)
    covers = "on average it covers" if n_datasets > 1 else "it covers"
    return (
        f"{best} comes furthest: {covers} {words.percent(means[best])} of the way from the uniform distribution to "
        f"{parts.LIMIT}."
    )


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
    methods, baselines = (
        {name: mean for name, mean in means.items() if kinds[name] == kind} for kind in ("method", "baseline")
    )
    if methods and baselines:
        best = max(baselines, key=baselines.__getitem__)
        ahead = sum(mean > baselines[best] for mean in methods.values())
        sentences.append(
            f"{ahead} of {words.count(len(methods), 'method')} {'is' if ahead == 1 else 'are'} ahead of the best "
            f"baseline, {best}, which uses no features and covers {words.percent(baselines[best])}."
        )
    if len(datasets) < MIN_DATASETS:
        sentences.append(
            f"{counted} cannot show that one method is better than another in general; tests over data sets begin to "
            f"mean something with {MIN_DATASETS}."
        )
    return sentences

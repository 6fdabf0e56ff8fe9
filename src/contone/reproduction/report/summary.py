"""store -> summary: everything that the report on the paper says, as frozen values."""

from __future__ import annotations

from dataclasses import asdict

from contone import measures
from contone.experiments.report import summary as common
from contone.experiments.report.ranking import group_of_results, rank_group, rows_without_truth
from contone.experiments.report.schema import Headline, PrintedRanks, RankGroup, Ranks, Table
from contone.experiments.report.tables import REPORTED, describe_measure, figure, recovered_table
from contone.experiments.results import Entry, Results, load_results
from contone.experiments.spec import Spec
from contone.experiments.store import Store
from contone.reproduction import paper
from contone.reproduction.errata import errata
from contone.reproduction.paper.counterparts import counterparts
from contone.reproduction.report.headline import headline
from contone.reproduction.report.schema import Bar, Bars, Curve, PaperSummary, Sensitivity, VerdictCounts
from contone.reproduction.report.tables import FULL_TO_SHORT, N_STANDARD_ERRORS, floor_of, section
from contone.reproduction.specs import specs
from contone.reproduction.verdicts import RULES

TITLE = "Data augmentation for label enhancement, re-run"

SYMBOLS = {"alpha": "alpha", "beta": "beta", "n_components": "d'", "n_neighbors": "k"}
"""The paper's letters for LCdr's parameters."""

PAPER_VALUES: dict[str, float] = {"alpha": 0.1, "beta": 0.1, "n_components": 10, "n_neighbors": 10}
"""What the paper sets them to."""

RANK_WARNING = (
    "Ten of the paper's twelve sets are the same 2465 genes with the same features; they are not independent, so all "
    "p-values overstate the evidence."
)
PREDICTION_NOTE = (
    "Ten shuffled folds; scores against the true distributions of unseen rows. Truth: the paper's learner trained on "
    "the true distributions; it is not regularised, so that on few rows a learner trained on smoother, recovered "
    "distributions can beat it. Floor: the best of several regularised learners trained on the truth, measure by "
    "measure. A published figure is called impossible where it is better than the floor by more than "
    f"{N_STANDARD_ERRORS:g} standard errors of the floor's mean over the folds."
)


Scores = dict[str, dict[str, dict[str, float]]]


def summarise(store: Store) -> PaperSummary:
    """Everything that the report says about the results in a store."""
    results, every, runs = load_results(store), specs(), store.runs()
    shares = recovered_table(results, "recovery")
    recovery = section(every["recovery"], results, REPORTED, paper.recovery())
    prediction = section(every["prediction"], results, REPORTED, paper.prediction())
    augmentation = section(every["augmentation"], results, ("clark", "chebyshev", "kl"), paper.augmentation())
    ablation = section(every["ablation"], results, ("chebyshev", "clark", "kl"), paper.ablation())
    found = errata(_for_errata(results))
    counts = _counts(results, [t for s in (recovery, prediction, augmentation, ablation) for t in s.tables])
    return PaperSummary(
        title=TITLE,
        about=f"The experiments of {paper.CITATION} Run again with contone.",
        headline=Headline(tuple(headline(results, shares, counts, found)), figure(shares)),
        datasets=common.describe_datasets(results, FULL_TO_SHORT),
        missing=common.describe_missing(results, runs),
        measures=tuple(describe_measure(name) for name in REPORTED),
        rows=common.describe_rows(results, "recovery"),
        verdicts=RULES,
        recovery=recovery,
        shares=shares,
        ranks=Ranks(every["ranks"].title, every["ranks"].question, RANK_WARNING, tuple(_rank_groups(results))),
        augmentation=augmentation,
        bars=_bars(results),
        ablation=ablation,
        sensitivity=_sensitivity(every["sensitivity"], results),
        prediction=prediction,
        prediction_note=PREDICTION_NOTE,
        examples=common.choose_examples(results, "recovery"),
        manifold=common.choose_surfaces(results, "recovery"),
        errata=found,
        failures=common.describe_failures(results),
        counts=counts,
        provenance=common.describe_provenance(results, runs, store.problems()),
    )


def _rank_groups(results: Results) -> list[RankGroup]:
    """Ranks and tests: of the paper's table, of our rows beside the paper's, and of all rows without the truth."""
    names = results.rows("recovery")
    known = counterparts()["recovery"]
    ours = {theirs: row for theirs in paper.METHODS if (row := known.row(theirs, names)) is not None}
    real = [name for name in results.datasets("recovery") if name != "artificial"]
    of_paper = [name for name in real if name in FULL_TO_SHORT]
    printed = {m: PrintedRanks(paper.average_ranks()[m], paper.wilcoxon()[m]) for m in paper.average_ranks()}
    groups = [
        rank_group("paper", "The paper's own table", paper.recovery(), list(paper.DATASETS), "LCdr", printed),
        group_of_results(
            results,
            "recovery",
            "counterparts",
            "The paper's methods, re-run",
            list(ours.values()),
            of_paper,
            ours.get("LCdr"),
        ),
        group_of_results(
            results,
            "recovery",
            "all",
            "All rows that have not seen the truth",
            rows_without_truth(results, "recovery"),
            real,
        ),
    ]
    return [group for group in groups if group is not None]


def _bars(results: Results, dataset: str = "yeast-cdc", measure: str = "clark") -> Bars:
    """The paper's bar chart: each method alone and behind the augmentation, on one set."""
    available = results.datasets("augmentation")
    if available and dataset not in available:
        dataset = available[0]
    printed = paper.augmentation()[measure]
    short = FULL_TO_SHORT.get(dataset, "")
    pairs = [
        Bar(
            method=method,
            alone=results.score("augmentation", dataset, method, measure),
            augmented=results.score("augmentation", dataset, f"LCdr-{method}", measure),
            alone_published=printed[method].get(short),
            augmented_published=printed[f"LCdr-{method}"].get(short),
        )
        for method in paper.COMPARED
    ]
    return Bars(dataset, measure, measures.get(measure).title, tuple(pairs))


def _sensitivity(spec: Spec, results: Results) -> Sensitivity:
    curves: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in results.of(spec.name):
        for parameter in entry.setting:
            curves.setdefault((entry.row, entry.dataset, parameter), []).append(entry)
    listed = [
        Curve(
            row=row,
            dataset=dataset,
            parameter=parameter,
            paper_value=PAPER_VALUES.get(parameter),
            values=tuple(e.setting[parameter] for e in entries),
            scores={q: tuple(e.scores.get(q) for e in entries) for q in REPORTED},
            uniform={q: results.score("recovery", dataset, "Uniform", q) for q in REPORTED},
        )
        for (row, dataset, parameter), entries in curves.items()
    ]
    return Sensitivity(spec.title, spec.question, SYMBOLS, tuple(listed))


def _counts(results: Results, tables: list[Table]) -> VerdictCounts:
    given = [c.published.verdict.name for t in tables for r in t.rows for c in r.cells if c.published is not None]
    return VerdictCounts(
        **asdict(common.count_cells(results)),
        published=len(given),
        verdicts={rule.name: given.count(rule.name) for rule in RULES},
    )


def _for_errata(results: Results) -> Scores:
    """Our scores by measure, row and the paper's short name; those of the prediction under "prediction:<measure>"."""
    found: Scores = {}
    for experiment, prefix in (("recovery", ""), ("prediction", "prediction:")):
        for entry in results.of(experiment):
            if entry.status == "done" and entry.dataset in FULL_TO_SHORT:
                for measure, value in entry.scores.items():
                    rows = found.setdefault(f"{prefix}{measure}", {}).setdefault(entry.row, {})
                    rows[FULL_TO_SHORT[entry.dataset]] = value
    row = counterparts()["prediction"].floor
    for dataset in results.datasets("prediction"):
        for measure in [name.removeprefix("prediction:") for name in found if name.startswith("prediction:")]:
            floor = floor_of(results, "prediction", dataset, row, measure)
            if floor is not None and dataset in FULL_TO_SHORT:
                # The floor less its error: what a figure must be beyond to be called impossible.
                rows = found[f"prediction:{measure}"].setdefault("Floor less its error", {})
                rows[FULL_TO_SHORT[dataset]] = floor[0] - N_STANDARD_ERRORS * floor[1]
    return found

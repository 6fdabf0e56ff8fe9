"""Real people in the fair comparison: every method gets k answers per item, and is judged by those left out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from contone.base import Enhancer
from contone.enhance import Inversion
from contone.exceptions import InputError
from contone.experiments.describe import describe
from contone.experiments.judging import COUNTERS
from contone.experiments.plan import Cell, Plan, check_max_rows, plan_rows
from contone.experiments.report import make
from contone.experiments.report.scores import as_grid, best_first
from contone.experiments.sources import Source
from contone.experiments.store import Results, Store, load_results
from contone.measurements import Votes
from contone.pages import blocks, words
from contone.pages.blocks import Fold, Grid, Items, Section
from contone.typing import Record

NAME = "people"
"""The name of the experiment."""

COUNTING = ("Counting", "Dirichlet-multinomial")
"""The rows that a method has to beat: without features."""

TITLE = "Methods judged by answers of people"
ABOUT = (
    "Methods are given a few answers per item and judged by those that were left out, in nats. A method of 0/1 labels "
    "gets those that more than half of its answers name, or, (any), those that anybody names. Counting is the better "
    "one of Counting and Dirichlet-multinomial."
)


# ---------------------------------------------------------------------------------------------------------------- cells


def plan_people(
    folder: Path,
    methods: Mapping[str, Enhancer],
    *,
    answers: Sequence[int] = (1, 3),
    seeds: int = 3,
    max_rows: int | None = None,
) -> Plan:
    """A cell for every row, set, number of answers and seed; a seed draws the answers and seeds the method.

    With `max_rows` a random sample of that many items stands for every larger set.
    """
    check_max_rows(max_rows)
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder} has no set of answers: a .npz file with X, item, worker, label and labels.")
    if any(k < 1 for k in answers) or not answers:
        raise InputError("answers: give whole numbers of at least 1, such as 1,3.")
    sources = [Source(f.stem, str(f.resolve()), max_rows=max_rows or 0, of_people=True) for f in files]
    return plan_rows([row for k in answers for row in _rows(methods, k)], sources, lambda row: seeds)


def _rows(methods: Mapping[str, Enhancer], k: int) -> Iterator[Cell]:
    asked: dict[str, tuple[Record, Enhancer | None]] = {name: ({"counts": name}, None) for name in COUNTERS}
    asked["Inversion (votes)"] = {"reading": "votes"}, Inversion(degradation=Votes())
    for name, method in methods.items():
        asked[name] = {"reading": "majority"}, method
        if k > 1:  # of one answer both are the same
            asked[f"{name} (any)"] = {"reading": "any"}, method
    for name, (how, estimator) in asked.items():
        cls = name if estimator is None else type(estimator).__name__
        task = {"kind": NAME, "k": k, **how} | ({} if estimator is None else {"estimator": describe(estimator)})
        yield Cell(NAME, name, cls, task=task, setting={"k": k}, baseline=estimator is None)


# ------------------------------------------------------------------------------------------------------------ report


def make_report(store: Store) -> make.Report:
    """The table of a store for every number of answers, the best row of a set in bold."""
    results = load_results(store)
    sections, said = [], []
    for k in sorted({int(entry.setting["k"]) for entry in results.of(NAME)}):
        loss, tempered = (table(results, k, measure) for measure in ("log_loss", "log_loss_tempered"))
        fold = Fold("At the best temperature", (tempered,), "chosen by the answers that judge it: a bound, no score")
        question = "The log loss of the left-out answers: less is better. Baselines read the counts of the answers."
        sections.append(Section(f"answers-{k}", f"Given {words.count(k, 'answer')} per item", (loss, fold), question))
        said.append(f"Given {words.count(k, 'answer')} per item, {_verdict(loss)}")
    first = sections[0].grids()[0] if sections else Grid("", (), ())
    summary = Section("summary", "Summary", (Items(tuple(said or ["No results are here yet."])),))
    order = summary, *sections, make.failed(results), make.provenance(results)
    return make.as_report(results, TITLE, ABOUT, order, said, first)


def table(results: Results, k: int, measure: str) -> Grid:
    """Mean scores of all rows on all sets, given k answers; the best mean first, rows that lack a set last."""

    def cell(row: str, dataset: str) -> blocks.Cell:
        value = results.score(NAME, dataset, row, measure, {"k": k})
        return blocks.Cell(_three(value), value)

    title = f"Log loss of the left-out answers, given {words.count(k, 'answer')} per item"
    return best_first(as_grid(title, results.datasets(NAME), results.kinds(NAME), cell, _three, False))


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _verdict(loss: Grid) -> str:
    """Which rows that are no baselines beat counting, and on how many sets."""
    rows = {row.name: [math.inf if c.value is None else c.value for c in row.cells[1:]] for row in loss.rows}
    if not set(COUNTING) <= rows.keys():
        return "no set has answers left to judge by."
    best = [min(pair) for pair in zip(*(rows[name] for name in COUNTING), strict=True)]
    methods = [row.name for row in loss.rows if row.kind == "method"]
    wins = {name: sum(v < b for v, b in zip(rows[name], best, strict=True)) for name in methods}
    ahead = [f"{name} on {n}" for name, n in sorted(wins.items(), key=lambda pair: -pair[1]) if n]
    if not ahead:
        return "no method beats counting on any set."
    return f"counting is beaten by {', '.join(ahead)} of {words.count(len(best), 'set')}."

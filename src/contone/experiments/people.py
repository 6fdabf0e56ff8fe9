"""Real people in the fair comparison: every method gets k answers per item, and is judged by those left out.

There is no truth here. The degree of a label is the share of people who would choose it, so the answers of others say
how good an estimate is: the score is the mean over items of the log loss of the left-out answers, in nats, with
probabilities clipped at 1e-9.

A label enhancement method takes 0 and 1. Of k answers it is given those labels that more than half of them name
("majority"; those named most often where there is none), or those that anybody names ("any"). Beside them stand methods
that read the counts: counting, the Dirichlet-multinomial, Dawid and Skene's model, a logistic regression.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance import Inversion
from contone.exceptions import InputError
from contone.experiments.answers import COUNTERS, Answers, marks, read_answers
from contone.experiments.cells import Cell
from contone.experiments.describe import build, describe, random_parameters
from contone.experiments.fingerprint import fingerprint
from contone.experiments.plan import Plan
from contone.experiments.report import parts
from contone.experiments.report.scores import as_grid
from contone.experiments.results import Results, load_results
from contone.experiments.sources import content_hash
from contone.experiments.store import Store
from contone.measures import cross_entropy
from contone.pages import blocks, words
from contone.pages.blocks import Fold, Grid, Section
from contone.typing import Data, Matrix, Record

NAME = "people"
"""The name of the experiment."""

LEAST = 1e-9
"""Probabilities are clipped here before their logarithm is taken."""

READINGS = ("majority", "any")

COUNTING = ("Counting", "Dirichlet-multinomial")
"""The rows that a method has to beat: without features."""

TITLE = "Methods judged by answers of people"


def plan_people(
    folder: Path, methods: Mapping[str, Enhancer], *, answers: Sequence[int] = (1, 3), seeds: int = 3
) -> Plan:
    """A cell for every row, set, number of answers and seed; a seed draws the answers and seeds the method."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder} has no set of answers: a .npz file with X, item, worker, label and labels.")
    if any(k < 1 for k in answers) or not answers:
        raise InputError(f"answers={answers!r}: give whole numbers of at least 1.")
    code = fingerprint("contone.experiments.people")
    cells = []
    for file in files:
        about: Record = {"experiment": NAME, "dataset": file.stem, "source": {"file": str(file.resolve())}}
        about |= {"data_hash": _content(read_answers(file)), "degradation": {}}
        for k, seed in product(answers, range(seeds)):
            for row, task, estimator in _rows(methods, k):
                task = {"kind": NAME, "k": k, "code": code, **task}
                if estimator is not None:
                    seeded = clone(estimator).set_params(**dict.fromkeys(random_parameters(estimator), seed))
                    task["estimator"] = describe(seeded)
                method = type(estimator).__name__ if estimator is not None else row
                place = {"row": row, "method": method, "setting": {"k": k}, "baseline": estimator is None}
                cells.append(Cell(**(about | place), task=task, seed=seed))
    return Plan(cells)


def _rows(methods: Mapping[str, Enhancer], k: int) -> Iterator[tuple[str, Record, Enhancer | None]]:
    for name in COUNTERS:
        yield name, {"counts": name}, None
    for name, method in {"Inversion (votes)": Inversion(degradation="votes"), **methods}.items():
        if reads_votes(method):
            yield name, {"reading": "votes"}, method
            continue
        for reading in READINGS if k > 1 else READINGS[:1]:  # of one answer they are the same
            yield name if reading == "majority" else f"{name} (any)", {"reading": reading}, method


def reads_votes(method: Enhancer) -> bool:
    """Whether a method takes counts of votes in the place of 0 and 1."""
    return getattr(method, "degradation", None) == "votes"


def _content(answers: Answers) -> str:
    return content_hash(answers.X, answers.item, answers.worker, answers.label)


def outcome(cell: Cell) -> Record:
    """What a cell gives: the log loss of the left-out answers, and the same at the best temperature in hindsight."""
    answers = read_answers(Path(cell.source["file"]))
    if _content(answers) != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content than in the plan.")
    given, left = answers.split(cell.task["k"], cell.seed or 0)
    if "counts" in cell.task:
        R = COUNTERS[cell.task["counts"]](given)
    else:
        R = np.asarray(_answer(build(cell.task["estimator"]), given, cell.task["reading"]))
    judged = left.counts()
    loss, (tempered, exponent) = log_loss(judged, R), best_temperature(judged, R)
    return {
        "scores": {"log_loss": loss, "log_loss_tempered": tempered},
        "solution": {},
        "extra": {"exponent": exponent, "judged": int(judged.any(axis=1).sum())},
        "data": {"n": len(answers.X), "d": answers.X.shape[1], "q": len(answers.labels)},
    }


def _answer(method: Enhancer, given: Answers, reading: str) -> Data:
    """A method's degrees (n, q): from votes by the people who gave them, where that is known, or from marks."""
    if reading != "votes":
        return method.fit_enhance(given.X, marks(given, reading))
    counts = given.counts()
    single = np.array_equal(given.n_answers(), counts.sum(axis=1))
    if not single or (given.worker < 0).any() or not counts.any(axis=1).all():
        return method.fit_enhance(given.X, counts)
    order = np.argsort(given.item, kind="stable")
    item, votes = given.item[order], np.eye(len(given.labels))[given.label[order]]
    return method.fit_enhance(given.X[item], votes, groups=item, annotators=given.worker[order])  # type: ignore[call-arg]


def log_loss(counts: Matrix, R: Matrix) -> float:
    """The mean over items of the mean log loss of their answers (n, q), probabilities clipped at 1e-9."""
    return cross_entropy(counts, np.maximum(R, LEAST))


def best_temperature(counts: Matrix, R: Matrix) -> tuple[float, float]:
    """The least log loss of R^t, normalised, over t, and that t: chosen by the answers that judge it."""
    logs = np.log(np.maximum(R, LEAST))

    def loss(log_t: float) -> float:
        Z = np.exp(log_t) * logs
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        return log_loss(counts, P / P.sum(axis=1, keepdims=True))

    found = minimize_scalar(loss, bounds=(-7.0, 5.0), method="bounded")
    return float(found.fun), float(np.exp(found.x))


# ------------------------------------------------------------------------------------------------------------ report


def make_report(store: Store) -> parts.Report:
    """The table of a store for every number of answers, the best row of a set in bold."""
    results = load_results(store)
    entries, sections, said = results.of(NAME), [], []
    for k in sorted({int(entry.setting["k"]) for entry in entries}):
        loss, tempered = (table(results, k, measure) for measure in ("log_loss", "log_loss_tempered"))
        fold = Fold("At the best temperature", (tempered,), "chosen by the answers that judge it: a bound, no score")
        sections.append(Section(f"answers-{k}", loss.title, (loss, fold)))
        said.append(f"Given {words.count(k, 'answer')} per item, {_verdict(loss)}")
    about = "Methods are given a few answers per item and judged by the answers that were left out, in nats."
    first = sections[0].grids()[0] if sections else Grid("", (), ())
    last = parts.failed(results), parts.provenance(results)
    return parts.as_report(results, TITLE, about, (*sections, *last), said, first)


def table(results: Results, k: int, measure: str) -> Grid:
    """Mean scores of all rows on all sets, given k answers; the best mean first, rows that lack a set last."""
    datasets, lines = results.datasets(NAME), []
    for row, kind in results.kinds(NAME).items():
        found = (results.get(NAME, dataset, row, {"k": k}) for dataset in datasets)
        values = [one.scores[measure] if one is not None and one.status == "done" else None for one in found]
        if any(value is not None for value in values):
            lines.append((row, kind, [blocks.Cell("" if v is None else f"{v:.3f}", v) for v in values], None))
    title = f"Log loss of the left-out answers, given {words.count(k, 'answer')} per item"
    grid = as_grid(title, datasets, lines, lambda v: "" if v is None else f"{v:.3f}", False, with_shares=False)
    order = sorted(grid.rows, key=lambda row: math.inf if row.cells[0].value is None else row.cells[0].value)
    return replace(grid, rows=tuple(order))


def _verdict(loss: Grid) -> str:
    """Which rows that are no baselines beat counting, and on how many sets."""
    rows = {row.name: [math.inf if c.value is None else c.value for c in row.cells[1:]] for row in loss.rows}
    best = [min(pair) for pair in zip(*(rows[name] for name in COUNTING), strict=True)]
    methods = [row.name for row in loss.rows if row.kind == "method"]
    wins = {name: sum(v < b for v, b in zip(rows[name], best, strict=True)) for name in methods}
    ahead = ", ".join(f"{name} ({n})" for name, n in sorted(wins.items(), key=lambda pair: -pair[1]) if n)
    what = f"beat counting (the better of its two rows), on how many of {words.count(len(best), 'set')}"
    return f"these {what}: {ahead}." if ahead else "no method beats counting on any set."

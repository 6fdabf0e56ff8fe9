"""Real people in the fair comparison: every method gets k answers per item, and is judged by those left out.

There is no truth here. The degree of a label is the share of people who would choose it, so the answers of others say
how good an estimate is: the score is the mean over items of the log loss of the left-out answers, in nats, with
probabilities clipped at 1e-9.

A label enhancement method takes 0 and 1. Of k answers it is given those labels that more than half of them name
("majority"; those named most often where there is none), or those that anybody names ("any"). Beside them stand methods
that read the counts: counting, the Dirichlet-multinomial, Dawid and Skene's model, a logistic regression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from contone.base import Enhancer
from contone.exceptions import InputError
from contone.experiments.answers import COUNTERS, Answers, marks, read_answers
from contone.experiments.cells import Cell
from contone.experiments.compute import compute
from contone.experiments.data import content_hash
from contone.experiments.describe import build, describe, random_parameters
from contone.experiments.fingerprint import fingerprint
from contone.experiments.results import load_results
from contone.experiments.run import Observer, Progress, run
from contone.experiments.store import Store
from contone.measures import cross_entropy
from contone.typing import Matrix

NAME = "people"
"""The name of the experiment."""

LEAST = 1e-9
"""Probabilities are clipped here before their logarithm is taken."""

READINGS = ("majority", "any")


def plan_people(
    folder: Path, methods: Mapping[str, Enhancer], *, answers: Sequence[int] = (1, 3), seeds: int = 3
) -> list[Cell]:
    """A cell for every row, set, number of answers and seed; a seed draws the answers and seeds the method."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(f"{folder} has no set of answers: a .npz file with X, item, worker, label and labels.")
    if any(k < 1 for k in answers) or not answers:
        raise InputError(f"answers={answers!r}: give whole numbers of at least 1.")
    code = fingerprint("contone.experiments.people")
    cells = []
    for file in files:
        found = read_answers(file)
        content = _content(found)
        for k in answers:
            for seed in range(seeds):
                for row, task, estimator in _rows(methods, k):
                    about = {"kind": NAME, "k": k, "code": code, **task}
                    if estimator is not None:
                        seeded = clone(estimator).set_params(**dict.fromkeys(random_parameters(estimator), seed))
                        about["estimator"] = describe(seeded)
                    cells.append(
                        Cell(
                            experiment=NAME,
                            row=row,
                            method=type(estimator).__name__ if estimator is not None else row,
                            dataset=file.stem,
                            data_hash=content,
                            task=about,
                            degradation={},
                            seed=seed,
                            setting={"k": k},
                            baseline=estimator is None,
                            source={"file": str(file.resolve())},
                        )
                    )
    return cells


def voting_methods() -> dict[str, Enhancer]:
    """Methods that take counts of votes, which stand beside those that take 0 and 1."""
    from contone.enhance import Inversion

    method = Inversion(degradation="votes")
    try:
        method._validate_params()
    except ValueError:
        return {}
    return {"Inversion (votes)": method}


def _rows(methods: Mapping[str, Enhancer], k: int) -> Iterator[tuple[str, dict[str, Any], Enhancer | None]]:
    for name in COUNTERS:
        yield name, {"counts": name}, None
    for name, method in {**voting_methods(), **methods}.items():
        if reads_votes(method):
            yield name, {"reading": "votes"}, method
            continue
        for reading in READINGS:
            task = {"reading": reading if k > 1 else "majority"}  # of one answer they are the same, and computed once
            yield name if reading == "majority" else f"{name} (any)", task, method


def reads_votes(method: Enhancer) -> bool:
    """Whether a method takes counts of votes in the place of 0 and 1."""
    return getattr(method, "degradation", None) == "votes"


def _content(answers: Answers) -> str:
    return content_hash(answers.X, answers.item, answers.worker, answers.label)


def outcome(cell: Cell) -> dict[str, Any]:
    """What a cell gives: the log loss of the left-out answers, and the same at the best temperature in hindsight."""
    answers = read_answers(Path(cell.source["file"]))
    if _content(answers) != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content than in the plan.")
    given, left = answers.split(cell.task["k"], cell.seed or 0)
    if "counts" in cell.task:
        R = COUNTERS[cell.task["counts"]](given)
    else:
        method, reading = build(cell.task["estimator"]), cell.task["reading"]
        R = np.asarray(method.fit_enhance(given.X, given.counts() if reading == "votes" else marks(given, reading)))
    judged = left.counts()
    loss, (tempered, exponent) = log_loss(judged, R), best_temperature(judged, R)
    return {
        "scores": {"log_loss": loss, "log_loss_tempered": tempered},
        "solution": {},
        "extra": {"exponent": exponent, "judged": int(judged.any(axis=1).sum())},
        "data": {"n": len(answers.X), "d": answers.X.shape[1], "q": len(answers.labels)},
    }


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


def run_people(cells: Sequence[Cell], store: Store, *, jobs: int = 1, observer: Observer | None = None) -> Progress:
    """Carry out the cells that are not in the store."""
    return run(cells, store, jobs=jobs, observer=observer, compute=partial(compute, outcome=outcome))


# ----------------------------------------------------------------------------------------------------------- results

Table = dict[str, dict[tuple[str, int], float | None]]
"""Mean scores by row and by (set, k), None where a cell is missing or failed."""


def people_table(store: Store, measure: str = "log_loss") -> Table:
    """The table of a store, rows by their mean over all sets, the best first; rows that lack a cell are last."""
    results = load_results(store)
    entries = results.of(NAME)
    columns = sorted({(e.dataset, int(e.setting["k"])) for e in entries}, key=lambda c: (c[1], c[0]))
    table: Table = {row: dict.fromkeys(columns) for row in results.kinds(NAME)}
    for entry in entries:
        if entry.status == "done":
            table[entry.row][entry.dataset, int(entry.setting["k"])] = entry.scores[measure]
    return dict(sorted(table.items(), key=lambda row: _order(row[1])))


def _order(row: Mapping[Any, float | None]) -> tuple[int, float]:
    known = [value for value in row.values() if value is not None]
    return len(row) - len(known), fmean(known) if known else 0.0

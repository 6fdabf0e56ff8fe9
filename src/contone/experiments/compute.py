"""How a cell is carried out: data, labels, its task with its scores, and the record that is kept.

`compute` is what a worker runs. It never raises: a method that fails is a record, too. A kind of task is registered
once, by `@task`: its name, the function that carries it out on what is given, and the modules whose code decides its
numbers beside the estimator's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import contone
from contone import measures
from contone.exceptions import AnswerError, InputError
from contone.experiments.describe import build, named
from contone.experiments.sources import content_hash, load
from contone.measurements import IntervalRule
from contone.trust.trial import Trial, trial
from contone.typing import Record

if TYPE_CHECKING:
    from contone.experiments.plan import Cell

N_EXAMPLES = 4
"""Rows kept of every recovered distribution, for the pictures of single instances."""


def compute(cell: Cell) -> Record:
    """Carry out a cell. The record says whether it is "done", "failed" or, without its extra, "left out"."""
    return record_of(cell, attempt(cell), time.time())


def record_of(cell: Cell, done: Trial[Record], ended: float) -> Record:
    """What is kept of a cell's trial that ended then."""
    record: Record = {"key": cell.key, "cell": cell.plain(), "versions": versions()}
    if done.answer is None:
        status = "left out" if done.is_left_out else "failed"
        record.update(status=status, error=done.error, traceback=done.traceback)
    else:
        record.update(done.answer, status="done")
    record["warnings"] = sorted({f"{category.__name__}: {text}" for category, text in done.warnings})
    record["time"] = {"started": ended - done.seconds, "cpu": done.cpu, "wall": done.seconds}
    return record


def attempt(cell: Cell, n_rows: int | None = None) -> Trial[Record]:
    """A trial of a cell, on the first `n_rows` rows of its data."""
    # One thread a cell: cells are what runs in parallel, and BLAS threads on top of them would fight for the cores.
    with threadpool_limits(limits=1):
        return trial(lambda: _outcome(cell, n_rows))


def _outcome(cell: Cell, n_rows: int | None) -> Record:
    X, D, label_names, found, _, answers = load(cell.dataset, cell.source)
    if found != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content here ({found}) than in the plan ({cell.data_hash}).")
    X, D, rule = X[:n_rows], D[:n_rows], build(cell.degradation)
    if not isinstance(rule, IntervalRule) and answers is None:
        raise InputError(f"{cell.degradation} is not a degradation.")
    L = rule.apply(D).astype(float) if answers is None else D
    answer = TASKS[cell.task["kind"]].work(cell, Given(X, L, D, answers and answers.sample(n_rows or 0)))
    outcome: Record = {
        "scores": answer.scores if answer.distributions is None else score(D, answer.distributions) | answer.scores,
        "solution": answer.solution,
        "extra": answer.extra,
        "data": {"n": len(X), "d": X.shape[1], "q": D.shape[1], "labels_per_row": float(L.sum(axis=1).mean())},
    }
    if answer.distributions is not None:
        rows = example_rows(D)
        outcome["examples"] = {
            "rows": rows,
            "labels": list(label_names),
            "truth": D[rows].tolist(),
            "logical": L[rows].astype(int).tolist(),
            "recovered": answer.distributions[rows].tolist(),
        }
        # The manifold picture needs every row of the artificial set; nothing else does.
        is_artificial = cell.source.get("name", cell.dataset) == "artificial" and "file" not in cell.source
        if is_artificial and cell.seed in (None, 0) and not cell.setting:
            outcome["surface"] = np.round(answer.distributions, 5).tolist()
    return outcome


def example_rows(D: np.ndarray) -> list[int]:
    """Rows to show, chosen by the truth's shape alone: from the flattest to the most peaked, at even quantiles."""
    order = np.argsort(np.max(D, axis=1), kind="stable")
    positions = np.linspace(0.05, 0.95, min(N_EXAMPLES, len(D))) * (len(D) - 1)
    return [int(order[round(p)]) for p in positions]


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what computed the number."""
    packages = ("numpy", "scipy", "scikit-learn", "joblib")
    return {"python": python_version(), "contone": contone.__version__, **{name: version(name) for name in packages}}


# -------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Answer:
    """What a task gives: the recovered distributions (n, q) or None, and scores that do not follow from them."""

    distributions: np.ndarray | None = None
    scores: dict[str, float] = field(default_factory=dict)
    solution: Record = field(default_factory=dict)
    extra: Record = field(default_factory=dict)


class Given(NamedTuple):
    """What a task is carried out on: X (n, d), L (n, q) and D (n, q), or `Answers` of people."""

    X: np.ndarray
    L: np.ndarray
    D: np.ndarray
    answers: Any = None


Work = Callable[["Cell", Given], Answer]
"""What carries out a task."""


class Task(NamedTuple):
    """A kind of task: what carries it out, and the modules whose code decides its numbers."""

    work: Work
    modules: tuple[str, ...]


TASKS: dict[str, Task] = {}
"""Every kind of task by its name."""


def task(name: str, *modules: str) -> Callable[[Work], Work]:
    """Register a kind of task."""

    def register(work: Work) -> Work:
        TASKS[name] = Task(work, modules)
        return work

    return register


def modules_of(description: Any) -> list[str]:
    """The modules whose code decides a task's numbers: of every class that it names, and of its kind."""
    found: set[str] = set()
    waiting = [description]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if "class" in value:
                found.add(named(value["class"]).__module__)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    kind = description.get("kind") if isinstance(description, Mapping) else None
    return sorted(found.union(TASKS[kind].modules if kind in TASKS else ()))


def score(D: np.ndarray, R: np.ndarray) -> dict[str, float]:
    """All measures of R against the truth D, the conventions of KL included."""
    known = {**measures.MEASURES, **measures.FURTHER, **measures.CONVENTIONS}
    return {name: float(measure(D, R)) for name, measure in known.items()}


@task("enhance", "contone.measures", "contone.measurements")
def _enhance(cell: Cell, given: Given) -> Answer:
    estimator = build(cell.task["estimator"])
    R = np.asarray(estimator.fit_enhance(given.X, given.L))
    found = estimator.solution_
    told = {"objective": float(found.objective), "residual": float(found.residual), "n_iter": int(found.n_iter)}
    return Answer(R, solution={**told, "converged": bool(found.converged)})


@task("mean_of_truth", "contone.limits", "contone.measurements")
def _mean_of_truth(cell: Cell, given: Given) -> Answer:
    from contone.limits import mean_of_truth

    return Answer(mean_of_truth(given.D))


@task("limit", "contone.limits", "contone.measurements")
def _limit(cell: Cell, given: Given) -> Answer:
    from contone.limits import PLAIN, limit

    found = limit(given.X, given.L, given.D, learners=cell.task.get("learners", PLAIN))
    return Answer(found.distributions, extra={"regressor": found.name, "candidates": found.candidates})


@task("oracle_grid", "contone.measures", "contone.measurements")
def _oracle_grid(cell: Cell, given: Given) -> Answer:
    """The best point of a grid by a measure against the truth: what tuning on the test score gives."""
    from sklearn.model_selection import ParameterGrid

    measure = measures.get(cell.task["measure"])
    tried = []
    for point in ParameterGrid(cell.task["grid"]):
        R = np.asarray(build(cell.task["estimator"]).set_params(**point).fit_enhance(given.X, given.L))
        tried.append((float(measure(given.D, R)), point, R))
    _, point, R = (max if measure.greater_is_better else min)(tried, key=lambda one: one[0])
    return Answer(R, extra={"chosen": point, "by": measure.name})


@task("rehearsed", "contone.measures", "contone.measurements", "contone.trust.search", "contone.enhance.rescaled")
def _rehearsed(cell: Cell, given: Given) -> Answer:
    """The parameters and the temperature that do best on a rehearsal of X and L under the rule: no truth is used."""
    from contone.enhance.rescaled import Rescaled
    from contone.trust.search import search

    estimator = build(cell.task["estimator"])
    best = search(estimator, _rehearse(cell, given), n_iter=cell.task["n_iter"]).best
    if best.error:
        raise AnswerError(f"{type(estimator).__name__} failed on every rehearsed data set: {best.error}")
    R = Rescaled(estimator.set_params(**best.params), t=best.temperature).fit_enhance(given.X, given.L)
    chosen = {**best.params, "temperature": best.temperature}
    return Answer(np.asarray(R), extra={"chosen": chosen, "by": "rehearsal", "expected": best.score})


_rehearsals: Record = {}


def _rehearse(cell: Cell, given: Given) -> Any:
    """The rehearsal of a data set, made once for the methods that come one after the other."""
    from contone.enhance import Inversion
    from contone.trust.rehearsal import Rehearsal

    how = {name: cell.task[name] for name in ("n_replicates", "max_rows")}
    key = f"{content_hash(given.X, given.L)} {cell.degradation} {how}"
    if key not in _rehearsals:
        _rehearsals.clear()
        model = Inversion(degradation=build(cell.degradation), verbose=False)
        _rehearsals[key] = Rehearsal(given.X, given.L, model, **how)
    return _rehearsals[key]


@task("graded", "contone.measures", "contone.measurements", "contone.enhance.calibrated")
def _graded(cell: Cell, given: Given) -> Answer:
    """The truth of a few rows is given; scores are of the others."""
    from contone.enhance.calibrated import Calibrated
    from contone.enhance.graded import takes_degrees

    D, estimator = given.D, build(cell.task["estimator"])
    told = np.asarray(np.random.default_rng(cell.seed).choice(len(D), cell.task["rows"], replace=False))
    known = np.full(D.shape, np.nan)
    known[told] = D[told]
    method = estimator if takes_degrees(estimator) else Calibrated(estimator)
    R = np.asarray(method.fit_enhance(given.X, given.L, degrees=known))
    return Answer(R, score(np.delete(D, told, axis=0), np.delete(R, told, axis=0)), extra={"told": told.tolist()})


@task("predict", "contone.experiments.prediction")
def _predict(cell: Cell, given: Given) -> Answer:
    """A learner trained on recovered distributions, tested on unseen rows: scores of `report` against the truth."""
    from contone.experiments.prediction import predict

    estimator, learner = build(cell.task["estimator"]), build(cell.task["learner"])
    how = {"trained_on": cell.task["report"], "n_splits": cell.task["n_splits"], "seed": cell.task["split_seed"]}
    found = predict(given.X, given.D, learner, estimator, build(cell.degradation), **how)
    return Answer(scores={name: float(values.mean()) for name, values in found.items()})


@task("floor", "contone.experiments.prediction")
def _floor(cell: Cell, given: Given) -> Answer:
    """The best of several learners trained on the truth, tested on unseen rows."""
    from contone.experiments.prediction import floor

    found = floor(given.X, given.D, n_splits=cell.task["n_splits"], seed=cell.task["split_seed"])
    return Answer(scores=found.scores, extra={"standard_error": found.standard_errors, "learner": found.learners})


@task("people", "contone.experiments.judging")
def _people(cell: Cell, given: Given) -> Answer:
    """A few answers of people are given; those that were left out judge."""
    from contone.experiments.judging import judge

    scores, extra = judge(cell.task, given.answers, cell.seed or 0)
    return Answer(scores=scores, extra=extra)

"""The kinds of task that a cell can be: what is computed from X (n, d), L (n, q) and D (n, q), and its scores.

A kind is registered once, by `@task`: its name, the function that carries it out, and the modules whose code decides
its numbers beside the estimator's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from contone import measures
from contone.exceptions import AnswerError, InputError
from contone.experiments.describe import build, canonical, describe, named
from contone.experiments.sources import content_hash
from contone.runtime.plain import plain
from contone.typing import EstimatorLike, Record

if TYPE_CHECKING:
    from contone.experiments.cells import Cell


@dataclass(frozen=True)
class Answer:
    """What a task gives: the recovered distributions (n, q) or None, its scores, and what is known about it."""

    scores: dict[str, float]
    distributions: np.ndarray | None = None
    solution: Record = field(default_factory=dict)
    extra: Record = field(default_factory=dict)


Work = Callable[["Cell", np.ndarray, np.ndarray, np.ndarray], Answer]
"""What carries out a task: of a cell, X (n, d), L (n, q) and D (n, q)."""


class Task(NamedTuple):
    """A kind of task: what carries it out, and the modules whose code decides its numbers."""

    work: Work
    modules: tuple[str, ...]


MOST_KEPT = 64
"""Of a longer array that a solver tells about, the shape is kept."""

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
def _enhance(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    estimator = build(cell.task["estimator"])
    R = np.asarray(estimator.fit_enhance(X, L))
    found = estimator.solution_
    info = {k: v if np.size(v) <= MOST_KEPT else f"array {np.shape(v)}" for k, v in found.info.items()}
    solution = {
        "objective": float(found.objective),
        "residual": float(found.residual),
        "n_iter": int(found.n_iter),
        "converged": bool(found.converged),
        "info": json.loads(json.dumps(plain(info, str), default=str)),
    }
    return Answer(score(D, R), R, solution)


@task("mean_of_truth", "contone.limits", "contone.measurements")
def _mean_of_truth(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    from contone.limits import mean_of_truth

    R = mean_of_truth(D)
    return Answer(score(D, R), R)


@task("limit", "contone.limits", "contone.measurements")
def _limit(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    from contone.limits import PLAIN, limit

    found = limit(X, L, D, learners=cell.task.get("learners", PLAIN))
    return Answer(
        score(D, found.distributions),
        found.distributions,
        extra={"regressor": found.name, "candidates": found.candidates},
    )


@task("oracle_grid", "contone.measures", "contone.measurements")
def _oracle_grid(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """The best point of a grid by a measure against the truth: what tuning on the test score gives."""
    from sklearn.model_selection import ParameterGrid

    measure = measures.get(cell.task["measure"])
    sign = -1.0 if measure.greater_is_better else 1.0
    best: tuple[float, Record, np.ndarray] | None = None
    for point in ParameterGrid(cell.task["grid"]):
        R = np.asarray(build(cell.task["estimator"]).set_params(**point).fit_enhance(X, L))
        value = sign * float(measure(D, R))
        if best is None or value < best[0]:
            best = value, point, R
    if best is None:
        raise InputError("An oracle grid needs at least one point.")
    return Answer(score(D, best[2]), best[2], extra={"chosen": best[1], "by": measure.name})


@task("rehearsed", "contone.measures", "contone.measurements", "contone.trust.search", "contone.enhance.rescaled")
def _rehearsed(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """The parameters and the temperature that do best on a rehearsal of X and L under the rule: no truth is used."""
    from contone.enhance.rescaled import Rescaled
    from contone.trust.search import search

    rehearsal = _rehearse(X, L, build(cell.degradation), cell.task["n_replicates"], cell.task["max_rows"])
    estimator = build(cell.task["estimator"])
    best = search(estimator, rehearsal, n_iter=cell.task["n_iter"]).best
    if best.error:
        raise AnswerError(f"{type(estimator).__name__} failed on every rehearsed data set: {best.error}")
    R = np.asarray(Rescaled(estimator.set_params(**best.params), t=best.temperature).fit_enhance(X, L))
    chosen = {**best.params, "temperature": best.temperature}
    return Answer(score(D, R), R, extra={"chosen": chosen, "by": "rehearsal", "expected": best.score})


@task("graded", "contone.measures", "contone.measurements", "contone.enhance.calibrated")
def _graded(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """The truth of a few rows is told; scores are of the others."""
    from contone.enhance.calibrated import Calibrated
    from contone.enhance.graded import takes_degrees

    told = np.asarray(np.random.default_rng(cell.seed).choice(len(D), cell.task["rows"], replace=False))
    known = np.full(D.shape, np.nan)
    known[told] = D[told]
    estimator = build(cell.task["estimator"])
    method = estimator if takes_degrees(estimator) else Calibrated(estimator)
    R = np.asarray(method.fit_enhance(X, L, degrees=known))
    return Answer(score(np.delete(D, told, axis=0), np.delete(R, told, axis=0)), R, extra={"told": told.tolist()})


_rehearsals: Record = {}


def _rehearse(X: np.ndarray, L: np.ndarray, rule: Any, n_replicates: int, max_rows: int) -> Any:
    """The rehearsal of a data set, made once for the methods that come one after the other."""
    from contone.enhance import Inversion
    from contone.trust.rehearsal import Rehearsal

    key = f"{content_hash(X, L)} {rule} {n_replicates} {max_rows}"
    if key not in _rehearsals:
        _rehearsals.clear()
        model = Inversion(degradation=rule, verbose=False)
        _rehearsals[key] = Rehearsal(X, L, model, n_replicates=n_replicates, max_rows=max_rows)
    return _rehearsals[key]


class _Remembering(BaseEstimator):
    """A learner that is fitted once for one pair (X, D): every method's cell trains on the same truth, too."""

    _fitted: ClassVar[Record] = {}

    def __init__(self, learner: EstimatorLike) -> None:
        self.learner = learner

    def fit(self, X: np.ndarray, D: np.ndarray) -> Any:
        key = content_hash(X, D) + canonical(describe(self.learner))
        if key not in self._fitted:
            # Only as many as the folds of one data set: cells come data set by data set.
            for old in list(self._fitted)[: len(self._fitted) - 32]:
                del self._fitted[old]
            self._fitted[key] = clone(self.learner).fit(X, D)
        return self._fitted[key]


@task("predict", "contone.experiments.prediction")
def _predict(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """A learner trained on recovered distributions, tested on unseen rows: scores of `report` against the truth."""
    from contone.experiments.prediction import mean_scores, predictive_folds

    task = cell.task
    estimator, learner = build(task["estimator"]), _Remembering(build(task["learner"]))
    how = {"n_splits": task["n_splits"], "seed": task["split_seed"]}
    records = predictive_folds(X, D, estimator, learner, build(cell.degradation), **how)
    report = task["report"]
    chosen = [r for r in records if (r["trained_on"], r["against"]) == (report, "truth")]
    scores = mean_scores(records, trained_on=report)
    deviation = {name: float(np.std([r[name] for r in chosen])) for name in scores}
    extra: Record = {"n_splits": task["n_splits"], "spread_over_folds": deviation}
    if report != "truth":
        extra["against_learner_on_truth"] = mean_scores(records, trained_on=report, against="learner_on_truth")
    return Answer(scores, extra=extra)


@task("floor", "contone.experiments.prediction")
def _floor(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """The best of several learners trained on the truth, tested on unseen rows."""
    from contone.experiments.prediction import floor

    found = floor(X, D, n_splits=cell.task["n_splits"], seed=cell.task["split_seed"])
    return Answer(found.scores, extra={"standard_error": found.standard_errors, "learner": found.learners})

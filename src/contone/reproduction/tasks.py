"""How a cell is carried out: every kind of task, the scores, and the record that is kept.

`compute` is what a worker runs. It never raises: a method that fails is a record, too.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

import contone
from contone import measures
from contone.degrade import Degradation
from contone.exceptions import InputError
from contone.reproduction.cells import Cell, build, canonical, content_hash, describe, load

N_EXAMPLES = 4
"""Rows kept of every recovered distribution, for the pictures of single instances."""


@dataclass(frozen=True)
class Answer:
    """What a task gives: the recovered distributions (n, q) or None, its scores, and what is known about it."""

    scores: dict[str, float]
    distributions: np.ndarray | None = None
    solution: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def score(D: np.ndarray, R: np.ndarray) -> dict[str, float]:
    """All measures of R against the truth D, the conventions of KL included."""
    return {name: float(measure(D, R)) for name, measure in {**measures.MEASURES, **measures.CONVENTIONS}.items()}


def _enhance(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    estimator = build(cell.task["estimator"])
    R = np.asarray(estimator.fit_enhance(X, L))
    found = estimator.solution_
    solution = {
        "objective": float(found.objective),
        "residual": float(found.residual),
        "n_iter": int(found.n_iter),
        "converged": bool(found.converged),
        "info": _plain(found.info),
    }
    return Answer(score(D, R), R, solution)


def _mean_of_truth(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    from contone.limits import mean_of_truth

    R = mean_of_truth(D)
    return Answer(score(D, R), R)


def _limit(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    from contone.limits import limit

    found = limit(X, L, D)
    return Answer(
        score(D, found.distributions),
        found.distributions,
        extra={"regressor": found.name, "candidates": _plain(found.candidates)},
    )


def _oracle_grid(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """The best point of a grid by a measure against the truth: what tuning on the test score gives."""
    from sklearn.model_selection import ParameterGrid

    measure = measures.get(cell.task["measure"])
    sign = -1.0 if measure.greater_is_better else 1.0
    best: tuple[float, dict[str, Any], np.ndarray] | None = None
    for point in ParameterGrid(cell.task["grid"]):
        R = np.asarray(build(cell.task["estimator"]).set_params(**point).fit_enhance(X, L))
        value = sign * float(measure(D, R))
        if best is None or value < best[0]:
            best = value, point, R
    if best is None:
        raise InputError("An oracle grid needs at least one point.")
    return Answer(score(D, best[2]), best[2], extra={"chosen": _plain(best[1]), "by": measure.name})


class _Remembering(BaseEstimator):
    """A learner that is fitted once for one pair (X, D): every method's cell trains on the same truth, too."""

    _fitted: ClassVar[dict[str, Any]] = {}

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: np.ndarray, D: np.ndarray) -> Any:
        key = content_hash(X, D) + canonical(describe(self.learner))
        if key not in self._fitted:
            # Only as many as the folds of one data set: cells come data set by data set.
            for old in list(self._fitted)[: len(self._fitted) - 32]:
                del self._fitted[old]
            self._fitted[key] = clone(self.learner).fit(X, D)
        return self._fitted[key]


def _predict(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    """A learner trained on recovered distributions, tested on unseen rows: scores of `report` against the truth."""
    from contone.reproduction.prediction import mean_scores, predictive_folds

    records = predictive_folds(
        X,
        D,
        build(cell.task["estimator"]),
        _Remembering(build(cell.task["learner"])),
        build(cell.degradation),
        n_splits=cell.task["n_splits"],
        seed=cell.task["split_seed"],
    )
    report = cell.task["report"]
    chosen = [r for r in records if (r["trained_on"], r["against"]) == (report, "truth")]
    scores = mean_scores(records, trained_on=report)
    extra: dict[str, Any] = {
        "n_splits": cell.task["n_splits"],
        "spread_over_folds": {name: float(np.std([r[name] for r in chosen])) for name in scores},
    }
    if report != "truth":
        extra["against_learner_on_truth"] = mean_scores(records, trained_on=report, against="learner_on_truth")
    return Answer(scores, extra=extra)


TASKS: dict[str, Callable[[Cell, np.ndarray, np.ndarray, np.ndarray], Answer]] = {
    "enhance": _enhance,
    "mean_of_truth": _mean_of_truth,
    "limit": _limit,
    "oracle_grid": _oracle_grid,
    "predict": _predict,
}
"""What carries out each kind of task: of a cell, X (n, d), L (n, q) and D (n, q)."""


def compute(cell: Cell) -> dict[str, Any]:
    """Carry out a cell. Never raises: the record says ``"status": "done"`` or ``"failed"`` with the traceback.

    The record holds plain values, except ``"arrays"``: arrays to be kept beside it (or None).
    """
    record: dict[str, Any] = {"key": cell.key, "cell": cell.plain(), "versions": versions(), "arrays": None}
    started, cpu, wall = time.time(), time.process_time(), time.perf_counter()
    # One thread a cell: cells are what runs in parallel, and BLAS threads on top of them would fight for the cores.
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record.update(_outcome(cell), status="done")
        except Exception as error:  # a failing method must not stop the others; the traceback is kept and shown
            record.update(status="failed", error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
    record["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    record["time"] = {
        "started": started,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
    }
    return record


def _outcome(cell: Cell) -> dict[str, Any]:
    X, D, label_names, found = load(cell.dataset)
    if found != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content here ({found}) than in the plan ({cell.data_hash}).")
    degradation = build(cell.degradation)
    if not isinstance(degradation, Degradation):
        raise InputError(f"{cell.degradation} is no degradation.")
    L = degradation.apply(D).astype(float)
    answer = TASKS[cell.task["kind"]](cell, X, L, D)
    outcome: dict[str, Any] = {
        "scores": answer.scores,
        "solution": answer.solution,
        "extra": answer.extra,
        "data": {"n": len(X), "d": X.shape[1], "q": D.shape[1], "labels_per_row": float(L.sum(axis=1).mean())},
    }
    if answer.distributions is not None:
        rows = example_rows(D)
        outcome["instances"] = instance_summary(D, answer.distributions)
        outcome["examples"] = {
            "rows": rows,
            "labels": list(label_names),
            "truth": D[rows].tolist(),
            "logical": L[rows].astype(int).tolist(),
            "recovered": answer.distributions[rows].tolist(),
        }
        # The manifold picture needs every row of the artificial set; nothing else does.
        if cell.dataset == "artificial" and cell.seed in (None, 0) and not cell.setting:
            outcome["arrays"] = {"recovered": answer.distributions.astype(np.float32)}
    return outcome


def example_rows(D: np.ndarray, count: int = N_EXAMPLES) -> list[int]:
    """Rows to show, chosen by the truth's shape alone: from the flattest to the most peaked, at even quantiles."""
    order = np.argsort(np.max(D, axis=1), kind="stable")
    positions = np.linspace(0.05, 0.95, min(count, len(D))) * (len(D) - 1)
    return [int(order[round(p)]) for p in positions]


def instance_summary(D: np.ndarray, R: np.ndarray) -> dict[str, Any]:
    """How the measures spread over the instances: the deciles 1, 5 and 9, and how far R is from uniform."""
    quantiles: dict[str, Any] = {}
    for name, measure in measures.MEASURES.items():
        values = measure.per_instance(D, R)
        kept = values[np.isfinite(values)]
        quantiles[name] = [float(v) for v in np.quantile(kept, [0.1, 0.5, 0.9])] if kept.size else None
    flat = 0.5 * np.abs(R - 1.0 / R.shape[1]).sum(axis=1)
    infinite = {
        name: int((~np.isfinite(measure.per_instance(D, R))).sum()) for name, measure in measures.CONVENTIONS.items()
    }
    return {"deciles": quantiles, "max_tv_from_uniform": float(flat.max()), "not_finite": infinite}


def _plain(value: Any) -> Any:
    """Solver information as plain values; what has no plain form becomes its text, arrays become their shape."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist() if value.size <= 64 else f"array {value.shape}"
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value[:64]]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what computed the number."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    found = {"python": python_version(), "contone": contone.__version__}
    for package in ("numpy", "scipy", "scikit-learn", "joblib"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found

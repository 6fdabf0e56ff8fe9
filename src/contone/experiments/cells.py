"""A cell: one computation of an experiment, described by plain values, and how it is carried out.

A cell says *what* is computed (`task`: an enhancer with its parameters, the limit, ...), on which data, from which
logical labels, with which seed. Everything that can change the number goes into its `key`: the task, the content of the
data, the degradation, the seed, the version of the measures and a fingerprint of the code that computes it. Where it
stands in the tables (`experiment`, `row`, `setting`) does not, so two experiments that need the same number share it.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

import contone
from contone import datasets, measures
from contone.degrade import Degradation
from contone.exceptions import InputError
from contone.experiments.fingerprint import fingerprint

MEASURES_VERSION = 1
"""Raise this when a measure is defined differently: every stored score is then computed anew."""

N_EXAMPLES = 4
"""Rows kept of every recovered distribution, for the pictures of single instances."""


@dataclass(frozen=True)
class Cell:
    """One computation, and its place in an experiment.

    Attributes
    ----------
    experiment, row : str
        The table and the row in which the number stands, e.g. "recovery" and "GLLE (paper)".
    method : str
        The class behind the row, e.g. "GLLE"; for references their name ("limit", "mean_of_truth").
    dataset, data_hash : str
        The data set and the hash of its content.
    task : dict
        What is computed, e.g. ``{"kind": "enhance", "estimator": {"class": ..., "params": ...}}``; see `TASKS`.
    degradation : dict
        The rule that made L from D, e.g. ``{"class": "CumulativeMass", "params": {"t": 0.5}}``.
    seed : int or None
        None where nothing is random.
    setting : dict
        The parameter that a sensitivity curve varies, e.g. ``{"alpha": 0.1}``; else empty.
    baseline, oracle : bool
        Marks of the row: uses no features; has seen the truth.
    """

    experiment: str
    row: str
    method: str
    dataset: str
    data_hash: str
    task: dict[str, Any]
    degradation: dict[str, Any]
    seed: int | None = None
    setting: dict[str, Any] = field(default_factory=dict)
    baseline: bool = False
    oracle: bool = False

    @property
    def key(self) -> str:
        """The content key: equal keys mean equal numbers."""
        return digest(
            {
                "task": self.task,
                "data": self.data_hash,
                "degradation": self.degradation,
                "seed": self.seed,
                "measures": MEASURES_VERSION,
                "code": fingerprint(*modules_of(self.task)),
            }
        )

    @property
    def place(self) -> tuple[str, str, str, str, int | None]:
        """Where the number stands; a later run's cell replaces an earlier one's at the same place."""
        return self.experiment, self.dataset, self.row, canonical(self.setting), self.seed

    def plain(self) -> dict[str, Any]:
        """The cell and its key as plain values."""
        return {"key": self.key, **asdict(self)}

    def __str__(self) -> str:
        extra = [f"{name}={value}" for name, value in self.setting.items()]
        extra += [f"seed {self.seed}"] if self.seed is not None else []
        return f"{self.experiment}: {self.row} on {self.dataset}" + (f" ({', '.join(extra)})" if extra else "")


# ----------------------------------------------------------------------------------------- estimators as plain values


def describe(thing: Any) -> Any:
    """An estimator, a degradation or a parameter value as plain JSON values; `build` is the way back.

    Examples
    --------
    >>> describe(contone.Temperature(c=0.5))
    {'class': 'Temperature', 'params': {'c': 0.5}}
    """
    if isinstance(thing, BaseEstimator):
        params = {name: describe(value) for name, value in sorted(thing.get_params(deep=False).items())}
        return {"class": _name(type(thing)), "params": params}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"class": type(thing).__name__, "params": {k: describe(v) for k, v in asdict(thing).items()}}
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, (list, tuple, np.ndarray)):
        return [describe(value) for value in thing]
    if isinstance(thing, Mapping):
        return {str(name): describe(value) for name, value in thing.items()}
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    raise InputError(f"An experiment cannot hold {thing!r}: parameters must be plain values or contone's estimators.")


def build(description: Any) -> Any:
    """The estimator or degradation behind a description; plain values come back unchanged."""
    if isinstance(description, Mapping) and "class" in description:
        return named(description["class"])(**{k: build(v) for k, v in description["params"].items()})
    return description


def named(name: str) -> type:
    """The public class of that name, or the class at a dotted path inside contone."""
    module, _, last = name.rpartition(".")
    if module and not module.startswith("contone."):
        raise InputError(f"{name!r} is not a class of contone.")
    found = getattr(import_module(module) if module else contone, last, None)
    if not isinstance(found, type):
        raise InputError(f"contone has no public class {name!r}.")
    return found


def _name(cls: type) -> str:
    """What `named` finds the class by."""
    return cls.__name__ if getattr(contone, cls.__name__, None) is cls else f"{cls.__module__}.{cls.__name__}"


def modules_of(task: Any) -> list[str]:
    """The modules whose code decides the task's numbers: of every class that it names, and of its kind."""
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, Mapping):
            if "class" in value:
                found.add(named(value["class"]).__module__)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(task)
    if isinstance(task, Mapping) and task.get("kind") in TASKS:
        found.update(TASKS[task["kind"]].modules)
    return sorted(found)


def canonical(value: Any) -> str:
    """The one JSON text of a plain value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=True)


def digest(value: Any) -> str:
    """A short hash of a plain value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:24]


# --------------------------------------------------------------------------------------------------------------- data


@lru_cache(maxsize=4)
def load(name: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], str]:
    """X (n, d), D (n, q), the label names and the content hash of a data set; kept in memory for the next cell."""
    data = datasets.load(name)
    X, D = np.ascontiguousarray(data.X, dtype=np.float64), np.ascontiguousarray(data.D, dtype=np.float64)
    return X, D, tuple(str(label) for label in data.label_names), content_hash(X, D)


def content_hash(*arrays: np.ndarray) -> str:
    """A hash of the shapes and values of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:24]


# -------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Answer:
    """What a task gives: the recovered distributions (n, q) or None, its scores, and what is known about it."""

    scores: dict[str, float]
    distributions: np.ndarray | None = None
    solution: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """A kind of computation: how it is done, and the modules whose code it depends on."""

    run: Callable[[Cell, np.ndarray, np.ndarray, np.ndarray], Answer]
    modules: tuple[str, ...]


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
    from contone.experiments.limits import mean_of_truth

    R = mean_of_truth(D)
    return Answer(score(D, R), R)


def _limit(cell: Cell, X: np.ndarray, L: np.ndarray, D: np.ndarray) -> Answer:
    from contone.experiments.limits import limit

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
    from contone.experiments.prediction import mean_scores, predictive_folds

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


TASKS: dict[str, Task] = {
    "enhance": Task(_enhance, ("contone.measures", "contone.degrade")),
    "mean_of_truth": Task(_mean_of_truth, ("contone.experiments.limits", "contone.degrade")),
    "limit": Task(_limit, ("contone.experiments.limits", "contone.degrade")),
    "oracle_grid": Task(_oracle_grid, ("contone.measures", "contone.degrade")),
    "predict": Task(_predict, ("contone.experiments.prediction",)),
}
"""Every kind of computation that a cell can ask for."""


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
    answer = TASKS[cell.task["kind"]].run(cell, X, L, D)
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


def random_parameters(estimator: BaseEstimator) -> list[str]:
    """The names of all `random_state` parameters, nested ones included; empty for a deterministic method."""
    return sorted(name for name in estimator.get_params(deep=True) if name.split("__")[-1] == "random_state")


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Cells with different keys, the first of each, in order."""
    found: dict[str, Cell] = {}
    for cell in cells:
        found.setdefault(cell.key, cell)
    return list(found.values())

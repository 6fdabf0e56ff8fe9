"""A cell: one computation of an experiment, described by plain values, and how it is carried out.

A cell says *what* is computed (`task`: an enhancer with its parameters, the limit, ...), on which data, from which
logical labels, with which seed. Everything that can change the number goes into its `key`: the task, the content of the
data, the degradation, the seed, the version of the measures and a fingerprint of the code that computes it. Where it
stands in the tables (`experiment`, `row`, `setting`) does not, so two experiments that need the same number share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import contone
from contone import datasets
from contone.exceptions import InputError
from contone.reproduction.fingerprint import fingerprint

MEASURES_VERSION = 1
"""Raise this when a measure is defined differently: every stored score is then computed anew."""

MODULES: dict[str, tuple[str, ...]] = {
    "enhance": ("contone.measures", "contone.degrade"),
    "mean_of_truth": ("contone.limits", "contone.degrade"),
    "limit": ("contone.limits", "contone.degrade"),
    "oracle_grid": ("contone.measures", "contone.degrade"),
    "predict": ("contone.reproduction.prediction",),
}
"""The kinds of task, and the modules whose code decides their numbers beside the estimator's own."""


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
        What is computed, e.g. ``{"kind": "enhance", "estimator": {"class": ..., "params": ...}}``; see `MODULES`.
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
    if isinstance(task, Mapping):
        found.update(MODULES.get(task.get("kind", ""), ()))
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


def random_parameters(estimator: BaseEstimator) -> list[str]:
    """The names of all `random_state` parameters, nested ones included; empty for a deterministic method."""
    return sorted(name for name in estimator.get_params(deep=True) if name.split("__")[-1] == "random_state")


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Cells with different keys, the first of each, in order."""
    found: dict[str, Cell] = {}
    for cell in cells:
        found.setdefault(cell.key, cell)
    return list(found.values())

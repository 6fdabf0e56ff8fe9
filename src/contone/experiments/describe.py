"""Estimators as plain values and back, and the one text and hash of plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import contone
from contone.enhance import plugins
from contone.exceptions import InputError


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
    """The public class of that name, the class at a dotted path inside contone, or ``module:Class`` outside it."""
    if plugins.is_path(name):
        return plugins.load(name)
    module, _, last = name.rpartition(".")
    if module and not module.startswith("contone."):
        raise InputError(f"{name!r} is not a class of contone.")
    found = getattr(import_module(module) if module else contone, last, None)
    if not isinstance(found, type):
        raise InputError(f"contone has no public class {name!r}.")
    return found


def _name(cls: type[Any]) -> str:
    """What `named` finds the class by."""
    name = str(cls.__name__)
    if vars(contone).get(name) is cls:
        return name
    separator = "." if cls.__module__.startswith("contone.") else ":"
    return f"{cls.__module__}{separator}{name}"


def canonical(value: Any) -> str:
    """The one JSON text of a plain value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=True)


def digest(value: Any) -> str:
    """A short hash of a plain value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:24]


def random_parameters(estimator: BaseEstimator) -> list[str]:
    """The names of all `random_state` parameters, nested ones included; empty for a deterministic method."""
    return sorted(name for name in estimator.get_params(deep=True) if name.split("__")[-1] == "random_state")

"""What computes a number, as plain values: estimators and back, the hash of values, and a fingerprint of code.

Two equal fingerprints mean that the same statements compute the number. One covers the modules of contone (for a method
of another package: and of that package) that a module imports, directly and through others, and is taken from the
syntax tree without docstrings: comments, layout and documentation do not change it, so editing them does not throw
stored results away.
"""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import contone
from contone.enhance import plugins
from contone.exceptions import InputError

IGNORED = frozenset({"contone", "contone.exceptions"})
"""Modules that no number depends on: the list of public names, and the texts of errors."""


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


def seeded(description: Any, seed: int | None) -> Any:
    """A description in which every `random_state` is this seed, also in estimators inside of others."""
    if not isinstance(description, Mapping):
        return description
    return {name: seed if name == "random_state" else seeded(value, seed) for name, value in description.items()}


# --------------------------------------------------------------------------------------------------------------- code


def fingerprint(*modules: str) -> str:
    """One hash for the code of these modules and of everything of contone and of their own package that they import."""
    total = hashlib.sha256()
    for name in sorted(closure(*modules)):
        total.update(f"{name}:{_parsed(name)[0]}\n".encode())
    return total.hexdigest()[:16]


def closure(*modules: str) -> set[str]:
    """The modules and, transitively, the modules of contone and of their own package that they import."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in IGNORED:
            continue
        found.add(name)
        waiting.extend(_parsed(name)[1])
    return found


@cache
def _parsed(name: str) -> tuple[str, tuple[str, ...]]:
    """The hash of a module's own statements, and the modules of contone and of its own package that it imports."""
    spec = _spec(name)
    if spec is None or spec.origin is None:
        return "missing", ()
    if not spec.origin.endswith(".py"):  # compiled: its bytes
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest(), ()
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    package = name if spec.submodule_search_locations else name.rpartition(".")[0]
    statements = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imports = tuple(sorted({target for node in statements for target in _targets(node, package)}))
    return hashlib.sha256(ast.dump(_without_docstrings(tree)).encode()).hexdigest(), imports


def _targets(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """The modules of contone and of `package`'s outermost package that an import statement names."""
    followed = {"contone", package.split(".")[0]} - {""}
    if isinstance(node, ast.Import):
        return [a.name for a in node.names if a.name.split(".")[0] in followed and a.name != "contone"]
    base = resolve_name(f"{'.' * node.level}{node.module or ''}", package)
    if base.split(".")[0] not in followed:
        return []
    # `from contone.numerics import graph` may name a module or something inside one.
    return [f"{base}.{a.name}" if _spec(f"{base}.{a.name}") else base for a in node.names]


@cache
def _spec(name: str) -> ModuleSpec | None:
    """Where a module lies. No package above it is imported for that: contone.backends.torch would bring torch."""
    above, _, last = name.rpartition(".")
    if not above:
        return find_spec(last)
    folder = _spec(above)
    if folder is None or folder.submodule_search_locations is None:
        return None
    return PathFinder.find_spec(name, folder.submodule_search_locations)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) is not None
            node.body = (node.body[1:] or [ast.Pass()]) if documented else node.body
    return tree

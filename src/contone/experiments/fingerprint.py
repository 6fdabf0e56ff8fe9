"""A fingerprint of code: two equal ones mean that the same statements compute the number.

It covers the modules of contone (for a method of another package: and of that package) that a module imports, directly
and through others, and is taken from the syntax tree without docstrings: comments, layout and documentation do not
change it, so editing them does not throw stored results away.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

IGNORED = frozenset({"contone", "contone.exceptions"})
"""Modules that no number depends on: the list of public names, and the texts of errors."""


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
    base = node.module or ""
    if node.level:  # `from . import name`, `from ..folder import name`
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
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

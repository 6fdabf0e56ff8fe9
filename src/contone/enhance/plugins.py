"""Methods that live outside contone: installed packages name them, or a user does.

An installed package lists its class under the entry point group `contone.enhancers` and is found.
A class that is not installed is given as ``module:Class``. Both are then part of `contone.enhance.methods()`.

A package that cannot be used must not break contone: it is left out, with a `PluginWarning` that says which and why.
"""

import inspect
import re
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from contone.base import Enhancer
from contone.exceptions import PluginError, PluginWarning
from contone.runtime.warnings import warn

GROUP = "contone.enhancers"
"""The entry point group of installed packages."""

_given: dict[str, type[Enhancer]] = {}
"""Classes that were loaded by name in this process, by ``module:Class``."""


def is_path(name: str) -> bool:
    """Whether a name of a method is of the form ``module:Class``.

    Examples
    --------
    >>> is_path("my_package.my_module:MyMethod"), is_path("GLLE")
    (True, False)
    """
    return re.fullmatch(r"[\w.]+:[\w.]+", name) is not None


def load(path: str) -> type[Enhancer]:
    """The class at ``module:Class``, imported and checked; from now on it is one of the methods.

    Examples
    --------
    >>> load("contone.enhance.glle:GLLE").__name__
    'GLLE'
    """
    if not is_path(path):
        raise PluginError(f"{path!r} is not of the form module:Class, e.g. my_module:MyMethod.")
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{path} cannot be loaded ({_said(error)}). {_advice(error, module)}") from error
    cls = checked(found, path)
    if not _is_own(cls):
        taken = [other for given, other in _given.items() if given != path and _same_name(other, cls)]
        if taken or any(_same_name(other, cls) and not _same_class(other, cls) for other in installed()):
            raise PluginError(f"{path}: there is another method called {cls.__name__}. Rename the class.")
        _given[path] = cls
    return cls


@cache
def installed() -> tuple[type[Enhancer], ...]:
    """The methods of installed packages. Looked up once per process; those that cannot be used are left out."""
    found: dict[str, type[Enhancer]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            cls = checked(entry.load(), entry.value)
            if cls.__name__.lower() in found:
                raise PluginError(f"another package has a method called {cls.__name__}")
        except (Exception, SystemExit) as error:
            warn(f"The method {entry.name!r} of {_package(entry)} is left out: {_said(error)}", PluginWarning)
            continue
        found[cls.__name__.lower()] = cls
    return tuple(found.values())


def found() -> list[type[Enhancer]]:
    """All methods from outside: those of installed packages, then those loaded by name in this process."""
    return list(dict.fromkeys([*installed(), *_given.values()]))


def checked(thing: Any, path: str) -> type[Enhancer]:
    """`thing` if it can stand among the methods, else an error that says what it lacks."""
    if not isinstance(thing, type) or not issubclass(thing, Enhancer):
        raise PluginError(f"{path} is not a class derived from contone.base.Enhancer.")
    if inspect.isabstract(thing):
        raise PluginError(f"{path} lacks {', '.join(sorted(thing.__abstractmethods__))}.")
    try:
        thing().get_params()
    except Exception as error:
        raise PluginError(f"{path}() fails ({_said(error)}): give every parameter a default.") from error
    from contone import enhance

    if any(_same_name(thing, cls) for cls in enhance.own()) and not _is_own(thing):
        raise PluginError(f"{path}: contone itself has a method called {thing.__name__}. Rename the class.")
    return thing


def _is_own(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "contone"


def _same_name(one: type, other: type) -> bool:
    return one.__name__.lower() == other.__name__.lower()


def _same_class(one: type, other: type) -> bool:
    """Whether two classes are one definition; a module that was imported anew defines its classes anew."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name!r}" if entry.dist is not None else f"{entry.value}"


def _said(error: BaseException) -> str:
    text = str(error).strip() or "no message"
    return text.splitlines()[0] if isinstance(error, PluginError) else f"{type(error).__name__}: {text.splitlines()[0]}"


def _advice(error: BaseException, module: str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return "Install the package, or run the command in the folder that the module is in."
    if isinstance(error, AttributeError):
        return "Name a class that is in the module."
    return "Import the module in Python to see the whole error."

"""The method that was typed: found by name, with its settings, checked before any data is read."""

from __future__ import annotations

import ast
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from contone.cli import terminal
from contone.cli.options import Group, Names, flag
from contone.cli.terminal import usage_error

if TYPE_CHECKING:
    from contone.base import Enhancer


@dataclass
class Settings(Group):
    """Settings of a method.

    Attributes
    ----------
    param : texts
        A parameter of the method, may be repeated.
    seed : int
        Random seed of the method, for other draws.
    """

    param: Annotated[Names, flag("--param -p KEY=VALUE")] = None
    seed: Annotated[int | None, flag("--seed N", min=0)] = None

    def build(self, name: str = "inversion", preset: str | None = None, *, tune: bool = False) -> Enhancer:
        """The method of that name with these settings, checked as far as possible before any data is read."""
        from contone.base import InvalidParameterError
        from contone.trust import Best, Tuned

        cls = Best if name.lower() == "best" else find_method(name, "--method")
        if preset is not None and preset not in cls.PRESETS:
            known = ", ".join(cls.PRESETS) or "none"
            raise usage_error(f"{name} has no preset {preset!r}; it has: {known}.", "--preset")
        settings = dict(parse_param(entry) for entry in self.param or [])
        method: Enhancer = cls.preset(preset) if preset is not None else cls()
        known_params = method.get_params(deep=True)
        unknown = [k for k in settings if k not in known_params]
        if unknown:
            listed = ", ".join(known_params) or "none"
            raise usage_error(f"{name} has no parameter {unknown[0]!r}; it has: {listed}.", "--param")
        try:
            method.set_params(**settings)
            method._validate_params()
        except (InvalidParameterError, ValueError, TypeError) as error:
            raise usage_error(str(error), "--param") from error
        method = Tuned(method) if tune and cls is not Best else method
        if self.seed is not None:
            states = [k for k in method.get_params(deep=True) if k.rpartition("__")[2] == "random_state"]
            if not states:
                raise usage_error(f"{type(method).__name__} draws no random numbers: leave it out.", "--seed")
            method.set_params(**dict.fromkeys(states, self.seed))
        return method


@dataclass
class Method(Settings):
    """A method and its settings.

    Attributes
    ----------
    method : name
        See: contone methods; best (chosen on a rehearsal); or a class of your own, MODULE:CLASS. Default: inversion.
    preset : name
        Settings of that name, e.g. paper.
    """

    method: Annotated[str | None, flag("--method -m NAME")] = None
    preset: Annotated[str | None, flag("--preset NAME")] = None

    def chosen(self, *, tune: bool = False) -> Enhancer:
        """The method that was typed."""
        return self.build(self.method or "inversion", self.preset, tune=tune)


def known_methods() -> dict[str, type[Enhancer]]:
    """Every method by name; a package whose method cannot be used gets one line on stderr."""
    from contone import enhance

    with terminal.plain_warnings():
        return enhance.methods()


def find_method(name: str, option: str) -> type[Enhancer]:
    """The method of that name, or the class at MODULE:CLASS, also in the working folder; else a usage error."""
    from contone import enhance
    from contone.exceptions import ArgumentError, PluginError

    if ":" in name and os.getcwd() not in sys.path:  # `python -m contone` looks here, the command `contone` does not
        sys.path.insert(0, os.getcwd())
    try:
        with terminal.plain_warnings():
            return enhance.find(name)
    except (ArgumentError, PluginError) as error:
        own = "" if ":" in name else " One of your own is given as MODULE:CLASS."
        raise usage_error(f"{error}{own}", option) from error


def parse_param(entry: str) -> tuple[str, Any]:
    """``key=value`` with a Python literal as value; a bare word is text, so quotes are not needed in the shell.

    Examples
    --------
    >>> parse_param("c=0.5"), parse_param("metric=cosine"), parse_param("sigma=None")
    (('c', 0.5), ('metric', 'cosine'), ('sigma', None))
    """
    key, equals, value = (part.strip() for part in entry.partition("="))
    if not equals or not key or not value:
        raise usage_error(f"{entry!r} is not of the form KEY=VALUE, e.g. c=0.5.", "--param")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        words = {"true": True, "false": False, "none": None}
        if value.lower() in words:
            return key, words[value.lower()]
        if re.fullmatch(r"[A-Za-z_][\w.-]*", value):
            return key, value
        raise usage_error(
            f"the value in {entry!r} is not a Python literal (a number, True, None, a 'text', a [list]).", "--param"
        ) from error

"""The public names of a package, imported when the first of them is used: only in the process of a command.

scikit-learn and what it brings take seconds to import; ``contone --help`` need not wait for them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def arguments_are_its_own() -> bool:
    """Whether this process was started with its arguments: a worker is given those of the process that started it."""
    return sys.argv[0] == "-m" or sys.argv[0] in sys.orig_argv


def import_when_asked(package: str) -> None:
    """Let a package have its modules and what its module `public` lists, without importing any of them yet."""
    sys.modules[package].__class__ = _Package


def import_now(package: str) -> None:
    """Give a package that waits (`import_when_asked`) what its module `public` lists."""
    module = sys.modules[package]
    if isinstance(module, _Package):
        public = import_module(f"{package}.public")
        vars(module).update({name: getattr(public, name) for name in public.__all__})
        sys.modules[package].__class__ = ModuleType


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "__all__":
            return import_module(f"{self.__name__}.public").__all__
        if find_spec(f"{self.__name__}.{name}"):
            return import_module(f"{self.__name__}.{name}")
        import_now(self.__name__)
        return self.__getattribute__(name)

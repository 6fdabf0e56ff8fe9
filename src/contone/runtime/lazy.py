"""A package whose public names are imported when the first of them is used.

scikit-learn and what it brings take seconds to import; ``contone --help`` need not wait for them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def import_when_asked(package: str) -> None:
    """Let a package have its modules and what its module `public` lists, without importing any of them yet."""
    sys.modules[package].__class__ = _Package


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._public().__all__
        if not name.startswith("_"):
            if find_spec(f"{self.__name__}.{name}"):
                return import_module(f"{self.__name__}.{name}")
            public = self._public()
            if name in public.__all__:
                self.__dict__.update({known: getattr(public, known) for known in public.__all__})
                return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._public().__all__})

    def _public(self) -> ModuleType:
        return import_module(f"{self.__name__}.public")

    @property
    def check(self) -> Any:
        """The function, also where something has imported the folder of the same name."""
        return self._public().check

    @check.setter
    def check(self, folder: Any) -> None:
        """What Python does after importing the folder."""

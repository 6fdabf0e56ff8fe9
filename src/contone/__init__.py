"""contone: label enhancement. From features and yes/no labels to how much each label describes an instance.

The public names are listed in `__init__.pyi`, which type checkers read, too. Each is imported when it is first used:
scikit-learn and what it brings take seconds, and neither ``import contone`` nor ``contone --help`` waits for them.
"""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import Any as _Any

__version__ = "0.3.0"

_HOMES = {
    name.name: node.module
    for node in _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, _ast.ImportFrom)
    for name in node.names
}
"""Public names, and the module that each is imported from."""
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    """A public name, or a module of this package (which becomes an attribute by its import)."""
    if name not in _HOMES or _HOMES[name] == __name__:
        try:
            return _import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    from contone.runtime.addresses import check_addresses

    check_addresses("scikit-learn")
    globals()[name] = found = getattr(_import_module(str(_HOMES[name])), name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})

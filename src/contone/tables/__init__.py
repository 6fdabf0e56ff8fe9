"""Tables of people: a file in, a file out.

`read_table` gives the problem that a table poses, `write_answer` writes degrees beside it; the other functions go all
the way from file to file. The three ways are frozen values: `Reading`, `Writing`, `Streaming`. Reading and writing need
polars, which is imported when the first of these functions is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from contone.exceptions import MissingExtraError
from contone.tables.progress import Progress
from contone.tables.settings import Reading, Streaming, Writing

if TYPE_CHECKING:
    from contone.tables.applying import apply_model
    from contone.tables.enhancing import enhance_file, fit_file
    from contone.tables.evaluation import evaluate_file
    from contone.tables.in_memory import enhance_table
    from contone.tables.model_file import load_table_model
    from contone.tables.reading import Problem, read_table
    from contone.tables.suggesting import suggest_file
    from contone.tables.vectorizing import vectorizer
    from contone.tables.writing import write_answer

HOMES = {
    "Problem": "reading",
    "apply_model": "applying",
    "enhance_file": "enhancing",
    "enhance_table": "in_memory",
    "evaluate_file": "evaluation",
    "fit_file": "enhancing",
    "load_table_model": "model_file",
    "read_table": "reading",
    "suggest_file": "suggesting",
    "vectorizer": "vectorizing",
    "write_answer": "writing",
}
"""Where each of the public names is defined."""

__all__ = [
    "Problem",
    "Progress",
    "Reading",
    "Streaming",
    "Writing",
    "apply_model",
    "enhance_file",
    "enhance_table",
    "evaluate_file",
    "fit_file",
    "load_table_model",
    "read_table",
    "suggest_file",
    "vectorizer",
    "write_answer",
]


def __getattr__(name: str) -> Any:
    """A public name, from where it is defined; where polars is missing, a function that says what to install."""
    if name not in HOMES:
        raise AttributeError(f"module 'contone.tables' has no attribute {name!r}")
    try:
        return getattr(import_module(f"contone.tables.{HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "polars":
            raise
        return _needs_polars


def _needs_polars(*_: object, **__: object) -> NoReturn:
    raise MissingExtraError(
        "Reading and writing tables needs polars, which is not installed: pip install 'contone[cli]'."
    )

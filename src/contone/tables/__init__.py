"""Tables of people: a file in, a file out.

`read_table` gives the problem that a table poses, `write_answer` writes degrees beside it; the other functions go all
the way from file to file. The three ways are frozen values: `Reading`, `Writing`, `Streaming`. Reading and writing need
polars, which is imported when the first of these functions is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from contone.exceptions import MissingExtraError
from contone.tables.progress import Progress as Progress
from contone.tables.settings import Reading as Reading
from contone.tables.settings import Streaming as Streaming
from contone.tables.settings import Writing as Writing

if TYPE_CHECKING:
    from contone.tables.applying import apply_model as apply_model
    from contone.tables.enhancing import enhance_file as enhance_file
    from contone.tables.enhancing import fit_file as fit_file
    from contone.tables.evaluation import evaluate_file as evaluate_file
    from contone.tables.in_memory import enhance_table as enhance_table
    from contone.tables.model_file import load_table_model as load_table_model
    from contone.tables.next_steps import Plan as Plan
    from contone.tables.next_steps import plan_file as plan_file
    from contone.tables.reading import Problem as Problem
    from contone.tables.reading import read_table as read_table
    from contone.tables.suggesting import suggest_file as suggest_file
    from contone.tables.vectorizing import vectorizer as vectorizer
    from contone.tables.writing import write_answer as write_answer

HOMES = {
    "Plan": "next_steps",
    "Problem": "reading",
    "apply_model": "applying",
    "enhance_file": "enhancing",
    "enhance_table": "in_memory",
    "evaluate_file": "evaluation",
    "fit_file": "enhancing",
    "load_table_model": "model_file",
    "plan_file": "next_steps",
    "read_table": "reading",
    "suggest_file": "suggesting",
    "vectorizer": "vectorizing",
    "write_answer": "writing",
}
"""Where each of the public names is defined."""


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

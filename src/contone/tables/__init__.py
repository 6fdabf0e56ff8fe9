"""Tables of people: a file in, a file out.

`read_table` gives the problem that a table poses, `write_answer` writes degrees beside it; the other functions go all
the way from file to file. The three ways are frozen values: `Reading`, `Writing`, `Streaming`. Reading and writing need
polars; where it is missing, every function says what to install.
"""

from typing import Any, NoReturn

from contone.exceptions import missing_extra
from contone.runtime.progress import Progress as Progress
from contone.tables.settings import Reading as Reading
from contone.tables.settings import Streaming as Streaming
from contone.tables.settings import Writing as Writing

try:
    from contone.tables.encoder import ColumnEncoder as ColumnEncoder
    from contone.tables.enhancing import enhance_file as enhance_file
    from contone.tables.enhancing import enhance_table as enhance_table
    from contone.tables.enhancing import fit_file as fit_file
    from contone.tables.evaluation import evaluate_file as evaluate_file
    from contone.tables.model_file import apply_model as apply_model
    from contone.tables.model_file import load_table_model as load_table_model
    from contone.tables.reading import Problem as Problem
    from contone.tables.reading import read_table as read_table
    from contone.tables.suggesting import Plan as Plan
    from contone.tables.suggesting import plan_file as plan_file
    from contone.tables.suggesting import suggest_file as suggest_file
    from contone.tables.writing import write_answer as write_answer
except ModuleNotFoundError as error:
    if error.name != "polars":
        raise

    def _needs_polars(*_: object, **__: object) -> NoReturn:
        raise missing_extra("Reading and writing tables", "polars", "cli")

    def __getattr__(name: str) -> Any:
        """In place of a function that is missing, one that says what to install."""
        return _needs_polars

"""A fitted method as a file, with the columns that it was fitted on and the encoder of its features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from contone.base import Enhancer
from contone.exceptions import DataError
from contone.models import read_model, save_model
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder


@dataclass(frozen=True)
class TableModel:
    """A fitted method with the columns that it was fitted on."""

    method: Enhancer
    columns: Columns
    labels: list[str]
    is_set: bool
    encoder: ColumnEncoder
    n_rows: int
    contone_version: str = ""

    def save(self, path: str) -> None:
        """Write the method with what is needed to apply it to another table."""
        details = {
            "columns": asdict(self.columns),
            "labels": self.labels,
            "is_set": self.is_set,
            "encoder": self.encoder,
            "n_rows": self.n_rows,
        }
        save_model(self.method, path, details=details)


def path_of(method: object) -> str:
    """The import path of a method that is here already, and so is trusted."""
    return f"{type(method).__module__}:{type(method).__qualname__}"


def load_table_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> TableModel:
    """A model that `fit_file` wrote: the fitted method, its labels, its columns and their encoder."""
    stored = read_model(path, trusted=trusted)
    details = stored.details
    try:
        model = TableModel(
            method=stored.method,
            columns=Columns(**details["columns"]),
            labels=[str(name) for name in details["labels"]],
            is_set=bool(details["is_set"]),
            encoder=details["encoder"],
            n_rows=int(details["n_rows"]),
            contone_version=stored.contone_version,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is a model without a table: contone fit writes those that can be applied.") from error
    if not isinstance(model.encoder, ColumnEncoder):
        raise DataError(f"{path} is a model without a table: contone fit writes those that can be applied.")
    return model

"""A fitted method as a file, with the columns that it was fitted on and the encoder of its features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from contone.base import Enhancer
from contone.exceptions import DataError
from contone.models import StoredModel, read_model, save_model
from contone.tables.columns import Columns
from contone.tables.encoder import ColumnEncoder


@dataclass(frozen=True)
class TableModel:
    """A fitted method with the columns that it was fitted on."""

    method: Any
    chosen: Columns
    labels: list[str]
    is_set: bool
    encoder: ColumnEncoder
    n_rows: int
    contone_version: str


def save(
    path: str,
    method: Enhancer,
    encoder: ColumnEncoder,
    chosen: Columns,
    names: list[str],
    *,
    is_set: bool,
    n_rows: int,
) -> None:
    """A fitted method with what is needed to apply it to another table."""
    details = {
        "columns": asdict(chosen),
        "labels": list(names),
        "is_set": is_set,
        "encoder": encoder,
        "n_rows": n_rows,
    }
    save_model(method, path, details=details)


def path_of(method: Any) -> str:
    """The import path of a method that is here already, and so is trusted."""
    return f"{type(method).__module__}:{type(method).__qualname__}"


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> TableModel:
    """A model that `fit` (or ``enhance --save-model``) wrote."""
    stored: StoredModel = read_model(path, trusted=trusted)
    try:
        made = TableModel(
            method=stored.method,
            chosen=Columns(**stored.details["columns"]),
            labels=[str(name) for name in stored.details["labels"]],
            is_set=bool(stored.details["is_set"]),
            encoder=stored.details["encoder"],
            n_rows=int(stored.details["n_rows"]),
            contone_version=stored.contone_version,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is a model without a table: contone fit writes those that can be applied.") from error
    if not isinstance(made.encoder, ColumnEncoder):
        raise DataError(f"{path} is a model without a table: contone fit writes those that can be applied.")
    return made

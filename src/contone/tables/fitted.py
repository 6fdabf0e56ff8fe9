"""A model fitted to the table in one file, kept in a second and applied to the rows of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contone.tables.needs import need_polars
from contone.tables.progress import Progress

if TYPE_CHECKING:
    from contone.base import Enhancer
    from contone.tables.kept import TableModel
    from contone.tables.order import EnhancedFile


def fit_file(
    source: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] = (),
    method: str | Enhancer = "inversion",
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    overwrite: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    label_separator: str | None = None,
    item: str | None = None,
    categorical: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    missing: str = "impute",
    unlabelled: str = "method",
    progress: Progress | None = None,
) -> TableModel:
    """Fit a method on a table in a file and keep it, with its columns, for `apply_model`.

    Arguments as those of `enhance_file`; `model` is the file to write, of arrays and JSON, never a pickle.
    """
    need_polars()
    from contone.tables import life, order

    return life.fit(
        order.Order(
            source=Path(source),
            target="",
            labels=order.as_list(labels),
            method=order.named_method(method),
            features=order.as_list(features),
            ids=order.as_list(ids),
            overwrite=overwrite,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            categorical=order.as_list(categorical),
            text=order.as_list(text),
            missing=missing,
            unlabelled=unlabelled,
            progress=progress or Progress(),
        ),
        str(model),
    )


def apply_model(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    suffix: str = "_degree",
    overwrite: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    label_separator: str | None = None,
    top: int | None = None,
    intervals: float | None = None,
    degrees_as: str = "columns",
    trusted: Sequence[str] = (),
    progress: Progress | None = None,
) -> EnhancedFile:
    """Tell the degrees of the rows of another file by a model that `fit_file` wrote.

    With the model's label columns in the file, they are used (`enhance`); without, the degrees come from the features
    alone (`predict`). Columns are found by name, in any order; a missing one is refused by name. `top`, `intervals` and
    `degrees_as` as in `enhance_file`; `trusted` are methods from outside contone that may be in the model.
    """
    need_polars()
    from contone import Uniform
    from contone.tables import life, order

    return life.apply(
        model,
        order.Order(
            source=Path(source),
            target=str(target),
            labels=[],
            method=Uniform(),
            suffix=suffix,
            overwrite=overwrite,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            top=top,
            intervals=intervals,
            degrees_as=degrees_as,
            progress=progress or Progress(),
        ),
        trusted,
    )


def load_table_model(model: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> TableModel:
    """A model that `fit_file` wrote: the fitted method, its labels, its columns and their encoder."""
    need_polars()
    from contone.tables import kept

    return kept.load(model, trusted)

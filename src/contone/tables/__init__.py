"""A person's file in, a file out: formats, columns, and the two ways to enhance a table, whole or in pieces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contone.exceptions import MissingExtraError
from contone.tables.progress import Progress

if TYPE_CHECKING:
    from contone.base import Enhancer
    from contone.tables.order import EnhancedFile

__all__ = ["Progress", "enhance_file"]


def enhance_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    labels: str | Sequence[str],
    method: str | Enhancer = "inversion",
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    suffix: str = "_degree",
    overwrite: bool = False,
    stream: bool | None = None,
    chunk_rows: int | None = None,
    sample_rows: int | None = None,
    progress: Progress | None = None,
) -> EnhancedFile:
    """Recover how much each label describes each row of a table in a file, and write the table with the degrees.

    The file appears whole or not at all. Columns that are neither label nor feature come out as they went in.

    Parameters
    ----------
    source : path
        CSV, TSV (also .gz) or Parquet; one instance per row.
    target : path
        .csv, .tsv or .parquet; ``"-"`` is CSV on stdout.
    labels, features, ids : str or sequence of str
        Columns: names, lists with commas, patterns such as ``"genre_*"``. Without `features`, every other numeric
        column whose name does not say that it is an id. `ids` are numeric columns to carry along.
    method : str or Enhancer
        A name (`contone.enhance.methods()`) or a method with its settings; it is cloned.
    suffix : str
        Name of the new columns: label + suffix. "" puts the degrees in place of the labels.
    overwrite : bool
        Replace `target` if it is there.
    stream : bool or None
        Piece by piece with a bounded amount of memory, the method fitted on a sample of the rows; None decides by an
        estimate of the memory that the whole table would take.
    chunk_rows, sample_rows : int or None
        Rows per piece, and rows to fit on; either asks for streaming.
    progress : Progress or None
        Hears of what is done; None is silent.

    Returns
    -------
    EnhancedFile
        The path, the number of rows, which columns were chosen, and the fitted method.

    Raises
    ------
    ArgumentError, DataError, LabelError, OutputError
        Each says what is wrong and what to do; what was at `target` before is then still there.
    """
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Reading and writing tables needs polars, which is not installed: pip install 'contone[cli]'."
        ) from error
    from contone.tables import order, run

    return run.carry_out(
        order.Order(
            source=Path(source),
            target=str(target),
            labels=order.as_list(labels),
            method=order.named_method(method),
            features=order.as_list(features),
            ids=order.as_list(ids),
            suffix=suffix,
            overwrite=overwrite,
            stream=stream,
            chunk_rows=chunk_rows,
            sample_rows=sample_rows,
            progress=progress or Progress(),
        )
    )

"""A person's file in, a file out: formats, columns, and the two ways to enhance a table, whole or in pieces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contone.tables.fitted import apply_model, fit_file, load_table_model
from contone.tables.needs import need_polars
from contone.tables.progress import Progress

if TYPE_CHECKING:
    from contone.base import Enhancer
    from contone.tables.compare import Comparison
    from contone.tables.frames import vectorizer
    from contone.tables.order import EnhancedFile
    from contone.tables.suggest import SuggestedFile

__all__ = [
    "Progress",
    "apply_model",
    "compare_files",
    "enhance_file",
    "enhance_table",
    "fit_file",
    "load_table_model",
    "suggest_file",
    "vectorizer",
]


def __getattr__(name: str) -> Any:
    """The vectorizer needs scikit-learn, whose import the command line does not wait for before it starts."""
    if name == "vectorizer":
        from contone.tables import frames

        return frames.vectorizer
    raise AttributeError(f"module 'contone.tables' has no attribute {name!r}")


def enhance_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    method: str | Enhancer = "inversion",
    suffix: str = "_degree",
    overwrite: bool = False,
    stream: bool | None = None,
    chunk_rows: int | None = None,
    sample_rows: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    label_separator: str | None = None,
    item: str | None = None,
    worker: str | None = None,
    missing: str = "impute",
    unlabelled: str = "method",
    intervals: float | None = None,
    top: int | None = None,
    degrees_as: str = "columns",
    save_model: str | os.PathLike[str] | None = None,
    graded: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> EnhancedFile:
    """Recover how much each label describes each row of a table in a file, and write the table with the degrees.

    The file appears whole or not at all. Columns that are neither label nor feature come out as they went in.

    Parameters
    ----------
    source : path
        CSV, TSV, ARFF (MULAN, MEKA), JSON lines, libsvm (all also .gz), Parquet, Arrow, Excel; one instance per row.
    target : path
        .csv, .tsv, .parquet, .arrow, .jsonl or .xlsx; ``"-"`` is CSV on stdout.
    labels, features, ids, categorical, text : str or sequence of str, default=()
        Columns: names, lists with commas, patterns such as ``"genre_*"``, ranges such as ``"last:6"`` or
        ``"f10:f16"``; `labels` may also be ``"@file"`` with one name per line, or the XML file of MULAN, and nothing
        where the format names them. Without `features`, every other numeric column whose name does not say that it is
        an id, and categories that the format declares. `ids` are numeric columns to carry along; `categorical` are
        features whose entries are names of classes, `text` columns of free text to learn from. A single label column
        may hold sets such as ``a|b|c``, or lists.
    method : str or Enhancer, default="inversion"
        A name (`contone.enhance.methods()`), ``"module:Class"``, or a method with its settings; it is cloned.
    suffix : str, default="_degree"
        Name of the new columns: label + suffix. "" puts the degrees in place of the labels.
    overwrite : bool, default=False
        Replace `target` if it is there.
    stream : bool or None
        Piece by piece with a bounded amount of memory, the method fitted on a sample of the rows; None decides by an
        estimate of the memory that the whole table would take.
    chunk_rows, sample_rows : int or None
        Rows per piece, and rows to fit on; either asks for streaming.
    separator, decimal : str or None
        Of a text file; None finds them out.
    label_separator : str or None
        Between the labels of a column of sets; None finds it out.
    item : str or None
        The column that names the item, for a table with one row per (item, label).
    worker : str or None
        Beside `item`: the column that names the annotator, for a table with one row per (item, annotator, label). The
        annotators of an item measure one distribution (`Inversion.fit_enhance(groups=...)`); the answer has one row per
        item.
    missing : {"impute", "drop", "error"}, default="impute"
        What to do with missing features: fill with the median beside a column that says where, leave the row out,
        refuse.
    unlabelled : {"method", "predict", "drop"}, default="method"
        What to do with rows without any label: leave it to the method, fit on the others and predict these, leave out.
    intervals : float or None
        Add LABEL_low and LABEL_high, credible intervals of that level, where the method gives them.
    top : int or None
        Add top_1, top_2, …: the names of the labels with the largest degrees.
    degrees_as : {"columns", "list", "struct"}, default="columns"
        One column per label; or one column ``degrees`` that holds a list in the order of the labels, or a struct with
        their names (Parquet, Arrow, JSON lines).
    save_model : path or None
        Keep the fitted method with its columns for `apply_model`.
    graded : path or None
        The degrees of some of the rows, as a person graded them (see `suggest_file`). They come out as they are and
        inform the others; a method that takes no degrees itself is calibrated by them (`contone.Calibrated`).
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
    need_polars()
    from contone.tables import order, run

    return run.carry_out(
        order.Order(
            source=Path(source),
            target=str(target),
            labels=order.as_list(labels),
            method=order.named_method(method) if graded is None else order.taught_method(method),
            features=order.as_list(features),
            ids=order.as_list(ids),
            suffix=suffix,
            overwrite=overwrite,
            stream=stream,
            chunk_rows=chunk_rows,
            sample_rows=sample_rows,
            separator=separator,
            decimal=decimal,
            label_separator=label_separator,
            item=item,
            worker=worker,
            categorical=order.as_list(categorical),
            text=order.as_list(text),
            missing=missing,
            unlabelled=unlabelled,
            intervals=intervals,
            top=top,
            degrees_as=degrees_as,
            save_model=None if save_model is None else str(save_model),
            graded=None if graded is None else Path(graded),
            progress=progress or Progress(),
        )
    )


def enhance_table(
    table: Any,
    *,
    labels: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    method: str | Enhancer = "inversion",
    suffix: str = "_degree",
    label_separator: str | None = None,
    missing: str = "impute",
    unlabelled: str = "method",
    intervals: float | None = None,
    top: int | None = None,
    degrees_as: str = "columns",
    progress: Progress | None = None,
) -> Any:
    """Recover the degrees of a table that is in memory, with everything `enhance_file` knows about columns and labels.

    Parameters
    ----------
    table : data frame or datasets.Dataset
        pandas, polars or pyarrow; or a dataset of Hugging Face, whose numbers of classes are read as their names.
    labels, features, ids, categorical, text : str or sequence of str, default=()
        As in `enhance_file`.
    method : str or Enhancer, default="inversion"
        As in `enhance_file`.
    suffix : str, default="_degree"
        Name of the new columns: label + suffix. "" puts the degrees in place of the labels.
    label_separator : str or None, default=None
        Between the labels of a column of sets; None finds it out.
    missing : {"impute", "error"}, default="impute"
        What to do with missing features.
    unlabelled : {"method", "predict"}, default="method"
        What to do with rows without any label.
    intervals, top : float or None, int or None, default=None
        As in `enhance_file`.
    degrees_as : {"columns", "list", "struct"}, default="columns"
        As in `enhance_file`.
    progress : Progress or None, default=None
        Hears of what is done; None is silent.

    Returns
    -------
    table
        Of the same kind, with the new columns.

    Examples
    --------
    >>> import polars as pl
    >>> songs = pl.DataFrame({"tempo": [60, 180, 90], "mood": [["calm", "sad"], ["happy"], ["calm"]]})
    >>> enhance_table(songs, labels="mood", method="temperature").columns
    ['tempo', 'mood', 'calm_degree', 'happy_degree', 'sad_degree']
    """
    need_polars()
    from contone.tables import in_memory, order

    return in_memory.enhance(
        table,
        order.Order(
            source=in_memory.NOWHERE,
            target="",
            labels=order.as_list(labels),
            method=order.named_method(method),
            features=order.as_list(features),
            ids=order.as_list(ids),
            suffix=suffix,
            label_separator=label_separator,
            categorical=order.as_list(categorical),
            text=order.as_list(text),
            missing=missing,
            unlabelled=unlabelled,
            intervals=intervals,
            top=top,
            degrees_as=degrees_as,
            progress=progress or Progress(),
        ),
    )


def suggest_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] = (),
    k: int = 30,
    method: Enhancer | None = None,
    graded: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **reading: Any,
) -> SuggestedFile:
    """Choose the rows of a table whose degrees would tell most, and write them for a person to grade.

    Parameters
    ----------
    source : path
        As in `enhance_file`.
    target : path
        A page (.html) with a slider per label, or a spreadsheet (.csv, .tsv) with empty columns for the degrees.
    labels : str or sequence of str, default=()
        As in `enhance_file`.
    k : int, default=30
        How many rows; fewer where fewer are not graded yet.
    method : Inversion or None
        With its settings; None means ``Inversion()``.
    graded : path or None
        Rows graded before: they inform the choice and are not suggested again.
    overwrite, progress : default=False, None
        As in `enhance_file`.
    **reading
        Other arguments of `enhance_file` about columns and reading: features, ids, categorical, text, separator,
        decimal, label_separator, item, missing, unlabelled.
    """
    need_polars()
    from contone.tables import order, suggest

    lists = ("features", "ids", "categorical", "text")
    how: dict[str, Any] = {name: order.as_list(given) if name in lists else given for name, given in reading.items()}
    wanted = order.Order(
        source=Path(source),
        target=str(target),
        labels=order.as_list(labels),
        method=order.named_method("inversion" if method is None else method),
        overwrite=overwrite,
        graded=None if graded is None else Path(graded),
        progress=progress or Progress(),
        **how,
    )
    return suggest.write_suggestion(wanted, k)


def compare_files(
    truth: str | os.PathLike[str], answer: str | os.PathLike[str], *, suffix: str = "_degree", item: str | None = None
) -> Comparison:
    """The measures of the degrees in one file against the true ones in another, beside baselines."""
    need_polars()
    from contone.tables import compare

    return compare.compare_files(Path(truth), Path(answer), suffix=suffix, item=item)

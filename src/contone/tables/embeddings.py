"""Ready embeddings beside a table: a file of NumPy with one row per item, in the order of the items or by name."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from contone.datasets.dataset import list_arrays, read_arrays
from contone.exceptions import ArgumentError
from contone.runtime.files import check_regular
from contone.tables.settings import Reading
from contone.tables.table import Table
from contone.typing import Matrix


def join(table: Table, reading: Reading, key: str | None) -> Table:
    """The table with the embeddings as columns of numbers, which are learnt from and not written.

    Parameters
    ----------
    table : Table
        One row per item.
    reading : Reading
        Its `embeddings` is a .npy file (n, d) in the order of the rows, or a .npz file with `ids` (n,) and one array
        (n, d); None changes nothing.
    key : str or None
        The column that the ids are in; None means the first of the columns of ids.
    """
    if reading.embeddings is None:
        return table
    path = Path(reading.embeddings)
    E, ids = _load(path)
    if ids is not None:
        name = key or next(iter(reading.ids), None) or reading.item
        if name is None or name not in table.stored.columns:
            raise ArgumentError(f"{path} has ids: name the column that they are in (--id).", "embeddings")
        there, wanted = {key: i for i, key in enumerate(ids)}, [str(v) for v in table.stored[name].to_list()]
        if absent := [key for key in wanted if key not in there]:
            raise ArgumentError(f"{path} has no row for {len(absent):,} items, such as {absent[0]!r}.", "embeddings")
        E = E[[there[key] for key in wanted]]
    if len(E) != table.n_rows:
        raise ArgumentError(
            f"{path} has {len(E):,} rows, the table has {table.n_rows:,} items: one row each, in their order, or a "
            ".npz file with ids.",
            "embeddings",
        )
    names = [f"embedding_{k}" for k in range(E.shape[1])]
    stored = table.stored.schema
    if taken := next((name for name in names if name in stored), None):
        raise ArgumentError(f"the table has a column {taken!r} already: rename it.", "embeddings")
    return replace(table, embedded=pl.DataFrame(E, schema=names))


def _load(path: Path) -> tuple[Matrix, list[str] | None]:
    """The array of a file, and the names of its rows where it has them."""
    try:
        check_regular(path)
        # A mapped file cannot claim more than it holds.
        is_archive = zipfile.is_zipfile(path)
        named = read_arrays(path, list_arrays(path)) if is_archive else {"": np.load(path, mmap_mode="r")}
    except (OSError, ValueError, EOFError, ArithmeticError, MemoryError) as error:
        said = str(error).partition("\n")[0]
        raise ArgumentError(f"cannot read {path} as arrays of NumPy, without pickle ({said}).", "embeddings") from error
    ids = named.pop("ids", None)
    E = next(iter(named.values())) if len(named) == 1 else None
    if E is None or E.ndim != 2 or E.dtype.kind not in "fiu" or not np.isfinite(E).all():
        raise ArgumentError(f"{path} must hold one table (n, d) of finite numbers, and ids (n,) at most.", "embeddings")
    if ids is not None and len(np.unique(ids)) < ids.size:
        raise ArgumentError(f"{path} has several rows of one id.", "embeddings")
    if ids is not None and ids.shape != (len(E),):
        raise ArgumentError(f"{path} has {len(E):,} rows and {ids.size:,} ids: give one id per row.", "embeddings")
    return E.astype(np.float64), None if ids is None else [str(name) for name in ids.tolist()]

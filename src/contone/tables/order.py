"""What is wanted from a file, and what came of it: plain values."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from contone import enhance
from contone.base import Enhancer
from contone.enhance import plugins
from contone.enhance.calibrated import Calibrated
from contone.enhance.graded import takes_degrees
from contone.exceptions import ArgumentError, DataError, OutputError
from contone.runtime.files import check_regular, check_target
from contone.tables.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

STDOUT = "-"


@dataclass(frozen=True)
class Order:
    """What is wanted: which file, which columns, by which method, to where. The method is not fitted."""

    source: Path
    target: str
    labels: list[str]
    method: Enhancer
    features: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    suffix: str = "_degree"
    overwrite: bool = False
    stream: bool | None = None
    chunk_rows: int | None = None
    sample_rows: int | None = None
    separator: str | None = None
    decimal: str | None = None
    label_separator: str | None = None
    item: str | None = None
    worker: str | None = None
    categorical: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    missing: str = "impute"
    unlabelled: str = "method"
    intervals: float | None = None
    top: int | None = None
    degrees_as: str = "columns"
    save_model: str | None = None
    graded: Path | None = None
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True)
class FittedSample:
    """The rows of a streamed file that the method was fitted on.

    Attributes
    ----------
    X : (m, d)
        Features, encoded.
    L : frame (m, q)
        Labels.
    numbers : (m,)
        Which rows of the file they are, counted from 0.
    n_rows : int
        Rows of the file.
    """

    X: np.ndarray
    L: pl.DataFrame
    numbers: np.ndarray
    n_rows: int


@dataclass(frozen=True)
class EnhancedFile:
    """What was written.

    Attributes
    ----------
    path : Path or None
        The file; None for stdout.
    n_rows : int
    labels, features, carried : tuple of str
        The part that each column of the input played.
    degrees : tuple of str
        The new columns, one per label.
    method : Enhancer
        The fitted method (on a sample, where the file was streamed).
    streamed : bool
    compare_errors : function or None
        With graded rows: gives the expected error (mean KL) without them and with them, which takes a second fit.
    sample : function or None
        Of a streamed file: gives the rows that the method was fitted on, which may take another pass over the file.
    """

    path: Path | None
    n_rows: int
    labels: tuple[str, ...]
    features: tuple[str, ...]
    carried: tuple[str, ...]
    degrees: tuple[str, ...]
    method: Enhancer
    streamed: bool
    compare_errors: Callable[[], tuple[float, float] | None] | None = field(default=None, repr=False, compare=False)
    sample: Callable[[], FittedSample] | None = field(default=None, repr=False, compare=False)


def as_list(given: str | Sequence[str]) -> list[str]:
    """One name or several, as they are typed or passed."""
    return [given] if isinstance(given, str) else [str(entry) for entry in given]


def named_method(method: str | Enhancer) -> Enhancer:
    """A fresh, unfitted method of that name, of the class at ``module:Class``, or like the one given."""
    from sklearn.base import clone

    if not isinstance(method, str):
        fresh: Enhancer = clone(method)
        return fresh
    if plugins.is_path(method):
        return plugins.load(method)()
    known = enhance.methods()
    if method.lower() not in known:
        raise ArgumentError(f"there is no method {method!r}; there are: {', '.join(known)}.", "method")
    return known[method.lower()]()


def taught_method(method: str | Enhancer) -> Enhancer:
    """The same where there are graded rows: a method that takes no degrees is calibrated by them."""
    fresh = named_method(method)
    return fresh if takes_degrees(fresh) else Calibrated(fresh)


def check_source(path: Path) -> None:
    """Refuse what is not a regular file: a pipe could be read only once, and may never end."""
    try:
        if not _is_utf8(path):
            raise DataError(f"{path} has a name that is not UTF-8, which the readers of tables cannot open: rename it.")
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        check_regular(path)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error


def check_output(target: str, *, overwrite: bool) -> None:
    """Refuse before any work a target that could not be written after it."""
    if target == STDOUT:
        return
    if not _is_utf8(Path(target)):
        raise ArgumentError(f"{target} is a name that is not UTF-8: choose another one.", "target")
    try:
        check_target(target, overwrite=overwrite)
    except OutputError as error:
        raise ArgumentError(str(error), "target") from error


def _is_utf8(path: Path) -> bool:
    try:
        os.path.realpath(path).encode("utf-8")
    except (UnicodeEncodeError, OSError, ValueError):
        return False
    return True

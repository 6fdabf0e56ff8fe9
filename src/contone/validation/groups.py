"""Which item each row of labels belongs to, from any container; and items in place of rows."""

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from array_api_compat import is_dask_array

from contone.backends import get_backend, to_numpy
from contone.exceptions import InputError, InputTypeError, LabelWarning, ShapeError
from contone.runtime.warnings import warn
from contone.typing import Data
from contone.validation.containers import Border, as_frame, first_row, read_only


class Grouping(NamedTuple):
    """m items of n rows, numbered by their first appearance."""

    item: np.ndarray
    """(n,) number of the item of every row."""
    names: list[Hashable]
    """The m items, as they were named."""
    X: np.ndarray
    """(m, d) features: the mean over the rows of an item."""
    border: Border
    """The way out for m rows."""


def check_groups(groups: Data, X: Data, border: Border) -> Grouping:
    """The items that `groups` (n,) names, one entry per row of the checked features X (n, d)."""
    if is_dask_array(X) or is_dask_array(groups):
        raise InputTypeError(
            "groups needs all rows in memory, and these are dask arrays: the rows of an item may lie in different "
            "blocks. Pass NumPy arrays (X.compute()), or fit to a sample of the items."
        )
    named = _read_names(groups, X.shape[0])
    number: dict[Hashable, int] = {}
    item = np.array([number.setdefault(name, len(number)) for name in named], dtype=np.int64)
    features, first = to_numpy(X), np.unique(item, return_index=True)[1]
    means: np.ndarray = np.stack([np.bincount(item, weights=column) for column in features.T], axis=1)
    means = means / np.bincount(item)[:, None]
    off: np.ndarray = np.abs(features - means[item]) > 1e-9 * (1.0 + np.abs(means[item]))
    if off.any():
        row, n_off = first_row(off.any(axis=1)), len(np.unique(item[off.any(axis=1)]))
        warn(
            f"The rows of {n_off} of {len(first)} items differ in their features (first item {named[row]!r}, row "
            f"{row}): an item has the mean of them.",
            LabelWarning,
        )
    same = ~np.any(off, axis=1)[first]
    means[same] = features[first][same]
    return Grouping(item, list(number), read_only(means), border_of_items(border, first, list(number)))


class Annotators(NamedTuple):
    """The persons of n rows, numbered from 1 by their first appearance."""

    number: np.ndarray
    """(n,)."""
    names: list[Hashable]


def check_annotators(annotators: Data, item: np.ndarray) -> Annotators:
    """The persons that `annotators` (n,) names, one entry per row about an item (n,); None or NaN is somebody else."""
    given, number = _read_names(annotators, len(item), "annotators", "person"), dict[Hashable, int]()
    named = [("nobody", row) if name is None or name != name else name for row, name in enumerate(given)]
    person = np.array([number.setdefault(name, len(number) + 1) for name in named], dtype=np.int64)
    twice = len(item) - len(np.unique(np.stack([item, person]), axis=1).T)
    if twice:
        warn(
            f"{twice} of {len(item)} answers are by a person who answered the same item before: both count. Leave "
            "one of them out if it replaces the other.",
            LabelWarning,
        )
    if len(number) == 1:
        warn(
            "annotators names one person only, so what they choose too often cannot be separated from what the items "
            "are: their answers count as they are.",
            LabelWarning,
        )
    return Annotators(person, [None if isinstance(n, tuple) and n[:1] == ("nobody",) else n for n in number])


def _read_names(groups: Data, n: int, called: str = "groups", what: str = "item") -> list[Hashable]:
    frame = as_frame(groups)
    if isinstance(frame, nw.DataFrame):
        raise InputError(f"{called} must be one column, the {what} of every row; it is a frame: pass the column.")
    if frame is not None:
        named = frame.to_list()
    else:
        named = np.asarray(get_backend(groups).to_numpy(groups) if hasattr(groups, "detach") else groups).tolist()
    if not isinstance(named, list) or any(isinstance(name, list) for name in named):
        raise ShapeError(f"{called} must be one-dimensional: the name of the {what} of every row.")
    if len(named) != n:
        raise ShapeError(f"{called} must name the {what} of every row: it has {len(named)} entries, X has {n} rows.")
    if called != "groups":
        return named
    missing = next((row for row, name in enumerate(named) if name is None or name != name), None)
    if missing is not None:
        raise InputError(f"groups has no name in row {missing}: give every row its item, or leave the row out.")
    return named


def border_of_items(border: Border, first: np.ndarray, names: list[Hashable]) -> Border:
    """The way out for items, of which each has its first row in the frame that came in."""
    if border.frame is None:
        return border
    native = nw.to_native(border.frame[first.tolist()])
    if nw.maybe_get_index(border.frame) is not None:
        native = native.set_axis(names, axis=0)
    return replace(border, frame=as_frame(native))

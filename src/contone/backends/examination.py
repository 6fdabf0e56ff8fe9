"""The examination of features and labels, written once for every array that lies in one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.backends.protocols import Findings
from contone.typing import Array


def examine(X: Array | None, Y: Array | None, tolerance: float) -> Findings:
    """What is found in features X (n, d) and labels Y (n, q); either may be left out.

    Nothing but single numbers and a few of size q leave the device that the arrays are on.
    """
    bad_features = -1 if X is None else _first(~_all_rows(array_namespace(X).isfinite(X)))
    if Y is None:
        nothing = np.empty(0)
        return Findings(0 if X is None else X.shape[0], bad_features, -1, True, 0, -1, -1, -1, 0.0, nothing, nothing)
    xp = array_namespace(Y)
    unasked = xp.isnan(Y)
    logical = (Y == 0) | (Y == 1) | unasked
    total = xp.sum(Y, axis=1, dtype=xp.float64)
    off = xp.any(Y < 0, axis=1) | ~(xp.abs(total - 1.0) <= tolerance)
    neither = off & ~_all_rows(logical)  # among rows of 0 and 1, name the one that is different
    row = _first(neither)
    row = row if row >= 0 else _first(off)
    empty = silent_rows(Y)
    label = -1 if row < 0 else _first(~logical[row, :])
    value = 0.0 if row < 0 else float(total[row] if label < 0 else Y[row, label])
    return Findings(
        n=Y.shape[0],
        bad_features=bad_features,
        bad_labels=_first(xp.any(xp.isinf(Y), axis=1)),
        is_logical=bool(xp.all(logical)),
        n_empty=int(xp.sum(xp.astype(empty, xp.int64))),
        empty=_first(empty),
        off=row,
        off_label=label,
        off_value=value,
        lowest=_host(xp.min(xp.where(unasked, xp.full_like(Y, xp.inf), Y), axis=0)),
        highest=_host(xp.max(xp.where(unasked, xp.full_like(Y, -xp.inf), Y), axis=0)),
        not_whole=_first(~_all_rows((xp.round(Y) == Y) | unasked)),
        unasked=_first(xp.any(unasked, axis=1)),
    )


def merge(parts: Sequence[Findings]) -> Findings:
    """What was found in consecutive blocks of rows, as if they had been examined together."""
    start = np.concatenate([[0], np.cumsum([part.n for part in parts])])
    logical = all(part.is_logical for part in parts)
    found = parts[0]
    for part, first in zip(parts[1:], start[1:-1], strict=True):
        later = {
            name: int(first) + getattr(part, name)
            for name in ("bad_features", "bad_labels", "empty", "not_whole", "unasked")
            if getattr(found, name) < 0 <= getattr(part, name)
        }
        # A row that is neither logical nor a distribution says more than a row of 0 and 1 among confidences.
        if part.off >= 0 and (found.off < 0 or (found.off_label < 0 <= part.off_label)):
            later |= {"off": int(first) + part.off, "off_label": part.off_label}
            found = replace(found, off_value=part.off_value)
        found = replace(
            found,
            n_empty=found.n_empty + part.n_empty,
            lowest=np.minimum(found.lowest, part.lowest),
            highest=np.maximum(found.highest, part.highest),
            **later,
        )
    return replace(found, n=int(start[-1]), is_logical=logical)


def silent_rows(Y: Array) -> Array:
    """Which rows of Y (n, q) have no label at all, bool (n,): every entry is 0, or every entry is NaN."""
    xp = array_namespace(Y)
    return xp.all(Y == 0, axis=1) | xp.all(xp.isnan(Y), axis=1)


def _all_rows(condition: Array) -> Array:
    return array_namespace(condition).all(condition, axis=1)


def _first(condition: Array) -> int:
    """Where the condition (n,) holds first; -1 where it does not."""
    xp = array_namespace(condition)
    return int(xp.argmax(xp.astype(condition, xp.int8))) if bool(xp.any(condition)) else -1


def _host(A: Any) -> np.ndarray:
    return A.cpu().numpy() if hasattr(A, "cpu") else np.asarray(A)

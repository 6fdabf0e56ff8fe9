"""`Check` of a table in a file: read it as `contone enhance` does, fit or take a fitted method, look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contone.check.credibility import check
from contone.check.findings import Check
from contone.enhance.inversion import Inversion
from contone.exceptions import ArgumentError
from contone.tables.progress import Progress


def check_file(
    source: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] = (),
    method: Inversion | None = None,
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    progress: Progress | None = None,
    max_rows: int = 1000,
    **reading: Any,
) -> Check:
    """Check how far the degrees of a table's labels can be believed.

    Parameters
    ----------
    source, labels, features, ids, categorical, text
        As in `contone.enhance_file`.
    method : Inversion or None
        Not fitted, or fitted to this very file by `enhance_file`; None means ``Inversion()``.
    max_rows : int
        Rows to look at.
    **reading
        The other settings of `enhance_file` about how the file is read: separator, decimal, label_separator, item,
        missing, unlabelled.
    """
    from contone.tables import order, whole

    chosen = method if method is not None else Inversion()
    if not isinstance(chosen, Inversion):
        raise ArgumentError(f"checks are made of inversion's answers; got {type(chosen).__name__}.", "method")
    is_fitted = hasattr(chosen, "fit_")
    path = Path(source)
    order.check_source(path)
    kept = _Kept(chosen)
    fitted = whole.fit_whole(
        order.Order(
            source=path,
            target="",
            labels=order.as_list(labels),
            method=kept if is_fitted else order.named_method(chosen),  # type: ignore[arg-type]
            features=order.as_list(features),
            ids=order.as_list(ids),
            categorical=order.as_list(categorical),
            text=order.as_list(text),
            progress=Progress() if is_fitted else progress or Progress(),
            **reading,
        )
    )
    X = fitted.encoder.transform(fitted.problem.features)[fitted.fitted_rows]
    L = fitted.problem.L.filter(fitted.fitted_rows)
    with (progress or Progress()).working("checking the answer"):
        found = check(chosen if is_fitted else fitted.method, X, L, max_rows=max_rows)
    numbers = np.flatnonzero(fitted.fitted_rows)  # rows of the file, where those without a label were left out
    ambiguous, doubtful = (
        tuple(replace(row, row=int(numbers[row.row])) for row in rows) for rows in (found.ambiguous, found.doubtful)
    )
    return replace(found, ambiguous=ambiguous, doubtful=doubtful)


class _Kept:
    """A fitted method that is handed the data it was fitted to, and not fitted again."""

    def __init__(self, method: Inversion) -> None:
        self.method = method

    def fit(self, X: Any, Y: Any) -> None:
        """Nothing is left to do."""

    @property
    def label_distributions_(self) -> Any:
        return self.method.label_distributions_

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.method.predict(X))

"""`Check` of a table in a file: read it as `contone enhance` does, fit or take a fitted method, look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.tables.order import FittedSample
from contone.tables.progress import Progress
from contone.trust.check_result import Check
from contone.trust.credibility import check


def check_file(
    source: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    ids: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    method: Enhancer | None = None,
    model: Inversion | None = None,
    sample: FittedSample | None = None,
    progress: Progress | None = None,
    max_rows: int = 1000,
    **reading: Any,
) -> Check:
    """Check how far the degrees of a table's labels can be believed.

    Parameters
    ----------
    source, labels, features, ids, categorical, text : path, names
        As in `contone.enhance_file`.
    method : Enhancer or None
        Not fitted, or fitted to this very file by `enhance_file`; None means ``Inversion()``.
    model : Inversion or None
        The model that other methods are compared with.
    sample : FittedSample or None
        The rows that a fitted method was fitted on, where the file was streamed (`EnhancedFile.sample`); the file is
        then not read.
    progress : Progress or None
        Hears how far the work is.
    max_rows : int
        Rows to look at.
    **reading
        The other settings of `enhance_file` about how the file is read: separator, decimal, label_separator, item,
        missing, unlabelled.
    """
    from contone.tables import order, whole

    chosen: Any = method if method is not None else Inversion()
    said = progress or Progress()
    if sample is not None:
        with said.working("checking the answer"):
            found = check(_fitted_on(chosen, sample), sample.X, sample.L, model=model, max_rows=max_rows)
        return replace(_numbered(found, sample.numbers), n_rows=sample.n_rows, n_fitted=len(sample.numbers))
    is_fitted = hasattr(chosen, "label_distributions_")
    path = Path(source)
    order.check_source(path)
    fitted = whole.fit_whole(
        order.Order(
            source=path,
            target="",
            labels=order.as_list(labels),
            method=_Kept(chosen) if is_fitted else order.named_method(chosen),  # type: ignore[arg-type]
            features=order.as_list(features),
            ids=order.as_list(ids),
            categorical=order.as_list(categorical),
            text=order.as_list(text),
            progress=Progress() if is_fitted else said,
            **reading,
        )
    )
    X = fitted.encoder.transform(fitted.problem.features)[fitted.fitted_rows]
    L = fitted.problem.L.filter(fitted.fitted_rows)
    with said.working("checking the answer"):
        found = check(chosen if is_fitted else fitted.method, X, L, model=model, max_rows=max_rows)
    # Rows of the file, where those without a label were left out.
    return _numbered(found, np.flatnonzero(fitted.fitted_rows))


def _numbered(found: Check, numbers: np.ndarray) -> Check:
    """The check with the rows' numbers in the file."""
    return replace(
        found,
        ambiguous=tuple(replace(row, row=int(numbers[row.row])) for row in found.ambiguous),
        doubtful=tuple(replace(entry, row=int(numbers[entry.row])) for entry in found.doubtful),
    )


def _fitted_on(method: Any, sample: FittedSample) -> Any:
    """The method with its answer to the sample; one from an interrupted run's file is fitted to it once more."""
    shape = getattr(getattr(method, "label_distributions_", None), "shape", None)
    return method if shape == sample.L.shape else clone(method)


class _Kept:
    """A fitted method that is handed the data it was fitted to, and not fitted again."""

    def __init__(self, method: Any) -> None:
        self.method = method

    def fit(self, X: Any, Y: Any, **evidence: Any) -> None:
        """Nothing is left to do."""

    @property
    def label_distributions_(self) -> Any:
        return self.method.label_distributions_

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.method.predict(X))

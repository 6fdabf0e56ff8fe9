"""Answers of people about items: how they are read from a file, split and counted.

A set is a ``.npz`` file with the arrays X (n, d), `item`, `worker` (-1: unknown), `label`, one entry per vote or mark,
and `labels`, the names. Lines of one worker about one item are one answer with several marks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contone.datasets.dataset import read_arrays
from contone.exceptions import DataError
from contone.runtime.files import check_regular
from contone.typing import Matrix

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Votes or marks of people on items.

    Attributes
    ----------
    X : (n, d)
        Features of the items.
    item, worker, label : (m,)
        One entry per vote or mark.
    labels : tuple of str
        Names of the q labels.
    """

    X: Matrix
    item: Numbers
    worker: Numbers
    label: Numbers
    labels: tuple[str, ...]

    def split(self, k: int, seed: int) -> tuple[Answers, Answers]:
        """k answers of each item, drawn at random, and all others; an item with fewer gives all that it has."""
        answer = self._answers()
        order = np.random.default_rng(seed).permutation(int(answer.max()) + 1)
        item = self.item[np.unique(answer, return_index=True)[1]]
        by_item = np.lexsort((order, item))
        rank = np.empty(len(by_item), dtype=np.int64)
        starts = np.searchsorted(item[by_item], np.arange(len(self.X)))
        rank[by_item] = np.arange(len(by_item)) - starts[item[by_item]]
        given = (rank < k)[answer]
        return self._part(given), self._part(~given)

    def sample(self, size: int) -> Answers:
        """The answers on a random sample of that many items, the same in every run; all where there are no more."""
        if not 0 < size < len(self.X):
            return self
        kept = np.sort(np.random.default_rng(0).choice(len(self.X), size, replace=False))
        part = self._part(np.isin(self.item, kept))
        return replace(part, X=self.X[kept], item=np.searchsorted(kept, part.item))

    def counts(self) -> Matrix:
        """How often each label was chosen for each item, (n, q)."""
        n, q = len(self.X), len(self.labels)
        return np.bincount(self.item * q + self.label, minlength=n * q).reshape(n, q).astype(float)

    def n_answers(self) -> Numbers:
        """Answers per item, (n,); several marks of one worker are one."""
        return np.bincount(self.item[np.unique(self._answers(), return_index=True)[1]], minlength=len(self.X))

    def _answers(self) -> Numbers:
        """The number of the answer that each line belongs to."""
        lines = np.stack([self.item, self.worker, np.where(self.worker < 0, np.arange(len(self.item)), -1)], axis=1)
        found: Numbers = np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
        return found

    def _part(self, chosen: NDArray[np.bool_]) -> Answers:
        return replace(self, item=self.item[chosen], worker=self.worker[chosen], label=self.label[chosen])


def read_answers(path: Path) -> Answers:
    """The set in a file."""
    check_regular(path)
    names = ("X", "item", "worker", "label", "labels")
    try:
        found = read_arrays(path, names)
    except DataError as error:
        raise DataError(f"{path} cannot be read: {error}. A set of answers is written by numpy.savez.") from error
    absent = [name for name in names if name not in found]
    if absent:
        raise DataError(f"{path} has no array {absent[0]!r}: a set of answers has {', '.join(names)}.")
    X, labels = np.asarray(found["X"], dtype=np.float64), tuple(map(str, found["labels"]))
    if X.ndim != 2 or not np.isfinite(X).all():
        raise DataError(f"{path}: X must be a matrix of finite numbers, one row per item.")
    for name, end in (("item", len(X)), ("worker", None), ("label", len(labels))):
        values = found[name]
        if values.shape != found["item"].shape or values.ndim != 1 or values.dtype.kind not in "iu":
            raise DataError(f"{path}: {name} must be a list of whole numbers, as long as item.")
        if end is not None and not ((values >= 0) & (values < end)).all():
            raise DataError(f"{path}: {name} must be between 0 and {end - 1}.")
    if not len(found["item"]):
        raise DataError(f"{path} holds no answers.")
    item, worker, label = (found[name].astype(np.int64) for name in ("item", "worker", "label"))
    return Answers(X, item, worker, label, labels)

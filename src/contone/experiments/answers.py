"""Answers of people on items: their votes or marks, and what is made of them without features or with a plain model.

A set is a ``.npz`` file with the arrays X (n, d), `item`, `worker` (-1: unknown), `label`, one entry per vote or mark,
and `labels`, the names. Lines of one worker about one item are one answer with several marks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contone.datasets.archive import read_arrays
from contone.enhance import counting
from contone.exceptions import DataError
from contone.runtime.files import check_regular
from contone.typing import Matrix

EM_STEPS, EM_TOLERANCE = 200, 1e-6
PSEUDO_COUNT = 0.01
"""Of every entry of a confusion matrix of Dawid and Skene's model."""

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
        first = np.unique(answer, return_index=True)[1]
        item = self.item[first]
        by_item = np.lexsort((order, item))
        rank = np.empty(len(by_item), dtype=np.int64)
        starts = np.searchsorted(item[by_item], np.arange(len(self.X)))
        rank[by_item] = np.arange(len(by_item)) - starts[item[by_item]]
        given = (rank < k)[answer]
        return self._part(given), self._part(~given)

    def counts(self) -> Matrix:
        """How often each label was chosen for each item, (n, q)."""
        return _tally(self.item, self.label, len(self.X), len(self.labels))

    def n_answers(self) -> Numbers:
        """Answers per item, (n,); several marks of one worker are one."""
        first = np.unique(self._answers(), return_index=True)[1]
        return np.bincount(self.item[first], minlength=len(self.X))

    def _answers(self) -> Numbers:
        """The number of the answer that each line belongs to."""
        single = np.where(self.worker < 0, np.arange(len(self.item)), -1)
        lines = np.stack([self.item, self.worker, single], axis=1)
        found: Numbers = np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
        return found

    def _part(self, chosen: NDArray[np.bool_]) -> Answers:
        return Answers(self.X, self.item[chosen], self.worker[chosen], self.label[chosen], self.labels)


def read_answers(path: Path) -> Answers:
    """The set in a file."""
    check_regular(path)
    names = ("X", "item", "worker", "label", "labels")
    found = read_arrays(path, names)
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


def marks(answers: Answers, reading: str) -> Matrix:
    """Logical labels (n, q) of the given answers; a row of zeros for an item without any."""
    counts, n = answers.counts(), answers.n_answers()[:, None]
    if reading == "any":
        return (counts > 0).astype(float)
    majority = counts > n / 2
    leading = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    return np.where(majority.any(axis=1, keepdims=True), majority, leading).astype(float)


def dawid_skene(answers: Answers) -> Matrix:
    """Chances of each item's one true label (Dawid and Skene 1979); people without an id are one person."""
    q, n = len(answers.labels), len(answers.X)
    person = np.unique(answers.worker, return_inverse=True)[1]
    T = counting.shares(answers.counts())
    for _ in range(EM_STEPS):
        share = T.mean(axis=0) + 1e-12
        confusion = np.full((int(person.max()) + 1, q, q), PSEUDO_COUNT)  # person, answer, truth
        np.add.at(confusion, (person, answers.label), T[answers.item])
        confusion /= confusion.sum(axis=1, keepdims=True)
        logs = np.tile(np.log(share), (n, 1))
        np.add.at(logs, answers.item, np.log(confusion)[person, answers.label])
        new = np.exp(logs - logs.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        moved, T = float(np.abs(new - T).max()), new
        if moved < EM_TOLERANCE:
            break
    return T


def with_features(answers: Answers) -> Matrix:
    """The Dirichlet-multinomial whose mean is a logistic regression on the features."""
    counts = answers.counts()
    return counting.dirichlet_multinomial(counts, counting.regressed(answers.X, counts))


COUNTERS: dict[str, Callable[[Answers], Matrix]] = {
    "Counting": lambda answers: counting.shares(answers.counts()),
    "Dirichlet-multinomial": lambda answers: counting.dirichlet_multinomial(answers.counts()),
    "Dirichlet-multinomial (features)": with_features,
    "Dawid-Skene": dawid_skene,
    "Logistic regression": lambda answers: counting.regressed(answers.X, answers.counts()),
}
"""Rows that read the counts, and how."""


def _tally(item: Numbers, label: Numbers, n: int, q: int) -> Matrix:
    return np.bincount(item * q + label, minlength=n * q).reshape(n, q).astype(float)

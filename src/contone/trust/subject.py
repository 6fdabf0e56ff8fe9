"""What a check looks at: a fitted method, rows with its answer, and the model that they are compared with.

And what it shows of rows, labels and pairs of labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from contone.base import Enhancer
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.trust.chances import doubtful_labels
from contone.trust.check_result import DoubtfulEntry, LabelSummary, RowSummary
from contone.typing import Matrix

SHOWN = 20
"""Rows, labels or pairs that a list shows."""
DOUBT_FROM = 0.2
"""Probability of being wrong from which a label is shown."""
DOUBT_SWEEPS, DOUBT_WORK, DOUBT_LABELS = 60, 500_000, 60
"""Sweeps, and at most how many rows times squared number of labels: each label of a row is proposed at each sweep. With
more labels than the last of these, nobody could read what is left."""
SHORT = {"n_sweeps": 60, "n_burn": 20}
"""Length of the fits that only serve a comparison."""
COMPARED, COMPARED_ROWS = 20_000, 300
"""At most how many label entries, and rows, a method is fitted to again."""


@dataclass(frozen=True)
class Subject:
    """Rows with what a method says of them.

    Attributes
    ----------
    method : Enhancer
        Fitted.
    model : Inversion
        The method itself, or the model of these rows that it is compared with; fitted.
    X, L, D : (m, d), (m, q), (m, q)
        Features, labels and the answer.
    rows : (m,)
        Their numbers among the n rows of the data.
    """

    method: Enhancer
    model: Inversion
    X: Matrix
    L: Matrix
    D: Matrix
    rows: np.ndarray
    n: int
    names: tuple[str, ...]
    seed: int

    @property
    def is_model(self) -> bool:
        """Whether the method is the model."""
        return self.method is self.model

    @property
    def few(self) -> slice:
        """The rows that methods are fitted to again."""
        return slice(max(min(COMPARED_ROWS, COMPARED // self.L.shape[1]), 50))

    @property
    def short(self) -> Inversion:
        """The model, not fitted, with few sweeps."""
        rule = self.model.degradation_
        found: Inversion = clone(self.model).set_params(degradation=rule, n_samples=0, verbose=False, **SHORT)
        return found

    def rng(self) -> np.random.Generator:
        """The same random numbers every time."""
        return np.random.default_rng(self.seed)


def summarize_labels(names: Sequence[str], L: Matrix, D: Matrix, *ends: Matrix) -> tuple[LabelSummary, ...]:
    """Each label, as labels L (n, q) have it, with its degrees D (m, q) and the ends of their intervals, if any."""
    often = (np.nan_to_num(L) > 0).sum(axis=0) / np.maximum((~np.isnan(L)).sum(axis=0), 1)
    columns = (often, D.mean(axis=0), *(np.median(end, axis=0) for end in ends))
    return tuple(LabelSummary(name, *map(float, each)) for name, *each in zip(names, *columns, strict=True))


def summarize_rows(subject: Subject, score: Matrix) -> tuple[RowSummary, ...]:
    """The rows with the highest scores (m,)."""
    highest = np.argsort(-score, kind="stable")[:SHOWN]
    return tuple(RowSummary(int(subject.rows[i]), float(score[i]), *_described(subject, i)) for i in highest)


def find_doubtful(subject: Subject) -> tuple[tuple[DoubtfulEntry, ...], str]:
    """The labels that look wrong to the model, the most doubtful first; and why not all could be looked at."""
    q = subject.L.shape[1]
    if q > DOUBT_LABELS:
        return (), f"Labels that look wrong: not looked for among {q} labels; contone.doubtful_labels does."
    most = max(DOUBT_WORK // q**2, 10)
    X, L = subject.X[:most], subject.L[:most]
    try:
        found = doubtful_labels(subject.model, X, L, min_probability=DOUBT_FROM, k=SHOWN, n_sweeps=DOUBT_SWEEPS)
    except InputError as error:
        return (), f"Labels that look wrong: not looked for; {str(error).removeprefix('doubtful_labels: ')}"
    entries = zip(found.row, found.label, found.given, found.probability, strict=True)
    return tuple(
        DoubtfulEntry(int(subject.rows[i]), subject.names[j], bool(given), float(p), *_described(subject, i))
        for i, j, given, p in entries
    ), "" if len(subject.L) <= most else f"Labels that look wrong: looked for in {most} rows."


def _described(subject: Subject, i: int) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """The labels that a row has, and its three largest degrees."""
    marked = tuple(subject.names[j] for j in np.flatnonzero(subject.L[i] > 0))
    largest = np.argsort(-subject.D[i], kind="stable")[:3]
    return marked, tuple((subject.names[j], float(subject.D[i, j])) for j in largest)

"""What a check shows of rows, labels and pairs of labels, for any method's answer."""

from __future__ import annotations

import numpy as np

from contone.backends import get_backend, to_numpy
from contone.enhance.inversion import Inversion
from contone.exceptions import InputError
from contone.trust.check_result import DoubtfulEntry, LabelSummary, RowSummary
from contone.trust.doubtful import doubtful_labels
from contone.typing import Array, Matrix

SHOWN = 20
"""Rows, labels or pairs that a list shows."""
DOUBT_FROM = 0.2
"""Probability of being wrong from which a label is shown."""
DOUBT_SWEEPS, DOUBT_WORK = 60, 500_000
"""Sweeps, and at most how many rows times squared number of labels: each label of a row is proposed at each sweep."""


def taken(A: Array, rows: np.ndarray) -> Matrix:
    """Some rows of any array, in memory."""
    backend = get_backend(A)
    return np.asarray(to_numpy(A[rows] if backend.in_memory else backend.compute(A[rows])[0]), dtype=np.float64)


def summarize_labels(
    L: Matrix, D: Matrix, names: tuple[str, ...], ends: tuple[Matrix, Matrix] | None = None
) -> tuple[LabelSummary, ...]:
    """Each label of L (m, q) with its degrees D (m, q) and the ends of their intervals, if there are any."""
    found = []
    for j, name in enumerate(names):
        asked = ~np.isnan(L[:, j])
        frequency = float((L[asked, j] > 0).mean()) if asked.any() else 0.0
        typical = (None, None) if ends is None else tuple(float(np.median(end[:, j])) for end in ends)
        found.append(LabelSummary(name, frequency, float(D[:, j].mean()), *typical))
    return tuple(found)


def summarize_rows(
    score: Matrix, numbers: np.ndarray, L: Matrix, D: Matrix, names: tuple[str, ...]
) -> tuple[RowSummary, ...]:
    """The rows with the highest scores (m,)."""
    highest = np.argsort(-score, kind="stable")[:SHOWN]
    return tuple(RowSummary(int(numbers[i]), float(score[i]), *_described(L[i], D[i], names)) for i in highest)


def find_doubtful(
    model: Inversion, X: Matrix, L: Matrix, D: Matrix, numbers: np.ndarray, names: tuple[str, ...]
) -> tuple[tuple[DoubtfulEntry, ...], str]:
    """The labels that look wrong to a fitted model, the most doubtful first; and why not all could be looked at."""
    most = max(DOUBT_WORK // L.shape[1] ** 2, 10)
    X, L, cut = X[:most], L[:most], "" if len(L) <= most else f"Labels that look wrong: looked for in {most} rows."
    try:
        found = doubtful_labels(model, X, L, min_probability=DOUBT_FROM, k=SHOWN, n_sweeps=DOUBT_SWEEPS)
    except InputError as error:
        return (), f"Labels that look wrong: not looked for; {str(error).removeprefix('doubtful_labels: ')}"
    entries = zip(found.row, found.label, found.given, found.probability, strict=True)
    return tuple(
        DoubtfulEntry(int(numbers[i]), names[j], bool(given), float(p), *_described(L[i], D[i], names))
        for i, j, given, p in entries
    ), cut


def strongest_pairs(covariance: Matrix, names: tuple[str, ...]) -> tuple[tuple[str, str, float], ...]:
    """The pairs of labels with the largest correlations in a covariance (q, q)."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance / np.outer(deviation, deviation)
    first, second = np.triu_indices(len(names), 1)
    values = correlation[first, second]
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN]
    return tuple((names[first[k]], names[second[k]], float(values[k])) for k in order)


def _described(
    labels: Matrix, degrees: Matrix, names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """The labels that a row has, and its three largest degrees."""
    marked = tuple(names[j] for j in np.flatnonzero(labels > 0))
    return marked, tuple((names[j], float(degrees[j])) for j in np.argsort(-degrees, kind="stable")[:3])

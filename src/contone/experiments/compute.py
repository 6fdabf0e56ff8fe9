"""How a cell is carried out: data, labels, its task, and the record that is kept.

`compute` is what a worker runs. It never raises: a method that fails is a record, too.
"""

from __future__ import annotations

import time
from functools import lru_cache
from importlib.metadata import version
from platform import python_version

import numpy as np
from threadpoolctl import threadpool_limits

import contone
from contone import measures
from contone.exceptions import InputError
from contone.experiments.cells import Cell
from contone.experiments.describe import build
from contone.experiments.sources import load
from contone.experiments.tasks import TASKS
from contone.measurements import IntervalRule
from contone.trust.trial import Trial, trial
from contone.typing import Record

N_EXAMPLES = 4
"""Rows kept of every recovered distribution, for the pictures of single instances."""


def compute(cell: Cell) -> Record:
    """Carry out a cell. Never raises: the record says whether it is "done", "failed" or, without its extra, "left out".

    The record holds plain values, except ``"arrays"``: arrays to be kept beside it (or None).
    """
    return record_of(cell, attempt(cell), time.time())


def record_of(cell: Cell, done: Trial[Record], ended: float) -> Record:
    """What is kept of a cell's trial that ended then."""
    record: Record = {"key": cell.key, "cell": cell.plain(), "versions": versions(), "arrays": None}
    if done.answer is None:
        status = "left out" if done.is_left_out else "failed"
        record.update(status=status, error=done.error, traceback=done.traceback)
    else:
        record.update(done.answer, status="done")
    record["warnings"] = sorted({f"{category.__name__}: {text}" for category, text in done.warnings})
    record["time"] = {"started": ended - done.seconds, "cpu": done.cpu, "wall": done.seconds}
    return record


def attempt(cell: Cell, n_rows: int | None = None) -> Trial[Record]:
    """A trial of a cell, on the first `n_rows` rows of its data."""
    # One thread a cell: cells are what runs in parallel, and BLAS threads on top of them would fight for the cores.
    with threadpool_limits(limits=1):
        return trial(lambda: _outcome(cell, n_rows))


def _outcome(cell: Cell, n_rows: int | None) -> Record:
    if cell.task["kind"] == "people":  # data without a truth, judged in another way
        from contone.experiments.people import outcome as of_people

        return of_people(cell)
    X, D, label_names, found, _ = load(cell.dataset, cell.source)
    if found != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content here ({found}) than in the plan ({cell.data_hash}).")
    X, D = X[:n_rows], D[:n_rows]
    degradation = build(cell.degradation)
    if not isinstance(degradation, IntervalRule):
        raise InputError(f"{cell.degradation} is not a degradation.")
    L = degradation.apply(D).astype(float)
    answer = TASKS[cell.task["kind"]].work(cell, X, L, D)
    outcome: Record = {
        "scores": answer.scores,
        "solution": answer.solution,
        "extra": answer.extra,
        "data": {"n": len(X), "d": X.shape[1], "q": D.shape[1], "labels_per_row": float(L.sum(axis=1).mean())},
    }
    if answer.distributions is not None:
        rows = example_rows(D)
        outcome["instances"] = instance_summary(D, answer.distributions)
        outcome["examples"] = {
            "rows": rows,
            "labels": list(label_names),
            "truth": D[rows].tolist(),
            "logical": L[rows].astype(int).tolist(),
            "recovered": answer.distributions[rows].tolist(),
        }
        # The manifold picture needs every row of the artificial set; nothing else does.
        is_artificial = cell.source.get("name", cell.dataset) == "artificial" and "file" not in cell.source
        if is_artificial and cell.seed in (None, 0) and not cell.setting:
            outcome["arrays"] = {"recovered": answer.distributions.astype(np.float32)}
    return outcome


def example_rows(D: np.ndarray, count: int = N_EXAMPLES) -> list[int]:
    """Rows to show, chosen by the truth's shape alone: from the flattest to the most peaked, at even quantiles."""
    order = np.argsort(np.max(D, axis=1), kind="stable")
    positions = np.linspace(0.05, 0.95, min(count, len(D))) * (len(D) - 1)
    return [int(order[round(p)]) for p in positions]


def instance_summary(D: np.ndarray, R: np.ndarray) -> Record:
    """How the measures spread over the instances: the deciles 1, 5 and 9, and how far R is from uniform."""
    quantiles: Record = {}
    for name, measure in measures.MEASURES.items():
        values = measure.per_instance(D, R)
        kept = values[np.isfinite(values)]
        quantiles[name] = np.quantile(kept, [0.1, 0.5, 0.9]).tolist() if kept.size else None
    flat = 0.5 * np.abs(R - 1.0 / R.shape[1]).sum(axis=1)
    infinite = {n: int((~np.isfinite(m.per_instance(D, R))).sum()) for n, m in measures.CONVENTIONS.items()}
    return {"deciles": quantiles, "max_tv_from_uniform": float(flat.max()), "not_finite": infinite}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what computed the number."""
    packages = ("numpy", "scipy", "scikit-learn", "joblib")
    return {"python": python_version(), "contone": contone.__version__, **{name: version(name) for name in packages}}

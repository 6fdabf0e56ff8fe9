"""How a cell is carried out: data, labels, its task, and the record that is kept.

`compute` is what a worker runs. It never raises: a method that fails is a record, too.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import contone
from contone import measures
from contone.exceptions import InputError
from contone.experiments.cells import Cell
from contone.experiments.data import load
from contone.experiments.describe import build
from contone.experiments.tasks import TASKS
from contone.measurements import IntervalRule

N_EXAMPLES = 4
"""Rows kept of every recovered distribution, for the pictures of single instances."""


def compute(cell: Cell, outcome: Callable[[Cell], dict[str, Any]] | None = None) -> dict[str, Any]:
    """Carry out a cell. Never raises: the record says ``"status": "done"`` or ``"failed"`` with the traceback.

    `outcome` does the work, in place of the task on a data set with known truth. The record holds plain values, except
    ``"arrays"``: arrays to be kept beside it (or None).
    """
    record: dict[str, Any] = {"key": cell.key, "cell": cell.plain(), "versions": versions(), "arrays": None}
    started, cpu, wall = time.time(), time.process_time(), time.perf_counter()
    # One thread a cell: cells are what runs in parallel, and BLAS threads on top of them would fight for the cores.
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record.update((outcome or _outcome)(cell), status="done")
        except Exception as error:  # a failing method must not stop the others; the traceback is kept and shown
            record.update(status="failed", error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
    record["warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    record["time"] = {
        "started": started,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
    }
    return record


def _outcome(cell: Cell) -> dict[str, Any]:
    X, D, label_names, found, _ = load(cell.dataset, cell.source)
    if found != cell.data_hash:
        raise InputError(f"{cell.dataset} has other content here ({found}) than in the plan ({cell.data_hash}).")
    degradation = build(cell.degradation)
    if not isinstance(degradation, IntervalRule):
        raise InputError(f"{cell.degradation} is not a degradation.")
    L = degradation.apply(D).astype(float)
    answer = TASKS[cell.task["kind"]].work(cell, X, L, D)
    outcome: dict[str, Any] = {
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
        if cell.dataset == "artificial" and cell.seed in (None, 0) and not cell.setting:
            outcome["arrays"] = {"recovered": answer.distributions.astype(np.float32)}
    return outcome


def example_rows(D: np.ndarray, count: int = N_EXAMPLES) -> list[int]:
    """Rows to show, chosen by the truth's shape alone: from the flattest to the most peaked, at even quantiles."""
    order = np.argsort(np.max(D, axis=1), kind="stable")
    positions = np.linspace(0.05, 0.95, min(count, len(D))) * (len(D) - 1)
    return [int(order[round(p)]) for p in positions]


def instance_summary(D: np.ndarray, R: np.ndarray) -> dict[str, Any]:
    """How the measures spread over the instances: the deciles 1, 5 and 9, and how far R is from uniform."""
    quantiles: dict[str, Any] = {}
    for name, measure in measures.MEASURES.items():
        values = measure.per_instance(D, R)
        kept = values[np.isfinite(values)]
        quantiles[name] = [float(v) for v in np.quantile(kept, [0.1, 0.5, 0.9])] if kept.size else None
    flat = 0.5 * np.abs(R - 1.0 / R.shape[1]).sum(axis=1)
    infinite = {
        name: int((~np.isfinite(measure.per_instance(D, R))).sum()) for name, measure in measures.CONVENTIONS.items()
    }
    return {"deciles": quantiles, "max_tv_from_uniform": float(flat.max()), "not_finite": infinite}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what computed the number."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    found = {"python": python_version(), "contone": contone.__version__}
    for package in ("numpy", "scipy", "scikit-learn", "joblib"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found

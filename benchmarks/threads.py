"""Threads inside linear algebra: fits with the threads as they come, and with one where numbers are few.

    OMP_NUM_THREADS=2 python benchmarks/threads.py
    OMP_NUM_THREADS=2 python benchmarks/threads.py --rows 1500 --methods LESC MaxEnt

"As they come": BLAS and OpenMP have as many threads as OMP_NUM_THREADS says. "One": they have one thread, as a fit to
up to `contone.runtime.threads.FEW_NUMBERS` numbers has by default. Both for every size, so that the bound can be
judged: wall time on idle cores says where a second thread begins to pay, CPU time on busy ones what the waiting costs.
Least of three fits each, in turn. Results go to results/threads.md and results/threads.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import versions

RESULTS = Path(__file__).parent / "results"
D, Q = 24, 8
ENHANCERS = ["GLLE", "KM", "FCM", "LP", "LCdr", "LEMLL", "LESC", "GLEMR", "ML2", "DRAM"]
LEARNERS = ["MaxEnt", "LDLLRR", "LDLSCL", "FromClassifier", "LDLForest"]


def generate(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features X (n, 24), degrees D (n, 8) and labels L, the two largest degrees of a row."""
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(n, D)), rng.normal(size=(D, Q)) / np.sqrt(D)
    E = np.exp(X @ B + 0.3 * rng.normal(size=(n, Q)))
    return X, E / E.sum(axis=1, keepdims=True), (np.sort(E, axis=1)[:, [-2]] <= E).astype(float)


def fit(name: str, X: np.ndarray, degrees: np.ndarray, L: np.ndarray) -> None:
    import contone

    getattr(contone, name)().fit(X, L if name in ENHANCERS else degrees)


def compare(name: str, n: int, repeats: int) -> dict[str, Any]:
    """Least wall and CPU seconds with threads as they come and with one."""
    from contone.runtime import threads

    threads.FEW_NUMBERS = 0  # what is compared is set here
    problem = generate(n)
    fit(name, *(A[:60] for A in problem))
    row: dict[str, Any] = {"method": name, "n": n, "numbers": n * (D + Q)}
    for _ in range(repeats):
        for form, limit in (("as_they_come", None), ("one", 1)):
            with threadpool_limits(limit):
                wall, cpu = time.perf_counter(), time.process_time()
                fit(name, *problem)
                taken = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            row[form] = {key: min(value, row.get(form, taken)[key]) for key, value in taken.items()}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    head = ["method", "rows", "wall s, threads", "wall s, one", "CPU s, threads", "CPU s, one", "wall threads / one"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        many, one = row["as_they_come"], row["one"]
        cells = [f"{side[key]:.3f}" for key in ("wall_s", "cpu_s") for side in (many, one)]
        lines.append([row["method"], f"{row['n']:,}", *cells, f"{many['wall_s'] / one['wall_s']:.2f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", type=int, default=[1500, 8000, 30_000])
    parser.add_argument("--methods", nargs="*", default=ENHANCERS + LEARNERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") == "1":
        sys.exit("OMP_NUM_THREADS is 1: there would be nothing to compare.")
    warnings.simplefilter("ignore")
    made_with, rows = versions.own(), []
    for n in arguments.rows:
        for name in arguments.methods:
            rows.append(compare(name, n, arguments.repeats))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "threads.json").write_text(json.dumps({"versions": made_with, "rows": rows}, indent=1) + "\n")
    made_with["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "not set")
    (arguments.out / "threads.md").write_text(
        "# Threads inside linear algebra\n\nMade by `python benchmarks/threads.py`, which says what is compared; "
        f"d = {D}, q = {Q}.\n\nWith: {versions.shown(made_with)}.\n\n{table(rows)}\n"
    )


if __name__ == "__main__":
    main()

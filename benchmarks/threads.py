"""Threads: fits with the threads as they come, and with one.

    OMP_NUM_THREADS=2 python benchmarks/threads.py
    OMP_NUM_THREADS=2 python benchmarks/threads.py --rows 1500 --methods LESC MaxEnt
    OMP_NUM_THREADS=2 python benchmarks/threads.py --rows 5000 --features 500 --methods MaxEnt

"As they come": BLAS and OpenMP have as many threads as OMP_NUM_THREADS says. "One": they have one thread, as a fit to
up to `contone.runtime.machine.FEW_NUMBERS` numbers has by default. Both for every size, so that the bound can be
judged: wall time on idle cores says where a second thread begins to pay, CPU time on busy ones what the waiting costs.
Learners that share their rows out to threads themselves keep BLAS to one; for them "as they come" is as they are, and
"one" is one thread in all. Least of three fits each, in turn. Results go to results/threads.md and
results/threads.json, where other methods and sizes stay as they are.
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
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import versions

RESULTS = Path(__file__).parent / "results"
D, Q = 24, 8
ENHANCERS = ["GLLE", "KM", "FCM", "LP", "LCdr", "LEMLL", "LESC", "GLEMR", "ML2", "DRAM"]
LEARNERS = ["MaxEnt", "LDLLRR", "LDLSCL", "FromClassifier", "LDLForest"]
SHARING = ["MaxEnt", "LDLLRR", "LDLSCL", "LDLForest"]
"""Learners that share their rows out to threads."""


def generate(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features X (n, d), degrees D (n, 8) and labels L, the two largest degrees of a row."""
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(n, d)), rng.normal(size=(d, Q)) / np.sqrt(d)
    E = np.exp(X @ B + 0.3 * rng.normal(size=(n, Q)))
    return X, E / E.sum(axis=1, keepdims=True), (np.sort(E, axis=1)[:, [-2]] <= E).astype(float)


def fit(name: str, X: np.ndarray, degrees: np.ndarray, L: np.ndarray) -> None:
    import contone

    getattr(contone, name)().fit(X, L if name in ENHANCERS else degrees)


def compare(name: str, n: int, d: int, repeats: int) -> dict[str, Any]:
    """Least wall and CPU seconds with threads as they come and with one."""
    from contone.runtime import machine

    machine.FEW_NUMBERS = 0  # what is compared is set here
    problem = generate(n, d)
    fit(name, *(A[:60] for A in problem))
    row: dict[str, Any] = {"method": name, "n": n, "d": d, "numbers": n * (d + Q)}
    for _ in range(repeats):
        for form, limit in (("as_they_come", None), ("one", 1)):
            own = 1 if limit and name in SHARING else machine.n_threads()
            with threadpool_limits(limit), mock.patch.object(machine, "n_threads", lambda own=own: own):
                wall, cpu = time.perf_counter(), time.process_time()
                fit(name, *problem)
                taken = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            row[form] = {key: min(value, row.get(form, taken)[key]) for key, value in taken.items()}
    return row


def merged(stored: list[dict[str, Any]], measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows in the order of sizes and methods; what was measured now replaces what was stored."""
    rows = {(row["n"], row.get("d", D), row["method"]): row for row in stored + measured}
    order = ENHANCERS + LEARNERS
    return sorted(rows.values(), key=lambda row: (row.get("d", D), row["n"], order.index(row["method"])))


def table(rows: list[dict[str, Any]]) -> str:
    head = [
        "method",
        "rows",
        "features",
        "wall s, threads",
        "wall s, one",
        "CPU s, threads",
        "CPU s, one",
        "wall threads / one",
    ]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        many, one = row["as_they_come"], row["one"]
        cells = [f"{side[key]:.3f}" for key in ("wall_s", "cpu_s") for side in (many, one)]
        lines.append(
            [row["method"], f"{row['n']:,}", str(row.get("d", D)), *cells, f"{many['wall_s'] / one['wall_s']:.2f}"]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", type=int, default=[1500, 8000, 30_000])
    parser.add_argument("--features", type=int, default=D)
    parser.add_argument("--methods", nargs="*", default=ENHANCERS + LEARNERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") == "1":
        sys.exit("OMP_NUM_THREADS is 1: there would be nothing to compare.")
    warnings.simplefilter("ignore")
    made_with = versions.shown({**versions.own(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set")})
    arguments.out.mkdir(parents=True, exist_ok=True)
    store, measured = arguments.out / "threads.json", []
    stored = json.loads(store.read_text())["rows"] if store.exists() else []
    for n in arguments.rows:
        for name in arguments.methods:
            measured.append(compare(name, n, arguments.features, arguments.repeats) | {"made_with": made_with})
            print(table(measured[-1:]).splitlines()[-1], flush=True)
    rows = merged(stored, measured)
    store.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    parts = [
        f"With: {made_with}.\n\n{table([row for row in rows if row['made_with'] == made_with])}\n"
        for made_with in dict.fromkeys(row["made_with"] for row in rows)
    ]
    text = "# Threads\n\nMade by `python benchmarks/threads.py`, which says what is compared; " + f"q = {Q}.\n\n"
    (arguments.out / "threads.md").write_text(text + "\n".join(parts))


if __name__ == "__main__":
    main()

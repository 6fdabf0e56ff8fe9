"""What became slower? CPU time of every method beside the stored one, both as multiples of a fixed piece of NumPy work.

    python benchmarks/compare.py                # measure, compare with results/compare.json; exit code 1 if slower
    python benchmarks/compare.py --only glle    # cases whose name contains it
    python benchmarks/compare.py --store        # measure and store, after a change that is meant to change the times

Seconds of one machine say nothing on another, and on a busy one not even there. Therefore every repetition of a case
stands between two runs of a reference (sorting, exponentials, a product and a Cholesky factorisation of fixed sizes),
and what is stored and compared is the ratio of the CPU times, the least of all repetitions. One thread. A case
counts as slower when its ratio has grown by more than `--tolerance` and stays so when it is measured a second time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported

import numpy as np  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "compare.json"
ROWS, FEATURES, LABELS = 1500, 24, 8
FEW_ROWS = {"conle": 300, "dram": 300, "glemr": 300, "leic": 150, "levi": 300, "lible": 300}
"""Rows for methods that train networks for hundreds of epochs: their ratios need no more."""
REPETITIONS = 5
TOLERANCE = 0.25

Case = Callable[[], object]


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (1500, 24), 0/1 labels (1500, 8) and the distributions that they come from."""
    from contone import CumulativeMass

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    Z = 0.3 * X @ rng.normal(size=(FEATURES, LABELS)) + 0.3 * rng.normal(size=(ROWS, LABELS))
    D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    return X, CumulativeMass().apply(D).astype(float), D


def cases() -> dict[str, Case]:
    """Name -> what is measured. New methods appear by themselves."""
    import contone
    from contone.enhance import methods

    X, L, D = problem()
    found: dict[str, Case] = {}
    for name, method in methods().items():
        n = FEW_ROWS.get(name, ROWS)
        found[f"enhance {name}"] = lambda method=method, n=n: quietly(seeded(method)).fit_enhance(X[:n], L[:n])
    for learner in (contone.MaxEnt, contone.AAKNN, contone.PTBayes):
        found[f"fit and predict {learner.__name__}"] = lambda learner=learner: learner().fit(X, D).predict(X)
    found["augment LabelConfidence"] = lambda: contone.LabelConfidence().fit_enhance(X, L)
    found["augment HSICReducer"] = lambda: contone.HSICReducer().fit_transform(X, L)
    found["degrade CumulativeMass"] = lambda: contone.CumulativeMass().apply(D)
    found["evaluate"] = lambda: contone.evaluate(D, np.full_like(D, 1 / LABELS))
    return found


def seeded(method: Any) -> Any:
    estimator = method()
    return estimator.set_params(random_state=0) if "random_state" in estimator.get_params() else estimator


def quietly(estimator: Any) -> Any:
    """Warnings (a nearly uniform answer, for example) are not what is measured here."""
    import warnings

    warnings.simplefilter("ignore")
    return estimator


def reference_work() -> Case:
    """About 0.1 s of what the methods are made of."""
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(400, 400)), rng.normal(size=300_000)
    gram = A @ A.T + 400 * np.eye(400)

    def work() -> None:
        for _ in range(3):
            np.sort(b)
            np.exp(b).sum()
            A @ A
            np.linalg.cholesky(gram)

    return work


def cpu_seconds(work: Case, calls: int = 1) -> float:
    start = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - start) / calls


def ratio(work: Case, reference: Case, repetitions: int) -> float:
    """The least ratio of the CPU time of `work` to that of the reference runs before and after it."""
    work()  # imports and first-time work
    before = cpu_seconds(reference)
    calls = max(1, round(before / max(cpu_seconds(work), 1e-6)))  # short cases several times, as long as the reference
    ratios: list[float] = []
    while len(ratios) < repetitions:
        taken = cpu_seconds(work, calls)
        after = cpu_seconds(reference)
        ratios.append(2 * taken / (before + after))
        before = after
        if taken > 10 * after and len(ratios) == 2:  # long cases: fewer repetitions are as exact
            break
    return min(ratios)


def compared(now: float, stored: float | None, tolerance: float) -> str:
    """One word for a case.

    Examples
    --------
    >>> compared(1.5, 1.0, 0.25), compared(1.1, 1.0, 0.25), compared(0.5, 1.0, 0.25), compared(1.0, None, 0.25)
    ('slower', '', 'faster', 'new')
    """
    if stored is None:
        return "new"
    if now > stored * (1 + tolerance):
        return "slower"
    return "faster" if now < stored / (1 + tolerance) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="measure the cases whose name contains this text")
    parser.add_argument("--store", action="store_true", help="store what was measured")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="growth that counts as slower (0.25: 25 %%)")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    stored = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else {"ratios": {}}
    reference = reference_work()
    reference()
    measured: dict[str, float] = {}
    slower = []
    print(f"{'case':32} {'stored':>9} {'now':>9}   change")
    for name, work in cases().items():
        if options.only.lower() not in name.lower():
            continue
        before = stored["ratios"].get(name)
        now = ratio(work, reference, options.repetitions)
        if compared(now, before, options.tolerance) == "slower":
            now = min(now, ratio(work, reference, options.repetitions))
        verdict = compared(now, before, options.tolerance)
        measured[name] = now
        change = f"{100 * (now / before - 1):+.0f} %" if before else ""
        print(f"{name:32} {before or float('nan'):9.3f} {now:9.3f}   {change} {verdict}", flush=True)
        if verdict == "slower":
            slower.append(name)
    if options.store:
        stored["ratios"] = dict(sorted({**stored["ratios"], **{k: round(v, 4) for k, v in measured.items()}}.items()))
        stored["measured_with"] = {"python": platform.python_version(), "numpy": np.__version__, **versions()}
        options.results.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
        print(f"stored in {options.results.name}")
        return 0
    print("slower: " + ", ".join(slower) if slower else "nothing became slower")
    return 1 if slower else 0


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("contone", "scipy", "scikit-learn")}


if __name__ == "__main__":
    sys.exit(main())

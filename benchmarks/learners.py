"""MaxEnt's two solvers, and other learners, against PyLDL's: one fold, one core, CPU time, one run.

    python benchmarks/learners.py --peer-python /path/to/a/python/with/PyLDL
    python benchmarks/learners.py --peer-python ... spoem alpha --peer-iterations 100

The peer lives in an interpreter of its own (pip install python-ldl and a Keras backend). Both sides fit the same model
(no intercept) to the first of ten training folds. The peer runs with its own defaults (500 iterations). For IIS,
contone starts where the peer started, and is timed *until it has the likelihood at which the peer stopped*: as
published, step for step, and accelerated (the default of MaxEnt). For L-BFGS both run to their own convergence, and the
KL that they reached stands beside.

The other learners that both libraries have run with the defaults of each (`--others` chooses the sets): CPU seconds of
fit and predict, and the mean KL on the held-out tenth. The defaults differ, in the length of training most of all, so
that this compares what a user gets and not two programs of one computation. The tables go to stdout and, with the
versions of everything, to benchmarks/results/learners.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each, so that CPU time compares work

import numpy as np

import contone
import versions
from contone import MaxEnt, datasets
from contone.experiments.prediction import folds
from contone.numerics.iterative_scaling import improved_iterative_scaling
from contone.numerics.solution import Solution
from contone.predict.maxent import entropy

HERE = Path(__file__).parent
YEAST = ("spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo")
SEED = 0
OTHERS = {"AAKNN": "AA_KNN", "PTBayes": "PT_Bayes", "LDLLRR": "LDL_LRR", "LDLSCL": "LDL_SCL", "LDLForest": "LDLF"}
OTHERS_HEAD = "| set | learner | contone s | KL | PyLDL s | KL | ratio |\n|---|---|---|---|---|---|---|"
HEAD = (
    "| set | SA_IIS s | KL | iis, plain: iterations, s, ratio | iis, accelerated: iterations, s, ratio "
    "| SA_BFGS s | KL | lbfgs s | KL | ratio |\n|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Run the benchmark and write its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=YEAST, help="Yeast sets, e.g. spoem alpha (default: all ten)")
    parser.add_argument("--peer-python", required=True, help="an interpreter that has PyLDL")
    parser.add_argument("--peer-iterations", type=int, default=500, help="SA_IIS iterations at most (its default: 500)")
    parser.add_argument("--repeats", type=int, default=5, help="the least time of this many runs counts (not SA_IIS)")
    parser.add_argument("--others", nargs="*", default=["alpha"], help="Yeast sets for the other learners")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds that PyLDL's other learners may take each")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "learners.md")
    options = parser.parse_args()
    made_with = {"contone": versions.own(), "PyLDL": versions.of_peer(options.peer_python, *versions.PYLDL)}

    lines = [HEAD]
    print(HEAD, flush=True)
    for name in options.sets:
        data = datasets.load(f"yeast-{name}")
        train, _ = folds(len(data.X))[0]
        X, D = np.ascontiguousarray(data.X[train]), np.ascontiguousarray(data.D[train])
        peer = run_peer(options.peer_python, X, D, options.repeats, options.peer_iterations)
        lines.append(row(name, X, D, peer, options.repeats))
        print(lines[-1], flush=True)
    others = [OTHERS_HEAD]
    print(OTHERS_HEAD, flush=True)
    for name in options.others:
        for learner in OTHERS:
            others.append(compare_other(name, learner, options.peer_python, options.limit))
            print(others[-1], flush=True)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(
        "# MaxEnt against PyLDL\n\n"
        "CPU seconds on one core, first of ten training folds; KL is the mean KL(D || P) on it.\n"
        f"PyLDL {peer['version']}; SA_IIS ran {options.peer_iterations} iterations at most.\n"
        "Made by benchmarks/learners.py, which says how to read it.\n\n"
        + "\n\n".join(f"{side} with: {versions.shown(found)}." for side, found in made_with.items())
        + "\n\n"
        + "\n".join(lines)
        + "\n\nOther learners, defaults of each; fit and predict, KL on the held-out tenth:\n\n"
        + "\n".join(others)
        + "\n"
    )


def row(name: str, X: np.ndarray, D: np.ndarray, peer: dict[str, Any], repeats: int) -> str:
    """One data set: contone is timed here, beside what the peer needed."""
    d, q = X.shape[1], D.shape[1]
    start = np.random.RandomState(SEED).random_sample((d, q))  # the numbers that the peer drew
    cells = [name, f"{peer['iis']['seconds']:.2f}", f"{peer['iis']['kl']:.5f}"]
    for accelerate in (False, True):
        iterations, seconds = iis_to(peer["iis"]["kl"], X, D, start, accelerate, repeats)
        cells.append(f"{iterations}, {seconds:.3f}, **{peer['iis']['seconds'] / seconds:.0f}x**")
    model = MaxEnt(fit_intercept=False)
    seconds = least_time(lambda: model.fit(X, D), repeats)
    cells += [f"{peer['lbfgs']['seconds']:.4f}", f"{peer['lbfgs']['kl']:.8f}"]
    cells += [f"{seconds:.4f}", f"{model.solution_.objective:.8f}", f"**{peer['lbfgs']['seconds'] / seconds:.1f}x**"]
    return "| " + " | ".join(cells) + " |"


def iis_to(
    kl: float, X: np.ndarray, D: np.ndarray, start: np.ndarray, accelerate: bool, repeats: int
) -> tuple[int, float]:
    """Iterations and least CPU seconds until the mean KL is at most `kl`."""

    def run(max_iter: int) -> Solution:
        return improved_iterative_scaling(X, D, start, accelerate=accelerate, max_iter=max_iter, tol=0.0)

    there = np.flatnonzero(np.array(run(1000).info["objective"]) - entropy(D) <= kl)
    if not len(there):
        raise SystemExit("1000 iterations did not reach the peer's likelihood.")
    iterations = max(int(there[0]), 1)
    return iterations, least_time(lambda: run(iterations), repeats)


def least_time(work: Callable[[], Any], repeats: int) -> float:
    """The least CPU seconds of some runs."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def compare_other(name: str, learner: str, peer_python: str, limit: int) -> str:
    """One of the other learners on one set, both libraries."""
    data = datasets.load(f"yeast-{name}")
    train, test = folds(len(data.X))[0]
    X, D, T, truth = data.X[train], data.D[train], data.X[test], data.D[test]
    make = getattr(contone, learner)
    make().fit(X[:50], D[:50]).predict(T[:5])
    began = time.process_time()
    P = make().fit(X, D).predict(T)
    seconds = time.process_time() - began
    cells = [name, learner, f"{seconds:.3f}", f"{mean_kl(truth, P):.5f}"]
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        np.savez(problem, X=X, D=D, T=T)
        command = [peer_python, str(HERE / "learners_peer.py"), str(problem), str(SEED), OTHERS[learner]]
        answer = subprocess.run(
            command, env=peer_environment(), capture_output=True, text=True, cwd=folder, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
        )  # fmt: skip
    if answer.returncode:
        why = f"> {limit}" if answer.returncode < 0 else (answer.stderr.strip().splitlines() or ["failed"])[-1][:80]
        return (
            "| " + " | ".join([*cells, why, "-", f"> {limit / seconds:.0f}x" if answer.returncode < 0 else "-"]) + " |"
        )
    peer = json.loads(answer.stdout.strip().splitlines()[-1])
    cells += [f"{peer['seconds']:.3f}", f"{mean_kl(truth, np.array(peer['prediction'])):.5f}"]
    return "| " + " | ".join([*cells, f"**{peer['seconds'] / seconds:.1f}x**"]) + " |"


def mean_kl(D: np.ndarray, P: np.ndarray) -> float:
    """Mean KL(D || P) over rows."""
    positive = D > 0
    return float(np.sum(D[positive] * np.log(D[positive] / np.maximum(P[positive], 1e-12))) / len(D))


def peer_environment() -> dict[str, str]:
    return {"KERAS_BACKEND": "torch", **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run_peer(python: str, X: np.ndarray, D: np.ndarray, repeats: int, iterations: int) -> dict[str, Any]:
    """PyLDL's times and likelihoods on the same problem."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        np.savez(problem, X=X, D=D)
        command = [python, str(HERE / "learners_peer.py"), str(problem), str(SEED), str(repeats), str(iterations)]
        answer = subprocess.run(command, env=peer_environment(), check=True, capture_output=True, text=True, cwd=folder)
    return json.loads(answer.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()

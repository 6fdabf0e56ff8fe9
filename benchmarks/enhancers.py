"""CPU time and peak memory of eight enhancers: contone against PyLDL, each cell in a process of its own.

    python benchmarks/enhancers.py --peer-python PATH/TO/PYTHON/WITH/PYLDL

PyLDL lives in its own environment, so that its requirements stay out of contone's; without `--peer-python` contone is
measured alone. CPU time counts, not wall time, and everything runs on one thread: other work on the machine, and
threads that wait for each other, do not disturb it. A cell is warmed up on a small problem first (imports and the
like), then timed; contone's cells are the best of three. Peak memory is that of the whole process, libraries included.
Where both have a parameter, it is set to PyLDL's value; networks are trained for 20 epochs with batches of 128 rows.

The worker is this same file, run with `--cell`: it needs NumPy only, plus the library that it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import versions

TRAINING = {"epochs": 20, "batch_size": 128}
NETWORK = {"n_hidden": 64, **TRAINING}
CLUSTERS = {"composition": "max-product", "output": "softmax", "standardize": False, "tol": 1e-7, "max_iter": 10_000}

# Row of the table -> contone's class and settings, PyLDL's class.
METHODS: dict[str, tuple[str, dict[str, Any], str]] = {
    "GLLE": ("GLLE", {"lambda_": 0.01, "n_neighbors": "labels", "sigma": 1.0, "standardize": False}, "GLLE"),
    "GLLE, defaults": ("GLLE", {}, "GLLE"),
    "LP": ("LP", {"alpha": 0.5, "sigma": 1.0, "standardize": False}, "LP"),
    "KM": ("KM", {"standardize": False}, "KM"),
    "FCM": ("FCM", CLUSTERS, "FCM"),
    "LEVI": ("LEVI", NETWORK, "LEVI"),
    "LIBLE": ("LIBLE", {**NETWORK, "pretrain_epochs": 0}, "LIBLE"),
    "ConLE": ("ConLE", NETWORK, "ConLE"),
    "ML2": ("ML2", {"margin": 1.0}, "ML"),
}
NETWORKS = ("LEVI", "LIBLE", "ConLE")
# Targets of the design: PyLDL's CPU time over contone's.
TARGETS = {"GLLE": 50, "GLLE, defaults": 50, "LP": 50, "ML2": 50}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# -------------------------------------------------------------------------------------------------- inside a cell


def contone_method(name: str) -> Any:
    import contone

    cls, settings, _ = METHODS[name]
    return getattr(contone, cls)(**settings).fit_enhance


def pyldl_method(name: str) -> Any:
    os.environ["KERAS_BACKEND"] = "torch"
    import pyldl.algorithms

    cls = getattr(pyldl.algorithms, METHODS[name][2])

    def fit(X: np.ndarray, L: np.ndarray) -> Any:
        # PyLDL's ML overwrites the labels it is given.
        return cls().fit(X, L.copy(), **(TRAINING if name in NETWORKS else {})).transform()

    return fit


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def run_cell(library: str, name: str, path: str) -> None:
    """Measure one method on one problem and print the result as a line of JSON."""
    problem = np.load(path)
    X, L = problem["X"], problem["L"]
    fit = contone_method(name) if library == "contone" else pyldl_method(name)
    fit(X[:200], L[:200])
    times = []
    for _ in range(3 if library == "contone" else 1):
        before = cpu_seconds()
        fit(X, L)
        times.append(cpu_seconds() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
    print(json.dumps({"cpu_s": min(times), "peak_mb": peak}))


# ------------------------------------------------------------------------------------------------------ the plan


def problems(yeast: list[str], sizes: list[int]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> (X, L): generated problems with d = 24 and q = 8 by size, then Yeast sets."""
    import contone

    found = {}
    for n in sizes:
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 24))
        Z = 0.3 * X @ rng.normal(size=(24, 8)) + 0.5 * rng.normal(size=(n, 8))
        D = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
        found[f"n = {n:,}"] = X, contone.CumulativeMass().apply(D).astype(float)
    for name in yeast:
        data = contone.datasets.load(f"yeast-{name}")
        found[f"yeast-{name}"] = np.asarray(data.X), contone.CumulativeMass().apply(data.D).astype(float)
    return found


def measure(python: str, library: str, method: str, path: Path, limit_s: int) -> dict[str, Any]:
    """Run a cell; {"over": limit} where its CPU time ran out, {"failed": reason} where it did."""
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(
        [python, __file__, "--cell", library, method, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5)),
        check=False,
    )
    if done.returncode == 0:
        return json.loads(done.stdout.strip().splitlines()[-1])
    if done.returncode < 0:  # ended by a signal: the limit on CPU time
        return {"over": limit_s}
    return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}


def run(arguments: argparse.Namespace, store: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """Every method on every problem; each finished row is stored at once.

    A peer that ran out of time is not tried on larger problems, nor twice on one problem.
    """
    stored, made_with = [], {"contone": versions.own("torch")}
    now = versions.shown(made_with["contone"])
    if arguments.peer_python:
        made_with["PyLDL"] = versions.of_peer(arguments.peer_python, *versions.PYLDL)
    if (arguments.resume or arguments.refresh) and store.exists():
        found = json.loads(store.read_text())
        stored = found["rows"]
        made_with = made_with if arguments.refresh else made_with | found["versions"]
    later = versions.shown(made_with["contone"]) != now
    rows = [] if arguments.refresh else stored
    with tempfile.TemporaryDirectory() as folder:
        for problem, (X, L) in problems(arguments.yeast, arguments.sizes).items():
            path = Path(folder) / "problem.npz"
            np.savez(path, X=X, L=L)
            for method in arguments.methods:
                if any(r["problem"] == problem and r["method"] == method for r in rows):
                    continue
                row = {"problem": problem, "n": len(X), "q": L.shape[1], "method": method}
                row |= {"made_with": now} if later else {}
                row["contone"] = measure(sys.executable, "contone", method, path, arguments.limit)
                twins = [
                    r["pyldl"]
                    for r in rows + stored
                    if r["problem"] == problem and METHODS[r["method"]][2] == METHODS[method][2] and "pyldl" in r
                ]
                if twins:
                    row["pyldl"] = twins[0]
                elif arguments.peer_python:
                    smaller = [r.get("pyldl", {}) for r in rows if r["method"] == method and r["n"] <= len(X)]
                    lost = [r["over"] for r in smaller if "over" in r]
                    row["pyldl"] = (
                        {"over": max(lost), "not_run": True}
                        if lost
                        else measure(arguments.peer_python, "pyldl", method, path, arguments.limit)
                    )
                rows.append(row)
                store.write_text(json.dumps({"versions": made_with, "rows": rows}, indent=1) + "\n")
                print(table([row], head=len(rows) == 1), flush=True)
    return rows, made_with


# --------------------------------------------------------------------------------------------------- the results


def shown(result: dict[str, Any] | None, key: str) -> str:
    if result is None:
        return "-"
    if "over" in result:
        return (f"> {result['over']}" + (" (not run)" if "not_run" in result else "")) if key == "cpu_s" else "-"
    if "failed" in result:
        return "failed"
    return f"{result[key]:.3g}" if key == "cpu_s" else f"{result[key]:.0f}"


def ratio(row: dict[str, Any]) -> float | None:
    """PyLDL's CPU time over contone's: a lower bound where PyLDL ran out of time."""
    peer, own = row.get("pyldl"), row["contone"]
    if peer is None or "failed" in peer or "cpu_s" not in own:
        return None
    return peer.get("cpu_s", peer.get("over")) / own["cpu_s"]


def measured_later(rows: list[dict[str, Any]]) -> str:
    """Which rows were added to the results of an earlier run, and what contone's side was measured with."""
    runs: dict[str, list[str]] = {}
    for row in rows:
        if "made_with" in row:
            runs.setdefault(row["made_with"], []).append(f"{row['method']} on {row['problem']}")
    return "".join(f"Measured later, {', '.join(names)}: {made_with}.\n\n" for made_with, names in runs.items())


def table(rows: list[dict[str, Any]], *, head: bool = True) -> str:
    """The rows as a Markdown table."""
    lines = []
    if head:
        lines += [
            "| problem | q | method | contone CPU s | MB | PyLDL CPU s | MB | PyLDL / contone | target |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
    for row in rows:
        own, peer, times = row["contone"], row.get("pyldl"), ratio(row)
        bound = "> " if peer and "over" in peer else ""
        cells = [
            row["problem"],
            str(row["q"]),
            row["method"],
            shown(own, "cpu_s"),
            shown(own, "peak_mb"),
            shown(peer, "cpu_s"),
            shown(peer, "peak_mb"),
            "-" if times is None else f"{bound}{times:.0f}",
            f">= {TARGETS[row['method']]}" if row["method"] in TARGETS else "-",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """CPU time and peak memory over n for the generated problems, one line a method and library."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "contone"  # the same bytes for the same numbers
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    generated = [r for r in rows if r["problem"].startswith("n = ")]
    methods = list(dict.fromkeys(r["method"] for r in generated))
    quantities = (("cpu_s", "CPU seconds"), ("peak_mb", "peak memory, MB"))
    for axis, (key, title) in zip(axes, quantities, strict=True):
        for library, style in (("contone", "-o"), ("pyldl", "--s")):
            for colour, method in enumerate(methods):
                if library == "pyldl" and method.endswith("defaults"):
                    continue  # the same cell as the row above it
                points = [
                    (r["n"], r[library][key]) for r in generated if r["method"] == method and key in r.get(library, {})
                ]
                if points:
                    name = {"pyldl": "PyLDL"}.get(library, library)
                    axis.plot(*zip(*points, strict=True), style, color=f"C{colour}", ms=4, label=f"{method}, {name}")
        axis.set(xscale="log", yscale="log", xlabel="rows n (d = 24, q = 8)", ylabel=title)
        sizes = sorted({r["n"] for r in generated})
        axis.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7, loc="outside right upper")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    if sys.argv[1:2] == ["--cell"]:
        run_cell(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="interpreter of an environment with python-ldl 0.1.2 and torch")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[2000, 5000, 10_000])
    parser.add_argument("--yeast", nargs="*", default=["spoem", "alpha"])
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds allowed to one cell")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the results already hold")
    parser.add_argument("--refresh", action="store_true", help="measure contone again, keep what is known of PyLDL")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, made_with = run(arguments, arguments.out / "enhancers.json")
    order = list(METHODS)
    rows.sort(key=lambda r: (r["problem"].startswith("yeast"), r["n"], r["q"], order.index(r["method"])))
    text = (
        "# Enhancers: contone against PyLDL 0.1.2\n\n"
        "Made by `python benchmarks/enhancers.py --peer-python ...` (see `benchmarks/README.md`). One thread, CPU "
        "time, peak memory of the\nwhole process. `>`: stopped at the limit; *not run*: a smaller problem was. PyLDL's "
        "cells may be older than contone's\n(`--resume`, `--refresh`); its GLLE starts at random, which moves its "
        "time. LEVI, LIBLE and ConLE are\ntrained for 20 epochs with batches of 128 rows, in both.\n\n"
        + "\n\n".join(f"{name} with: {versions.shown(found)}." for name, found in made_with.items())
        + f"\n\n{measured_later(rows)}{table(rows)}\n\n![CPU time and peak memory over n](enhancers.svg)\n"
    )
    (arguments.out / "enhancers.md").write_text(text)
    plot(rows, arguments.out / "enhancers.svg")
    print(f"wrote {arguments.out / 'enhancers.md'}, .json and .svg")


if __name__ == "__main__":
    main()

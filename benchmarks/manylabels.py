"""Many labels: Inversion from 174 to 983 labels, factors against a full covariance, all other methods at 983 labels.

    CONTONE_DATA=... python benchmarks/manylabels.py             # goes on where it stopped
    python benchmarks/manylabels.py --only sizes methods         # without the sets with known truth
    python benchmarks/manylabels.py --again --methods LCdr GLLE  # measure some cells anew

Every cell is a process of its own under a limit of CPU time (`--limit`); wall time, CPU time and the peak memory of the
whole process (libraries and data included) are recorded. Finished cells are kept in results/manylabels.json and not run
again; results/manylabels.md and the section of docs/scale.md are made from all of them.

- sizes: Inversion with its defaults on generated data as large as CAL500 (502 x 174), on 6,000 x 101 and 16,000 x 983;
- methods: every enhancer with its defaults on generated data, 2,000 x 983. One that refuses is shown with its sentence;
- sets: Inversion on sets with known truth, with the full covariance that few labels have and with the factors that many
  labels have, forced: recovered shares side by side, seeds 0 and 1.

The generated data: features N(0, I_20), degrees softmax(B^T x + F^T f + 0.3 noise) with 8 factors f that the labels
share, logical labels by CumulativeMass.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import versions

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "scale.md"
SIZES = ["502x174", "6000x101", "1000000x8", "16000x983"]
METHOD_SIZE = "2000x983"
BASELINES = ["Uniform", "Logical", "Temperature"]
METHODS = [
    *BASELINES,
    "FCM",
    "KM",
    "LP",
    "ML2",
    "GLLE",
    "LEMLL",
    "LESC",
    "LEVI",
    "LIBLE",
    "LCdr",
    "ConLE",
    "DRAM",
    "GLEMR",
    "GLERB",
    "GLESC",
    "DLDL",
    "LEIC",
    "Calibrated",
    "Inversion",
]
SEEDS = (0, 1)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def generate(n: int, q: int, d: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features X (n, d) and true degrees D (n, q)."""
    rng = np.random.default_rng(seed)
    X, B, F = rng.normal(size=(n, d)), rng.normal(size=(d, q)) / np.sqrt(d), 0.3 * rng.normal(size=(8, q))
    Z = X @ B + rng.normal(size=(n, 8)) @ F + 0.3 * rng.normal(size=(n, q))
    W = np.exp(Z - Z.max(axis=1, keepdims=True))
    return X, W / W.sum(axis=1, keepdims=True)


# -------------------------------------------------------------------------------------------------- inside a cell


def run_cell(kind: str, name: str, size: str) -> dict[str, Any]:
    """One fit, and what it took."""
    import contone

    warnings.simplefilter("ignore")
    if kind == "sets":
        return compare_covariances(name)
    n, q = map(int, size.split("x"))
    X, D = generate(n, q)
    L = contone.CumulativeMass().apply(D).astype(np.int8)
    # A wrapper has no default of its own.
    method = contone.Calibrated(contone.GLLE()) if name == "Calibrated" else getattr(contone, name)()
    cpu, wall = cpu_seconds(), time.perf_counter()
    try:
        found = np.asarray(method.fit_enhance(X, L))
    except contone.exceptions.ContoneError as error:
        return {"refused": " ".join(str(error).split())}
    taken = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu, "peak_mb": peak_mb()}
    return taken | {"kl": mean_kl(D, found), "kl_uniform": mean_kl(D, np.full_like(D, 1 / q))}


def compare_covariances(stem: str) -> dict[str, Any]:
    """Recovered shares (per cent, by seed) with a full covariance and with factors."""
    import inversion as recovery  # benchmarks/inversion.py: the sets and their limits
    from contone import Inversion
    from contone.enhance.inversion import chain

    X, D, L = recovery.load(stem)
    uniform, limit = (
        mean_kl(D, np.full_like(D, 1 / D.shape[1])),
        json.loads(recovery.RESULTS.read_text())["limits"][stem],
    )
    shares: dict[str, Any] = {"q": D.shape[1]}
    for form, few in (("full", chain.FEW_LABELS), ("factors", 0)):
        chain.FEW_LABELS = few
        found = [mean_kl(D, Inversion(random_state=seed).fit_enhance(X, L)) for seed in SEEDS]
        shares[form] = [100 * (uniform - kl) / (uniform - limit) for kl in found]
    return shares


def mean_kl(D: np.ndarray, found: np.ndarray) -> float:
    """Mean of KL(D || found) over rows."""
    positive = np.where(D > 0, D, 1.0)
    return float(np.mean(np.sum(np.where(D > 0, D * np.log(positive / np.maximum(found, 1e-12)), 0.0), axis=1)))


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux


# ------------------------------------------------------------------------------------------------------- the plan


def plan(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """(kind, name, size) of every cell that was asked for."""
    if "sizes" in arguments.only:
        yield from (("sizes", "Inversion", size) for size in arguments.sizes)
    if "methods" in arguments.only:
        yield from (("methods", name, METHOD_SIZE) for name in arguments.methods)
    if "sets" in arguments.only and "CONTONE_DATA" in os.environ:
        import inversion as recovery

        yield from (("sets", stem, "") for stem in recovery.SETS)


def measure(cell: tuple[str, str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a cell in a process of its own."""
    seconds = arguments.limit
    done = subprocess.run(
        [sys.executable, __file__, "--cell", *cell],
        env={**os.environ, **dict.fromkeys(THREADS, str(arguments.threads))},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
        check=False,
    )
    row = dict(zip(("kind", "name", "size"), cell, strict=True))
    if done.returncode == 0:
        return row | {"threads": arguments.threads} | json.loads(done.stdout.strip().splitlines()[-1])
    if done.returncode < 0:
        return row | {"failed": f"more than {seconds} CPU s"}
    return row | {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}


# ---------------------------------------------------------------------------------------------------- the results


def key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["kind"], row["name"], row["size"]


def markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def cost(row: dict[str, Any]) -> list[str]:
    """Wall, CPU, memory and KL of a cell, or why there are none."""
    if "wall_s" not in row:
        return ["-", "-", "-", row.get("refused") or row["failed"]]
    return [
        f"{row['wall_s']:.1f}",
        f"{row['cpu_s']:.1f}",
        f"{row['peak_mb']:,.0f}",
        f"{row['kl']:.3f} ({row['kl_uniform']:.3f})",
    ]


def tables(rows: list[dict[str, Any]]) -> str:
    """All results as Markdown."""
    parts: list[str] = []
    head = ["wall s", "CPU s", "peak MB", "KL (uniform), or why there is no answer"]
    sizes = sorted((r for r in rows if r["kind"] == "sizes"), key=lambda r: SIZES.index(r["size"]))
    if sizes:
        lines = [[r["size"].replace("x", " x "), *cost(r)] for r in sizes]
        parts.append("Inversion, defaults:\n\n" + markdown(["rows x labels", *head], lines))
    methods = sorted((r for r in rows if r["kind"] == "methods"), key=lambda r: METHODS.index(r["name"]))
    if methods:
        lines = [[r["name"], *cost(r)] for r in methods]
        parts.append("All methods, defaults, 2,000 rows and 983 labels:\n\n" + markdown(["method", *head], lines))
    sets = [r for r in rows if r["kind"] == "sets" and "full" in r]
    if sets:
        lines = [[r["name"], str(r["q"]), *(f"{np.mean(r[form]):.1f}" for form in ("full", "factors"))] for r in sets]
        means = [f"{np.mean([r[form] for r in sets]):.1f}" for form in ("full", "factors")]
        lines.append(["mean", "", *means])
        text = "Recovered share in per cent, means of seeds 0 and 1:\n\n"
        parts.append(text + markdown(["set", "labels", "full covariance", "factors"], lines))
    threads = sorted({r["threads"] for r in rows if "threads" in r})
    note = f"Made by `python benchmarks/manylabels.py` (threads: {', '.join(map(str, threads))})."
    return "\n\n".join([note, *parts])


def main() -> None:
    if sys.argv[1:2] == ["--cell"]:
        print(json.dumps(run_cell(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=["sizes", "methods", "sets"])
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--again", action="store_true", help="measure cells that are stored already, too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, default=1500, help="CPU seconds allowed to one cell")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    store = arguments.out / "manylabels.json"
    rows = {key(r): r for r in json.loads(store.read_text())} if store.exists() else {}
    made_with = versions.shown(versions.own())
    for cell in plan(arguments):
        if cell in rows and not arguments.again:
            continue
        rows[cell] = measure(cell, arguments) | {"made_with": made_with}
        print(json.dumps(rows[cell]), flush=True)
        store.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    found = tables(list(rows.values()))
    (arguments.out / "manylabels.md").write_text(found + "\n")
    if arguments.out == RESULTS:
        text = PAGE.read_text()
        before, rest = text.split("<!-- manylabels -->\n", 1)
        PAGE.write_text(f"{before}<!-- manylabels -->\n{found}\n<!-- end -->" + rest.split("<!-- end -->", 1)[1])
    print(f"wrote {store} and manylabels.md")


if __name__ == "__main__":
    main()

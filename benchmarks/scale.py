"""Time and memory from ten thousand to a million rows, the memory of a streamed file, and peers beside them.

    python benchmarks/scale.py [--peer-python PATH/TO/PYTHON/WITH/PYLDL]

Every cell is a process of its own: it loads the problem, fits one method end to end and reports wall time, CPU time and
the peak memory of the whole process (getrusage), libraries and data included. The answers are compared with the known
truth. Streaming cells run the command `contone enhance --stream` on Parquet files of growing size. Results go to
results/scale.json (a run replaces the cells that it measured and keeps the others), from which results/scale.svg and
the tables of docs/scale.md are made.

The problem: a latent z ~ N(0, I_8), features x = A^T z + sin(2 B^T z) + 0.1 noise in d dimensions (so that they lie
near a curved surface, as embeddings do), degrees softmax(C^T z + 0.3 noise) for q labels, logical labels by
CumulativeMass. The cell "iid" has features N(0, I_d) instead, the worst case of every neighbour search.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import versions

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
LATENT = 8
LABELS = 8
METHODS = {
    "LCdr": ("LCdr", {}),
    "LCdr tuned": ("LCdr", {"preset": "tuned"}),
    "GLLE": ("GLLE", {}),
    "LP": ("LP", {}),
    "Inversion": ("Inversion", {}),
}
PEERS = ("GLLE", "LP")
PEER_BYTES = 16 * 10**9
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def generate(n: int, d: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features X (n, d) and true degrees D (n, 8)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, LATENT))
    A, B = (rng.normal(size=(LATENT, d)) / np.sqrt(LATENT) for _ in range(2))
    C = rng.normal(size=(LATENT, LABELS)) / np.sqrt(LATENT)
    X = rng.normal(size=(n, d)) if kind == "iid" else Z @ A + np.sin(2 * Z @ B) + 0.1 * rng.normal(size=(n, d))
    logits = (X[:, :LATENT] if kind == "iid" else Z) @ C + 0.3 * rng.normal(size=(n, LABELS))
    E = np.exp(logits - logits.max(axis=1, keepdims=True))
    return X, E / E.sum(axis=1, keepdims=True)


def labels_of(D: np.ndarray) -> np.ndarray:
    """Labels from the largest degree down until their sum passes one half, as contone.CumulativeMass does."""
    order = np.argsort(-D, axis=1, kind="stable")
    needed = np.ones(D.shape, dtype=bool)
    needed[:, 1:] = np.cumsum(np.take_along_axis(D, order, axis=1), axis=1)[:, :-1] <= 0.5
    L = np.empty(D.shape, dtype=bool)
    np.put_along_axis(L, order, needed, axis=1)
    return L.astype(np.int8)


# -------------------------------------------------------------------------------------------------- inside a cell


def run_cell(library: str, method: str, folder: str) -> None:
    """Fit one method on the problem in `folder` and print what it took as a line of JSON."""
    X, L = np.load(f"{folder}/X.npy"), np.load(f"{folder}/L.npy")
    fit = _contone(method) if library == "contone" else _pyldl(method)
    fit(X[:300], L[:300])  # imports and compilation
    before, wall = _cpu_seconds(), time.perf_counter()
    D, info = fit(X, L)
    result = {"wall_s": time.perf_counter() - wall, "cpu_s": _cpu_seconds() - before, **info}
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
    truth = np.load(f"{folder}/D.npy")
    result["kl"] = float(np.mean(np.sum(truth * np.log(truth / np.maximum(D, 1e-12)), axis=1)))
    result["kl_uniform"] = float(np.mean(np.sum(truth * np.log(truth * truth.shape[1]), axis=1)))
    print(json.dumps(result))


def _contone(method: str) -> Any:
    import warnings

    import contone

    warnings.simplefilter("ignore")
    name, settings = METHODS[method]
    cls = getattr(contone, name)

    def fit(X: np.ndarray, L: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        estimator = cls.preset(settings["preset"]) if "preset" in settings else cls()
        D = estimator.fit_enhance(X, L)
        info = estimator.solution_.info
        search = info.get("neighbours") or info.get("confidence", {}).get("neighbours") or {"engine": "no search"}
        return D, {**search, "converged": estimator.solution_.converged, "n_iter": estimator.solution_.n_iter}

    return fit


def _pyldl(method: str) -> Any:
    os.environ["KERAS_BACKEND"] = "torch"
    import pyldl.algorithms

    cls = getattr(pyldl.algorithms, method)
    return lambda X, L: (np.asarray(cls().fit(X, L.astype(float)).transform()), {"engine": "PyLDL"})


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


# ------------------------------------------------------------------------------------------------------ the plan


def measure(python: str, library: str, method: str, folder: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a cell in a process of its own, under limits of CPU time and memory."""

    seconds = arguments.limit if library == "contone" else arguments.peer_limit

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        if library != "contone":  # an n x n matrix of a hundred thousand rows would take the machine down
            resource.setrlimit(resource.RLIMIT_AS, (PEER_BYTES, PEER_BYTES))

    done = subprocess.run(
        [python, __file__, "--cell", library, method, folder],
        env={**os.environ, **dict.fromkeys(THREADS, str(arguments.threads))},
        capture_output=True,
        text=True,
        preexec_fn=limits,
        check=False,
    )
    if done.returncode == 0:
        return json.loads(done.stdout.strip().splitlines()[-1])
    if done.returncode < 0:
        return {"failed": f"more than {seconds} CPU s"}
    said = done.stderr.strip()
    if "MemoryError" in said or "not enough memory" in said:
        return {"failed": f"more than {PEER_BYTES / 1e9:.0f} GB"}
    return {"failed": (said.splitlines() or ["no message"])[-1][:120]}


def fits(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every method on every problem; a peer that failed is not tried on larger ones."""
    problems = [(n, 24, "surface") for n in arguments.sizes]
    problems += [(n, 200, "surface") for n in arguments.wide]
    problems += [(n, 24, "iid") for n in arguments.iid]
    rows: list[dict[str, Any]] = []
    for n, d, kind in problems:
        with tempfile.TemporaryDirectory() as folder:
            X, D = generate(n, d, kind)
            for name, array in (("X", X), ("D", D), ("L", labels_of(D))):
                np.save(f"{folder}/{name}.npy", array)
            del X, D, array
            wanted = [("contone", m) for m in arguments.methods if kind != "iid" or m == "LCdr"]
            if arguments.peer_python and kind == "surface" and d == 24:
                lost = {r["method"] for r in rows if r["library"] == "pyldl" and "failed" in r}
                wanted += [("pyldl", m) for m in PEERS if m in arguments.methods and m not in lost]
            for library, method in wanted:
                python = sys.executable if library == "contone" else arguments.peer_python
                row = {"library": library, "method": method, "n": n, "d": d, "kind": kind}
                row |= measure(python, library, method, folder, arguments)
                rows.append(row)
                yield row


def streams(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The command on Parquet files of growing size, written row group by row group so that nothing large is held."""
    import polars as pl

    for n in arguments.stream_rows:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            parts = []
            for start in range(0, n, 250_000):
                m = min(250_000, n - start)
                X, D = generate(m, 24, "surface", seed=0 if start == 0 else start)
                frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(24)})
                L = labels_of(D)
                frame = frame.with_columns(pl.Series(f"label_{j}", L[:, j]) for j in range(LABELS))
                parts.append(f"{folder}/in-{start:09d}.parquet")
                frame.write_parquet(parts[-1], compression="uncompressed")
            pl.scan_parquet(parts).sink_parquet(f"{folder}/in.parquet", compression="uncompressed")
            for part in parts:
                os.unlink(part)
            size = os.path.getsize(f"{folder}/in.parquet") / 1e6
            command = [
                "-m",
                "contone",
                "enhance",
                f"{folder}/in.parquet",
                "-l",
                "label_*",
                "-m",
                arguments.stream_method,
            ]
            command += ["--stream", "-o", f"{folder}/out.parquet"]
            started = time.perf_counter()
            child = subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, **dict.fromkeys(THREADS, str(arguments.threads))},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, status, used = os.wait4(child.pid, 0)
            row = {
                "library": "stream", "method": arguments.stream_method, "n": n, "d": 24, "kind": "stream",
                "file_mb": size, "wall_s": time.perf_counter() - started, "cpu_s": used.ru_utime + used.ru_stime,
                "peak_mb": used.ru_maxrss / 1024,
            }  # fmt: skip
            if status:
                row["failed"] = f"exit status {status}"
            yield row


# --------------------------------------------------------------------------------------------------- the results


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["library"], row["method"], row["n"], row["d"], row["kind"]


def cells(row: dict[str, Any]) -> list[str]:
    name = {"contone": row["method"], "pyldl": f"PyLDL {row['method']}"}[row["library"]]
    if "failed" in row:
        return [name, f"{row['n']:,}", str(row["d"]), row["failed"], "-", "-", "-", "-", "-"]
    recall = f"{row['recall']:.3f}" if "recall" in row else "-"
    return [
        name, f"{row['n']:,}", str(row["d"]), row["engine"] + (" (iid features)" if row["kind"] == "iid" else ""),
        recall,
        f"{row['wall_s']:.1f}", f"{row['cpu_s']:.1f}", f"{row['peak_mb']:,.0f}",
        f"{row['kl']:.3f}" + (f" ({row['kl_uniform']:.3f})" if "kl_uniform" in row else ""),
    ]  # fmt: skip


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def growth(rows: list[dict[str, Any]]) -> str:
    """How much more a million rows take than a hundred thousand."""
    found = {key(r): r for r in rows if "wall_s" in r}
    lines = []
    for method in METHODS:
        small, large = (found.get(("contone", method, n, 24, "surface")) for n in (100_000, 1_000_000))
        if small and large:
            cells = [f"{large[what] / small[what]:.1f}" for what in ("wall_s", "cpu_s")]
            cells += [f"{large[what]:.0f}" for what in ("wall_s", "cpu_s")]
            lines.append([method, *cells, f"{large['peak_mb'] / 1000:.1f}"])
    head = ["method", "wall at 1M / at 100k", "CPU at 1M / at 100k", "wall s at 1M", "CPU s at 1M", "peak GB at 1M"]
    return markdown(head, lines)


def fits_part(rows: list[dict[str, Any]], threads: int) -> str:
    """The table of fits and how they grow."""
    fitted = [r for r in rows if r["kind"] != "stream"]
    order = {name: i for i, name in enumerate(METHODS)}
    fitted.sort(key=lambda r: (r["kind"], r["d"], r["library"], order[r["method"]], r["n"]))
    head = ["method", "n", "d", "neighbours", "recall", "wall s", "CPU s", "peak MB", "KL (uniform)"]
    return "\n".join([
        f"Made by `python benchmarks/scale.py` (threads: {threads}). Every cell is a process of its own; peak memory "
        "is that of the whole process.\nCompare CPU seconds: wall time counts whatever else the machine does. "
        f"q = {LABELS}. KL is that from the truth to the answer; in brackets that of the "
        "uniform distribution, as every size has its own truth.\n",
        markdown(head, [cells(r) for r in fitted]),
        "\nFrom a hundred thousand rows to a million:\n",
        growth(rows),
    ])  # fmt: skip


def streaming_part(rows: list[dict[str, Any]]) -> str:
    """The table of streamed files."""
    lines = [
        [r["method"], f"{r['n']:,}", f"{r['file_mb']:,.0f}", f"{r['wall_s']:.0f}", f"{r['cpu_s']:.0f}",
         r.get("failed") or f"{r['peak_mb']:,.0f}"]
        for r in sorted((r for r in rows if r["kind"] == "stream"), key=lambda r: (r["method"], r["n"]))
    ]  # fmt: skip
    return "`contone enhance FILE.parquet --stream`, 24 features and 8 labels, fitted on 50,000 rows.\n\n" + markdown(
        ["method", "rows", "file MB", "wall s", "CPU s", "peak MB"], lines
    )


def fill(page: Path, **parts: str) -> None:
    """Put each part into the page, between its marker and the next end."""
    text = page.read_text()
    for name, part in parts.items():
        before, rest = text.split(f"<!-- {name} -->\n", 1)
        text = f"{before}<!-- {name} -->\n{part}\n<!-- end -->" + rest.split("<!-- end -->", 1)[1]
    page.write_text(text)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """CPU time and peak memory over n, log-log, one line a method; the budget at a million rows as a mark."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "contone"  # the same bytes for the same numbers
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    shown = [r for r in rows if r["kind"] == "surface" and r["d"] == 24 and "wall_s" in r]
    for axis, quantity, title, budget in (
        (axes[0], "cpu_s", "CPU seconds", 300),
        (axes[1], "peak_mb", "peak memory, MB", 8000),
    ):
        for library, style in (("contone", "-o"), ("pyldl", "--s")):
            for colour, method in enumerate(METHODS):
                points = sorted(
                    (r["n"], r[quantity]) for r in shown if (r["library"], r["method"]) == (library, method)
                )
                if points:
                    label = f"PyLDL {method}" if library == "pyldl" else method
                    axis.plot(*zip(*points, strict=True), style, color=f"C{colour}", ms=4, label=label)
        axis.plot([1e6], [budget], "kv", ms=6, label="budget")
        axis.set(xscale="log", yscale="log", xlabel="rows n (d = 24, q = 8)", ylabel=title)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    if sys.argv[1:2] == ["--cell"]:
        run_cell(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="interpreter of an environment with python-ldl 0.1.2 and torch")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--wide", nargs="*", type=int, default=[100_000], help="sizes with d = 200")
    parser.add_argument("--iid", nargs="*", type=int, default=[100_000, 1_000_000], help="sizes with iid features")
    parser.add_argument("--stream-rows", nargs="*", type=int, default=[500_000, 2_000_000, 8_000_000])
    parser.add_argument("--stream-method", default="lcdr")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, default=1800, help="CPU seconds allowed to one cell")
    parser.add_argument("--peer-limit", type=int, default=300, help="the same for a peer's cell")
    parser.add_argument("--scratch", help="folder for the large files of the streaming cells")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    store = arguments.out / "scale.json"
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = {key(r): r for r in json.loads(store.read_text())} if store.exists() else {}
    made_with = versions.shown(versions.own())
    if arguments.peer_python:
        made_with += f"; PyLDL with {versions.shown(versions.of_peer(arguments.peer_python, *versions.PYLDL))}"
    for row in chain(fits(arguments), streams(arguments)):
        row["made_with"] = made_with
        print(json.dumps(row), flush=True)
        rows[key(row)] = row
        store.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    found = list(rows.values())
    plot(found, arguments.out / "scale.svg")
    print(f"wrote {store} and scale.svg")
    if arguments.out == RESULTS:
        fill(PAGE, fits=fits_part(found, arguments.threads), streaming=streaming_part(found))
        print(f"wrote the tables of {PAGE}")


if __name__ == "__main__":
    main()

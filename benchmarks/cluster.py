"""dask arrays on a LocalCluster: time, and the peak memory of the client and of the largest worker, by number of rows.

    python benchmarks/cluster.py [--rows 20000 100000] [--workers 0 2] [--block-rows 20000] [--methods LCdr GLLE]

Every cell is a process of its own, with a cluster of its own. The rows (the problem of benchmarks/scale.py, d = 24,
q = 8) lie in files, one per block, which the workers write before the clock starts and read each time they need them:
nobody holds them. The answer is computed for all rows and reduced to its mean, as it would be written to storage in
parts. GLLE and LCdr fetch the rows and compute here. `--workers 0` fits the same rows as NumPy arrays in one process on
as many threads as OMP_NUM_THREADS says (here 1); its CPU time is that of the fit alone. CPU seconds of a cluster are
those of client, scheduler and workers; `idle` is what they take per second while nothing happens, measured for three
seconds before. The memory of the client includes the scheduler and the libraries (about 200 MB); so does that of a
worker. Two settings of dask are not its defaults: its profiler is off, which takes a tenth of a core as long as a
cluster is up, and freed memory stays with the worker's allocator (docs/scale.md says why). Results go to
results/cluster.json (a run replaces the cells that it measured) and from there to results/cluster.md.
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
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

LATENT = LABELS = 8
FEATURES = 24
METHODS = ("Temperature", "Inversion", "GLLE", "LCdr", "LCdr predict")
ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    f"{ENVIRONMENT}.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    f"{ENVIRONMENT}.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}
IDLE_S = 3.0
RESULTS = Path(__file__).parent / "results"


def block(numbers: np.ndarray, part: int) -> np.ndarray:
    """Features (part 0) or logical labels (part 1) of the rows with these numbers, (m, 1)."""
    from contone import CumulativeMass

    shared, own = np.random.default_rng(0), np.random.default_rng([1, int(numbers[0, 0])])
    A, B = (shared.normal(size=(LATENT, FEATURES)) / np.sqrt(LATENT) for _ in range(2))
    C = shared.normal(size=(LATENT, LABELS)) / np.sqrt(LATENT)
    Z = own.normal(size=(len(numbers), LATENT))
    X = Z @ A + np.sin(2 * Z @ B) + 0.1 * own.normal(size=(len(numbers), FEATURES))
    if part == 0:
        return X
    E = np.exp(Z @ C + 0.3 * own.normal(size=(len(numbers), LABELS)))
    return CumulativeMass().apply(E / E.sum(axis=1, keepdims=True)).astype(float)


def write_block(folder: str, start: int, rows: int) -> None:
    """Rows from `start` on, as two files."""
    numbers = np.arange(start, start + rows)[:, None]
    for part in (0, 1):
        np.save(Path(folder) / f"{part}-{start}.npy", block(numbers, part))


def read_block(numbers: np.ndarray, folder: str, part: int) -> np.ndarray:
    found: np.ndarray = np.load(Path(folder) / f"{part}-{int(numbers[0, 0])}.npy")
    return found


def run_cell(method: str, n: int, workers: int, rows: int) -> dict[str, Any]:
    """Fit and compute one method on n lazy rows; what it took."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    import contone

    warnings.simplefilter("ignore")
    if workers == 0:
        return run_in_memory(method, n, rows)
    numbers = da.arange(n, chunks=rows)[:, None]
    with (
        TemporaryDirectory() as folder,
        dask.config.set(SETTINGS),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        starts = range(0, n, rows)
        client.gather([client.submit(write_block, folder, start, min(rows, n - start)) for start in starts])
        X, L = (
            numbers.map_blocks(
                read_block, folder, part, dtype=float, chunks=(numbers.chunks[0], (width,)), meta=np.empty((0, 0))
            )
            for part, width in ((0, FEATURES), (1, LABELS))
        )
        fitted = contone.LCdr().fit(*(A[:2000].compute() for A in (X, L))) if method == "LCdr predict" else None
        client.run(block, np.zeros((1, 1), dtype=int), 1)  # imports
        idle_mb, idle = _usage()[1], -_cpu(client)
        time.sleep(IDLE_S)
        idle = (idle + _cpu(client)) / IDLE_S
        before, began = _cpu(client), time.perf_counter()
        answer = fitted.predict(X) if fitted else getattr(contone, method)().fit_enhance(X, L)
        fit_s = time.perf_counter() - began
        answer.mean(axis=0).compute()
        wall, cpu = time.perf_counter() - began, _cpu(client) - before
        worker_mb = max(usage[1] for usage in client.run(_usage).values())
    return {
        "method": method,
        "n": n,
        "workers": workers,
        "block_rows": rows,
        "fit_s": fit_s,
        "wall_s": wall,
        "cpu_s": cpu,
        "idle_cpu": idle,
        "idle_mb": idle_mb,
        "client_mb": _usage()[1],
        "worker_mb": worker_mb,
        "cores": os.cpu_count(),
    }


def run_in_memory(method: str, n: int, rows: int) -> dict[str, Any]:
    """The same rows as NumPy arrays, in this process."""
    import contone

    warnings.simplefilter("ignore")
    parts = [[block(np.arange(i, min(i + rows, n))[:, None], part) for i in range(0, n, rows)] for part in (0, 1)]
    X, L = (np.concatenate(some) for some in parts)
    estimator = getattr(contone, method)()
    estimator.fit(X[:300], L[:300])  # imports
    before, began = _usage()[0], time.perf_counter()
    estimator.fit_enhance(X, L)
    wall, cpu, peak = time.perf_counter() - began, _usage()[0] - before, _usage()[1]
    size = {"method": method, "n": n, "workers": 0, "block_rows": n}
    used = {"fit_s": wall, "wall_s": wall, "cpu_s": cpu, "client_mb": peak, "worker_mb": 0.0, "cores": os.cpu_count()}
    return {**size, **used}


def _usage() -> tuple[float, float]:
    """CPU seconds and peak memory in MB of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _cpu(client: Any) -> float:
    return _usage()[0] + sum(usage[0] for usage in client.run(_usage).values())


def table(cells: list[dict[str, Any]]) -> str:
    head = (
        "| method | n | workers | rows per block | fit, s | with answer, s | CPU, s | times NumPy | client, MB | "
        "worker, MB |"
    )
    alone = {(c["method"], c["n"]): c["cpu_s"] for c in cells if c["workers"] == 0}
    lines = [
        f"| {c['method']} | {c['n']:,} | {c['workers']} | {c['block_rows']:,} | {c['fit_s']:.1f} | {c['wall_s']:.1f} | "
        f"{c['cpu_s']:.1f} | {_share(c, alone)} | {c['client_mb']:.0f} | {c['worker_mb']:.0f} |"
        for c in sorted(cells, key=lambda c: (METHODS.index(c["method"]), c["n"], c["workers"]))
    ]
    return "\n".join([head, "|---|" + "---:|" * 9, *lines]) + "\n"


def _share(cell: dict[str, Any], alone: dict[tuple[str, int], float]) -> str:
    """CPU seconds of a cluster over those of one process."""
    there = alone.get((cell["method"], cell["n"]))
    return "-" if there is None or cell["workers"] == 0 else f"{cell['cpu_s'] / there:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--workers", type=int, nargs="+", default=[2], help="0: NumPy arrays in one process")
    parser.add_argument("--block-rows", type=int, default=20_000)
    parser.add_argument("--cell", action="store_true", help="run the first method on the first number of rows, here")
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(run_cell(given.methods[0], given.rows[0], given.workers[0], given.block_rows)))
        return
    store = RESULTS / "cluster.json"
    cells = json.loads(store.read_text()) if store.exists() else []
    for method, n, workers in product(given.methods, given.rows, given.workers):
        options = ["--workers", str(workers), "--block-rows", str(given.block_rows)]
        command = [sys.executable, __file__, "--cell", "--methods", method, "--rows", str(n), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            print(f"{method}, {n:,} rows: failed\n{done.stderr[-2000:]}", file=sys.stderr)
            continue
        cell = json.loads(done.stdout.splitlines()[-1])
        print(cell, flush=True)
        kept = [c for c in cells if (c["method"], c["n"], c["workers"]) != (method, n, workers)]
        cells = [*kept, cell]
        store.write_text(json.dumps(cells, indent=1) + "\n")
        (RESULTS / "cluster.md").write_text(table(cells))


if __name__ == "__main__":
    main()

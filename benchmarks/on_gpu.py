"""The cells of methods that train networks, their fits on a GPU; the results join any store.

    python benchmarks/on_gpu.py compute cells.jsonl.gz --spec benchmarks/networks.toml --jobs 8   # where the GPU is
    python benchmarks/on_gpu.py compute cells.jsonl.gz --people FOLDER
    python benchmarks/on_gpu.py compute cells.jsonl.gz --many 2000x983                            # LEIC, many labels
    python benchmarks/on_gpu.py compute cells.jsonl.gz --many 2000x200 --steps 2 --device cpu     # CPU s of a step
    python benchmarks/on_gpu.py add cells.jsonl.gz --store results                               # on any machine

Cells are those of `contone benchmark` with the same spec or folder, and join its store if the code is the same here and
there: a fit gets its features and labels as double precision tensors on the device and gives its answer back as an
array, nothing else is different.
Networks this small are bound by the launching of kernels, so that several processes share the device. A finished cell
is a line of the file, which can be read up to the last one if the run is cut off.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

METHODS = ("ConLE", "LEIC", "LEVI", "LIBLE")


def move(device: str) -> None:
    """Let the methods fit on a device, whatever hands them their arrays."""
    import torch

    import contone
    from contone.backends import to_numpy

    for name in METHODS:
        cls = getattr(contone, name)

        def fit(self: Any, X: Any, L: Any, own: Any = cls._fit_enhance) -> Any:
            found = own(self, *(torch.tensor(A, dtype=torch.float64, device=device) for A in (X, L)))
            return found.with_value(to_numpy(found.value))

        cls._fit_enhance = fit


def planned(arguments: argparse.Namespace) -> list[Any]:
    """The cells of networks, those of one data set together: they share its rehearsal."""
    from contone.enhance import methods
    from contone.experiments.benchmark import make_spec
    from contone.experiments.people import plan_people
    from contone.experiments.plan import make_plan

    if arguments.people:
        known = {cls.__name__: cls() for cls in methods().values() if cls.__name__ in METHODS}
        cells = plan_people(arguments.people, known, answers=(1, 3), seeds=arguments.seeds or 3).cells
    else:
        spec = make_spec(spec=arguments.spec)
        cells = make_plan([spec], dataset_names=spec.datasets, seeds=arguments.seeds).cells
    wanted = [c for c in cells if c.method in arguments.methods and "estimator" in c.task]
    return list({c.key: c for c in wanted}.values())


def groups(cells: list[Any], size: int) -> Iterator[list[Any]]:
    """Work for one process at a time: a few cells, or, last for their time, the rehearsed ones of a data set."""
    by_set: dict[str, list[Any]] = {}
    rest = []
    for cell in cells:
        if cell.task["kind"] == "rehearsed":
            by_set.setdefault(cell.dataset, []).append(cell)
        else:
            rest.append(cell)
    yield from (rest[i : i + size] for i in range(0, len(rest), size))
    yield from by_set.values()


def work(cells: list[Any]) -> list[dict]:
    from contone.experiments.compute import compute

    return [compute(cell) for cell in cells]


def many(size: str, device: str, steps: int) -> dict:
    """LEIC on generated data with many labels (benchmarks/manylabels.py): seconds of a fit, and of a step; KL."""
    import numpy as np
    import torch

    import contone
    from manylabels import generate, mean_kl

    n, q = map(int, size.split("x"))
    X, D = generate(n, q)
    L = contone.CumulativeMass().apply(D).astype(np.int8)
    is_host = device == "cpu"
    clock = time.process_time if is_host else time.perf_counter
    spent, found = [], D
    for epochs in (1, 1 + steps) if steps else (contone.LEIC().epochs,):
        start = clock()
        found = np.asarray(contone.LEIC(epochs=epochs).fit_enhance(X, L))
        spent.append(clock() - start)
    return {
        "many": size, "method": "LEIC", "seconds": spent[-1], "step": (spent[-1] - spent[0]) / max(steps, 1),
        "kl": mean_kl(D, found), "kl_uniform": mean_kl(D, np.full_like(D, 1 / q)), "torch": torch.__version__,
        "device": "cpu" if is_host else torch.cuda.get_device_name(),
        "gb": 0.0 if is_host else torch.cuda.max_memory_allocated() / 1e9,
    }  # fmt: skip


def compute_all(arguments: argparse.Namespace) -> None:
    start = time.perf_counter()
    with gzip.open(arguments.file, "at") as out:

        def keep(record: dict) -> None:
            out.write(json.dumps(record) + "\n")
            out.flush()

        if arguments.many:
            move(arguments.device)
            keep(many(arguments.many, arguments.device, arguments.steps))
            return
        cells = planned(arguments)
        print(f"{len(cells)} cells", flush=True)
        done = 0
        with ProcessPoolExecutor(
            arguments.jobs, get_context("spawn"), initializer=move, initargs=(arguments.device,)
        ) as pool:
            tasks = [pool.submit(work, group) for group in groups(cells, arguments.size)]
            for task in as_completed(tasks):
                for record in task.result():
                    keep(record)
                    done += 1
                    if record["status"] != "done":
                        print(record["cell"]["row"], record["cell"]["dataset"], record["error"], flush=True)
                print(f"{done}/{len(cells)} {time.perf_counter() - start:.0f} s", flush=True)


def lines(path: Path) -> Iterator[dict]:
    """What a file holds, up to where it was cut off."""
    with gzip.open(path, "rt") as text:
        try:
            for line in text:
                yield json.loads(line)
        except EOFError:
            return


def add_all(arguments: argparse.Namespace) -> None:
    from contone.experiments.plan import Cell
    from contone.experiments.store import Store

    store, counts = Store(arguments.store), {"done": 0, "failed": 0}
    for record in lines(arguments.file):
        if "many" in record:
            print(json.dumps(record))
            continue
        # The fingerprint of the code is taken from a syntax tree, which is another one in another version of Python.
        cell = Cell(**{name: value for name, value in record["cell"].items() if name != "key"})
        store.add({**record, "key": cell.key, "cell": cell.plain()})
        counts[record["status"]] = counts.get(record["status"], 0) + 1
    print(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compute", "add"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--spec", default="benchmarks/networks.toml")
    parser.add_argument("--people", type=Path)
    parser.add_argument("--many", metavar="ROWSxLABELS")
    parser.add_argument("--steps", type=int, default=0, help="with --many: measure this many steps, no whole fit")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--size", type=int, default=3, help="cells that a process takes at a time")
    parser.add_argument("--store", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    {"compute": compute_all, "add": add_all}[arguments.what](arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    import on_gpu  # by its name: processes that are started find its functions there

    on_gpu.main()

"""Torch tensors on a GPU: do they give NumPy's answers, and where does the time of a million rows go?

    python benchmarks/gpu.py --out results            # one GPU; a minute or two
    python benchmarks/gpu.py --out results --rows 20000 --device cpu   # a trial without one

1. Agreement: every method on 3000 rows in float64, NumPy against the device.
2. Neighbour search: time, recall on a sample against brute force, and two floors: the bytes it moves at the measured
   copy bandwidth, and its operations at the measured rate of matrix products.
3. Time and memory of LCdr, GLLE, LP and Inversion end to end, in float32 and float64, first call (with the compilation
   of kernels) and second; for LCdr by step.
4. Votes: as many items, three votes each, by step; and the first call of new processes, kernels on disk.

Prints tables, and writes them as gpu.md and gpu.json into the folder given by --out.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from contone import GLLE, LP, CumulativeMass, Inversion, LabelConfidence, LCdr
from contone.augment import confidence
from contone.augment.reduction import HSICReducer
from contone.backends.torch import neighbours as neighbours_torch
from contone.backends.torch import screen
from contone.backends.torch.graph import TorchGraph
from contone.enhance.inversion.people import fit as people_fit
from contone.enhance.inversion.people.model import PeopleFit
from contone.enhance.rectified import RectifiedSoftmax
from contone.numerics import graphs

FEATURES, LABELS, NEIGHBOURS = 24, 8, 10
SIZES = [
    *((500, 2), (6_000, 8), (6_000, 16), (6_000, 32), (6_000, 48), (6_000, 64), (6_000, 101), (200_000, 32)),
    *((200_000, 48), (200_000, 101), (1_000_000, 8), (16_000, 983), (1_000_000, 101)),
]
"""Rows and labels that Inversion is timed at."""
COMPARED = 200_000
"""Degrees up to which the same fit is timed on the host's processors as well."""
METHODS: dict[str, Callable[[], Any]] = {
    "LCdr": LCdr,
    "LCdr tuned": lambda: LCdr.preset("tuned"),
    "GLLE": GLLE,
    "LP": lambda: LP(graph="knn"),
    "Inversion": Inversion,
}
STEPS: dict[str, list[tuple[Any, str]]] = {
    "search": [(graphs, "local_neighbours")],
    "graph": [(confidence, "confidence_graph")],
    "confidence": [(confidence, "minimise_on_simplices")],
    "components": [(TorchGraph, "connected_components"), (confidence, "_settle_flat_directions")],
    "reduction": [(HSICReducer, "fit_checked"), (HSICReducer, "transform_checked")],
    "model": [(RectifiedSoftmax, "_fit_enhance")],
}

SEARCH_STEPS: dict[str, list[tuple[Any, str]]] = {
    "prepared": [(screen, "Screen")],  # rows in half precision
    "bounds": [(screen.Screen, "bound")],  # all pairs, minima of groups
    "measured": [(screen.Screen, "measure")],  # selection, and candidates measured again
    "again": [(neighbours_torch, "_distances")],  # rows without a certificate, compared with all
}
VOTES_STEPS: dict[str, list[tuple[Any, str]]] = {
    "regressions": [(people_fit, "_regress")],
    "chain": [(people_fit, "_run")],
    "rows": [(PeopleFit, "posterior")],
}
FRESH = """
import sys, time, pathlib
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
from gpu import Inversion, _Bench, torch
bench = _Bench(torch.device(sys.argv[2]), 1)
X, L = bench._data(6_000, 32)
print(*(bench._time(lambda: Inversion().fit_enhance(X, L))[0] for _ in range(2)))
"""
"""A new process: seconds of its first and of its second fit."""


def data(n: int, seed: int = 0, labels: int = LABELS) -> tuple[np.ndarray, np.ndarray]:
    """X (n, 24) around a bent surface of six dimensions, and labels of distributions that vary along it."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 6))
    X = np.tanh(latent @ rng.standard_normal((6, FEATURES))) + 0.2 * rng.standard_normal((n, FEATURES))
    Z = 0.5 * latent @ rng.standard_normal((6, labels)) + 0.3 * rng.standard_normal((n, labels))
    E = np.exp(Z)
    return X, CumulativeMass(0.5).apply(E / E.sum(axis=1, keepdims=True)).astype(float)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--largest", type=float, default=2e8, help="rows x labels of the largest size of Inversion")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--precisions", nargs="*", default=["float32", "float64"], choices=["float32", "float64"])
    parser.add_argument("--profile", action="store_true", help="also print the kernels that take most of the time")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no GPU; pass --device cpu --rows 20000 for a trial without one")
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    bench = _Bench(torch.device(options.device), options.rows)
    report: dict[str, Any] = {"machine": bench.machine(), "rows": options.rows}
    print(json.dumps(report["machine"]), flush=True)
    save = lambda: _write(options.out, report)  # noqa: E731 - after every part: what is measured is not lost
    report["agreement"] = bench.agreement(options.methods)
    save()
    report["search"] = bench.search()
    save()
    report["sizes"] = bench.sizes(options.largest)
    save()
    report["votes"] = bench.votes()
    save()
    report["fresh"] = bench.fresh()
    save()
    report["runs"] = []
    for precision in options.precisions:
        for name in options.methods:
            report["runs"] += bench.end_to_end(name, getattr(torch, precision))
            save()
    if options.profile:
        for name in options.methods:
            bench.profile(name, torch.float32)
    print("\n" + _markdown(report), flush=True)


class _Bench:
    def __init__(self, device: torch.device, n: int) -> None:
        self.device, self.n = device, n
        self.X, self.L = data(n)
        self.answers: dict[str, torch.Tensor] = {}

    def machine(self) -> dict[str, Any]:
        gpu = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else platform.processor()
        return {"device": gpu, "torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()}

    def agreement(self, methods: list[str], n: int = 3000) -> list[dict[str, Any]]:
        """Largest and mean difference from NumPy's answer on small data, float64."""
        X, L = data(n, seed=1)
        rows = []
        trials = {"LabelConfidence": LabelConfidence, **{name: METHODS[name] for name in methods}}
        trials |= {"LCdr, beta = 0.003": lambda: LCdr.preset("near_published"), "LP, dense": lambda: LP(graph="dense")}
        for name, make in trials.items():
            expected = make().fit_enhance(X, L)
            answer = make().fit_enhance(*self._tensors(X, L, torch.float64))
            assert answer.device.type == self.device.type
            difference = np.abs(answer.cpu().numpy() - expected)
            again = torch.equal(answer, make().fit_enhance(*self._tensors(X, L, torch.float64)))
            rows.append({"method": name, "largest": difference.max(), "mean": difference.mean(), "same bits": again})
            print(f"agreement  {name:20s} {difference.max():.2e} mean {difference.mean():.2e} {again}", flush=True)
        return rows

    def search(self, n_sample: int = 1000) -> dict[str, Any]:
        """Time, recall and floors of the neighbour search in float32."""
        X = torch.as_tensor(self.X, dtype=torch.float32, device=self.device)
        seconds = [self._time(lambda: neighbours_torch.nearest_neighbours(X, NEIGHBOURS))[0] for _ in range(3)]
        with self._steps(SEARCH_STEPS) as steps:
            total, found = self._time(lambda: neighbours_torch.nearest_neighbours(X, NEIGHBOURS))
        sample = torch.linspace(0, self.n - 1, min(n_sample, self.n), device=self.device).to(torch.int64)
        exact = torch.cat([self._brute_force(some) for some in torch.split(sample, 50)])
        hits = (found.indices[sample][:, :, None] == exact[:, None, :]).any(dim=2).float().mean()
        answer = {
            "cold": seconds[0],
            "warm": min(seconds[1:]),
            "recall": float(hits),
            "compared": found.n_compared,
            **{f"{step}_s": seconds for step, seconds in steps.items()},
            "other_s": total - sum(steps.values()),
            **self._floors(),
        }
        print("search    ", {k: round(v, 4) if isinstance(v, float) else v for k, v in answer.items()}, flush=True)
        return answer

    def _brute_force(self, rows: torch.Tensor) -> torch.Tensor:
        X = torch.as_tensor(self.X, device=self.device)
        D = torch.cdist(X[rows], X, compute_mode="donot_use_mm_for_euclid_dist")
        D[torch.arange(len(rows), device=self.device), rows] = torch.inf
        return torch.topk(D, NEIGHBOURS, dim=1, largest=False).indices

    def _floors(self) -> dict[str, float]:
        """Seconds that the search cannot beat as it is designed, and the rates behind them."""
        on_gpu = self.device.type == "cuda"
        A = torch.empty(2**30 if on_gpu else 2**24, dtype=torch.float32, device=self.device)
        B = torch.empty_like(A)
        bandwidth = 2 * A.numel() * 4 / min(self._time(lambda: B.copy_(A))[0] for _ in range(4))
        A = B = None
        m = 8192 if on_gpu else 1024
        rates = {}
        for name, dtype in (("float32", torch.float32), ("half", torch.float16)):
            M = torch.randn(m, m, device=self.device).to(dtype)
            rates[name] = 2 * m**3 / min(self._time(lambda M=M: M @ M)[0] for _ in range(4))
        width = max(16, 1 << (FEATURES + 1).bit_length())
        minima = self.n * (self.n / screen.GROUP) * 4  # written once; few are read
        candidates = self.n * screen.n_chosen(NEIGHBOURS) * screen.GROUP * FEATURES * 4
        return {
            "bandwidth_TB_s": bandwidth / 1e12,
            "float32_TFLOP_s": rates["float32"] / 1e12,
            "half_TFLOP_s": rates["half"] / 1e12,
            "bytes_floor_s": (minima + candidates) / bandwidth,
            "operations_floor_s": 2 * self.n**2 * width / rates["half"],
            "definition_floor_s": 2 * self.n**2 * FEATURES / rates["float32"],
        }

    def sizes(self, largest: float) -> list[dict[str, Any]]:
        """Inversion over rows and labels in float32: first and second call, and floors of its sweeps.

        A sweep reads and writes each log weight about twelve times (mean, labels, what is kept of later labels), and
        draws one truncated normal number, some 300 operations.
        """
        rows = []
        for n, q in [size for size in SIZES if size[0] * size[1] <= largest]:
            X, L = self._data(n, q)
            methods = [Inversion(), Inversion()]
            seconds = [self._time(lambda m=m, X=X, L=L: m.fit_enhance(X, L))[0] for m in methods]
            steps = (200 * min(n, 20_000) + 84 * n * (n > 20_000)) * q
            floor = {"bytes_s": 48 * steps / 4.0e12, "operations_s": 300 * steps / 3.0e13}
            rows.append({"rows": n, "labels": q, "first": seconds[0], "warm": seconds[1], **floor})
            rows[-1]["on"] = "host" if "computed_on" in methods[0].solution_.info else self.device.type
            if n * q <= COMPARED:
                on_host = [A.cpu().numpy().astype(float) for A in (X, L)]
                rows[-1]["host"] = self._time(lambda A=on_host: Inversion().fit_enhance(*A))[0]
            print("size      ", rows[-1], flush=True)
        return rows

    def votes(self) -> list[dict[str, Any]]:
        """Inversion of three votes on each item, in float32, by step."""
        X = self._data(self.n, LABELS)[0]
        draws = torch.Generator(self.device).manual_seed(1)
        normal = lambda *shape: torch.randn(*shape, generator=draws, device=self.device)  # noqa: E731
        shares = torch.softmax(X[:, :6] @ normal(6, LABELS) + 0.8 * normal(self.n, LABELS), 1)
        votes = torch.multinomial(shares, 3, replacement=True, generator=draws)
        Y = torch.zeros_like(shares).scatter_add_(1, votes, torch.ones_like(votes, dtype=shares.dtype))
        rows = []
        for run in ("first", "second"):
            method = Inversion(degradation="votes")
            with self._steps(VOTES_STEPS) as steps:
                seconds, D = self._time(lambda method=method: method.fit_enhance(X, Y))
            kl = (shares * (shares.log() - D.log())).sum(dim=1).mean()
            found = {"kinds": 1 if method.fit_.blend is None else len(method.fit_.blend.weights), "KL": float(kl)}
            rows.append({"run": run, "seconds": seconds, **steps, **found})
            print("votes     ", rows[-1], flush=True)
        return rows

    def fresh(self, n: int = 5) -> list[list[float]]:
        """Seconds of the first and of the second fit to 6,000 x 32 in each of n new processes."""
        program = [sys.executable, "-W", "ignore", "-c", FRESH, __file__, self.device.type]
        runs = [subprocess.run(program, capture_output=True, text=True, check=True).stdout for _ in range(n)]
        print("fresh     ", runs, flush=True)
        return [[float(x) for x in run.split()] for run in runs]

    def _data(self, n: int, q: int) -> tuple[torch.Tensor, torch.Tensor]:
        """As `data`, made on the device: features (n, 24) and labels (n, q)."""
        draws = torch.Generator(self.device).manual_seed(0)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=draws, device=self.device)

        latent = normal(n, 6)
        X = torch.tanh(latent @ normal(6, FEATURES)) + 0.2 * normal(n, FEATURES)
        falling, order = torch.softmax(0.5 * latent @ normal(6, q) + 0.3 * normal(n, q), 1).sort(dim=1, descending=True)
        marked = (falling.cumsum(dim=1) - falling <= 0.5).float()
        return X, torch.zeros_like(marked).scatter_(1, order, marked)

    def end_to_end(self, name: str, dtype: torch.dtype) -> list[dict[str, Any]]:
        """Two runs, the first with the compilation of kernels: seconds, steps, peak memory, what the solver says."""
        X, L = self._tensors(self.X, self.L, dtype)
        rows: list[dict[str, Any]] = []
        answers = []
        for run in ("first", "second"):
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            method = METHODS[name]()
            try:
                with self._steps(STEPS) as steps:
                    seconds, D = self._time(lambda method=method: method.fit_enhance(X, L))
            except Exception as error:  # the other methods still get their turn
                rows.append({"method": name, "precision": str(dtype)[6:], "run": run, "error": repr(error)[:300]})
                print(rows[-1], flush=True)
                break
            steps["other"] = seconds - sum(steps.values())
            solution = method.solution_
            answers.append(D)
            rows.append(
                {
                    "method": name,
                    "precision": str(dtype)[6:],
                    "run": run,
                    "seconds": seconds,
                    "steps": dict(steps) if name.startswith("LCdr") else {},
                    "peak_GB": torch.cuda.max_memory_allocated() / 1e9 if self.device.type == "cuda" else None,
                    "n_iter": solution.n_iter,
                    "residual": solution.residual,
                    "converged": solution.converged,
                    "info": {k: v for k, v in solution.info.items() if isinstance(v, (int, float, str, dict))},
                }
            )
            print(json.dumps(rows[-1], default=str), flush=True)
        if answers:
            print("the two answers have the same bits:", torch.equal(answers[0], answers[-1]), flush=True)
            if name in self.answers:
                difference = (answers[-1] - self.answers[name]).abs()
                rows[-1]["from_other_precision"] = {
                    "largest": float(difference.max()),
                    "mean": float(difference.mean()),
                }
                print("difference from the other precision:", rows[-1]["from_other_precision"], flush=True)
            self.answers[name] = answers[-1]
        return rows

    def profile(self, name: str, dtype: torch.dtype) -> None:
        """Print the kernels that take most of the time of one run."""
        from torch.profiler import ProfilerActivity
        from torch.profiler import profile as record

        X, L = self._tensors(self.X, self.L, dtype)
        kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self.device.type == "cuda" else [])
        with record(activities=kinds) as found:
            METHODS[name]().fit_enhance(X, L)
            self._wait()
        key = "cuda_time_total" if self.device.type == "cuda" else "cpu_time_total"
        print(
            f"\n{name}\n" + found.key_averages().table(sort_by=key, row_limit=25, max_name_column_width=60), flush=True
        )

    @contextmanager
    def _steps(self, places: dict[str, list[tuple[Any, str]]]) -> Iterator[dict[str, float]]:
        """Seconds spent in each of the places while this lasts."""
        spent = dict.fromkeys(places, 0.0)
        originals = []

        def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                seconds, value = self._time(lambda: function(*args, **kwargs))
                spent[step] += seconds
                return value

            return call

        for step, functions in places.items():
            for owner, attribute in functions:
                originals.append((owner, attribute, getattr(owner, attribute)))
                setattr(owner, attribute, timed(step, getattr(owner, attribute)))
        try:
            yield spent
        finally:
            for owner, attribute, function in originals:
                setattr(owner, attribute, function)

    def _tensors(self, X: np.ndarray, L: np.ndarray, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.as_tensor(X, dtype=dtype, device=self.device), torch.as_tensor(L, dtype=dtype, device=self.device)

    def _time(self, work: Callable[[], Any]) -> tuple[float, Any]:
        self._wait()
        before = time.perf_counter()
        value = work()
        self._wait()
        return time.perf_counter() - before, value

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _write(out: Path, report: dict[str, Any]) -> None:
    (out / "gpu.json").write_text(json.dumps(report, indent=1, default=str) + "\n")
    (out / "gpu.md").write_text(_markdown(report))


def _markdown(report: dict[str, Any]) -> str:
    machine = report["machine"]
    lines = [
        f"{machine['device']}, torch {machine['torch']}; {report['rows']:,} rows, d = {FEATURES}, q = {LABELS}.",
        "",
    ]
    lines += ["| method (3000 rows, float64) | largest difference from NumPy | mean | second run |", "|---" * 4 + "|"]
    for r in report["agreement"]:
        again = "the same bits" if r["same bits"] else "differs"
        lines.append(f"| {r['method']} | {r['largest']:.1e} | {r['mean']:.1e} | {again} |")
    if found := report.get("search"):
        lines += ["", "| neighbour search, k = 10 | |", "|---|---|"]
        lines += [f"| {key} | {value:.4g} |" for key, value in found.items()]
    if sizes := report.get("sizes"):
        lines += [
            "",
            "| Inversion, float32: rows x labels | first, s | warm, s | where | host's processors, s | floors of its "
            "sweeps: bytes, operations, s |",
        ]
        lines += ["|---" * 6 + "|"]
        for r in sizes:
            head = f"| {r['rows']:,} x {r['labels']} | {r['first']:.2f} | {r['warm']:.2f}"
            host = f"{r['host']:.2f}" if "host" in r else ""
            lines.append(f"{head} | {r['on']} | {host} | {r['bytes_s']:.3f}, {r['operations_s']:.3f} |")
    if votes := report.get("votes"):
        lines += ["", "| votes, three on each item | seconds | regressions | chain | rows | kinds of items | KL |"]
        lines += ["|---" * 7 + "|"]
        for r in votes:
            shares = " | ".join(f"{r[step]:.2f}" for step in ("seconds", *VOTES_STEPS))
            lines.append(f"| {r['run']} | {shares} | {r['kinds']} | {r['KL']:.4f} |")
    if fresh := report.get("fresh"):
        lines += ["", "First and second fit to 6,000 x 32 in new processes, kernels on disk, s: "]
        lines[-1] += ", ".join(f"{first:.2f} ({second:.2f})" for first, second in fresh) + "."
    if runs := [r for r in report.get("runs", []) if "seconds" in r]:
        steps = [*STEPS, "other"]
        lines += ["", f"| method | precision | run | seconds | {' | '.join(steps)} | peak GB | steps of the solver |"]
        lines += ["|---" * (6 + len(steps)) + "|"]
        for r in runs:
            shares = " | ".join(f"{r['steps'][s]:.2f}" if r["steps"] else "" for s in steps)
            peak = "" if r["peak_GB"] is None else f"{r['peak_GB']:.1f}"
            head = f"| {r['method']} | {r['precision']} | {r['run']} | {r['seconds']:.2f} | {shares}"
            lines.append(f"{head} | {peak} | {r['n_iter']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

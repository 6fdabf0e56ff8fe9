"""Does a rehearsal, which sees no truth, say what the truth says? Order of methods, best parameters, expected KL.

    CONTONE_DATA=... python benchmarks/rehearsal.py --out benchmarks/results/rehearsal.json --seeds 3 --jobs 16
    CONTONE_DATA=... python benchmarks/rehearsal.py --out ... --sets SJAFFE Yeast_dtt --seeds 1 --replicates 2
    python benchmarks/rehearsal.py --out benchmarks/results/rehearsal.json --summary      # only: what the file says

Every set and seed gives one task for the order (all methods at their defaults, rehearsed and true KL) and one per tuned
method (default, rehearsed and oracle parameters from the same candidates). Finished tasks are in the file; an
interrupted run goes on where it stopped. Truth is used to score answers, and in the rows called oracle.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from functools import lru_cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.io import loadmat
from scipy.stats import spearmanr
from sklearn.base import clone

import contone
from contone import CumulativeMass, Inversion, Rehearsal, evaluate
from contone.check.search import best_temperature, candidates, search
from contone.check.trials import shared_memory, try_all, try_once
from contone.enhance.tempered import temper
from contone.limits import limit, recovered
from contone.runtime.files import replacing

HERE = Path(__file__).parent
YEAST = ["spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo"]
SETS = [*(f"Yeast_{name}" for name in YEAST), "SJAFFE", "Movie"]
TUNED = ["Temperature", "GLLE", "LESC", "LP", "KM", "FCM", "LEMLL", "LCdr"]
NETWORKS = {"LEVI", "LIBLE", "ConLE"}
"""Methods that train networks: not ordered here, for their time."""


@lru_cache(maxsize=2)
def load(stem: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    content = loadmat(Path(os.environ["CONTONE_DATA"]) / f"{stem}.mat")
    X, D = (np.asarray(content[key], dtype=float) for key in ("features", "labels"))
    D /= D.sum(axis=1, keepdims=True)
    return X, D, CumulativeMass().apply(D).astype(float)


@lru_cache(maxsize=2)
def rehearse(stem: str, seed: int, n_replicates: int, max_rows: int, n_graded: int) -> Rehearsal:
    X, D, L = load(stem)
    degrees = None
    if n_graded:
        degrees = np.full_like(D, np.nan)
        rows = np.random.default_rng(seed).choice(len(D), n_graded, replace=False)
        degrees[rows] = D[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Rehearsal(
            X,
            L,
            Inversion(random_state=seed),
            degrees=degrees,
            n_replicates=n_replicates,
            max_rows=max_rows,
            random_state=seed,
        )


def kl(D: np.ndarray, answer: np.ndarray | None) -> float:
    return math.nan if answer is None else float(evaluate(D, answer).kl)


def order_task(stem: str, seed: int, options: argparse.Namespace) -> dict:
    """Every method at its defaults: KL on the replicates, and the true one."""
    X, D, L = load(stem)
    rehearsal = rehearse(stem, seed, options.replicates, options.max_rows, options.graded)
    found = {}
    for cls in contone.enhance.methods().values():
        if cls.__name__ in NETWORKS:
            continue
        method = cls(random_state=seed) if "random_state" in cls().get_params() else cls()
        trials = try_all(method, rehearsal, None)
        rehearsed = [kl(r.distributions, t.answer) for r, t in zip(rehearsal.replicates, trials, strict=True)]
        true = try_once(method, X, L)
        found[cls.__name__] = {
            "rehearsed": rehearsed, "true": kl(D, true.answer), "error": true.error or trials[0].error,
            "seconds": true.seconds,
        }  # fmt: skip
    limits = [kl(r.distributions, A) for r, A in zip(rehearsal.replicates, rehearsal.limits, strict=True)]
    return {
        "methods": found,
        "limits": limits,
        "spread": rehearsal.model.spread_,
        "spread_deviation": rehearsal.model.spread_deviation_,
        "misfit": rehearsal.misfit,
        "warnings": list(rehearsal.warnings),
    }


def tuned_task(stem: str, seed: int, name: str, options: argparse.Namespace) -> dict:
    """One method: default, rehearsed and oracle parameters, the two latter from the same candidates."""
    X, D, L = load(stem)
    rehearsal = rehearse(stem, seed, options.replicates, options.max_rows, options.graded)
    method = getattr(contone, name)()
    found = search(method, rehearsal, n_iter=options.candidates, seed=seed)
    oracle = {"kl": math.inf}
    with shared_memory(method) as able:
        for params in candidates(method, type(method).SEARCH, options.candidates, seed):
            trial = try_once(clone(able).set_params(**params), X, L)
            if trial.answer is None:
                continue
            t, _ = best_temperature([D], [trial.answer])
            here = kl(D, temper(trial.answer, t))
            if not params:
                default = kl(D, trial.answer)
            if here < oracle["kl"]:
                oracle = {"kl": here, "params": params, "temperature": t}
            if params == found.best.params:
                tuned = kl(D, temper(trial.answer, found.best.temperature))
    return {
        "default": default, "rehearsed": tuned, "oracle": oracle["kl"],
        "rehearsed_params": {**found.best.params, "temperature": found.best.temperature},
        "oracle_params": {**oracle["params"], "temperature": oracle["temperature"]},
        "expected_relative_kl": found.best.score,
    }  # fmt: skip


def limit_task(stem: str) -> dict:
    X, D, L = load(stem)
    known = HERE / "results" / "inversion.json"
    if known.exists() and stem in (sets := json.loads(known.read_text())["sets"]):
        best = sets[stem]["kl_limit"]
    else:
        best = min(limit(X, L, D).candidates.values())
    return {"limit": best, "uniform": kl(D, np.full_like(D, 1.0 / D.shape[1])), "n": len(D), "q": D.shape[1]}


def run(key: str, options: argparse.Namespace) -> tuple[str, dict]:
    stem, *rest = key.split("/")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rest[0] == "limit":
            record = limit_task(stem)
        elif rest[1] == "order":
            record = order_task(stem, int(rest[0]), options)
        else:
            record = tuned_task(stem, int(rest[0]), rest[1], options)
    return key, {**record, "task_seconds": time.perf_counter() - start}


def keys(options: argparse.Namespace) -> list[str]:
    seeds = range(options.seeds)
    large_first = sorted(options.sets, key=lambda stem: stem != "Movie")
    found = [f"{stem}/limit" for stem in large_first]
    found += [f"{stem}/{seed}/order" for stem in large_first for seed in seeds]
    return found + [f"{stem}/{seed}/{name}" for stem in large_first for seed in seeds for name in options.methods]


def summarise(tasks: dict) -> dict:
    """The figures that a rehearsal is judged by, from finished tasks."""
    sets = [key.split("/")[0] for key in tasks if key.endswith("/limit")]
    orders = {key: record for key, record in tasks.items() if key.endswith("/order")}
    spearman, ratios = {}, {}
    for key, record in orders.items():
        rows = {n: r for n, r in record["methods"].items() if not r["error"] and math.isfinite(r["true"])}
        expected = {n: float(np.mean(r["rehearsed"])) for n, r in rows.items()}
        rows = {n: r for n, r in rows.items() if math.isfinite(expected[n])}
        truth = [r["true"] for r in rows.values()]
        spearman[key.removesuffix("/order")] = float(spearmanr([expected[n] for n in rows], truth).statistic)
        ratios[key.removesuffix("/order")] = {n: expected[n] / r["true"] for n, r in rows.items()}
    shares: dict[str, dict[str, dict[str, float]]] = {}
    for key, record in tasks.items():
        parts = key.split("/")
        if len(parts) == 3 and parts[2] != "order" and f"{parts[0]}/limit" in tasks:
            ends = tasks[f"{parts[0]}/limit"]
            share = {
                k: recovered(record[k], ends["uniform"], ends["limit"]) for k in ("default", "rehearsed", "oracle")
            }
            shares.setdefault(parts[2], {})[f"{parts[0]}/{parts[1]}"] = share
    gaps = {
        name: {
            stem: float(np.mean([s["oracle"] - s["rehearsed"] for k, s in rows.items() if k.startswith(f"{stem}/")]))
            for stem in sets
            if any(k.startswith(f"{stem}/") for k in rows)
        }
        for name, rows in shares.items()
    }
    flat = [max(r, 1 / r) for rows in ratios.values() for r in rows.values() if r > 0]
    return {
        "spearman": spearman,
        "spearman_median": float(np.median(list(spearman.values()))) if spearman else None,
        "spearman_least": min(spearman.values(), default=None),
        "kl_factor_median": float(np.median(flat)) if flat else None,
        "shares": shares,
        "gap_mean": {name: float(np.mean(list(g.values()))) for name, g in gaps.items()},
        "gaps_over_10": {name: {s: v for s, v in g.items() if v > 0.10} for name, g in gaps.items()},
    }


def table(tasks: dict) -> str:
    """Recovered shares in per cent, default / rehearsed / oracle, means over seeds; one row per set."""
    summary = summarise(tasks)
    names = list(summary["shares"])
    lines = [f"| set | Spearman | {' | '.join(names)} | Inversion |", "|---" * (len(names) + 3) + "|"]
    for stem in [key.split("/")[0] for key in tasks if key.endswith("/limit")]:
        rho = [v for k, v in summary["spearman"].items() if k.startswith(f"{stem}/")]
        cells = [f"{np.mean(rho):.2f}" if rho else ""]
        for name in names:
            found = [s for k, s in summary["shares"][name].items() if k.startswith(f"{stem}/")]
            means = [100 * np.mean([s[k] for s in found]) for k in ("default", "rehearsed", "oracle")] if found else []
            cells.append(" / ".join(f"{m:.0f}" for m in means))
        ends, own = (
            tasks[f"{stem}/limit"],
            [
                record["methods"]["Inversion"]["true"]
                for key, record in tasks.items()
                if key.startswith(f"{stem}/") and key.endswith("/order")
            ],
        )
        shares = [recovered(value, ends["uniform"], ends["limit"]) for value in own]
        cells.append(f"{100 * np.mean(shares):.0f}" if shares else "")
        lines.append(f"| {stem.removeprefix('Yeast_')} | {' | '.join(cells)} |")
    gaps = [f"{100 * summary['gap_mean'][name]:.1f}" for name in names]
    lines.append(f"| behind the oracle, mean | | {' | '.join(gaps)} | |")
    return "\n".join(lines)


def fill(tasks: dict) -> None:
    """Put the numbers into docs/fair-comparison.md, between its markers."""
    page, found = HERE.parent / "docs" / "fair-comparison.md", summarise(tasks)
    seeds = len({key.split("/")[1] for key in tasks if key.count("/") == 2})
    behind = [
        f"{name} on {stem.removeprefix('Yeast_')} ({100 * gap:.0f})"
        for name, gaps in found["gaps_over_10"].items()
        for stem, gap in gaps.items()
    ]
    lines = [
        table(tasks),
        "",
        f"{seeds} seed{'s' if seeds > 1 else ''}. Spearman: median {found['spearman_median']:.2f}, least "
        f"{found['spearman_least']:.2f}. Expected KL against the actual, over methods and sets: a factor of "
        f"{found['kl_factor_median']:.2f} in the median. More than ten points behind the oracle: "
        f"{', '.join(sorted(behind)) or 'none'}.",
    ]
    before, rest = page.read_text().split("<!-- numbers -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    page.write_text(before + "<!-- numbers -->\n" + "\n".join(lines) + "\n<!-- end -->" + after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=TUNED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--max-rows", type=int, default=3000)
    parser.add_argument("--graded", type=int, default=0, help="rows whose true degrees the rehearsal's model is told")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--fill", action="store_true", help="put the numbers into docs/fair-comparison.md")
    options = parser.parse_args()
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"tasks": {}}
    tasks = stored["tasks"]
    todo = [] if options.summary else [key for key in keys(options) if key not in tasks]
    start = time.perf_counter()
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for done, (key, record) in enumerate(work(delayed(_safely)(key, options) for key in todo), 1):
        if "failed" not in record:
            tasks[key] = record
        spent = time.perf_counter() - start
        left = spent / done * (len(todo) - done)
        print(
            f"{done}/{len(todo)}  {key}  {record.get('failed', '')}  {spent:.0f} s, about {left:.0f} s left", flush=True
        )
        settings = {
            k: v for k, v in vars(options).items() if k in ("replicates", "candidates", "max_rows", "seeds", "graded")
        }
        content = {"settings": settings, "tasks": tasks, "summary": summarise(tasks)}
        with replacing(options.out) as temporary:
            temporary.write_text(json.dumps(content, indent=1))
    if options.fill:
        fill(tasks)
    print(table(tasks))
    print(json.dumps({k: v for k, v in summarise(tasks).items() if k not in ("shares",)}, indent=1))


def _safely(key: str, options: argparse.Namespace) -> tuple[str, dict]:
    try:
        return run(key, options)
    except Exception as error:  # one task must not end the others; it is tried again by the next run
        return key, {"failed": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()

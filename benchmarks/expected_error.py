"""Is the error that Inversion expects of itself the error it makes? On sets whose truth is known.

    CONTONE_DATA=... python benchmarks/expected_error.py --jobs 12 --output benchmarks/results/expected_error.json

For every set and seed: expected KL and its 90 % interval (no truth used), the actual KL, their ratio, whether the
actual one lies in the interval, and how well the rows are ordered (Spearman). `plain` is the estimate at the fitted
parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.io import loadmat
from scipy.stats import spearmanr

from contone import CumulativeMass, Inversion
from contone.numerics.simplex import kl_divergence

YEAST = ["spoem", "alpha", "spo5", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo"]
SETS = [*(f"Yeast_{name}" for name in YEAST), "SJAFFE", "Movie"]
RATIOS = (0.6, 1.6)
"""Where the ratio of expected to actual error should lie."""


def assess(stem: str, seed: int) -> dict:
    """One set, one seed."""
    warnings.simplefilter("ignore")
    content = loadmat(Path(os.environ["CONTONE_DATA"]) / f"{stem}.mat")
    X, D = (np.asarray(content[key], dtype=float) for key in ("features", "labels"))
    D /= D.sum(axis=1, keepdims=True)
    L = CumulativeMass().apply(D).astype(float)
    start = time.process_time()
    method = Inversion(random_state=seed, n_samples=20).fit(X, L)
    fitted = time.process_time()
    found, answer = method.expected_error_, method.label_distributions_
    done = time.process_time()
    draws = method.samples_
    plain = np.mean([np.mean(np.sum(d * (np.log(np.maximum(d, 1e-300)) - np.log(answer)), axis=1)) for d in draws])
    actual = kl_divergence(D, answer)
    return {
        "set": stem, "seed": seed, "expected": found.mean, "lower": found.lower, "upper": found.upper,
        "plain": float(plain), "actual": float(actual.mean()), "ratio": found.mean / float(actual.mean()),
        "inside": bool(found.lower <= actual.mean() <= found.upper),
        "rows": float(spearmanr(found.rows, actual).statistic),
        "fit_seconds": fitted - start, "seconds": done - fitted,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    cells = [(stem, seed) for stem in arguments.sets for seed in range(arguments.seeds)]
    rows = Parallel(n_jobs=arguments.jobs)(delayed(assess)(*cell) for cell in cells)
    first = [r for r in rows if r["seed"] == 0]
    result = {
        "rows": rows,
        "inside": sum(r["inside"] for r in first),
        "ratio_within": sum(RATIOS[0] <= r["ratio"] <= RATIOS[1] for r in first),
        "of": len(first),
    }
    for r in rows:
        print(
            f"{r['set']:12} {r['seed']} expected {r['expected']:.4f} [{r['lower']:.4f}, {r['upper']:.4f}] "
            f"actual {r['actual']:.4f} ratio {r['ratio']:.2f} plain {r['plain'] / r['actual']:.2f} "
            f"inside {r['inside']} rows {r['rows']:.2f} {r['fit_seconds']:.1f} s + {r['seconds']:.1f} s"
        )
    print(f"inside {result['inside']} of {result['of']}; ratio within {result['ratio_within']} of {result['of']}")
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""Boosting on degrees: the objectives of `contone.train` against weighted copies of the rows, one process each.

    python benchmarks/train.py [--rows 100000 --labels 40 --rounds 3] [--out benchmarks/results]

Prints CPU seconds, peak memory, and how far the two answers are apart in the mean (bins are
chosen from a sample of the rows or of the copies, so that single thresholds differ on large data; the tests hold small
data to the same trees).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.special import softmax

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

FEATURES = 10


def data(n: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 10) and degrees (n, q) that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    return X, softmax(X @ rng.normal(size=(FEATURES, q)) + rng.normal(size=(n, q)), axis=1)


def lightgbm_answer(X: np.ndarray, D: np.ndarray, rounds: int, *, copied: bool) -> np.ndarray:
    """Degrees of the first rows by LightGBM."""
    import lightgbm

    from contone import weighted_rows
    from contone.train import lightgbm_objective

    how = {"num_class": D.shape[1], "verbose": -1, "boost_from_average": False, "num_threads": 1, "min_data_in_leaf": 0}
    how |= {"min_sum_hessian_in_leaf": 10.1, "bin_construct_sample_cnt": 10**8}
    if copied:
        rows = weighted_rows(X, D)
        train = lightgbm.Dataset(rows.X, rows.y, weight=rows.sample_weight)
        return lightgbm.train({**how, "objective": "multiclass"}, train, rounds).predict(X[:1000])
    train = lightgbm.Dataset(X, D.argmax(axis=1))
    return softmax(lightgbm.train({**how, "objective": lightgbm_objective(D)}, train, rounds).predict(X[:1000]), axis=1)


def xgboost_answer(X: np.ndarray, D: np.ndarray, rounds: int, *, copied: bool) -> np.ndarray:
    """The same by XGBoost."""
    import xgboost

    from contone import weighted_rows
    from contone.train import xgboost_objective

    how = {"num_class": D.shape[1], "nthread": 1, "base_score": 0.0, "max_depth": 5, "min_child_weight": 10.1}
    some = xgboost.DMatrix(X[:1000])
    if copied:
        rows = weighted_rows(X, D)
        train = xgboost.DMatrix(rows.X, rows.y, weight=rows.sample_weight)
        return xgboost.train({**how, "objective": "multi:softprob"}, train, rounds).predict(some)
    booster = xgboost.train(how, xgboost.DMatrix(X, D.argmax(axis=1)), rounds, obj=xgboost_objective(D))
    return softmax(booster.predict(some, output_margin=True), axis=1)


def child(options: argparse.Namespace) -> None:
    """One way, in a process of its own."""
    X, D = data(options.rows, options.labels)
    library, way = options.child.split()
    before = time.process_time()
    answer = {"lightgbm": lightgbm_answer, "xgboost": xgboost_answer}[library](
        X, D, options.rounds, copied=way == "copies"
    )
    seconds = time.process_time() - before
    np.save(options.answer, answer)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": round(seconds, 1), "peak_GB": round(peak, 2)}))


def main() -> None:
    """All ways, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    size = ["--rows", str(options.rows), "--labels", str(options.labels), "--rounds", str(options.rounds)]
    lines = [f"{options.rows:,} rows, {options.labels} labels, {options.rounds} rounds, one thread.", ""]
    lines += ["| library | way | CPU s | peak GB | mean difference |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for library in ("lightgbm", "xgboost"):
            answers = []
            for way in ("objective", "copies"):
                place = f"{folder}/{library}-{way}.npy"
                command = [sys.executable, __file__, *size, "--child", f"{library} {way}", "--answer", place]
                said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                answers.append(np.load(place))
                apart = f"{np.abs(answers[0] - answers[1]).mean():.1e}" if len(answers) == 2 else ""
                lines.append(f"| {library} | {way} | {said['seconds']} | {said['peak_GB']} | {apart} |")
                print(lines[-1], flush=True)
    if options.out:
        (options.out / "train.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

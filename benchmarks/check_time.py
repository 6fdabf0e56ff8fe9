"""How long does `contone.check` take beside the fit that it looks at?

    python benchmarks/check_time.py ../shared/multilabel/CAL500.arff.gz --repeat 3

CPU seconds of a fit with defaults and of its check, the median over repeats, and their ratio: owed at most 2. Tables
are generated ones (500 rows; a sparse text table of 6,000 x 500 with 101 labels; a million rows, of which a fit and a
check take samples) and the files that are named.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from contone import CumulativeMass, Inversion, check, read_table
from contone.numerics.simplex import softmax


def dense(n: int, d: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) and labels (n, q) of a linear model of log degrees."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, q)) / np.sqrt(d) + rng.normal(size=(n, q))
    return X, CumulativeMass().apply(softmax(0.5 * Z))


def text(n: int = 6000, d: int = 500, q: int = 101) -> tuple[np.ndarray, np.ndarray]:
    """Words of a text, some forty of five hundred per row, and the two or three labels that they speak for most."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.08, rng=rng, format="csr").toarray()
    Z = X @ rng.normal(size=(d, q)) + rng.gumbel(size=(n, q))
    return X, CumulativeMass(0.2).apply(softmax(Z))


TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "500 x 10, 5 labels": lambda: dense(500, 10, 5),
    "6,000 x 500 text, 101 labels": text,
    "1,000,000 x 24, 8 labels": lambda: dense(1_000_000, 24, 8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="tables to measure as well")
    parser.add_argument("--only", action="append", default=[], help="a part of the name of a table")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = TABLES | {path.name.split(".")[0]: lambda path=path: _read(path) for path in options.files}
    check(Inversion(), *dense(60, 3, 4))  # compile
    for name, make in tables.items():
        if options.only and not any(part in name for part in options.only):
            continue
        X, L = make()
        fits, checks = [], []
        for _ in range(options.repeat):
            start = time.process_time()
            method = Inversion().fit(X, L)
            fits.append(time.process_time() - start)
            start = time.process_time()
            check(method, X, L)
            checks.append(time.process_time() - start)
        fit, looked = float(np.median(fits)), float(np.median(checks))
        print(f"{name:<32} fit {fit:7.2f} s   check {looked:7.2f} s   ratio {looked / fit:5.2f}", flush=True)


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    problem = read_table(path)
    return np.asarray(problem.X), np.asarray(problem.Y)


if __name__ == "__main__":
    main()

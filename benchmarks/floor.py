"""How far Inversion is from the floor of its own random numbers, as a ratio in one run.

    OMP_NUM_THREADS=1 python benchmarks/floor.py [--rows 1000000]

CPU seconds of a fit to rows with 24 features and 8 labels, over those of drawing as many normal numbers as its 84
sweeps of all rows need (NumPy, single precision). The fit to the sample of 20,000 rows is timed alone as well.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from contone import CumulativeMass, Inversion

FEATURES, LABELS, SWEEPS, BLOCK = 24, 8, 84, 20_000


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, 24) around a bent surface of six dimensions, and labels (n, 8) that vary along it."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n, 6))
    X = np.tanh(latent @ rng.standard_normal((6, FEATURES))) + 0.2 * rng.standard_normal((n, FEATURES))
    E = np.exp(0.5 * latent @ rng.standard_normal((6, LABELS)) + 0.3 * rng.standard_normal((n, LABELS)))
    return X, CumulativeMass(0.5).apply(E / E.sum(axis=1, keepdims=True)).astype(float)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def draw(n: int) -> None:
    """The normal numbers of all sweeps, a block of rows at a time."""
    rng = np.random.default_rng(0)
    for _ in range(SWEEPS):
        for start in range(0, n, BLOCK):
            rng.standard_normal((LABELS, min(BLOCK, n - start)), dtype=np.float32)


def main() -> None:
    """Time both, the floor before and after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    X, L = problem(n)
    Inversion().fit_enhance(X[:1500], L[:1500])  # imports and compilation
    floors = [cpu_seconds(lambda: draw(n))]
    sample = cpu_seconds(lambda: Inversion().fit_enhance(X[:BLOCK], L[:BLOCK]))
    whole = cpu_seconds(lambda: Inversion().fit_enhance(X, L))
    floors.append(cpu_seconds(lambda: draw(n)))
    floor = float(np.mean(floors))
    print(f"{n:,} rows: {whole:.1f} CPU s, {sample:.1f} of them for the sample; floor {floor:.2f}")
    print(f"ratio: {whole / floor:.1f}")
    print(f"without the sample: {(whole - sample) / floor:.1f}")


if __name__ == "__main__":
    main()

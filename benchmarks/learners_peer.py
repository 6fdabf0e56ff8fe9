"""PyLDL's side of the learners' benchmark; run by its own interpreter, without contone.

python learners_peer.py problem.npz SEED REPEATS ITERATIONS prints one JSON line: CPU seconds and KL of both solvers.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from pyldl.algorithms import SA_BFGS, SA_IIS


def measure(algorithm: Any, X: np.ndarray, D: np.ndarray, seed: int, repeats: int, iterations: int) -> dict[str, float]:
    """The least CPU time of some fits from the start of that seed, and the mean KL(D || P) on the training rows."""
    seconds = []
    for _ in range(repeats):
        np.random.seed(seed)  # noqa: NPY002 (the peer draws its start from the global generator)
        began = time.process_time()
        model = algorithm().fit(X, D, max_iterations=iterations)
        seconds.append(time.process_time() - began)
    P, positive = model.predict(X), D > 0
    return {"seconds": min(seconds), "kl": float(np.sum(D[positive] * np.log(D[positive] / P[positive])) / len(D))}


if __name__ == "__main__":
    path, seed, repeats, iterations = sys.argv[1], *map(int, sys.argv[2:])
    problem = np.load(path)
    X, D = problem["X"], problem["D"]
    result = {
        "version": version("python-ldl"),
        "lbfgs": measure(SA_BFGS, X, D, seed, repeats, 500),
        "iis": measure(SA_IIS, X, D, seed, 1, iterations),
    }
    print(json.dumps(result))

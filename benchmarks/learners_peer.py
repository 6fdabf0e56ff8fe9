"""PyLDL's side of the learners' benchmark; run by its own interpreter, without contone.

python learners_peer.py problem.npz SEED REPEATS ITERATIONS prints one JSON line: CPU seconds and KL of both solvers.
python learners_peer.py problem.npz SEED NAME does so for one other learner, with its defaults, fitted to X and D and
applied to the rows T.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from pyldl import algorithms
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


def measure_other(name: str, X: np.ndarray, D: np.ndarray, T: np.ndarray, seed: int) -> dict[str, Any]:
    """CPU seconds of fit and predict, and the prediction for T."""
    np.random.seed(seed)  # noqa: NPY002
    algorithm = getattr(algorithms, name)
    algorithm().fit(X[:50], D[:50]).predict(T[:5])  # imports and the like
    began = time.process_time()
    P = np.asarray(algorithm().fit(X, D).predict(T), dtype=float)
    return {"seconds": time.process_time() - began, "prediction": P.tolist()}


if __name__ == "__main__":
    problem = np.load(sys.argv[1])
    X, D = problem["X"], problem["D"]
    if not sys.argv[3].isdigit():
        print(json.dumps(measure_other(sys.argv[3], X, D, problem["T"], int(sys.argv[2]))))
        sys.exit()
    seed, repeats, iterations = map(int, sys.argv[2:])
    result = {
        "version": version("python-ldl"),
        "lbfgs": measure(SA_BFGS, X, D, seed, repeats, 500),
        "iis": measure(SA_IIS, X, D, seed, 1, iterations),
    }
    print(json.dumps(result))

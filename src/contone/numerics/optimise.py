"""Minimisers of a smooth function of one array: L-BFGS for the minimum, Adam for those who want its path.

Several parameters become one array by `join`, and are told apart again by `split`.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from contone.numerics.solution import Solution
from contone.typing import Matrix

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""W to the objective's value and its gradient, which has the shape of W."""


def lbfgs(
    objective: Objective, start: Matrix, *, tol: float, max_iter: int, n_pairs: int = 10, min_decrease: float = 1e-14
) -> Solution:
    """Minimise by SciPy's L-BFGS from `start`; the residual is the largest entry of the gradient.

    It counts as converged when the gradient is below `tol`, or when no step lowers the objective by more than
    `min_decrease` (relative): at a kink (ReLU) the gradient does not vanish. `n_pairs` is what it remembers.
    """

    def flat(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(w.reshape(start.shape))
        return value, gradient.ravel()

    steps = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxls": 40}
    options = {**steps, "maxcor": n_pairs, "gtol": tol, "ftol": min_decrease}
    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    residual = float(np.max(np.abs(found.jac), initial=0.0))
    is_done = found.status != 1  # which is: out of iterations
    return Solution(found.x.reshape(start.shape), float(found.fun), residual, int(found.nit), is_done)


def adam(objective: Objective, start: np.ndarray, *, learning_rate: float, max_iter: int) -> Solution:
    """Adam (Kingma and Ba, ICLR 2015): steps along the mean gradient, divided by the root of its mean square.

    Its fixed number of steps is part of a model that is trained by it, so that the answer always counts as converged;
    the residual is the largest entry of the running mean of the gradient, in which noise is averaged out. An
    `objective` that draws noise at every call gives stochastic descent.
    """
    w, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    value = float("nan")
    for step in range(1, max_iter + 1):
        value, gradient = objective(w)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        root = np.sqrt(square / (1.0 - 0.999**step)) + 1e-8
        w = w - learning_rate / (1.0 - 0.9**step) * mean / root
    return Solution(value=w, objective=value, residual=float(np.max(np.abs(mean), initial=0.0)), n_iter=max_iter)


def join(parts: Sequence[np.ndarray | float]) -> np.ndarray:
    """Arrays of any shapes, and numbers, as one vector."""
    return np.concatenate([np.ravel(part) for part in parts])


def split(w: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """The arrays of these shapes that `join` made a vector of, as views."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(w, ends[:-1]), shapes, strict=True)]

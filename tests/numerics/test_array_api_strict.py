"""The pure functions of numerics/ keep to the array API standard and to the Protocols of backends/.

array-api-strict has nothing beyond the standard and refuses to be mixed with NumPy. With a backend of a few lines for
it, the functions give NumPy's answers in the same type of array: this is what a fourth kind of array has to bring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from scipy import special

from contone import backends
from contone.backends.numpy import Backend
from contone.numerics import eigen, kernel, lanczos, linear, scaling, simplex, truncated


class StrictBackend(Backend):
    """What the functions below need of a kind of array beyond the standard."""

    name = "strict"

    def like(self, A: Any, model: Any) -> Any:
        return strict.asarray(np.asarray(A), dtype=model.dtype)

    def row_maxima(self, A: Any) -> Any:
        return strict.max(A, axis=-1)

    def normal_distribution(self) -> Any:
        return tuple(
            lambda x, function=function: strict.asarray(function(np.asarray(x)))
            for function in (special.ndtr, special.ndtri)
        )


rng = np.random.default_rng(0)
A = rng.normal(size=(12, 4))
X = rng.normal(size=(12, 3))
P = rng.dirichlet(np.ones(4), size=12)
Q = rng.dirichlet(np.ones(4), size=12)
MASK = A > -0.5
MASK[:, 0] = True
SQUARE = X.T @ X + 0.1 * np.eye(3)
LOWER = np.array([-np.inf, -1.0, 0.5, 30.0, -40.0, 0.0])
UPPER = np.array([0.0, 1.0, np.inf, 31.0, -35.0, np.inf])
U = np.array([0.1, 0.5, 0.9, 0.3, 0.7, 0.5])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (simplex.softmax, (A,)),
    "normalise_rows": (simplex.normalise_rows, (np.vstack([P, np.zeros((1, 4))]),)),
    "row_sums": (simplex.row_sums, (A,)),
    "row_maxima": (simplex.row_maxima, (A,)),
    "project_masked_simplex, in closed form": (simplex.project_masked_simplex, (P, MASK)),
    "project_masked_simplex, by sorting": (simplex.project_masked_simplex, (3 * A, MASK)),
    "kl_divergence": (simplex.kl_divergence, (P, np.where(Q < 0.05, 0.0, Q))),
    "column_inner": (linear.column_inner, (A, A)),
    "conjugate_gradient": (lambda S, B: linear.conjugate_gradient(lambda V: S @ V, B).value, (SQUARE, X.T @ A)),
    "conjugate_gradient, preconditioned": (
        lambda S, B, d: linear.conjugate_gradient(lambda V: S @ V, B, diagonal=d).value,
        (SQUARE, X.T @ A, np.diag(SQUARE).copy()),
    ),
    "gaussian_kernel": (lambda X, Y: kernel.gaussian_kernel(X, Y, 0.7), (X, X[:5])),
    "gaussian_matrix": (lambda X: kernel.gaussian_matrix(X, 0.7), (X,)),
    "gaussian_matrix, no self-loops": (lambda X: kernel.gaussian_matrix(X, 0.7, zero_diagonal=True), (X,)),
    "gaussian_operator, kept": (lambda X, V: kernel.gaussian_operator(X, 0.7)(V), (X, A)),
    "gaussian_operator, by tiles": (lambda X, V: kernel.gaussian_operator(X, 0.7, keep_rows=0, tile=5)(V), (X, A)),
    "mean_pairwise_distance": (lambda X: kernel.mean_pairwise_distance(X, tile=5), (X,)),
    "knn_width": (kernel.knn_width, (np.sort(np.abs(A), axis=1),)),
    "whitening": (lambda B: (lambda K: K.T @ B @ K)(eigen.whitening(B)), (SQUARE,)),
    "fix_signs": (eigen.fix_signs, (A,)),
    "thin_generalised_eigen": (
        lambda C, B, G: eigen.thin_generalised_eigen(C, B, G).vectors,
        (X.T @ A, SQUARE, SQUARE),
    ),
    "standardisation": (lambda X: scaling.standardisation(X)(X), (X,)),
    "min_max_scaling": (lambda X: scaling.min_max_scaling(X)(X), (X,)),
    "truncated_normal": (truncated.truncated_normal, (LOWER, UPPER, U)),
    "reflected_normal": (
        lambda lower, upper, u: truncated.reflected_normal(
            lower, upper, truncated.truncated_normal(lower, upper, u), u
        ),
        (LOWER, UPPER, U),
    ),
    "quadrature": (
        lambda S, B: lanczos.quadrature(lambda V: S @ V, B, steps=3)(np.sqrt),
        (SQUARE, X.T @ A),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_that_of_numpy(name, monkeypatch):
    function, arguments = CASES[name]
    expected = function(*(np.copy(a) for a in arguments))
    monkeypatch.setattr(backends, "_NUMPY", StrictBackend())
    given = [strict.asarray(np.copy(a)) for a in arguments]
    answer = function(*given)
    np.testing.assert_allclose(np.asarray(answer), expected, rtol=1e-12, atol=1e-12)
    if name != "quadrature" and not isinstance(expected, float):  # nodes and weights are NumPy's for all
        assert type(answer) is type(given[0])
    for before, after in zip(arguments, given, strict=True):
        np.testing.assert_array_equal(np.asarray(after), before)

"""Baselines: enhancers that use no features. Every score in contone is shown beside theirs.

They matter because on near-uniform data they are hard to beat: on the Yeast sets the uniform distribution equals the
published row of LCdr, and softmax(0.2 L) is ahead of every method in that table.
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.base import Enhancer
from contone.domains import Interval
from contone.numerics.simplex import normalise_rows, softmax
from contone.numerics.solution import Solution
from contone.typing import Array


class Uniform(Enhancer):
    """The same degree for every label: d_j = 1/q, whatever the labels say.

    Examples
    --------
    >>> Uniform().fit_enhance([[0.0], [1.0]], [[1, 0], [0, 1]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    reference = "baseline"
    baseline = True
    kinds = frozenset({"torch", "dask", "sparse"})

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        return Solution(self._enhance(X, L))

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return get_backend(L).map_rows(_uniform, L, columns=L.shape[1])


class Temperature(Enhancer):
    """Softmax of the scaled logical labels: d = softmax(c L), so relevant labels weigh exp(c) times the others.

    Parameters
    ----------
    c : float, default=0.2
        Inverse temperature: 0 gives the uniform distribution, large c gives L / |L|.
    """

    reference = "baseline"
    baseline = True
    kinds = frozenset({"torch", "dask", "sparse"})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"c": [Interval(Real, 0, None, closed="left")]}

    def __init__(self, *, c: float = 0.2) -> None:
        self.c = c

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        return Solution(self._enhance(X, L))

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return get_backend(L).map_rows(partial(_tempered, c=self.c), L, columns=L.shape[1])


class Logical(Enhancer):
    """The labels themselves, shared equally: d = L / |L|. A confidence matrix comes back unchanged."""

    reference = "baseline"
    baseline = True
    kinds = frozenset({"torch", "dask", "sparse"})

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        return Solution(self._enhance(X, L))

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return get_backend(L).map_rows(normalise_rows, L, columns=L.shape[1])


def _uniform(L: np.ndarray) -> Array:
    return array_namespace(L).full_like(L, 1.0 / L.shape[1])


def _tempered(L: np.ndarray, c: float) -> Array:
    return softmax(c * L)

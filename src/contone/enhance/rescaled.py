"""Any enhancer's answer on another scale: d = softmax(t log d^).

What separates many methods on near-uniform data is the scale of their answers, not their shape. t < 1 moves an answer
towards the uniform distribution (t = 0), t > 1 towards its largest degree.
"""

from collections.abc import Callable
from functools import partial

from array_api_compat import array_namespace
from sklearn.base import clone

from contone.base import NOT_NEGATIVE, HasMethods, estimator, parameter
from contone.enhance.graded import Mapped, fit_graded, put_rows
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Array, EstimatorLike
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

FLOOR = 1e-12
"""Degrees below this count as this much: what is 0 stays all but 0 for every t that matters."""


@estimator
class Rescaled(Mapped):
    """Any enhancer with its answer on another scale: D^ = softmax(t log D_enhancer).

    Parameters
    ----------
    enhancer : Enhancer
        The method whose answer is rescaled.
    t : float, default=1.0
        1 leaves the answer as it is, 0 makes it uniform.

    Attributes
    ----------
    enhancer_ : Enhancer
        The fitted method.

    Examples
    --------
    >>> import numpy as np
    >>> from contone import Temperature
    >>> X, L = [[0.0], [1.0]], [[1, 0], [0, 1]]
    >>> one, other = Rescaled(Temperature(c=0.5), t=2.0).fit_enhance(X, L), Temperature(c=1.0).fit_enhance(X, L)
    >>> bool(np.allclose(one, other))
    True
    """

    reference = "this library; docs/fair-comparison.md"
    kinds = frozenset({"torch", "dask", "sparse", "unasked", "unlabelled"})
    unlabelled_get = ""  # the enhancer inside says it
    enhancer: EstimatorLike = parameter(HasMethods(["fit_enhance"]), kw_only=False)
    t: float = parameter(NOT_NEGATIVE, default=1.0)

    def _fit_enhance(self, X: Array, L: Array, known: KnownDegrees = NOTHING_KNOWN) -> Solution:
        # The public call: the method says itself which kinds of arrays it takes, and converts them.
        self.enhancer_ = fit_graded(clone(self.enhancer), X, L, known)
        solution: Solution = self.enhancer_.solution_
        return solution.with_value(put_rows(self._mapped(self.enhancer_.label_distributions_, L), known))

    def _row_map(self) -> Callable[[Array], Array]:
        return partial(rescale, t=self.t)


def rescale(D: Array, t: float) -> Array:
    """softmax(t log D), row by row, of distributions D (n, q)."""
    xp = array_namespace(D)
    return softmax(t * xp.log(xp.clip(D, min=FLOOR)))

"""What enhancers that stand around others share where the degrees of some rows are known."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.metaestimators import available_if

from contone.backends import get_backend, like
from contone.base import Enhancer, InductiveMixin
from contone.typing import Array, Data, EstimatorLike, Record
from contone.validation.degrees import KnownDegrees, check_degrees
from contone.validation.training import Training


class Graded(Enhancer):
    """An enhancer whose fit takes known degrees, and hands them to `_fit_enhance` as `known`, checked."""

    def fit(self, X: Data, Y: Data, degrees: Data = None) -> Self:
        """Recover the distributions of these rows and keep what `predict` and `enhance` need; see `fit_enhance`."""
        self.fit_enhance(X, Y, degrees=degrees)
        return self

    def fit_enhance(self, X: Data, Y: Data, degrees: Data = None) -> Data:
        """Recover the distributions of these rows and return them in the kind of container that Y came in.

        Parameters
        ----------
        X : (n, d)
            Features.
        Y : (n, q)
            Labels, as for every enhancer.
        degrees : (n, q) or None
            Distributions that are known, of some of the rows, NaN in the others; a pandas frame may hold some rows
            only. They come back as they are, and are handed to the method inside where it takes them.
        """
        if degrees is None:
            return super().fit_enhance(X, Y)

        def read(training: Training) -> Record:
            return {"known": check_degrees(degrees, training.border.label_names, training.labels.shape[0], X, Y)}

        return self._check_and_fit(X, Y, read)

    def _inside(self) -> EstimatorLike | None:
        """The method inside: the one that was chosen, or else the one that was given, if there is one."""
        return getattr(self, "best_estimator_", getattr(self, "enhancer", None))

    def takes_levels(self) -> bool:
        """Whether the method inside does."""
        inside = self._inside()
        return inside is not None and bool(inside.takes_levels())

    @available_if(lambda self: hasattr(self._inside(), "predict"))
    def predict(self, X: Data) -> Data:
        """Label distributions (m, q) of new rows, where the method predicts; a frame in gives a frame out."""
        return InductiveMixin.predict(self, X)

    @available_if(lambda self: hasattr(self._inside(), "enhance"))
    def enhance(self, X: Data, Y: Data) -> Data:
        """Label distributions (m, q) of new rows that have labels, where the method can."""
        return Enhancer.enhance(self, X, Y)


class Mapped(Graded):
    """One that puts every row of the answer of its `enhancer` through a map."""

    enhancer: EstimatorLike

    @abstractmethod
    def _row_map(self) -> Callable[[Array], Array] | None:
        """Rows (m, q) of the answer to rows; None where they stay as they are."""

    def _mapped(self, D: Array, model: Array) -> Array:
        D, row_map = beside(D, model), self._row_map()
        return D if row_map is None else get_backend(D).map_rows(row_map, D, columns=D.shape[1])

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        return self._mapped(self.enhancer_._enhance(X, L), L)

    def _predict(self, X: np.ndarray) -> Array:
        return self._mapped(self.enhancer_._predict(X), X)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        return float(self.enhancer._fit_bytes(n, d, q))


def beside(D: Array, model: Array) -> Array:
    """D in the library of `model`."""
    return D if get_backend(D).name == get_backend(model).name else like(D, model)


def takes_degrees(method: EstimatorLike) -> bool:
    """Whether a method's `fit` takes degrees that are known."""
    return "degrees" in signature(method.fit).parameters


def fit_graded(method: EstimatorLike, X: Array, L: Array, known: KnownDegrees) -> Any:
    """Fit a method to features (n, d) and labels (n, q), and to known degrees where there are any and it takes them."""
    if len(known.rows) == 0 or not takes_degrees(method):
        return method.fit(X, L)
    degrees = np.full(L.shape, np.nan)
    degrees[known.rows] = known.degrees
    return method.fit(X, L, degrees=degrees)


def put_rows(D: Array, known: KnownDegrees) -> Array:
    """D (n, q) with the known rows in their places."""
    if len(known.rows) == 0:
        return D
    backend = get_backend(D)
    return backend.map_rows(partial(_put_rows, known), D, backend.row_numbers(D), columns=D.shape[1])


def _put_rows(known: KnownDegrees, D: Array, number: np.ndarray) -> Array:
    """The same for a block whose rows have these numbers (m, 1)."""
    here = np.isin(known.rows, number[:, 0])
    filled = array_namespace(D).asarray(D, copy=True)
    filled[known.rows[here] - int(number[0, 0])] = like(known.degrees[here], D)
    return filled

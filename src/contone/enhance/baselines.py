"""Baselines: enhancers that use no features. Every score in contone is shown beside theirs.

They matter because on near-uniform data they are hard to beat: on the Yeast sets the uniform distribution equals the
published row of LCdr, and softmax(0.2 L) is ahead of every method in that table.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
from array_api_compat import array_namespace
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from contone.backends import get_backend, to_numpy
from contone.base import NOT_NEGATIVE, Enhancer, estimator, fit_checked, parameter
from contone.measurements import asked_frequencies, fill_unasked
from contone.numerics.simplex import normalise_rows, softmax
from contone.numerics.solution import Solution
from contone.typing import Array
from contone.validation.containers import default_names
from contone.validation.training import silent_rows

LARGEST_C = 30.0
"""Where L / |L| is reached to twelve digits."""


class Baseline(Enhancer):
    """An enhancer that looks at labels only, row by row: what `_of_rows` makes of them, unasked entries filled in."""

    reference = "baseline"
    baseline = True
    kinds = frozenset({"torch", "dask", "sparse", "unasked", "unlabelled"})
    unlabelled_get = "the uniform distribution"

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        self.frequencies_ = asked_frequencies(L)
        return Solution(self._enhance(X, L))

    def _enhance(self, X: np.ndarray, L: np.ndarray) -> Array:
        of_rows = partial(_of_rows, function=self._row_map(), frequencies=self.frequencies_)
        return get_backend(L).map_rows(of_rows, L, columns=L.shape[1])

    @abstractmethod
    def _row_map(self) -> Callable[[Array], Array]:
        """Labels (m, q), with nothing but numbers, to distributions."""


class Uniform(Baseline):
    """The same degree for every label: d_j = 1/q, whatever the labels say.

    Examples
    --------
    >>> Uniform().fit_enhance([[0.0], [1.0]], [[1, 0], [0, 1]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    def _row_map(self) -> Callable[[Array], Array]:
        return partial(_tempered, c=0.0)


@estimator
class Temperature(Baseline):
    """Softmax of the scaled logical labels: d = softmax(c L), so relevant labels weigh exp(c) times the others.

    Parameters
    ----------
    c : float or "auto", default=0.2
        Inverse temperature: 0 gives the uniform distribution, large c gives L / |L|. "auto" is the one with the least
        expected KL under the model of `Inversion` without features, fitted to (at most 20,000 rows of) L.

    Attributes
    ----------
    c_ : float
        The inverse temperature that was used.
    frequencies_ : (q,)
        How often each label is marked where it was asked.

    Notes
    -----
    An unasked entry (NaN) has the log weight c f_j with the frequency f_j of its label: the mean of c l_j over what the
    entry may be, so that it is neither a yes nor a no. A row without any label is uniform.
    """

    c: float | str = parameter(NOT_NEGATIVE, {"auto"}, default=0.2)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        self.c_ = best_inverse_temperature(L) if isinstance(self.c, str) else float(self.c)
        return super()._fit_enhance(X, L)

    def _row_map(self) -> Callable[[Array], Array]:
        return partial(_tempered, c=self.c_)


class Logical(Baseline):
    """The labels themselves, shared equally: d = L / |L|. A confidence matrix comes back unchanged.

    An unasked entry (NaN) counts as much as its label is marked where it was asked; a row without any label is uniform.
    """

    def _row_map(self) -> Callable[[Array], Array]:
        return normalise_rows


def best_inverse_temperature(L: Array) -> float:
    """The c with the least E[KL(D || softmax(c L)) | L], for the model of `Inversion` without features.

    Up to a constant that is sum_i KL(D^_i || softmax(c L_i)) with the posterior mean D^, and convex in c.
    """
    from contone.enhance.inversion import Inversion
    from contone.enhance.inversion.blocks import take_sample

    model = Inversion(features=False)
    some = to_numpy(L if get_backend(L).in_memory else take_sample(L, L, model.max_rows, 0)[1]).astype(np.float64)
    if some.shape[1] == 1:
        return 0.0
    mean = fit_checked(model, np.zeros((len(some), 1)), some, default_names(some.shape[1])).value
    some = _expected(some, asked_frequencies(some))

    def loss(c: float) -> float:
        return float(np.mean(logsumexp(c * some, axis=1) - c * (mean * some).sum(axis=1)))

    return float(minimize_scalar(loss, bounds=(0.0, LARGEST_C), method="bounded").x)


def _tempered(L: Array, c: float) -> Array:
    return softmax(c * L)


def _of_rows(L: Array, function: Callable[[Array], Array], frequencies: np.ndarray) -> Array:
    return function(_expected(L, frequencies))


def _expected(L: Array, frequencies: np.ndarray) -> Array:
    """L (n, q) with frequencies (q,) in place of NaN, and nothing where a row has no label."""
    xp = array_namespace(L)
    return xp.where(silent_rows(L)[:, None], xp.zeros_like(L), fill_unasked(L, frequencies))

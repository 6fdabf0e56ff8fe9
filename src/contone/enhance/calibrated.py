"""Graded rows for any enhancer: a map from its answers to the degrees that are known, shrunk towards no change.

With z^ the centred log of the answer d^ of a row, the map is

    d = softmax(b z^ + c_j + s_j z^_j),

a temperature b, an offset c_j and a slope s_j per label. It minimises, over the m graded rows with degrees g_i,

    q sum_i KL(g_i || d_i)  +  k_b v / 2 (b - 1)^2  +  k / 2 ( |c|^2 + v |s|^2 ),     v = mean of |z^|^2.

q KL is close to half the squared distance of the logarithms where degrees are nearly equal, so k counts rows: the prior
is worth k graded rows that say "no change". This is convex. Which part of it is used is chosen by cross-validation on
the graded rows: no change at all; the temperature alone; or all of it, with k from a grid. Ten rows afford one number;
with a hundred the labels get theirs. The method never sees the degrees itself, so that its answers to graded rows are
as good as those to others.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import clone

from contone.backends import like, to_numpy
from contone.base import HasMethods, estimator, parameter
from contone.enhance.graded import Mapped, beside, put_rows
from contone.numerics.optimise import lbfgs
from contone.numerics.simplex import kl_divergence, softmax
from contone.numerics.solution import Solution
from contone.typing import Array, EstimatorLike
from contone.validation.degrees import NOTHING_KNOWN, KnownDegrees

FLOOR = 1e-4
"""Degrees of an answer below this count as this much: a method's exact zero is no evidence of a factor of 1e12."""
ROWS_OF_TEMPERATURE = 0.1
"""k_b: answers of many methods are off by a factor, so that next to nothing speaks for b = 1."""
STRENGTHS = (math.inf, 100.0, 30.0, 10.0, 3.0, 1.0)
"""Values of k that are tried; infinity leaves the temperature alone."""
N_FOLDS = 10


class LabelMap(NamedTuple):
    """temperature b, offsets (q,) c and slopes (q,) s."""

    temperature: float
    offsets: np.ndarray
    slopes: np.ndarray


@estimator
class Calibrated(Mapped):
    """Any enhancer, its answers brought to the degrees of a few graded rows by a shrunken, cross-validated map.

    Without `degrees` it answers as the enhancer does. `Inversion` takes degrees itself and makes more of them.

    Parameters
    ----------
    enhancer : Enhancer
        The method whose answer is calibrated.

    Attributes
    ----------
    enhancer_ : Enhancer
        The fitted method.
    map_ : LabelMap or None
        The map; None where the graded rows do not bear out any change.
    strength_ : float
        The chosen k: infinity where only the temperature changes, NaN where nothing does.
    error_before_, error_after_ : float
        Mean KL of the graded rows under the enhancer's answer and, cross-validated, under the calibrated one; NaN
        without graded rows.

    Examples
    --------
    >>> from contone import Temperature
    >>> rng = np.random.default_rng(0)
    >>> truth = softmax(rng.normal(size=(60, 3)))
    >>> X, L = rng.normal(size=(60, 2)), (truth > 1 / 3).astype(int)
    >>> known = np.where(np.arange(60)[:, None] < 20, truth, np.nan)
    >>> method = Calibrated(Temperature(c=0.1)).fit(X, L, degrees=known)
    >>> bool(method.error_after_ < 0.7 * method.error_before_)
    True
    """

    reference = "this library; docs/inversion.md"
    kinds = frozenset({"torch", "dask", "sparse"})
    enhancer: EstimatorLike = parameter(HasMethods(["fit_enhance"]), kw_only=False)

    def _fit_enhance(self, X: Array, L: Array, known: KnownDegrees = NOTHING_KNOWN) -> Solution:
        # The public call: the method says itself which kinds of arrays it takes, and converts them.
        self.enhancer_ = clone(self.enhancer).fit(X, L)
        solution: Solution = self.enhancer_.solution_
        D = beside(self.enhancer_.label_distributions_, L)
        self.map_, self.strength_, self.error_before_, self.error_after_ = None, math.nan, math.nan, math.nan
        if len(known.rows) == 0:
            return solution.with_value(D)
        found = choose_map(np.asarray(to_numpy(D[known.rows]), dtype=np.float64), known.degrees)
        self.map_, self.strength_, self.error_before_, self.error_after_ = found
        calibrated = put_rows(self._mapped(D, L), known)
        return solution.with_value(calibrated, graded_rows=len(known.rows), strength=self.strength_)

    def _row_map(self) -> Callable[[Array], Array] | None:
        return None if self.map_ is None else partial(apply_map, self.map_)


def apply_map(found: LabelMap, D: Array) -> Array:
    """The calibrated distributions (n, q) of answers D (n, q)."""
    Z = centred_log(D)
    slopes, offsets = (like(v, D) for v in (found.temperature + found.slopes, found.offsets))
    return softmax(Z * slopes + offsets)


def centred_log(D: Array) -> Array:
    """log d (n, q) less its mean over the labels, degrees below the floor at the floor."""
    xp = array_namespace(D)
    Z = xp.log(xp.clip(D, min=FLOOR))
    return Z - xp.mean(Z, axis=-1, keepdims=True)


class Choice(NamedTuple):
    """The map that cross-validation chooses, its strength, and the mean KL of graded rows before and after."""

    map: LabelMap | None
    strength: float
    before: float
    after: float


def choose_map(answers: np.ndarray, degrees: np.ndarray) -> Choice:
    """The map from answers (m, q) to degrees (m, q), of the strength that predicts held-out rows best."""
    m = len(answers)
    before = float(np.mean(kl_divergence(degrees, np.maximum(answers, FLOOR))))
    if m < 2 or answers.shape[1] < 2:
        return Choice(None, math.nan, before, before)
    fold = np.arange(m) % min(N_FOLDS, m)
    best = Choice(None, math.nan, before, before)
    for strength in STRENGTHS:
        errors = []
        for k in range(fold.max() + 1):
            found = fit_map(answers[fold != k], degrees[fold != k], strength)
            errors.append(kl_divergence(degrees[fold == k], apply_map(found, answers[fold == k])))
        after = float(np.mean(np.concatenate(errors)))
        if after < best.after:
            best = Choice(fit_map(answers, degrees, strength), strength, before, after)
    return best


def fit_map(answers: np.ndarray, degrees: np.ndarray, strength: float) -> LabelMap:
    """The map that minimises the objective at the top for one k."""
    q = answers.shape[1]
    Z = centred_log(answers)
    variance = max(float(np.mean(np.square(Z).sum(axis=1))), 1e-12)
    objective = partial(map_objective, Z=Z, degrees=degrees, variance=variance, strength=strength)
    found = lbfgs(objective, np.zeros(1 + 2 * q), tol=1e-8 * len(Z), max_iter=500)
    return LabelMap(1.0 + float(found.value[0]), *found.value[1:].reshape(2, q))


def map_objective(
    change: np.ndarray, Z: np.ndarray, degrees: np.ndarray, variance: float, strength: float
) -> tuple[float, np.ndarray]:
    """The objective and its gradient in (b - 1, c, s); nothing moves c and s where the strength is infinite."""
    q = Z.shape[1]
    offsets, slopes = change[1:].reshape(2, q)
    R = softmax(Z * (1.0 + change[0] + slopes) + offsets)
    E = q * (R - degrees)
    value = q * float(np.sum(kl_divergence(degrees, R))) + 0.5 * ROWS_OF_TEMPERATURE * variance * float(change[0]) ** 2
    by_temperature = float(np.sum(E * Z)) + ROWS_OF_TEMPERATURE * variance * float(change[0])
    if math.isinf(strength):
        return value, np.append(by_temperature, np.zeros(2 * q))
    value += 0.5 * strength * float(offsets @ offsets + variance * slopes @ slopes)
    by_offsets, by_slopes = E.sum(axis=0) + strength * offsets, (E * Z).sum(axis=0) + strength * variance * slopes
    return value, np.concatenate([[by_temperature], by_offsets, by_slopes])

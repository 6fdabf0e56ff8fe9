"""Parameters of a logistic-normal model with features: their conditional distributions, a start, and the spread.

    z_i = B^T phi_i + e_i,   e_i ~ N(0, Sigma),   d_i = softmax(z_i)

Softmax does not see a common shift, so z, B and Sigma are kept *centred*: z sums to zero over the labels and Sigma has
the null vector 1. Given z, the priors

    Sigma ~ inverse Wishart, centred at a multiple of I - 11^T/q, worth `strength` rows;
    row k of B ~ N(0, theta Sigma) for every feature k but the constant;   theta ~ inverse gamma

are conjugate, and everything depends on z through the sums Phi Phi^T, Phi z and z z^T over rows only.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtri
from scipy.stats import binom

from contone.enhance.inversion.covariance import FEW_LABELS, Covariance, FactorCovariance
from contone.enhance.inversion.unasked import PartialCounts
from contone.exceptions import InputError
from contone.measurements import IntervalRule, Measurement
from contone.typing import Array

FLAT = 1e3
"""Prior variance of the intercept in units of Sigma: large enough to leave it to the data."""
RANGE = (0.02, 12.0)
"""Spreads (root mean square of the centred log degrees) that are considered, from nearly uniform to nearly one-hot."""
LEAST_STRENGTH = 1e-8
"""Least strength of the prior per row of the data: with none at all, a few rows of many labels leave Sigma singular."""
NOTHING = 1e-30
"""Variance that is added where Sigma has an inverse: labels that all rows share may leave none of it."""
NEAR_EDGE = 1.15
"""A spread within this factor of an end of its range is called one at the edge."""
PULL = 2.0
"""Standard deviations from which on the prior of the spread is no longer normal (Huber's function)."""

NEGLIGIBLE = 12.0
"""A spread whose log posterior is this far below the largest one plays no part."""
COARSE, COARSEST, FINEST, SMOOTH = 12, 0.1, 0.002, 0.5
"""Spreads that are looked at first; the largest and the smallest step between the logarithms of those that matter, and
by how much the log posterior may change from one to the next."""


class Parameters(NamedTuple):
    """B (p, q) and Sigma (q, q), both centred, and the variance theta of the rows of B in units of Sigma.

    Sigma is an array; while many labels are sampled, it is a `FactorCovariance`.
    """

    coefficients: np.ndarray
    covariance: Array
    theta: float

    def scaled(self, factor: float) -> "Parameters":
        """The same shape, with z spread `factor` times as wide."""
        return Parameters(self.coefficients * factor, self.covariance * factor**2, self.theta)


def centring(q: int) -> np.ndarray:
    """I - 11^T / q."""
    return np.eye(q) - 1.0 / q


def precision(covariance: Covariance) -> Array:
    """Inverse of the centred Sigma, given its mean variance along the shift as well (any value would do)."""
    if isinstance(covariance, FactorCovariance):
        return covariance.precision()
    q = len(covariance)
    level = np.trace(covariance) / (q * max(q - 1, 1))
    return np.linalg.inv(covariance + level + NOTHING * np.eye(q))


def square_root(covariance: np.ndarray) -> Array:
    """A (q, q) matrix H with H H^T = Sigma, for a Sigma with a null space."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def colour(covariance: Covariance, normals: np.ndarray) -> Array:
    """Standard normal draws (m, q) as draws (m, q) with covariance Sigma."""
    if isinstance(covariance, FactorCovariance):
        return covariance.colour(normals)
    return normals @ square_root(covariance).T


def total_variance(covariance: Covariance) -> float:
    """The trace of the centred Sigma."""
    return covariance.total_variance() if isinstance(covariance, FactorCovariance) else float(np.trace(covariance))


def variance_factor(tail: float) -> float:
    """The variance of t_nu in units of its scale: nu / (nu - 2)."""
    return 1.0 if math.isinf(tail) else tail / (tail - 2.0)


def draw_coefficients(gram: np.ndarray, cross: np.ndarray, current: Parameters, rng: np.random.Generator) -> Array:
    """B (p, q) given z: matrix normal around ridge regression.

    Parameters
    ----------
    gram : (p, p)
        Phi Phi^T; the first feature is the constant.
    cross : (p, q)
        Phi z.
    current : Parameters
        Sigma and theta that it is drawn given.
    rng : Generator
        Source of the draw.
    """
    lower = root_of(gram, ridge(len(gram), current.theta))
    noise = colour(current.covariance, rng.standard_normal(cross.shape))
    return solve_triangular(lower, solve_triangular(lower, cross, lower=True) + noise, lower=True, trans="T")


def root_of(gram: np.ndarray, precisions: np.ndarray) -> Array:
    """The Cholesky factor of Phi Phi^T and the precisions of the prior (p,)."""
    # A product in single precision, or of few rows, has no direction smaller than its rounding.
    least = 4.0 * np.finfo(gram.dtype).eps * np.trace(gram)
    return np.linalg.cholesky(gram + np.diag(np.r_[precisions[0], np.maximum(precisions[1:], least)]))


def ridge(p: int, theta: float) -> np.ndarray:
    """Prior precisions (p,) of the rows of B in units of Sigma^-1, the constant first."""
    precisions = np.full(p, 1.0 / theta)
    precisions[0] = 1.0 / FLAT
    return precisions


def draw_theta(coefficients: np.ndarray, covariance: Covariance, rng: np.random.Generator) -> float:
    """Variance of the coefficients in units of Sigma: how much of the features the labels bear out.

    The prior is inverse gamma with shape 1 and scale 0.1: features of unit total variance explain about a tenth as much
    as is left over, give or take an order of magnitude.
    """
    slopes = coefficients[1:]
    if isinstance(covariance, FactorCovariance):
        size = covariance.precision().centred_square(slopes)
    else:
        inside = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
        size = float(np.einsum("kj,jl,kl->", slopes, inside, slopes))
    shape = 1.0 + 0.5 * (len(covariance) - 1) * len(slopes)
    return (0.1 + 0.5 * size) / rng.standard_gamma(shape)


def covariance_mode(scatter: np.ndarray, n: int, strength: float) -> Array:
    """Sigma (q, q) from the scatter sum_i e_i e_i^T of n centred residuals.

    The prior is worth `strength` rows of equal and unrelated labels with the spread of the scatter itself: it bears on
    the shape of Sigma, not on its size.
    """
    q, strength = len(scatter), max(strength, LEAST_STRENGTH * n)
    spherical = max(np.trace(scatter) / (n * max(q - 1, 1)), 1e-12) * centring(q)
    return (scatter + strength * spherical) / (n + strength)


def moments(counts: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A start for mean (q,) and Sigma (q, q) from how often labels occur and meet, up to a common scale.

    Read each label as a normal variable of variance 1 that passes zero. Its mean is Phi^-1 of the label's frequency;
    two labels have the tetrachoric correlation cos(pi / (1 + w^c)), with their odds ratio w and the exponent c of
    Bonett and Price (2005) for unequal margins.

    Parameters
    ----------
    counts : (q, q)
        L^T L: how many of n rows have both labels; the diagonal holds the frequencies.
    n : int
        Number of rows.
    """
    q = len(counts)
    frequency = np.diag(counts)
    # Half a count in each cell keeps labels that always or never meet finite.
    both = counts + 0.5
    first, second = frequency[:, None] - counts + 0.5, frequency[None, :] - counts + 0.5
    neither = n - frequency[:, None] - frequency[None, :] + counts + 0.5
    share = (frequency + 0.5) / (n + 1.0)
    rarer = np.minimum(share, 1 - share)
    exponent = 0.5 * (
        1 - np.abs(share[:, None] - share[None, :]) / 5 - np.square(0.5 - np.minimum(rarer[:, None], rarer[None, :]))
    )
    correlation = np.cos(np.pi / (1 + (both * neither / (first * second)) ** exponent))
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    positive = (vectors * np.maximum(values, 0.02)) @ vectors.T
    scale = np.sqrt(np.diag(positive))
    C = centring(q)
    return C @ ndtri(share), C @ (positive / np.outer(scale, scale)) @ C


def level_moments(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from levels (q, n) of which the order within a row counts: moments of the row's normal scores.

    A label has the score Phi^-1 of its mid-rank; one without a level (NaN) stands in the middle.
    """
    q, n = levels.shape
    below = np.stack([(levels < own).sum(axis=0) + 0.5 * (levels == own).sum(axis=0) for own in levels])
    known = np.maximum((~np.isnan(levels)).sum(axis=0), 1)
    scores = np.where(np.isnan(levels), 0.0, ndtri(np.clip(below / known, 1e-3, 1 - 1e-3)))
    C = centring(q)
    scores = C @ scores
    mean = scores.mean(axis=1)
    residual = scores - mean[:, None]
    return mean, covariance_mode(residual @ residual.T, n, float(q))


IMPOSSIBLE = 1e-9
"""Likelihood of an error that is not made: small, so that a chain leaves a start which needs one."""


class Flips(NamedTuple):
    """Labels that are wrong: P(marked | positive) = 1 - missed, P(marked | negative) = false, entry by entry.

    "Positive and unlabelled" data have missed > 0 and false = 0, and are the commonest case of all.
    """

    missed: float = 0.0
    false: float = 0.0

    @classmethod
    def of(cls, noise: float | tuple[float, float] | list[float]) -> "Flips":
        """What the parameter `noise` says: one share for both, or one for each."""
        if isinstance(noise, (int, float)):
            return cls(float(noise), float(noise))
        shares = [float(share) for share in noise]
        if len(shares) != 2 or min(shares) < 0 or sum(shares) >= 1:
            raise InputError(
                f"Inversion: noise must be a share, or two (of positives that were missed, of negatives that were "
                f"marked) whose sum is less than 1; got {noise!r}."
            )
        return cls(*shares)

    def any(self) -> bool:
        """Whether labels may be wrong at all."""
        return self.missed > 0 or self.false > 0

    def numbers(self, q: int) -> NDArray[np.float64]:
        """P(b of q labels are marked | a are positive), (q + 1, q + 1) by a and b: a sum of two binomial variables."""
        found = np.zeros((q + 1, q + 1))
        for a in range(q + 1):
            kept = binom.pmf(np.arange(a + 1), a, 1.0 - self.missed)
            found[a] = np.convolve(kept, binom.pmf(np.arange(q - a + 1), q - a, self.false))
        return found

    def applied(self, positive: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Labels (n, q) as they are marked, given those that are positive."""
        wrong: NDArray[np.bool_] = rng.random(positive.shape) < np.where(positive, self.missed, self.false)
        return positive ^ wrong

    def log_likelihood(self, positive: Array, given: Array, asked: Array) -> Array:
        """Of given labels (q, m), where they were asked, if these (q, m) are positive; up to a constant of the row."""
        missed, false = (max(share, IMPOSSIBLE) for share in self)
        positive = positive & asked
        lost, found = (positive & ~given).sum(axis=0), (positive & given).sum(axis=0)
        # Beside a row all of whose labels are negative.
        return lost * math.log(missed / (1 - false)) + found * math.log((1 - missed) / false)

    def silent(self, rule: Measurement, L: Array) -> Array:
        """Which rows of L (n, q) say nothing, bool (n,): not one without any mark where marks may be missed."""
        return rule.silent(L) if self.missed == 0 else array_namespace(L).all(L != L, axis=1)

    def forget_silent(self, rule: IntervalRule, L: Array) -> Array:
        """L (n, q) with NaN in the rows that say nothing."""
        return rule.forget_silent(L) if self.missed == 0 else L


NO_FLIPS = Flips()


Cardinality = Callable[[np.ndarray], np.ndarray]
LogLikelihood = Callable[[np.ndarray], np.ndarray]
"""Of the numbers of labels per row, (k,), at spreads (k,)."""
Counts = np.ndarray | PartialCounts
"""How many rows have 1, ..., q labels (0 first, where the rule may mark none); see `unasked` for NaN among them."""


class Spread(NamedTuple):
    """What is known of the spread of z: its posterior mean and standard deviation."""

    mean: float
    deviation: float

    def at(self, score: float) -> float:
        """The spread at a normal score of the log-normal distribution with this mean and standard deviation."""
        variance = math.log1p((self.deviation / self.mean) ** 2) if self.mean > 0 else 0.0
        return self.mean * math.exp(math.sqrt(variance) * score - 0.5 * variance)

    def at_edge(self) -> bool:
        """Whether it reaches an end of `RANGE`: the labels then say no more than "at least" or "at most" so much."""
        lower, upper = self.mean - self.deviation, self.mean + self.deviation
        return self.mean > 0 and not (RANGE[0] * NEAR_EDGE < lower and upper < RANGE[1] / NEAR_EDGE)


def spread_posterior(rule: IntervalRule, Z: np.ndarray, counts: Counts, flips: Flips = NO_FLIPS) -> Spread:
    """The spread s of z, from the histogram of |L|; its prior where the rule takes the numbers of labels as given.

    Draws Z (m, q) from the model, at spread 1, are widened by s and degraded; their cardinalities, half a count added
    to each, give the multinomial likelihood of the observed `counts` of 1, ..., q labels (or of 0, ..., q). Where
    labels may be wrong, so are those of the draws (`flips`). The prior is `_log_prior`. The mean, and not the mode: to
    first order the answer is linear in s.
    """
    if not rule.scale_matters:
        return spread_prior(rule)
    return _moments(*_integrate(rule, _likelihood(Z, counts, rule.cardinality, flips)))


def spread_prior(rule: IntervalRule) -> Spread:
    """The same where the labels say nothing: the moments of the prior."""
    return _moments(*_integrate(rule, np.zeros_like))


def spread_evidence(rule: IntervalRule, Z: np.ndarray, counts: Counts, flips: Flips = NO_FLIPS) -> float:
    """Log likelihood of the cardinalities under a rule, averaged over the prior of the spread; arguments as above."""
    said = _integrate(rule, _likelihood(Z, counts, rule.cardinality, flips))[1]
    return float(logsumexp(said) - logsumexp(_integrate(rule, np.zeros_like)[1]))


def _moments(grid: np.ndarray, score: np.ndarray) -> Spread:
    weight = np.exp(score - logsumexp(score))
    mean = float(weight @ grid)
    return Spread(mean, float(np.sqrt(weight @ np.square(grid - mean))))


def _integrate(rule: IntervalRule, log_likelihood: LogLikelihood) -> tuple[np.ndarray, np.ndarray]:
    """Spreads (k,) that matter under the rule's prior and a likelihood; the log of prior times likelihood times step.

    From a coarse grid, intervals next to a likely spread or to a peak are halved as long as their ends differ: the
    histogram of many rows under a bar pins s down to one per cent, beside which there may be a second, wider peak.
    """

    def look_at(points: np.ndarray) -> np.ndarray:
        found: np.ndarray = _log_prior(points, rule.spread_prior) + log_likelihood(points)
        return found

    grid = np.geomspace(*RANGE, COARSE)
    score = look_at(grid)
    while True:
        sides = np.pad(score, 1, constant_values=-np.inf)
        matters = (score > score.max() - NEGLIGIBLE) | ((score >= sides[:-2]) & (score >= sides[2:]))
        step = np.diff(np.log(grid))
        # Ends as likely as each other may have a peak between them: the intervals beside show it. Down a slope,
        # which weighs less, longer steps do: about half a deviation of a normal peak, as at its top.
        change, depth = np.pad(np.abs(np.diff(score)), 1), score.max() - np.maximum(score[:-1], score[1:])
        steepest = np.maximum.reduce([change[:-2], change[1:-1], change[2:]])
        rough = (step > COARSEST) | ((steepest > SMOOTH + depth / 2) & (step > FINEST))
        halved = np.flatnonzero(rough & (matters[:-1] | matters[1:]))
        if len(halved) == 0:
            return grid, score + np.log(np.gradient(np.log(grid)))
        middle = np.sqrt(grid[halved] * grid[halved + 1])
        grid, score = np.insert(grid, halved + 1, middle), np.insert(score, halved + 1, look_at(middle))


def _log_prior(grid: np.ndarray, prior: tuple[float, float]) -> np.ndarray:
    """Up to a constant, per step of a geometric grid: log normal in the middle, exponential in log s beyond.

    With x = log(s / prior[0]) / prior[1], -x^2 / 2 up to |x| = PULL and from there on its tangent. So the prior never
    pulls with more than PULL standard deviations, whatever the spread: a handful of rows whose labels ask for another
    spread outweigh it, where the square would grow without end.
    """
    x: np.ndarray = np.abs(np.log(grid / prior[0]) / prior[1])
    return np.where(x <= PULL, -0.5 * np.square(x), PULL * (0.5 * PULL - x))


def _likelihood(Z: np.ndarray, counts: Counts, cardinality: Cardinality, flips: Flips) -> LogLikelihood:
    """The log likelihood (k,) of cardinalities as a function of spreads (k,); draws Z (m, q) have the spread 1."""
    if isinstance(counts, PartialCounts):
        return counts.likelihood(Z, cardinality, flips)
    q = Z.shape[1]
    least = q + 1 - len(counts)
    # The order of a row does not depend on the spread: sort once. Labels-first, so that sums run over long rows. In
    # single precision, rounding in Z, which differs between kinds of arrays, changes the number of labels more often.
    drawn: Array = Z.astype(np.float32 if q > FEW_LABELS else np.float64, copy=False)
    falling = np.sort(-drawn, axis=1)
    ranked = np.ascontiguousarray((falling[:, :1] - falling).T)
    # Which of the sizes that do not occur a larger row has makes no difference, unless labels may be missed.
    largest = q if flips.any() else int(np.flatnonzero(counts).max(initial=0)) + least + 2
    wrong = flips.numbers(q) if flips.any() else None

    def at(spread: float) -> float:
        W = np.exp(ranked * spread)
        size = cardinality((W[:largest] / W.sum(axis=0)).T)
        made = np.bincount(size, minlength=q + 1)[: q + 1]
        simulated = (made if wrong is None else made @ wrong)[least:] + 0.5
        return float(counts @ np.log(simulated / simulated.sum()))

    return lambda spreads: np.array([at(s) for s in spreads.tolist()])

"""What a few graded rows say of the parameters: scale, shape, mean and tails, around what the labels say.

Where the number of labels hardly varies, labels leave the scales of single labels open. Rows whose degrees are known
close this gap. Their log degrees z_i are measured against the means m_i and the covariance S that the labels gave:

    z_i ~ t_nu(A m_i + delta, T),   T ~ inverse Wishart around A S A, worth k rows,   delta ~ N(0, T / l),
    A = diag(exp a),   a_j = b + c_j,   c_j ~ N(0, tau^2),   b: the histogram of |L| under tails nu.

A scales the mean as it scales the deviation, because labels determine the ratio of the two: whether a label is marked
says on which side of the middle it is. With the mean held, a spread that is too large would leave large residuals, and
pass for one that is too small.

With the strengths tau, k, l -> 0, inf, inf nothing moves; how far they are from there is decided by the marginal
likelihood of the graded rows (Laplace for a, closed for delta and T), averaged over a grid. The t distribution is a
normal one whose rows have weights of their own; few rows far out then do not pass for a large scale.

Scale, scales of labels, shape and tails move less than their posterior means say (`least_change`): where labels were
right, m rows would only add their own chance to the answer, and a person who grades rows should not come off worse for
it.

A degree of zero means: less than half the smallest degree that was given. Its logarithm is drawn below that bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import helmert
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, multigammaln

from contone.backends import like
from contone.enhance.inversion.logistic_normal import Parameters, Spread, variance_factor
from contone.typing import Array

TAILS = {math.inf: 0.5, 12: 1 / 6, 6: 1 / 6, 3: 1 / 6}
"""Degrees of freedom that are tried, and their prior probabilities."""
LIGHTEST_TAIL = 30
"""Degrees of freedom beyond which residuals pass for normal."""
LABEL_SCALES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Values of tau that are averaged over: from labels that all vary as L says to a factor of 1.5 either way."""
ROWS_OF_SHAPE = (5, 10, 20, 40, 80, 160, 320, 1000, 5000)
"""Values of k that are averaged over."""
ROWS_OF_MEAN = (10.0, 100.0, 1000.0, 1e6)
"""Values of l that are averaged over."""
MODEL_DEVIATION = 0.05
"""Relative deviation of the spread that the histogram of |L| says, beyond that of counting: no data are logistic normal
to a per cent, which is how far a few thousand rows would pin it down."""
LONGEST_STEP = 2.0
"""The most that log scales move in a step."""


@dataclass(frozen=True)
class Grades:
    """Degrees that are known: `degrees` (n, q) on the simplex in the rows where `known` (n,) is true."""

    known: Array
    degrees: Array
    bound: float
    """What a degree of zero is below."""

    def __getitem__(self, rows: Array | slice) -> "Grades":
        return Grades(self.known[rows], self.degrees[rows], self.bound)

    def log_weights(self) -> Array:
        """log d (n, q), zeros at half the bound; 0 in rows that are not known."""
        xp = array_namespace(self.degrees)
        raised = xp.clip(self.degrees, min=0.5 * self.bound)
        return xp.where(self.known[:, None], xp.log(raised), xp.zeros_like(raised))


def place_grades(rows: np.ndarray, degrees: np.ndarray, L: Array) -> Grades | None:
    """Known degrees (m, q) of some rows (m,) as arrays beside the labels L (n, q); None where there are none."""
    if len(rows) == 0:
        return None
    n, q = L.shape
    # What the precision of L has no logarithm for is a zero; its bound, and half of that, must not underflow either.
    degrees = np.where(degrees < 8 * float(array_namespace(L).finfo(L.dtype).tiny), 0.0, degrees)
    placed, known = np.full((n, q), 1.0 / q), np.zeros(n, dtype=bool)
    placed[rows], known[rows] = degrees, True
    beside = like(placed, L)
    mask = like(known.astype(np.float64), L) > 0
    return Grades(mask, beside, 0.5 * float(degrees[degrees > 0].min()))


class Calibration(NamedTuple):
    """What graded rows make of the parameters."""

    parameters: Parameters
    spread: Spread
    tail: float
    """Degrees of freedom of the residuals; infinite for normal ones."""
    withheld: float = 0.0
    """By how much the log of the spread falls short of its posterior mean, for the sake of the least change."""


class Graded(NamedTuple):
    """Rows whose degrees are known, as the objective sees them."""

    Z: np.ndarray
    """Log degrees (m, q), up to a common shift of each row."""
    mean: np.ndarray
    """What the labels say of them, (m, q), at the scale of the labels' covariance."""
    basis: np.ndarray
    """(q, q - 1), orthonormal, its columns centred."""
    covariance: np.ndarray
    """The labels' (q, q)."""

    @classmethod
    def of(cls, Z: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> "Graded":
        """With the basis of Helmert."""
        return cls(Z, mean, helmert(len(covariance)).T, covariance)

    def residuals(self, a: np.ndarray) -> np.ndarray:
        """z - A m (m, q - 1), in coordinates of the basis."""
        found: np.ndarray = (self.Z - np.exp(a) * self.mean) @ self.basis
        return found

    def scatter(self, a: np.ndarray) -> np.ndarray:
        """A S A (q - 1, q - 1), in coordinates of the basis."""
        scale = np.exp(a)
        found: np.ndarray = self.basis.T @ (scale[:, None] * self.covariance * scale) @ self.basis
        return found


SpreadUnder = Callable[[float], Spread]
"""The spread that the histogram of |L| says under given tails, in units of the present one."""


def calibrate(
    parameters: Parameters,
    graded: Graded,
    spread_under: SpreadUnder,
    *,
    labels_tell_scale: bool = True,
) -> tuple[Calibration, np.ndarray]:
    """Parameters given graded rows, around those that the labels gave; and the log scales (q,) that they were given.

    The spread is in units of that of the parameters. Where the labels do not determine the scale (an order), there is
    nothing to hold it to but the prior.
    """
    candidates = [_fit_scales(graded, tail, spread_under(tail)) for tail in TAILS]
    of_graded, tail = _choose_tails(candidates)

    def held_scales(tail: float) -> tuple[np.ndarray, float, float]:
        said = spread_under(tail)
        found = _fit_scales(graded, tail, said)
        return *_hold_scales(found, said if labels_tell_scale else None), found.deviation

    # The common scale is that of all rows, under their tails; what labels and shape are beside it is read under those
    # of the graded rows, in a unit in which both scales are one.
    (own, *_), (common, withheld, deviation) = held_scales(of_graded), held_scales(tail)
    held = own - own.mean() + common.mean()
    unit = math.exp(own.mean() - common.mean())
    Y, reference = graded.residuals(own) / unit, graded.scatter(held)
    covariance = reference
    for _ in range(2):  # the weights of the rows depend on the covariance a little
        covariance, shift, worth = fit_shape(Y, _row_weights(Y, covariance, of_graded), reference)
    covariance = _hold_shape(covariance, reference, worth)
    scale, basis = np.exp(held), graded.basis
    coefficients = parameters.coefficients * scale
    coefficients -= coefficients.mean(axis=1, keepdims=True)
    coefficients[0] += basis @ (unit * shift)
    whole = basis @ covariance @ basis.T
    factor = math.sqrt(variance_factor(tail) * np.trace(whole) / np.trace(parameters.covariance))
    # Intervals are around the scale that is taken, at this distance from the posterior mean.
    spread = Spread(factor, factor * math.hypot(deviation, withheld))
    return Calibration(Parameters(coefficients, whole, parameters.theta), spread, tail, withheld), held


class _Scales(NamedTuple):
    evidence: float
    log_scales: np.ndarray
    covariance: np.ndarray
    """(q, q), of the log scales."""
    tail: float

    @property
    def deviation(self) -> float:
        """Posterior standard deviation of the common log scale."""
        return math.sqrt(self.covariance.mean())


def _fit_scales(graded: Graded, tail: float, spread: Spread) -> _Scales:
    """Log scales a (q,) of the labels given graded rows, and how likely these are under the tails."""
    q = len(graded.covariance)
    said = spread.deviation / spread.mean
    centre, common = math.log(spread.mean) - 0.5 * math.log1p(said**2), math.hypot(said, MODEL_DEVIATION)
    evidence, modes, within = [], [], []
    for tau in LABEL_SCALES:
        inverse = np.linalg.inv(tau**2 * np.eye(q) + common**2)
        a, score, information = _mode(graded, tail, centre, inverse)
        evidence.append(score + 0.5 * (np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(information)[1]))
        modes.append(a)
        within.append(np.linalg.inv(information))
    weight = np.exp(evidence - logsumexp(evidence))
    mean = weight @ np.array(modes)
    between = np.array(modes) - mean
    posterior = np.einsum("k,kij->ij", weight, within) + (between.T * weight) @ between
    # The mean of a log-normal scale, and not its median: to first order the answer is linear in the spread.
    return _Scales(float(logsumexp(evidence)), mean + 0.5 * posterior.mean(), posterior, tail)


Move = TypeVar("Move", float, np.ndarray)


def least_change(move: Move, length: float) -> Move:
    """What to make of a move of parameters from where the labels put them to their posterior mean.

    The error of an answer is about the square of that of the parameters theta, in units of their posterior deviations.
    A move x then gains |theta|^2 - |theta - x|^2 = 2 x theta - |x|^2, in the mean 2 x mean - |x|^2, with the standard
    deviation 2 |x|. The x with the largest mean less one standard deviation is the mean, shortened by one deviation.

    Parameters
    ----------
    move : float or array
        Posterior mean less what the labels said.
    length : float
        Its length in posterior deviations.
    """
    return move * (1.0 - 1.0 / max(length, 1.0))


def _choose_tails(candidates: list[_Scales]) -> tuple[float, float]:
    """Degrees of freedom of the graded rows, and by least change from normal ones those of all rows.

    Normal tails are the cautious choice for rows whose labels say nothing of tails, but the bold one for reading graded
    rows: a single row far out would then move everything. These have the posterior mean of 1 / nu.
    """
    log_weight = np.array([found.evidence + math.log(TAILS[found.tail]) for found in candidates])
    weight = np.exp(log_weight - logsumexp(log_weight))
    inverse = np.array([1.0 / found.tail for found in candidates])
    mean = float(weight @ inverse)
    deviation = math.sqrt(float(weight @ np.square(inverse - mean)))
    held = least_change(mean, mean / deviation if deviation > 0 else math.inf)
    return _whole_tail(mean), _whole_tail(held)


def _whole_tail(inverse: float) -> float:
    """nu given 1 / nu, whole, as the sampler draws weights of rows."""
    return float(round(1.0 / inverse)) if inverse >= 1.0 / LIGHTEST_TAIL else math.inf


def _hold_scales(found: _Scales, spread: Spread | None) -> tuple[np.ndarray, float]:
    """Log scales (q,) of the labels by least change, and how far the common one then is from its posterior mean.

    Without a spread that the labels say, the common scale stays where the rows put it.
    """
    common = float(found.log_scales.mean())
    basis = helmert(len(found.log_scales)).T
    own = basis.T @ found.log_scales
    length = math.sqrt(float(own @ np.linalg.solve(basis.T @ found.covariance @ basis, own)))
    apart = basis @ least_change(own, length)
    if spread is None:
        return common + apart, 0.0
    said = math.log(spread.mean)
    held = least_change(common - said, abs(common - said) / found.deviation)
    return said + held + apart, common - said - held


def _hold_shape(covariance: np.ndarray, reference: np.ndarray, worth: float) -> Array:
    """Sigma (p, p) by least change from the reference, where its posterior is that of so many rows in all."""
    root = np.linalg.cholesky(reference)
    move = np.linalg.solve(root, np.linalg.solve(root, covariance - reference).T)
    # The information of a normal row about a relative change M of its covariance is tr(M^2) / 2.
    length = math.sqrt(0.5 * worth) * float(np.linalg.norm(move))
    return reference + root @ least_change(move, length) @ root.T


def _mode(graded: Graded, tail: float, centre: float, inverse: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Mode of a, the log density there, and the information (q, q): Fisher scoring in a region of trust.

    Far from the mode the gradient grows with the square of the scale, and a full step would leave floating point.
    """
    given = graded, tail, centre, inverse
    found = minimize(
        lambda a: -scales_objective(a, *given),
        np.full(len(graded.covariance), centre),
        jac=lambda a: -scales_slope(a, *given)[0],
        hess=lambda a: scales_slope(a, *given)[1],
        method="trust-exact",
        options={"max_trust_radius": LONGEST_STEP, "initial_trust_radius": 0.5 * LONGEST_STEP},
    )
    return found.x, -found.fun, scales_slope(found.x, *given)[1]


def scales_objective(a: np.ndarray, graded: Graded, tail: float, centre: float, inverse: np.ndarray) -> float:
    """Log density of graded rows under t_nu(A m, A S A), plus that of the prior of a, up to a constant of the prior."""
    likelihood = _log_likelihood(graded.residuals(a), graded.scatter(a), tail)
    return likelihood - 0.5 * float((a - centre) @ inverse @ (a - centre))


def scales_slope(
    a: np.ndarray, graded: Graded, tail: float, centre: float, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (q,) of `scales_objective` and its expected negative Hessian (q, q)."""
    Y, S, basis = graded.residuals(a), graded.scatter(a), graded.basis
    (m, p), scale = Y.shape, np.exp(a)
    T = scale[:, None] * graded.covariance * scale
    M = basis @ np.linalg.inv(S) @ basis.T
    pull = (Y * _row_weights(Y, S, tail)[:, None]) @ basis.T @ M
    mean = scale * graded.mean
    outer = pull.T @ (Y @ basis.T) @ M - m * M
    gradient = np.diag(outer @ T) + (pull * mean).sum(axis=0) - inverse @ (a - centre)
    # The t distribution tells less about its shape and its centre than the normal one, by (nu + p) / (nu + p + 2), and
    # still less about its size: a row far out has a small weight.
    MT, share = M @ T, (tail + p) / (tail + p + 2) if math.isfinite(tail) else 1.0
    information = share * (m * (MT * MT.T + (T @ MT) * M) + M * (mean.T @ mean))
    information -= 2 * m / (tail + p + 2) * np.outer(np.diag(MT), np.diag(MT))
    return gradient, information + inverse


class Shape(NamedTuple):
    """Posterior means given graded rows, averaged over the strengths."""

    covariance: np.ndarray
    shift: np.ndarray
    worth: float
    """How many rows the covariance is known from, those of the labels' shape included."""


def fit_shape(Y: np.ndarray, weight: np.ndarray, reference: np.ndarray) -> Shape:
    """Posterior means of T (p, p) and delta (p,) given weighted residuals, averaged over the strengths k and l."""
    m, p = Y.shape
    total = weight.sum()
    mean = weight @ Y / total
    scatter = ((Y - mean).T * weight) @ (Y - mean)
    log_reference = np.linalg.slogdet(reference)[1]
    evidence, covariances, shifts, variances = [], [], [], []
    for k in ROWS_OF_SHAPE:
        freedom = k + p + 1
        for strength in ROWS_OF_MEAN:
            posterior = k * reference + scatter + strength * total / (strength + total) * np.outer(mean, mean)
            evidence.append(
                0.5 * p * math.log(strength / (strength + total))
                + multigammaln(0.5 * (freedom + m), p)
                - multigammaln(0.5 * freedom, p)
                + 0.5 * freedom * (p * math.log(k) + log_reference)
                - 0.5 * (freedom + m) * np.linalg.slogdet(posterior)[1]
            )
            covariances.append(posterior / (k + m))
            shifts.append(total / (strength + total) * mean)
            variances.append(1.0 / (k + m))
    share = np.exp(evidence - logsumexp(evidence))
    # With two labels there is no shape beside the scale, which the rows have told already.
    covariance = reference if p == 1 else np.einsum("k,kij->ij", share, covariances)
    return Shape(covariance, share @ np.array(shifts), 1.0 / float(share @ np.array(variances)))


def _row_weights(Y: np.ndarray, S: np.ndarray, tail: float) -> Array:
    """Expected weights (m,) of rows Y (m, p) under t_nu(0, S): (nu + p) / (nu + y^T S^-1 y)."""
    if math.isinf(tail):
        return np.ones(len(Y))
    return (tail + Y.shape[1]) / (tail + np.einsum("ij,ij->i", Y @ np.linalg.inv(S), Y))


def _log_likelihood(Y: np.ndarray, S: np.ndarray, tail: float) -> float:
    """Log density of rows Y (m, p) under t_nu(0, S)."""
    m, p = Y.shape
    distance = np.einsum("ij,ij->i", Y @ np.linalg.inv(S), Y)
    volume = 0.5 * np.linalg.slogdet(S)[1]
    if math.isinf(tail):
        return float(-0.5 * distance.sum() - m * (volume + 0.5 * p * math.log(2 * math.pi)))
    constant = gammaln(0.5 * (tail + p)) - gammaln(0.5 * tail) - 0.5 * p * math.log(tail * math.pi)
    return float(m * (constant - volume) - 0.5 * (tail + p) * np.log1p(distance / tail).sum())

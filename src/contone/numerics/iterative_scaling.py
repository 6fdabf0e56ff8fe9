"""Improved iterative scaling (IIS) for the conditional maximum entropy model.

The model is p_i = softmax(x_i^T Theta), Theta (d, q); the problem is to minimise

    f(Theta) = -1/n sum_ij d_ij log p_ij + l2/2 ||W * Theta||^2            (W: which rows of Theta are penalised).

With s_i = sum_k |x_ik|, the inequalities -log u >= 1 - u and Jensen bound the gain of a step Delta from below by a
function that falls apart into one concave function for every entry, whose maximum solves

    1/n sum_i d_ij x_ik  =  1/n sum_i p_ij x_ik exp(delta_kj sgn(x_ik) s_i) + l2 w_k (theta_kj + delta_kj).       (*)

The right-hand side grows with delta_kj, so each of the d q equations has at most one root, and any step from 0
towards the root raises the likelihood: f falls at every iteration.

How (*) is solved for all (k, j) at once. Written out, one evaluation costs n d q exponentials. But exp(delta s_i) is
needed for all i at the same delta, so it is expanded around the middle c of the s_i:

    sum_i p_ij x_ik exp(delta s_i) = exp(delta c) sum_m delta^m M_m,   M_m = sum_i p_ij x_ik (s_i - c)^m / m!.

The moments M_m (d, q) are one matrix product an iteration, and a Newton step then costs d q times their number. Steps
are kept to |delta| <= 2 / max s, so |delta (s_i - c)| <= 1 whatever the data, and 15 moments give the series to 1e-12;
with rows of nearly the same sum (as in compositional data) a few do.

Reference: Della Pietra, Della Pietra & Lafferty 1997; Geng 2016 (IIS-LDL).
"""

from math import factorial

import numpy as np

from contone.numerics.solution import Solution
from contone.typing import Array, Matrix

RADIUS = 2.0
"""Steps satisfy |delta_kj| max_i s_i <= RADIUS, so no logit moves by more than this in one iteration."""

SERIES_TOLERANCE = 1e-12
NEWTON_STEPS = 12
NEWTON_TOLERANCE = 1e-6
"""Relative to the bound on steps; the last Newton step squares what is left."""


def improved_iterative_scaling(
    X: Matrix,
    D: Matrix,
    Theta: Matrix,
    *,
    penalty: Matrix | float = 0.0,
    accelerate: bool = False,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Solution:
    """Minimise f by IIS from Theta (d, q) on features X (n, d) and label distributions D (n, q).

    Parameters
    ----------
    X, D, Theta : (n, d), (n, q), (d, q)
        Features, label distributions, and where to begin.
    penalty : (d, 1) or float
        l2 w_k, the weight of theta_k^2 / 2.
    accelerate : bool
        Whether steps are extrapolated from the last ones (Anderson's method). An extrapolation that would raise f is
        replaced by the plain step, so f falls either way; the limit is the same, the path is not.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when the largest moment residual |df / dtheta_kj| / rms(x_k) is at most this.

    Returns
    -------
    Solution
        Its value is Theta (d, q), rows summing to zero; ``info["objective"]`` is the list of f at every iterate, which
        never rises.
    """
    n = len(X)
    Xt = np.ascontiguousarray(X.T)
    Theta = centre_over_labels(Theta)
    moments = Moments(Xt)
    rms = np.sqrt(np.einsum("ki,ki->k", Xt, Xt) / n)[:, None]
    rms[rms == 0] = 1.0
    target = Xt @ D / n  # the left-hand side of (*)

    def evaluate(Theta: Matrix) -> tuple[float, Matrix]:
        P, log_partition = softmax_and_log_partition(Theta.T @ Xt)
        return float(log_partition.mean() - np.vdot(target, Theta) + 0.5 * np.sum(penalty * Theta**2)), P

    history: list[float] = []
    extrapolation = Anderson()
    plain, delta = Theta, np.zeros_like(Theta)
    for n_iter in range(max_iter + 1):
        value, P = evaluate(Theta)
        if history and not value <= history[-1] and Theta is not plain:
            extrapolation.clear()
            Theta = plain
            value, P = evaluate(Theta)
        history.append(value)
        M = moments.of(P)
        gradient = moments.expected(M, np.zeros_like(Theta))[0] - target + penalty * Theta
        residual = float(np.abs(gradient / rms).max(initial=0.0))
        if residual <= tol or n_iter == max_iter:
            break
        # The last step is a good guess of the next one: IIS converges linearly.
        delta = solve_steps(M, moments, target, Theta, penalty, start=delta)
        plain = centre_over_labels(Theta + delta)
        Theta = extrapolation.next(Theta, plain) if accelerate else plain
    return Solution(Theta, history[-1], residual, n_iter, residual <= tol, {"objective": history})


def centre_over_labels(Theta: Matrix) -> Array:
    """Theta (d, q) with rows that sum to zero: the same predictions and the least penalty.

    The steps of (*) do not keep the sums, and the penalty alone would take very long to remove them.
    """
    return Theta - Theta.mean(axis=1, keepdims=True)


def softmax_and_log_partition(Z: Matrix) -> tuple[Matrix, Matrix]:
    """Softmax over the labels of Z (q, n), and the logarithm of its denominators, log sum_j exp(z_ji), (n,).

    Labels come first here: reductions over a short last axis are several times slower.
    """
    top = Z.max(axis=0)
    E = np.exp(Z - top)
    total = E.sum(axis=0)
    return E / total, np.log(total) + top


class Anderson:
    """Anderson acceleration of a fixed-point iteration Theta -> G(Theta).

    From the last iterates, the combination (of weights that sum to 1) is taken for which the residual G(Theta) - Theta
    would be least if G were affine; the next iterate is that combination of the G(Theta).
    """

    def __init__(self, memory: int = 10) -> None:
        self.memory = memory
        self.clear()

    def clear(self) -> None:
        """Forget the past."""
        self.images: list[Matrix] = []
        self.residuals: list[Matrix] = []

    def next(self, Theta: Matrix, image: Matrix) -> Array:
        """The iterate after Theta (d, q), whose image under G is given."""
        self.images = [*self.images[-self.memory :], image.ravel()]
        self.residuals = [*self.residuals[-self.memory :], (image - Theta).ravel()]
        if len(self.images) < 2:
            return image
        weights = np.linalg.lstsq(np.diff(self.residuals, axis=0).T, self.residuals[-1], rcond=1e-10)[0]
        return (self.images[-1] - np.diff(self.images, axis=0).T @ weights).reshape(image.shape)


class Moments:
    """The moments M_m of the series above, for the positive and the negative part of X.

    Attributes
    ----------
    centre, order, max_delta
        c, the number of moments, and the radius of steps for which that many are enough.
    """

    def __init__(self, Xt: Matrix) -> None:
        self.d, self.n = Xt.shape
        s = np.abs(Xt).sum(axis=0)
        low, high = float(s.min()), float(s.max())
        self.centre = (low + high) / 2
        self.max_delta = RADIUS / (high or 1.0)  # without features no logit moves, whatever the step
        self.order = series_order(self.max_delta * (high - low) / 2)
        self.powers = np.stack([(s - self.centre) ** m / factorial(m) for m in range(self.order)]) / self.n
        self.parts = [np.maximum(Xt, 0.0), np.maximum(-Xt, 0.0)] if (Xt < 0).any() else [Xt]

    def of(self, P: Matrix) -> list[Matrix]:
        """M_m under P (q, n) for the positive and, where there is one, the negative part of X: (order, d, q) each."""
        # The powers go to P, not to X: q is the smaller side as a rule, and X need not be kept once for each power.
        weighted = (self.powers[:, None, :] * P).reshape(-1, self.n)
        return [(weighted @ part.T).reshape(self.order, -1, self.d).transpose(0, 2, 1) for part in self.parts]

    def expected(self, M: list[Matrix], delta: Matrix) -> tuple[Matrix, Matrix]:
        """1/n sum_i p_ij x_ik exp(delta_kj sgn(x_ik) s_i) and its derivative by delta, (d, q) each."""
        value, slope = self._one_sign(M[0], delta)
        if len(M) > 1:
            negative, negative_slope = self._one_sign(M[1], -delta)
            value, slope = value - negative, slope + negative_slope
        return value, slope

    def _one_sign(self, M: Matrix, delta: Matrix) -> tuple[Matrix, Matrix]:
        """exp(delta c) sum_m delta^m M_m and its derivative, by Horner's rule."""
        series = M[-1]
        derivative = np.zeros_like(series)
        for M_m in M[-2::-1]:
            derivative = derivative * delta + series
            series = series * delta + M_m
        scale = np.exp(self.centre * delta)
        return scale * series, scale * (self.centre * series + derivative)


def series_order(radius: float) -> int:
    """How many terms of the exponential series leave less than 1e-12 at the given radius (at most 1)."""
    order, term = 1, radius
    while term > SERIES_TOLERANCE:
        order += 1
        term *= radius / order
    return order


def solve_steps(
    M: list[Matrix], moments: Moments, target: Matrix, Theta: Matrix, penalty: Matrix | float, start: Matrix
) -> Matrix:
    """The roots delta (d, q) of (*), or the ends of [-max_delta, max_delta] where the root lies beyond.

    Newton's method inside a bracket that shrinks with every evaluation; a step that would leave it is replaced by its
    middle. Entries without a slope (features that are zero everywhere) keep 0.
    """
    # Paper: the steps are unbounded. Where a label never meets a feature (d_ij x_ik = 0 for all i) the root is at
    # minus infinity, so a bound is needed anyway; a shortened step still raises the likelihood.
    bound = moments.max_delta
    low, high = np.full_like(Theta, -bound), np.full_like(Theta, bound)
    delta = np.clip(start, low, high)
    for _ in range(NEWTON_STEPS):
        value, slope = moments.expected(M, delta)
        slope = slope + penalty
        excess = np.where(slope > 0, value + penalty * (Theta + delta) - target, 0.0)
        low, high = np.where(excess < 0, delta, low), np.where(excess > 0, delta, high)
        newton = np.clip(delta - np.divide(excess, slope, out=np.zeros_like(delta), where=slope > 0), -bound, bound)
        # The outer ends may be tried as they are: the root may lie beyond them. Ends that were already tried may not.
        left = ((newton <= low) & (low > -bound)) | ((newton >= high) & (high < bound))
        change = np.abs(newton - delta)
        delta = np.where(left & (change > NEWTON_TOLERANCE * bound), (low + high) / 2, newton)
        if change.max(initial=0.0) <= NEWTON_TOLERANCE * bound:
            break
    return np.where(slope > 0, delta, 0.0)

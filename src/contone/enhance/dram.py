"""DRAM: a mixture of Dirichlet distributions, learnt from rankings of the labels.

A ranking says which relevant label matters more, not how much. So degrees y that agree with it are drawn from a prior,
and the model is fitted to the draws:

    y_i ~ p(y | ranking_i),     p(y | x) = sum_k w_k(x) Dirichlet(y; alpha_k(x)),
    w = softmax(linear x),   alpha = softplus(linear x) + 1e-6,
    max  mean_i E log sum_k w_k(x_i) Dirichlet(y_i; alpha_k(x_i)) - K penalty |theta_alpha|^2,

by EM, with fresh draws in every iteration. A draw puts scores s_1 < ... < s_m on the m relevant labels of a row, the
most important last, uniform subject to s_1 >= g and s_{i+1} - s_i >= g with g = m / (m + 1)^2:

    s_i = i g + (1 - m g) c_i,     c = m sorted uniform numbers      (m = 1: s = 1),

and 0 on the others; clipped to [1e-4, 1 - 1e-4] and divided by their sum. D^ = sum_k w_k alpha_k / |alpha_k|_1 needs
the features only. The density depends on the draws through their logarithms alone, so that an M step costs the same
whatever their number.

Reference: Y. Lu, X. Jia. Predicting label distribution from multi-label ranking. NeurIPS 2022.
"""

from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp, psi

from contone.base import COUNT, NOT_NEGATIVE, ROUNDS, WIDTH, Enhancer, InductiveMixin, estimator, parameter
from contone.numerics.networks import generator
from contone.numerics.optimise import lbfgs
from contone.numerics.scaling import standardisation, unscaled
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

LEAST = 1e-4
"""Scores are clipped to [LEAST, 1 - LEAST]."""
FLOOR = 1e-6
"""What is added to weights and to alpha."""


@estimator
class DRAM(InductiveMixin, Enhancer):
    """Degrees from rankings: a mixture of Dirichlet distributions whose parameters are linear in the features.

    Y holds whole numbers: 0 for labels that are not relevant, and larger numbers for more important ones. Plain 0 and 1
    are a ranking in which all relevant labels tie.

    Parameters
    ----------
    n_components : int, default=3
        Dirichlet distributions in the mixture.
    penalty : float, default=1e-5
        Weight of the squared coefficients of alpha.
    n_draws : int, default=20
        Draws of the degrees of a row in every iteration.
    max_iter : int, default=10
        EM iterations, 1,000 at most; part of the model, no warning.
    max_steps : int, default=10
        L-BFGS steps in each of them.
    standardize : bool, default=True
        Scale features to mean 0 and variance 1. As published they are taken as they are.
    responsibilities : {"fresh", "stale"}, default="fresh"
        Whether the E step looks at the draws that the next M step uses, or, as in the authors' code, at those of the
        iteration before, with which they have nothing to do but the row.
    random_state : int, RandomState or None, default=0
        Seed of the random start and of the draws.

    Examples
    --------
    >>> X, rankings = [[0.0], [0.1], [5.0], [5.1]], [[3, 1, 2], [3, 0, 2], [1, 2, 3], [0, 2, 3]]
    >>> dram = DRAM(n_components=1).fit(X, rankings)
    >>> dram.predict([[0.0], [5.0]]).argmax(axis=1).tolist()
    [0, 2]
    """

    reference = "Lu & Jia, NeurIPS 2022"
    PRESETS: ClassVar[Presets] = {"original_code": {"standardize": False, "responsibilities": "stale"}}
    SEARCH: ClassVar[Domains] = {"penalty": [1e-5, 1e-3, 0.1], "n_components": [1, 3]}
    n_components: int = parameter(WIDTH, default=3)
    penalty: float = parameter(NOT_NEGATIVE, default=1e-5)
    n_draws: int = parameter(COUNT, default=20)
    max_iter: int = parameter(ROUNDS, default=10)
    max_steps: int = parameter(COUNT, default=10)
    standardize: bool = parameter("boolean", default=True)
    responsibilities: str = parameter({"fresh", "stale"}, default="fresh")
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def takes_levels(self) -> bool:
        return True

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        rng, q, K = generator(self.random_state), L.shape[1], self.n_components
        self._scaling = standardisation(X, ddof=0) if self.standardize else unscaled
        phi = self._features(X)
        self._theta = 0.1 * rng.standard_normal((phi.shape[1], K, 1 + q))
        G = rng.uniform(0.9, 1.1, (self.n_draws, len(X), K))
        G /= G.sum(axis=2, keepdims=True)
        found = Solution(self._theta)
        for k in range(self.max_iter):
            log_draws = np.log([draw_degrees(L, rng) for _ in range(self.n_draws)])
            # Paper: the code keeps the G of the draws before; they belong to other degrees of the same row.
            if k > 0 and self.responsibilities == "fresh":
                G = respond(self._theta, phi, log_draws)
            sums = sums_of_draws(G, log_draws, np.any(L > 0, axis=1))
            fit = partial(objective, phi=phi, sums=sums, penalty=self.penalty)
            found = lbfgs(fit, self._theta, tol=1e-8, max_iter=self.max_steps, n_pairs=5)
            self._theta = found.value
            if self.responsibilities == "stale":
                G = respond(self._theta, phi, log_draws)
        return Solution(self._predict(X), found.objective, found.residual, self.max_iter)

    def _predict(self, X: np.ndarray) -> Array:
        log_weights, alpha = mixture(self._theta, self._features(X))
        # Paper: the code adds 1e-6 to every weight here too, so that rows sum to more than 1.
        return np.einsum("ik,ikj->ij", np.exp(log_weights), alpha / alpha.sum(axis=2, keepdims=True))

    def _features(self, X: np.ndarray) -> Array:
        """A constant and the features, (n, 1 + d)."""
        return np.concatenate([np.ones((len(X), 1)), self._scaling(X)], axis=1)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        held = 8.0 * n * (4 * self.n_draws * (q + self.n_components) + 8 * self.n_components * q + 3 * d)
        return super()._fit_bytes(n, d, q) + held + 30 * 8.0 * (1 + d) * self.n_components * (1 + q)


def draw_degrees(L: np.ndarray, rng: np.random.Generator) -> Array:
    """Degrees (n, q) that agree with the rankings in L (n, q), uniform in their scores; see the top of this file.

    Where labels tie, each draw orders them at random; labels of 0 or less are not relevant.
    """
    # Paper: rankings have no ties, and the prior is a table of draws for up to seven labels; its formula has no end.
    n, q = L.shape
    relevant = L > 0
    m = relevant.sum(axis=1, keepdims=True)
    gap = m / (m + 1.0) ** 2
    order = np.lexsort((rng.random((n, q)), np.where(relevant, L, 0.0)), axis=-1)
    place = np.argsort(order, axis=1) - (q - m)  # 0 for the least important relevant label
    # The m smallest of q numbers, of which the others are put beyond 1, are m sorted uniform numbers.
    c = np.sort(np.where(np.arange(q) < m, rng.random((n, q)), 2.0), axis=1)
    c = np.take_along_axis(c, np.clip(place, 0, None), axis=1)
    scores = np.where(m == 1, 1.0, (place + 1) * gap + (1.0 - m * gap) * c)
    scores = np.clip(np.where(relevant, scores, 0.0), LEAST, 1.0 - LEAST)
    return scores / scores.sum(axis=1, keepdims=True)


def sums_of_draws(G: np.ndarray, log_draws: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What an M step needs of the draws: means over them of G (n, K) and of G log y (n, K, q).

    From G (J, n, K) and log y (J, n, q); rows that do not count (n,), bool, are left out.
    """
    weight = counts / len(G)
    return G.sum(axis=0) * weight[:, None], np.einsum("jik,jiq->ikq", G, log_draws) * weight[:, None, None]


def mixture(theta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the weights w (n, K), and alpha (n, K, q).

    theta is (p, K, 1 + q): of every component the coefficients of its weight, then those of alpha.
    """
    raw = np.tensordot(phi, theta, axes=1)
    return raw[:, :, 0] - logsumexp(raw[:, :, 0], axis=1, keepdims=True), np.logaddexp(0.0, raw[:, :, 1:]) + FLOOR


def respond(theta: np.ndarray, phi: np.ndarray, log_draws: np.ndarray) -> Array:
    """The E step: G (J, n, K), the share of each component in draws with logarithms (J, n, q)."""
    log_weights, alpha = mixture(theta, phi)
    constant = gammaln(alpha.sum(axis=2)) - gammaln(alpha).sum(axis=2)
    scores = np.log(np.exp(log_weights) + FLOOR) + constant + np.einsum("jiq,ikq->jik", log_draws, alpha - 1.0)
    return np.exp(scores - logsumexp(scores, axis=2, keepdims=True))


def objective(theta: Array, phi: Array, sums: tuple[Array, Array], penalty: float) -> tuple[float, np.ndarray]:
    """The M step's objective, to be minimised, and its gradient (p, K, 1 + q)."""
    share, logs = sums
    log_weights, alpha = mixture(theta, phi)
    weights, total, n, K = np.exp(log_weights), alpha.sum(axis=2), len(phi), theta.shape[1]
    gain = share * (np.log(weights + FLOOR) + gammaln(total) - gammaln(alpha).sum(axis=2))
    gain += ((alpha - 1.0) * logs).sum(axis=2)
    # Paper: the code's penalty is n K lambda against a sum over rows; biases are in it, the weights w are not.
    slopes = theta[:, :, 1:]
    value = penalty * K * float(np.square(slopes).sum()) - float(gain.sum()) / n
    pull = share * weights / (weights + FLOOR)
    by_gate = pull - weights * pull.sum(axis=1, keepdims=True)
    by_alpha = share[:, :, None] * (psi(total)[:, :, None] - psi(alpha)) + logs
    # The slope of softplus is 1 - exp(-softplus).
    by_raw = np.concatenate([by_gate[:, :, None], by_alpha * -np.expm1(FLOOR - alpha)], axis=2)
    gradient = -np.tensordot(phi.T, by_raw, axes=1) / n
    gradient[:, :, 1:] += 2.0 * penalty * K * slopes
    return value, gradient

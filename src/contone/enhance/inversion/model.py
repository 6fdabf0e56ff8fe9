"""The fitted model as a value: from features its prior mean, from features and labels the posterior.

    z_i ~ N(B^T phi(x_i), Sigma),   d_i = softmax(z_i),   l_i = rule(d_i)

A `Fit` is all that later rows need, and can be sent anywhere; `fit` makes one.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.stats import chi2

from contone.backends import get_backend, like, to_numpy
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.chain import Settings, show_progress
from contone.enhance.inversion.covariance import FEW_LABELS, Covariance, FactorCovariance
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.posterior import Averages, Posterior, joined
from contone.enhance.inversion.sampler import MANY_ROWS, Rows
from contone.measurements import IntervalRule
from contone.numerics.scaling import PrincipalMap
from contone.numerics.solution import Solution
from contone.typing import Array

FEW_DRAWS = 10.0
"""Effective sample size of a typical degree under which the run is called short."""
BURN_FEW = 9
"""Sweeps that forget the start of a chain of few labels: after 6, the error of the averages is that of their number."""


@dataclass(frozen=True)
class Fit:
    """A fitted model: the rule, the feature map, the parameters, and how they were found."""

    rule: IntervalRule
    feature_map: PrincipalMap | None
    """None where the mean does not depend on features."""
    parameters: Parameters
    spread: Spread
    settings: Settings
    directions: np.ndarray
    """Standard normal draws (N_DIRECTIONS, q) for prior means: the same for all rows, whenever they are asked for."""
    n_rows: int
    """Rows that the parameters were estimated on."""
    n_relaxed: int
    """Rows among these that the rule cannot have made."""
    effective_sample_size: float
    split_r_hat: float
    tail: float = math.inf
    """Degrees of freedom of the residuals, as graded rows say; infinite for normal ones."""
    withheld: float = 0.0
    """By how much graded rows say that the log of the spread is larger than the answers take it (`least_change`)."""
    n_graded: int = 0
    """Graded rows among those that the parameters were estimated on."""
    shape_shares: np.ndarray | None = None
    """What the uncertainty of Sigma adds to the variance of a label's logits, relative to it (q,); None: nothing."""

    factors: FactorCovariance | None = None
    """What Sigma was made of where labels are many."""
    on_host: bool = False
    """Whether rows of a GPU were few enough to be fitted on the host, where that is quicker."""

    @property
    def n_labels(self) -> int:
        """q."""
        return len(self.parameters.covariance)

    @property
    def spread_deviation(self) -> float:
        """Posterior standard deviation of the spread relative to its mean."""
        return self.spread.deviation / self.spread.mean if self.spread.mean > 0 else 0.0

    @property
    def believed_spread(self) -> Spread:
        """The spread as it is believed to be, which the answers follow with the caution of the least change."""
        mean = self.spread.mean * math.exp(self.withheld)
        return Spread(mean, mean * math.sqrt(max(self.spread_deviation**2 - self.withheld**2, 0.0)))

    def solution(self, posterior: Posterior, n_relaxed: int, n_graded: int) -> Solution:
        """What a fit and the posterior of its rows say, as every method says it."""
        host = {"computed_on": "the host, which is quicker for so few rows"} if self.on_host else {}
        own = {"feature_weight": float(self.parameters.theta), "relaxed_rows": n_relaxed, **host}
        return solution_of(self, posterior, n_graded, own)

    def mean(self, X: Array) -> Array:
        """Means (q, m) of z for features X (m, d)."""
        phi = mean_features(self.feature_map, X)
        return _within_reach(like(self.parameters.coefficients.T, phi) @ phi)

    def prior_mean(self, X: Array) -> Array:
        """E[d | x] (m, q) of rows with features X (m, d)."""
        return self.prior(X).mean

    def prior(self, X: Array) -> Posterior:
        """What the features alone say of rows: as a `Posterior` without labels."""
        noise = self.directions @ logistic_normal.square_root(self.parameters.covariance).T
        mean = self.mean(X)
        if len(mean) == 1:
            return certain(mean.T)
        averages = Averages(mean, 0, 0)
        for e in like(noise, mean):  # mirrored pairs cancel the odd part of the sampling error
            averages.add(mean + e[:, None], watch=False)
            averages.add(mean - e[:, None], watch=False)
        return averages.posterior(0)

    def draw(self, X: Array, rng: np.random.Generator) -> Array:
        """Log weights (m, q) of rows with features X (m, d), from the model."""
        mean = self.mean(X).T
        normals = rng.standard_normal(tuple(mean.shape))
        if math.isfinite(self.tail):
            normals /= np.sqrt(rng.chisquare(self.tail, (len(normals), 1)) / self.tail)
        return mean + like(normals @ logistic_normal.square_root(self.parameters.covariance).T, mean)

    def posterior(self, X: Array, L: Array, rng: np.random.Generator, n_samples: int = 0) -> Posterior:
        """Posterior of rows with features X (m, d) and labels L (m, q), `max_rows` rows at a time."""
        backend, m = get_backend(X), X.shape[0]
        size = backend.rows_per_block(X, L.shape[1], self.settings.max_rows)
        starts = range(0, m, size)

        def of_block(block: tuple[int, np.random.Generator]) -> Posterior:
            rows = slice(block[0], block[0] + size)
            return self.posterior_of_block(X[rows], L[rows], block[1], n_samples, single=m >= MANY_ROWS)

        # Every block has its own stream of random numbers: which thread is first makes no difference.
        blocks = zip(starts, rng.spawn(len(starts)), strict=True)
        done = backend.map_blocks(of_block, blocks)
        work = L.shape[0] * L.shape[1] * self._chain_length()[0]
        return joined(list(show_progress(done, len(starts), work, self.settings.verbose)))

    def posterior_of_block(
        self, X: Array, L: Array, rng: Any, n_samples: int = 0, *, single: bool = False
    ) -> Posterior:
        """The same for all rows at once; `rng` draws uniform and normal numbers, whose shapes end with m."""
        if L.shape[1] == 1:
            return certain(L)
        silent = self.settings.noise.silent(self.rule, L)
        if bool(silent.all()):
            return self.prior(X)
        found = self._sampled(X, self.settings.noise.forget_silent(self.rule, L), rng, n_samples, single)
        return found.where(silent, self.prior(X)) if bool(silent.any()) else found

    def _sampled(self, X: Array, L: Array, rng: Any, n_samples: int, single: bool) -> Posterior:
        """The same by a Markov chain."""
        n_sweeps, n_burn = self._chain_length()
        rows = Rows(self.rule, L, self.settings.noise, tail=self.tail, single=single)
        mean, draws = like(self.mean(X), rows.Z), get_backend(X).draws(rng, X)  # of one precision in every sweep
        precision = logistic_normal.precision(self._covariance() if rows.takes_factors else self.parameters.covariance)
        averages = Averages(rows.Z, n_samples, n_sweeps - n_burn)
        if n_samples == 0 and rows.run(mean, precision, draws, n_sweeps, n_burn, averages):
            return averages.posterior(rows.n_relaxed, rows.exact_labels())
        for k in range(n_sweeps):
            rows.sweep(mean, precision, draws, reflect=k % 2 == 1)
            if k >= n_burn:
                averages.add(rows.Z, watch=False)
        return averages.posterior(rows.n_relaxed, rows.exact_labels())

    def _covariance(self) -> Covariance:
        """Sigma by its factors, where it still is what they make: `replace` may have given the model another one."""
        Sigma, factors = self.parameters.covariance, self.factors
        return factors if factors is not None and np.allclose(factors.dense(), Sigma, rtol=1e-9, atol=0.0) else Sigma

    def _chain_length(self) -> tuple[int, int]:
        """Sweeps of a chain whose parameters are known, and how many of them are left out of the averages.

        Twice as many beside graded rows, where all rows were fitted: too few to be what takes the time.
        """
        twice = self.n_graded > 0 and self.n_rows < self.settings.max_rows
        n_sweeps = max(20, self.settings.n_sweeps // (1 if twice else 2))
        kept, few = n_sweeps - n_sweeps // 4, len(self.parameters.covariance) <= FEW_LABELS
        n_burn = min(n_sweeps // 4, BURN_FEW) if few else n_sweeps // 4
        return n_burn + kept, n_burn


def solution_of(fit: Any, posterior: Posterior, n_graded: int, own: dict[str, Any]) -> Solution:
    """What a `Fit` or `PeopleFit` and the posterior of its rows say, with what only one of the two has to say."""
    size = fit.effective_sample_size
    return Solution(
        posterior.mean,
        residual=float(1.0 / np.sqrt(max(size, 1e-12))),
        n_iter=fit.settings.n_sweeps,
        converged=size >= FEW_DRAWS or fit.n_labels == 1,
        info={
            "effective_sample_size": size,
            "split_r_hat": fit.split_r_hat,
            "spread": fit.spread.mean,
            "spread_deviation": fit.spread.deviation,
            "degradation": str(fit.rule),
            "sample_rows": fit.n_rows,
            "graded_rows": n_graded,
            "degrees_of_freedom": fit.tail,
            **own,
        },
    )


def with_tails(normals: np.ndarray, tail: float) -> Array:
    """Normal draws (m, q) as draws of a t distribution, by quantiles of its weights in random order."""
    if math.isinf(tail):
        return normals
    m = len(normals)
    weights = chi2.ppf((np.random.default_rng(0).permutation(m) + 0.5) / m, tail) / tail
    return normals / np.sqrt(weights)[:, None]


def mean_features(feature_map: PrincipalMap | None, X: Array) -> Array:
    """Features (p, n) of the mean, a constant first; they are dense where X is sparse."""
    if get_backend(X).name == "sparse":
        constant = np.ones((1, X.shape[0]))
        return constant if feature_map is None else np.concatenate([constant, feature_map(X).T])
    xp = array_namespace(X)
    constant = xp.ones_like(X[:, :1]).T
    return constant if feature_map is None else xp.concat([constant, feature_map(X).T])


def _within_reach(mean: Array) -> Array:
    """Means (q, m) whose exponentials are numbers: those of rows far outside of the training rows are shortened."""
    xp = array_namespace(mean)
    farthest = 0.45 * math.log(float(xp.finfo(mean.dtype).max))
    return mean * (farthest / xp.clip(xp.max(xp.abs(mean), axis=0, keepdims=True), min=farthest))


def on_host(A: Array) -> Array:
    """The same in NumPy, in double precision; what is sparse stays so."""
    return A if get_backend(A).name == "sparse" else np.asarray(to_numpy(A), dtype=np.float64)


def certain(L: Array) -> Posterior:
    """The posterior of rows with one label."""
    xp = array_namespace(L)
    return Posterior(xp.ones_like(L), xp.full_like(L, xp.inf), xp.zeros_like(L))

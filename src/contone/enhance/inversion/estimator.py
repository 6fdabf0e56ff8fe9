"""Inversion: label enhancement as a Bayesian inverse problem.

Logical labels are a *measurement* of the label distribution: a known rule made them from it. The model is that rule
behind a logistic-normal distribution whose mean depends on the features,

    z_i ~ N(B^T phi(x_i), Sigma),   d_i = softmax(z_i),   l_i = degrade(d_i),

and the answer is the posterior mean E[d_i | X, L], which minimises the expected KL(D || D^). All parameters come from
(X, L):

- z given the rest: Gibbs sampling, each log degree from a normal cut to the interval that L leaves (`numerics.gibbs`);
- B and the weight of the features given z: conjugate draws; Sigma: its mode given z, averaged over sweeps with falling
  weights (stochastic approximation EM; `numerics.logistic_normal`). The start is what the frequencies and
  co-occurrences of the labels say, so that directions which the labels leave open stay where all labels vary alike;
- the overall spread s of z: the histogram of |L_i|. The flatter D is, the more labels it takes to pass the threshold.
  With very few labels the histogram says little; a weak log-normal prior then decides. Left to the sampler alone, s
  would creep to zero wherever the histogram leaves it free, so it is set from outside, by simulation.

Rows that the rule cannot have made (all labels marked, say) keep the order only: marked labels above the others.

See docs/inversion.md for the derivation, what it reaches and what was tried.

References
----------
B. Delyon, M. Lavielle, E. Moulines. Convergence of a stochastic approximation version of the EM algorithm. Annals of
Statistics 27, 1999.  D. Bonett, R. Price. Inferential methods for the tetrachoric correlation coefficient. Journal of
Educational and Behavioral Statistics 30, 2005.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from array_api_compat import array_namespace, is_dask_array, is_torch_array
from scipy.special import ndtri
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from contone import validation_dask
from contone.base import Enhancer, InductiveMixin, _on_simplex
from contone.degrade import Degradation
from contone.enhance.inversion import blocks as inversion_dask
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion import rules as inversion_rules
from contone.enhance.inversion.averages import Averages
from contone.enhance.inversion.logistic_normal import Parameters
from contone.enhance.inversion.rows import Rows, block_rows, draws_like
from contone.exceptions import InputError, LabelWarning
from contone.numerics.arrays import count_members, like, to_numpy
from contone.numerics.principal import PrincipalMap, principal_map
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.runtime.threads import calm_libraries, side_by_side
from contone.validation import check_features, check_new_labels, open_border

Array = Any
Step = TypeVar("Step")

PRIOR = (0.22, 0.5)
"""Median and log standard deviation of the prior of the spread: a typical degree is 1.25 times its neighbour, and twice
or half that spread is one standard deviation and a half away. It decides only where the histogram of |L| does not."""
SIMULATED = 30_000, 3000
"""Degrees, and at least how many rows, to simulate for comparing cardinalities: with few labels, whose histogram says
little, more rows, so that chance in the simulation does not add to the doubt."""
TRIAL_ROWS, TRIAL_SWEEPS = 1000, 40
"""At most how many rows, and how many sweeps, each candidate of "auto" is fitted with."""
FREE = 20
"""Sweeps in which Sigma follows the latest draw; the k-th sweep after them enters an average with weight k^-0.7."""
FEW_DRAWS = 10.0
"""Effective sample size of a typical degree under which the run is called short."""
LONG = 3e8
"""Degrees drawn in a run that takes a minute or so: from here on a progress bar is shown on a terminal."""


class Inversion(InductiveMixin, Enhancer):
    """Bayesian inversion of the degradation: the mean of all distributions that degrade to L, weighted by a model.

    A confidence matrix in place of L counts by its support: a label is marked where its confidence is positive.

    Parameters
    ----------
    degradation : Degradation, "cumulative", "topk", "threshold" or "auto", default="cumulative"
        The rule that made L. The names stand for `CumulativeMass(0.5)`; for the order alone, with each row's own number
        of labels; and for `Threshold(1 / q)`. "auto" chooses among these and other parameters by the likelihood of the
        number of labels a row, with a model fitted under each (`degradation_` says which it was); it takes several
        seconds.
    features : bool, default=True
        Let the mean of z depend on X. False uses L alone.
    n_components : int, default=60
        Principal components of the standardised features that the mean may use; how much they count is estimated.
    n_sweeps, n_burn : int, default=200, 80
        Gibbs sweeps in all, and how many of them are left out of the averages.
    noise : float, default=0.0
        Share of the entries of L that are wrong. 0 takes every label as exact. Above 0, the labels that a row would
        have without error are sampled along, at several times the cost.
    strength : float or None, default=None
        How many rows the prior of Sigma (equal, unrelated labels) is worth; None means q, one row a label.
    max_rows : int, default=20000
        Parameters are estimated on at most this many rows, drawn at random; the others then follow block by block.
    n_samples : int, default=0
        How many posterior samples to keep, evenly spaced, as `samples_` (n_samples, n, q).
    random_state : int or None, default=0
        Seed. The default gives the same answer every time; None gives a new one.
    verbose : bool or None, default=None
        Show a progress bar on stderr (needs `rich`); None shows one on long runs on a terminal.

    Attributes
    ----------
    degradation_ : Degradation
    spread_, spread_deviation_ : float
        Root mean square of the centred log degrees: posterior mean and standard deviation.
    coefficients_, covariance_ : (1 + k, q), (q, q)
        Posterior means of B (intercept first) and Sigma.
    n_relaxed_ : int
        Rows that the rule cannot have made; only their order is used.
    samples_ : (n_samples, n, q)
        Only with `n_samples` > 0 and n <= `max_rows`. Each of them degrades to exactly L (but for relaxed rows and
        noise > 0).

    Examples
    --------
    >>> from contone import CumulativeMass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> truth = softmax(X @ [[0.5, 0.0, -0.5], [0.0, 0.5, 0.0]] + 0.3 * rng.normal(size=(100, 3)))
    >>> L = CumulativeMass(0.5).apply(truth)
    >>> method = Inversion(n_samples=1).fit(X, L)
    >>> bool((CumulativeMass(0.5).apply(method.samples_[0]) == L).all())
    True
    >>> lower, upper = method.intervals_(0.9)
    >>> bool(0.8 < np.mean((lower < truth) & (truth < upper)) < 1.0)
    True
    """

    reference = "this library; docs/inversion.md"
    array_api = True
    out_of_core = True
    when_short = "its answer still depends on chance: raise n_sweeps"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degradation": [Degradation, StrOptions({"cumulative", "topk", "threshold", "auto"})],
        "features": ["boolean"],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_sweeps": [Interval(Integral, 2, None, closed="left")],
        "n_burn": [Interval(Integral, 0, None, closed="left")],
        "noise": [Interval(Real, 0, 0.5, closed="left")],
        "strength": [None, Interval(Real, 0, None, closed="neither")],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "n_samples": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": [None, "boolean"],
    }

    def __init__(
        self,
        *,
        degradation: Degradation | str = "cumulative",
        features: bool = True,
        n_components: int = 60,
        n_sweeps: int = 200,
        n_burn: int = 80,
        noise: float = 0.0,
        strength: float | None = None,
        max_rows: int = 20000,
        n_samples: int = 0,
        random_state: int | None = 0,
        verbose: bool | None = None,
    ) -> None:
        self.degradation = degradation
        self.features = features
        self.n_components = n_components
        self.n_sweeps = n_sweeps
        self.n_burn = n_burn
        self.noise = noise
        self.strength = strength
        self.max_rows = max_rows
        self.n_samples = n_samples
        self.random_state = random_state
        self.verbose = verbose

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        if self.n_burn >= self.n_sweeps:
            raise InputError(f"Inversion: n_burn ({self.n_burn}) must be less than n_sweeps ({self.n_sweeps}).")
        if is_dask_array(X):
            return inversion_dask.fit_enhance(self, X, L)
        n = len(L)
        rng = _generator(self.random_state)
        self.degradation_ = self._rule(to_numpy(L))
        self._map: PrincipalMap | None = principal_map(X, self.n_components) if self.features else None
        chosen = np.sort(rng.permutation(n)[: self.max_rows]) if n > self.max_rows else slice(None)
        if L.shape[1] == 1:
            return self._only_label(X, L)
        rows = Rows(self.degradation_, L[chosen], self.noise)
        averages = Averages(rows.Z, self.n_samples, self.n_sweeps - self.n_burn)
        with calm_libraries():
            parameters = self._run(self._phi(X[chosen]), rows, averages, L, rng)
        self.coefficients_, self.covariance_ = parameters.coefficients, parameters.covariance
        relaxed = rows.n_relaxed
        if n > self.max_rows:
            answer, self._centre, self._width, relaxed = self._by_blocks(X, L, rng)
        else:
            answer = averages.mean()
            self._centre, self._width = averages.logit_moments()
            if self.n_samples:
                self.samples_ = array_namespace(L).stack(averages.samples)
        self.n_relaxed_ = relaxed
        if relaxed:
            warnings.warn(
                f"{relaxed} of {n} rows have labels that {self.degradation_} cannot have made; for these only the "
                "order is used: marked labels above the others. Another `degradation` (or noise > 0) may fit better.",
                LabelWarning,
                stacklevel=4,
            )
        size, rhat = averages.diagnostics()
        info = {
            "effective_sample_size": size,
            "split_r_hat": rhat,
            "spread": self.spread_,
            "spread_deviation": self.spread_deviation_,
            "feature_weight": float(parameters.theta),
            "degradation": str(self.degradation_),
            "relaxed_rows": relaxed,
        }
        return Solution(
            answer,
            residual=float(1.0 / np.sqrt(max(size, 1e-12))),
            n_iter=self.n_sweeps,
            converged=size >= FEW_DRAWS,
            info=info,
        )

    def _rule(self, L: np.ndarray) -> Degradation:
        """The rule asked for; "auto" is settled by short runs without features under every candidate."""
        if isinstance(self.degradation, Degradation):
            return self.degradation
        if self.degradation != "auto" or L.shape[1] == 1:
            return inversion_rules.named(self.degradation if self.degradation != "auto" else "cumulative", L)
        some = L[np.sort(np.random.default_rng(0).permutation(len(L))[:TRIAL_ROWS])]

        def drawn(rule: Degradation) -> np.ndarray:
            trial = Inversion(degradation=rule, features=False, n_sweeps=TRIAL_SWEEPS, n_burn=TRIAL_SWEEPS // 2)
            trial.degradation_ = rule
            rows, rng = Rows(rule, some, 0.0), np.random.default_rng(0)
            with calm_libraries():
                model = trial._run(np.ones((1, len(some))), rows, Averages(rows.Z, 0, 0), some, rng)
            normals = rng.standard_normal((_simulated_rows(L.shape[1]), L.shape[1]))
            Z = model.coefficients[0] + normals @ logistic_normal.square_root(model.covariance).T
            return Z / np.sqrt(np.mean(np.square(Z)))

        return inversion_rules.likeliest(L, drawn, PRIOR)

    def _only_label(self, X: np.ndarray, L: np.ndarray) -> Solution:
        """One label has the degree 1, whatever else is known."""
        xp = array_namespace(L)
        self.coefficients_, self.covariance_ = np.zeros((len(self._phi(X)), 1)), np.zeros((1, 1))
        self._centre, self._width = xp.full_like(L, xp.inf), xp.zeros_like(L)
        self.n_relaxed_, self.spread_, self.spread_deviation_ = 0, 0.0, 0.0
        return Solution(xp.ones_like(L))

    def intervals_(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Credible intervals for every degree of the training rows: lower and upper ends, each (n, q).

        They are central on the logit scale, from the posterior mean and variance of log(d / (1 - d)), which is all that
        is kept: two numbers a degree. The chain runs at one spread; its doubt r (relative) is added here: to first
        order the distance of a logit from that of 1 / q is in proportion to the spread, so the variance v at distance c
        becomes (1 + r^2) v + r^2 c^2.
        """
        if not 0 < level < 1:
            raise InputError(f"intervals_: level must be between 0 and 1; got {level}.")
        check_is_fitted(self)
        q = self._centre.shape[1]
        doubt = self.spread_deviation_ / self.spread_ if q > 1 else 0.0
        distance = self._centre + math.log(q - 1) if q > 1 else self._width
        width = ((1.0 + doubt**2) * self._width**2 + (doubt * distance) ** 2) ** 0.5
        half = float(ndtri(0.5 + level / 2)) * width
        return _expit(self._centre - half), _expit(self._centre + half)

    def predict(self, X: Any, Y: Any = None) -> Any:
        """Label distributions (m, q) of new rows: the prior mean given X, or with labels Y the posterior mean."""
        if Y is None:
            return super().predict(X)
        if is_dask_array(X) or is_dask_array(Y):
            check_is_fitted(self)
            X, Y = validation_dask.check_new_rows(self, X, Y, self.label_names_)
            return _on_simplex(inversion_dask.posterior_mean(self, X, Y), Y.shape, self)
        X_checked = check_features(self, X, reset=False)
        L = check_new_labels(self, X_checked, Y, self.label_names_)
        if L.shape[1] == 1:
            return open_border(Y, self.label_names_).wrap(np.ones(tuple(L.shape)))
        answer = self._by_blocks(X_checked, L, _generator(self.random_state))[0]
        return open_border(Y, self.label_names_).wrap(_on_simplex(answer, L.shape, self))

    def _predict(self, X: np.ndarray) -> np.ndarray:
        if is_dask_array(X):
            return inversion_dask.prior_mean(self, X)
        rng = _generator(self.random_state)
        noise = rng.standard_normal((64, len(self.covariance_))) @ logistic_normal.square_root(self.covariance_).T
        mean = self._mean(self._phi(X)).T
        # Mirrored pairs cancel the odd part of the sampling error.
        return sum(softmax(mean + e) + softmax(mean - e) for e in like(noise, mean)) / (2 * len(noise))

    def _mean(self, phi: Array) -> Array:
        """Means (q, n) of z by the fitted coefficients."""
        return like(self.coefficients_.T, phi) @ phi

    def _phi(self, X: Array) -> Array:
        """Features (p, n) of the mean, a constant first."""
        xp = array_namespace(X)
        constant = xp.ones_like(X[:, :1]).T
        return constant if self._map is None else xp.concat([constant, self._map(X).T])

    def _run(
        self, phi: np.ndarray, rows: Rows, averages: Averages, L: np.ndarray, rng: np.random.Generator
    ) -> Parameters:
        """Sample rows and parameters in turn; the posterior means of the parameters."""
        q, n = rows.Z.shape
        counts = to_numpy(count_members((L > 0).sum(axis=1), q + 1))[1:]
        strength = float(q) if self.strength is None else self.strength
        gram = to_numpy(phi @ phi.T)
        simulated = _simulated_rows(q)
        sampled, normals = rng.integers(0, n, simulated), rng.standard_normal((simulated, q))
        some = to_numpy(phi[:, sampled])

        def anchored(shape: Parameters, renew: bool) -> tuple[Parameters, float]:
            """The same shape at the spread that the cardinalities ask for, and the factor that it took."""
            mean = (shape.coefficients.T @ some).T
            size = float(np.sqrt(np.mean(np.square(mean)) + np.trace(shape.covariance) / q))
            if renew:
                drawn = mean + normals @ logistic_normal.square_root(shape.covariance).T
                self.spread_, self.spread_deviation_ = self._spread(drawn / size, counts)
            return shape.scaled(self.spread_ / size), self.spread_ / size

        met = array_namespace(phi).astype(rows.given, phi.dtype)
        coefficients = np.zeros((len(phi), q))
        coefficients[0], covariance = logistic_normal.moments(to_numpy(met @ met.T), n)
        now, _ = anchored(Parameters(coefficients, covariance, 0.5), renew=True)
        total: list[Any] = [np.zeros_like(coefficients), np.zeros_like(covariance), 0.0]
        scatter = np.zeros((q, q))
        draws = draws_like(rng, phi)
        for k in _progress(range(self.n_sweeps), self.n_sweeps, q * n * self.n_sweeps, self.verbose):
            # While parameters are still learnt, plain draws explore; then every other sweep mirrors the last one.
            mirror = k > self.n_burn and (k - self.n_burn) % 2 == 1
            mean, precision = like(now.coefficients.T, phi) @ phi, logistic_normal.precision(now.covariance)
            rows.sweep(mean, precision, draws, reflect=mirror)
            Z = rows.Z - rows.Z.mean(axis=0)
            coefficients = logistic_normal.draw_coefficients(gram, to_numpy(phi @ Z.T), now, rng)
            residual = Z - like(coefficients.T, phi) @ phi
            weight = max(k - FREE + 1, 1) ** -0.7
            scatter = (1 - weight) * scatter + weight * to_numpy(residual @ residual.T)
            covariance = logistic_normal.covariance_mode(scatter, n, strength)
            theta = logistic_normal.draw_theta(coefficients, covariance, rng) if len(phi) > 1 else now.theta
            now, factor = anchored(Parameters(coefficients, covariance, theta), renew=k % 20 == 0 or k in (5, 10))
            scatter *= factor**2
            if k >= self.n_burn:
                averages.add(rows.Z)
                total = [t + v for t, v in zip(total, vars(now).values(), strict=True)]
        return Parameters(*(t / (self.n_sweeps - self.n_burn) for t in total))

    def _spread(self, Z: np.ndarray, counts: np.ndarray) -> logistic_normal.Spread:
        """Spread of z that the cardinalities ask for; Z (m, q) is drawn from the model, at spread 1."""
        if not self.degradation_.scale_matters:
            return logistic_normal.spread_prior(PRIOR)
        return logistic_normal.spread_posterior(Z, counts, self.degradation_.cardinality, PRIOR)

    def _by_blocks(
        self, X: np.ndarray, L: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Posterior of rows given the parameters, `max_rows` rows at a time: mean, logit moments, relaxed rows."""
        size = block_rows(X, L.shape[1], self.max_rows)
        starts = range(0, len(X), size)

        def posterior(block: tuple[int, np.random.Generator]) -> tuple[Array, Array, Array, int]:
            rows = slice(block[0], block[0] + size)
            return self._posterior(X[rows], L[rows], block[1])

        # Every block has its own stream of random numbers: which thread is first makes no difference.
        blocks = zip(starts, rng.spawn(len(starts)), strict=True)
        done = map(posterior, blocks) if is_torch_array(X) else side_by_side(posterior, blocks)
        found = list(_progress(done, len(starts), L.shape[0] * L.shape[1] * self.n_sweeps / 2, self.verbose))
        answer, centre, width = (array_namespace(L).concat(p) for p in list(zip(*found, strict=True))[:3])
        return answer, centre, width, sum(relaxed for *_, relaxed in found)

    def _posterior(self, X: Array, L: Array, rng: Any) -> tuple[Array, Array, Array, int]:
        """Posterior of some rows given the parameters: mean, moments of the logits, and how many rows are relaxed."""
        n_sweeps = max(20, self.n_sweeps // 2)
        precision = logistic_normal.precision(self.covariance_)
        rows, mean, draws = Rows(self.degradation_, L, self.noise), self._mean(self._phi(X)), draws_like(rng, X)
        averages = Averages(rows.Z, 0, n_sweeps)
        for k in range(n_sweeps):
            rows.sweep(mean, precision, draws, reflect=k % 2 == 1)
            if k >= n_sweeps // 4:
                averages.add(rows.Z)
        return averages.mean(), *averages.logit_moments(), rows.n_relaxed


def _simulated_rows(q: int) -> int:
    degrees, rows = SIMULATED
    return max(degrees // q, rows)


def _generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls random_state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _expit(x: Array) -> Array:
    return 1.0 / (1.0 + array_namespace(x).exp(-x))


def _progress(steps: Iterable[Step], total: int, work: float, verbose: bool | None) -> Iterator[Step]:
    """The steps, behind a progress bar on stderr where one is wanted and rich is there."""
    if verbose is False or (verbose is None and work < LONG):
        yield from steps
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        yield from steps
        return
    console = Console(stderr=True)
    yield from track(steps, "Inversion", total, console=console, disable=verbose is None and not console.is_terminal)

"""The parameters of the model from labelled rows: Gibbs draws of the rows and of the parameters in turn.

- z given the rest: a sweep of `sweeps`;
- B and the weight theta of the features given z: conjugate draws;
- Sigma: its mode given z, averaged over sweeps with falling weights (stochastic approximation EM);
- the overall spread s of z: from the histogram of |L_i|, by simulation. Left to the sampler alone, s would creep to
  zero wherever the histogram leaves it free.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from contone.backends import get_backend, like, to_numpy
from contone.enhance.inversion import evidence, logistic_normal, unasked
from contone.enhance.inversion.covariance import FEW_LABELS, LAST_STEPS, FactorCovariance, FactorFit, choose_rank
from contone.enhance.inversion.evidence import Calibration, Graded
from contone.enhance.inversion.logistic_normal import NO_FLIPS, Counts, Flips, Parameters, Spread
from contone.enhance.inversion.posterior import Averages, ShapeUncertainty
from contone.enhance.inversion.sampler import Rows
from contone.exceptions import InputError, LabelError
from contone.measurements import IntervalRule, has_unasked
from contone.runtime import progress
from contone.runtime.machine import one_blas_thread
from contone.typing import Array

Step = TypeVar("Step")

NOISE_AT_FIRST = Flips(0.1, 0.02)
"""Shares of wrong entries that a chain starts from which estimates them."""
SETTLED = (0.1, 0.1, 0.4)
"""The most that the two halves of such a chain may differ by: shares, and the log of the spread."""
SWEEPS_OF_NOISE = 200
"""Sweeps that such a chain takes to come to rest before those of any other."""
SIMULATED = 30_000, 3000
"""Degrees, and at least how many rows, to simulate for comparing cardinalities: with few labels, whose histogram says
little, more rows, so that chance in the simulation does not add to what is not known."""
SPREAD_EVERY = {True: 20, False: 4}
"""Sweeps from one estimate of the spread to the next; more often where wrong labels are estimated along: each step
makes up for a part of the other, and with estimates 20 sweeps apart 200 sweeps did not bring them to rest."""
SWEEPS_BEFORE_AVERAGING = 20
"""Sweeps in which Sigma follows the latest draw; the k-th sweep after them enters an average with weight k^-0.7."""
DRAWS_WORTH_A_BAR = 3e8
"""Degrees drawn in a run that takes half a minute or so: from here on a progress bar is shown on a terminal."""


@dataclass(frozen=True)
class Settings:
    """How a fit is made; the names are those of the parameters of `Inversion`."""

    features: bool = True
    n_components: int = 60
    n_sweeps: int = 200
    n_burn: int = 80
    noise: Flips = NO_FLIPS
    noise_known: bool = True
    """Otherwise `noise` is where the shares of wrong entries start, and they are drawn along."""
    resolution: int | None = None
    strength: float | None = None
    max_rows: int = 20000
    n_samples: int = 0
    verbose: bool | None = False

    def check(self, *, takes_numbers: bool, rule_is_open: bool = False) -> None:
        """Refuse settings that do not go together."""
        if rule_is_open and not self.noise_known:
            raise InputError('Inversion: noise="auto" needs a rule by name: numbers of labels do not tell both.')
        if self.n_burn >= self.n_sweeps:
            raise InputError(f"Inversion: n_burn ({self.n_burn}) must be less than n_sweeps ({self.n_sweeps}).")
        if self.noise.any() and takes_numbers:
            raise InputError(
                "Inversion: noise > 0 (and doubtful_labels) needs a rule that says which labels degrees give; an order "
                "and answers of people (votes, marks, levels) do not. Use noise=0, or another degradation."
            )

    def worth(self, q: int) -> float:
        """How many rows the prior of Sigma (q, q) is worth."""
        return float(q) if self.strength is None else self.strength

    @property
    def weights(self) -> list[float]:
        """Of the sweeps in the average that Sigma is."""
        return [averaging_weight(k) for k in range(self.n_sweeps)]


def learn_parameters(
    phi: Array,
    rows: Rows,
    averages: Averages,
    counts: Counts,
    settings: Settings,
    rng: np.random.Generator,
    shape: ShapeUncertainty | None = None,
) -> tuple[Parameters, Spread, FactorCovariance | None]:
    """Posterior means of the parameters, the spread, and the factors that Sigma is made of, where labels are many.

    Parameters
    ----------
    phi : (p, n)
        Features of the mean, a constant first.
    rows : Rows
        The n rows; they move with the chain.
    averages : Averages
        Takes the draws of all sweeps after `n_burn`.
    counts : (q,), (q + 1,) or PartialCounts
        How many of all rows have 1, ..., q labels, or 0, ..., q.
    settings : Settings
        Length of the chain, prior and so on.
    rng : Generator
        Source of all draws.
    shape : ShapeUncertainty or None
        Takes the same draws as `averages`.
    """
    q, n = rows.Z.shape
    strength, every = settings.worth(q), SPREAD_EVERY[settings.noise_known]
    simulation = Simulation.of(rows.rule, counts, phi, q, rng)
    with one_blas_thread():
        gram = to_numpy(phi @ phi.T)
        coefficients = np.zeros((len(phi), q))
        coefficients[0], covariance = rows.moments()
        # Factors, where labels are many and the sampler can make use of them.
        many = q > FEW_LABELS and rows.takes_factors
        factors = FactorFit(choose_rank(to_numpy(rows.given))) if many else None
        now = Parameters(coefficients, covariance if factors is None else factors(covariance), 0.5)
        drawn = list[tuple[float, float, float]]()
        spread = _starting_spread(rows) or simulation.spread(now, rows.noise)
        now = now.scaled(spread.mean / simulation.size(now))
        total: list[Any] = [np.zeros_like(coefficients), np.zeros_like(covariance), 0.0]
        scatter = np.zeros((q, q))
        draws = get_backend(phi).draws(rng, phi)
        phi = like(phi, rows.Z)
        first = 0 if settings.noise_known else -SWEEPS_OF_NOISE
        n_sweeps = settings.n_sweeps - first
        for k in show_progress(range(first, settings.n_sweeps), n_sweeps, q * n * n_sweeps, settings.verbose):
            # While parameters are still learnt, plain draws explore; then every other sweep mirrors the last one.
            mirror = k > settings.n_burn and (k - settings.n_burn) % 2 == 1
            mean, precision = like(now.coefficients.T, phi) @ phi, logistic_normal.precision(now.covariance)
            rows.sweep(mean, precision, draws, reflect=mirror)
            if not settings.noise_known:
                rows.draw_noise(rng)
                drawn.append((*rows.noise, math.log(spread.mean)))
            Z = rows.Z - rows.Z.mean(axis=0)
            coefficients = logistic_normal.draw_coefficients(gram, to_numpy(phi @ Z.T), now, rng)
            residual = Z - like(coefficients.T, phi) @ phi
            weight = averaging_weight(k)
            scatter = (1 - weight) * scatter + weight * to_numpy(residual @ residual.T)
            covariance = logistic_normal.covariance_mode(scatter, n, strength)
            held = covariance if factors is None else factors(covariance)
            if shape is not None and k >= settings.n_burn:
                shape.add(Z, residual, covariance)
            theta = logistic_normal.draw_theta(coefficients, held, rng) if len(phi) > 1 else now.theta
            now = Parameters(coefficients, held, theta)
            size = simulation.size(now)
            if rows.rule.scale_matters and (k % every == 0 or k in (5, 10)):
                spread = simulation.spread(now, rows.noise)
            now = now.scaled(spread.mean / size)
            scatter *= (spread.mean / size) ** 2
            if factors is not None:
                factors.rescale((spread.mean / size) ** 2)
            if k >= settings.n_burn:
                averages.add(rows.Z)
                whole = now if factors is None else now._replace(covariance=covariance * (spread.mean / size) ** 2)
                total = [t + v for t, v in zip(total, whole, strict=True)]
    if drawn:
        rows.noise = settle_noise(np.array(drawn[settings.n_burn - settings.n_sweeps :]))
    found = Parameters(*(t / (settings.n_sweeps - settings.n_burn) for t in total))
    if factors is not None:
        made_of = factors(found.covariance, LAST_STEPS)
        return found._replace(covariance=made_of.dense()), spread, made_of
    return found, spread, None


def settle_noise(drawn: np.ndarray) -> Flips:
    """Shares of wrong entries from a chain that has come to rest; drawn (m, 3) with the log of the spread."""
    first, second = (drawn[half].mean(axis=0) for half in np.array_split(np.arange(len(drawn)), 2))
    if (np.abs(first - second) > SETTLED).any():
        raise LabelError(
            'Inversion: noise="auto" finds no share of wrong labels that stays: '
            f"{first[0]:.2f} of the positives missed and {first[1]:.2f} of the others marked at a spread of "
            f"{math.exp(first[2]):.2g}, later {second[0]:.2f} and {second[1]:.2f} at {math.exp(second[2]):.2g}. "
            "The labels do not tell them from the spread; give noise=(missed, false)."
        )
    return Flips(*drawn[:, :2].mean(axis=0).tolist())


def averaging_weight(k: int) -> float:
    """The weight of sweep k = 0, 1, ... in the average that Sigma is."""
    return float(max(k - SWEEPS_BEFORE_AVERAGING + 1, 1) ** -0.7)


def calibrate_parameters(
    phi: Array,
    rows: Rows,
    parameters: Parameters,
    spread: Spread,
    counts: Counts,
    settings: Settings,
    rng: np.random.Generator,
) -> Calibration:
    """Parameters given the graded rows as well, around those of `learn_parameters`.

    The scale of z changes by this, and with it the coefficients of the features: they are drawn again with the
    covariance held, and the graded rows are asked a second time.
    """
    assert rows.grades is not None
    known = np.flatnonzero(to_numpy(rows.grades.known))
    found, gram = Calibration(parameters, spread, math.inf), to_numpy(phi @ phi.T)
    simulation = Simulation.of(rows.rule, counts, phi, len(parameters.covariance), rng)
    with one_blas_thread():
        taken = np.zeros(len(parameters.covariance))
        for _ in range(2):
            # The mean was learnt at the scales that were taken; the labels' covariance has none of them.
            coefficients = found.parameters.coefficients / np.exp(taken)
            graded = _graded_rows(phi, gram, rows, parameters._replace(coefficients=coefficients), known)
            start = parameters._replace(coefficients=coefficients - coefficients.mean(axis=1, keepdims=True))

            def spread_under(tail: float, start: Parameters = start) -> Spread:
                """The spread that the cardinalities say where residuals have tails, in units of that of `start`."""
                size, said = simulation.size(start, tail), simulation.spread(start, settings.noise, tail)
                return Spread(said.mean / size, said.deviation / size)

            told = rows.rule.scale_matters
            found, taken = evidence.calibrate(start, graded, spread_under, labels_tell_scale=told)
            rows.tail = found.tail
            coefficients = _redraw_coefficients(phi, gram, rows, found.parameters, settings, rng)
            found = found._replace(parameters=found.parameters._replace(coefficients=coefficients))
    return found._replace(spread=Spread(*(spread.mean * part for part in found.spread)))


def _graded_rows(phi: Array, gram: np.ndarray, rows: Rows, parameters: Parameters, known: np.ndarray) -> Graded:
    """The graded rows and their means B^T phi, both as wide as if these rows had had no part in B."""
    features, Z = to_numpy(phi[:, known]), to_numpy(rows.Z[:, known])
    penalised = gram + np.diag(logistic_normal.ridge(len(gram), parameters.theta))
    leverage = np.einsum("ki,ki->i", features, np.linalg.solve(penalised, features))
    widened = 1.0 / np.sqrt(np.maximum(1.0 - leverage, 0.05))
    return Graded.of((Z * widened).T, (parameters.coefficients.T @ features * widened).T, parameters.covariance)


def _redraw_coefficients(
    phi: Array, gram: np.ndarray, rows: Rows, parameters: Parameters, settings: Settings, rng: np.random.Generator
) -> Array:
    """Posterior mean of B (p, q) with Sigma and theta as they are, over the second half of some sweeps."""
    draws, precision = get_backend(phi).draws(rng, phi), logistic_normal.precision(parameters.covariance)
    now, total, n_sweeps = parameters, np.zeros_like(parameters.coefficients), max(settings.n_burn, 10)
    for k in range(n_sweeps):
        rows.sweep(like(now.coefficients.T, phi) @ phi, precision, draws)
        Z = rows.Z - rows.Z.mean(axis=0)
        now = now._replace(coefficients=logistic_normal.draw_coefficients(gram, to_numpy(phi @ Z.T), now, rng))
        if k >= n_sweeps // 2:
            total = total + now.coefficients
    return total / (n_sweeps - n_sweeps // 2)


@dataclass(frozen=True)
class Simulation:
    """What the model is simulated with, the same numbers every time, to compare how many labels rows have."""

    rule: IntervalRule
    counts: Counts
    """How many of all rows have 1, ..., q labels, or 0, ..., q."""
    features: np.ndarray
    """(p, m), of some rows."""
    normals: np.ndarray
    """(m, q)."""

    @classmethod
    def of(cls, rule: IntervalRule, counts: Counts, phi: Array, q: int, rng: np.random.Generator) -> "Simulation":
        """With features (p, n) of the mean."""
        m = simulated_rows(q)
        sampled, normals = rng.integers(0, phi.shape[1], m), rng.standard_normal((m, q))
        return cls(rule, counts, to_numpy(phi[:, sampled]), normals)

    def size(self, parameters: Parameters, tail: float = math.inf) -> float:
        """The spread of z under the parameters, and tails."""
        B, q = parameters.coefficients, len(parameters.covariance)
        variance = logistic_normal.variance_factor(tail) * logistic_normal.total_variance(parameters.covariance)
        second = self.features @ self.features.T / self.features.shape[1]
        return float(np.sqrt((np.sum(B * (second @ B)) + variance) / q))

    def spread(self, parameters: Parameters, noise: Flips, tail: float = math.inf) -> Spread:
        """The spread that the numbers of labels ask for, of the shape that the parameters have."""
        weights = np.random.default_rng(0).chisquare(tail, len(self.normals)) / tail if tail < math.inf else 1.0
        residuals = logistic_normal.colour(parameters.covariance, self.normals / np.sqrt(weights)[..., None])
        Z = (parameters.coefficients.T @ self.features).T + residuals
        return logistic_normal.spread_posterior(self.rule, Z / self.size(parameters, tail), self.counts, noise)


def _starting_spread(rows: Rows) -> Spread | None:
    """The spread of the graded rows, where labels say nothing of it: none where they do, or where there are none.

    The prior enters in `calibrate_parameters`; here a spread far off would bend the coefficients of the features.
    """
    if rows.rule.scale_matters or rows.grades is None:
        return None
    Z = to_numpy(rows.grades.log_weights())[to_numpy(rows.grades.known)]
    size = float(np.sqrt(np.mean(np.square(Z - Z.mean(axis=1, keepdims=True)))))
    prior = logistic_normal.spread_prior(rows.rule)
    return Spread(max(size, 0.1 * prior.mean), prior.deviation)


def count_labels(L: Array, rule: IntervalRule, noise: Flips = NO_FLIPS) -> Counts:
    """How many rows of L (n, q) have 1, ..., q labels, for the spread.

    0 comes first where the rule may mark none, or where marks may be missed and some rows have none. (Where none has
    none, such rows may have been left out.)
    """
    at_least_one = rule.at_least_one and not (noise.missed > 0 and bool((L == 0).all(axis=1).any()))
    if has_unasked(L):
        return unasked.count_among_asked(L, at_least_one=at_least_one)
    sizes = (L > 0).sum(axis=1)
    return to_numpy(get_backend(L).count_members(sizes, L.shape[1] + 1))[int(at_least_one) :]


def simulated_rows(q: int) -> int:
    """How many rows of q degrees to simulate."""
    degrees, rows = SIMULATED
    return max(degrees // q, rows)


def show_progress(steps: Iterable[Step], total: int, work: float, verbose: bool | None) -> Iterator[Step]:
    """The steps, told to whoever listens, or behind a progress bar on stderr where one is wanted and rich is there."""
    if verbose is None and work < DRAWS_WORTH_A_BAR:
        verbose = False
    is_silent = verbose is False and progress.listener.get() is None
    yield from steps if is_silent else progress.show_progress(steps, total, "Inversion", verbose)

"""The parameters of the model from labelled rows: Gibbs draws of the rows and of the parameters in turn.

- z given the rest: a sweep of `sampler`;
- B and the weight theta of the features given z: conjugate draws;
- Sigma: its mode given z, averaged over sweeps with falling weights (stochastic approximation EM);
- the overall spread s of z: from the histogram of |L_i|, by simulation. Left to the sampler alone, s would creep to
  zero wherever the histogram leaves it free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend, like, to_numpy
from contone.degrade import Degradation
from contone.enhance.inversion import logistic_normal
from contone.enhance.inversion.logistic_normal import Parameters, Spread
from contone.enhance.inversion.posterior import Averages
from contone.enhance.inversion.sampler import Rows
from contone.runtime.threads import one_blas_thread
from contone.typing import Array

Step = TypeVar("Step")

SPREAD_PRIOR = (0.22, 0.5)
"""Median and log standard deviation of the prior of the spread: a typical degree is 1.25 times its neighbour, and twice
or half that spread is one standard deviation and a half away. It decides only where the histogram of |L| does not."""
SIMULATED = 30_000, 3000
"""Degrees, and at least how many rows, to simulate for comparing cardinalities: with few labels, whose histogram says
little, more rows, so that chance in the simulation does not add to what is not known."""
SWEEPS_BEFORE_AVERAGING = 20
"""Sweeps in which Sigma follows the latest draw; the k-th sweep after them enters an average with weight k^-0.7."""
DRAWS_WORTH_A_BAR = 3e8
"""Degrees drawn in a run that takes a minute or so: from here on a progress bar is shown on a terminal."""


@dataclass(frozen=True)
class Settings:
    """How a fit is made; the names are those of the parameters of `Inversion`."""

    features: bool = True
    n_components: int = 60
    n_sweeps: int = 200
    n_burn: int = 80
    noise: float = 0.0
    strength: float | None = None
    max_rows: int = 20000
    n_samples: int = 0
    verbose: bool | None = False


def learn_parameters(
    phi: Array, rows: Rows, averages: Averages, counts: np.ndarray, settings: Settings, rng: np.random.Generator
) -> tuple[Parameters, Spread]:
    """Posterior means of the parameters, and the spread.

    Parameters
    ----------
    phi : (p, n)
        Features of the mean, a constant first.
    rows : Rows
        The n rows; they move with the chain.
    averages : Averages
        Takes the draws of all sweeps after `n_burn`.
    counts : (q,)
        How many of all rows have 1, ..., q labels.
    """
    q, n = rows.Z.shape
    strength = float(q) if settings.strength is None else settings.strength
    simulated = simulated_rows(q)
    sampled, normals = rng.integers(0, n, simulated), rng.standard_normal((simulated, q))
    some = to_numpy(phi[:, sampled])

    def unit_draws(shape: Parameters, size: float) -> Array:
        """Draws (simulated, q) of z from the model, at spread 1."""
        return ((shape.coefficients.T @ some).T + normals @ logistic_normal.square_root(shape.covariance).T) / size

    def root_mean_square(shape: Parameters) -> float:
        """The spread of z under the parameters."""
        mean = (shape.coefficients.T @ some).T
        return float(np.sqrt(np.mean(np.square(mean)) + np.trace(shape.covariance) / q))

    with one_blas_thread():
        gram = to_numpy(phi @ phi.T)
        met = array_namespace(phi).astype(rows.given, phi.dtype)
        coefficients = np.zeros((len(phi), q))
        coefficients[0], covariance = logistic_normal.moments(to_numpy(met @ met.T), n)
        now = Parameters(coefficients, covariance, 0.5)
        size = root_mean_square(now)
        spread = estimate_spread(rows.rule, unit_draws(now, size), counts)
        now = now.scaled(spread.mean / size)
        total: list[Any] = [np.zeros_like(coefficients), np.zeros_like(covariance), 0.0]
        scatter = np.zeros((q, q))
        draws = get_backend(phi).draws(rng, phi)
        for k in show_progress(
            range(settings.n_sweeps), settings.n_sweeps, q * n * settings.n_sweeps, settings.verbose
        ):
            # While parameters are still learnt, plain draws explore; then every other sweep mirrors the last one.
            mirror = k > settings.n_burn and (k - settings.n_burn) % 2 == 1
            mean, precision = like(now.coefficients.T, phi) @ phi, logistic_normal.precision(now.covariance)
            rows.sweep(mean, precision, draws, reflect=mirror)
            Z = rows.Z - rows.Z.mean(axis=0)
            coefficients = logistic_normal.draw_coefficients(gram, to_numpy(phi @ Z.T), now, rng)
            residual = Z - like(coefficients.T, phi) @ phi
            weight = max(k - SWEEPS_BEFORE_AVERAGING + 1, 1) ** -0.7
            scatter = (1 - weight) * scatter + weight * to_numpy(residual @ residual.T)
            covariance = logistic_normal.covariance_mode(scatter, n, strength)
            theta = logistic_normal.draw_theta(coefficients, covariance, rng) if len(phi) > 1 else now.theta
            now = Parameters(coefficients, covariance, theta)
            size = root_mean_square(now)
            if k % 20 == 0 or k in (5, 10):
                spread = estimate_spread(rows.rule, unit_draws(now, size), counts)
            now = now.scaled(spread.mean / size)
            scatter *= (spread.mean / size) ** 2
            if k >= settings.n_burn:
                averages.add(rows.Z)
                total = [t + v for t, v in zip(total, now, strict=True)]
    return Parameters(*(t / (settings.n_sweeps - settings.n_burn) for t in total)), spread


def estimate_spread(rule: Degradation, Z: np.ndarray, counts: np.ndarray) -> Spread:
    """Spread of z that the cardinalities ask for; Z (m, q) is drawn from the model, at spread 1."""
    if not rule.scale_matters:
        return logistic_normal.spread_prior(SPREAD_PRIOR)
    return logistic_normal.spread_posterior(Z, counts, rule.cardinality, SPREAD_PRIOR)


def simulated_rows(q: int) -> int:
    """How many rows of q degrees to simulate."""
    degrees, rows = SIMULATED
    return max(degrees // q, rows)


def show_progress(steps: Iterable[Step], total: int, work: float, verbose: bool | None) -> Iterator[Step]:
    """The steps, behind a progress bar on stderr where one is wanted and rich is there."""
    if verbose is False or (verbose is None and work < DRAWS_WORTH_A_BAR):
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

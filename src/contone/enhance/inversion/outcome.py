"""What a fit says about itself, and where its random numbers come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.model import Fit
from contone.enhance.inversion.posterior import Posterior
from contone.exceptions import InputError
from contone.numerics.solution import Solution

FEW_DRAWS = 10.0
"""Effective sample size of a typical degree under which the run is called short."""


def as_solution(found: Fit, posterior: Posterior, n_relaxed: int, n_graded: int) -> Solution:
    """What a fit and the posterior of its rows say, as every method says it."""
    size = found.effective_sample_size
    return Solution(
        posterior.mean,
        residual=float(1.0 / np.sqrt(max(size, 1e-12))),
        n_iter=found.settings.n_sweeps,
        converged=size >= FEW_DRAWS or len(found.parameters.covariance) == 1,
        info={
            "effective_sample_size": size,
            "split_r_hat": found.split_r_hat,
            "spread": found.spread.mean,
            "spread_deviation": found.spread.deviation,
            "feature_weight": float(found.parameters.theta),
            "degradation": str(found.rule),
            "relaxed_rows": n_relaxed,
            "sample_rows": found.n_rows,
            "graded_rows": n_graded,
            "degrees_of_freedom": found.tail,
        },
    )


def check_settings(settings: Settings, *, takes_levels: bool) -> None:
    """Refuse settings that do not go together."""
    if settings.n_burn >= settings.n_sweeps:
        raise InputError(f"Inversion: n_burn ({settings.n_burn}) must be less than n_sweeps ({settings.n_sweeps}).")
    if settings.noise > 0 and takes_levels:
        raise InputError(
            f"Inversion: noise={settings.noise:g} needs a rule that says which labels degrees give; "
            'degradation="order" does not. Use noise=0, or another rule.'
        )


def check_level(level: float) -> None:
    """Refuse a level of intervals that is not a probability."""
    if not 0 < level < 1:
        raise InputError(f"intervals: level must be between 0 and 1; got {level}.")


def make_generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls random_state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def make_seed(random_state: Any) -> int:
    """A seed from what scikit-learn calls random_state."""
    return int(check_random_state(random_state).randint(2**31))

"""What is believed of votes before any is seen.

Measured over real sets with many votes per item, the spread of log shares around what features say is 0.5 to 1.9 (its
prior has the middle of that as median, and its ends at one deviation and a half), and people's offsets are 0.5 to 1.1.
With one vote per item these beliefs decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from contone.measurements.votes import Votes


@dataclass(frozen=True)
class LogNormal:
    """A positive number: its median, and the standard deviation of its log."""

    median: float
    deviation: float

    def log_density(self, log_value: float) -> float:
        """Of the log of the number, but for a constant."""
        return -0.5 * ((log_value - math.log(self.median)) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator) -> float:
        """A number."""
        return float(self.median * np.exp(self.deviation * rng.standard_normal()))


@dataclass(frozen=True)
class Prior:
    """Prior of all parameters of the model."""

    spread: LogNormal = LogNormal(*Votes.spread_prior)
    """s: root mean square of a coordinate of z - mu."""
    shape: float = 12.0
    """How many rows the belief is worth that labels are alike and unrelated, beside one per coordinate."""
    axes: tuple[float, ...] = (0.0, 0.4, 0.8)
    """Share of the variance of z that is believed to lie along the order of the labels: one of these."""
    tails: NDArray[np.float64] = field(default_factory=lambda: np.array([4.0, 6.0, 10.0, 20.0, 60.0, 200.0]))
    """Degrees of freedom of the residuals, each as likely as the others; none near 2."""
    coefficient: float = 0.1
    """Standard deviation of coefficients around 1 (the regression is right), and of intercepts around 0."""
    offset: LogNormal = LogNormal(0.7, 0.5)
    """tau."""
    sharpness: LogNormal = LogNormal(0.3, 0.7)
    """kappa: standard deviation of the log sharpness of persons."""


@dataclass(frozen=True)
class LevelsPrior(Prior):
    """What is believed of marks and levels before any is seen: measured, as for votes, in `benchmarks/marks.py`."""

    spread: LogNormal = LogNormal(1.7, 0.35)
    axes: tuple[float, ...] = (0.0,)
    coefficient: float = 1.0
    stretch: LogNormal = LogNormal(0.3, 0.7)
    """gamma: standard deviation of the log of how far apart a person's cut points are."""
    range_of_cuts: float = 4.0
    """From the first cut point to the last: the typical step is a (K - 1)-th of it."""
    step: float = 1.0
    """Standard deviation of the log of a step from one cut point to the next."""

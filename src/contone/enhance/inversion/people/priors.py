"""What is believed of votes before any is seen.

Measured over real sets with many votes per item, the spread of log shares around what features say is 0.5 to 1.9 (its
prior has the middle of that as median, and its ends at one deviation and a half), and people's offsets are 0.5 to 1.1.
With one vote per item these beliefs decide.

A log-normal number is never nearly nothing, but a spread may be, where features tell everything or all items are alike.
A few votes per item cannot tell a spread of 0.1 from one of 0.3, and a prior that excludes both takes the largest that
the votes allow. So one set in ten is believed to have any spread from 0 to about the median.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from contone.measurements.votes import Votes

LARGE = 10.0
"""Log of how many times its median a number must be to be out of reach of the half-normal."""


@dataclass(frozen=True)
class LogNormal:
    """A positive number: its median, and the standard deviation of its log."""

    median: float
    deviation: float
    small: float = 0.0
    """Chance that it is half-normal instead, with the deviation `median`: nothing is then as likely as anything."""

    def log_density(self, log_value: float) -> float:
        """Of the log of the number, but for a constant."""
        return float(np.logaddexp(*self._parts(log_value)))

    def slope(self, log_value: float) -> float:
        """Of `log_density`."""
        x = log_value - math.log(self.median)
        usual, small = self._parts(log_value)
        share = math.exp(small - float(np.logaddexp(usual, small)))
        return (share - 1.0) * x / self.deviation**2 + share * (1.0 - math.exp(2 * x) if share else 0.0)

    def _parts(self, log_value: float) -> tuple[float, float]:
        x = log_value - math.log(self.median)
        usual = -0.5 * (x / self.deviation) ** 2 - math.log(self.deviation)
        if self.small == 0.0 or x > LARGE:
            return usual, -math.inf
        return math.log1p(-self.small) + usual, math.log(2 * self.small) + x - 0.5 * math.exp(2 * x)

    def draw(self, rng: np.random.Generator) -> float:
        """A number."""
        x = rng.standard_normal()
        return float(self.median * (abs(x) if rng.random() < self.small else np.exp(self.deviation * x)))


@dataclass(frozen=True)
class Prior:
    """Prior of all parameters of the model."""

    spread: LogNormal = LogNormal(*Votes.spread_prior, small=0.1)
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

"""The posterior of rows: means and intervals of their degrees, from sums over the sweeps of a Markov chain.

Two numbers per degree are kept for intervals, the mean and the standard deviation of its logit log(d / (1 - d)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace
from scipy.special import ndtri

from contone.backends import get_backend, like, to_numpy
from contone.enhance.inversion.evidence import Grades
from contone.measurements import IntervalRule
from contone.numerics.simplex import softmax
from contone.typing import Array

VOTE_NODES = 9
"""Quantiles of a degree that the distribution of its votes is summed over."""
WATCHED = 200
"""Degrees whose path is kept to judge how well the sampler mixes."""


@dataclass(frozen=True)
class Posterior:
    """What the labels of rows leave of their distributions, each array (n, q)."""

    mean: Array
    """E[d | x, l], rows on the simplex."""
    logit_centre: Array
    logit_width: Array
    """Mean and standard deviation of log(d / (1 - d))."""
    n_relaxed: int = 0
    """Rows that the rule cannot have made."""
    samples: Array | None = None
    """Draws of the distributions (n_samples, n, q), where they were asked for."""
    labels: Array | None = None
    """Labels (n, q) that the rule makes of the degrees without exception, NaN in other rows; None: there are none."""

    def __getitem__(self, rows: Array) -> Posterior:
        """Of some of the rows; samples are left behind."""
        labels = None if self.labels is None else self.labels[rows]
        return Posterior(
            self.mean[rows], self.logit_centre[rows], self.logit_width[rows], self.n_relaxed, labels=labels
        )

    def like(self, model: Array) -> Posterior:
        """The same as arrays of the library, on the device and in the precision of `model`."""
        mean, centre, width = (like(A, model) for A in (self.mean, self.logit_centre, self.logit_width))
        return replace(
            self,
            mean=mean,
            logit_centre=centre,
            logit_width=width,
            samples=None if self.samples is None else like(self.samples, model),
        )

    def with_known(self, grades: Grades) -> Posterior:
        """The same, with the degrees that are known in their rows."""
        xp = array_namespace(self.mean)
        known, D = grades.known[:, None], grades.degrees
        samples = None if self.samples is None else xp.where(known[None], D[None], self.samples)
        return Posterior(
            xp.where(known, D, self.mean),
            xp.where(known, _logit(D), self.logit_centre),
            xp.where(known, xp.zeros_like(D), self.logit_width),
            self.n_relaxed,
            samples,
            None if self.labels is None else xp.where(known, xp.full_like(D, xp.nan), self.labels),
        )

    def intervals(
        self,
        level: float,
        spread_deviation: float,
        shape_shares: np.ndarray | None = None,
        rule: IntervalRule | None = None,
        resolution: int | None = None,
    ) -> tuple[Array, Array]:
        """Credible intervals, central on the logit scale: lower and upper ends (n, q).

        The chain runs at one spread. What is not known of it, r = `spread_deviation` relative to the spread, is added
        here: to first order the distance of a logit from that of 1 / q is in proportion to the spread, so the variance
        v at distance c becomes (1 + r^2) v + r^2 c^2. It runs at one shape of Sigma, too: what is not known of that
        adds a share k_j of the variance, `shape_shares` (q,), so that v is (1 + k_j) times that of the chain. Ends stay
        within what the `rule` allows for the labels of a row. With a `resolution` they are those of shares of so many
        votes (`vote_shares`).
        """
        width = self.total_width(spread_deviation, shape_shares)
        half = float(ndtri(0.5 + level / 2)) * width
        if resolution is None:
            ends = _expit(self.logit_centre - half), _expit(self.logit_centre + half)
        else:
            ends = vote_shares(self.logit_centre, width, level, resolution)
        if rule is None or self.labels is None:
            return ends
        return rule.confine(ends[0], self.labels), rule.confine(ends[1], self.labels)

    def total_width(self, spread_deviation: float, shape_shares: np.ndarray | None = None) -> Array:
        """Standard deviation of the logits (n, q), with what is not known of parameters in it; see `intervals`."""
        q = self.logit_centre.shape[1]
        r = spread_deviation if q > 1 else 0.0
        distance = self.logit_centre + math.log(q - 1) if q > 1 else self.logit_width
        known = self.logit_width <= 0.0  # neither a graded row nor a tie depends on the spread
        variance = self.logit_width**2
        if shape_shares is not None and q > 2:
            variance = variance * like(1.0 + shape_shares, variance)
        width = ((1.0 + r**2) * variance + (r * distance) ** 2) ** 0.5
        return array_namespace(width).where(known, array_namespace(width).zeros_like(width), width)


def vote_shares(centre: Array, width: Array, level: float, votes: int) -> tuple[Array, Array]:
    """Central intervals of V / m, V ~ Binomial(m, d), where the logit of d is normal with a centre and a width, (n, q).

    That is what m people would say of a degree: a lattice with 0 and 1 on it. The distribution of d is summed over
    normal quantiles.
    """
    xp, m = array_namespace(centre), votes
    scores = ndtri((np.arange(VOTE_NODES) + 0.5) / VOTE_NODES)
    nodes = [_expit(centre + width * float(score)) for score in scores]
    nodes = [xp.clip(d, min=1e-12, max=1.0 - 1e-12) for d in nodes]
    # P(V = k) from P(V = k - 1), node by node.
    chances = [xp.exp(m * xp.log1p(-d)) for d in nodes]
    below, lower, upper = xp.zeros_like(centre), xp.zeros_like(centre), xp.zeros_like(centre)
    tail = (1.0 - level) / 2
    for k in range(m):
        below = below + sum(chances) / len(nodes)  # P(V <= k)
        lower, upper = lower + xp.astype(below < tail, lower.dtype), upper + xp.astype(below < 1.0 - tail, lower.dtype)
        chances = [p * ((m - k) / (k + 1.0)) * (d / (1.0 - d)) for p, d in zip(chances, nodes, strict=True)]
    return lower / m, upper / m


def joined(parts: list[Posterior]) -> Posterior:
    """Posteriors of rows, one after the other; draws are kept where there is one part."""
    if len(parts) == 1:
        return parts[0]
    xp = array_namespace(parts[0].mean)
    concat = xp.concat
    return Posterior(
        concat([part.mean for part in parts]),
        concat([part.logit_centre for part in parts]),
        concat([part.logit_width for part in parts]),
        sum(part.n_relaxed for part in parts),
        labels=concat([xp.full_like(p.mean, xp.nan) if p.labels is None else p.labels for p in parts]),
    )


class Averages:
    """Running sums over sweeps: degrees, logits and their squares; a few paths for the diagnostics."""

    def __init__(self, Z: Array, n_samples: int, n_kept: int) -> None:
        q, n = Z.shape
        self.n = 0
        self.in_numpy = get_backend(Z).name == "numpy"
        """Sums are then labels-first in memory, in double precision, and made by compiled loops."""
        if self.in_numpy:
            self.degrees, self.logits, self.squares = (np.zeros((q, n)).T for _ in range(3))
        else:
            self.degrees, self.logits, self.squares = (array_namespace(Z).zeros_like(Z.T) for _ in range(3))
        self.paths: list[np.ndarray] = []
        self.samples: list[Array] = []
        self.watched = np.divmod(np.linspace(0, n * q - 1, min(WATCHED, n * q)).astype(int), q)
        # Spread over the run, the last sweep among them.
        self.sampled = set(np.linspace(n_kept, 0, min(n_samples, n_kept), endpoint=False).round().astype(int).tolist())

    def add(self, Z: Array) -> None:
        """One more draw of log weights Z (q, n)."""
        self.n += 1
        if self.in_numpy:
            self._add_compiled(Z)
        else:
            D = softmax(Z.T)
            logit = _logit(D)
            self.degrees += D
            self.logits += logit
            self.squares += logit * logit
            self.paths.append(to_numpy(logit[self.watched]))
        if self.n in self.sampled:
            self.samples.append(softmax(Z.T.astype(np.float64) if self.in_numpy else Z.T))

    def _add_compiled(self, Z: np.ndarray) -> None:
        """The same with one exponential and one logarithm: a logit is z - log(mass of the others)."""
        from contone.enhance.inversion.sweeps.compiled import add_draw

        resolution = max(1e-12, float(np.finfo(Z.dtype).eps))
        lowest = math.log(np.finfo(Z.dtype).smallest_normal)  # of a degree that is 0: its square must not overflow
        add_draw(Z, (self.degrees.T, self.logits.T, self.squares.T), resolution, lowest)
        self.paths.append(_some_logits(Z, *self.watched, resolution, lowest))

    def posterior(self, n_relaxed: int, labels: Array | None = None) -> Posterior:
        """What the sums say of the rows; see `Posterior.labels`."""
        xp = array_namespace(self.degrees)
        centre = self.logits / self.n
        width = xp.clip(self.squares / self.n - centre * centre, min=0.0) ** 0.5
        samples = xp.stack(self.samples) if self.samples else None
        mean = self.degrees / self.n
        if self.in_numpy:
            mean, centre, width = (np.ascontiguousarray(A) for A in (mean, centre, width))
            mean /= mean.sum(axis=1, keepdims=True)  # sums of single precision
        return Posterior(mean, centre, width, n_relaxed, samples, labels)

    def diagnostics(self) -> tuple[float, float]:
        """Median effective sample size and 95 % quantile of split R-hat over the watched degrees that move."""
        paths = np.stack(self.paths)
        paths = paths[:, paths.std(axis=0) > 1e-9]
        half = len(paths) // 2
        if half < 4 or paths.shape[1] == 0:
            return float(self.n), 1.0
        halves = np.stack([paths[:half], paths[-half:]])
        within = halves.var(axis=1, ddof=1).mean(axis=0)
        between = half * halves.mean(axis=1).var(axis=0, ddof=1)
        rhat = np.sqrt(((half - 1) / half * within + between / half) / within)
        return float(np.median(effective_size(paths))), float(np.quantile(rhat, 0.95))


def effective_size(paths: np.ndarray) -> Array:
    """Effective sample size (k,) of paths (m, k): m / (1 + 2 sum of autocorrelations up to the first negative pair)."""
    m = len(paths)
    spectrum = np.abs(np.fft.rfft(paths - paths.mean(axis=0), 2 * m, axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[:m]
    correlation /= correlation[0]
    pairs = correlation[: m - m % 2].reshape(m // 2, 2, -1).sum(axis=1)
    kept = np.cumprod(pairs > 0, axis=0).astype(bool)
    return m / np.maximum(2 * (pairs * kept).sum(axis=0) - 1, 1.0)


def _logit(D: Array) -> Array:
    """log(d / (1 - d)), finite at 0 and 1."""
    xp, precision = array_namespace(D), array_namespace(D).finfo(D.dtype)
    inner = xp.clip(D, min=float(precision.smallest_normal), max=1.0 - max(1e-12, float(precision.eps)))
    return xp.log(inner) - xp.log1p(-inner)


def _some_logits(Z: np.ndarray, rows: np.ndarray, labels: np.ndarray, resolution: float, lowest: float) -> np.ndarray:
    """Logits (k,) of the degrees of some rows (k,) and labels (k,)."""
    z = np.asarray(Z[:, rows], dtype=np.float64)
    z -= z.max(axis=0)
    total, own = np.exp(z).sum(axis=0), z[labels, np.arange(len(rows))]
    found: np.ndarray = np.maximum(own - np.log(np.maximum(total - np.exp(own), resolution * total)), lowest)
    return found


def _expit(x: Array) -> Array:
    xp = array_namespace(x)
    return 1.0 / (1.0 + xp.exp(-xp.clip(x, min=math.log(float(xp.finfo(x.dtype).smallest_normal)))))

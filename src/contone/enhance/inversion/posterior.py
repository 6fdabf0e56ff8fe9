"""The posterior of rows: means and intervals of their degrees, from sums over the sweeps of a Markov chain.

Two numbers per degree are kept for intervals, the mean and the standard deviation of its logit log(d / (1 - d)).

How much wider intervals must be because Sigma is estimated from labels (`ShapeUncertainty`):
Labels say on which side of the middle a degree is, and little of how far. A fit settles on one Sigma all the same, and
the chain runs at it: the coefficients B are drawn along, Sigma is not. Its uncertainty reaches the logits y = log(d /
(1 - d)) of a row to first order through the slopes J = d E[y | l] / d theta. With m = B^T phi and z = m + H e of a row,
H H^T = Sigma, the parameters theta and their scores are

    A (Sigma is H exp(A) H^T): e e^T - 1,   b (m_j times e^b_j): (Sigma^-1 H e)_j m_j,   delta (added to m): e,

and by Fisher's identity the labels of a row tell E[s | l] of a score s, while J = Cov[y, s | l]. So one chain has all:

    I = sum over rows of E[s | l] E[s | l]^T,   J_A' = J_A - J_n I_nn^-1 I_nA,   V = (I_AA - I_An I_nn^-1 I_nA + P)^-1,

n for the nuisance (b, delta), as B follows a change of Sigma, and P for the prior of Sigma, worth `strength` rows.

The fitted Sigma is not at its mode, either. Sweep k moves it by the weight g_k towards the moments of the n rows as
they were just drawn, which vary by (1 - rho) / n, with the share rho of the information of z that the labels hold in a
direction; what they hold pulls back. So the chain adds  v <- (1 - g_k rho)^2 v + g_k^2 (1 - rho) / n  to V there. The
variances of the logits of label j grow by the share  mean_i (J_A' V J_A'^T)_jj / mean_i Var[y_j | l].  The overall
spread has an uncertainty of its own (`logistic_normal.Spread`), so changes of theta that change it are left out here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace
from scipy.linalg import helmert, solve_triangular
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
MOST_ROWS, FEW_ROWS = 500, 100
"""At most how many rows information is taken from, and slopes J."""
MOST_LABELS = 12
"""Labels up to which all entries of A are looked at; beyond, its diagonal, and beyond `ALL_LABELS` nothing."""
ALL_LABELS = 64
BLOCK = 10
LARGEST = 1.0
"""The most that variances grow by: first order has no meaning beyond."""


@dataclass(frozen=True)
class Posterior:
    """What the labels of rows leave of their distributions, each array (n, q)."""

    mean: Array
    """E[d | x, l], rows on the simplex."""
    logit_centre: Array
    logit_width: Array
    """Mean and standard deviation of log(d / (1 - d))."""
    labels: Array = None
    """Labels that the rule makes of the degrees without exception, NaN in other rows, in all unless they are given."""
    n_relaxed: int = 0
    """Rows that the rule cannot have made."""
    samples: Array | None = None
    """Draws of the distributions (n_samples, n, q), where they were asked for."""

    def __post_init__(self) -> None:
        if self.labels is None:
            object.__setattr__(self, "labels", array_namespace(self.mean).full_like(self.mean, math.nan))

    @property
    def moments(self) -> tuple[Array, Array, Array, Array]:
        """All that has one entry per degree: the first four."""
        return self.mean, self.logit_centre, self.logit_width, self.labels

    def __getitem__(self, rows: Array) -> "Posterior":
        """Of some of the rows."""
        samples = None if self.samples is None else self.samples[:, rows]
        mean, centre, width, labels = (A[rows] for A in self.moments)
        return Posterior(mean, centre, width, labels, self.n_relaxed, samples)

    def where(self, rows: Array, other: "Posterior") -> "Posterior":
        """That of the other in rows (n,), bool, and its own elsewhere."""
        xp, rows = array_namespace(self.mean), rows[:, None]
        both = zip(self.moments, other.moments, strict=True)
        mean, centre, width, labels = (xp.where(rows, B, A) for A, B in both)
        samples = self.samples if other.samples is None else xp.where(rows[None], other.samples, self.samples)
        return Posterior(mean, centre, width, labels, self.n_relaxed, samples)

    def like(self, model: Array) -> "Posterior":
        """The same as arrays of the library, on the device and in the precision of `model`."""
        arrays = {name: A for name, A in vars(self).items() if name != "n_relaxed" and A is not None}
        return replace(self, **{name: like(A, model) for name, A in arrays.items()})

    def with_known(self, grades: Grades) -> "Posterior":
        """The same, with the degrees that are known in their rows."""
        D = grades.degrees
        samples = None if self.samples is None else D[None]
        known = Posterior(D, _logit(D), array_namespace(D).zeros_like(D), samples=samples)
        return self.where(grades.known, known)

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
        if rule is None:
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
    """Posteriors of rows, one after the other."""
    if len(parts) == 1:
        return parts[0]
    concat = array_namespace(parts[0].mean).concat
    mean, centre, width, labels = (concat(side) for side in zip(*(part.moments for part in parts), strict=True))
    samples = [part.samples for part in parts if part.samples is not None]
    drawn = concat(samples, axis=1) if len(samples) == len(parts) else None
    return Posterior(mean, centre, width, labels, sum(part.n_relaxed for part in parts), drawn)


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

    def add(self, Z: Array, *, watch: bool = True) -> None:
        """One more draw of log weights Z (q, n); not watched where nobody will ask for `diagnostics`."""
        self.n += 1
        if self.in_numpy:
            self._add_compiled(Z)
        else:
            D = softmax(Z.T)
            logit = _logit(D)
            self.degrees += D
            self.logits += logit
            self.squares += logit * logit
        if watch:
            rows, labels = self.watched
            self.paths.append(to_numpy(_logit(softmax(Z[:, rows].T))[np.arange(len(rows)), labels]))
        if self.n in self.sampled:
            self.samples.append(softmax(Z.T.astype(np.float64) if self.in_numpy else Z.T))

    def _add_compiled(self, Z: np.ndarray) -> None:
        """The same with one exponential and one logarithm: a logit is z - log(mass of the others)."""
        from contone.enhance.inversion.sweeps.compiled import add_draw

        resolution = max(1e-12, float(np.finfo(Z.dtype).eps))
        lowest = math.log(np.finfo(Z.dtype).smallest_normal)  # of a degree that is 0: its square must not overflow
        add_draw(Z, (self.degrees.T, self.logits.T, self.squares.T), resolution, lowest)

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
        return Posterior(mean, centre, width, labels, n_relaxed, samples)

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


def _expit(x: Array) -> Array:
    xp = array_namespace(x)
    return 1.0 / (1.0 + xp.exp(-xp.clip(x, min=math.log(float(xp.finfo(x.dtype).smallest_normal)))))


class ShapeUncertainty:
    """Moments of scores and logits over the sweeps of a chain, of some of its rows.

    Sums of squares of averages would be too large by the noise of the averages; products of averages over even and over
    odd blocks of `BLOCK` sweeps are not, but for the little that neighbouring sweeps have in common.

    Parameters
    ----------
    n_rows, n_labels : int
        Shape of the chain.
    strength : float
        How many rows the prior of Sigma is worth.
    """

    def __init__(self, n_rows: int, n_labels: int, strength: float) -> None:
        self.n_rows, self.strength, r = n_rows, strength, n_labels - 1
        self.pairs = np.triu_indices(r) if n_labels <= MOST_LABELS else (np.arange(r), np.arange(r))
        self.n_shape, n_scores = len(self.pairs[0]), len(self.pairs[0]) + n_labels + r
        self.basis = helmert(n_labels)
        self.rows = evenly(n_rows, MOST_ROWS)
        self.few = evenly(len(self.rows), FEW_ROWS)
        self.count, self.counts = 0, np.zeros(2)
        self.halves = np.zeros((2, n_scores, len(self.rows)))
        self.logits = np.zeros((2, n_labels, len(self.few)))  # sums, and sums of squares
        self.products = np.zeros((len(self.few), n_labels, n_scores))
        self.spread_slope = np.zeros(n_scores)

    def add(self, Z: Array, residual: Array, covariance: np.ndarray) -> None:
        """One more draw: centred log weights and residuals (q, n), and their Sigma (q, q)."""
        E, z = to_numpy(residual[:, self.rows]), to_numpy(Z[:, self.rows])
        lower = np.linalg.cholesky(self.basis @ covariance @ self.basis.T)
        e = solve_triangular(lower, self.basis @ E, lower=True)
        mean = z - E
        pull = self.basis.T @ solve_triangular(lower, e, lower=True, trans="T")  # Sigma^-1 of the residual
        scores = np.concatenate([shape_scores(e, *self.pairs), pull * mean, e])
        half = (self.count // BLOCK) % 2
        self.halves[half] += scores
        self.counts[half] += 1
        self.count += 1
        D = softmax(z[:, self.few].T).T
        y = np.log(D) - np.log1p(-np.minimum(D, 1.0 - 1e-12))
        self.logits[0] += y
        self.logits[1] += y * y
        self.products += y.T[:, :, None] * scores[:, self.few].T[:, None, :]
        # How the sum of squares of z changes with A (in the units of its scores) and b.
        first, second = self.pairs
        metric = (lower.T @ lower)[first, second]
        self.spread_slope[: self.n_shape] += np.where(first == second, np.sqrt(2.0), 2.0) * metric
        self.spread_slope[self.n_shape : self.n_shape + len(z)] += 2.0 * np.mean(mean * mean, axis=1)

    def shares(self, weights: Sequence[float], n_graded: int = 0) -> np.ndarray:
        """What the uncertainty of Sigma adds to the variances of the logits of every label (q,), relative to them.

        `weights` are those of the sweeps in the average that Sigma is.
        """
        if self.counts.min() == 0:
            return np.zeros(self.logits.shape[1])
        first, second = self.halves / self.counts[:, None, None]
        told = first @ second.T * (self.n_rows / len(self.rows))
        # A row whose degrees are known tells all: scores of A have variance 1.
        V, change = self._covariance(0.5 * (told + told.T), weights, n_graded)
        mean = self.halves.sum(axis=0)[:, self.few] / self.count
        centre, squares = self.logits / self.count
        J = self.products / self.count - centre.T[:, :, None] * mean.T[:, None, :]
        slopes = J @ change
        added = np.einsum("ija,ab,ijb->j", slopes, V, slopes, optimize=True)
        variance = np.maximum(squares - centre**2, 0.0).sum(axis=1)
        found: np.ndarray = np.clip(added / np.maximum(variance, 1e-300), 0.0, LARGEST)
        return found

    def _covariance(
        self, information: np.ndarray, weights: Sequence[float], n_graded: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """V of A; and how all parameters follow a change of A, (scores, entries of A)."""
        s = self.n_shape
        nuisance = _inverse(information[s:, s:] + self.strength * np.eye(len(information) - s))
        follow = np.concatenate([np.eye(s), -nuisance @ information[s:, :s]])
        profiled = information[:s, :s] - information[:s, s:] @ nuisance @ information[s:, :s]
        values, vectors = np.linalg.eigh(0.5 * (profiled + profiled.T))
        values = np.maximum(values, 0.0)
        noise = chain_noise(np.minimum((values + self.strength) / self.n_rows, 1.0), weights) / self.n_rows
        V = (vectors * (1.0 / (values + self.strength + n_graded) + noise)) @ vectors.T
        slope = self.spread_slope @ follow  # of the spread: leave out what changes it
        along = V @ slope
        return V - np.outer(along, along) / max(float(slope @ along), 1e-300), follow


def shape_scores(e: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Scores (s, n) of the entries of A at A = 0, of variance 1 for normal e (r, n): e_j e_k, (e_j^2 - 1) / sqrt 2."""
    scores: np.ndarray = e[first] * e[second]
    same = first == second
    scores[same] = (scores[same] - 1.0) / np.sqrt(2.0)
    return scores


def chain_noise(share: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Variances (k,) of an average of draws with these weights, in units of one row's; see the top of this file."""
    variance = np.zeros_like(share)
    for weight in weights:
        variance = (1.0 - weight * share) ** 2 * variance + weight**2 * (1.0 - share)
    return variance


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n numbers, evenly spaced."""
    return np.linspace(0, n - 1, min(most, n)).round().astype(int)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    floored: np.ndarray = (vectors / np.maximum(values, 1e-9 * max(values[-1], 1e-300))) @ vectors.T
    return floored

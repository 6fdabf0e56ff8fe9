"""What is kept of a Markov chain of label distributions: means, spreads, and how well it mixes."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from contone.numerics.arrays import to_numpy
from contone.numerics.simplex import softmax

Array = Any

WATCHED = 200
"""Degrees whose path is kept to judge how well the sampler mixes."""


class Averages:
    """Running sums over sweeps: degrees, logits and their squares; a few paths for the diagnostics."""

    def __init__(self, Z: Array, n_samples: int, n_kept: int) -> None:
        q, n = Z.shape
        self.n = 0
        self.degrees, self.logits, self.squares = (array_namespace(Z).zeros_like(Z.T) for _ in range(3))
        self.paths: list[np.ndarray] = []
        self.samples: list[np.ndarray] = []
        self.watched = np.divmod(np.linspace(0, n * q - 1, min(WATCHED, n * q)).astype(int), q)
        # Spread over the run, the last sweep among them.
        self.sampled = set(np.linspace(n_kept, 0, n_samples, endpoint=False).round().astype(int).tolist())

    def add(self, Z: Array) -> None:
        """One more draw of log weights Z (q, n)."""
        xp = array_namespace(Z)
        D = softmax(Z.T)
        logit = xp.log(D) - xp.log1p(-xp.clip(D, max=1.0 - max(1e-12, float(xp.finfo(D.dtype).eps))))
        self.n += 1
        self.degrees += D
        self.logits += logit
        self.squares += logit * logit
        self.paths.append(to_numpy(logit[self.watched]))
        if self.n in self.sampled:
            self.samples.append(D)

    def mean(self) -> Array:
        return self.degrees / self.n

    def logit_moments(self) -> tuple[Array, Array]:
        centre = self.logits / self.n
        variance = self.squares / self.n - centre * centre
        return centre, array_namespace(variance).clip(variance, min=0.0) ** 0.5

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


def effective_size(paths: np.ndarray) -> np.ndarray:
    """Effective sample size (k,) of paths (m, k): m / (1 + 2 sum of autocorrelations up to the first negative pair)."""
    m = len(paths)
    spectrum = np.abs(np.fft.rfft(paths - paths.mean(axis=0), 2 * m, axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[:m]
    correlation /= correlation[0]
    pairs = correlation[: m - m % 2].reshape(m // 2, 2, -1).sum(axis=1)
    kept = np.cumprod(pairs > 0, axis=0).astype(bool)
    return m / np.maximum(2 * (pairs * kept).sum(axis=0) - 1, 1.0)

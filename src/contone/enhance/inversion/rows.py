"""The rows of an inversion: log weights that stay within what the labels allow, and how they are redrawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from contone.degrade import Degradation, Others, TopK
from contone.enhance.inversion.gibbs import Weights, sweep
from contone.numerics.arrays import like, transposed
from contone.numerics.simplex import softmax

Array = Any

GPU_NUMBERS = 2**24
"""Degrees drawn at once on a GPU, whatever `max_rows`: many, because it takes as long to start work as to do it."""


class Rows:
    """Rows under their labels: log weights Z (q, n), labels-first, and how to redraw them."""

    def __init__(self, rule: Degradation, L: np.ndarray, noise: float) -> None:
        self.rule, self.noise = rule, noise
        self.given = transposed(L > 0)
        Z, self.relaxed = rule.start(L)
        self.n_relaxed = int(self.relaxed.sum())
        if noise > 0 and self.n_relaxed:
            # A rule that cannot have made these labels may have made others near them.
            Z[self.relaxed] = 0.1 * array_namespace(Z).astype(L[self.relaxed] > 0, Z.dtype)
            self.n_relaxed = 0
        elif self.n_relaxed:
            Z[self.relaxed] = TopK().start(L[self.relaxed])[0]
        self.Z = transposed(Z)
        self.positive = self._labels(self.Z) if noise > 0 else self.given

    def sweep(self, mean: Array, precision: Array, rng: Any, *, reflect: bool = False) -> None:
        """Redraw (or reflect) all log weights once."""
        q, n = self.Z.shape
        precision = like(precision, self.Z)
        if self.noise > 0:
            self._doubt(mean, precision, rng)
        u, shift = rng.random((q, n)), rng.standard_normal(n)
        self.Z = sweep(self.Z, self.positive, mean, precision, self._interval, u, shift, reflect=reflect)

    def _interval(self, j: int, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
        others = Others(*weights.without(j))
        lower, upper = self.rule.interval(others, self.positive[j])
        if self.n_relaxed:
            where = array_namespace(lower).where
            order = TopK().interval(others, self.positive[j])
            lower, upper = where(self.relaxed, order[0], lower), where(self.relaxed, order[1], upper)
        return lower, upper

    def _doubt(self, mean: Array, precision: Array, rng: Any) -> None:
        """Metropolis steps to other labels: z_j from its normal without bounds, accepted by the flips it explains.

        With a share `noise` of wrong entries, labels at Hamming distance h from the given ones have the likelihood
        (noise / (1 - noise))^h times a constant.
        """
        xp = array_namespace(mean)
        odds = float(np.log(self.noise / (1 - self.noise)))
        # The normal distribution holds up to a common shift of the row, which is redrawn first as in `gibbs.sweep`.
        along = precision.sum(axis=0)
        shift = rng.standard_normal(self.Z.shape[1]) / along.sum() ** 0.5
        Z = self.Z + shift - (along @ (self.Z - mean)) / along.sum()
        wrong = (self.positive != self.given).sum(axis=0)
        for j in range(len(Z)):
            scale = 1.0 / precision[j, j] ** 0.5
            proposal = xp.asarray(Z, copy=True)
            proposal[j] += scale * rng.standard_normal(Z.shape[1]) - (precision[j] @ (Z - mean)) * scale**2
            positive = self._labels(proposal)
            newly = (positive != self.given).sum(axis=0)
            accepted = xp.log(rng.random(Z.shape[1])) < odds * (newly - wrong)
            Z = xp.where(accepted, proposal, Z)
            self.positive = xp.where(accepted, positive, self.positive)
            wrong = xp.where(accepted, newly, wrong)
        self.Z = Z

    def _labels(self, Z: Array) -> Array:
        return transposed(self.rule._apply(softmax(Z.T)))


def block_rows(X: Array, q: int, max_rows: int) -> int:
    """Rows of a block: `max_rows`, or many more on a GPU, once there are so many that it draws for itself."""
    if not is_torch_array(X):
        return max_rows
    from contone.backends.torch.draws import FEW

    return max(GPU_NUMBERS // q, 1) if X.is_cuda and len(X) * q > FEW else max_rows


def draws_like(rng: np.random.Generator, model: Array) -> Any:
    """What draws for rows: the generator itself, or for tensors one that gives tensors like `model`."""
    if not is_torch_array(model):
        return rng
    from contone.backends.torch.draws import TensorDraws

    return TensorDraws(rng, model)

"""Parameters that move and take the items along: a Hamiltonian step with the noise of the items kept.

    z_i = b + sum_m beta_m f_mi + w_i^-1/2 A e_i,     Sigma = A A'

Given z, the parameters (b, beta, A) hardly move where answers say little of z: n rows of z that were drawn with the old
parameters hold them. Given e they move as far as the answers allow (the non-centred form). `Chain` takes both in turn
(Yu and Meng's interweaving), which is quick whatever the number of answers per item is.

The mass is the information about the parameters, sum_i J_i J_i' of the slopes J_i of single items: it and the step
length are found during the burn-in and stay as they are after it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from contone.enhance.inversion.people.answers import Matrix

if TYPE_CHECKING:
    from contone.enhance.inversion.people.chain import Chain

N_LEAPS = 5
ACCEPTED = 0.8
"""Share of steps to be accepted."""
MOST_DENSE = 120
"""Parameters up to which their mass is a full matrix."""
KEPT = 0.9
"""Of the mass, from one sweep of the burn-in to the next."""
NUDGE = 1e-3
"""Of the log spread: features of the mean are compared at two."""


class Together:
    """The step of a chain, with what it has learnt of its mass and its length."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.lower = np.tril_indices(chain.r)
        self.mass: Matrix | None = None
        self.length = 0.5

    def step(self) -> None:
        """One step; where answers leave the spread open, A stays as it is."""
        chain, r = self.chain, self.chain.r
        A = chain.spread * np.linalg.cholesky(chain.shape)
        self.held = ~chain.free
        self.root = np.sqrt(chain.weight)[:, None]
        U = (chain.Z - chain.mean) @ chain.basis
        self.noise = solve_triangular(A, U.T, lower=True).T
        self.noise[self.held] = 0.0
        self.A = np.asarray(A, dtype=np.float64)
        x = np.concatenate([chain.intercept, chain.coefficients])
        if not chain.spread_is_open:
            x = np.concatenate([x, A[self.lower]])
        value, slope, scores = self.target(x)
        if chain.adapting or self.mass is None:
            found = self._information(scores, len(x))
            self.mass = found if self.mass is None else KEPT * self.mass + (1.0 - KEPT) * found
            self.factor = np.linalg.cholesky(self.mass) if self.mass.ndim == 2 else np.sqrt(self.mass)
        momentum = self._times(chain.rng.standard_normal(len(x)))
        before = value - self._kinetic(momentum)
        length = self.length * chain.rng.uniform(0.8, 1.2)
        y = x
        for _ in range(N_LEAPS):
            momentum = momentum + 0.5 * length * slope
            y = y + length * self._velocity(momentum)
            value, slope, _ = self.target(y)
            if not math.isfinite(value):
                break
            momentum = momentum + 0.5 * length * slope
        gain = value - self._kinetic(momentum) - before if math.isfinite(value) else -math.inf
        if math.log(chain.rng.random()) < gain:
            A = self._unpacked(y)[2]
            chain.intercept, chain.coefficients = y[:r], y[r : r + len(chain.coefficients)]
            if not chain.spread_is_open:
                chain.spread = float(np.linalg.norm(A)) / math.sqrt(r)
                chain.shape = A @ A.T / chain.spread**2
            chain.Z, chain.mean = self.Z, self.mean
        if chain.adapting:
            self.length = min(self.length * math.exp(0.2 * (math.exp(min(gain, 0.0)) - ACCEPTED)), 1.0)

    def _unpacked(self, x: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """b, beta and A."""
        r, k = self.chain.r, len(self.chain.coefficients)
        A: Matrix = self.A
        if len(x) > r + k:
            A = np.zeros((r, r))
            A[self.lower] = x[r + k :]
        return x[:r], x[r : r + k], A

    def target(self, x: Matrix) -> tuple[float, Matrix, tuple[Matrix, list[Matrix]]]:
        """Log density of the parameters x given e, its slope, and slopes of single items by their means with features.

        Sets `Z` and `mean`.
        """
        chain, r = self.chain, self.chain.r
        b, beta, A = self._unpacked(x)
        if not (np.diagonal(A) > 0.0).all():
            return -math.inf, x, (x, [])
        spread = float(np.linalg.norm(A)) / math.sqrt(r)
        width = math.hypot(spread, chain.tau)
        F = [f.at(width) for f in chain.features]
        self.mean = sum((c * f for c, f in zip(beta, F, strict=True)), np.zeros_like(chain.Z)) + chain.basis @ b
        self.Z = self.mean + self.noise @ (chain.basis @ A).T
        self.Z[self.held] = chain.Z[self.held]
        value, G = chain.slopes(self.Z)
        by_A = chain.basis.T @ (G.T @ self.noise)
        inverse = solve_triangular(A, np.eye(r), lower=True)
        if self.held.any():
            U = (self.root * ((self.Z - self.mean) @ chain.basis))[self.held] @ inverse.T
            value -= 0.5 * float(np.vdot(U, U)) + len(U) * float(np.log(np.diagonal(A)).sum())
            G[self.held] = self.root[self.held] * (U @ inverse) @ chain.basis.T
            by_A += inverse.T @ (U.T @ U - len(U) * np.eye(r))
        precision = 1.0 / chain.prior.coefficient**2
        away = beta - 1.0 / max(len(beta), 1)
        value -= 0.5 * precision * float(b @ b + away @ away)
        by_beta = np.array([np.vdot(G, f) for f in F])
        slope = [chain.basis.T @ G.sum(axis=0) - precision * b, by_beta - precision * away]
        if len(x) > r + len(beta):
            prior, by_prior = self._prior(A, inverse, spread)
            wider = [np.vdot(G, f.at(width * math.exp(NUDGE))) for f in chain.features]
            by_spread = float(beta @ (wider - by_beta)) / NUDGE * (spread / width) ** 2 / (r * spread**2)
            value += prior
            slope.append((by_A + by_prior + by_spread * A)[self.lower])
        return value, np.concatenate(slope), (G, F)

    def _prior(self, A: Matrix, inverse: Matrix, spread: float) -> tuple[float, Matrix]:
        """Log prior density of A, and its slope: s is log-normal, R inverse Wishart brought to its trace.

        With Sigma = s^2 R, tr R = r, the density of Sigma is p(log s) |Sigma|^-(n0 + r + 1)/2 tr(B Sigma^-1)^-(n0 r)/2,
        and dSigma = prod_j A_jj^(r - j + 1) dA.
        """
        chain, r = self.chain, self.chain.r
        n0, prior = r - 1 + chain.prior.shape, chain.prior.spread
        power = r - np.arange(r) - (n0 + r + 1)
        believed = inverse @ chain.believed @ inverse.T
        t, diagonal = float(np.trace(believed)), np.diagonal(A)
        value = prior.log_density(math.log(spread)) + float(power @ np.log(diagonal)) - 0.5 * n0 * r * math.log(t)
        slope = np.diag(power / diagonal) + n0 * r / t * (inverse.T @ believed)
        slope += prior.slope(math.log(spread)) / (r * spread**2) * A
        return value, slope

    def _information(self, scores: tuple[Matrix, list[Matrix]], size: int) -> Matrix:
        """About the parameters, from slopes of single items."""
        chain, r = self.chain, self.chain.r
        G, F = scores
        dots, G = [(G * f).sum(axis=1, keepdims=True) for f in F], G @ chain.basis
        columns = [G, *dots]
        if size > r + len(F):
            columns.append(G[:, self.lower[0]] * self.noise[:, self.lower[1]])
        J = np.hstack(columns)
        held = np.full(size, 1.0 / chain.prior.coefficient**2)
        held[r + len(F) :] = (r - 1 + chain.prior.shape) / chain.spread**2
        return np.asarray(J.T @ J + np.diag(held) if size <= MOST_DENSE else np.square(J).sum(axis=0) + held)

    def _times(self, normal: Matrix) -> Matrix:
        return self.factor @ normal if self.factor.ndim == 2 else self.factor * normal

    def _velocity(self, momentum: Matrix) -> Matrix:
        if self.factor.ndim == 1:
            return momentum / self.factor**2
        half = solve_triangular(self.factor, momentum, lower=True)
        return np.asarray(solve_triangular(self.factor, half, lower=True, trans="T"))

    def _kinetic(self, momentum: Matrix) -> float:
        return 0.5 * float(momentum @ self._velocity(momentum))

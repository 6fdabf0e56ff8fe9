"""Sigma of many labels: a few factors that they share, and a variance of each label's own.

    Sigma = C (Lambda Lambda^T + Psi) C,   Lambda (q, k),   Psi = diag(psi),   C = I - 11^T / q

Up to `FEW_LABELS` labels Sigma is a full matrix (and `logistic_normal` takes it as it is). Beyond, a full one costs
O(q^3) whenever it is inverted and O(n q^2) in every sweep; with k factors these are O(q k^2) and O(n q k). The common
shift of a row, which C takes away, is redrawn by the sampler anyway, so that Lambda Lambda^T + Psi itself is sampled.

- Lambda and psi are those of the highest likelihood under the scatter that a full Sigma would be made of, prior
  included: steps of EM (Rubin and Thayer, 1982), which continue from sweep to sweep.
- k: eigenvalues of the correlations of the labels above what unrelated labels give (the edge of Marchenko and Pastur,
  (1 + sqrt(q / n))^2), and not less than `FEWEST`: a factor too many costs little, as the prior holds it down.

References
----------
D. Rubin, D. Thayer. EM algorithms for ML factor analysis. Psychometrika 47, 1982.
"""

from dataclasses import dataclass

import numpy as np

from contone.typing import Array

FEW_LABELS = 64
"""Up to this many labels Sigma is a full matrix."""
FEWEST, MOST = 10, 60
"""At least and at most how many factors."""
STEPS, LAST_STEPS = 3, 30
"""Steps of EM per sweep, and for the answer."""
LEAST_OWN = 1e-2
"""Smallest variance of a label's own, in units of its whole variance."""


@dataclass(frozen=True)
class FactorCovariance:
    """Lambda Lambda^T + Psi: `loadings` (q, k) and `own` (q,)."""

    loadings: np.ndarray
    own: np.ndarray

    def __len__(self) -> int:
        return len(self.own)

    def __mul__(self, factor: float) -> "FactorCovariance":
        return FactorCovariance(self.loadings * factor**0.5, self.own * factor)

    def total_variance(self) -> float:
        """Trace of the centred Sigma."""
        whole = float(np.square(self.loadings).sum() + self.own.sum())
        return whole - float(np.square(self.loadings.sum(axis=0)).sum() + self.own.sum()) / len(self)

    def dense(self) -> Array:
        """The centred Sigma (q, q)."""
        Sigma = self.loadings @ self.loadings.T
        Sigma[np.diag_indices(len(self))] += self.own
        Sigma -= Sigma.mean(axis=0)
        Sigma -= Sigma.mean(axis=1, keepdims=True)
        return Sigma

    def colour(self, normals: Array) -> Array:
        """Standard normal draws (m, q) as centred draws (m, q) with covariance Sigma.

        With Psi^-1/2 Lambda = V diag(s) U^T, the root of I + V diag(s^2) V^T is I + V diag(sqrt(1 + s^2) - 1) V^T.
        """
        V, s = self._directions()
        drawn = normals + ((normals @ V) * (np.sqrt(1.0 + s**2) - 1.0)) @ V.T
        drawn *= np.sqrt(self.own)
        drawn -= drawn.mean(axis=1, keepdims=True)
        return drawn

    def precision(self) -> "FactorPrecision":
        """(Lambda Lambda^T + Psi)^-1 = Psi^-1 - Psi^-1/2 V diag(s^2 / (1 + s^2)) V^T Psi^-1/2."""
        V, s = self._directions()
        return FactorPrecision(1.0 / self.own, (V * (s / np.sqrt(1.0 + s**2))).T / np.sqrt(self.own))

    def _directions(self) -> tuple[np.ndarray, np.ndarray]:
        V, s, _ = np.linalg.svd(self.loadings / np.sqrt(self.own)[:, None], full_matrices=False)
        return V, s


@dataclass(frozen=True)
class FactorPrecision:
    """diag(own) - shared^T shared: `own` (q,), `shared` (k, q)."""

    own: np.ndarray
    shared: np.ndarray

    def diagonal(self) -> Array:
        """Its diagonal (q,)."""
        return self.own - np.square(self.shared).sum(axis=0)

    def along(self) -> Array:
        """Its column sums (q,)."""
        return self.own - self.shared.sum(axis=1) @ self.shared

    def dense(self) -> Array:
        """The matrix (q, q)."""
        return np.diag(self.own) - self.shared.T @ self.shared

    def centred_square(self, B: np.ndarray) -> float:
        """Sum over the rows b of B (m, q) of b^T Sigma^+ b, with the pseudo-inverse of the centred Sigma."""
        along = self.along()
        whole = float((np.square(B) @ self.own).sum() - np.square(B @ self.shared.T).sum())
        return whole - float(np.square(B @ along).sum() / along.sum())


Covariance = np.ndarray | FactorCovariance
Precision = np.ndarray | FactorPrecision


def dense(matrix: Covariance | Precision) -> Array:
    """Sigma or its inverse as an array (q, q)."""
    return matrix.dense() if isinstance(matrix, (FactorCovariance, FactorPrecision)) else matrix


def choose_rank(given: Array) -> int:
    """How many factors the labels `given` (q, n), bool, tell apart from chance."""
    q, n = given.shape
    met = np.asarray(given, dtype=np.float32)
    share = met.mean(axis=1, dtype=np.float64)
    deviation = np.sqrt(np.maximum(share * (1 - share), 0.5 / n))
    correlation = ((met @ met.T) / n - np.outer(share, share)) / np.outer(deviation, deviation)
    above = int((np.linalg.eigvalsh(correlation) > (1 + np.sqrt(q / n)) ** 2).sum())
    return min(max(above, FEWEST), MOST, int(q) - 1)


class FactorFit:
    """Factors of one Sigma after the other, each fit continuing the last."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.last: FactorCovariance | None = None

    def __call__(self, Sigma: np.ndarray, n_steps: int = STEPS) -> FactorCovariance:
        """The factors of a centred Sigma (q, q) after some steps of EM."""
        q = len(Sigma)
        # Mean variance along the shift as well: Psi would have to make up for it otherwise.
        whole = Sigma + np.trace(Sigma) / (q * (q - 1))
        found = principal_factors(whole, self.rank) if self.last is None else self.last
        for _ in range(n_steps):
            found = improve_factors(whole, found)
        self.last = found
        return found

    def rescale(self, factor: float) -> None:
        """Go on from a Sigma that is `factor` times as large."""
        if self.last is not None:
            self.last = self.last * factor


def principal_factors(Sigma: np.ndarray, rank: int) -> FactorCovariance:
    """A start for EM: the leading directions of Sigma (q, q), less the mean variance of the others."""
    values, vectors = np.linalg.eigh(Sigma)
    noise = values[:-rank].mean() if rank < len(values) else 0.0
    loadings = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:] - noise, 0.0))
    return FactorCovariance(loadings, _own(Sigma, np.square(loadings).sum(axis=1)))


def improve_factors(Sigma: np.ndarray, now: FactorCovariance) -> FactorCovariance:
    """One step of EM for the factors of Sigma (q, q); the likelihood never falls."""
    G = now.loadings / now.own[:, None]
    inside = np.linalg.inv(np.eye(G.shape[1]) + now.loadings.T @ G)
    mixed = Sigma @ (G @ inside)  # Sigma beta^T
    second = inside + inside @ (G.T @ mixed)
    loadings = np.linalg.solve(second, mixed.T).T
    return FactorCovariance(loadings, _own(Sigma, (loadings * mixed).sum(axis=1)))


def _own(Sigma: np.ndarray, shared: np.ndarray) -> Array:
    variance = np.diag(Sigma)
    return np.maximum(variance - shared, LEAST_OWN * variance + 1e-300)

"""gLESC: generalised label enhancement with sample correlations. Features and labels agree on who resembles whom.

    min_{Z, E}  ||Z||_tnn + beta sum_j ||(e_1j, e_2j)||     s.t.  V_v = V_v Z_v + E_v,  v = 1, 2
    min_P       ||P - L||^2 + lambda ||(I - C) P||^2,       C = (Z_1 + Z_2) / 2,  D^ = softmax(P)

with V_1 = X^T, z-scored, and V_2 = L^T: a column of Z_v (n, n) writes an instance by the others. Z is a tensor of both
views, and its nuclear norm ties them: after a Fourier transform along the first index of Z_v, the slice of every
frequency is a matrix (n, 2), and the norm is the mean over the frequencies of their nuclear norms. C is found by the
alternating directions of multipliers, P by a linear system (`LESC` has the same one).

A Fourier transform over instances depends on their order, which is no property of theirs: the rows of SJAFFE come
person by person, and KL is .035 in that order and .045 to .048 in random ones.
Reference: Zheng, Zhu, Tang, Liu, Li and Lu, "Generalized Label Enhancement with Sample Correlations", TKDE 2021.
"""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.fft import irfft, rfft
from scipy.linalg import solve
from sklearn.utils import check_random_state

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, Interval, estimator, parameter
from contone.numerics.lowrank import shrink_rows
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Domains, Presets

FIRST_PENALTY, MAX_PENALTY = 1e-4, 1e11
"""Of both constraints; the penalty grows by a factor per iteration, as in the authors' code."""


@estimator
class GLESC(Enhancer):
    """Generalised label enhancement with sample correlations (Zheng et al. 2021).

        min_{Z, E}  ||Z||_tnn + beta sum_j ||(e_1j, e_2j)||     X^T = X^T Z_1 + E_1,  L^T = L^T Z_2 + E_2
        min_P       ||P - L||^2 + lambda ||(I - C) P||^2,       C = (Z_1 + Z_2) / 2,  D^ = softmax(P)

    A confidence matrix F takes the place of L as it is. The method is transductive, and holds n x n matrices.

    Parameters
    ----------
    beta : float, default=10.0
        Weight of what the instances do not explain of each other. At the minimum (see `growth`), a small one gives
        C = 0 and P = L / (1 + lambda).
    lambda_ : float, default=10.0
        Weight of the reconstruction.
    row_order : {"random", "given"}, default="random"
        The order in which the rows enter the transform. The authors take the given one, which brings in what the file
        knows of its rows (preset ``original_code``).
    growth : float, default=2.0
        Factor of the penalties per iteration. With 2, as in the authors' code, some forty iterations end near a
        minimum, and for small beta far above it; nearer to 1 they end nearer, and there are more of them.
    transpose_fix : bool, default=False
        V = V Z says that instances are mixed by Z^T, so the penalty of the labels should be ||(I - C^T) P||^2; the
        authors' code has ||(I - C) P||^2.
    tol : float, default=1e-7
        On the largest sum of absolute entries in a row of the residuals of all constraints.
    max_iter : int, default=200
        Maximum number of iterations for C.
    random_state : int, RandomState or None, default=0
        Draws the order of the rows.

    Notes
    -----
    The defaults of `beta` and `lambda_` are those of the authors' only published example. Their P is a kernel
    regression that is stopped early; here it is the minimiser.

    Examples
    --------
    >>> X, L = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [[1, 0], [1, 0], [0, 1]]
    >>> GLESC().fit_enhance(X, L).round(2).tolist()
    [[0.68, 0.32], [0.68, 0.32], [0.22, 0.78]]
    """

    reference = "Zheng, Zhu, Tang, Liu, Li, Lu. Generalized Label Enhancement with Sample Correlations. TKDE 2021."
    PRESETS: ClassVar[Presets] = {"original_code": {"row_order": "given"}}
    SEARCH: ClassVar[Domains] = {"lambda_": [0.1, 0.5, 1.0, 4.0, 10.0, 30.0, 100.0], "beta": [1e-3, 0.1, 10.0]}
    beta: float = parameter(POSITIVE, default=10.0)
    lambda_: float = parameter(NOT_NEGATIVE, default=10.0)
    row_order: str = parameter({"random", "given"}, default="random")
    growth: float = parameter(Interval(Real, 1, None, closed="neither"), default=2.0)
    transpose_fix: bool = parameter("boolean", default=False)
    tol: float = parameter(POSITIVE, default=1e-7)
    max_iter: int = parameter(COUNT, default=200)
    random_state: int | np.random.RandomState | None = parameter("random_state", default=0)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        n = len(X)
        order = check_random_state(self.random_state).permutation(n) if self.row_order == "random" else np.arange(n)
        views = [standardisation(X)(X)[order], L[order].astype(float)]
        found = represent(views, self.beta, growth=self.growth, tol=self.tol, max_iter=self.max_iter)
        C = np.empty((n, n))
        C[np.ix_(order, order)] = found.value.Z.mean(axis=0).T
        I_C = np.eye(n) - (C.T if self.transpose_fix else C)
        P = solve(np.eye(n) + self.lambda_ * (I_C.T @ I_C), L, assume_a="pos")
        objective = float(np.sum((P - L) ** 2) + self.lambda_ * np.sum((I_C @ P) ** 2))
        info = {"representation_objective": found.objective}
        return Solution(softmax(P), objective, found.residual, found.n_iter, found.converged, info)

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        # Z, G, W and three of their size while a step is made, two of them complex: tensors (2, n, n).
        return super()._fit_bytes(n, d, q) + 8 * 8.0 * 2.0 * n * n


class Representation(NamedTuple):
    """Z_v^T (2, n, n), what it leaves of the views, E_v^T (n, m_v), and the multipliers of the constraints (n, m_v)."""

    Z: np.ndarray
    E: list[np.ndarray]
    Y: list[np.ndarray]


def represent(
    views: list[np.ndarray], beta: float, *, growth: float = 2.0, tol: float = 1e-7, max_iter: int = 200
) -> Solution:
    """The representation of the views V_v^T (n, m_v); its `objective` is that of the Z found, with E = V - V Z.

    Everything is transposed, so that the transform runs along the last axis, where it is fast.
    """
    n = len(views[0])
    solvers = [_resolvent(V) for V in views]
    Z, G, W = (np.zeros((len(views), n, n)) for _ in range(3))
    E, Y = ([np.zeros_like(V) for V in views] for _ in range(2))
    penalty, residual, n_iter = FIRST_PENALTY, np.inf, 0
    while residual > tol and n_iter < max_iter:
        G -= W / penalty
        for v, V in enumerate(views):
            G[v] += (Y[v] / penalty + V - E[v]) @ V.T
            Z[v] = solvers[v](G[v])
            noise = [U - R @ U + M / penalty for U, R, M in zip(views, Z, Y, strict=True)]
            E = np.hsplit(shrink_rows(np.hstack(noise), beta / penalty), [views[0].shape[1]])
        left = [V - R @ V - N for V, R, N in zip(views, Z, E, strict=True)]
        Y = [M + penalty * N for M, N in zip(Y, left, strict=True)]
        G = shrink_slices(Z + W / penalty, 1.0 / penalty)
        apart = Z - G
        residual = max(float(np.abs(N).sum(axis=0).max()) for N in (*left, *apart))
        W += np.multiply(apart, penalty, out=apart)
        penalty = min(growth * penalty, MAX_PENALTY)
        n_iter += 1
    value = Representation(Z, E, Y)
    return Solution(value, representation_objective(views, Z, beta), residual, n_iter, residual <= tol)


def representation_objective(views: list[np.ndarray], Z: np.ndarray, beta: float) -> float:
    """||Z||_tnn + beta sum_j ||(e_1j, e_2j)|| with E = V - V Z, of transposed views and Z."""
    E = np.hstack([V - R @ V for V, R in zip(views, Z, strict=True)])
    return float(tensor_nuclear_norm(Z) + beta * np.linalg.norm(E, axis=1).sum())


def tensor_nuclear_norm(Z: np.ndarray) -> float:
    """The mean over the frequencies of the last axis of the sums of singular values of the slices of Z (2, n, n)."""
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(_gram(rfft(Z))), 0.0)).sum(axis=1)
    n, twice = Z.shape[2], values[1 : (Z.shape[2] + 1) // 2]  # the others stand once in the complex transform
    return float((values.sum() + twice.sum()) / n)


def shrink_slices(Z: np.ndarray, by: float) -> np.ndarray:
    """The tensor (2, n, n) whose slices have the singular values of Z's, less `by` and not below 0."""
    slices = rfft(Z)
    squares, directions = np.linalg.eigh(_gram(slices))
    values = np.sqrt(np.maximum(squares, 0.0))
    kept = np.maximum(1.0 - by / np.maximum(values, 1e-300), 0.0)
    # A slice A = U S D^H becomes A D diag(kept) D^H.
    factor = (directions * kept[:, None, :]) @ directions.conj().swapaxes(1, 2)
    shrunk = sum(part * factor[:, a, :].T[:, None, :] for a, part in enumerate(slices))
    return np.asarray(irfft(shrunk, n=Z.shape[2], overwrite_x=True))


def _gram(slices: np.ndarray) -> np.ndarray:
    """A^H A (k, 2, 2) of the slices A (n, 2) of an array (2, n, k)."""
    return np.array([[np.sum(A.conj() * B, axis=0) for B in slices] for A in slices]).transpose(2, 0, 1)


def _resolvent(V: np.ndarray) -> Any:
    """M -> M (I + V V^T)^(-1), through the singular vectors of V (n, m)."""
    B, s, _ = np.linalg.svd(V, full_matrices=False)
    weight = s**2 / (1.0 + s**2)
    return lambda M: M - ((M @ B) * weight) @ B.T

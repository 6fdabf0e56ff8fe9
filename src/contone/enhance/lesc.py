"""LESC: label enhancement with sample correlations. Labels are as reconstructible as the features are.

    min_P  ||P - L||^2 + lambda ||(I - C) P||^2,           P (n, q), then D^ = softmax(P)

where C is the low-rank representation of the z-scored features (`numerics.lowrank`):
min_C ||C||_* + beta sum_i ||x_i - X^T c_i||. The first problem is the linear system (I + lambda (I-C)^T (I-C)) P = L,
and C = Q Z^T has rank r <= d, so it is solved through a 2r x 2r matrix (Woodbury). Reference: Tang, Zhu, Zheng, Wang,
Pang and Li, "Label Enhancement with Sample Correlations via Low-Rank Representation", AAAI 2020, Eq. 3-6.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_memory

from contone.base import COUNT, NOT_NEGATIVE, POSITIVE, Enhancer, HasMethods, estimator, parameter
from contone.numerics.lowrank import LowRank, inexact_alm, low_rank_representation, middle_beta
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import softmax
from contone.numerics.solution import Solution
from contone.typing import Domains, Presets


@estimator
class LESC(Enhancer):
    """Label enhancement with sample correlations (Tang et al. 2020).

        min_C  ||C||_* + beta sum_i ||x_i - X^T c_i||         features, z-scored
        min_P  ||P - L||^2 + lambda ||(I - C) P||^2           labels;  D^ = softmax(P)

    A confidence matrix F takes the place of L as it is. The method is transductive: C has no row for a new instance.

    Parameters
    ----------
    beta : float or None, default=None
        Weight of the noise in the features. None takes the middle, in logarithms, of the interval where it matters
        (0.018 on Yeast). Small gives C = 0 and P = L / (1 + lambda); large gives C = V V^T, the
        projection on the features, and P = V V^T L + (I - V V^T) L / (1 + lambda), ridge-like linear regression. Both
        limits are exact beyond a threshold that the data gives, and are then used without iterating.
    lambda_ : float, default=4.0
        Weight of the reconstruction. What the features do not explain is divided by 1 + lambda: with 4 it enters
        softmax as 0.2 L, the same as `Temperature()`.
    solver : {"exact", "alm"}, default="exact"
        How C is found: to a small duality gap, or by the inexact ALM of the original code. For small beta the latter
        stops far above the minimum (on Yeast with beta = 1e-3 at twice the objective), and the results published for
        LESC are made with it.
    transpose_fix : bool, default=False
        X^T = X^T C says that instances are mixed by C^T, so the penalty of the labels should be ||(I - C^T) P||^2; the
        paper and its code have ||(I - C) P||^2. The difference is small, since C is nearly symmetric.
    tol : float, default=1e-3
        On the relative duality gap of C (solver "exact").
    max_iter : int, default=2000
        Iterations for C.
    memory : str, joblib.Memory or None, default=None
        C does not depend on L or lambda. With a folder (or a `joblib.Memory`) it is kept there, by the content of X and
        the parameters, so that a grid over lambda or several label sets on the same features pay for it once.

    Notes
    -----
    The defaults are rules, not fits, but were not chosen blindly: 0.2 is a good temperature on the Yeast sets, and the
    rule for beta replaced a fixed 0.01 after scores on Yeast and SJAFFE had been seen.

    ``LESC.preset("paper")`` takes C from the inexact ALM. The paper's row is the best of a grid, beta and lambda in
    {1e-4, ..., 10}, chosen by the truth.

    Examples
    --------
    >>> X, L = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [[1, 0], [1, 0], [0, 1]]
    >>> LESC(beta=1e-6).fit_enhance(X, L).round(2).tolist()
    [[0.55, 0.45], [0.55, 0.45], [0.45, 0.55]]
    """

    reference = "Tang, Zhu, Zheng, Wang, Pang, Li. Label Enhancement with Sample Correlations. AAAI 2020."
    PRESETS: ClassVar[Presets] = {"paper": {"solver": "alm", "transpose_fix": False}}
    SEARCH: ClassVar[Domains] = {"lambda_": [0.1, 0.5, 1.0, 4.0, 10.0, 30.0, 100.0], "beta": [None, 1e-3, 0.1]}
    beta: float | None = parameter(None, POSITIVE, default=None)
    lambda_: float = parameter(NOT_NEGATIVE, default=4.0)
    solver: str = parameter({"exact", "alm"}, default="exact")
    transpose_fix: bool = parameter("boolean", default=False)
    tol: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=2000)
    memory: Any = parameter(None, str, HasMethods(["cache"]), default=None)

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        compute = check_memory(self.memory).cache(represent)
        representation: Solution = compute(X, self.beta, self.solver, self.tol, self.max_iter)
        # Paper: P is a kernel regression fitted by L-BFGS that is stopped early. With a full-rank kernel it can take
        # any value, so its minimiser is this linear system; `GLLE` has the early-stopped form.
        P = smooth_labels(representation.value, L, self.lambda_, transpose_fix=self.transpose_fix)
        objective = lesc_objective(representation.value, P, L, self.lambda_, transpose_fix=self.transpose_fix)
        info = {"representation_objective": representation.objective, **representation.info}
        return replace(representation, value=softmax(P), objective=objective, info=info)


def smooth_labels(C: LowRank, L: np.ndarray, lambda_: float, *, transpose_fix: bool = False) -> np.ndarray:
    """P (n, q) with (I + lambda (I-C)^T (I-C)) P = L, or with C^T in the place of C.

    With B = [Q, Z] (n, 2r) the matrix is (1 + lambda) I + lambda B K B^T, K (2r, 2r) below.
    """
    Q, Z = C
    r = Q.shape[1]
    eye, zero = np.eye(r), np.zeros((r, r))
    # (I-C)^T (I-C) - I = -Q Z^T - Z Q^T + Z Z^T;   (I-C) (I-C)^T - I = -Q Z^T - Z Q^T + Q (Z^T Z) Q^T
    K = np.block([[Z.T @ Z, -eye], [-eye, zero]]) if transpose_fix else np.block([[zero, -eye], [-eye, eye]])
    B = np.hstack([Q, Z])
    inner = (1.0 + lambda_) * np.eye(2 * r) + lambda_ * K @ (B.T @ B)
    return (L - lambda_ * (B @ np.linalg.solve(inner, K @ (B.T @ L)))) / (1.0 + lambda_)


def lesc_objective(C: LowRank, P: np.ndarray, L: np.ndarray, lambda_: float, *, transpose_fix: bool = False) -> float:
    """||P - L||^2 + lambda ||(I - C) P||^2, or with C^T in the place of C."""
    Q, Z = (C.Z, C.Q) if transpose_fix else C
    return float(((P - L) ** 2).sum() + lambda_ * ((P - Q @ (Z.T @ P)) ** 2).sum())


def represent(X: np.ndarray, beta: float | None, solver: str, tol: float, max_iter: int) -> Solution:
    """C of the z-scored X (n, d)."""
    X = standardisation(X)(X)
    beta = middle_beta(X) if beta is None else beta
    if solver == "alm":
        return inexact_alm(X, beta, max_iter=max_iter)
    return low_rank_representation(X, beta, tol=tol, max_iter=max_iter)

"""Supervised dimensionality reduction: the projection that depends most on the labels.

Kou et al., "Data Augmentation for Label Enhancement", section 3.2, Eq. 5 to 7; it is MDDM (Zhang and Zhou 2010) with
the kernel F F^T. With H = I - (1/n) e e^T, in the row convention (X is n x d, F is n x q),

    max_P  tr( H X P P^T X^T H F F^T )    s.t.  P^T B P = I,   B = alpha X^T X + (1 - alpha) I,

solved by the leading eigenvectors of  A v = lambda B v,  A = C C^T,  C = X^T H F  (d x q): nothing n x n is formed.
"""

import math
from numbers import Real
from typing import ClassVar, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from contone.backends import like, to_numpy
from contone.base import WHOLE, CheckedEstimator, Interval, estimator, in_its_kind, parameter, refuse_too_large
from contone.exceptions import FeatureError, RankWarning
from contone.numerics.eigen import Eigenpairs, thin_generalised_eigen
from contone.runtime.warnings import warn
from contone.typing import Array, Data
from contone.validation.containers import refuse_beyond_squares
from contone.validation.training import check_features, check_supervision


@estimator
class HSICReducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CheckedEstimator):
    """Linear projection with the largest HSIC (dependence) between projected features and label confidence.

    Solves  max_P tr(H X P P^T X^T H F F^T)  subject to  P^T (alpha X^T X + (1 - alpha) I) P = I.

    At most rank(F) directions carry dependence; rows of F on the simplex leave q - 1. Beyond that the eigenvalues are 0
    and the paper's eigenvectors arbitrary. Here the rest is filled with the directions along which X varies most
    (B-orthonormal to those before, so the answer is determined), or cut off: `on_rank_deficient`.

    X is not centred inside B, as in the paper (HSIC itself does not depend on the centre of X), and with alpha < 1 the
    answer depends on the unit of X, since B adds X^T X to I: features in small units get directions that are nearly
    orthonormal, features in large ones projections that are nearly uncorrelated. With alpha = 1 there is no unit. Put a
    `sklearn.preprocessing.StandardScaler` in front where the features have units of their own.

    Parameters
    ----------
    n_components : int, float or None, default=10
        Number of directions d' (cut to what X offers); a float in (0, 1) keeps that share of the sum of eigenvalues;
        0 or None keeps all.
    alpha : float in [0, 1], default=0.1
        Weight of uncorrelated projections against orthonormal directions.
    on_rank_deficient : {"fill", "truncate"}, default="fill"
        What to do about directions whose eigenvalue is 0.
    rescale : None or "unit_variance", default=None
        Divide every projected column by its standard deviation in the training rows. The constraint P^T B P = I makes
        projections of the size 1 / sqrt(alpha n), which starves a penalised model behind it.

    Attributes
    ----------
    projection_ : (d, d')
        P, B-orthonormal columns, largest eigenvalue first, largest entry of each positive.
    scale_ : (d',)
        What the columns of X P are divided by; ones without `rescale`.
    eigenvalues_ : (d',)
    rank_ : int
        How many directions depend on F at all.
    hsic_ : float
        tr(H K H F F^T) / (n - 1)^2 of the projection: the sum of its eigenvalues over (n - 1)^2.

    References
    ----------
    Kou, Jia, Wang, Shi, Geng: Data Augmentation for Label Enhancement, section 3.2. Zhang, Zhou: Multilabel
    dimensionality reduction via dependence maximization, ACM TKDD 2010.
    """

    reference = "Kou et al., Data Augmentation for Label Enhancement, Eq. 5-7; MDDM, Zhang and Zhou 2010"
    kinds: ClassVar[frozenset[str]] = frozenset({"torch"})
    n_components: int | float | None = parameter(WHOLE, Interval(Real, 0, 1, closed="neither"), None, default=10)
    alpha: float = parameter(Interval(Real, 0, 1, closed="both"), default=0.1)
    on_rank_deficient: str = parameter({"fill", "truncate"}, default="fill")
    rescale: str | None = parameter({"unit_variance"}, None, default=None)

    def fit(self, X: Data, Y: Data) -> Self:
        """Find the projection for features X (n, d) and label confidence Y = F (n, q), or any other targets."""
        self._validate_params()
        X, F, _ = check_supervision(self, X, Y)
        refuse_too_large(self, X, F.shape[1])
        X, F = in_its_kind(self, X, F)
        self.fit_checked(X, F)
        kept = self.projection_.shape[1]
        if self.n_components and kept > self.rank_:
            warn(
                f"{kept} directions were asked for, but the labels determine only {self.rank_}; the other "
                f"{kept - self.rank_} are those along which X varies most. Set n_components to {self.rank_} or "
                'less, or on_rank_deficient="truncate", to do without them.',
                RankWarning,
            )
        return self

    def fit_checked(self, X: Array, F: Array) -> None:
        """The same for data that has been checked, as a step inside another method; says nothing about the rank."""
        self.n_features_in_ = X.shape[1]
        C, scatter, mean = hsic_matrices(X, F)
        n, d = X.shape
        xp = array_namespace(C)
        # Paper: 1/m in H is 1/n, and X is not centred in B although MDDM, where this comes from, asks for it. So
        # B = alpha X^T X + (1 - alpha) I, taken apart into what varies and the mean: a large offset hides nothing.
        identity = xp.eye(d, dtype=C.dtype, device=getattr(C, "device", None))
        varying = self.alpha * scatter + (1.0 - self.alpha) * identity
        pairs = thin_generalised_eigen(C, varying, scatter, math.sqrt(self.alpha * n) * mean)
        if pairs.values.shape[0] == 0:
            raise FeatureError("X is zero everywhere and alpha is 1, so no projection exists: use alpha < 1.")
        kept = _number_kept(pairs, self.n_components, self.on_rank_deficient)
        self.projection_ = pairs.vectors[:, :kept]
        self.eigenvalues_ = pairs.values[:kept]
        self.rank_ = pairs.rank
        self.hsic_ = float(self.eigenvalues_.sum()) / (X.shape[0] - 1) ** 2
        ones = array_namespace(self.eigenvalues_).ones_like(self.eigenvalues_)
        self.scale_ = _deviation(self.projection_, scatter, X.shape[0]) if self.rescale else ones

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        """Two matrices of the shape of F, and six of d x d: B, the scatter, their decompositions and copies."""
        return 8.0 * (2 * n * q + 6 * d * d)

    def transform(self, X: Data) -> Array:
        """X~ = X P (m, d'); a tensor in gives a tensor out, a dask array a dask array."""
        check_is_fitted(self)
        return self.transform_checked(check_features(self, X, reset=False))

    def transform_checked(self, X: Array) -> Array:
        """The same for features that have been checked."""
        return X @ like(self.projection_, X) / like(self.scale_, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.projection_.shape[1])


def hsic_matrices(X: Array, F: Array) -> tuple[Array, Array, Array]:
    """C = X^T H F (d, q), the scatter X^T H X (d, d) and the mean of X (d,)."""
    xp = array_namespace(X, F)
    centred = F - xp.mean(F, axis=0)
    # A constant column leaves rounding when centred; it must not pass for dependence.
    centred = xp.where(xp.abs(centred) <= 1e-14 * xp.max(xp.abs(F)), xp.zeros_like(F), centred)
    # H ignores an offset. Measured from one of the rows, nothing of X is lost to it, and X is read once.
    origin = X[:1, :]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # refused below
        moved = X - origin
        C, mean = xp.matmul(moved.T, centred), xp.mean(moved, axis=0)
        scatter = xp.matmul(moved.T, moved) - X.shape[0] * mean[:, None] * mean[None, :]
    refuse_beyond_squares("HSICReducer", to_numpy(xp.max(xp.abs(X), axis=0)))
    if not float(xp.max(xp.abs(C))) < math.sqrt(float(xp.finfo(C.dtype).max)) / 1e3:
        raise FeatureError("HSICReducer: products of X and Y have squares beyond floating point: scale both.")
    return C, scatter, origin[0, :] + mean


def _number_kept(pairs: Eigenpairs, n_components: int | float | None, on_rank_deficient: str) -> int:
    """d' from the request: a count, a share of the eigenvalues' sum, or all."""
    available = pairs.values.shape[0] if on_rank_deficient == "fill" else max(pairs.rank, 1)
    if not n_components:
        return available
    if n_components >= 1:
        return min(int(n_components), available)
    cumulative = np.cumsum(to_numpy(pairs.values))
    if cumulative[-1] <= 0.0:
        return 1
    return min(int(np.searchsorted(cumulative, n_components * cumulative[-1]) + 1), available)


def _deviation(P: Array, scatter: Array, n: int) -> Array:
    """Standard deviations of the columns of X P, from the scatter of X; 1 where a column is constant."""
    xp = array_namespace(P, scatter)
    variance = xp.sum(P * xp.matmul(scatter, P), axis=0) / n
    constant = variance <= 1e-14 * xp.max(variance)
    return xp.where(constant, xp.ones_like(variance), xp.sqrt(xp.where(constant, xp.ones_like(variance), variance)))

"""The reference: one Gibbs sweep over the labels of all rows, for every rule, on arrays of any kind.

The set that a row's labels allow is not an orthant, but every section of it along one axis is an interval
(`contone.measurements`). So a sweep visits the labels in turn and redraws each from its normal conditional distribution
cut to that interval,

    z_j | z_-j  ~  N( z_j - (Sigma^-1 (z - m))_j / Sigma^-1_jj ,  1 / Sigma^-1_jj ),   lower_j < z_j < upper_j,

for all rows at once. Arrays are labels-first, (q, n): a step then works on contiguous rows of n numbers. A sweep costs
O(n q^2) flops in q steps of O(n q). Random numbers are handed in, so that the caller owns reproducibility.
"""

from dataclasses import dataclass

from array_api_compat import array_namespace

from contone.backends import like
from contone.enhance.inversion.covariance import Precision, dense
from contone.enhance.inversion.sweeps import Bound, Move, Sweeps
from contone.measurements import IntervalRule, Others
from contone.measurements.order import level_interval
from contone.numerics.truncated import reflected_normal, truncated_normal
from contone.typing import Array

LOWEST, HIGHEST = -60.0, 80.0
"""Log weights beside the row's largest so far at which a label, or all others, are as good as absent. exp(z) and sums
of it are then numbers, in single precision, too."""


class Weights:
    """Log weights and weights of the positive and negative labels apart, kept up to date one label at a time.

    Parameters
    ----------
    Z, positive : array, bool array, (q, n)
        Log weights, and which labels are marked.
    """

    def __init__(self, Z: Array, positive: Array) -> None:
        xp = array_namespace(Z)
        self.Z, self.positive = Z, positive
        E, zero, far = xp.exp(Z), xp.zeros_like(Z), xp.full_like(Z, xp.inf)
        self._positive_weights = xp.where(positive, E, zero)
        self._negative_weights = xp.where(positive, zero, E)
        self._lowest = xp.where(positive, Z, far)
        self._highest = xp.where(positive, -far, Z)
        self._count = xp.sum(xp.astype(positive, Z.dtype), axis=0)

    def without(self, j: int) -> Others:
        """Mass, extremes and count of the labels other than j."""
        xp = array_namespace(self.Z)
        self._positive_weights[j, :] = 0.0
        self._negative_weights[j, :] = 0.0
        self._lowest[j, :] = xp.inf
        self._highest[j, :] = -xp.inf
        return Others(
            xp.sum(self._positive_weights, axis=0),
            xp.sum(self._negative_weights, axis=0),
            xp.min(self._lowest, axis=0),
            xp.max(self._highest, axis=0),
            self._count - xp.astype(self.positive[j, :], self.Z.dtype),
        )

    def put(self, j: int, z: Array) -> None:
        """Give label j the log weights z (n,), after `without(j)`."""
        xp = array_namespace(z)
        positive, w, zero, far = self.positive[j, :], xp.exp(z), xp.zeros_like(z), xp.full_like(z, xp.inf)
        self.Z[j, :] = z
        self._positive_weights[j, :] = xp.where(positive, w, zero)
        self._negative_weights[j, :] = xp.where(positive, zero, w)
        self._lowest[j, :] = xp.where(positive, z, far)
        self._highest[j, :] = xp.where(positive, -far, z)


def interval(rule: IntervalRule, bound: Bound, j: int, weights: Weights) -> tuple[Array, Array]:
    """Ends (n,), (n,) for the log weights of label j, up to the common shift of the row."""
    lower, upper = rule.interval(weights.without(j), bound.positive[j, :])
    where, far = array_namespace(lower).where, array_namespace(lower).full_like(lower, float("inf"))
    if bound.relaxed is not None:
        levels = array_namespace(lower).astype(bound.positive, lower.dtype) if bound.levels is None else bound.levels
        order = level_interval(weights.Z, levels, j)
        lower, upper = where(bound.relaxed, order[0], lower), where(bound.relaxed, order[1], upper)
    if bound.known is not None:
        # An empty interval holds a log weight where it is. The largest one of a row is 0 in `sweep`.
        rows, is_zero, highest_zero = bound.known
        lower = where(rows, where(is_zero[j, :], -far, far), lower)
        upper = where(rows, where(is_zero[j, :], highest_zero, -far), upper)
    return lower, upper


@dataclass(frozen=True)
class ReferenceSweeps(Sweeps):
    """Sweeps under any rule."""

    rule: IntervalRule
    takes_factors = False

    def sweep(self, Z: Array, bound: Bound, mean: Array, precision: Precision, move: Move) -> Array:
        """One Gibbs sweep over the q labels of all n rows.

        Parameters
        ----------
        Z : array, (q, n)
            Current log weights; every row within what its labels allow. Not changed.
        bound : Bound
            The labels, and what else binds the rows.
        mean : array, (q, n)
            Of the log weights, before the labels.
        precision : array, (q, q)
            Sigma^-1, positive definite; factors are multiplied out.
        move : Move
            The draws, and what to make of them.

        Returns
        -------
        array, (q, n)
            New log weights, not centred.
        """
        xp, (u, shift, reflect, root_weights) = array_namespace(Z), move
        P = like(dense(precision), Z)
        margin = 1e-9 if Z.dtype == xp.float64 else 1e-5
        Z = Z - xp.max(Z, axis=0)
        along = xp.sum(P, axis=0)
        total = xp.sum(along)
        # r = (z + c) - m with the shift c of each row: intervals are worked out for z, the normal holds for z + c.
        residual = Z - mean
        narrowed = total**0.5 if root_weights is None else total**0.5 * root_weights
        residual += (shift / narrowed - (along @ residual) / total)[None, :]
        weights = Weights(Z, bound.positive)
        for j in range(Z.shape[0]):
            scale = 1.0 / P[j, j] ** 0.5
            old = xp.asarray(Z[j, :], copy=True)
            lower, upper = interval(self.rule, bound, j, weights)
            centre = old - (P[j, :] @ residual) * scale**2
            if root_weights is not None:
                scale = scale / root_weights
            # Ends are ties, which the index order may decide against L: stay clear of them. Rows that have no room (a
            # pattern that only a tie gives) stay where they are.
            lower, upper = lower + margin, xp.clip(upper - margin, max=HIGHEST)
            room = upper > lower
            lower = xp.where(room, xp.clip(lower, min=LOWEST), old)
            upper = xp.where(room, upper, old)
            room = room & (upper > lower)
            ends = (lower - centre) / scale, (upper - centre) / scale
            now = (old - centre) / scale
            z = centre + scale * (
                reflected_normal(*ends, now, u[j, :]) if reflect else truncated_normal(*ends, u[j, :])
            )
            z = xp.where(room, xp.clip(z, lower, upper), old)
            residual[j, :] += z - old
            weights.put(j, z)
        return Z

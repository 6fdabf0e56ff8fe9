"""The probability simplex: softmax, projections and divergences, row by row.

All functions take and return arrays of shape (n, q) (or (..., q)) and run on any array-API library.
"""

import numpy as np
from array_api_compat import array_namespace

from contone.backends import get_backend
from contone.typing import Array


def softmax(Z: Array) -> Array:
    """Row-wise softmax exp(z_j) / sum_k exp(z_k), safe for any finite Z."""
    xp = array_namespace(Z)
    E = xp.exp(Z - row_maxima(Z)[..., None])
    return E / xp.sum(E, axis=-1, keepdims=True)


def normalise_rows(A: Array) -> Array:
    """Divide each row by its sum; a row without mass becomes uniform."""
    xp = array_namespace(A)
    total = xp.sum(A, axis=-1, keepdims=True)
    empty = total <= 0
    return xp.where(empty, xp.full_like(A, 1.0 / A.shape[-1]), A / xp.where(empty, xp.ones_like(total), total))


def shared_out(D: np.ndarray, total: float) -> Array:
    """Whole numbers next to total * D (n, q) whose rows sum to `total`: the rest goes to the largest remainders."""
    exact = total * D
    whole = np.floor(exact + 1e-9)  # 3 * (1/3) is three, whatever rounding says
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1, kind="stable")
    return whole + (rank < np.rint(total - whole.sum(axis=1, keepdims=True)))


def to_distributions(scores: Array, output: str) -> Array:
    """Scores (n, q) of any size as distributions: their softmax, or their positive part divided by its sum ("sum")."""
    return softmax(scores) if output == "softmax" else normalise_rows(array_namespace(scores).clip(scores, min=0.0))


def log_weight(w: Array) -> Array:
    """log(w), and -inf for weights that are not positive."""
    xp = array_namespace(w)
    tiny = xp.full_like(w, xp.finfo(w.dtype).smallest_normal)
    return xp.where(w > 0, xp.log(xp.maximum(w, tiny)), xp.full_like(w, -xp.inf))


def row_sums(A: Array) -> Array:
    """Sums over the last axis of A (n, q), as a product with ones: NumPy sums a short last axis ten times slower."""
    xp = array_namespace(A)
    return xp.matmul(A, xp.ones(A.shape[-1], dtype=A.dtype, device=getattr(A, "device", None)))


def row_maxima(A: Array) -> Array:
    """The largest entry along the last axis."""
    return get_backend(A).row_maxima(A)


def project_masked_simplex(V: Array, mask: Array) -> Array:
    """Euclidean projection of each row of V on {f : f >= 0, sum f = 1, f = 0 where not mask}.

    The answer is f = max(v - theta, 0) on the mask, with the theta that makes the row sum to 1. Rows in which every
    relevant entry stays positive have theta = (sum v - 1) / |mask| in closed form; only the others are sorted.

    Parameters
    ----------
    V : array, (n, q)
        Any rows.
    mask : bool array, (n, q)
        Every row needs at least one True.
    """
    xp = array_namespace(V)
    relevant = xp.astype(mask, V.dtype)
    F = V * relevant
    F -= ((row_sums(F) - 1.0) / row_sums(relevant))[:, None] * relevant
    if float(xp.min(F)) < 0.0:
        cut = row_sums(xp.astype(F < 0.0, V.dtype)) > 0.0
        F[cut] = _project_by_sorting(V[cut], mask[cut])
    return F


def _project_by_sorting(V: Array, mask: Array) -> Array:
    """The projection for any row, by sorting (Held, Wolfe and Crowder 1974).

    With u the relevant entries in descending order, theta = (sum_{j<=r} u_j - 1) / r for the largest r with
    u_r > theta_r.
    """
    xp = array_namespace(V)
    u = xp.sort(xp.where(mask, V, -xp.inf), axis=-1, descending=True)
    finite = xp.isfinite(u)
    cumulative = xp.cumulative_sum(xp.where(finite, u, xp.zeros_like(u)), axis=-1) - 1.0
    rank = xp.arange(1, V.shape[-1] + 1, dtype=V.dtype, device=getattr(V, "device", None))
    active = finite & (u * rank > cumulative)
    r = xp.sum(xp.astype(active, xp.int64), axis=-1, keepdims=True)
    theta = xp.take_along_axis(cumulative, r - 1, axis=-1) / xp.astype(r, V.dtype)
    return xp.where(mask, xp.clip(V - theta, min=0.0), xp.zeros_like(V))


def kl_divergence(D: Array, R: Array) -> Array:
    """KL(D_i || R_i) = sum_j d_ij log(d_ij / r_ij) for every row, with 0 log 0 = 0; inf where r = 0 < d."""
    xp = array_namespace(D, R)
    positive = D > 0
    safe_D = xp.where(positive, D, xp.ones_like(D))
    missing = positive & (R <= 0)
    safe_R = xp.where(positive & ~missing, R, xp.ones_like(R))
    terms = xp.where(positive, D * (xp.log(safe_D) - xp.log(safe_R)), xp.zeros_like(D))
    return xp.sum(xp.where(missing, xp.full_like(D, xp.inf), terms), axis=-1)

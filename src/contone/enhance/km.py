"""KM: label enhancement by kernel distances to the labels' centres.

In the feature space of a Gaussian kernel every label l has a centre, the mean of its positives, and a radius, the
largest distance of a positive to it. A positive near the centre is described by the label more than one at the rim:

    s_il^2 = ||phi(x_i) - (1 / n_l) sum_{c in C_l} phi(x_c)||^2        C_l the n_l positives of label l,
    r_l    = max_{i in C_l} s_il,
    F_il   = 1 - sqrt(s_il^2 / (r_l^2 + delta))  if l is relevant to i, 0 otherwise,

and D^ is the softmax of the rows of F. With H = K L every inner product is known,

    s_il^2 = 1 - 2 H_il / n_l + (L^T H)_ll / n_l^2,

so that one product of the kernel matrix with L, taken tile by tile, serves all labels.

References
----------
X. Jiang, Z. Yi, J. C. Lv. Fuzzy SVM with a new fuzzy membership function. Neural Computing and Applications, 2006.
N. Xu, A. Tao, X. Geng. Label enhancement for label distribution learning. IJCAI 2018, section 3.
"""

from typing import ClassVar

import numpy as np

from contone.base import POSITIVE, Enhancer, estimator, parameter
from contone.numerics.kernel import gaussian_operator, mean_pairwise_distance
from contone.numerics.scaling import standardisation
from contone.numerics.simplex import to_distributions
from contone.numerics.solution import Solution
from contone.typing import Array, Domains, Presets

DELTA = 1e-6
"""Keeps the quotient defined for a label with one positive, whose radius is 0."""


@estimator
class KM(Enhancer):
    """Nearness to each relevant label's centre in the feature space of a Gaussian kernel.

    A closed form: nothing is minimised. With confidences in place of L, centres are means weighted by confidence, and a
    label is relevant where its confidence is positive. A label without positives gets no mass before normalisation.

    Parameters
    ----------
    width : float or "mean", default="mean"
        Width of the kernel; "mean" is the mean pairwise distance.
    standardize : bool, default=True
        Use z-scores of the features.
    output : {"softmax", "sum"}, default="softmax"
        How a row of F becomes a distribution: softmax, or division by its sum (uniform over the relevant labels where
        the row is at the rim of all of them).

    Attributes
    ----------
    scores_ : (n, q)
        F, before normalisation: in [0, 1], 0 where a label is not relevant.

    Notes
    -----
    The preset ``paper`` uses raw features.

    Examples
    --------
    >>> KM().fit_enhance([[0.0], [1.0], [2.0], [9.0]], [[1, 0], [1, 0], [1, 1], [0, 1]]).round(2).tolist()
    [[0.5, 0.5], [0.71, 0.29], [0.5, 0.5], [0.5, 0.5]]
    """

    reference = "Jiang, Yi & Lv, Neural Comput. Appl. 2006; Xu, Tao & Geng, IJCAI 2018"
    PRESETS: ClassVar[Presets] = {"paper": {"standardize": False}}
    SEARCH: ClassVar[Domains] = {"output": ["softmax", "sum"], "standardize": [True, False]}
    width: float | str = parameter(POSITIVE, {"mean"}, default="mean")
    standardize: bool = parameter("boolean", default=True)
    output: str = parameter({"softmax", "sum"}, default="softmax")

    def _fit_enhance(self, X: np.ndarray, L: np.ndarray) -> Solution:
        if self.standardize:
            X = standardisation(X)(X)
        width = (mean_pairwise_distance(X) or 1.0) if self.width == "mean" else float(self.width)
        F = degrees(squared_centre_distances(X, L, width), L > 0)
        self.scores_ = F
        # A row at the rim of all its labels has no mass to divide by; its labels share alike then.
        at_rim = (F.sum(axis=1, keepdims=True) <= 0) & (self.output == "sum")
        return Solution(to_distributions(np.where(at_rim, L, F), self.output), info={"width": width})


def squared_centre_distances(X: np.ndarray, L: np.ndarray, width: float) -> Array:
    """s_il^2 (n, q): squared distance of phi(x_i) to the mean of phi over label l, weighted by L (n, q)."""
    total = L.sum(axis=0)
    weights = L / np.where(total > 0, total, 1.0)
    # One product only, so that keeping the matrix would save nothing.
    H = gaussian_operator(X, width, keep_rows=0)(weights)
    return np.maximum(1.0 - 2.0 * H + np.sum(weights * H, axis=0), 0.0)


def degrees(squared: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """F (n, q) from squared distances to the centres (n, q) and the relevant labels (n, q)."""
    # Paper: the radius is that of the label's own positives; others have taken it over all rows.
    radius = np.max(np.where(relevant, squared, 0.0), axis=0)
    return np.where(relevant, 1.0 - np.sqrt(squared / (radius + DELTA)), 0.0)

"""LDL-LRR: label distribution learning that keeps the order of the labels.

    p(x) = softmax(x^T Theta + b)

    min  1/n sum_i KL(d_i || p_i) + ranking / (2n) sum_i sum_jk w_ijk CE(1[d_ij > d_ik], sigmoid(p_ij - p_ik))
         + l2/2 ||Theta||_F^2,                                                             w_ijk = (d_ij - d_ik)^2

with CE the binary cross-entropy. A pair counts the same in both orders and ties have no weight, so that the middle
term is ranking / n times the sum of w_ijk log(1 + exp(p_ik - p_ij)) over the pairs with d_ij > d_ik. With ranking = 0
this is the maximum entropy model (`MaxEnt`).

Reference: X. Jia, X. Shen, W. Li, Y. Lu, J. Zhu. Label distribution learning by maintaining label ranking relation.
IEEE TKDE, 2023.
"""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from contone.base import NOT_NEGATIVE, estimator, parameter
from contone.numerics.solution import Solution
from contone.predict.maxent import Extra, LinearSoftmax, refuse_extreme_columns
from contone.typing import Presets


@estimator
class LDLLRR(LinearSoftmax):
    """Maximum entropy with a penalty on labels in the wrong order.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the model has b.
    l2 : float, default=0.0
        Weight of the penalty on Theta (not on b).
    max_iter : int, default=500
        Maximum number of iterations of L-BFGS.
    tol : float, default=1e-6
        Converged when every |df / dtheta_kj| / rms(x_k) is at most this, as in `MaxEnt`.
    ranking : float, default=1e-3
        Weight of the order of the labels; 0 gives `MaxEnt`.

    Attributes
    ----------
    coef_ : (d, q)
        Theta, rows summing to zero.
    intercept_ : (q,)
        b, summing to zero; zero without intercept.

    Notes
    -----
    The preset ``published_settings`` stops after 50 iterations and has no intercept, as the public implementation; its
    two slips (see `ranking_term`) are not taken over. A term is a sigmoid of a difference of
    probabilities, which is between .27 and .73: at the published weight the order changes predictions little.

    Examples
    --------
    >>> X, D = [[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> LDLLRR().fit(X, D).predict([[1.0]]).round(2).tolist()
    [[0.6, 0.4]]
    """

    reference = "Jia, Shen, Li, Lu & Zhu, IEEE TKDE 2023"
    PRESETS: ClassVar[Presets] = {"published_settings": {"fit_intercept": False, "max_iter": 50}}
    ranking: float = parameter(NOT_NEGATIVE, default=1e-3)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        refuse_extreme_columns("LDLLRR", X)
        start = np.zeros((X.shape[1], D.shape[1]))
        return self._keep(self._fit_lbfgs(X, D, start, ranking_term(D, self.ranking) if self.ranking > 0 else None))


def ranking_term(D: np.ndarray, ranking: float) -> Extra:
    """The middle term of the objective as a function of P (q, n), for the truth D (n, q); or what some rows add to it.

    Pair by pair of labels, so that no array (n, q, q) is needed.
    """
    all_truth = np.ascontiguousarray(D.T)
    q, n = all_truth.shape

    # Paper: the public implementation counts a pair only if d_ij - d_ik > .5, and uses log sigmoid(1 - delta) where
    # log sigmoid(-delta) was meant.
    def value_and_gradient(P: np.ndarray, rows: slice = slice(None)) -> tuple[float, np.ndarray]:
        truth = all_truth[:, rows]
        value, gradient = 0.0, np.zeros_like(P)
        for j in range(q):
            difference = truth[j] - truth[j + 1 :]
            sign, weight = np.sign(difference), difference**2
            wrong_by = sign * (P[j + 1 :] - P[j])
            value += float(np.sum(weight * np.logaddexp(0.0, wrong_by)))
            slope = weight * sign * expit(wrong_by)
            gradient[j] -= slope.sum(axis=0)
            gradient[j + 1 :] += slope
        return ranking / n * value, ranking / n * gradient

    return value_and_gradient

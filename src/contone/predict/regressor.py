"""A regressor of any kind with several outputs as a label distribution learner.

    target="clip":       fit x -> d,              p(x) = max(prediction, floor), renormalised
    target="logratio":   fit x -> clr(d),         p(x) = softmax(prediction)

where clr(d) = log max(d, floor) - its mean over the labels, the centred log-ratio of compositional data analysis.

Reference: Aitchison, The Statistical Analysis of Compositional Data, JRSS B 44(2), 1982.
"""

from numbers import Real

import numpy as np
from sklearn.base import clone

from contone.base import DistributionLearner, HasMethods, Interval, estimator, parameter
from contone.numerics.simplex import normalise_rows, softmax
from contone.numerics.solution import Solution
from contone.predict.inner import named_errors
from contone.typing import Array, EstimatorLike


@estimator
class FromRegressor(DistributionLearner):
    """A scikit-learn regressor that learns label distributions.

    Parameters
    ----------
    estimator : regressor
        Anything with ``fit(X, D)`` and ``predict(X)`` for several targets; wrap one that knows a single target in
        `sklearn.multioutput.MultiOutputRegressor`. It is cloned.
    target : {"clip", "logratio"}, default="clip"
        Whether it learns the degrees themselves, or their centred log-ratios.
    floor : float, default=1e-4
        The least degree: of the prediction with "clip", of the training data with "logratio". It keeps logarithms and
        the KL of an unexpected label finite.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, D = [[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> FromRegressor(LinearRegression()).fit(X, D).predict([[3.0]]).round(2).tolist()
    [[0.8, 0.2]]
    """

    reference = "Aitchison, The Statistical Analysis of Compositional Data, JRSS B 44(2), 1982"
    estimator: EstimatorLike = parameter(HasMethods(["fit", "predict"]), kw_only=False)
    target: str = parameter({"clip", "logratio"}, default="clip")
    floor: float = parameter(Interval(Real, 0, 1, closed="neither"), default=1e-4)

    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        T = centred_log_ratio(D, self.floor) if self.target == "logratio" else D
        # scikit-learn wants a vector where there is one target.
        with named_errors(self, self.estimator):
            self.estimator_ = clone(self.estimator).fit(X, T if D.shape[1] > 1 else T[:, 0])
        return Solution(self.estimator_)

    def _predict(self, X: np.ndarray) -> Array:
        with named_errors(self, self.estimator):
            T = np.asarray(self.estimator_.predict(X), dtype=float).reshape(len(X), -1)
        return softmax(T) if self.target == "logratio" else normalise_rows(np.maximum(T, self.floor))


def centred_log_ratio(D: np.ndarray, floor: float) -> Array:
    """log max(d, floor) minus its mean over the labels, (n, q)."""
    logs = np.log(np.maximum(D, floor))
    return logs - logs.mean(axis=1, keepdims=True)

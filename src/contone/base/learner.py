"""The contract of a label distribution learner."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from contone.base.template import Estimator, in_its_kind, refuse_too_large, warn_if_short
from contone.numerics.simplex import kl_divergence
from contone.numerics.solution import Solution
from contone.runtime import machine
from contone.runtime.machine import threads_for
from contone.typing import Data
from contone.validation.distributions import check_learning, check_truth
from contone.validation.training import check_features


class DistributionLearner(Estimator, ABC):
    """Learns the map from features to label distributions: ``fit(X, D)``, then ``predict(X)``.

    The second argument is called y, as scikit-learn passes it to `score` by name; it holds the distributions D.
    """

    _shares_rows: ClassVar[bool] = False
    """Whether a fit shares its rows out to threads by itself; BLAS and OpenMP then keep to one, however large it is."""

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from features X (n, d) and label distributions y (n, q), or one class per row, (n,)."""
        self._validate_params()
        X_checked, D_checked, border = check_learning(self, X, y)
        refuse_too_large(self, X_checked, D_checked.shape[1])
        X_checked, D_checked = in_its_kind(self, X_checked, D_checked)
        self.label_names_ = border.label_names
        with threads_for(X_checked, D_checked, shares_rows=self._shares_rows):
            self.solution_ = self._fit(X_checked, D_checked)
        warn_if_short(self.solution_, self)
        return self

    def _fit_bytes(self, n: int, d: int, q: int) -> float:
        """Estimated memory of a fit beyond X (n, d) and D (n, q); learners that hold more than this override it."""
        return machine.fit_bytes(n, d, q)

    def predict(self, X: Data) -> Data:
        """Label distributions (m, q) of new rows; a frame in gives a frame out."""
        return self._predict_wrapped(X)

    def score(self, X: Data, y: Data) -> float:
        """Minus the mean KL(y || predicted), so that more is better; y as in `fit`."""
        check_is_fitted(self)
        X_checked = check_features(self, X, reset=False)
        truth = check_truth(self, y, self.label_names_)
        return -float(np.mean(kl_divergence(truth, np.asarray(self._predict(X_checked)))))

    @abstractmethod
    def _fit(self, X: np.ndarray, D: np.ndarray) -> Solution:
        """X (n, d) and D (n, q), checked and read-only, to a `Solution` whose value is the fitted parameters."""

    @abstractmethod
    def _predict(self, X: np.ndarray) -> np.ndarray:
        """X (m, d), checked, to D^ (m, q)."""

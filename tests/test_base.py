"""The template: what every method gets for free, and what it cannot get away with."""

from __future__ import annotations

import pickle
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import Interval

from contone import AAKNN, LP, HSICReducer, Temperature, measures
from contone.base import DistributionLearner, Enhancer, InductiveMixin
from contone.exceptions import AnswerError, ContoneError, InputError
from contone.numerics.solution import Solution

X = np.arange(12.0).reshape(4, 3)
L = np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
D = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])


class Says(InductiveMixin, Enhancer):
    """An enhancer that answers what it is told to."""

    reference = "a test"
    PRESETS: ClassVar[dict[str, Any]] = {"paper": {"answer": "paper"}, "other": {"answer": "other", "scale": 2.0}}
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "answer": "no_validation",
        "scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, answer=None, scale=1.0):
        self.answer = answer
        self.scale = scale

    def _fit_enhance(self, X, L):
        return self.answer if isinstance(self.answer, Solution) else Solution(np.asarray(self.answer))

    def _predict(self, X):
        return np.asarray(self.answer)[: len(X)]


class Mean(DistributionLearner):
    """Predicts the mean distribution."""

    def _fit(self, X, D):
        self.mean_ = D.mean(axis=0)
        return Solution(self.mean_)

    def _predict(self, X):
        return np.tile(self.mean_, (len(X), 1))


def test_the_answer_is_stored_with_what_the_solver_says():
    said = Solution(D, objective=3.0, residual=1e-9, n_iter=7)
    method = Says(answer=said)
    assert method.fit(X, L) is method
    np.testing.assert_array_equal(method.label_distributions_, D)
    assert method.solution_ is said
    assert method.n_features_in_ == 3
    np.testing.assert_array_equal(method.fit_enhance(X, L), D)


def test_rounding_in_the_answer_is_repaired():
    method = Says(answer=D * (1 + 1e-8) - [[0, 0], [0, 0], [0, 0], [0, 1e-12]])
    answer = method.fit_enhance(X, L)
    assert answer.min() >= 0
    np.testing.assert_allclose(answer.sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (D[:3], r"shape \(3, 2\) \(expected \(4, 2\)\)"),
        (D[:, :1], r"shape \(4, 1\)"),
        (D * np.nan, "NaN in it"),
        (D * 2, "rows that are not distributions; this is a defect in the method"),
        (D - [0.5, -0.5], "rows that are not distributions"),
    ],
)
def test_an_answer_that_is_not_a_distribution_is_a_defect_and_never_stored(wrong, message):
    method = Says(answer=wrong)
    with pytest.raises(AnswerError, match=f"Says gave .*{message}"):
        method.fit(X, L)
    assert not hasattr(method, "label_distributions_")


def test_an_answer_without_its_solution_is_refused():
    method = Says()
    method._fit_enhance = lambda X, L: D
    with pytest.raises(AnswerError, match=r"Says._fit_enhance gave ndarray \(expected a Solution\)"):
        method.fit(X, L)


def test_predictions_are_checked_too():
    method = Says(answer=D).fit(X, L)
    np.testing.assert_array_equal(method.predict(X[:2]), D[:2])
    method.answer = D * 2
    with pytest.raises(AnswerError, match="not distributions"):
        method.predict(X[:2])


def test_a_solver_that_stopped_short_is_told_once_and_where_it_was_called():
    short = Solution(D, residual=0.25, n_iter=9, converged=False)
    with pytest.warns(
        ConvergenceWarning, match=r"Says stopped after 9 iterations with residual 0.25.*raise max_iter"
    ) as w:
        Says(answer=short).fit(X, L)
    assert len(w) == 1
    assert w[0].filename == __file__


def test_presets_are_documented_settings_that_can_be_overridden():
    assert Says.preset("paper").answer == "paper"
    changed = Says.preset("other", scale=3.0)
    assert (changed.answer, changed.scale) == ("other", 3.0)
    assert Says.PRESETS["other"]["scale"] == 2.0
    with pytest.raises(InputError, match="Says has no preset 'paperr'; it has: other, paper"):
        Says.preset("paperr")
    with pytest.raises(InputError, match="Temperature has no preset 'paper'; it has: none"):
        Temperature.preset("paper")


def test_parameters_are_checked_when_fitted_not_when_built():
    method = Says(answer=D, scale=-1.0)
    with pytest.raises(ValueError, match="'scale' parameter of Says must be"):
        method.fit(X, L)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        Says(answer=D).predict(X)
    with pytest.raises(NotFittedError):
        Mean().predict(X)
    with pytest.raises(NotFittedError):
        Mean().score(X, D)


def test_a_learner_scores_minus_the_mean_divergence():
    model = Mean().fit(X, D)
    assert model.score(X, D) == pytest.approx(-measures.kl(D, model.predict(X)))


def test_a_learner_takes_classes_too():
    model = Mean().fit(X, ["b", "a", "b", "b"])
    assert model.label_names_ == ["a", "b"]
    np.testing.assert_allclose(model.predict(X[:1]), [[0.25, 0.75]])


def test_estimators_can_be_cloned_and_pickled():
    method = Temperature(c=0.7)
    assert clone(method).get_params() == {"c": 0.7}
    fitted = method.fit(X, L)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.label_distributions_, fitted.label_distributions_)


def test_every_error_of_ours_can_be_caught_as_one():
    import contone.exceptions as ours

    raised = [c for c in vars(ours).values() if isinstance(c, type) and issubclass(c, Exception)]
    for error in raised:
        assert error.__doc__
        assert issubclass(error, ContoneError | Warning)


@pytest.mark.parametrize("estimator", [AAKNN(n_neighbors=True), LP(max_iter=True), HSICReducer(n_components=True)])
def test_true_is_not_a_number(estimator):
    """In Python it is one, and what a library makes of it differs: scikit-learn's neighbour search raises TypeError."""
    with pytest.raises(ValueError, match="must not be True: give a number"):
        estimator.fit([[0.0], [1.0], [2.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    LP(standardize=True).fit([[0.0], [1.0]], [[1, 0], [0, 1]])

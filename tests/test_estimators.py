"""What every estimator must do, whoever wrote it: scikit-learn's checks and the contract of the enhancers.

Estimators are found through the public names, so a new method is covered once it is exported.
"""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import contone
from contone import enhance
from contone.base import DistributionLearner, Enhancer, InductiveMixin

# Data this small makes methods say that they did not converge, found no structure, or saw a constant label.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.NearUniformWarning"),
    pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning"),
]

INNER = {"enhancer": contone.Temperature(), "estimator": Ridge()}
"""What an estimator around another one is filled with."""


def build(cls: type) -> BaseEstimator:
    """An instance with default parameters; required ones come from `INNER`."""
    required = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{name: clone(INNER[name]) for name in required})


def public_estimators() -> dict[str, BaseEstimator]:
    """One instance of every estimator class among the public names, by class name."""
    exported = [getattr(contone, name) for name in contone.__all__]
    classes = {c for c in [*exported, *enhance.methods().values()] if isinstance(c, type)}
    return {c.__name__: build(c) for c in sorted(classes, key=lambda c: c.__name__) if issubclass(c, BaseEstimator)}


ESTIMATORS = public_estimators()
ENHANCERS = {name: e for name, e in ESTIMATORS.items() if isinstance(e, Enhancer)}

EXPECTED_FAILURES: dict[str, dict[str, str]] = {}
"""By class name: the checks of scikit-learn that cannot pass, each with its reason."""


@parametrize_with_checks(
    list(ESTIMATORS.values()), expected_failed_checks=lambda e: EXPECTED_FAILURES.get(type(e).__name__, {})
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_expected_failure_belongs_to_an_estimator():
    assert set(EXPECTED_FAILURES) <= set(ESTIMATORS)
    assert all(reason for failures in EXPECTED_FAILURES.values() for reason in failures.values())


# ------------------------------------------------------------------------------------- the contract of the enhancers


@pytest.fixture(params=ENHANCERS)
def method(request):
    """A fresh instance of each enhancer."""
    return clone(ENHANCERS[request.param])


def problem(n=24, d=4, q=3, seed=0):
    """X (n, d) and logical labels L (n, q) that depend on X, at least one a row, no label constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, q)) + rng.normal(size=(n, q))
    L = (np.median(Z, axis=0) < Z).astype(float)
    L[np.arange(n), Z.argmax(axis=1)] = 1.0
    return X, L


def assert_distributions(D, shape):
    D = np.asarray(D)
    assert D.shape == shape
    assert (D >= 0).all()
    np.testing.assert_allclose(D.sum(axis=1), 1.0, atol=1e-12)


def test_the_answer_is_on_the_simplex_and_stored(method):
    X, L = problem()
    D = method.fit_enhance(X, L)
    assert_distributions(D, L.shape)
    np.testing.assert_array_equal(D, method.label_distributions_)
    assert isinstance(method.solution_.converged, bool | np.bool_)
    assert method.label_names_ == ["label_0", "label_1", "label_2"]
    assert method.n_features_in_ == 4


def test_two_fits_are_identical(method):
    X, L = problem()
    if "random_state" in method.get_params():
        method.set_params(random_state=0)
    first = clone(method).fit_enhance(X, L)
    again = clone(method).fit(X, L)
    np.testing.assert_array_equal(first, again.label_distributions_)
    np.testing.assert_array_equal(first, again.fit_enhance(X, L))  # a second fit forgets the first


def test_inputs_and_parameters_are_left_alone(method):
    X, L = problem()
    kept_X, kept_L, kept_parameters = X.copy(), L.copy(), str(method.get_params())
    method.fit_enhance(X, L)
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(L, kept_L)
    assert str(method.get_params()) == kept_parameters


def test_the_order_of_the_rows_does_not_matter(method):
    if "random_state" in method.get_params():
        pytest.skip("draws random numbers in the order of the rows")
    X, L = problem()
    order = np.random.default_rng(1).permutation(len(X))
    D = clone(method).fit_enhance(X, L)
    np.testing.assert_allclose(clone(method).fit_enhance(X[order], L[order]), D[order], atol=1e-5)


def test_confidences_instead_of_labels(method):
    X, L = problem()
    F = L / L.sum(axis=1, keepdims=True)
    assert_distributions(method.fit_enhance(X, F), L.shape)


def test_duplicate_rows(method):
    X, L = problem()
    X[12:] = X[:12]
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_all_rows_the_same(method):
    X, L = problem()
    X[:] = X[0]
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_constant_features(method):
    X, L = problem()
    X[:, 1] = 7.0
    X[:, 2] = 0.0
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_features_of_very_different_size(method):
    X, L = problem()
    assert_distributions(clone(method).fit_enhance(X * [1e-6, 1.0, 1e3, 1e6], L), L.shape)


def test_fewer_rows_than_neighbours(method):
    X, _ = problem()
    assert_distributions(clone(method).fit_enhance(X[:3], [[1, 0, 0], [0, 1, 0], [1, 0, 1]]), (3, 3))
    assert_distributions(clone(method).fit_enhance(X[:2], [[1, 0], [0, 1]]), (2, 2))


def test_more_features_than_rows(method):
    X, L = problem(n=12, d=30)
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_one_label_is_certain(method):
    X, _ = problem()
    np.testing.assert_allclose(method.fit_enhance(X, np.ones((len(X), 1))), 1.0)


def test_two_labels(method):
    X, L = problem(q=2)
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_more_labels_than_features(method):
    X, L = problem(d=2, q=7)
    assert_distributions(method.fit_enhance(X, L), L.shape)


def test_one_relevant_label_each(method):
    X, L = problem()
    single = np.eye(3)[L.argmax(axis=1)]
    assert_distributions(method.fit_enhance(X, single), L.shape)


def test_every_label_relevant_everywhere(method):
    X, L = problem()
    assert_distributions(method.fit_enhance(X, np.ones_like(L)), L.shape)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_in_frames_out(method, kind):
    X, L = problem()
    expected = clone(method).fit_enhance(X, L)
    names = ["calm", "loud", "odd"]
    Y = pd.DataFrame(L, columns=names) if kind is pd.DataFrame else pl.DataFrame(L, schema=names)
    features = pd.DataFrame(X, columns=list("abcd")) if kind is pd.DataFrame else pl.DataFrame(X, schema=list("abcd"))
    D = method.fit_enhance(features, Y)
    assert isinstance(D, kind)
    assert list(D.columns) == names
    np.testing.assert_allclose(D.to_numpy(), expected, atol=1e-12)


def test_inductive_methods_predict_and_others_do_not_pretend(method):
    X, L = problem()
    method.fit(X, L)
    if isinstance(method, InductiveMixin):
        assert_distributions(method.predict(X[:5]), (5, 3))
    elif hasattr(method, "predict"):  # an estimator around another one has what the inner one has
        assert hasattr(method, "enhancer")


def test_documentation(method):
    cls = type(method)
    assert cls.__doc__
    assert cls.reference
    for name in cls.PRESETS:
        assert isinstance(cls.preset(name), cls)
    for parameter in inspect.signature(cls).parameters.values():
        keyword_only = parameter.kind is parameter.KEYWORD_ONLY
        assert keyword_only or parameter.name in INNER, parameter.name


def test_every_parameter_has_a_declared_domain(method):
    assert set(method.get_params(deep=False)) <= set(method._parameter_constraints)


# -------------------------------------------------------------------------------------------------------- the learners


LEARNERS = {name: e for name, e in ESTIMATORS.items() if isinstance(e, DistributionLearner)}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_predict_distributions_of_rows_never_seen(name):
    X, L = problem()
    D = contone.Temperature(c=1.0).fit_enhance(X, L)
    kept = X.copy(), D.copy()
    model = clone(LEARNERS[name]).fit(X, D)
    new, _ = problem(seed=9)
    assert_distributions(model.predict(new), D.shape)
    assert np.isfinite(model.score(X, D))
    np.testing.assert_array_equal(model.predict(new), clone(LEARNERS[name]).fit(X, D).predict(new))
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(D, kept[1])

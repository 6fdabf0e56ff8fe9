"""FromRegressor: what the wrapped regressor is asked, and how its answer becomes a distribution."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

from contone import FromRegressor, MaxEnt, measures
from contone.numerics.simplex import softmax
from contone.predict.regressor import centred_log_ratio


def test_clip_is_the_regression_clipped_and_renormalised(small):
    X, _, D = small
    raw = np.maximum(Ridge().fit(X, D).predict(5 * X), 1e-4)
    answer = FromRegressor(Ridge()).fit(X, D).predict(5 * X)
    assert (raw == 1e-4).any()
    np.testing.assert_allclose(answer, raw / raw.sum(axis=1, keepdims=True))


def test_softmax_inverts_the_centred_log_ratio(small):
    _, _, D = small
    ratios = centred_log_ratio(D, 1e-12)
    np.testing.assert_allclose(ratios.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(softmax(ratios), D)


def test_log_ratios_that_are_linear_in_x_are_found_exactly():
    """There, least squares on log-ratios and maximum entropy have the same answer: the model itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    D = softmax(X @ rng.normal(size=(4, 3)))
    answer = FromRegressor(LinearRegression(), target="logratio", floor=1e-12).fit(X, D).predict(X)
    np.testing.assert_allclose(answer, D, atol=1e-10)
    np.testing.assert_allclose(MaxEnt().fit(X, D).predict(X), D, atol=1e-5)


def test_degrees_of_zero_are_floored():
    X, D = [[0.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]]
    answer = FromRegressor(LinearRegression(), target="logratio", floor=0.01).fit(X, D).predict(X)
    np.testing.assert_allclose(answer[0], [1 / 1.01, 0.01 / 1.01])


@pytest.mark.parametrize("target", ["clip", "logratio"])
@pytest.mark.parametrize(
    "regressor",
    [
        ExtraTreesRegressor(20, random_state=0),
        MultiOutputRegressor(SVR()),
        MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10, random_state=0)),
    ],
    ids=["trees", "svr", "boosting"],
)
def test_regressors_of_every_kind(small, regressor, target):
    X, _, D = small
    model = FromRegressor(regressor, target=target).fit(X[:40], D[:40])
    assert measures.kl(D[40:], model.predict(X[40:])) < measures.kl(D[40:], np.full((20, 4), 0.25))


def test_the_regressor_is_cloned(small):
    X, _, D = small
    inner = Ridge()
    model = FromRegressor(inner).fit(X, D)
    assert not hasattr(inner, "coef_")
    assert model.estimator_.coef_.shape == (4, 5)


def test_what_is_no_regressor_is_refused(small):
    X, _, D = small
    with pytest.raises(ValueError, match="'estimator' parameter of FromRegressor"):
        FromRegressor("ridge").fit(X, D)

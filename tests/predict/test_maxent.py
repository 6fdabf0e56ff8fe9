"""MaxEnt: the gradient, the conditions of the optimum, two solvers that meet, and what must not change the answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from contone import MaxEnt, measures
from contone.exceptions import FeatureError
from contone.numerics.simplex import softmax
from contone.predict.maxent import column_units, entropy, objective, refuse_extreme_columns, root_mean_square

SOLVERS = ("lbfgs", "iis")


@pytest.fixture
def exact():
    """Distributions that follow the model: X (50, 4), D (50, 3), Theta (4, 3), b (3,), gauge-fixed."""
    rng = np.random.default_rng(5)
    X, Theta, b = rng.normal(size=(50, 4)), rng.normal(size=(4, 3)), rng.normal(size=3)
    Theta, b = Theta - Theta.mean(axis=1, keepdims=True), b - b.mean()
    return X, softmax(X @ Theta + b), Theta, b


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_gradient_against_finite_differences(small, l2):
    X, _, D = small
    d, q = X.shape[1], D.shape[1]

    def split(flat):
        return flat[: d * q].reshape(d, q), flat[d * q :]

    def value(flat):
        return objective(X, D, *split(flat), l2)[0]

    def gradient(flat):
        return np.concatenate([part.ravel() for part in objective(X, D, *split(flat), l2)[1]])

    rng = np.random.default_rng(0)
    for _ in range(3):
        assert check_grad(value, gradient, rng.normal(size=(d + 1) * q)) < 1e-6


def test_objective_is_the_mean_kl_up_to_the_entropy_of_the_truth(small):
    X, _, D = small
    rng = np.random.default_rng(0)
    Theta, b = rng.normal(size=(5, 4)), rng.normal(size=4)
    expected = measures.kl(D, softmax(X @ Theta + b)) + 0.15 * np.sum(Theta**2)
    assert objective(X, D, Theta, b, 0.3)[0] - entropy(D) == pytest.approx(expected)
    model = MaxEnt(l2=0.3).fit(X, D)
    assert model.solution_.objective == pytest.approx(measures.kl(D, model.predict(X)) + 0.15 * np.sum(model.coef_**2))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("solver", SOLVERS)
def test_conditions_of_the_optimum(small, solver, l2, fit_intercept):
    """1/n X^T (D - P) = l2 Theta and, with an intercept, the mean prediction is the mean of D."""
    X, _, D = small
    model = MaxEnt(solver=solver, l2=l2, fit_intercept=fit_intercept, max_iter=5000, tol=1e-7).fit(X, D)
    P = model.predict(X)
    np.testing.assert_allclose(X.T @ (D - P) / len(X), l2 * model.coef_, atol=1e-6)
    if fit_intercept:
        np.testing.assert_allclose(P.mean(axis=0), D.mean(axis=0), atol=1e-7)
    else:
        np.testing.assert_array_equal(model.intercept_, 0)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("init", ["zeros", "eye"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_two_solvers_meet_from_any_start(small, l2, fit_intercept, init, accelerate):
    X, _, D = small
    common = {"l2": l2, "fit_intercept": fit_intercept}
    lbfgs = MaxEnt(solver="lbfgs", **common).fit(X, D)
    iis = MaxEnt(solver="iis", init=init, accelerate=accelerate, max_iter=5000, **common).fit(X, D)
    np.testing.assert_allclose(iis.predict(X), lbfgs.predict(X), atol=1e-4)
    np.testing.assert_allclose(iis.coef_, lbfgs.coef_, atol=1e-4)
    np.testing.assert_allclose(iis.intercept_, lbfgs.intercept_, atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_parameters_of_the_model_come_back(exact, solver):
    X, D, Theta, b = exact
    model = MaxEnt(solver=solver, max_iter=5000, tol=1e-7).fit(X, D)
    np.testing.assert_allclose(model.coef_, Theta, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-5)


def test_one_class_a_row_is_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.argmax(X + rng.normal(size=(80, 3)), axis=1)
    ours = MaxEnt(l2=0.02, tol=1e-7).fit(X, y)
    theirs = LogisticRegression(C=1 / (0.02 * 80), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_features_that_say_nothing_give_the_mean(small, solver):
    _, _, D = small
    model = MaxEnt(solver=solver).fit(np.zeros((60, 2)), D)
    np.testing.assert_allclose(model.predict([[0.0, 0.0]]), D.mean(axis=0, keepdims=True), atol=1e-5)
    np.testing.assert_array_equal(model.coef_, 0)


def test_a_strong_penalty_leaves_the_mean(small):
    X, _, D = small
    np.testing.assert_allclose(MaxEnt(l2=1e8).fit(X, D).predict(X), np.tile(D.mean(axis=0), (60, 1)), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_order_of_labels_rows_and_features_does_not_matter(small, solver):
    X, _, D = small
    rng = np.random.default_rng(0)
    rows, columns, labels = rng.permutation(60), rng.permutation(5), rng.permutation(4)
    model = MaxEnt(solver=solver, l2=0.01, max_iter=3000, tol=1e-7)
    plain = model.fit(X, D).predict(X)
    turned = model.fit(X[rows][:, columns], D[rows][:, labels]).predict(X[:, columns])
    np.testing.assert_allclose(turned, plain[:, labels], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_and_origin_of_the_features_do_not_matter(small, scale):
    X, _, D = small
    plain = MaxEnt().fit(X, D)
    moved = MaxEnt().fit(scale * (X + 3), D)
    assert moved.solution_.converged
    np.testing.assert_allclose(moved.predict(scale * (X + 3)), plain.predict(X), atol=1e-5)


def test_collinear_and_constant_features_are_harmless(small):
    X, _, D = small
    wide = np.hstack([X, X[:, :2] * 2, np.ones((60, 1)), X.sum(axis=1, keepdims=True)])
    np.testing.assert_allclose(MaxEnt().fit(wide, D).predict(wide), MaxEnt().fit(X, D).predict(X), atol=1e-6)


def test_more_features_than_rows_fit_any_distribution():
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(20, 50)), rng.dirichlet(np.ones(4), size=20)
    assert MaxEnt().fit(X, D).score(X, D) > -1e-8


def test_degrees_of_zero_are_fine(small):
    X, L, _ = small
    D = L / L.sum(axis=1, keepdims=True)
    assert np.isfinite(MaxEnt(l2=1e-3).fit(X, D).score(X, D))


@pytest.mark.parametrize("solver", SOLVERS)
def test_stopping_short_is_said(small, solver):
    X, _, D = small
    with pytest.warns(ConvergenceWarning, match="MaxEnt stopped after 1 iterations"):
        model = MaxEnt(solver=solver, max_iter=1, tol=1e-12).fit(X, D)
    assert not model.solution_.converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_coefficients_sum_to_zero_over_the_labels(small, solver):
    X, _, D = small
    method = MaxEnt(solver=solver, init="eye", l2=0.1).fit(X + 3.0, D)
    np.testing.assert_allclose(method.coef_.sum(axis=1), 0.0, atol=1e-10)
    assert method.intercept_.sum() == pytest.approx(0.0, abs=1e-10)
    assert np.abs(method.intercept_).max() > 1e-3


def test_early_stopped_iis_depends_on_its_start(small):
    """Why the published "IIS-LDL" numbers depend on the initialisation."""
    X, _, D = small
    eye, zeros = (MaxEnt.preset("original_code", max_iter=3, init=init) for init in ("eye", "zeros"))
    for model in (eye, zeros):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, D)
    assert np.abs(eye.predict(X) - zeros.predict(X)).max() > 0.01


def test_likelihood_of_iis_rises_on_real_data(real):
    X, D = real("Yeast_spoem")
    with pytest.warns(ConvergenceWarning):
        plain = MaxEnt(solver="iis", accelerate=False, max_iter=100).fit(X, D).solution_
    accelerated = MaxEnt(solver="iis").fit(X, D).solution_
    assert max(np.diff(plain.info["objective"])) < 0
    assert max(np.diff(accelerated.info["objective"])) < 0
    assert accelerated.n_iter < 100


@pytest.mark.parametrize("name", ["spoem", "cold", "alpha"])
def test_solvers_meet_on_real_data(real, name):
    """Without intercept: its column is nearly the sum of the others here, a direction that moments hardly see."""
    X, D = real(f"Yeast_{name}")
    iis, lbfgs = (MaxEnt(solver=s, fit_intercept=False).fit(X, D) for s in ("iis", "lbfgs"))
    np.testing.assert_allclose(iis.predict(X), lbfgs.predict(X), atol=1e-4)
    assert iis.solution_.objective == pytest.approx(lbfgs.solution_.objective, abs=1e-8)


@pytest.mark.parametrize("solver", ["iis", "lbfgs"])
@pytest.mark.parametrize("size", [1e-310, 1e160])
def test_features_beyond_floating_point_are_refused_with_a_sentence(solver, size):
    X, D = size * np.arange(1.0, 7.0).reshape(3, 2), np.array([[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]])
    with pytest.raises(FeatureError, match="largest entry of X.*Scale the features"):
        MaxEnt(solver=solver, fit_intercept=False).fit(X, D)


def test_columns_are_measured_in_their_own_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) * [1e-9, 1.0, 1e6] + [0.0, 5.0, 0.0]
    X = np.column_stack([X, np.zeros(6)])
    np.testing.assert_allclose(root_mean_square(X), [*np.sqrt(np.mean(X[:, :3] ** 2, axis=0)), 1.0])
    for centred, size in ((True, X.std(axis=0)), (False, root_mean_square(X))):
        unit = column_units(X, centred=centred)
        assert (unit == np.exp2(np.round(np.log2(unit)))).all()  # dividing by it is exact
        assert ((unit <= size) & (size < 2 * unit))[:3].all()
        assert unit[3] == 1.0


@pytest.mark.parametrize("size", [1e-300, 1e200])
@pytest.mark.parametrize("column", [0, 1])
def test_a_column_that_squares_cannot_hold_is_refused_by_its_number(size, column):
    X = np.random.default_rng(0).normal(size=(5, 2))
    refuse_extreme_columns("MaxEnt", X)
    X[:, column] *= size
    with pytest.raises(FeatureError, match=rf"{column}"):
        refuse_extreme_columns("MaxEnt", X)
    with pytest.raises(FeatureError):
        refuse_extreme_columns("MaxEnt", X[:, [column]])

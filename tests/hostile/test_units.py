"""Features have units and origins that nobody chose. For every public class that is fitted:

- in another unit (a power of two, so that nothing is rounded) the answer is the same to the last bit, also where
  squares of the features run out of floating point (1e-170, 1e155); or it is refused with a sentence;
- from another origin (1e12 away, where a deviation of 1 keeps four digits) the answer is nearly the same.

What is left out has a reason that is written down.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import contone
from contone import base
from contone.exceptions import InputError

ESTIMATORS = {
    name: value
    for name in contone.__all__
    if inspect.isclass(value := getattr(contone, name)) and hasattr(value, "fit") and value is not contone.Pipeline
}
UNIT_COUNTS = {
    "HSICReducer": "alpha < 1 adds X^T X to I",
    "LCdr": "HSICReducer",
    "Augmented": "HSICReducer",
    "FromRegressor": "the estimator inside: Ridge penalises coefficients, which have units",
    "FromClassifier": "the estimator inside: LogisticRegression penalises coefficients, which have units",
}
ORIGIN_COUNTS = {
    "HSICReducer": "X is not centred in B, as in the paper",
    "LCdr": "HSICReducer",
    "Augmented": "HSICReducer",
    "FromClassifier": "the estimator inside: LogisticRegression is iterative and penalises the intercept's neighbours",
}
FAST = {
    "Inversion": {"n_sweeps": 12, "n_burn": 4},
    "LEIC": {"epochs": 3},
    "LEVI": {"epochs": 3},
    "LIBLE": {"epochs": 3, "pretrain_epochs": 2},
    "ConLE": {"epochs": 3},
    "DRAM": {"max_iter": 2, "max_steps": 3},
    "LEMLL": {"max_iter": 5},
    "LDLForest": {"n_trees": 3},
}
COARSE = {"LDLSCL": 0.1, "ConLE": 0.05, "LIBLE": 0.05}
"""Stopped early on a rugged path: noise of 1e-4 in X moves LDLSCL as far (.05 measured), and networks alike."""


def build(name):
    rehearsing = {"n_replicates": 1, "model": contone.Inversion(n_sweeps=12, n_burn=4)}
    made = {
        "Augmented": lambda: contone.Augmented(contone.GLLE()),
        "Calibrated": lambda: contone.Calibrated(contone.LP()),
        "Rescaled": lambda: contone.Rescaled(contone.LP()),
        "Tuned": lambda: contone.Tuned(contone.LP(), n_iter=2, **rehearsing),
        "Best": lambda: contone.Best(methods=["uniform", "lp"], **rehearsing),
        "FromRegressor": lambda: contone.FromRegressor(Ridge()),
        "FromClassifier": lambda: contone.FromClassifier(LogisticRegression()),
    }
    return made[name]() if name in made else ESTIMATORS[name](**FAST.get(name, {}))


@pytest.fixture(scope="module")
def rows():
    """X in multiples of 1/256, so that 2**40 can be added without rounding."""
    rng = np.random.default_rng(0)
    X = np.rint(256 * rng.normal(size=(40, 4))) / 256
    S = np.exp(X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(40, 3)))
    D = S / S.sum(axis=1, keepdims=True)
    return X, np.maximum(D > 0.25, D.max(axis=1, keepdims=True) == D).astype(float), D


def answer(name, X, L, D):
    estimator = build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(estimator, base.Enhancer):
            return estimator.fit_enhance(X, L)
        if isinstance(estimator, base.DistributionLearner):
            return estimator.fit(X, D).predict(X)
        return estimator.fit(X, L).transform(X)


@pytest.fixture(scope="module", params=sorted(ESTIMATORS))
def plain(request, rows):
    return request.param, answer(request.param, *rows)


@pytest.mark.parametrize("unit", [2.0**-565, 2.0**10, 2.0**515])
def test_units_do_not_matter_or_are_refused(plain, rows, unit):
    name, expected = plain
    X, L, D = rows
    try:
        found = answer(name, X * unit, L, D)
    except InputError as refused:
        found, said = None, str(refused)
    if found is None:
        assert unit != 2.0**10
        assert "cale the features" in said
        return
    assert np.isfinite(found).all()
    if name not in UNIT_COUNTS:
        np.testing.assert_array_equal(found, expected)


def test_origins_do_not_matter(plain, rows):
    name, expected = plain
    X, L, D = rows
    found = answer(name, X + 2.0**40, L, D)
    assert np.isfinite(found).all()
    if name not in ORIGIN_COUNTS:
        np.testing.assert_allclose(found, expected, atol=COARSE.get(name, 1e-3))


def test_a_large_offset_leaves_the_directions_across_it(rows):
    """B grows without bound along the mean, so projections avoid it; across it nothing is lost."""
    X, _, D = rows
    far = contone.HSICReducer(n_components=2, alpha=0.5).fit(X[:, :3] + [0.0, 0.0, 2.0**40], D)
    across = contone.HSICReducer(n_components=2, alpha=0.5).fit(X[:, :2] - X[:, :2].mean(axis=0), D)
    assert far.rank_ == 2
    np.testing.assert_allclose(far.projection_[2], 0.0, atol=1e-9)
    np.testing.assert_allclose(far.eigenvalues_, across.eigenvalues_, rtol=1e-6)


def test_supervision_beyond_floating_point_is_refused(rows):
    X, _, D = rows
    with pytest.raises(InputError, match="(?i)scale both"):
        contone.HSICReducer().fit(X, D * 1e300)


def test_without_a_unit_there_is_none_in_the_projection(rows):
    X, _, D = rows
    first, second = (contone.HSICReducer(n_components=2, alpha=1.0).fit(u * X, D) for u in (1.0, 2.0**20))
    np.testing.assert_allclose(second.projection_ * 2.0**20, first.projection_, rtol=1e-9)
    graded = X * 2.0 ** np.array([0, -30, 30, 0])  # columns in small units are not rounding of the others
    third = contone.HSICReducer(n_components=2, alpha=1.0).fit(graded, D)
    np.testing.assert_allclose(np.abs(third.transform(graded)), np.abs(first.transform(X)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("learner", [contone.MaxEnt(), contone.LDLLRR(), contone.MaxEnt(fit_intercept=False)])
def test_columns_of_a_linear_model_have_no_unit(rows, learner):
    X, _, D = rows
    graded = X * 2.0 ** np.array([0, -40, 40, 0])
    expected, found = learner.fit(X, D).predict(X), learner.fit(graded, D).predict(graded)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_feature_in_a_unit_far_below_the_others_lies_inside_the_ridge_of_ptbayes(rows):
    """As documented: all units together make no difference (above), one alone silences its feature."""
    X, _, D = rows
    small = X * 2.0 ** np.array([0, -20, 0, 0])
    without = X * np.array([1.0, 0.0, 1.0, 1.0])
    found, expected, heard = (contone.PTBayes().fit(A, D).predict(A) for A in (small, without, X))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.abs(found - heard).max() > 0.1

"""PTBayes: weighted moments stand for the resampling of the original, and Bayes' rule is applied in logarithms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from contone import PTBayes
from contone.exceptions import InputError
from contone.predict.bayes import FLOOR, weighted_gaussians


def test_posterior_written_out(small):
    X, _, D = small
    added = 1e-6 * X.var(axis=0).mean()
    density = np.stack(
        [
            multivariate_normal(
                np.average(X, axis=0, weights=w), np.cov(X.T, aweights=w, ddof=0) + added * np.eye(5)
            ).pdf(X)
            for w in D.T
        ],
        axis=1,
    )
    joint = density * D.mean(axis=0)
    np.testing.assert_allclose(PTBayes().fit(X, D).predict(X), joint / joint.sum(axis=1, keepdims=True), atol=1e-8)


def test_weights_equal_repeated_examples():
    """Degrees that are multiples of 1/4: the moments are those of the rows, each repeated 4 d_ij times for label j."""
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(30, 3)), rng.multinomial(4, [0.5, 0.3, 0.2], size=30)
    classes = weighted_gaussians(X, counts / 4, 0.0)
    for j in range(3):
        repeated = np.repeat(X, counts[:, j], axis=0)
        np.testing.assert_allclose(classes.means[j], repeated.mean(axis=0))
        np.testing.assert_allclose(classes.factors[j] @ classes.factors[j].T, np.cov(repeated.T, ddof=0))
        assert np.exp(classes.log_prior[j]) == pytest.approx(len(repeated) / 120)


def test_equal_classes_give_the_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    D = np.tile([0.2, 0.3, 0.5], (30, 1))
    np.testing.assert_allclose(PTBayes().fit(X, D).predict(X), D)


def test_far_away_and_without_mass_the_floor_holds():
    X = np.array([[0.0], [0.1], [1.0], [1.1]])
    D = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    answer = PTBayes().fit(X, D).predict([[0.05], [1e6]])
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(answer[:, 2], FLOOR, rtol=1e-6)
    assert answer[0, 0] > 0.999


def test_units_of_the_features_do_not_matter(small):
    X, _, D = small
    plain = PTBayes().fit(X, D).predict(X)
    for scale in (1e-6, 1e6):
        np.testing.assert_allclose(PTBayes().fit(scale * X, D).predict(scale * X), plain, atol=1e-8)


def test_constant_and_repeated_features_are_harmless(small):
    X, _, D = small
    answer = PTBayes().fit(np.ones((60, 3)), D).predict(np.ones((1, 3)))
    np.testing.assert_allclose(answer, D.mean(axis=0, keepdims=True))
    assert np.isfinite(PTBayes().fit(np.hstack([X, X]), D).predict(np.hstack([X, X]))).all()


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-560, 2.0**515, 2.0**1000])
def test_features_of_any_size_give_the_same_answer(small, scale):
    """Bayes' rule has no units: squares of the features must not run out of floating point either."""
    X, _, D = small
    np.testing.assert_allclose(
        PTBayes().fit(X * scale, D).predict(X * scale), PTBayes().fit(X, D).predict(X), rtol=1e-9
    )


def test_new_rows_may_be_any_distance_away(small):
    X, _, D = small
    answer = PTBayes().fit(1e-200 * X, D).predict(np.full((1, 5), 1e200))
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)


def test_a_ridge_too_small_for_duplicate_features_is_named(small):
    X, _, D = small
    with pytest.raises(InputError, match="ridge"):
        PTBayes(ridge=1e-300).fit(np.hstack([X, X]), D)


def test_a_row_far_from_gaussians_without_extent_gets_a_distribution():
    X, D = np.zeros((3, 2)), np.array([[0.4, 0.6], [0.9, 0.1], [0.2, 0.8]])
    found = PTBayes(ridge=1e-300).fit(X, D).predict([[-1e8, -1e8]])
    np.testing.assert_allclose(found.sum(), 1.0)

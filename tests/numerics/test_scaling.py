"""Scaling of features: z-scores and [0, 1], whatever the unit."""

from __future__ import annotations

import numpy as np
import pytest

from contone.backends.numpy.neighbours import nearest_neighbours, query_neighbours
from contone.numerics.lle import lle_weights
from contone.numerics.scaling import extreme_unit, min_max_scaling, standardisation

X = np.random.default_rng(0).normal(size=(20, 3))
EXTREME = [2.0**-1030, 2.0**-560, 2.0**515, 2.0**1015]
"""Units in which squares of the features run out of floating point: 1e-310, 1e-169, 1e155, 1e305."""


def test_z_scores_have_mean_0_and_deviation_1():
    Z = standardisation(X)(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1.0)


def test_constant_columns_become_0():
    constant = np.hstack([X, np.full((20, 1), 7.3), np.zeros((20, 1))])
    assert (standardisation(constant)(constant)[:, 3:] == 0.0).all()
    assert (min_max_scaling(constant)(constant)[:, 3:] == 0.0).all()


def test_a_column_is_constant_where_it_varies_by_rounding_alone():
    """However large it is; an offset of 1e12 hides no deviation of 1."""
    rng = np.random.default_rng(1)
    last = 2.0**-52 * rng.integers(0, 3, size=(50, 2))
    rounding = (1.0 + last) * [1.0, 2.0**30]
    feature = 1e12 + rng.normal(size=(50, 1))
    for scaling in (standardisation, min_max_scaling):
        Z = scaling(np.hstack([rounding, feature]))(np.hstack([rounding, feature]))
        assert np.abs(Z[:, :2]).max() < 1e-3
        assert Z[:, 2].std() > 0.1


def test_min_max_scaling_takes_the_ends_to_0_and_1():
    Z = min_max_scaling(X + 5.0)(X + 5.0)
    np.testing.assert_allclose([Z.min(axis=0), Z.max(axis=0)], [[0.0] * 3, [1.0] * 3], atol=1e-15)
    np.testing.assert_allclose(Z * np.ptp(X, axis=0) + X.min(axis=0), X)


def test_a_unit_is_one_or_a_power_of_two_next_to_the_largest_entry():
    largest = np.array([0.0, 3e-290, 3e-100, 1.0, 5e100, 7e200])
    unit = extreme_unit(largest)
    np.testing.assert_array_equal(unit[[0, 2, 3, 4]], 1.0)
    assert (np.frexp(unit)[0] == 0.5).all()  # no digit is lost by dividing by it
    assert ((largest >= unit) & (largest < 2 * unit))[[1, 5]].all()


@pytest.mark.parametrize("unit", EXTREME)
def test_z_scores_have_no_unit(unit):
    np.testing.assert_allclose(standardisation(X * unit)(X * unit), standardisation(X)(X), rtol=1e-9, atol=1e-12)
    mixed = X * [1.0, unit, 1.0]  # a column does not spoil the others
    np.testing.assert_allclose(standardisation(mixed)(mixed), standardisation(X)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-30, 1e25])
@pytest.mark.filterwarnings("error")
def test_z_scores_in_single_precision_have_no_unit(unit):
    single = (X * unit).astype(np.float32)
    np.testing.assert_allclose(standardisation(single)(single), standardisation(X)(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("unit", EXTREME)
def test_neighbours_have_no_unit(unit):
    expected, found = nearest_neighbours(X, 4), nearest_neighbours(X * unit, 4)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances / unit, expected.distances, rtol=1e-9)
    expected, found = query_neighbours(X[:10], X[10:], 4), query_neighbours(X[:10] * unit, X[10:] * unit, 4)
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize("unit", EXTREME)
def test_reconstruction_weights_have_no_unit(unit):
    np.testing.assert_allclose(lle_weights(X * unit, 4).toarray(), lle_weights(X, 4).toarray(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("make", [standardisation, min_max_scaling])
def test_new_rows_beyond_floating_point_are_as_far_as_can_be_computed_with(make):
    """In the unit of the training rows they would be infinite."""
    scaled = make(1e-310 * np.arange(6.0).reshape(3, 2))(np.array([[1.0, -1.0], [0.0, 0.0]]))
    assert np.isfinite(np.square(scaled).sum())
    assert np.isfinite(np.square(scaled.astype(np.float32)).sum())
    assert scaled[0, 0] > 1e14 > -1e14 > scaled[0, 1]


@pytest.mark.parametrize("value", [0.1, 1e155, 1e300, -1e12])
def test_a_constant_column_becomes_zero_to_the_last_bit(value):
    X = np.full((12, 2), value)
    assert not standardisation(X)(X).any()

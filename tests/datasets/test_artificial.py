"""Geng's artificial data against the formula, point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contone import datasets
from contone.exceptions import InputError


def by_hand(x: np.ndarray) -> list[float]:
    """The formula of the paper in scalars, written independently of the vectorised code."""
    t = [v + 0.5 * v**2 + 0.2 * v**3 + 1 for v in x]
    psi1 = (4 * t[0] + 2 * t[1] + t[2]) ** 2
    psi2 = (t[0] + 2 * t[1] + 4 * t[2] + 0.01 * psi1) ** 2
    psi3 = (t[0] + 4 * t[1] + 2 * t[2] + 0.01 * psi2) ** 2
    return [p / (psi1 + psi2 + psi3) for p in (psi1, psi2, psi3)]


def test_recovery_grid_has_2601_points_on_the_surface():
    data = datasets.artificial()
    assert data.X.shape == data.D.shape == (2601, 3)
    assert data.X.min() == -1
    assert data.X.max() == 1
    steps = np.diff(np.unique(data.X[:, 0]))
    np.testing.assert_allclose(steps, 0.04, atol=1e-12)
    np.testing.assert_array_equal(np.unique(data.X[:, 0]), np.unique(data.X[:, 1]))
    assert len(np.unique(data.X[:, :2], axis=0)) == 2601
    np.testing.assert_allclose(data.X[:, 2], np.sin((data.X[:, 0] + data.X[:, 1]) * np.pi))


@pytest.mark.parametrize("part", ["recovery", "training"])
def test_distributions_follow_the_formula(part):
    data = datasets.artificial(part)
    np.testing.assert_allclose(data.D.sum(axis=1), 1)
    assert (data.D >= 0).all()
    for i in range(0, len(data.X), 97):
        np.testing.assert_allclose(data.D[i], by_hand(data.X[i]), rtol=1e-12)


def test_at_the_origin_the_degrees_are_known():
    # t = (1, 1, 1), so every w.t is 7: psi = 49, (7 + 0.49)^2, (7 + 0.01 (7.49)^2)^2.
    psi2 = 7.49**2
    psi = np.array([49.0, psi2, (7 + 0.01 * psi2) ** 2])
    data = datasets.artificial()
    origin = np.flatnonzero((np.abs(data.X) < 1e-12).all(axis=1))
    np.testing.assert_allclose(data.D[origin[0]], psi / psi.sum(), rtol=1e-12)
    assert math.isclose(data.D[origin[0]].sum(), 1)


def test_training_set_is_uniform_seeded_and_as_long_as_asked():
    assert datasets.artificial("training", n=1).X.shape == (1, 3)
    data = datasets.artificial("training", n=4000, seed=3)
    assert data.X.shape == (4000, 3)
    assert np.abs(data.X).max() <= 1
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(data.X.var(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_array_equal(data.X, datasets.artificial("training", n=4000, seed=3).X)
    assert not np.array_equal(data.X, datasets.artificial("training", n=4000, seed=4).X)
    assert len(datasets.artificial("training").X) == 500


def test_load_knows_it_by_name():
    np.testing.assert_array_equal(datasets.load("Artificial").D, datasets.artificial().D)
    np.testing.assert_array_equal(datasets.load("artificial_training").D, datasets.artificial("training").D)
    assert datasets.artificial().name == "artificial"
    assert datasets.artificial("training").name == "artificial-training"


def test_wrong_arguments_are_named():
    with pytest.raises(InputError, match="'recovery' or 'training'; got 'grid'"):
        datasets.artificial("grid")
    with pytest.raises(InputError, match="n must be at least 1"):
        datasets.artificial("training", n=0)

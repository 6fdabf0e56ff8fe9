"""AAKNN: means of neighbours, written out."""

from __future__ import annotations

import numpy as np
import pytest

from contone import AAKNN
from contone.exceptions import InputError


def test_uniform_weights_are_the_mean_of_the_nearest(small):
    X, _, D = small
    query = X[:7] + 0.01
    nearest = np.argsort(np.linalg.norm(query[:, None] - X[None], axis=2), axis=1)[:, :4]
    np.testing.assert_allclose(AAKNN(n_neighbors=4).fit(X, D).predict(query), D[nearest].mean(axis=1))


def test_distance_weights_are_inverse_distances(small):
    X, _, D = small
    query = X[:7] + 0.01
    distance = np.linalg.norm(query[:, None] - X[None], axis=2)
    nearest = np.argsort(distance, axis=1)[:, :4]
    weight = 1 / np.take_along_axis(distance, nearest, axis=1)
    expected = np.einsum("ik,ikj->ij", weight / weight.sum(axis=1, keepdims=True), D[nearest])
    np.testing.assert_allclose(AAKNN(n_neighbors=4, weights="distance").fit(X, D).predict(query), expected)


def test_a_training_row_keeps_its_own_distribution_by_distance(small):
    X, _, D = small
    np.testing.assert_allclose(AAKNN(weights="distance").fit(X, D).predict(X), D)


def test_more_neighbours_than_rows_is_the_mean_of_all(small):
    X, _, D = small
    np.testing.assert_allclose(AAKNN(n_neighbors=1000).fit(X, D).predict(X[:1]), D.mean(axis=0, keepdims=True))


def test_any_number_of_jobs_gives_the_same(small):
    X, _, D = small
    one, two = (AAKNN(n_jobs=n).fit(X, D).predict(X) for n in (None, 2))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(InputError, match="n_jobs=0"):
        AAKNN(n_jobs=0).fit(X, D)

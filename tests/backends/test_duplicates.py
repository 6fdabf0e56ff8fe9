"""Grouping of equal rows against NumPy's sorting of rows."""

from __future__ import annotations

import numpy as np

from contone.backends.numpy.duplicates import group_duplicates


def test_groups_are_those_of_unique_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 3)).astype(float)
    member, first = group_duplicates(X)
    assert len(first) == len(np.unique(X, axis=0))
    assert np.array_equal(X[first[member]], X)
    assert np.all(np.diff(first) > 0)


def test_distinct_rows_keep_their_order():
    X = np.random.default_rng(0).normal(size=(50, 4))
    member, first = group_duplicates(X)
    assert np.array_equal(member, np.arange(50))
    assert np.array_equal(first, np.arange(50))


def test_signed_zeros_are_equal():
    assert len(group_duplicates(np.array([[0.0, 1.0], [-0.0, 1.0]])).first) == 1

"""Which rows to grade: what `suggest` promises."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion import suggest
from contone.enhance.inversion.assessment import ErrorSample
from contone.exceptions import InputError, LabelWarning
from contone.numerics.simplex import softmax


def test_a_batch_has_no_near_duplicates():
    n, k = 60, 6
    near = np.zeros((n, n), dtype=bool)
    near[:30, :30] = True  # half of the rows tell the same
    np.fill_diagonal(near, False)
    chosen = suggest.draw_batch(k, np.arange(5, n), near, np.random.default_rng(0))
    assert len(set(chosen)) == k
    assert (chosen < 30).sum() <= 1
    assert chosen.min() >= 5
    # Where nothing else is left, duplicates are better than too few rows.
    assert len(suggest.draw_batch(40, np.arange(5, n), near, np.random.default_rng(0))) == 40


def test_rows_that_are_graded_are_not_suggested_again():
    rng = np.random.default_rng(3)
    X, D = rng.normal(size=(40, 2)), softmax(rng.normal(size=(40, 3)))
    L = CumulativeMass().apply(D)
    G = np.where(np.arange(40)[:, None] < 30, D, np.nan)
    short = {"n_sweeps": 20, "n_burn": 8}
    fresh = Inversion(**short).fit(X, L)
    chosen = fresh.suggest(8)
    assert len(set(chosen)) == 8
    np.testing.assert_array_equal(fresh.suggest(8), chosen)
    taught = Inversion(**short).fit(X, L, degrees=G)
    assert sorted(taught.suggest(99)) == list(range(30, 40))
    with pytest.raises(InputError, match="k must be a whole number"):
        taught.suggest(0)
    with pytest.raises(InputError, match="every row is graded"):
        Inversion(**short).fit(X, L, degrees=D).suggest(1)
    with pytest.warns(LabelWarning, match="same in every row"):
        assert len(set(Inversion().fit(X[:3], np.ones((3, 1))).suggest(2))) == 2


def test_near_duplicates_have_the_same_labels_and_features_that_are_near():
    """Nearer than one pair in twenty; where features have no part, the same labels are all it takes."""
    rng = np.random.default_rng(0)
    X, L = rng.normal(size=(40, 3)), (rng.random((40, 2)) < 0.5).astype(float)
    L[0, 0] = np.nan  # as good as not marked
    sample = ErrorSample(X, L, L, np.ones(2), 40, np.arange(40), np.zeros(40, bool))
    same = np.array([[((a > 0) == (b > 0)).all() for b in L] for a in L])
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = distance <= np.quantile(distance[np.triu_indices(40, 1)], 0.05)
    others = ~np.eye(40, dtype=bool)
    found = suggest.near_duplicates(SimpleNamespace(feature_map=lambda X: X), sample)
    np.testing.assert_array_equal(found, same & near & others)
    assert 0 < found.sum() < (same & others).sum()
    without = suggest.near_duplicates(SimpleNamespace(feature_map=None), sample)
    np.testing.assert_array_equal(without, same & others)
    one = ErrorSample(X[:1], L[:1], L[:1], np.ones(2), 1, np.arange(1), np.zeros(1, bool))
    assert not suggest.near_duplicates(SimpleNamespace(feature_map=lambda X: X), one).any()

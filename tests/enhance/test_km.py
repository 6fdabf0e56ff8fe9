"""KM: one kernel product against loops over the definition, and labels with few or no positives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from contone.enhance.km import DELTA, KM
from contone.exceptions import LabelWarning
from contone.numerics.simplex import normalise_rows, softmax


def textbook(X, L, width):
    """The definition with loops over labels and rows."""

    def k(a, b):
        return np.exp(-np.sum((a - b) ** 2) / (2 * width**2))

    F = np.zeros(L.shape)
    for label in range(L.shape[1]):
        positives = X[L[:, label] > 0]
        spread = np.mean([[k(a, b) for b in positives] for a in positives])
        squared = np.array([1 - 2 * np.mean([k(x, c) for c in positives]) + spread for x in X])
        radius = squared[L[:, label] > 0].max()
        F[:, label] = np.where(L[:, label] > 0, 1 - np.sqrt(np.maximum(squared, 0) / (radius + DELTA)), 0.0)
    return F


def test_one_product_gives_the_definition(small):
    X, L, _ = small
    X, L = X[:25], L[:25]
    km = KM(standardize=False).fit(X, L)
    F = textbook(X, L, pdist(X).mean())
    assert km.solution_.info["width"] == pytest.approx(pdist(X).mean())
    np.testing.assert_allclose(km.scores_, F, atol=1e-7)
    np.testing.assert_allclose(km.label_distributions_, softmax(F), atol=1e-7)


def test_scores_lie_between_rim_and_centre(small):
    X, L, _ = small
    F = KM().fit(X, L).scores_
    assert F.min() >= 0.0
    assert F.max() <= 1.0
    assert np.all(F[L == 0] == 0.0)
    # The farthest positive of each label is at the rim.
    np.testing.assert_allclose(np.where(L > 0, F, 1.0).min(axis=0), 0.0, atol=1e-4)


def test_sum_output_spreads_over_relevant_labels_only(small):
    X, L, _ = small
    D = KM(output="sum").fit_enhance(X, L)
    assert np.all(D[L == 0] == 0.0)


def test_label_without_positives_and_label_with_one():
    X = np.random.default_rng(0).normal(size=(6, 2))
    L = np.zeros((6, 3))
    L[:, 0] = 1.0
    L[2, 1] = 1.0
    for output in ("softmax", "sum"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelWarning)
            km = KM(output=output).fit(X, L)
        assert np.isfinite(km.label_distributions_).all()
        assert np.all(km.scores_[:, 2] == 0.0)
        assert km.scores_[2, 1] == pytest.approx(1.0)  # the only positive is its own centre


def test_equal_confidences_give_the_centres_of_the_labels(small):
    # Rows with one label each: F = L / |L| is L itself.
    X, L, _ = small
    one = np.eye(4)[np.argmax(L, axis=1)]
    np.testing.assert_allclose(KM().fit_enhance(X, normalise_rows(one)), KM().fit_enhance(X, one))
    assert np.isfinite(KM().fit_enhance(X, normalise_rows(L))).all()


def test_unit_of_the_features_does_not_matter(small):
    X, L, _ = small
    expected = KM(standardize=False).fit_enhance(X, L)
    np.testing.assert_allclose(KM(standardize=False).fit_enhance(1e7 * X, L), expected, atol=1e-9)

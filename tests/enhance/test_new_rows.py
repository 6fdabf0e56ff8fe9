"""`enhance(X, Y)`: new rows that have labels, for every method that can tell them."""

from __future__ import annotations

import numpy as np
import pytest

from contone import GLLE, LP, Augmented, LCdr, Temperature, enhance
from contone.base import can_enhance_new_rows
from contone.enhance.glle import labelled_scores

ABLE = [cls for cls in enhance.methods().values() if can_enhance_new_rows(cls)]
UNABLE = [cls for cls in enhance.methods().values() if not can_enhance_new_rows(cls)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", ABLE, ids=lambda c: c.__name__)
def test_a_single_new_row_is_a_distribution(small, brief, cls):
    X, L, _ = small
    method = cls(**brief(cls)).fit(X, L)
    one = method.enhance(X[:1] + 0.01, L[:1])
    assert one.shape == (1, 4)
    assert np.all(one >= 0)
    assert np.isclose(one.sum(), 1)


@pytest.mark.parametrize("cls", [c for c in ABLE if c.baseline] + [LCdr], ids=lambda c: c.__name__)
@pytest.mark.filterwarnings("ignore")
def test_training_rows_again_give_the_answer_of_the_fit(small, cls):
    X, L, _ = small
    method = cls()
    D = method.fit_enhance(X, L)
    np.testing.assert_allclose(method.enhance(X, L), D, atol=1e-12)


@pytest.mark.parametrize("cls", UNABLE, ids=lambda c: c.__name__)
def test_a_method_that_cannot_has_no_such_verb(cls):
    assert not hasattr(cls(), "enhance")


def test_an_augmented_method_can_what_its_enhancer_can(small):
    X, L, _ = small
    assert not hasattr(Augmented(LP()), "enhance")
    augmented = Augmented(Temperature()).fit(X, L)
    assert hasattr(Augmented(GLLE()), "enhance")
    assert augmented.enhance(X[:3], L[:3]).shape == (3, 4)


def test_glle_gives_a_new_row_the_minimiser_beside_the_training_rows(small):
    X, L, _ = small
    method = GLLE(n_neighbors=3, lambda_=0.7, sigma=1.5, standardize=False).fit(X, L)
    new, label = X[:1] + 0.1, np.array([[0.0, 1.0, 1.0, 0.0]])
    distance = np.linalg.norm(X - new, axis=1)
    near = np.argsort(distance)[:3]
    weight = 0.7 * np.exp(-0.5 * (distance[near] / 1.5) ** 2)
    P = (label[0] + weight @ method.scores_[near]) / (1 + weight.sum())
    np.testing.assert_allclose(method.enhance(new, label)[0], np.exp(P) / np.exp(P).sum(), atol=1e-12)


def test_glle_asks_the_neighbours_alone_where_nobody_was_asked(small):
    X, L, _ = small
    method = GLLE(n_neighbors=3, lambda_=0.7, sigma=1.5, standardize=False, output="sum").fit(
        X, L / L.sum(axis=1)[:, None]
    )
    new, label = X[:1] + 0.1, np.array([[0.25, np.nan, 0.5, np.nan]])
    distance = np.linalg.norm(X - new, axis=1)
    near = np.argsort(distance)[:3]
    weight = 0.7 * np.exp(-0.5 * (distance[near] / 1.5) ** 2)
    around = weight @ method.scores_[near]
    P = np.where(np.isnan(label[0]), around / weight.sum(), (np.nan_to_num(label[0]) + around) / (1 + weight.sum()))
    scores = labelled_scores(distance[near][None], near[None], label, method.scores_, 1.5, 0.7)
    np.testing.assert_allclose(scores[0], P, atol=1e-12)
    # So far away that all weights underflow: the mean of the nearest, with the weights that they have to each other.
    far = np.array([[1e3, 1e3 + 0.01, 1e6]])
    scores = labelled_scores(far, near[None], label, method.scores_, 1.5, 0.7)
    shares = np.exp(-0.5 * (far[0, 1] ** 2 - far[0, 0] ** 2) / 1.5**2) ** np.array([0, 1])
    mixed = shares / shares.sum() @ method.scores_[near[:2]]
    np.testing.assert_allclose(scores[0], np.where(np.isnan(label[0]), mixed, label[0]), atol=1e-9)


def test_glle_answers_rows_at_any_distance(small):
    X, L, _ = small
    method = GLLE(standardize=False, sigma=1.0).fit(X, L)
    near, far = method.predict(1e150 * X[:2]), method.predict(1e156 * X[:2])  # squares beyond the largest number
    np.testing.assert_allclose(far, near, atol=1e-9)


def test_glle_without_smoothing_gives_a_new_row_its_own_labels(small):
    X, L, _ = small
    method = GLLE(lambda_=0.0).fit(X, L)
    np.testing.assert_allclose(method.enhance(X[:5] + 3.0, L[:5]), Temperature(c=1.0).fit_enhance(X[:5], L[:5]))

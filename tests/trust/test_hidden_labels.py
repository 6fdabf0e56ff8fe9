"""Held-out label entries: what is hidden, chances of completions, and scores."""

import numpy as np
import pytest

from contone import LEMLL, ML2, CumulativeMass, Inversion, Rescaled, Temperature
from contone.exceptions import ArgumentError
from contone.numerics.simplex import softmax
from contone.trust import hidden_labels
from contone.trust.rehearsal import Rehearsal

QUICK = {"n_sweeps": 30, "n_burn": 10}


class Predicting(LEMLL):
    """Takes no unasked entries."""

    kinds = frozenset()


def model_rows(n=150, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    D = softmax(1.2 * X @ rng.normal(size=(3, q)) + 0.3 * rng.normal(size=(n, q)))
    return X, CumulativeMass().apply(D).astype(float)


@pytest.mark.parametrize("by_rows", [False, True])
def test_hidden_parts_are_disjoint_shares_of_what_was_asked(by_rows):
    L = (np.random.default_rng(0).random((20, 3)) < 0.5).astype(float)
    L[4, 1], L[5] = np.nan, np.nan
    parts = hidden_labels.hidden_parts(L, 0.2, 3, np.random.default_rng(0), by_rows=by_rows)
    assert np.sum(parts, axis=0).max() == 1
    assert not np.isnan(L[np.any(parts, axis=0)]).any()
    for part in parts:
        assert (part.any(axis=1).sum() == 4) if by_rows else (part.sum() == 11)
        if by_rows:
            np.testing.assert_array_equal(part, part.any(axis=1, keepdims=True) & ~np.isnan(L))


@pytest.fixture(scope="module")
def fitted():
    X, L = model_rows()
    return X, L, Inversion(**QUICK).fit(X, L)


def test_features_that_tell_labels_beat_the_baselines(fitted):
    X, L, method = fitted
    found = hidden_labels.score_hidden_entries(method, X, L)
    assert found.n_entries == 60
    assert found.loss < min(found.baselines.values())
    other = hidden_labels.score_hidden_entries(Temperature(c=1.0), X, L)
    assert other.loss == pytest.approx(found.baselines["temperature"])


def test_chances_of_completions_are_those_of_draws_that_agree(fitted):
    X, _, method = fitted
    fit, copies = method.fit_, 200
    l = np.array([1.0, 0.0, np.nan, np.nan])
    x = np.repeat(X[:1], copies, axis=0)
    chances = hidden_labels.completion_chances(fit, x, np.tile(l, (copies, 1)), np.random.default_rng(0)).mean(axis=0)
    rng = np.random.default_rng(1)
    root = np.linalg.eigh(fit.parameters.covariance)
    root = root[1] * np.sqrt(np.maximum(root[0], 0.0))
    made = CumulativeMass().apply(softmax(fit.mean(X[:1]).T + rng.standard_normal((60_000, 4)) @ root.T))
    among = made[(made[:, 0] == 1) & (made[:, 1] == 0)]
    assert len(among) > 500
    np.testing.assert_allclose(chances, among.mean(axis=0), atol=0.05)


def test_methods_that_only_predict_have_rows_hidden_and_others_are_refused(fitted):
    X, L, _ = fitted
    found = hidden_labels.score_hidden_entries(Predicting(max_iter=20), X, L, n_splits=2)
    assert (found.hidden, found.n_entries) == ("rows", 2 * 15 * 4)
    left = ~hidden_labels.hidden_parts(L, hidden_labels.SHARE, 1, np.random.default_rng(0), by_rows=True)[0].any(axis=1)
    assert (~left).sum() == 15
    with pytest.raises(ArgumentError, match="no label can be hidden"):
        hidden_labels.score_hidden_entries(ML2(), X, L)
    assert not hidden_labels.takes_unasked(Rescaled(ML2()))


@pytest.mark.filterwarnings("ignore")
def test_a_rehearsal_imitates_what_is_unasked_and_rows_without_labels():
    X, L = model_rows(60)
    L[2], L[5, 1] = 0.0, np.nan
    replicate = Rehearsal(X, L, Inversion(**QUICK), n_replicates=1).replicates[0]
    np.testing.assert_array_equal(np.isnan(replicate.labels), np.isnan(L))
    assert (replicate.labels[2] == 0).all()
    assert (np.delete(replicate.labels, [2, 5], axis=0).sum(axis=1) > 0).all()

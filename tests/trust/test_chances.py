"""`label_chances`: a closed form for two labels, what noise 0 leaves as it is, containers and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from contone import Inversion, Temperature, TopK, doubtful_labels, label_chances
from contone.exceptions import ArgumentError, InputError

SHORT = {"n_sweeps": 40, "n_burn": 15}


@pytest.fixture(scope="module")
def pair():
    """Two labels, one of them marked in every row: which one, the sign of x says with errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    first = rng.random(150) < norm.cdf(1.5 * X[:, 0])
    Y = np.column_stack([first, ~first]).astype(float)
    return Inversion(degradation=TopK(1), **SHORT).fit(X, Y), X, Y


def test_new_rows_have_a_closed_form(pair):
    method, X, _ = pair
    few = X[:8]
    mean, covariance = method.fit_.mean(few), method.fit_.parameters.covariance
    contrast = np.array([1.0, -1.0])
    p = norm.cdf((mean[0] - mean[1]) / np.sqrt(contrast @ covariance @ contrast))
    P = label_chances(method, np.tile(few, (200, 1)), n_sweeps=20).reshape(200, 8, 2).mean(axis=0)
    np.testing.assert_allclose(P, np.column_stack([p, 1 - p]), atol=0.04)


def test_without_noise_what_was_asked_is_certain_and_decides_the_rest(pair):
    method, X, Y = pair
    L = Y.copy()
    L[::2, 0] = np.nan  # the other label says it: the rule marks exactly one
    np.testing.assert_array_equal(label_chances(method, X, L, n_sweeps=8), Y)


def test_chances_and_doubts_are_one_posterior(pair):
    method, X, Y = pair
    P = label_chances(method, X, Y, noise=0.2, n_sweeps=20)
    found = doubtful_labels(method, X, Y, noise=0.2, min_probability=0.0, n_sweeps=20)
    np.testing.assert_allclose(found.probability, np.abs(Y - P)[found.row, found.label])


def test_a_frame_comes_back_as_a_frame(pair):
    pd = pytest.importorskip("pandas")
    method, X, Y = pair
    frame = pd.DataFrame(Y, columns=["calm", "sad"], index=[f"song {i}" for i in range(len(X))])
    P = label_chances(Inversion(degradation=TopK(1), **SHORT), X, frame, noise=0.1, n_sweeps=8)
    assert list(P.columns) == ["calm", "sad"]
    assert P.index.equals(frame.index)
    assert isinstance(label_chances(method, pd.DataFrame(X), n_sweeps=8), pd.DataFrame)


def test_arguments_are_refused_by_name(pair):
    method, X, Y = pair
    for wrong in ({"noise": 0.5}, {"noise": "much"}, {"n_sweeps": 3}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            label_chances(method, X, Y, **wrong)
    with pytest.raises(ArgumentError, match="Temperature"):
        label_chances(Temperature(), X, Y)
    with pytest.raises(NotFittedError, match="pass Y"):
        label_chances(Inversion(), X)
    with pytest.raises(InputError, match="order"):
        label_chances(Inversion(degradation="order", **SHORT).fit(X, Y), X)


@pytest.mark.filterwarnings("ignore:Inversion stopped")
def test_chances_of_votes_are_those_of_a_further_person_or_of_one_who_is_known():
    """Item by item: anybody's chances sum to 1, and somebody who always says the same is expected to."""
    rng = np.random.default_rng(0)
    item, who = np.repeat(np.arange(60), 4), np.tile(["a", "b", "c", "d"], 60)
    truth = rng.integers(0, 3, 60)
    Y = np.eye(3)[np.where(who == "d", 0, truth[item])]
    X, given = np.zeros((240, 1)), {"groups": item, "annotators": who}
    method = Inversion(degradation="votes", features=False, n_sweeps=200, n_burn=50).fit(X, Y, **given)
    anybody, stubborn = (label_chances(method, X, Y, **given, person=person) for person in (None, "d"))
    assert anybody.shape == (60, 3)
    np.testing.assert_allclose(anybody.sum(axis=1), 1.0, atol=1e-6)
    assert stubborn[:, 0].mean() > anybody[:, 0].mean() + 0.2
    with pytest.raises(InputError, match="'e' is not among the annotators"):
        label_chances(method, X, Y, **given, person="e")

"""The fitted model as a value: it travels, and what it says depends on nothing else."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import FrozenInstanceError

import dask.array as da
import numpy as np
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion.chain import Settings
from contone.enhance.inversion.fit import fit
from contone.numerics.simplex import softmax

SHORT = {"n_sweeps": 40, "n_burn": 20}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    D = softmax(0.5 * X @ rng.normal(size=(3, 4)) + 0.4 * rng.normal(size=(200, 4)))
    return X, CumulativeMass().apply(D).astype(float)


def test_the_estimator_is_the_function(data):
    X, L = data
    method = Inversion(**SHORT).fit(X, L)
    found, posterior = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(0))
    np.testing.assert_allclose(posterior.mean, method.label_distributions_, rtol=1e-12)
    np.testing.assert_array_equal(found.parameters.covariance, method.covariance_)
    np.testing.assert_allclose(found.prior_mean(X), method.predict(X), rtol=1e-12)
    again = found.posterior(X, L, np.random.default_rng(0))
    np.testing.assert_allclose(again.mean, method.enhance(X, L), rtol=1e-12)


def test_a_fit_travels_and_says_the_same(data):
    X, L = data
    found, _ = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    other = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(found.prior_mean(X), other.prior_mean(X))
    answers = [model.posterior(X, L, np.random.default_rng(2)) for model in (found, other)]
    np.testing.assert_array_equal(answers[0].mean, answers[1].mean)
    with pytest.raises(FrozenInstanceError):
        found.n_rows = 3


def test_the_prior_mean_of_a_row_does_not_depend_on_the_rows_beside_it(data):
    X, L = data
    found, _ = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    np.testing.assert_allclose(found.prior_mean(X)[7:9], found.prior_mean(X[7:9]), rtol=1e-12)


def test_intervals_widen_with_what_is_not_known_of_the_spread(data):
    X, L = data
    _, posterior = fit(X, L, CumulativeMass(), Settings(**SHORT), np.random.default_rng(1))
    widths = [np.subtract(*posterior.intervals(0.9, deviation)[::-1]) for deviation in (0.0, 0.3)]
    assert (widths[1] > widths[0]).all()
    narrow, wide = (posterior.intervals(level, 0.1) for level in (0.5, 0.9))
    assert ((wide[0] < narrow[0]) & (narrow[1] < wide[1])).all()


def test_samples_are_there_only_where_they_were_asked_for(data):
    X, L = data
    method = Inversion(**SHORT, n_samples=2).fit(X, L)
    assert method.samples_.shape == (2, *L.shape)
    method.set_params(n_samples=0).fit(X, L)
    assert not hasattr(method, "samples_")


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_far_outside_have_intervals(kind):
    """A degree that is 0 in floating point has a logit too."""
    rows = np.array([[0.1, 1.0], [-0.1, 0.5], [0.3, -1.0]])
    method = Inversion(n_sweeps=6, n_burn=2).fit(rows, [[1, 0], [1, 1], [0, 1]])
    for far in (1e12, 1e300):
        X = far * rows[:1]
        if kind == "torch":
            X = pytest.importorskip("torch").tensor(X)
        for labels in (None, [[1, 0]]):
            low, high = (np.asarray(end) for end in method.intervals(X, labels))
            assert ((low >= 0) & (low <= high) & (high <= 1)).all()


@pytest.mark.parametrize("rule", ["main", "everything", "threshold:0.3", "best"])
def test_intervals_stay_within_what_the_rule_says(rule):
    """Under "main" a class that is marked alone has more than half in every row; ends keep their order."""
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(150, 2)), softmax(3.0 * rng.normal(size=(150, 3)))
    L = np.eye(3)[truth.argmax(axis=1)]
    if rule == "everything":
        L = CumulativeMass(0.9).apply(truth).astype(float)
    L[:3] = [[1, 1, 1], [0, np.nan, 1], [0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = Inversion(degradation=rule, n_sweeps=40, n_burn=20, max_rows=100).fit(X, L)
        found = method.intervals(), method.intervals(X, L), method.intervals(da.from_array(X), da.from_array(L))
    for lower, upper in found:
        lower, upper, D = np.asarray(lower)[3:], np.asarray(upper)[3:], method.label_distributions_[3:]
        assert (lower <= upper).all()
        for end in (lower, upper):
            np.testing.assert_array_equal(method.degradation_.confine(end, L[3:]), end)
        assert ((lower <= D) & (upper >= D)).mean() > 0.99
        assert (upper - lower).mean() > 0.02
        if rule == "main":
            assert lower[L[3:] > 0].min() >= 0.5


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
@pytest.mark.parametrize("q", [1, 2])
def test_new_rows_of_one_or_two_labels(data, q):
    """One label is certain; of two, new rows with the labels of a fit have its degrees, but for other draws."""
    X, L = data
    Y = np.column_stack([L[:, 0], 1 - L[:, 0]])[:, :q] if q == 2 else np.ones((len(L), 1))
    method = Inversion(**SHORT).fit(X, Y)
    new = method.enhance(X, Y)
    np.testing.assert_allclose(new, method.label_distributions_, atol=0.3)
    assert np.abs(new - method.label_distributions_).mean() < 0.05
    assert (new == 1.0).all() == (q == 1)
    silent = method.enhance(X[:5], np.zeros((5, q))) if q == 2 else np.ones((5, 1))
    np.testing.assert_allclose(silent, method.predict(X[:5]))

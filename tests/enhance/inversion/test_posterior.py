"""Intervals know that Sigma is an estimate: closed forms, limits, and what stays as it was."""

import numpy as np
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion.posterior import Posterior, ShapeUncertainty, chain_noise
from contone.numerics.simplex import softmax

QUICK = {"n_sweeps": 60, "n_burn": 20}


def model_rows(n, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    D = softmax(0.5 * (0.6 * X @ rng.normal(size=(2, q)) + 0.7 * rng.normal(size=(n, q))))
    return X, CumulativeMass().apply(D).astype(float)


def test_noise_of_the_chain_in_closed_form():
    weights = [1.0, 1.0, 0.5, 0.25]
    np.testing.assert_allclose(chain_noise(np.array([0.0, 1.0]), weights), [np.square(weights).sum(), 0.0], atol=1e-15)
    share = np.array([0.1, 0.5])  # constant weights: an autoregression, with its variance in the long run
    np.testing.assert_allclose(chain_noise(share, [1.0] * 400), (1 - share) / (1 - (1 - share) ** 2))


def test_rows_that_stay_where_they_are_depend_on_no_parameter():
    Z = np.random.default_rng(0).normal(size=(4, 30))
    Z -= Z.mean(axis=0)
    shape = ShapeUncertainty(30, 4, 4.0)
    for _ in range(25):
        shape.add(Z, 0.7 * Z, Z @ Z.T / 30)
    np.testing.assert_allclose(shape.shares([1.0]), 0.0, atol=1e-9)


@pytest.mark.parametrize("q", [2, 65])
def test_where_nothing_is_looked_at_nothing_is_added(q):
    shape = ShapeUncertainty(10, q, 1.0)
    shape.add(np.zeros((q, 10)), np.zeros((q, 10)), np.eye(q))
    np.testing.assert_array_equal(shape.shares([1.0]), np.zeros(q))


def test_a_share_widens_intervals_by_its_root():
    rng = np.random.default_rng(0)
    width, shares = rng.uniform(0.1, 1.0, (5, 3)), np.array([0.0, 0.44, 1.0])
    posterior = Posterior(np.full((5, 3), 1 / 3), rng.normal(size=(5, 3)), width)
    np.testing.assert_allclose(posterior.total_width(0.0, shares), width * [1.0, 1.2, np.sqrt(2.0)])


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_less_is_known_of_sigma_from_fewer_rows_and_fewer_entries():
    X, L = model_rows(200)
    hidden = np.where(np.random.default_rng(1).random(L.shape) < 0.5, np.nan, L)
    whole, few, partly = (
        Inversion(**QUICK).fit(X[:n], Y[:n]).fit_.shape_shares.mean() for n, Y in ((200, L), (40, L), (200, hidden))
    )
    assert 0 < whole < min(few, partly)


def test_answers_do_not_depend_on_it(monkeypatch):
    X, L = model_rows(50)
    with_it = Inversion(**QUICK).fit(X, L)
    monkeypatch.setattr(ShapeUncertainty, "add", lambda *_: None)
    without = Inversion(**QUICK).fit(X, L)
    np.testing.assert_array_equal(with_it.label_distributions_, without.label_distributions_)
    (lower, upper), (inner_lower, inner_upper) = with_it.intervals(level=0.9), without.intervals(level=0.9)
    assert (lower <= inner_lower).all()  # the same where labels allow no more
    assert (inner_upper <= upper).all()
    assert (upper - lower).mean() > (inner_upper - inner_lower).mean()

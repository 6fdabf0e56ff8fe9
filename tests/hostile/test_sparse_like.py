"""Data like bags of words, with many rare labels: no step of Inversion leaves the range of floating point.

A RuntimeWarning is a cause and not noise; the suite turns it into an error.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from contone import Inversion, Threshold
from contone.enhance.inversion import simulate
from contone.enhance.inversion.logistic_normal import Parameters, centring, draw_coefficients


@pytest.fixture(scope="module")
def words():
    """X (90, 40), mostly 0, two columns always; Y (90, 14), one or two labels a row, one label once, one never."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.05, size=(90, 40)).astype(float)
    X[:, :2] = 0.0
    L = np.zeros((90, 14))
    share = np.r_[0.5 ** np.arange(12), 0.0, 0.0]
    for row in L:
        row[rng.choice(14, size=rng.integers(1, 3), replace=False, p=share / share.sum())] = 1.0
    L[0, 12] = 1.0
    return X, L


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("rule", "noise"),
    [("main", 0.0), ("everything", 0.0), ("threshold", 0.0), ("best", 0.0), ("order", 0.0), ("main", 0.02)],
)
def test_no_step_leaves_floating_point(words, rule, noise):
    X, L = words
    method = Inversion(degradation=rule, noise=noise, n_sweeps=12, n_burn=4)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        D = method.fit_enhance(X, L)
    assert np.isfinite(D).all()
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        assert np.isfinite(method.predict(X[:5])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coefficients_of_features_that_repeat_are_drawn_whatever_their_weight(dtype):
    """Fewer rows than features, and a prior that leaves coefficients free: the Gram matrix is singular by rounding."""
    rng = np.random.default_rng(0)
    phi = np.vstack([np.ones(3), rng.normal(size=(6, 3))]).astype(dtype)
    now = Parameters(np.zeros((7, 3)), centring(3), 1e30)
    for _ in range(20):
        drawn = draw_coefficients(phi @ phi.T, (phi @ rng.normal(size=(3, 3))).astype(dtype), now, rng)
        assert np.isfinite(drawn).all()


def test_what_is_drawn_to_add_to_coefficients_is_finite_where_one_row_outweighs_all_others():
    """A row without labels, say, whose features are far from those of the fit."""
    phi = np.random.default_rng(0).normal(size=(6, 8)) * np.r_[1e14, np.ones(7)]
    information = simulate.Information(np.eye(2), np.zeros((2, 2)), phi @ phi.T)
    for seed in range(10):
        assert np.isfinite(simulate._draw_mean(information, 0.2, np.random.default_rng(seed))).all()


def test_three_rows_in_single_precision_under_a_high_bar():
    torch = pytest.importorskip("torch")
    for seed in range(3):
        X = torch.rand(3, 2, generator=torch.Generator().manual_seed(seed))
        for n_sweeps in (12, 60):
            method = Inversion(degradation=Threshold(0.99), n_sweeps=n_sweeps, n_burn=n_sweeps // 3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                assert bool(torch.isfinite(method.fit_enhance(X, torch.eye(3))).all())

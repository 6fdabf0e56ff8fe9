"""Data like bags of words, with many rare labels: no step of Inversion leaves the range of floating point.

A RuntimeWarning is a cause and not noise; the suite turns it into an error.
"""

from __future__ import annotations

import numpy as np
import pytest

from contone import Inversion


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

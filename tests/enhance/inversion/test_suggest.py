"""Which rows to grade: the mathematics of the choice, and what `suggest` promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import helmert

from contone import CumulativeMass, Inversion
from contone.enhance.inversion import evidence, suggest
from contone.exceptions import InputError, LabelWarning
from contone.numerics.simplex import softmax


@pytest.mark.parametrize("tail", [6.0, math.inf])
def test_the_score_is_that_of_the_calibration(tail):
    rng = np.random.default_rng(0)
    q = 4
    basis = helmert(q).T
    H = basis @ rng.normal(size=(q - 1, q - 1))
    S = H @ H.T
    E = rng.normal(size=(5, q)) @ basis @ basis.T
    found = suggest.score(E, np.linalg.pinv(S), tail)
    for i in range(5):
        graded = evidence.Graded.of(E[i : i + 1], np.zeros((1, q)), S)
        slope, _ = evidence.scales_slope(np.zeros(q), graded, tail, 0.0, np.zeros((q, q)))
        np.testing.assert_allclose(found[i, :q], slope, atol=1e-9)
    # In the mean: a density at e - delta, whose derivative is minus that in e.
    step = 1e-5 * (basis @ basis.T)[1]
    up, down = (evidence._log_likelihood((E + sign * step) @ basis, basis.T @ S @ basis, tail) for sign in (1, -1))
    assert found[:, q + 1].sum() == pytest.approx(-(up - down) / 2e-5, rel=1e-5)


def test_the_expected_error_is_that_of_the_calibration():
    """R(S) by its formula and by simulation: Delta from the prior, scores given Delta, theta^ = G sum s."""
    rng = np.random.default_rng(1)
    prior, cost, V = (A @ A.T + 0.1 * np.eye(2) for A in rng.normal(size=(3, 2, 2)))
    m, G = rng.normal(size=2), np.linalg.inv(np.linalg.inv(prior) + V)
    Delta = rng.multivariate_normal(np.zeros(2), prior, 200_000)
    total = m + Delta @ V + rng.multivariate_normal(np.zeros(2), V, 200_000)
    off = total @ G - Delta
    simulated = 0.5 * np.einsum("ip,pr,ir->i", off, cost, off).mean()
    assert suggest.expected_cost(m, V, G, prior, cost) == pytest.approx(simulated, rel=0.02)


def test_a_batch_is_balanced_and_has_no_near_duplicates():
    rng = np.random.default_rng(2)
    n, k = 60, 6
    near = np.zeros((n, n), dtype=bool)
    near[:30, :30] = True  # half of the rows tell the same
    np.fill_diagonal(near, False)
    moments = suggest.Moments(rng.normal(size=(n, 1)), np.ones((n, 1, 1)), np.eye(1), np.zeros(n))
    given = (moments, 2 * np.eye(1), np.eye(1), k, np.arange(5, n), near, 1.0)
    chosen = suggest.best_batch(*given, np.random.default_rng(0))
    assert len(set(chosen)) == k
    assert (chosen < 30).sum() <= 1
    assert chosen.min() >= 5
    assert abs(moments.mean[chosen].sum()) < 0.3 * math.sqrt(k)
    # Where nothing else is left, duplicates are better than too few rows.
    assert len(suggest.best_batch(moments, *given[1:3], 40, *given[4:], np.random.default_rng(0))) == 40


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
        assert list(Inversion().fit(X[:3], np.ones((3, 1))).suggest(2)) == [0, 1]

"""Order: rankings and levels bound every log degree by those of lower and of higher levels, and say no more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from others import others_of

from contone import GLLE, Inversion
from contone.enhance.inversion.logistic_normal import centring, level_moments, precision
from contone.enhance.inversion.sampler import Rows
from contone.enhance.inversion.simulate import in_order_of
from contone.exceptions import InputError, LabelError, LabelWarning
from contone.measurements import Order, TopK
from contone.measurements.order import level_interval
from contone.numerics.simplex import kl_divergence, softmax

SHORT = {"degradation": "order", "n_sweeps": 60, "n_burn": 30}


def drawn(spread=0.5, n=150, q=5, seed=0):
    """Features (n, 3) and distributions (n, q) of a known spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = 0.5 * X @ rng.normal(size=(3, q)) + rng.normal(size=(n, q)) + 0.5 * rng.normal(size=q)
    Z -= Z.mean(axis=1, keepdims=True)
    return X, softmax(spread * Z / np.sqrt(np.mean(np.square(Z))))


def ranked(D):
    return np.argsort(np.argsort(D, axis=1), axis=1).astype(float)


def levelled(D, n_levels=4, seed=0):
    """Levels 0, 1, ... cut at random places of every row's ranking."""
    cuts = np.random.default_rng(seed).integers(0, D.shape[1] + 1, size=(len(D), 1, n_levels - 1))
    return (ranked(D)[:, :, None] >= cuts).sum(axis=2).astype(float)


def covered(method, D, rows):
    lower, upper = method.intervals(level=0.9)
    return float(np.mean(((lower <= D) & (upper >= D))[rows]))


@pytest.mark.parametrize("levels", [[0, 1, 2], [2, 0, 2], [1, 0, np.nan]])
def test_the_sampler_draws_what_rejection_leaves(levels):
    rng, levels = np.random.default_rng(0), np.array(levels)
    H, C = rng.normal(size=(3, 3)), centring(3)
    S, mean = C @ (H @ H.T / 3 + 0.3 * np.eye(3)) @ C, C @ [0.5, -0.3, 0.4]
    Z = rng.multivariate_normal(mean, S, size=60_000)
    D = softmax(Z[Order().agrees(Z, np.tile(levels, (len(Z), 1)))])
    rows = Rows(Order(), np.tile(levels, (1000, 1)))
    sampled = []
    for k in range(40):
        rows.sweep(np.tile(mean[:, None], (1, 1000)), precision(S), rng)
        if k >= 10:
            sampled.append(softmax(rows.Z.T))
    sampled = np.concatenate(sampled)
    np.testing.assert_allclose(sampled.mean(axis=0), D.mean(axis=0), atol=0.006)
    np.testing.assert_allclose(np.cov(sampled.T), np.cov(D.T), atol=0.004)


def test_two_levels_are_marked_and_unmarked():
    rng = np.random.default_rng(0)
    Z, L = rng.normal(size=(50, 4)), (rng.random((50, 4)) < 0.5).astype(float)
    for j in range(4):
        expected = TopK().interval(others_of(Z, L, j), L[:, j] > 0)
        np.testing.assert_array_equal(level_interval(Z.T, L.T, j), expected)


def test_a_start_is_in_order_and_moments_are_those_of_the_scores():
    _, D = drawn()
    for L in (ranked(D), levelled(D), 7 * levelled(D, 2)):
        Z, impossible = Order().start(L)
        assert not impossible.any()
        assert Order().agrees(Z, L).all()
        assert not Order().agrees(-Z, L)[L.min(axis=1) < L.max(axis=1)].any()
    mean, covariance = level_moments(ranked(D).T)
    np.testing.assert_allclose([mean.sum(), *covariance.sum(axis=0)], 0.0, atol=1e-12)
    np.testing.assert_array_equal(np.argsort(mean), np.argsort(ranked(D).mean(axis=0)))


def test_only_the_order_within_a_row_counts():
    X, D = drawn()
    L = levelled(D)
    other = 3 * L + np.arange(len(L))[:, None]
    first, second = (Inversion(**SHORT).fit_enhance(X, Y) for Y in (L, other))
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Most of the weight")
def test_every_sample_and_the_answer_keep_the_order_and_more_order_tells_more():
    X, D = drawn(0.22, n=300)
    error = []
    for L in (levelled(D, 2), levelled(D), ranked(D)):
        method = Inversion(**SHORT, n_samples=3)
        answer = method.fit_enhance(X, L)
        assert all(Order().agrees(sample, L).all() for sample in (*method.samples_, answer))
        error.append(kl_divergence(D, answer).mean())
    assert error[0] > error[1] > error[2]


def test_the_summary_says_where_the_scale_comes_from():
    X, D = drawn(n=60)
    L = levelled(D)
    method = Inversion(**SHORT).fit(X, L)
    assert "a weak prior does" in method.summary()
    assert "higher levels above lower ones" in method.summary()
    graded = np.where(np.arange(len(D))[:, None] < 5, D, np.nan)
    assert "comes from the graded rows" in Inversion(**SHORT).fit(X, L, degrees=graded).summary()


@pytest.mark.parametrize(
    "spread", [2.0, pytest.param(0.15, marks=pytest.mark.exhaustive), pytest.param(0.5, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("made", [ranked, pytest.param(levelled, marks=pytest.mark.exhaustive)])
def test_with_graded_rows_intervals_cover_at_any_spread(spread, made):
    found = []
    for seed in range(4):
        X, D = drawn(spread, n=300, seed=seed + 2)
        graded = np.where(np.arange(len(D))[:, None] < 30, D, np.nan)
        method = Inversion(**SHORT).fit(X, made(D), degrees=graded)
        np.testing.assert_allclose(method.label_distributions_[:30], D[:30])
        found.append(covered(method, D, slice(30, None)))
    assert 0.87 <= np.mean(found) <= 0.93


def test_grades_against_their_levels_are_named_and_kept():
    X, D = drawn(n=40)
    L = ranked(D)
    L[3] = L[3].max() - L[3]
    graded = np.where(np.arange(len(D))[:, None] < 6, D, np.nan)
    with pytest.warns(LabelWarning, match=r"rows 3\)"):
        answer = Inversion(**SHORT).fit_enhance(X, L, degrees=graded)
    np.testing.assert_allclose(answer[:6], D[:6])


def test_rows_of_one_level_say_nothing_and_are_taken():
    X, D = drawn(n=60)
    L = ranked(D)
    L[:5] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method = Inversion(**SHORT).fit(X, L)
    lower, upper = method.intervals(level=0.9)
    assert (upper - lower)[:5].mean() > (upper - lower)[5:].mean()


def test_levels_are_refused_where_they_mean_nothing():
    X, D = drawn(n=30)
    for method in (GLLE(), Inversion()):
        with pytest.raises(LabelError, match='for ranks "order"'):
            method.fit(X, ranked(D))
    with pytest.raises(LabelError, match="whole numbers"):
        Inversion(**SHORT).fit(X, ranked(D) + 0.5)
    with pytest.raises(InputError, match="noise"):
        Inversion(**SHORT, noise=0.1).fit(X, ranked(D))


def test_new_rows_have_levels_too():
    X, D = drawn()
    L = ranked(D)
    method = Inversion(**SHORT).fit(X[:100], L[:100])
    answer = method.enhance(X[100:], L[100:])
    assert Order().agrees(answer, L[100:]).all()
    with pytest.raises(LabelError, match="whole numbers"):
        method.enhance(X[100:], L[100:] + 0.5)


def test_tensors_and_lazy_arrays_answer_alike():
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    X, D = drawn(n=60)
    L = levelled(D)
    expected = Inversion(**SHORT).fit_enhance(X, L)
    lazy = Inversion(**SHORT).fit_enhance(da.from_array(X, chunks=20), da.from_array(L, chunks=20)).compute()
    np.testing.assert_allclose(lazy, expected, rtol=1e-10)
    tensor = Inversion(**SHORT).fit_enhance(torch.as_tensor(X), torch.as_tensor(L)).numpy()
    assert Order().agrees(tensor, L).all()
    assert np.abs(tensor - expected).max() < 0.06
    method = Inversion(**{**SHORT, "max_rows": 30}).fit(da.from_array(X, chunks=20), da.from_array(L, chunks=20))
    assert Order().agrees(method.label_distributions_.compute(), L).all()
    with pytest.raises(LabelError, match="whole numbers"):
        method.enhance(da.from_array(X), da.from_array(L + 0.5)).compute()


def test_levels_are_put_where_degrees_are_largest_and_gaps_stay():
    D = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    given = np.array([[2.0, 0.0, 1.0], [1.0, 3.0, np.nan]])
    np.testing.assert_array_equal(in_order_of(D, given), [[0.0, 2.0, 1.0], [3.0, 1.0, np.nan]])

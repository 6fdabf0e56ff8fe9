"""Several annotators of one item: the sampler against the closed form, coverage, and error that falls with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from contone import CumulativeMass, Inversion
from contone.enhance.inversion.annotators import Items
from contone.enhance.inversion.evidence import place_grades
from contone.enhance.inversion.logistic_normal import centring, precision
from contone.exceptions import InputError, InputTypeError, LabelError, LabelWarning, ShapeError
from contone.measurements import Order
from contone.numerics.simplex import kl_divergence, softmax

SHORT = {"n_sweeps": 100, "n_burn": 50}
QUICK = {"degradation": Order(), "n_sweeps": 24, "n_burn": 8}
"""Where the answer itself is of no interest; the order alone needs no simulation of the spread."""


def measured(spread=0.5, ratio=0.7, m=120, k=3, q=4, seed=0, made=None):
    """Items X (m, 3), D (m, q), and k rows of labels each: item (m k,), L (m k, q), tau."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    Z = 0.5 * X @ rng.normal(size=(3, q)) + rng.normal(size=(m, q))
    Z -= Z.mean(axis=1, keepdims=True)
    scale = spread / np.sqrt(np.mean(np.square(Z)))
    item = rng.permutation(np.repeat(np.arange(m), k))
    noisy = softmax(scale * (Z[item] + ratio * rng.normal(size=(m * k, q))))
    return X, softmax(scale * Z), item, (made or CumulativeMass().apply)(noisy).astype(float), ratio * scale


def covered(found, D):
    lower, upper = found.intervals(level=0.9)
    return float(np.mean((lower <= D) & (upper >= D)))


def in_order(item):
    """Numbers of the items by first appearance."""
    return item[np.sort(np.unique(item, return_index=True)[1])]


def test_without_labels_that_bind_items_have_their_prior():
    """Ties bind nothing: every z_r is normal, and so is z_i, with its prior's moments."""
    rng = np.random.default_rng(0)
    C, mean = centring(3), np.array([0.3, -0.1, -0.2])
    S = C @ np.diag([0.5, 1.0, 2.0]) @ C
    items = Items(Order(), np.zeros((4000, 3)), np.repeat(np.arange(2000), 2), 0.6)
    drawn = []
    for k in range(40):
        items.sweep(np.tile(mean[:, None], (1, 2000)), precision(S), rng)
        if k >= 10:
            drawn.append(items.Z)
    drawn = np.concatenate(drawn, axis=1)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(drawn), S, atol=0.04)
    spread = items.rows.Z - items.rows.Z.mean(axis=0) - items.Z[:, items.item]
    np.testing.assert_allclose(np.cov(spread), 0.36 * C, atol=0.03)


def test_the_sampler_draws_what_rejection_leaves():
    rng, C = np.random.default_rng(1), centring(3)
    S, tau = C @ np.diag([0.5, 1.0, 2.0]) @ C, 0.5
    L = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    Z = rng.multivariate_normal(np.zeros(3), S, size=200_000)
    fits = [Order().agrees(Z + tau * rng.normal(size=Z.shape), np.tile(row, (len(Z), 1))) for row in L]
    D = softmax(Z[fits[0] & fits[1]])
    items = Items(Order(), np.tile(L, (1000, 1)), np.repeat(np.arange(1000), 2), tau)
    drawn = []
    for k in range(50):
        items.sweep(np.zeros((3, 1000)), precision(S), rng, reflect=k % 2 == 1)
        if k >= 20:
            drawn.append(softmax(items.Z.T))
    drawn = np.concatenate(drawn)
    np.testing.assert_allclose(drawn.mean(axis=0), D.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(D.T), atol=0.006)


def test_known_items_stay_and_their_zeros_are_drawn_as_rejection_leaves_them():
    """One item at (.6, .4, 0), its annotators bound by nothing: the zero is normal given the rest, below its bound."""
    rng, C, n = np.random.default_rng(2), centring(3), 1500
    S, mean = C @ np.diag([0.5, 1.0, 2.0]) @ C, np.array([0.3, -0.1, -0.2])
    grades = place_grades(np.arange(n), np.tile([0.6, 0.4, 0.0], (n, 1)), np.zeros((n, 3)))
    items = Items(Order(), np.zeros((2 * n, 3)), np.repeat(np.arange(n), 2), 0.6, grades)
    drawn = []
    for k in range(60):
        items.sweep(np.tile(mean[:, None], (1, n)), precision(S), rng)
        if k >= 20:
            drawn.append(items.Z[2] - items.Z[0])
    np.testing.assert_allclose(items.Z[0] - items.Z[1], np.log(1.5))
    # x = z_3 - z_1 given y = z_2 - z_1, of the normal distribution of both
    to = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    (vy, c), (_, vx) = to @ S @ to.T
    y, (my, mx) = np.log(0.4 / 0.6), to @ mean
    x = rng.normal(mx + c / vy * (y - my), np.sqrt(vx - c**2 / vy), size=400_000)
    x = x[x < np.log(0.2 / 0.6)]
    assert np.mean(drawn) == pytest.approx(x.mean(), abs=0.03)
    assert np.std(drawn) == pytest.approx(x.std(), rel=0.03)


def test_items_with_heavier_tails_have_their_variance():
    rng, C = np.random.default_rng(3), centring(3)
    S = C @ np.diag([0.5, 1.0, 2.0]) @ C
    items = Items(Order(), np.zeros((8000, 3)), np.repeat(np.arange(4000), 2), 0.6, tail=6.0)
    drawn = []
    for k in range(60):
        items.sweep(np.zeros((3, 4000)), precision(S), rng)
        if k >= 20:
            drawn.append(items.Z)
    np.testing.assert_allclose(np.cov(np.concatenate(drawn, axis=1)), 6 / 4 * S, atol=0.08)


@pytest.fixture(scope="module")
def fits():
    """Fits to the same items with 2 and 6 annotators: method, D, tau."""
    found = {}
    for k in (2, 6):
        X, D, item, L, tau = measured(k=k)
        found[k] = Inversion(**SHORT).fit(X[item], L, groups=item), D[in_order(item)], tau
    return found


def test_more_annotators_tell_more_and_intervals_say_so(fits):
    errors, widths = [], []
    for method, D, tau in fits.values():
        assert method.label_distributions_.shape == D.shape
        assert method.annotator_deviation_ == pytest.approx(tau, rel=0.3)
        assert 0.85 <= covered(method, D) <= 0.95
        errors.append(kl_divergence(D, method.label_distributions_).mean())
        widths.append(np.mean(np.subtract(*method.intervals(level=0.9)[::-1])))
    assert errors[1] < 0.7 * errors[0]
    assert widths[1] < 0.85 * widths[0]


def test_graded_items_come_back_and_tell_of_the_others():
    """Four labels hardly tell a spread of 0.1, and the prior's is too large: fifteen graded items say so."""
    X, D, item, L, tau = measured(0.1, k=3)
    names = in_order(item)
    few = {"n_sweeps": 60, "n_burn": 20}
    plain = Inversion(**few).fit(X[item], L, groups=item)
    known = np.sort(np.random.default_rng(0).permutation(len(D))[:15])
    G = np.full_like(D, np.nan)
    G[known] = D[names][known]
    method = Inversion(**few)
    answer = method.fit_enhance(X[item], L, groups=item, degrees=G)
    np.testing.assert_allclose(answer[known], D[names][known])
    rest = np.setdiff1d(np.arange(len(D)), known)
    before, after = (kl_divergence(D[names][rest], A[rest]).mean() for A in (plain.label_distributions_, answer))
    assert after < 0.8 * before
    assert abs(np.log(method.annotator_deviation_ / tau)) < abs(np.log(plain.annotator_deviation_ / tau))
    assert method.annotator_deviation_ == pytest.approx(tau, rel=0.35)
    lower, upper = method.intervals(level=0.9)
    assert 0.8 <= np.mean(((lower <= D[names]) & (upper >= D[names]))[rest]) <= 0.97
    assert method.expected_error_.mean < plain.expected_error_.mean
    frame = pd.DataFrame(D[names][known], index=names[known], columns=list("abcd"))
    again = method.fit_enhance(X[item], pd.DataFrame(L, columns=list("abcd")), groups=item, degrees=frame)
    np.testing.assert_array_equal(again.to_numpy(), answer)


@pytest.mark.exhaustive
@pytest.mark.parametrize("spread", [0.15, 0.5, 2.0])
@pytest.mark.parametrize("k", [2, 5])
def test_intervals_cover_and_the_error_is_the_expected_one(spread, k):
    found = []
    for seed in range(5):
        X, D, item, L, _ = measured(spread, m=300, k=k, q=5, seed=seed)
        found.append(covered(Inversion().fit(X[item], L, groups=item), D[in_order(item)]))
    assert 0.87 <= np.mean(found) <= 0.93


def test_the_expected_error_is_near_the_actual_one(fits):
    for method, D, _ in fits.values():
        actual = kl_divergence(D, method.label_distributions_).mean()
        assert 0.5 < method.expected_error_.mean / actual < 1.6
        assert "annotator" in method.summary()


def test_names_and_order_of_rows_do_not_matter_and_frames_come_back():
    X, _, item, L, _ = measured(m=30)
    names = np.array([f"item {i}" for i in range(30)])[item]
    method = Inversion(**QUICK)
    expected = method.fit_enhance(X[item], L, groups=item)
    assert method.groups_ == in_order(item).tolist()
    frame = pd.DataFrame(L, columns=list("abcd"), index=np.arange(90) + 7)
    answer = method.fit_enhance(pd.DataFrame(X[item], index=frame.index), frame, groups=pd.Series(names))
    assert list(answer.index) == method.groups_ == list(dict.fromkeys(names))
    assert list(answer.columns) == list("abcd")
    np.testing.assert_array_equal(answer.to_numpy(), expected)
    flat = method.fit_enhance(X[item], pl.DataFrame(L, schema=list("abcd")), groups=pl.Series(names))
    assert isinstance(flat, pl.DataFrame)
    assert flat.height == 30
    again = method.enhance(X, L[:30])
    assert again.shape == (30, 4)


def test_rankings_of_several_annotators():
    X, D, item, L, _ = measured(0.25, k=3, made=lambda D: np.argsort(np.argsort(D, axis=1), axis=1))
    method = Inversion(degradation="order", **SHORT).fit(X[item], L, groups=item)
    uniform = np.full_like(D, 0.25)
    error = kl_divergence(D[in_order(item)], method.label_distributions_).mean()
    assert error < 0.4 * kl_divergence(D, uniform).mean()


def test_tensors_are_taken_and_lazy_arrays_refused():
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    X, _, item, L, _ = measured(m=20)
    expected = Inversion(**QUICK).fit_enhance(X[item], L, groups=item)
    tensor = Inversion(**QUICK).fit_enhance(torch.as_tensor(X[item]), torch.as_tensor(L), groups=torch.as_tensor(item))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.numpy(), expected)
    with pytest.raises(InputTypeError, match="in memory"):
        Inversion().fit(da.from_array(X[item]), da.from_array(L), groups=item)


def test_bad_groups_are_refused_and_poor_ones_said():
    X, D, item, L, _ = measured(m=20)
    rows = X[item]
    with pytest.raises(ShapeError, match="59 entries"):
        Inversion().fit(rows, L, groups=item[:-1])
    with pytest.raises(InputError, match="no name in row 3"):
        Inversion().fit(rows, L, groups=[None if r == 3 else i for r, i in enumerate(item)])
    with pytest.raises(ShapeError, match="60 rows, groups names 20 items"):
        Inversion().fit(rows, L, groups=item, degrees=D[item])
    named = pd.DataFrame(L, columns=list("abcd"))
    for index, said in ((["z", 1], "'z' that groups does not name"), ([0, 0], "an item twice")):
        with pytest.raises(LabelError, match=said):
            Inversion().fit(rows, named, groups=item, degrees=pd.DataFrame(D[:2], columns=named.columns, index=index))
    with pytest.raises(InputError, match="noise"):
        Inversion(noise=0.1).fit(rows, L, groups=item)
    with pytest.warns(LabelWarning, match="differ in their features"):
        Inversion(**QUICK).fit(rows + np.arange(60)[:, None], L, groups=item)
    with pytest.warns(LabelWarning, match="another item in every row"):
        method = Inversion(**QUICK).fit(rows, L, groups=np.arange(60))
    assert method.annotator_deviation_ == 0.0
    np.testing.assert_array_equal(method.label_distributions_, Inversion(**QUICK).fit_enhance(rows, L))

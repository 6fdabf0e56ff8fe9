"""HSIC reduction against the dense n x n formula of the paper."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh
from sklearn.utils.estimator_checks import check_estimator

from contone import HSICReducer
from contone.exceptions import FeatureError, LabelError, RankWarning, ShapeError
from contone.numerics.eigen import fix_signs


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 1.0
    return X, rng.dirichlet(np.ones(5), size=80)


def dense(X, F, alpha):
    """A and B as the paper writes them, with H and the kernel F F^T in full."""
    n, d = X.shape
    H = np.eye(n) - np.ones((n, n)) / n
    return X.T @ H @ F @ F.T @ H @ X, alpha * X.T @ X + (1 - alpha) * np.eye(d)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.9, 1.0])
def test_agrees_with_the_dense_formula(data, alpha):
    X, F = data
    A, B = dense(X, F, alpha)
    values, vectors = eigh(A, B)
    found = HSICReducer(n_components=4, alpha=alpha).fit(X, F)
    np.testing.assert_allclose(found.eigenvalues_, values[::-1][:4], rtol=1e-9)
    np.testing.assert_allclose(found.projection_, fix_signs(vectors[:, ::-1][:, :4]), atol=1e-8)
    np.testing.assert_allclose(found.projection_.T @ B @ found.projection_, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_the_labels_changes_no_direction(data, unit):
    X, F = data
    F = np.column_stack([F, np.full(len(F), 0.1)])  # constant: rounding is all that is left of it
    expected, found = HSICReducer(n_components=4).fit(X, F), HSICReducer(n_components=4).fit(X, unit * F)
    assert found.rank_ == expected.rank_ == 4
    np.testing.assert_allclose(found.projection_, expected.projection_, atol=1e-9)
    np.testing.assert_allclose(found.eigenvalues_, unit**2 * expected.eigenvalues_, rtol=1e-9)
    with pytest.warns(RankWarning, match="determine only 0"):
        assert HSICReducer(n_components=2).fit(X, unit * F[:, 5:]).rank_ == 0


def test_how_many_directions_a_share_keeps(data):
    X, F = data
    values = HSICReducer(n_components=None, on_rank_deficient="truncate").fit(X, F).eigenvalues_
    shares = np.cumsum(values) / values.sum()
    for k in range(1, 4):  # a little more than k directions tell, and a little less
        more, less = (HSICReducer(n_components=float(shares[k - 1] + step)).fit(X, F) for step in (1e-6, -1e-6))
        assert (more.projection_.shape[1], less.projection_.shape[1]) == (k + 1, k)
    assert HSICReducer(n_components=0.9).fit(X[:, :1], F).projection_.shape == (1, 1)


@pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning")
def test_one_direction_stays_where_labels_tell_one_or_none(data):
    X, F = data
    one, none = np.column_stack([F[:, 0], -F[:, 0]]), np.ones((len(F), 2))
    for Y in (one, none):
        for n_components in (3, None, 0.9):
            found = HSICReducer(n_components=n_components, on_rank_deficient="truncate").fit(X, Y)
            assert found.projection_.shape[1] == 1


def test_hsic_value_is_the_sum_of_eigenvalues(data):
    X, F = data
    found = HSICReducer(n_components=3).fit(X, F)
    H = np.eye(80) - 1 / 80
    K = found.transform(X) @ found.transform(X).T
    value = np.trace(H @ K @ H @ F @ F.T)
    assert found.eigenvalues_.sum() == pytest.approx(value)
    assert found.hsic_ == pytest.approx(value / 79**2)


def test_no_other_feasible_projection_has_more_dependence(data):
    X, F = data
    A, B = dense(X, F, 0.1)
    best = HSICReducer(n_components=2).fit(X, F).eigenvalues_.sum()
    rng = np.random.default_rng(1)
    for _ in range(50):
        V = np.linalg.solve(np.linalg.cholesky(B).T, np.linalg.qr(rng.normal(size=(6, 2)))[0])
        assert np.trace(V.T @ A @ V) <= best + 1e-9


def test_rank_is_at_most_q_minus_one_and_the_rest_is_filled(data):
    X, F = data
    with pytest.warns(RankWarning, match="determine only 4; the other 2"):
        full = HSICReducer(n_components=10).fit(X, F)
    assert full.rank_ == 4
    assert full.projection_.shape == (6, 6)
    B = dense(X, F, 0.1)[1]
    np.testing.assert_allclose(full.projection_.T @ B @ full.projection_, np.eye(6), atol=1e-10)
    variance = full.transform(X).var(axis=0)
    assert variance[4] >= variance[5]
    cut = HSICReducer(n_components=10, on_rank_deficient="truncate").fit(X, F)
    np.testing.assert_array_equal(cut.projection_, full.projection_[:, :4])


def test_number_of_components(data):
    X, F = data
    assert HSICReducer(n_components=None).fit(X, F).projection_.shape == (6, 6)
    assert HSICReducer(n_components=0, on_rank_deficient="truncate").fit(X, F).projection_.shape == (6, 4)
    values = HSICReducer(n_components=4).fit(X, F).eigenvalues_
    share = values.cumsum() / values.sum()
    for wanted in (0.3, 0.6, 0.9, 0.999):
        kept = HSICReducer(n_components=wanted).fit(X, F).projection_.shape[1]
        assert share[kept - 1] >= wanted
        assert kept == 1 or share[kept - 2] < wanted


def test_labels_that_say_nothing_leave_the_directions_of_largest_variance(data):
    X, _ = data
    with pytest.warns(RankWarning):
        found = HSICReducer(n_components=2, alpha=0.0).fit(X, np.full((80, 3), 1 / 3))
    assert found.rank_ == 0
    top = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2].T
    np.testing.assert_allclose(found.projection_, fix_signs(top), atol=1e-8)


def test_rescaled_projections_have_unit_variance(data):
    X, F = data
    plain, rescaled = (HSICReducer(n_components=4, rescale=r).fit(X, F) for r in (None, "unit_variance"))
    np.testing.assert_allclose(rescaled.transform(X).std(axis=0), 1.0)
    np.testing.assert_allclose(rescaled.transform(X) * rescaled.scale_, plain.transform(X))


def test_rows_in_another_order_and_signs(data):
    X, F = data
    order = np.random.default_rng(2).permutation(80)
    first, second = HSICReducer(n_components=4).fit(X, F), HSICReducer(n_components=4).fit(X[order], F[order])
    np.testing.assert_allclose(first.projection_, second.projection_, atol=1e-9)
    position = np.abs(first.projection_).argmax(axis=0)
    assert (first.projection_[position, np.arange(4)] > 0).all()


def test_frames_and_names(data):
    X, F = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    found = HSICReducer(n_components=2).set_output(transform="pandas").fit(frame, pd.DataFrame(F))
    assert list(found.transform(frame).columns) == ["hsicreducer0", "hsicreducer1"]


def test_bad_input(data):
    X, F = data
    with pytest.raises(ShapeError, match="80 and 79"):
        HSICReducer().fit(X, F[:-1])
    with pytest.raises(LabelError, match="requires y"):
        HSICReducer().fit(X, None)
    with pytest.raises(FeatureError, match="alpha < 1"):
        HSICReducer(alpha=1.0).fit(np.zeros((5, 2)), F[:5])


@pytest.mark.filterwarnings("ignore::contone.exceptions.RankWarning")
def test_scikit_learn_checks():
    check_estimator(HSICReducer(), on_skip=None)


def test_memory_stays_linear_in_the_rows():
    rng = np.random.default_rng(3)
    n, d, q = 100_000, 10, 4
    X, F = rng.normal(size=(n, d)), rng.dirichlet(np.ones(q), size=n)
    reducer = HSICReducer(n_components=3)
    tracemalloc.start()
    reducer.fit(X, F).transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes

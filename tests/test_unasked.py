"""Entries that nobody asked about and rows without any label, in every method: taken, or refused by name."""

import numpy as np
import pytest

from contone import GLLE, LEMLL, LP, CumulativeMass, Logical, Temperature, Uniform, enhance
from contone.base import can_enhance_new_rows
from contone.enhance import glle, lemll
from contone.exceptions import LabelError, LabelWarning
from contone.measurements import asked_frequencies
from contone.numerics.kernel import gaussian_matrix
from contone.numerics.simplex import softmax
from contone.validation.training import able_methods

QUICK = {"n_sweeps": 12, "n_burn": 4, "pretrain_epochs": 2, "epochs": 2, "max_iter": 30, "n_init": 1}
METHODS = enhance.methods()


def data(n=30, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, CumulativeMass().apply(softmax(X @ rng.normal(size=(3, q)) + rng.normal(size=(n, q)))).astype(float)


def partly_asked(L):
    return np.where(np.random.default_rng(1).random(L.shape) < 0.25, np.nan, L)


def quick(cls):
    method = cls()
    return method.set_params(**{k: v for k, v in QUICK.items() if k in method.get_params()})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_unasked_entries_are_taken_or_refused_by_name(name):
    method, (X, L) = quick(METHODS[name]), data()
    M = partly_asked(L)
    if "unasked" not in method.kinds:
        with pytest.raises(LabelError, match="takes NaN as unasked: .*Inversion.*Uniform"):
            method.fit(X, M)
        return
    D = method.fit_enhance(X, M)
    assert D.shape == L.shape
    if can_enhance_new_rows(method):
        np.testing.assert_allclose(np.asarray(method.enhance(X, M)).sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_rows_without_a_label_are_left_out_of_the_fit_or_refused_by_name(name):
    method, (X, L) = quick(METHODS[name]), data()
    L[[3, 8]] = 0.0
    if "unlabelled" not in method.kinds and not hasattr(method, "predict"):
        with pytest.raises(LabelError, match=r"without any label .2 of 30, first row 3.*or use one of .*GLLE.*LP"):
            method.fit(X, L)
        return
    with pytest.warns(LabelWarning, match="without any label .2 of 30, first row 3"):
        D = method.fit_enhance(X, L)
    if "unlabelled" in method.kinds:
        return
    told = np.setdiff1d(np.arange(30), [3, 8])
    alone = quick(METHODS[name]).fit(X[told], L[told])
    np.testing.assert_allclose(D[told], alone.label_distributions_, atol=1e-9)
    np.testing.assert_allclose(D[[3, 8]], alone.predict(X[[3, 8]]), atol=1e-9)


def test_the_list_of_methods_holds_no_wrapper():
    assert {"Inversion", "GLLE", "LCdr", "LEMLL", "Temperature"} <= set(able_methods("unasked").split(", "))
    assert "Rescaled" not in able_methods("unasked")


def test_baselines_are_neutral_where_nobody_asked():
    X, L = data()
    M = partly_asked(L)
    M[0] = [1.0, np.nan, 0.0, np.nan]
    f = asked_frequencies(M)
    np.testing.assert_allclose(Temperature(c=0.7).fit_enhance(X, M)[0], softmax(0.7 * np.array([1.0, f[1], 0.0, f[3]])))
    expected = np.array([1.0, f[1], 0.0, f[3]])
    np.testing.assert_allclose(Logical().fit_enhance(X, M)[0], expected / expected.sum())
    M[1] = np.nan
    for method in (Uniform(), Temperature(), Logical()):
        with pytest.warns(LabelWarning, match="uniform"):
            np.testing.assert_allclose(method.fit_enhance(X, M)[1], 0.25)


@pytest.mark.parametrize("duplicates", [False, True])
def test_masked_glle_is_stationary(duplicates):
    X, L = data()
    if duplicates:
        X[10:15] = X[:5]
    M = partly_asked(L)
    M[4] = np.nan
    asked = (~np.isnan(M)).astype(float)
    A, *_ = glle.neighbour_affinity(X, 5, "knn")
    f = asked_frequencies(M)
    filled = np.where(asked > 0, M, f)
    found = GLLE(tol=1e-12)._smooth(A, filled, 0.7, (len(X), None), asked, f)
    gradient = glle.objective(found.value, A, filled, 0.7, asked)[1]
    if duplicates:
        gradient = np.concatenate([gradient[:5] + gradient[10:15], gradient[5:10], gradient[15:]])
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_glle_gives_a_row_without_labels_the_mean_of_its_neighbours():
    X, L = data()
    L[7] = 0.0
    method = GLLE(n_neighbors=5, standardize=False).fit(X, L)
    A = glle.neighbour_affinity(X, 5, "knn")[0]
    weights = A.matmul(np.eye(30))[7]
    np.testing.assert_allclose(method.scores_[7], weights @ method.scores_ / weights.sum(), atol=1e-6)


@pytest.mark.filterwarnings("ignore::contone.exceptions.LabelWarning")
def test_lp_propagates_to_rows_without_labels_as_zeros():
    X, L = data()
    L[7] = 0.0
    method = LP(graph="dense", standardize=False, sigma=1.0, alpha=0.4).fit(X, L)
    A = gaussian_matrix(X, 1.0) - np.eye(30)
    root = 1 / np.sqrt(A.sum(axis=1))
    F = 0.6 * np.linalg.solve(np.eye(30) - 0.4 * root[:, None] * A * root, L)
    np.testing.assert_allclose(method.scores_, F, atol=1e-8)


def test_lemll_is_stationary_where_entries_are_unasked():
    X, L = data()
    method = LEMLL(tol=1e-7, max_iter=2000).fit(X, partly_asked(L))
    assert method.solution_.converged


def test_gradient_of_masked_lemll():
    X, L = data(8, 3)
    asked = np.random.default_rng(2).random(L.shape) < 0.7
    weights = lemll.lle_matrix(lemll.lle_weights(X, 3))
    problem = lemll.Problem(np.hstack([X, np.ones((8, 1))]), 2 * L - 1, weights, 0.1, 1.0, 1.0, 1.0, asked)
    rng = np.random.default_rng(0)
    U, Theta, V = rng.normal(size=(8, 3)), rng.normal(size=(4, 3)), rng.normal(size=(8, 3))
    step = 1e-6
    ahead, behind = (lemll.objective(problem, U + sign * step * V, Theta)[0] for sign in (1, -1))
    np.testing.assert_allclose(
        (lemll.objective(problem, U, Theta)[1] * V).sum(), (ahead - behind) / (2 * step), rtol=1e-6
    )

"""Entries that nobody asked about and rows without any label, in every method: taken, or refused by name."""

import numpy as np
import pytest

from contone import CumulativeMass, enhance
from contone.base import can_enhance_new_rows
from contone.exceptions import LabelError, LabelWarning
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
